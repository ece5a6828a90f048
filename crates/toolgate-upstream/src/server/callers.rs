//! Servers at which each caller has their own login.
//!
//! Each caller has a server of their own, which only its parent knows: its connections, its login and
//! its list of tools. The parent connects without a login, and no call uses its connection.
//!
//! The catalog has one definition of a tool. It is that of the first who listed the tool. A caller is
//! offered the tools that their own login lists with this definition. Before their first login they are
//! offered what the server lists without a login, and what two other callers have listed alike.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_catalog::{Definition, Fingerprint, ServerName};
use toolgate_mcp::{
    ErrorObject, JsonObject,
    client::{ConnectFailure, Endpoint, HttpEndpoint, OutputSource},
    codes,
};

use super::{
    Server, ServerOwner, ServerState, StateKind,
    instances::{IDLE_TIMEOUT, is_for_all},
};
use crate::{
    auth::{CallerLogins, NoLogin},
    connection::CallOptions,
    error::CallError,
    handshake::Handshake,
    listing::Listing,
    spec::{ServerSpec, StartMode},
    upstream::ServerObserver,
};

/// The servers of callers, and what each caller was offered.
#[derive(Debug)]
pub(super) struct CallerServers {
    logins: Arc<CallerLogins>,
    servers: Mutex<HashMap<Arc<str>, Arc<Server>>>,
    lists: Mutex<CallerLists>,
}

/// The lists of tools of one server.
#[derive(Debug, Default)]
struct CallerLists {
    /// What the server lists without a login.
    without_login: Option<Arc<OwnList>>,
    /// What it lists for callers, with the order of their first lists.
    own: HashMap<Arc<str>, (u64, Arc<OwnList>)>,
    next: u64,
    /// What is offered to callers who have no list.
    common: HashMap<Arc<str>, Fingerprint>,
}

#[derive(Debug)]
struct OwnList {
    fingerprint: Fingerprint,
    listing: Listing,
    tools: HashMap<Arc<str>, Fingerprint>,
}

/// The most callers that have a server of their own at once. If all are in use, calls of further callers
/// are refused.
const MAX_CALLERS: usize = 1_000;
/// How often a call waits for a login: once for the first login, and once if that is refused.
const MAX_LOGINS: usize = 2;

impl CallerServers {
    pub(super) fn new(logins: Arc<CallerLogins>) -> Self {
        Self { logins, servers: Mutex::default(), lists: Mutex::default() }
    }

    /// Whether another attempt may succeed: after a login, or because the caller has logged in since.
    fn has_new_login(&self, caller: &Arc<str>, used: &Arc<Server>) -> bool {
        let is_current =
            || self.servers.lock().get(caller).is_some_and(|own| Arc::ptr_eq(own, used));
        self.logins.needs_login(caller) || !is_current()
    }

    /// Removes the server of a caller and its list. Its open calls go on.
    fn forget(&self, caller: &Arc<str>) {
        let own = self.servers.lock().remove(caller);
        // What the old connection lists from now on is nothing for the new login.
        let mut lists = self.lists.lock();
        if let Some(own) = own {
            if let Some(owner) = &own.owner {
                owner.replaced.cancel();
            }
            tokio::spawn(async move {
                own.demand.over(Some(Duration::ZERO)).await;
                own.stop.cancel();
            });
        }
        lists.own.remove(caller);
        lists.update_common();
    }

    /// The servers of all callers.
    pub(super) fn all(&self) -> Vec<Arc<Server>> {
        self.servers.lock().values().cloned().collect()
    }

    pub(super) fn set_disabled(&self, way_on: Option<&str>) {
        for server in self.servers.lock().values() {
            server.set_disabled(way_on);
        }
    }
}

