//! All servers.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::{Fingerprint, ServerName};
use toolgate_mcp::{
    ErrorObject, JsonObject,
    client::{OutputSource, ServerLimits},
    extensions, methods,
};

use crate::{
    auth::LoginEvent,
    connection::CallOptions,
    error::CallError,
    handshake::Handshake,
    input_handler::ClientKey,
    listing::Listing,
    placement::ServerPlacement,
    server::{Server, ServerState, StateKind},
    spec::ServerSpec,
};

/// Gets the events of servers. Called from their tasks, so it must return soon.
pub trait ServerObserver: Send + Sync + 'static {
    /// A server listed its tools, at its start or after a change.
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing);

    /// The state of a server changed.
    fn state_changed(&self, server: &ServerName) {
        let _ = server;
    }

    /// A server asked by a request that names no call, for the first time.
    fn asks(&self, server: &ServerName) {
        let _ = server;
    }

    /// A server wrote something that is no message, or toolgate has a note about the server.
    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        let _ = (server, source, line);
    }

    /// A server sent a notification that belongs to no call: `notifications/message`,
    /// `notifications/resources/updated`, or a changed list.
    fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        let _ = (server, method, params);
    }

    /// The instances of a server list the same tools together as before, but some sessions may see others than before.
    fn offers_changed(&self, server: &ServerName) {
        let _ = server;
    }

    /// A client has done what a server asked it to do at a URL, during a call that has ended.
    fn elicitation_completed(&self, client: &ClientKey, params: Value) {
        let _ = (client, params);
    }

    /// Something happened to the login of a caller.
    fn login(&self, server: &ServerName, caller: &str, event: LoginEvent) {
        let _ = (server, caller, event);
    }

    /// A server asks for the roots of its client, and this belongs to no call.
    fn roots(&self, server: &ServerName) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let _ = server;
        Box::pin(std::future::ready(Ok(json!({ "roots": [] }))))
    }
}

/// Sends requests to servers. Only the broker has one.
#[derive(Debug)]
pub struct Upstream(ServerPool);

/// The servers and their connections: adds, connects and removes them. It sends no requests.
pub struct ServerPool {
    servers: RwLock<HashMap<ServerName, Arc<Server>>>,
    /// Servers that were taken away and have not ended yet.
    retired: Mutex<Vec<Arc<Server>>>,
    observer: Arc<dyn ServerObserver>,
    stop: CancellationToken,
    /// The extensions that clients have declared.
    extensions: Arc<RwLock<JsonObject>>,
    /// How many servers were added at which each caller has their own login.
    per_caller: AtomicUsize,
    /// How many servers have instances that list different tools.
    differing_lists: Arc<AtomicUsize>,
}

impl Upstream {
    /// Starts to connect to all of `specs`, each on its own. Returns at once; must be called inside
    /// a tokio runtime.
    pub fn start(specs: Vec<ServerSpec>, observer: &Arc<dyn ServerObserver>) -> Self {
        let pool = ServerPool {
            servers: RwLock::default(),
            retired: Mutex::default(),
            observer: Arc::clone(observer),
            stop: CancellationToken::new(),
            extensions: Arc::default(),
            per_caller: AtomicUsize::new(0),
            differing_lists: Arc::default(),
        };
        for spec in specs {
            pool.add(spec);
        }
        Self(pool)
    }

    /// Calls a tool by the server's name for it, and returns the result as the server sent it.
    pub async fn call(
        &self,
        server: &ServerName,
        tool: &str,
        arguments: Option<JsonObject>,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let known = self.0.server(server.as_str());
        let server = known.ok_or_else(|| CallError::UnknownServer(server.clone()))?;
        let mut params = JsonObject::new();
        params.insert("name".to_owned(), tool.into());
        params.extend(arguments.map(|arguments| ("arguments".to_owned(), arguments.into())));
        server.request(tool, methods::TOOLS_CALL, params, options).await
    }

