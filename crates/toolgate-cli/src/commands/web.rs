//! `toolgate web`, and the page of `toolgate serve --http`

use std::{
    collections::{BTreeSet, HashMap},
    io::{self, IsTerminal as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolgate_broker::Caller;
use toolgate_catalog::ToolId;
use toolgate_config::{LoginGrant, Presence, Problem, ServerConfig, Transport};
use toolgate_gateway::HttpSettings;
use toolgate_host::{JudgedEntry, ToolHost};
use toolgate_policy::definitions::shown;
use toolgate_store::{ChoiceStore, Store};
use toolgate_web::{
    FlaggedDefinition, HeldDefinition, ListedServer, ListedServers, NewServer, Page, PageSource,
    ShownClients, ShownDefinitions, ShownLogin, ShownPlan, ShownSetup, TriedPolicy, UnusedServer,
    WrittenPolicy as ShownPolicy,
};

use super::{
    definitions,
    findings::Findings,
    held, login, logins as logins_command, serve, servers,
    setup::{self, ClientState, PlannedSetup},
    token::{self, RevokedToken},
};
use crate::{
    access,
    cli::{Add, Globals, Web},
    decisions,
    failure::{CommandResult, Failure},
    folders, lineage,
    load::{self, Loaded, OtherPolicy},
    logins,
    person::OpenTerminal,
    policy_place::{self, WrittenPolicy},
    print,
};

/// How long what was read of the configuration is used for every row of a table.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Why a page for other machines does nothing with clients.
const NOT_HERE: &str = "the files of clients are not here";
/// How long a person who has begun a login at the page may take.
const LOGIN_TIME: Duration = Duration::from_mins(10);

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
    let source = Shown::new(globals, &loaded, store, host.clone());
    let page = Page::on_loopback(Arc::new(source), address)
        .ok_or_else(|| Failure::new("the page is for this machine alone"))?;
    let stop = CancellationToken::new();
    tokio::spawn(serve::stop_on_signal(stop.clone()));
    let watching = serve::follow(globals, loaded, &host, &stop);
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
    let settings = HttpSettings::of_pages(page.router());
    toolgate_gateway::serve_http(listener, settings, stop.clone()).await;
    // No server is added to a host that shuts down.
    stop.cancel();
    let _ = watching.await;
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
        // At the end of the terminal the page goes on, and there are no new links.
        if shown.is_err() || !terminal.line_in_foreground() {
            return;
        }
        link = page.link();
    }
}

/// The page of a gateway for clients on this machine, if there is a person at its terminal who can see the link.
pub(super) fn beside_gateway(
    globals: &Globals,
    loaded: &Loaded,
    hosts: &[(Option<String>, ToolHost)],
    address: SocketAddr,
) -> Option<Page> {
    if lineage::is_below_server() {
        return None;
    }
    let (_, host) = hosts.first()?;
    let mut terminal = OpenTerminal::open().ok()?;
    let source = Shown::new(globals, loaded, load::store()?, host.clone());
    let page = Page::on_loopback(Arc::new(source), address)?;
    writeln!(
        terminal.screen,
        "  the page, for you alone (the link works once, Enter shows a new one): {}",
        page.link()
    )
    .ok()?;
    // What is typed may be meant for a program that shows the messages.
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Some(page);
    }
    let links = page.clone();
    std::thread::spawn(move || {
        while terminal.line_in_foreground() {
            if writeln!(terminal.screen, "  the page: {}", links.link()).is_err() {
                return;
            }
        }
    });
    Some(page)
}

/// The page for administrators of a gateway that other machines can reach, if the configuration names their scope.
pub(super) fn for_administrators(
    globals: &Globals,
    loaded: &Loaded,
    hosts: &[(Option<String>, ToolHost)],
    address: SocketAddr,
) -> Result<Option<Page>, Failure> {
    let gateway = &loaded.configuration.gateway;
    let scope = gateway.oauth.as_ref().and_then(|oauth| oauth.admin_scope.as_deref());
    let (Some(scope), Some((_, host)), Some(store)) = (scope, hosts.first(), load::store()) else {
        return Ok(None);
    };
    let at = access::pages(gateway, address);
    let shown = Shown::new(globals, loaded, store, host.clone());
    let source = Arc::new(Shown { is_public: true, ..shown });
    let control = Arc::new(access::control(gateway, address)?);
    let page = at.and_then(|at| Page::for_administrators(source, &at, control, scope));
    if let Some(page) = &page {
        print::note(format!("  the page for administrators: {}", page.link()));
    } else {
        print::note(
            "warning: there is no page for administrators: `gateway.publicUrl` is not an https URL without a path",
        );
    }
    Ok(page)
}

