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
mod compress;
mod definitions;
mod flow_graph;
mod form;
mod guard;
mod lately;
mod layout;
mod live;
mod plot;
mod policy_words;
mod run_flows;
mod running;
mod screens;
mod text;
mod timeline;

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::Router;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use toolgate_broker::QueuedCall;
use toolgate_gateway::AccessControl;
use toolgate_host::{HostSettings, ToolHost};
use toolgate_policy::{PolicySettings, Presence};
use toolgate_store::{ChoiceStore, Journal, Store};
use toolgate_upstream::Redactor;
use url::Url;

use self::{
    access::PageAccess, definitions::Definitions, guard::PageRequest, lately::Lately,
    live::Streams, run_flows::RunFlows, running::PageRuns,
};
pub use self::{
    policy_words::{KnownRules, policy_labels, policy_words, trusted_servers},
    text::took,
};

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

    /// The policy as it is written, and where that is. Nothing if it cannot be read.
    fn written_policy(&self) -> WrittenPolicy;

    /// The policy that would hold if this JSON were written in place of that one, or why it cannot be. Nothing is
    /// written.
    fn changed_policy(&self, text: &str) -> Result<TriedPolicy, String>;

    /// What a person should know of the policy of the configuration: that there is none, and what is wrong with it.
    fn policy_notes(&self) -> Vec<String>;

    /// What a person should know of the configuration: what waits for them, and why it cannot be read.
    fn notices(&self) -> Vec<String>;

    /// The servers of the configuration that nobody can use: it switches them off, or they are not configured correctly.
    fn unused_servers(&self) -> Vec<UnusedServer>;

    /// Whether a person can log in at a server.
    fn has_login(&self, server: &str) -> bool;

    /// Begins a login at a server, as `toolgate login` does. Returns the address where a person logs in; the login ends
    /// in the background.
    fn login<'s>(&'s self, server: &'s str) -> BoxFuture<'s, Result<String, String>>;

    /// The servers of the registry that have these words, as `toolgate list --registry=WORDS` lists them.
    fn registry_servers<'s>(
        &'s self,
        words: &'s str,
    ) -> BoxFuture<'s, Result<ListedServers, String>>;

    /// What a server of the registry would run or contact.
    fn registry_plan<'s>(&'s self, name: &'s str) -> BoxFuture<'s, Result<ShownPlan, String>>;

    /// Writes a server to the configuration, and connects it. A person has agreed. Returns what was done.
    fn add_server(&self, server: NewServer) -> BoxFuture<'_, Result<String, String>>;

    /// What is suspicious about definitions and what is held back, as `toolgate definitions` lists it. May ask servers.
    fn definitions(&self) -> BoxFuture<'_, ShownDefinitions>;

    /// Approves a definition that is held back, if it is the one that the person has seen. Returns what was done.
    fn approve_definition<'s>(
        &'s self,
        name: &'s str,
        digest: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>>;

    /// Writes this policy in place of the one with the digest `before`, and lets it hold. Returns what was done.
    fn save_policy<'s>(
        &'s self,
        text: &'s str,
        before: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>>;

    /// Removes the policy that is saved for all nodes of a fleet, if it has the digest `before`, and lets that of the
    /// configuration hold. Returns what was done.
    fn remove_policy<'s>(
        &'s self,
        before: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>>;

    /// Why there is no namespace of this name.
    fn check_namespace(&self, name: &str) -> Result<(), String>;

    /// Revokes a token and the logins of its caller at servers, as `toolgate token revoke` does. Returns what was done.
    fn revoke_token<'s>(
        &'s self,
        name: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>>;

    /// Revokes the login of a caller at a server. Returns what was done.
    fn revoke_login<'s>(
        &'s self,
        server: &'s str,
        caller: &'s str,
        by: &'s str,
    ) -> BoxFuture<'s, Result<String, String>>;

    /// The clients of this user; none where the page is not for this user.
    fn clients(&self) -> Option<ShownClients>;

    /// What `toolgate setup` would change. It starts the servers of the clients once, as the command does. `differing` is
    /// the answer where two servers differ: `first`, `second` or `both`.
    fn plan_setup<'s>(&'s self, differing: &'s str) -> BoxFuture<'s, Result<ShownSetup, String>>;

    /// Writes the setup of this number, if no other one was shown since. Returns what was done.
    fn set_up(&self, number: u64) -> Result<String, String>;

    /// Restores the files that the last setup has changed. Returns what became of each.
    fn undo_setup(&self) -> Result<String, String>;

    /// The logins at servers: of callers, and those that all callers share.
    fn logins(&self) -> BoxFuture<'_, Vec<ShownLogin>>;
}