impl Server {
    /// Sends a request of a caller with the login of that caller. Asks the person behind the caller to log in
    /// where the server requires it.
    pub(super) async fn request_as_caller(
        self: &Arc<Self>,
        callers: &CallerServers,
        about: &str,
        method: &str,
        params: JsonObject,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let caller = Self::caller_in(&options).map_err(|failure| self.not_connected(failure))?;
        if is_for_all(method) {
            let message =
                "each caller has their own login at this server, so there are no subscriptions";
            let error = ErrorObject::new(codes::METHOD_NOT_FOUND, message, None);
            let (server, tool) = (self.spec.name.clone(), about.to_owned());
            return Err(CallError::Refused { server, tool, error });
        }
        let _in_use = self.demand.call();
        for attempt in 0.. {
            let own = self.ready_for(callers, &caller, &options).await?;
            let sent = own.request(about, method, params.clone(), options.clone()).await;
            // The server refused the request, so that nothing is repeated.
            let is_refused = matches!(
                &sent,
                Err(CallError::NotConnected { .. } | CallError::Unauthorized { .. })
            );
            if attempt == MAX_LOGINS || !is_refused || !callers.has_new_login(&caller, &own) {
                return sent;
            }
        }
        Err(CallError::Cancelled)
    }

    /// Connects the server of a caller, after a login if it needs one.
    pub(super) async fn connect_as_caller(
        self: &Arc<Self>,
        callers: &CallerServers,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        let caller = Self::caller_in(options).map_err(|failure| self.not_connected(failure))?;
        for attempt in 0.. {
            let own = self.ready_for(callers, &caller, options).await?;
            let _in_use = own.demand.call();
            match own.connection().await {
                Err(_) if attempt < MAX_LOGINS && callers.has_new_login(&caller, &own) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// The state of the server of a caller.
    pub(super) fn state_of_caller(&self, callers: &CallerServers, caller: &str) -> ServerState {
        let own = callers.servers.lock().get(caller).cloned();
        own.map_or_else(|| self.state(), |own| own.state())
    }

    /// The state for people who look at all callers. That the server refuses the connection that no caller has is no
    /// failure: callers log in when they call.
    pub(super) fn state_of_all_callers(&self, callers: &CallerServers) -> ServerState {
        let state = self.state();
        if !matches!(state.kind, StateKind::Failed | StateKind::Connecting) {
            return state;
        }
        let own: Vec<ServerState> = callers.all().iter().map(|own| own.state()).collect();
        let is_ready = |own: &&ServerState| own.kind == StateKind::Ready;
        // A refused login is the affair of its caller.
        let is_down = |own: &&ServerState| {
            let failure = own.failure.as_ref().filter(|_| own.kind == StateKind::Failed);
            failure.is_some_and(|failure| !failure.is_final)
        };
        let found = own.iter().find(is_ready).or_else(|| own.iter().find(is_down));
        if let Some(found) = found {
            return found.clone();
        }
        if state.failure.as_ref() == Some(&callers.logins.nobody_is_logged_in()) {
            return ServerState { kind: StateKind::Idle, failure: None, ..state };
        }
        state
    }

    /// Connects the server of a caller who has logged in, and waits until it has listed its tools or failed.
    pub(super) async fn recall_caller(
        self: &Arc<Self>,
        callers: &CallerServers,
        caller: &Arc<str>,
    ) {
        if matches!(callers.logins.is_logged_in(caller).await, Ok(true))
            && let Ok(own) = self.of_caller(callers, caller)
        {
            own.wake_from(&[StateKind::Idle]);
            own.settled().await;
        }
    }

    /// Whether a caller is offered a tool with this definition.
    pub(super) fn is_offered(
        callers: &CallerServers,
        caller: &str,
        tool: &str,
        definition: Fingerprint,
    ) -> bool {
        let lists = callers.lists.lock();
        let tools = lists.own.get(caller).map_or(&lists.common, |(_, list)| &list.tools);
        tools.get(tool) == Some(&definition)
    }

    /// The server of a caller, who has logged in if the server requires it.
    async fn ready_for(
        self: &Arc<Self>,
        callers: &CallerServers,
        caller: &Arc<str>,
        options: &CallOptions,
    ) -> Result<Arc<Self>, CallError> {
        let logged_in = callers.logins.is_logged_in(caller).await;
        let logged_in =
            logged_in.map_err(|error| self.not_connected(self.no_login(&error.to_string())))?;
        // A server may require a login for calls alone.
        let is_open = || self.state().kind == StateKind::Ready;
        if !logged_in && (callers.logins.needs_login(caller) || !is_open()) {
            self.log_in(callers, caller, options).await?;
        }
        self.of_caller(callers, caller).map_err(|failure| self.not_connected(failure))
    }

    async fn log_in(
        self: &Arc<Self>,
        callers: &CallerServers,
        caller: &Arc<str>,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        // What the old login listed is nothing for the new one, which may be of another account.
        callers.forget(caller);
        let handler = options.input_handler.as_deref();
        match callers.logins.log_in(caller, handler, &options.cancel).await {
            Ok(()) | Err(NoLogin::NotAsked) => Ok(()),
            Err(NoLogin::Cancelled) => Err(CallError::Cancelled),
            Err(NoLogin::Failed(why)) => Err(self.not_connected(self.no_login(&why))),
            Err(NoLogin::Open(link)) => {
                Err(CallError::LoginNeeded { server: self.spec.name.clone(), link })
            }
        }
    }

    /// The server of a caller.
    fn of_caller(
        self: &Arc<Self>,
        callers: &CallerServers,
        caller: &Arc<str>,
    ) -> Result<Arc<Self>, ConnectFailure> {
        let mut servers = callers.servers.lock();
        if let Some(own) = servers.get(caller) {
            return Ok(Arc::clone(own));
        }
        let authorizer = callers.logins.authorizer(caller);
        let authorizer = authorizer.map_err(|error| self.no_login(&error.to_string()))?;
        if servers.len() >= MAX_CALLERS && !stop_idle(&mut servers) {
            let reason = "each caller has their own connection to it, and all are in use";
            let action = "try again when other calls have ended";
            return Err(ConnectFailure::new(reason, action));
        }
        let endpoint = match &self.spec.endpoint {
            Endpoint::Http(http) => {
                let authorizer = Some(authorizer as _);
                Endpoint::Http(HttpEndpoint { authorizer, ..http.clone() })
            }
            // Other servers have no logins.
            other => other.clone(),
        };
        let spec = ServerSpec {
            endpoint,
            callers: None,
            start: StartMode::OnDemand,
            rest_after: Some(self.spec.rest_after.unwrap_or(IDLE_TIMEOUT)),
            ..self.spec.clone()
        };
        let observer = Arc::new(CallerObserver(Arc::clone(&self.observer)));
        let own = Self {
            retired: self.retired.clone(),
            owner: Some(ServerOwner {
                parent: Arc::downgrade(self),
                caller: Arc::clone(caller),
                replaced: CancellationToken::new(),
            }),
            ..Self::new(
                spec,
                observer,
                self.stop.child_token(),
                Arc::clone(&self.extensions),
                Arc::clone(&self.differing_lists),
            )
        };
        if let Some(way_on) = self.demand.way_on() {
            own.set_disabled(Some(&way_on));
        }
        let own = Arc::new(own);
        self.running.spawn(Arc::clone(&own).supervise());
        servers.insert(Arc::clone(caller), Arc::clone(&own));
        Ok(own)
    }

    /// Notes what the server lists for a caller, or without a login, and passes on what it lists for all.
    pub(super) fn list_for(
        &self,
        callers: &CallerServers,
        owner: Option<&ServerOwner>,
        handshake: &Handshake,
        listing: Listing,
    ) {
        let _in_order = self.listed.lock();
        if self.retired.is_cancelled() {
            return;
        }
        let merged = {
            let mut lists = callers.lists.lock();
            if owner.is_some_and(|owner| owner.replaced.is_cancelled()) {
                return;
            }
            lists.add(owner.map(|owner| &owner.caller), listing);
            lists.merged()
        };
        self.observer.listed(&self.spec.name, handshake, merged);
    }

    fn caller_in(options: &CallOptions) -> Result<Arc<str>, ConnectFailure> {
        options.caller.clone().ok_or_else(|| {
            let reason = "each caller has their own login, and nobody in particular calls";
            ConnectFailure::new(reason, "call it in a session")
        })
    }

    fn no_login(&self, why: &str) -> ConnectFailure {
        let reason = format!("your login there cannot be used now: {}", self.redactor.line(why));
        ConnectFailure::new(reason, "call again; if there is no login, the call asks you to log in")
    }
}

impl CallerLists {
    fn add(&mut self, caller: Option<&Arc<str>>, listing: Listing) {
        let fingerprint = Fingerprint::of_list(&listing.definitions);
        let known = self.own.values().map(|(_, list)| list);
        let known = known.chain(&self.without_login).find(|list| list.fingerprint == fingerprint);
        // Most callers have the same list, of which one copy is enough.
        let list = known.cloned().unwrap_or_else(|| {
            let tool = |definition: &Definition| {
                (Arc::from(&**definition.name()), definition.fingerprint())
            };
            let tools = listing.definitions.iter().map(tool).collect();
            Arc::new(OwnList { fingerprint, listing, tools })
        });
        match caller {
            None => self.without_login = Some(list),
            Some(caller) => {
                let order = self.own.get(caller).map_or(self.next, |(order, _)| *order);
                self.next = self.next.max(order + 1);
                self.own.insert(Arc::clone(caller), (order, list));
            }
        }
        self.update_common();
    }

    fn update_common(&mut self) {
        let mut seen: HashSet<(Arc<str>, Fingerprint)> = HashSet::new();
        let mut common = HashMap::new();
        if let Some(list) = &self.without_login {
            common.extend(list.tools.clone());
        }
        for (_, list) in self.own.values() {
            for (name, definition) in &list.tools {
                if !seen.insert((Arc::clone(name), *definition)) {
                    common.entry(Arc::clone(name)).or_insert(*definition);
                }
            }
        }
        self.common = common;
    }

    /// All tools, each with its first definition.
    fn merged(&self) -> Listing {
        let mut merged = Listing::default();
        let (mut lists, mut names) = (HashSet::new(), HashSet::new());
        let mut own: Vec<&(u64, Arc<OwnList>)> = self.own.values().collect();
        own.sort_by_key(|(order, _)| *order);
        for list in self.without_login.iter().chain(own.into_iter().map(|(_, list)| list)) {
            if !lists.insert(list.fingerprint) {
                continue;
            }
            let new = list.listing.definitions.iter();
            let new = new.filter(|definition| names.insert(Arc::clone(definition.name())));
            merged.definitions.extend(new.cloned());
            merged.problems.extend(list.listing.problems.iter().cloned());
        }
        merged
    }
}

/// Stops the server that was idle for longest. Returns false if all are in use.
fn stop_idle(servers: &mut HashMap<Arc<str>, Arc<Server>>) -> bool {
    let idle = |(caller, server): (&Arc<str>, &Arc<Server>)| {
        Some((server.demand.idle_since()?, Arc::clone(caller)))
    };
    let Some((_, longest)) = servers.iter().filter_map(idle).min() else { return false };
    if let Some(server) = servers.remove(&longest) {
        server.stop.cancel();
    }
    true
}

/// Passes on what is for nobody in particular. What a server notifies a caller of is not for others.
struct CallerObserver(Arc<dyn ServerObserver>);

impl ServerObserver for CallerObserver {
    fn listed(&self, _server: &ServerName, _handshake: &Handshake, _listing: Listing) {}

    fn asks(&self, server: &ServerName) {
        self.0.asks(server);
    }

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        self.0.output(server, source, line);
    }

    fn roots(&self, _server: &ServerName) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        Box::pin(std::future::ready(Ok(serde_json::json!({ "roots": [] }))))
    }
}