/// What the page shows of this process.
#[derive(Debug)]
struct Shown {
    globals: Globals,
    host: ShownHost,
    store: Store,
    configuration: String,
    choices: Option<Arc<dyn ChoiceStore>>,
    /// What was read of the servers of the configuration, and when.
    servers: Mutex<Option<(Instant, ReadServers)>>,
    /// The setup that was shown last, and its number.
    planned: Mutex<(u64, Option<PlannedSetup>)>,
    /// Whether other machines can reach the page. The files of this user's clients are not shown there.
    is_public: bool,
}

/// A host, which has nothing to say of itself.
struct ShownHost(ToolHost);

impl std::fmt::Debug for ShownHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ShownHost")
    }
}

impl Shown {
    fn new(globals: &Globals, loaded: &Loaded, store: Store, host: ToolHost) -> Self {
        Self {
            globals: globals.clone(),
            host: ShownHost(host),
            store,
            configuration: folders::shown(&loaded.path),
            choices: loaded.choices(loaded.namespace.as_deref()),
            servers: Mutex::default(),
            planned: Mutex::default(),
            is_public: false,
        }
    }
}

/// What a table of servers shows of the configuration.
#[derive(Debug, Default)]
struct ReadServers {
    /// The servers at which a person can log in.
    with_login: BTreeSet<String>,
    /// The servers that nobody can use.
    unused: Vec<UnusedServer>,
    /// That there is no policy, and what is wrong with it.
    policy_notes: Vec<String>,
    /// Why the configuration cannot be read.
    broken: Option<String>,
}

impl ReadServers {
    fn read(globals: &Globals) -> Self {
        let loaded = match load::load_quietly(globals) {
            Ok(loaded) => loaded,
            Err(why) => return Self { broken: Some(in_words(why)), ..Self::default() },
        };
        let has_login = |server: &&ServerConfig| match &server.transport {
            Ok(Transport::Http { headers, .. }) => {
                server.settings.oauth.grant == LoginGrant::Person
                    && !headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"))
            }
            _ => false,
        };
        let servers = || loaded.configuration.servers.iter();
        let unused = |server: &ServerConfig| {
            let problem = server.transport.as_ref().err().map(problem_in_words);
            let is_unused = problem.is_some() || !server.settings.enabled;
            is_unused.then(|| UnusedServer { name: server.name.clone(), problem })
        };
        let problems = loaded.configuration.problems.iter();
        let problems = problems.filter(|problem| problem.path.starts_with("policy"));
        let about_policy =
            problems.map(|problem| format!("{}: {}", problem.severity, problem_in_words(problem)));
        Self {
            with_login: servers().filter(has_login).map(|server| server.name.clone()).collect(),
            unused: servers().filter_map(unused).collect(),
            policy_notes: loaded.first_policy().into_iter().chain(about_policy).collect(),
            broken: None,
        }
    }
}

/// What is suspicious and what is held back.
fn shown_definitions(host: &ToolHost, entries: &[JudgedEntry]) -> ShownDefinitions {
    let names = held::tool_names(host);
    let held = held::all(host, entries).into_iter().map(|held| HeldDefinition {
        name: held.name(),
        server: held.server().to_owned(),
        summary: held.summary(),
        text: held.shown(),
        findings: held.findings(&names),
        digest: held.digest(),
    });
    let held = held.collect();
    let exposed: HashMap<ToolId, String> = {
        let catalog = host.catalog().read();
        catalog.tools().map(|tool| (tool.id.clone(), tool.name.to_string())).collect()
    };
    let found = Findings::of(host, entries).found.into_iter();
    let flagged = found.map(|(server, tool, text)| FlaggedDefinition {
        server: server.to_string(),
        tool: tool.and_then(|tool| exposed.get(&tool).cloned()),
        text,
    });
    ShownDefinitions { flagged: flagged.collect(), held }
}