/// A server of the configuration that nobody can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedServer {
    /// Its name.
    pub name: String,
    /// What is wrong with it, and what to do; `None` if it is switched off.
    pub problem: Option<String>,
}

/// The policy as it is written.
#[derive(Debug, Clone, Default)]
pub struct WrittenPolicy {
    /// The value of `policy`, as JSON.
    pub text: String,
    /// Where it comes from, in words.
    pub origin: String,
    /// What becomes of another one that is saved, in words.
    pub consequence: String,
    /// Changes when the text does, or when somebody saves one.
    pub digest: String,
    /// Whether it is saved for all nodes of a fleet, in place of that of the configuration.
    pub is_saved: bool,
}

/// A policy that a person tries.
#[derive(Debug, Clone)]
pub struct TriedPolicy {
    /// What it says.
    pub settings: PolicySettings,
    /// What is wrong with it, although it can be used.
    pub warnings: Vec<String>,
}

/// A server that a person adds.
#[derive(Debug, Clone)]
pub enum NewServer {
    /// A program, with its arguments and its variables (`NAME=VALUE`).
    Program {
        /// The name of the server.
        name: String,
        /// The program and its arguments.
        words: Vec<String>,
        /// Its variables.
        env: Vec<String>,
    },
    /// A URL, with headers (`NAME: VALUE`).
    Url {
        /// The name of the server.
        name: String,
        /// The URL.
        url: String,
        /// The headers.
        headers: Vec<String>,
    },
    /// A server of the registry, as the person has seen it.
    FromRegistry {
        /// Its name there.
        name: String,
        /// The fingerprint of what it runs or contacts.
        fingerprint: String,
    },
}

/// Servers of the registry.
#[derive(Debug, Clone, Default)]
pub struct ListedServers {
    /// The first ones.
    pub servers: Vec<ListedServer>,
    /// How many there are.
    pub total: usize,
    /// Sources that failed, or whose list is old.
    pub notes: Vec<String>,
}

/// A server of the registry.
#[derive(Debug, Clone)]
pub struct ListedServer {
    /// Its name in the registry.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it says of itself.
    pub description: String,
}

/// What a server of the registry would run or contact.
#[derive(Debug, Clone)]
pub struct ShownPlan {
    /// In words.
    pub text: String,
    /// Changes when anything of it does.
    pub fingerprint: String,
}

/// What a person should look at in the definitions of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownDefinitions {
    /// What is suspicious about definitions that are used.
    pub flagged: Vec<FlaggedDefinition>,
    /// What is held back until a person approves it.
    pub held: Vec<HeldDefinition>,
}

/// Something suspicious about a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlaggedDefinition {
    /// The server.
    pub server: String,
    /// The name of the tool; `None` if it is no tool.
    pub tool: Option<String>,
    /// What it is, in words.
    pub text: String,
}

/// A definition that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldDefinition {
    /// The name of the tool, or `SERVER/prompts/NAME`.
    pub name: String,
    /// The server.
    pub server: String,
    /// Why, in a few words.
    pub summary: String,
    /// How it differs from what was approved, or all of it.
    pub text: String,
    /// What is suspicious about it.
    pub findings: Vec<String>,
    /// Changes when anything of it does.
    pub digest: String,
}

/// The clients of this user.
#[derive(Debug, Clone)]
pub struct ShownClients {
    /// Their names, files and states.
    pub clients: Vec<(String, String, String)>,
    /// The files that an undo would restore.
    pub undoable: Vec<String>,
}

/// What a setup would change.
#[derive(Debug, Clone)]
pub struct ShownSetup {
    /// The same text as the command shows, without secrets: servers, notes, problems and changes of files.
    pub text: String,
    /// What it is written by; `None` if nothing would be written.
    pub number: Option<u64>,
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
    place: PagePlace,
    lately: Lately,
    runs: PageRuns,
    cleaner: Mutex<Cleaner>,
    definitions: Arc<Definitions>,
    /// Which rules are about known tools, at a change of these.
    known_rules: Mutex<Option<(u64, Arc<KnownRules>)>>,
    flows: Arc<RunFlows>,
}

/// Where the page is, and so who may open it.
#[derive(Debug)]
pub(crate) enum PagePlace {
    /// On this machine, for the person who has the link.
    Loopback(SocketAddr),
    /// At the public address of a gateway, for administrators.
    Public(PublicPlace),
}

