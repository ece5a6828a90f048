//! The service of one server: the whole protocol, unchanged, whatever the eras of both sides.

mod changes;
mod connection;
mod entries;
mod policy;
mod router;
mod subscriptions;
#[cfg(test)]
mod tests;
mod tools;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{BoxFuture, try_join_all};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Admitted, Broker, Caller, RawChannel, SessionContext};
use toolgate_catalog::Fingerprint;
use toolgate_host::{HostSettings, LiveSession, PassthroughGuard, ServerSetup};
use toolgate_mcp::{ErrorObject, JsonObject, meta, methods};
use toolgate_upstream::{
    ConnectionClient, ConnectionHandler as _, InputRequest, RawRequest, ServerSpec,
};

use self::{
    connection::ServerConnector,
    entries::EntryLists,
    router::{MessageRouter, RouteRegistration},
    subscriptions::OwnSubscription,
    tools::ToolList,
};
use crate::{
    era::{Era, ServerInfo, adapt_outcome, get_meta, remove_meta, set_meta},
    service::{ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

/// Connects clients to one server. Each legacy client has a connection of its own; modern clients with
/// the same capabilities share one.
#[derive(Debug)]
pub struct PassthroughFactory {
    /// Replaced by a reload. Sessions keep the connection that they have.
    server: RwLock<Arc<dyn ServerConnector>>,
    /// How often it was replaced.
    generation: AtomicU64,
    guard: Arc<PassthroughGuard>,
    /// The sessions, and how many calls each has made.
    sessions: Mutex<Vec<(Weak<SessionContext>, Arc<AtomicU64>)>>,
}

/// A request that may be sent, with the resource subscriptions in it.
#[derive(Debug)]
struct Admission {
    request: Admitted,
    subscriptions: Vec<(Value, Admitted)>,
}

/// Passes requests to a server over one connection.
#[derive(Debug)]
struct PassthroughService {
    connection: Arc<dyn RawChannel>,
    guard: Arc<PassthroughGuard>,
    router: Arc<MessageRouter>,
    subscription: OwnSubscription,
    tools: ToolList,
    entries: EntryLists,
    /// The clients of the connection, for decisions and records.
    session: Arc<SessionContext>,
    /// How many calls it has made.
    calls: Arc<AtomicU64>,
    /// Admitted calls for which the server asked for input. They continue without another decision.
    waiting_for_input: Mutex<VecDeque<(Fingerprint, Admitted)>>,
    /// The log level that the client wants, where only one of the two eras has a way to say it.
    log_level: Mutex<Option<Value>>,
    /// Tells the client that another policy may show other tools.
    _telling: DropGuard,
}

/// How often a server may ask for input before it has a result.
const MAX_INPUT_ROUNDS: usize = 16;
/// How many input requests it may send at once.
const MAX_INPUT_REQUESTS: usize = 32;

impl PassthroughFactory {
    /// Passes requests to this server.
    pub fn new(server: ServerSpec) -> Self {
        let settings = HostSettings::new(vec![ServerSetup::new(server.clone())]);
        let guard = Arc::new(PassthroughGuard::new(&settings, &server.name));
        Self::of(connector(server), guard)
    }

    fn of(server: Arc<dyn ServerConnector>, guard: Arc<PassthroughGuard>) -> Self {
        let (generation, sessions) = (AtomicU64::new(0), Mutex::default());
        Self { server: RwLock::new(server), generation, guard, sessions }
    }

    /// Applies the policy to requests and records them. Allowed requests are passed on unchanged.
    #[must_use]
    pub fn guarded_by(self, guard: Arc<PassthroughGuard>) -> Self {
        Self { guard, ..self }
    }

    /// Decides on requests and records them.
    pub fn guard(&self) -> &PassthroughGuard {
        &self.guard
    }

    /// The sessions that exist now, for those who look from outside.
    pub fn live_sessions(&self) -> Vec<LiveSession> {
        let mut sessions = self.sessions.lock();
        sessions.retain(|(session, _)| session.strong_count() > 0);
        let live = sessions.iter().filter_map(|(session, calls)| {
            let session = session.upgrade()?;
            Some(LiveSession {
                mode: Some("pass-through".to_owned()),
                reason: Some(format!("the server `{}` is served as it is", self.guard.server())),
                calls: calls.load(Ordering::Relaxed),
                ..LiveSession::new(session.id(), &session.caller().name)
            })
        });
        live.collect()
    }

    /// Replaces the settings of the server for the sessions that begin later, if it is in these
    /// settings. Modern clients, which have no sessions, get another connection.
    pub fn replace_server(&self, settings: &HostSettings) {
        let mut servers = settings.servers.iter();
        if let Some(setup) = servers.find(|setup| setup.spec.name == *self.guard.server()) {
            *self.server.write() = connector(setup.spec.clone());
            self.generation.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Connects to the server, for clients that come again and again. Each connection has a process, so
/// some are started ahead.
fn connector(server: ServerSpec) -> Arc<dyn ServerConnector> {
    Arc::new(ServerSpec { spares: Some(Arc::default()), ..server })
}

impl ServiceFactory for PassthroughFactory {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
        Box::pin(async move {
            let caller = Caller::model(client.caller.as_str())
                .with_facts(client.caller.facts().clone())
                .calling_itself(&client.claimed_name());
            let router = Arc::new(MessageRouter::new(client.channel));
            let introduced = ConnectionClient {
                info: client.info,
                legacy_version: client.requested_version,
                legacy_capabilities: client.capabilities.clone(),
                modern_capabilities: client.capabilities,
            };
            let handler = Arc::clone(&router) as _;
            let server = Arc::clone(&self.server.read());
            let owner = caller.login_owner();
            let connection = server.connect(owner, client.era, introduced, handler).await?;
            let changes = router.list_changes.subscribe();
            let guard = Arc::clone(&self.guard);
            let tools = ToolList::new(Arc::clone(&connection), Arc::clone(&guard), changes.clone());
            let entries = EntryLists::new(Arc::clone(&connection), Arc::clone(&guard), changes);
            let telling = CancellationToken::new();
            let notifier = tell_of_reloads(guard.reloads(), Arc::clone(&router));
            tokio::spawn(telling.clone().run_until_cancelled_owned(notifier));
            let (session, calls) = (Arc::new(SessionContext::new(caller)), Arc::default());
            self.sessions.lock().push((Arc::downgrade(&session), Arc::clone(&calls)));
            let service = PassthroughService {
                _telling: telling.drop_guard(),
                connection,
                session,
                calls,
                waiting_for_input: Mutex::default(),
                guard,
                router,
                subscription: OwnSubscription::default(),
                tools,
                entries,
                log_level: Mutex::default(),
            };
            Ok(Arc::new(service) as Arc<dyn McpService>)
        })
    }

    fn depends_on_capabilities(&self) -> bool {
        true
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }
}

impl McpService for PassthroughService {
    fn server_info(&self, _era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
        let mut fields = self.connection.server_info().as_object().cloned().unwrap_or_default();
        let instructions = fields.get("instructions").and_then(Value::as_str).unwrap_or_default();
        if self.guard.are_instructions_held(instructions) {
            fields.shift_remove("instructions");
        }
        let info = ServerInfo { era: self.connection.era(), fields };
        Box::pin(std::future::ready(Ok(info)))
    }

    fn request(&self, request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(self.answer(request))
    }

    fn notification(&self, method: String, params: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match (method.as_str(), self.connection.era()) {
                (methods::INITIALIZED, Era::Modern) => {
                    if let Err(error) = self.renew_subscription().await {
                        tracing::warn!(%error, "the server accepts no subscription");
                    }
                }
                // The connection sent its own `notifications/initialized`. Modern servers get no
                // notifications of clients: they request the roots when they need them.
                (methods::INITIALIZED, Era::Legacy) | (_, Era::Modern) => {}
                (method, Era::Legacy) => {
                    Broker::notify_raw(&*self.connection, method, params).await;
                }
            }
        })
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.tools.header_schema(tool))
    }

    fn has_request_states(&self) -> bool {
        self.connection.era() == Era::Modern
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.connection.close()
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        self.connection.closed()
    }
}

impl PassthroughService {
    /// Sends an admitted request, converted to the era of the server.
    async fn forward(
        &self,
        mut request: IncomingRequest,
        admission: &mut Admission,
    ) -> Result<Value, ErrorObject> {
        match (request.era, self.connection.era()) {
            // Boxed, because few clients and servers are of different eras, and the future of every request would be as
            // large as these.
            (Era::Legacy, Era::Modern) => {
                Box::pin(self.forward_to_modern(request, admission)).await
            }
            (Era::Modern, Era::Legacy) => {
                Box::pin(self.forward_to_legacy(request, admission)).await
            }
            (era, _) => {
                let route = self.router.register_request(&request);
                let params = request.params.take();
                let outcome = self.send_on(admission, &request, route, params).await;
                if era == Era::Legacy {
                    return outcome;
                }
                if request.method == methods::LISTEN && request.cancel.is_cancelled() {
                    return Ok(subscriptions::ended_subscription(&request.id));
                }
                let mut result = outcome?;
                if get_meta(Some(&result), meta::SUBSCRIPTION_ID).is_some() {
                    set_meta(&mut result, meta::SUBSCRIPTION_ID, request.id);
                }
                Ok(result)
            }
        }
    }

    async fn send(
        &self,
        admission: &mut Admission,
        request: &IncomingRequest,
        params: Option<Value>,
    ) -> Result<Value, ErrorObject> {
        let route = self.router.register_request(request);
        self.send_on(admission, request, route, params).await
    }

    async fn send_on(
        &self,
        admission: &mut Admission,
        request: &IncomingRequest,
        route: RouteRegistration<'_>,
        mut params: Option<Value>,
    ) -> Result<Value, ErrorObject> {
        // Modern clients share the connection and may have chosen the same progress token.
        if request.era == Era::Modern
            && get_meta(params.as_ref(), meta::PROGRESS_TOKEN).is_some()
            && let Some(params) = &mut params
        {
            set_meta(params, meta::PROGRESS_TOKEN, json!(route.key));
        }
        let (method, cancel) = (request.method.clone(), request.cancel.clone());
        let request = RawRequest { key: json!(route.key), method, params, cancel, hold: None };
        connection::send(&mut admission.request, &*self.connection, request).await
    }

    /// Sends a request of a legacy client to a modern server. If the server asks for input, the client
    /// is asked and the request is sent again with the responses.
    async fn forward_to_modern(
        &self,
        request: IncomingRequest,
        admission: &mut Admission,
    ) -> Result<Value, ErrorObject> {
        let field = |name: &str| request.params.as_ref().and_then(|params| params.get(name));
        match (request.method.as_str(), field("uri").and_then(Value::as_str)) {
            (methods::SET_LOG_LEVEL, _) => {
                *self.log_level.lock() = field("level").cloned();
                return Ok(json!({}));
            }
            (methods::RESOURCES_SUBSCRIBE, Some(uri)) => {
                self.subscription.add(uri);
                return self.renew_subscription().await;
            }
            (methods::RESOURCES_UNSUBSCRIBE, Some(uri)) => {
                self.subscription.remove(uri);
                return self.renew_subscription().await;
            }
            _ => {}
        }
        let mut params = request.params.clone().unwrap_or_else(|| json!({}));
        if let Some(level) = self.log_level.lock().clone() {
            set_meta(&mut params, meta::LOG_LEVEL, level);
        }
        for _ in 0..MAX_INPUT_ROUNDS {
            let result = self.send(admission, &request, Some(params.clone())).await?;
            if result.get("resultType") != Some(&json!("input_required")) {
                return adapt_outcome(Era::Legacy, &request.method, Ok(result));
            }
            let responses = collect_input(&request, result.get("inputRequests")).await?;
            params["inputResponses"] = Value::Object(responses);
            match result.get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => {
                    params.as_object_mut().map(|params| params.remove("requestState"));
                }
            }
        }
        Err(ErrorObject::internal_error("the server asked for input too often", None))
    }

    /// Sends a request of a modern client to a legacy server.
    async fn forward_to_legacy(
        &self,
        request: IncomingRequest,
        admission: &mut Admission,
    ) -> Result<Value, ErrorObject> {
        match request.method.as_str() {
            methods::LISTEN => {
                let admitted = std::mem::take(&mut admission.subscriptions);
                let (connection, router) = (&*self.connection, &*self.router);
                return subscriptions::listen(connection, router, &self.guard, request, admitted)
                    .await;
            }
            methods::PING
            | methods::SET_LOG_LEVEL
            | methods::RESOURCES_SUBSCRIBE
            | methods::RESOURCES_UNSUBSCRIBE => {
                return Err(ErrorObject::method_not_found(&request.method));
            }
            _ => {}
        }
        self.set_log_level(&request).await;
        let mut params = request.params.clone();
        let modern_keys =
            [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL];
        remove_meta(&mut params, &modern_keys);
        let outcome = self.send(admission, &request, params).await;
        adapt_outcome(Era::Modern, &request.method, outcome)
    }

    /// Sends the log level of a request to a legacy server, unless it is the current one.
    async fn set_log_level(&self, request: &IncomingRequest) {
        let Some(level) = get_meta(request.params.as_ref(), meta::LOG_LEVEL) else { return };
        let has_logs = self.connection.server_info().pointer("/capabilities/logging").is_some();
        if !has_logs || self.log_level.lock().replace(level.clone()).as_ref() == Some(level) {
            return;
        }
        let request = RawRequest {
            key: Value::Null,
            method: methods::SET_LOG_LEVEL.to_owned(),
            params: Some(json!({ "level": level })),
            cancel: request.cancel.clone(),
            hold: None,
        };
        let sent = connection::send_unjudged(&self.guard, &*self.connection, request).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "the server refused the log level");
        }
    }

    async fn renew_subscription(&self) -> Result<Value, ErrorObject> {
        self.subscription.renew(&self.connection, &self.router, &self.guard).await?;
        Ok(json!({}))
    }
}

/// Tells the client after each reload that the list of tools may have changed.
async fn tell_of_reloads(mut reloads: watch::Receiver<u64>, router: Arc<MessageRouter>) {
    while reloads.changed().await.is_ok() {
        router.notification(None, methods::TOOLS_CHANGED, None);
    }
}

/// Sends the input requests of a modern server to a legacy client.
async fn collect_input(
    request: &IncomingRequest,
    inputs: Option<&Value>,
) -> Result<JsonObject, ErrorObject> {
    let Some(inputs) = inputs.and_then(Value::as_object) else { return Ok(JsonObject::new()) };
    if inputs.len() > MAX_INPUT_REQUESTS {
        let message = "the server sent too many input requests at once";
        return Err(ErrorObject::internal_error(message, None));
    }
    let requesting = inputs.iter().map(|(key, input)| async move {
        let method = input.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = input.get("params").cloned();
        let response = request.channel.request_input(InputRequest { method, params }).await?;
        Ok::<_, ErrorObject>((key.clone(), response))
    });
    tokio::select! {
        responses = try_join_all(requesting) => Ok(responses?.into_iter().collect()),
        () = request.cancel.cancelled() => {
            Err(ErrorObject::internal_error("the request was cancelled", None))
        }
    }
}