/// A problem of the configuration in a line.
fn problem_in_words(problem: &Problem) -> String {
    let Problem { source, position, message, hint, .. } = problem;
    let hint = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{source}:{position}: {message}{hint}")
}

/// A failure as a part of a sentence.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn in_words(failure: Failure) -> String {
    [&[failure.first_line().to_owned()], failure.hints()].concat().join("; ")
}

impl Shown {
    /// What the configuration says of the servers. It is read again after some seconds.
    fn read_servers<R>(&self, read: impl FnOnce(&ReadServers) -> R) -> R {
        let mut known = self.servers.lock();
        let (_, servers) = match known.take() {
            Some((at, servers)) if at.elapsed() < READ_EVERY => known.insert((at, servers)),
            _ => known.insert((Instant::now(), ReadServers::read(&self.globals))),
        };
        read(servers)
    }

    /// What is configured, and the policy as it is written, if it is the one with this digest.
    fn policy_before(&self, digest: &str) -> Result<(Loaded, WrittenPolicy), String> {
        let loaded = load::load_quietly(&self.globals).map_err(in_words)?;
        let written = WrittenPolicy::of(&loaded);
        if written.digest() != digest {
            return Err("the policy has changed since; try it again".to_owned());
        }
        Ok((loaded, written))
    }

    /// Lets what is written hold.
    async fn use_policy(&self) -> Result<(), String> {
        *self.servers.lock() = None;
        let loaded = load::load_quietly(&self.globals).map_err(in_words)?;
        self.host().reload(loaded.settings(None), &BTreeSet::new()).await;
        Ok(())
    }

    /// Writes a server to the configuration, as `toolgate add` does.
    async fn add(&self, server: NewServer) -> Result<String, Failure> {
        let mut missing = Vec::new();
        let (name, entry) = match server {
            NewServer::FromRegistry { name, fingerprint } => {
                let (_, plan) = servers::planned(&self.globals, &name).await?;
                if plan.fingerprint() != fingerprint {
                    return Err(Failure::new("the registry says something else now; look again"));
                }
                missing.extend(plan.missing(load::is_set).into_iter().map(str::to_owned));
                servers::consented(&plan)?
            }
            NewServer::Program { name, words, env } => {
                servers::given(&add_arguments(name, None, words, env, Vec::new()))?
            }
            NewServer::Url { name, url, headers } => {
                servers::given(&add_arguments(name, Some(url), Vec::new(), Vec::new(), headers))?
            }
        };
        let added = servers::write(&self.globals, &name, entry, false)?;
        let mut said = vec![format!("{name} is in {}.", added.file)];
        if !missing.is_empty() {
            said.push(format!(
                "It needs variables that are not set here: {}. Set them where toolgate runs.",
                missing.join(", ")
            ));
        }
        said.extend(added.next_step().map(str::to_owned));
        Ok(said.join(" "))
    }
}

fn add_arguments(
    name: String,
    url: Option<String>,
    command: Vec<String>,
    env: Vec<String>,
    header: Vec<String>,
) -> Add {
    Add { name, url, command, env, header, from_registry: false, replace: false }
}

impl PageSource for Shown {
    fn host(&self) -> ToolHost {
        self.host.0.clone()
    }

    fn store(&self) -> Store {
        self.store.clone()
    }