    /// Sends a request that is no tool call (`resources/read`, `prompts/get`), and returns the
    /// result as the server sent it. It is treated like a call: it waits for a connection, has a
    /// timeout, and is never repeated.
    pub async fn request(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<Value>,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        let known = self.0.server(server.as_str());
        let server = known.ok_or_else(|| CallError::UnknownServer(server.clone()))?;
        let params = match params {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(params)) => params,
            Some(_) => {
                let error = ErrorObject::invalid_params("`params` must be an object", None);
                let (server, tool) = (server.spec.name.clone(), method.to_owned());
                return Err(CallError::Refused { server, tool, error });
            }
        };
        server.request(method, method, params, options).await
    }

    /// Sends a notification to a server that is connected.
    pub async fn notify(
        &self,
        server: &ServerName,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), CallError> {
        let known = self.0.server(server.as_str());
        let server = known.ok_or_else(|| CallError::UnknownServer(server.clone()))?;
        server.notify(method, params).await
    }
}

impl std::ops::Deref for Upstream {
    type Target = ServerPool;

    fn deref(&self) -> &ServerPool {
        &self.0
    }
}

impl ServerPool {
    /// Adds a server, and connects to it when its [`StartMode`](crate::StartMode) says. Does
    /// nothing if the name is taken. Returns whether the server was added.
    pub fn add(&self, spec: ServerSpec) -> bool {
        let mut servers = self.servers.write();
        if servers.contains_key(&spec.name) {
            return false;
        }
        let name = spec.name.clone();
        let observer = Arc::clone(&self.observer);
        if let Some(callers) = &spec.callers {
            self.per_caller.fetch_add(1, Ordering::Relaxed);
            let observer = Arc::clone(&observer);
            callers.observe(Arc::new(move |server: &ServerName, caller: &str, event| {
                observer.login(server, caller, event);
            }));
        }
        let server = Arc::new(Server::new(
            spec,
            observer,
            self.stop.child_token(),
            Arc::clone(&self.extensions),
            Arc::clone(&self.differing_lists),
        ));
        let finished = server.finished.clone().drop_guard();
        let supervising = Arc::clone(&server).supervise();
        tokio::spawn(async move {
            let _finished = finished;
            supervising.await;
        });
        servers.insert(name, server);
        true
    }

    /// Removes a server and closes its connection. Its open calls fail.
    pub async fn remove(&self, server: &str) {
        let removed = self.servers.write().remove(server);
        if let Some(server) = removed {
            server.stop.cancel();
            server.finished.cancelled().await;
        }
    }

    /// Takes a server away at once: later calls do not find it, and it lists no more tools. Calls that
    /// were not sent yet are told that the definition has changed. Calls that were sent have until the
    /// limit to end; then the connection ends. Must be called inside a tokio runtime.
    pub fn retire(&self, server: &str, limit: Duration) {
        let Some(server) = self.servers.write().remove(server) else { return };
        server.retire();
        {
            let mut retired = self.retired.lock();
            retired.retain(|server| !server.finished.is_cancelled());
            retired.push(Arc::clone(&server));
        }
        tokio::spawn(async move {
            let _ = tokio::time::timeout(limit, server.unused()).await;
            server.stop.cancel();
        });
    }

    /// Refuses new calls of a server. Its connection closes when the open calls have ended. The
    /// error of a refused call contains `way_on`: how to enable the server.
    pub fn disable(&self, server: &str, way_on: &str) {
        if let Some(server) = self.server(server) {
            server.set_disabled(Some(way_on));
        }
    }

