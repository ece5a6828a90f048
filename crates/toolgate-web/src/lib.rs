//! The page of toolgate: what agents did, what they may, and a way to decide.
//!
//! Every screen is HTML that this crate writes, readable without JavaScript. htmx and two of its
//! extensions, which are part of the program, keep some of it up to date.
//!
//! > **Invariant:** a request changes something only if `guard` has let it through: it carries the
//! > cookie that a link of the terminal became, the token of the page that it was sent from, and the
//! > origin of that page, and no server of toolgate has sent it.
//!
//! > **Invariant:** what comes from servers, clients and scripts is text. It enters a page only by
//! > `text`, which escapes it, spells out what would hide or turn it, and cuts what is long.

mod access;
mod assets;
mod form;
mod guard;
mod layout;
mod live;
mod plot;
mod screens;
mod text;
mod timeline;

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::Router;
use parking_lot::Mutex;
use toolgate_broker::QueuedCall;
use toolgate_host::{HostSettings, ToolHost};
use toolgate_policy::Presence;
use toolgate_store::{ChoiceStore, Journal, Store};
use toolgate_upstream::Redactor;

use self::{access::PageAccess, live::Streams, screens::Activity};

/// What the page shows, and how decisions are written down.
pub trait PageSource: fmt::Debug + Send + Sync {
    /// The host whose servers and tools are shown.
    fn host(&self) -> ToolHost;

    /// Where runs, approvals and the audit log are.
    fn store(&self) -> Store;

    /// How a person has to show that they are there, at least. The page counts as a terminal.
    fn presence(&self) -> Presence;

    /// Who decides on this page, for the audit log and for grants.
    fn person(&self) -> String;

    /// The configuration file, as it is shown.
    fn configuration(&self) -> String;

    /// Which servers are disabled; `None` if nothing can be stored.
    fn choices(&self) -> Option<Arc<dyn ChoiceStore>>;

    /// The logins of callers at servers.
    fn logins(&self) -> Vec<ShownLogin>;
}

/// A login of a caller at a server, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLogin {
    /// The server.
    pub server: String,
    /// Whose login it is; `None` if all callers use it.
    pub caller: Option<String>,
    /// What is known of it, in words.
    pub state: String,
}

/// The page. Clones are the same page.
#[derive(Debug, Clone)]
pub struct Page(Arc<PageState>);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct PageState {
    source: Arc<dyn PageSource>,
    access: PageAccess,
    streams: Streams,
    address: SocketAddr,
    /// What was last counted in the audit log.
    activity: Mutex<Option<Arc<Activity>>>,
    cleaner: Mutex<Cleaner>,
}

/// What removes the secrets of these settings.
#[derive(Default)]
struct Cleaner(Option<(Arc<HostSettings>, Vec<Redactor>)>);

impl fmt::Debug for Cleaner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Cleaner")
    }
}

/// The path below which the page is.
pub const PAGE_PATH: &str = "/ui";

impl Page {
    /// A page for the machine that it runs on, at this address of it; `None` if other machines can reach the address.
    pub fn on_loopback(source: Arc<dyn PageSource>, address: SocketAddr) -> Option<Self> {
        if !address.ip().is_loopback() {
            return None;
        }
        let (access, streams) = (PageAccess::default(), Streams::default());
        Some(Self(Arc::new(PageState {
            source,
            access,
            streams,
            address,
            activity: Mutex::default(),
            cleaner: Mutex::default(),
        })))
    }

    /// Ends the streams of the page, so that the gateway can stop.
    pub fn end(&self) {
        self.0.streams.0.cancel();
    }

    /// A link that opens the page, once. Only a person may see it.
    pub fn link(&self) -> String {
        format!("http://{}{PAGE_PATH}/open?token={}", self.0.address, self.0.access.new_link())
    }

    /// The routes of the page.
    pub fn router(&self) -> Router {
        let routes = screens::routes()
            .fallback(screens::nothing_here)
            .layer(axum::middleware::from_fn_with_state(Arc::clone(&self.0), guard::guard))
            .with_state(Arc::clone(&self.0));
        // The path with a slash is another path, and nothing is there.
        let elsewhere = axum::response::Redirect::to(PAGE_PATH);
        Router::new()
            .nest(PAGE_PATH, routes)
            .route(&format!("{PAGE_PATH}/"), axum::routing::get(move || async { elsewhere }))
    }
}

impl PageState {
    fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.source.host().journal().cloned()
    }

    /// Removes the secrets of the servers from a text.
    fn clean(&self, text: &str) -> String {
        let settings = self.source.host().settings();
        let mut cleaner = self.cleaner.lock();
        // A reload makes other settings. Most texts of a page are cleaned with the same ones.
        let known = cleaner.0.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, &settings));
        if !known {
            let redactors = settings.servers.iter().map(|setup| setup.spec.redactor()).collect();
            cleaner.0 = Some((Arc::clone(&settings), redactors));
        }
        let redactors = cleaner.0.iter().flat_map(|(_, redactors)| redactors);
        redactors.fold(text.to_owned(), |text, redactor| redactor.clean(&text))
    }

    /// The calls that wait, oldest first; none if they cannot be read.
    fn waiting(&self) -> Vec<QueuedCall> {
        let found = self.journal().map(|journal| QueuedCall::all(&*journal));
        found.and_then(Result::ok).unwrap_or_default()
    }
}