    fn presence(&self) -> Presence {
        // The configurations may change while the page is open.
        let presence = self.host().settings().policy.presence;
        load::own_presence().map_or(Presence::Password, |own| own.max(presence))
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

    fn written_policy(&self) -> ShownPolicy {
        let written = load::load_quietly(&self.globals).map(|loaded| WrittenPolicy::of(&loaded));
        written.map_or_else(
            |failure| ShownPolicy { origin: in_words(failure), ..ShownPolicy::default() },
            |written| ShownPolicy {
                text: written.text(),
                origin: written.origin(),
                consequence: written.consequence(),
                digest: written.digest(),
                is_saved: written.is_saved(),
            },
        )
    }

    fn changed_policy(&self, text: &str) -> Result<TriedPolicy, String> {
        let policy = serde_json::from_str(text)
            .map_err(|error| format!("the policy is not JSON: {error}"))?;
        let changed = load::load_quietly(&self.globals)
            .and_then(|loaded| load::policy_if(&loaded, OtherPolicy::Written(&policy)));
        let (settings, warnings) = changed.map_err(in_words)?;
        Ok(TriedPolicy { settings, warnings })
    }

    fn policy_notes(&self) -> Vec<String> {
        self.read_servers(|read| read.policy_notes.clone())
    }

    fn notices(&self) -> Vec<String> {
        let broken = self.read_servers(|read| read.broken.clone());
        let broken = broken.map(|why| format!("{why}. What was read before still holds."));
        self.host().settings().notices.iter().cloned().chain(broken).collect()
    }

    fn unused_servers(&self) -> Vec<UnusedServer> {
        self.read_servers(|read| read.unused.clone())
    }

    fn has_login(&self, server: &str) -> bool {
        self.read_servers(|read| read.with_login.contains(server))
    }

    fn login<'s>(&'s self, server: &'s str) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let loaded = load::load_quietly(&self.globals).map_err(in_words)?;
            let begun = login::BegunLogin::new(&loaded, server, &[]).await.map_err(in_words)?;
            let address = begun.url().to_string();
            let (host, server) = (self.host(), server.to_owned());
            tokio::spawn(async move {
                match begun.wait(LOGIN_TIME).await {
                    Ok(_) if host.servers().is_per_caller(&server) => {
                        host.servers().recall_caller(&Caller::person().login_owner()).await;
                    }
                    Ok(_) => host.servers().retry(&server),
                    Err(failure) => tracing::info!(%server, "{failure}"),
                }
            });
            Ok(address)
        }
        .boxed()
    }

    fn registry_servers<'s>(
        &'s self,
        words: &'s str,
    ) -> BoxFuture<'s, Result<ListedServers, String>> {
        async move {
            let registry = self.host().settings().directory.registry.clone();
            // The host has the lists in memory.
            let registry = registry.ok_or_else(|| in_words(servers::no_registry()))?;
            let known = registry.servers().await;
            let matching = known.matching(words);
            let shown =
                matching.iter().take(servers::SHOWN_OF_REGISTRY).map(|entry| ListedServer {
                    name: entry.name.clone(),
                    version: entry.version.clone(),
                    description: entry.description.clone(),
                });
            let servers = shown.collect();
            Ok(ListedServers { servers, total: matching.len(), notes: known.notes.clone() })
        }
        .boxed()
    }

    fn registry_plan<'s>(&'s self, name: &'s str) -> BoxFuture<'s, Result<ShownPlan, String>> {
        async move {
            let (_, plan) = servers::planned(&self.globals, name).await.map_err(in_words)?;
            Ok(ShownPlan { text: plan.shown(), fingerprint: plan.fingerprint() })
        }
        .boxed()
    }

    fn add_server(&self, server: NewServer) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let added = self.add(server).await.map_err(in_words)?;
            *self.servers.lock() = None;
            let loaded = load::load_quietly(&self.globals).map_err(in_words)?;
            self.host().reload(loaded.settings(None), &BTreeSet::new()).await;
            Ok(added)
        }
        .boxed()
    }

    fn definitions(&self) -> BoxFuture<'_, ShownDefinitions> {
        async move {
            let host = self.host();
            let entries = host.entries().await;
            let looked = tokio::task::spawn_blocking(move || shown_definitions(&host, &entries));
            looked.await.unwrap_or_default()
        }
        .boxed()
    }

    fn approve_definition<'s>(
        &'s self,
        name: &'s str,
        digest: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let (host, loaded) =
                (self.host(), load::load_quietly(&self.globals).map_err(in_words)?);
            definitions::approve_seen(&loaded, &host, (name, digest), by)
                .await
                .map_err(in_words)?;
            let settings = load::load_quietly(&self.globals).map_err(in_words)?.settings(None);
            host.set_pins(settings.lock, settings.pin);
            Ok(format!("{} is approved as it is now.", shown(name, 80)))
        }
        .boxed()
    }

    fn save_policy<'s>(
        &'s self,
        text: &'s str,
        before: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let policy = serde_json::from_str(text)
                .map_err(|error| format!("the policy is not JSON: {error}"))?;
            let (loaded, written) = self.policy_before(before)?;
            let place = policy_place::save(&loaded, &self.store, &policy, &written, by)
                .map_err(in_words)?;
            if loaded.is_folders {
                return Ok(format!(
                    "The policy is in {place}. Run `toolgate trust` again: it has another content than you have trusted."
                ));
            }
            self.use_policy().await?;
            Ok(format!("The policy is in {place}, and holds."))
        }
        .boxed()
    }

    fn remove_policy<'s>(
        &'s self,
        before: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let (loaded, written) = self.policy_before(before)?;
            let place =
                policy_place::remove(&loaded, &self.store, &written, by).map_err(in_words)?;
            self.use_policy().await?;
            Ok(format!("The policy is in {place}, and holds."))
        }
        .boxed()
    }

    fn check_namespace(&self, name: &str) -> Result<(), String> {
        let loaded = load::load_quietly(&self.globals).map_err(in_words)?;
        if name == token::DEFAULT { Ok(()) } else { loaded.check_namespace(name).map_err(in_words) }
    }

    fn revoke_token<'s>(
        &'s self,
        name: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let RevokedToken { said, remaining } =
                token::revoke(&self.store, name, by).await.map_err(in_words)?;
            let remaining = remaining.map(|it| format!("But {}; {}.", it.why, it.hint));
            Ok(said.into_iter().chain(remaining).collect::<Vec<_>>().join(" "))
        }
        .boxed()
    }

    fn revoke_login<'s>(
        &'s self,
        server: &'s str,
        caller: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>> {
        async move {
            let logins = self.store.logins(&load::vault_key());
            let said = logins_command::revoke_one(&logins, (caller, server), by).await;
            said.map_err(in_words)
        }
        .boxed()
    }

    fn clients(&self) -> Option<ShownClients> {
        if self.is_public {
            return None;
        }
        let state = |client: &ClientState| {
            let plural = if client.others == 1 { "" } else { "s" };
            match (&client.problem, client.uses_toolgate) {
                (Some(problem), _) => problem.clone(),
                (None, true) => format!("uses toolgate; {} other server{plural}", client.others),
                (None, false) => format!("does not use toolgate; {} server{plural}", client.others),
            }
        };
        let row = |client: ClientState| {
            (client.label.clone(), folders::shown(&client.path), state(&client))
        };
        Some(ShownClients {
            clients: setup::clients().into_iter().map(row).collect(),
            undoable: setup::undoable(),
        })
    }

    fn plan_setup<'s>(&'s self, differing: &'s str) -> BoxFuture<'s, Result<ShownSetup, String>> {
        async move {
            if self.is_public {
                return Err(NOT_HERE.to_owned());
            }
            let planned = PlannedSetup::for_page(&self.globals, differing).await;
            let planned = planned.map_err(in_words)?;
            let (text, has_changes) = (planned.preview(), planned.has_changes());
            let mut last = self.planned.lock();
            *last = (last.0 + 1, Some(planned));
            Ok(ShownSetup { text, number: has_changes.then_some(last.0) })
        }
        .boxed()
    }

    fn set_up(&self, number: u64) -> Result<String, String> {
        let mut last = self.planned.lock();
        let is_last = last.0 == number;
        let planned = if is_last { last.1.take() } else { None };
        drop(last);
        let planned = planned.ok_or(if is_last {
            "this setup was written already"
        } else {
            "another setup was shown since; look at the changes again"
        })?;
        planned.write().map_err(|failure| failure.first_line().to_owned())
    }

    fn undo_setup(&self) -> Result<String, String> {
        if self.is_public {
            return Err(NOT_HERE.to_owned());
        }
        setup::undo_last().map(|lines| lines.join(" ")).map_err(in_words)
    }

    fn logins(&self) -> BoxFuture<'_, Vec<ShownLogin>> {
        async move {
            let stored = logins::of_callers(&self.store.vault(load::vault_key()));
            let mut all = stored.unwrap_or_default();
            if let Ok(loaded) = load::load_quietly(&self.globals) {
                let known = logins::of_all(&loaded).await.into_iter();
                all.extend(known.filter(|login| login.caller.is_none()));
            }
            let shown = all.into_iter().map(|login| ShownLogin {
                state: login.to_string(),
                server: login.server,
                caller: login.caller,
            });
            shown.collect()
        }
        .boxed()
    }
}