    /// Accepts calls of a disabled server again. The next call connects it.
    pub fn enable(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.set_disabled(None);
        }
    }

    /// Waits until a disabled server has no connection.
    pub async fn disconnected(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.disconnected().await;
        }
    }

    /// Connects to a lazy server.
    pub fn wake(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.wake_from(&[StateKind::Idle]);
        }
    }

    /// Connects to a lazy server, or to a server whose last attempt failed.
    pub fn retry(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.wake_from(&[StateKind::Idle, StateKind::Failed]);
        }
    }

    /// The state of a server.
    pub fn state(&self, server: &str) -> Option<ServerState> {
        self.server(server).map(|server| server.state())
    }

    /// The state of a server for people who look at all callers.
    pub fn overall_state(&self, server: &str) -> Option<ServerState> {
        self.server(server).map(|server| server.overall_state())
    }

    /// The state of a server for a caller, who may have their own login there.
    pub fn state_for(&self, server: &str, caller: &str) -> Option<ServerState> {
        self.server(server).map(|server| server.state_for(caller))
    }

    /// Whether each caller has their own login at a server.
    pub fn is_per_caller(&self, server: &str) -> bool {
        self.has_callers() && self.server(server).is_some_and(|server| server.is_per_caller())
    }

    /// The servers at which each caller has their own login.
    pub fn per_caller(&self) -> Vec<ServerName> {
        if !self.has_callers() {
            return Vec::new();
        }
        let servers = self.all().into_iter().filter(|server| server.is_per_caller());
        servers.map(|server| server.spec.name.clone()).collect()
    }

    /// Whether a server offers a caller a tool with this definition, in a session of `client`. `caller` is asked for
    /// only if it matters.
    pub fn offers(
        &self,
        server: &ServerName,
        tool: &str,
        definition: Fingerprint,
        caller: impl FnOnce() -> Arc<str>,
        client: Option<&ClientKey>,
    ) -> bool {
        if self.offers_all_the_same() {
            return true;
        }
        let known = self.server(server.as_str());
        known.is_none_or(|server| server.offers(caller, client, tool, definition))
    }

    /// Whether every session is offered the same tools: nobody has logins of their own, and all instances of a server list
    /// the same.
    pub fn offers_all_the_same(&self) -> bool {
        !self.has_callers() && self.differing_lists.load(Ordering::Relaxed) == 0
    }

    /// Connects a server for the caller of the options, and asks the person to log in if it is necessary.
    pub async fn connect_for(&self, server: &str, options: &CallOptions) -> Result<(), CallError> {
        match self.server(server) {
            Some(server) => server.connect_for(options).await,
            None => Err(CallError::UnknownServer(server.into())),
        }
    }

    /// Connects the servers at which a caller has logged in, and waits until they have listed their tools or
    /// failed.
    pub async fn recall_caller(&self, caller: &Arc<str>) {
        let servers = self.all().into_iter().filter(|server| server.is_per_caller());
        join_all(servers.map(|server| async move { server.recall(caller).await })).await;
    }

    /// Whether any server has logins of callers.
    pub fn has_callers(&self) -> bool {
        self.per_caller.load(Ordering::Relaxed) > 0
    }

    /// Tells the connected servers of the legacy era that the roots of clients changed. Servers of the modern
    /// era ask during the calls that need them.
    pub async fn roots_changed(&self) {
        join_all(self.all().iter().map(|server| server.roots_changed())).await;
    }

    /// The server of a scope, if it runs once in a fleet.
    pub fn placed(&self, scope: &str) -> Option<(ServerName, Arc<dyn ServerPlacement>)> {
        self.all().iter().find_map(|server| {
            let placement = server.spec.placement.as_ref()?;
            (placement.scope() == scope).then(|| (server.spec.name.clone(), Arc::clone(placement)))
        })
    }

    /// The states of all servers.
    pub fn states(&self) -> Vec<(ServerName, ServerState)> {
        self.all().iter().map(|server| (server.spec.name.clone(), server.state())).collect()
    }

    /// Declares the extensions of a client to servers that connect from now on.
    pub fn declare_extensions(&self, declared: &JsonObject) {
        if !declared.is_empty() {
            extensions::merge(&mut self.extensions.write(), declared);
        }
    }

    /// The limits of a server.
    pub fn limits(&self, server: &str) -> Option<ServerLimits> {
        self.server(server).map(|server| server.spec.limits)
    }

    /// How many servers are connected.
    pub fn connected(&self) -> usize {
        let ready = |server: &&Arc<Server>| server.state().kind == StateKind::Ready;
        self.all().iter().filter(ready).count()
    }

    /// Waits until the current attempt to connect has ended.
    pub async fn settled(&self, server: &str) {
        if let Some(server) = self.server(server) {
            server.settled().await;
        }
    }

    /// Closes all connections in order, and gives the processes the time that the protocol
    /// requires. It continues even if the future is dropped.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let mut servers = self.all();
        servers.extend(self.retired.lock().iter().cloned());
        join_all(servers.iter().map(|server| server.finished.cancelled())).await;
    }

    fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.servers.read().get(name).cloned()
    }

    fn all(&self) -> Vec<Arc<Server>> {
        self.servers.read().values().cloned().collect()
    }
}

impl fmt::Debug for ServerPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerPool").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Drop for ServerPool {
    fn drop(&mut self) {
        // The supervisors end by themselves. Aborting them would not let the processes end in
        // order.
        self.stop.cancel();
    }
}
