//! `toolgate web`, and the page of `toolgate serve --http`

use std::{
    io::{BufRead as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};

use tokio_util::sync::CancellationToken;
use toolgate_config::Presence;
use toolgate_gateway::HttpSettings;
use toolgate_host::ToolHost;
use toolgate_store::{ChoiceStore, Store};
use toolgate_web::{Page, PageSource, ShownLogin};

use super::{login, serve};
use crate::{
    cli::{Globals, Web},
    decisions,
    failure::{CommandResult, Failure},
    folders, lineage,
    load::{self, Loaded},
    logins,
    person::OpenTerminal,
};

pub(crate) async fn run(globals: &Globals, arguments: &Web) -> CommandResult {
    // Who has the link decides, so only a person may see it.
    lineage::refuse_servers()?;
    let terminal = OpenTerminal::open().map_err(|_| {
        Failure::usage(
            "the link to the page is for a person, and there is no terminal to show it at",
        )
        .hint("run it yourself in a terminal")
    })?;
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let store = load::required_store()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let (listener, address) = serve::listen(address).await?;
    let host = ToolHost::start(loaded.settings(None));
    let source = Shown::new(&loaded, store, host.clone());
    let page = Page::on_loopback(Arc::new(source), address)
        .ok_or_else(|| Failure::new("the page is for this machine alone"))?;
    let stop = CancellationToken::new();
    tokio::spawn(serve::stop_on_signal(stop.clone()));
    let link = page.link();
    if !arguments.no_open {
        login::open(&link);
    }
    let links = page.clone();
    std::thread::spawn(move || offer(terminal, &links, &link));
    let ended = stop.clone();
    let streams = page.clone();
    tokio::spawn(async move {
        ended.cancelled().await;
        streams.end();
    });
    toolgate_gateway::serve_http(listener, HttpSettings::of_pages(page.router()), stop).await;
    host.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// Shows the link, and a new one after each line that is typed.
fn offer(mut terminal: OpenTerminal, page: &Page, first: &str) {
    let mut link = first.to_owned();
    loop {
        let shown = writeln!(
            terminal.screen,
            "The page is at\n\n  {link}\n\nThe link works once. Enter shows a new one, Ctrl-C ends the page."
        );
        let mut typed = String::new();
        // At the end of the terminal the page goes on, and there are no new links.
        if shown.is_err() || !matches!(terminal.typed.read_line(&mut typed), Ok(1..)) {
            return;
        }
        link = page.link();
    }
}

/// The page of a gateway for clients on this machine, if there is a person at its terminal who can see the link.
pub(super) fn beside_gateway(
    loaded: &Loaded,
    hosts: &[(Option<String>, ToolHost)],
    address: SocketAddr,
) -> Option<Page> {
    if lineage::is_below_server() {
        return None;
    }
    let (_, host) = hosts.first()?;
    let mut terminal = OpenTerminal::open().ok()?;
    let source = Shown::new(loaded, load::store()?, host.clone());
    let page = Page::on_loopback(Arc::new(source), address)?;
    writeln!(terminal.screen, "  the page, for you alone (the link works once): {}", page.link())
        .ok()?;
    Some(page)
}

/// What the page shows of this process.
#[derive(Debug)]
struct Shown {
    host: ShownHost,
    store: Store,
    presence: Presence,
    configuration: String,
    choices: Option<Arc<dyn ChoiceStore>>,
}

/// A host, which has nothing to say of itself.
struct ShownHost(ToolHost);

impl std::fmt::Debug for ShownHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ShownHost")
    }
}

impl Shown {
    fn new(loaded: &Loaded, store: Store, host: ToolHost) -> Self {
        Self {
            host: ShownHost(host),
            store,
            presence: loaded.configuration.approvals.presence,
            configuration: folders::shown(&loaded.path),
            choices: loaded.choices(loaded.namespace.as_deref()),
        }
    }
}

impl PageSource for Shown {
    fn host(&self) -> ToolHost {
        self.host.0.clone()
    }

    fn store(&self) -> Store {
        self.store.clone()
    }

    fn presence(&self) -> Presence {
        // The user's own configuration may change while the page is open.
        load::own_presence().map_or(Presence::Password, |own| own.max(self.presence))
    }

    fn person(&self) -> String {
        decisions::caller().replacen("shell", "page", 1)
    }

    fn configuration(&self) -> String {
        self.configuration.clone()
    }

    fn choices(&self) -> Option<Arc<dyn ChoiceStore>> {
        self.choices.clone()
    }

    fn logins(&self) -> Vec<ShownLogin> {
        let stored = logins::of_callers(&self.store.vault(load::vault_key()));
        let shown = stored.unwrap_or_default().into_iter();
        shown
            .map(|login| ShownLogin {
                state: login.to_string(),
                server: login.server,
                caller: login.caller,
            })
            .collect()
    }
}