/// The public address of a gateway.
#[derive(Debug)]
pub(crate) struct PublicPlace {
    /// As in the header `Host`.
    host: String,
    /// As in the header `Origin`.
    origin: String,
    access: Arc<AccessControl>,
    /// The scope of administrators.
    scope: String,
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
        Some(Self::at(source, PagePlace::Loopback(address)))
    }

    /// A page for administrators at the public address of a gateway, who show a token with this scope. The address has no
    /// path; `None` if it is not protected by TLS.
    pub fn for_administrators(
        source: Arc<dyn PageSource>,
        address: &Url,
        access: Arc<AccessControl>,
        scope: &str,
    ) -> Option<Self> {
        let is_fit = address.scheme() == "https" && address.path() == "/";
        let host = address.host_str().filter(|_| is_fit)?;
        let host = address.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let origin = address.origin().ascii_serialization();
        let place = PublicPlace { host, origin, access, scope: scope.to_owned() };
        Some(Self::at(source, PagePlace::Public(place)))
    }

    fn at(source: Arc<dyn PageSource>, place: PagePlace) -> Self {
        Self(Arc::new(PageState {
            source,
            access: PageAccess::default(),
            streams: Streams::default(),
            place,
            lately: Lately::default(),
            runs: PageRuns::default(),
            cleaner: Mutex::default(),
            definitions: Arc::default(),
            known_rules: Mutex::default(),
            flows: Arc::default(),
        }))
    }

    /// Ends the streams of the page, so that the gateway can stop.
    pub fn end(&self) {
        self.0.streams.stop.cancel();
    }

    /// A link that opens the page, once. Only a person may see it. Administrators need none.
    pub fn link(&self) -> String {
        match &self.0.place {
            PagePlace::Loopback(address) => {
                format!("http://{address}{PAGE_PATH}/open?token={}", self.0.access.new_link())
            }
            PagePlace::Public(place) => format!("{}{PAGE_PATH}", place.origin),
        }
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
        self.with_redactors(|all| cleaned(all, text))
    }

    /// About so many bytes of the beginning of a text, without secrets. The work does not grow with the text.
    fn clean_start(&self, text: &str, bytes: usize) -> String {
        self.with_redactors(|all| clean_start(all, text, bytes))
    }

    fn with_redactors<R>(&self, work: impl FnOnce(&[Redactor]) -> R) -> R {
        let settings = self.source.host().settings();
        let mut cleaner = self.cleaner.lock();
        // A reload makes other settings. Most texts of a page are cleaned with the same ones.
        let known = cleaner.0.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, &settings));
        if !known {
            let redactors = settings.servers.iter().map(|setup| setup.spec.redactor()).collect();
            cleaner.0 = Some((Arc::clone(&settings), redactors));
        }
        work(cleaner.0.as_ref().map(|(_, redactors)| &**redactors).unwrap_or_default())
    }

    /// Who decides, for the audit log and for grants.
    fn person(&self, request: &PageRequest) -> String {
        let own = || self.source.person();
        request.person.as_ref().map_or_else(own, |person| format!("page:{person}"))
    }

    /// The calls that wait, oldest first; none if they cannot be read.
    fn waiting(&self) -> Vec<QueuedCall> {
        let found = self.journal().map(|journal| QueuedCall::all(&*journal));
        found.and_then(Result::ok).unwrap_or_default()
    }
}

fn cleaned(redactors: &[Redactor], text: &str) -> String {
    redactors.iter().fold(text.to_owned(), |text, redactor| redactor.clean(&text))
}

fn clean_start(redactors: &[Redactor], text: &str, bytes: usize) -> String {
    let longest = redactors.iter().map(Redactor::longest).max().unwrap_or_default();
    let end = text.floor_char_boundary(bytes.saturating_add(longest));
    let mut clean = cleaned(redactors, &text[..end]);
    if end < text.len() {
        // It may end with a part of a secret.
        clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(longest)));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_text_has_no_part_of_a_secret() {
        let all = [Redactor::new(["hunter2-of-cursor".to_owned()]), Redactor::default()];
        for before in 0..40 {
            let text = format!("{}hunter2-of-cursor{}", "é".repeat(before), "y".repeat(100));
            let start = clean_start(&all, &text, 40);
            assert!(!start.contains("hun") && start.len() <= 40, "{before}: {start}");
        }
        assert_eq!(clean_start(&all, "a hunter2-of-cursor", 100), "a [hidden]");
        assert_eq!(clean_start(&[], "éé", 3), "é");
    }
}
