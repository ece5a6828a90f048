//! The only sender of requests to servers.

use std::{collections::HashMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolgate_catalog::{ServerName, Tool, ToolId};
use toolgate_mcp::{Era, meta, methods};
use toolgate_policy::{CallPath, Decision, Flow, FlowMode, ToolPolicy};
use toolgate_store::CallDecision;
use toolgate_upstream::{
    CallError, CallHold, CallOptions, ConnectFailure, ConnectionClient, ConnectionHandler,
    RawConnection, RawRequest, RequestError, ServerLimits, ServerSpec,
};

use crate::{
    approval,
    audit::{AuditWritten, CallAudit},
    authorize::Permit,
    broker::Broker,
    context::CallContext,
    data_flow::{self, CallerMemory, ResultOrigin},
    error::BrokerError,
    limits::LimitSlot,
};

/// A request that may be sent now.
///
/// > **Invariant:** every request to a server is sent by [`Admitted::send`], and only the broker
/// > makes an [`Admitted`]. If it is dropped before it is sent, its outcome is unknown.
#[derive(Debug)]
pub struct Admitted {
    broker: Arc<Broker>,
    target: ToolId,
    /// Whether the target is a tool, and not the method of another request.
    pub(crate) is_call: bool,
    params: Option<Value>,
    /// `None` for a request that the policy does not judge.
    judged: Option<Judged>,
    audit: Option<CallAudit>,
    /// Whether the broker of another node has admitted it, and has recorded that.
    is_forwarded: bool,
    /// Held until the request ends.
    slots: AdmittedSlots,
}

/// What a request occupies until it ends.
#[derive(Debug, Default)]
pub(crate) struct AdmittedSlots {
    pub(crate) _queue: Option<QueueSlot>,
    pub(crate) limits: LimitSlot,
}

/// The way a request takes.
#[derive(Debug)]
pub enum Outgoing<'c> {
    /// Over the shared connection of the server that it was admitted for, with the parameters that
    /// were judged.
    Shared(CallOptions),
    /// Over a connection of one client, as the client wrote it.
    Raw(&'c dyn RawChannel, RawRequest),
}

/// A request that the policy has judged.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) tool: Tool,
    pub(crate) policy: Arc<ToolPolicy>,
    pub(crate) context: CallContext,
    pub(crate) flow: Flow,
}

/// Proves that the broker sends. Nobody else can make one.
#[derive(Debug)]
pub struct SendPermit(());

/// A connection of one client to one server, which keeps every byte.
pub trait RawChannel: fmt::Debug + Send + Sync + 'static {
    /// The era of the server.
    fn era(&self) -> Era;

    /// The result of `initialize` or `server/discover`, as the server sent it.
    fn server_info(&self) -> &Value;

    /// Sends a request, and returns the result as the server sent it.
    fn request(
        &self,
        permit: SendPermit,
        request: RawRequest,
    ) -> BoxFuture<'_, Result<Value, RequestError>>;

    /// Sends a notification.
    fn notify<'a>(
        &'a self,
        permit: SendPermit,
        method: &'a str,
        params: Option<Value>,
    ) -> BoxFuture<'a, Result<(), RequestError>>;

    /// Waits until the connection has ended.
    fn closed(&self) -> BoxFuture<'_, ()>;

    /// Ends the connection in order.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How many calls of scripts each server gets at once. Further ones wait, whichever script they are
/// from, but never for another server. A call that waits for a person holds no slot.
#[derive(Debug)]
pub(crate) struct ServerQueues {
    width: usize,
    queues: Mutex<HashMap<ServerName, Arc<Semaphore>>>,
}

/// A slot in a server's queue, freed when it is dropped.
pub(crate) type QueueSlot = OwnedSemaphorePermit;

/// Methods that neither reveal nor change data, so that the policy does not judge them. What
/// `subscriptions/listen` subscribes to is judged as `resources/subscribe`, one URI at a time.
const UNJUDGED: [&str; 15] = [
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/list",
    "tasks/update",
    "tools/list",
];

impl Admitted {
    pub(crate) fn new(
        broker: Arc<Broker>,
        params: Option<Value>,
        judged: Judged,
        audit: CallAudit,
        slots: AdmittedSlots,
    ) -> Self {
        let target = judged.tool.id.clone();
        let (judged, audit) = (Some(judged), Some(audit));
        Self { broker, target, is_call: false, params, judged, audit, is_forwarded: false, slots }
    }

    pub(crate) fn unjudged(
        broker: Arc<Broker>,
        server: &ServerName,
        method: &str,
        params: Option<Value>,
    ) -> Option<Self> {
        let target = ToolId { server: server.clone(), tool: method.into() };
        let is_unjudged = UNJUDGED.contains(&method) || broker.is_idle();
        is_unjudged.then_some(Self {
            broker,
            target,
            is_call: false,
            params,
            judged: None,
            audit: None,
            is_forwarded: false,
            slots: AdmittedSlots::default(),
        })
    }

    /// A request that the broker of another node has admitted, for a server that runs here for all nodes.
    pub(crate) fn forwarded(
        broker: Arc<Broker>,
        server: &ServerName,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Self {
        let is_call = method == methods::TOOLS_CALL;
        let tool = match params.shift_remove("name") {
            Some(Value::String(name)) if is_call => name.into(),
            name => {
                params.extend(name.map(|name| ("name".to_owned(), name)));
                method.into()
            }
        };
        if is_call {
            params = match params.shift_remove("arguments") {
                Some(Value::Object(arguments)) => arguments,
                _ => Map::new(),
            };
        }
        Self {
            broker,
            target: ToolId { server: server.clone(), tool },
            is_call,
            params: Some(Value::Object(params)),
            judged: None,
            audit: None,
            is_forwarded: true,
            slots: AdmittedSlots::default(),
        }
    }

    /// Sends the request, remembers what came back, and records how it ended. If the server asks for
    /// input first, the request stays open and is sent again with the responses.
    pub async fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Value, BrokerError> {
        // The server may still work on a call for which nobody waits any more.
        let hold = self.slots.limits.open_call().map(|open| CallHold::new(open));
        let outcome = match outgoing {
            Outgoing::Raw(channel, mut request) => {
                request.hold = hold;
                let sent = channel.request(SendPermit(()), request).await;
                if let Ok(result) = &sent
                    && result.get("resultType") == Some(&json!("input_required"))
                {
                    self.learn(result);
                    return sent.map_err(BrokerError::Raw);
                }
                sent.map_err(BrokerError::Raw)
            }
            Outgoing::Shared(mut options) => {
                if let Some(audit) = &self.audit {
                    audit.add_trace(&mut options.meta);
                }
                if !self.is_forwarded {
                    self.tell_caller(&mut options.meta);
                }
                if let Some(judged) = &self.judged {
                    options.caller = Some(judged.context.session.caller().login_owner());
                    options.is_repeatable = self.is_call && judged.policy.is_repeatable();
                }
                options.hold = hold;
                options.needs_task = self.is_call && self.needs_task();
                let (upstream, params) = (&self.broker.upstream, self.params.take());
                let ToolId { server, tool } = &self.target;
                let sent = match params {
                    Some(Value::Object(arguments)) if self.is_call => {
                        upstream.call(server, tool, Some(arguments), options).await
                    }
                    params => upstream.request(server, tool, params, options).await,
                };
                sent.map_err(BrokerError::from)
            }
        };
        self.end(outcome.as_ref()).wait().await;
        outcome
    }

    /// Whether the server takes the call only as a task.
    fn needs_task(&self) -> bool {
        match &self.judged {
            Some(judged) => judged.tool.definition.needs_task(),
            None if self.is_forwarded => self.broker.needs_task(&self.target),
            None => false,
        }
    }

    /// Ends a request that needed no message of its own, because another one covered it or a model
    /// answered it.
    pub async fn end_unsent(mut self, outcome: Result<&Value, &BrokerError>) {
        self.end(outcome).wait().await;
    }

    /// Whether this broker admitted the request.
    pub fn is_of(&self, broker: &Arc<Broker>) -> bool {
        Arc::ptr_eq(&self.broker, broker)
    }

    /// Whether the request was not answered yet, so that it can be sent again with input responses.
    pub fn is_open(&self) -> bool {
        self.audit.is_some()
    }

    /// Tells the server who makes the request, if it is to be told. What a client writes there itself
    /// is never passed on.
    fn tell_caller(&self, sent: &mut Option<Map<String, Value>>) {
        if let Some(meta) = sent {
            meta.remove(meta::CALLER);
        }
        if let Some(judged) = &self.judged
            && self.broker.tells_caller(&self.target.server)
        {
            let from = match judged.context.path() {
                CallPath::Direct => "direct",
                CallPath::Script => "script",
            };
            let caller = json!({ "id": judged.context.identity(), "from": from });
            sent.get_or_insert_default().insert(meta::CALLER.to_owned(), caller);
        }
    }

    /// Takes back what was counted for limits, because nothing was sent.
    pub(crate) async fn take_back_limits(&mut self) {
        std::mem::take(&mut self.slots.limits).take_back().await;
    }

    fn end(&mut self, outcome: Result<&Value, &BrokerError>) -> AuditWritten {
        match outcome {
            Ok(result) => self.learn(result),
            Err(error) => {
                if let Some(said) = text_of_server(error) {
                    self.learn(&said);
                }
            }
        }
        self.audit.take().map(|audit| audit.end(outcome)).unwrap_or_default()
    }

    /// Remembers data from the server.
    fn learn(&self, data: &Value) {
        if let Some(judged) = &self.judged
            && self.broker.policy().flow() != FlowMode::Off
        {
            let (name, callers) = (judged.context.name_of(&judged.tool), &self.broker.callers);
            data_flow::learn(&judged.context, name, &judged.origin(callers), data, callers);
        }
    }
}

impl Judged {
    /// Where the result comes from.
    fn origin(&self, callers: &CallerMemory) -> ResultOrigin {
        let labels = self.policy.labels();
        data_flow::origin(&self.context, &self.tool.id, labels, &self.flow, callers)
    }

    /// Writes the decision to the journal of the run. With a permit, the call is sent next: one that
    /// must not be repeated once the journal is on the disk.
    pub(crate) async fn write_decision(
        &self,
        decision: &Decision,
        permit: Option<&Permit>,
        callers: &CallerMemory,
    ) -> Result<(), BrokerError> {
        let Some((journal, number)) = self.context.journal() else { return Ok(()) };
        let evidence = &self.flow.evidence;
        let flow =
            (!evidence.is_empty()).then(|| serde_json::to_string(evidence).unwrap_or_default());
        let rule = approval::rule(decision);
        let rule = permit.map_or(rule.clone(), |permit| permit.add_to(rule));
        let origin = serde_json::to_string(&self.origin(callers)).unwrap_or_default();
        let once = permit.is_some() && !self.policy.is_repeatable();
        let decision = CallDecision {
            verdict: decision.verdict.as_str(),
            rule: &rule,
            sent: permit.is_some(),
            once,
            flow: flow.as_deref(),
            origin: Some(&origin),
        };
        let mut written = journal.decided(number, decision);
        if once && written.is_ok() {
            written = journal.sync().await;
        }
        written.map_err(|error| BrokerError::Unwritten {
            tool: self.tool.name.to_string(),
            why: error.to_string(),
        })
    }
}

impl Broker {
    /// Connects to a server for one client: in the client's own era if the server supports it, so
    /// that less has to be translated.
    pub async fn connect_raw(
        spec: &ServerSpec,
        era: Era,
        client: ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> Result<Arc<dyn RawChannel>, ConnectFailure> {
        // A client that talks to the server gets what the server sent, or an error.
        let limits = ServerLimits { max_kept_bytes: 0, ..spec.limits };
        let spec = ServerSpec { remembered_era: Some(era), limits, ..spec.clone() };
        Ok(Arc::new(spec.open_connection(&client, handler).await?))
    }

    /// Passes a notification of a client on. Requests without an id are not passed on: they would
    /// avoid the policy, and a server might act on them.
    pub async fn notify_raw(channel: &dyn RawChannel, method: &str, params: Option<Value>) {
        if !method.starts_with("notifications/") {
            tracing::debug!("a request without an id is not passed on");
        } else if let Err(error) = channel.notify(SendPermit(()), method, params).await {
            tracing::debug!(%error, "the notification was not delivered");
        }
    }
}

impl RawChannel for RawConnection {
    fn era(&self) -> Era {
        Self::era(self)
    }

    fn server_info(&self) -> &Value {
        Self::handshake(self)
    }

    fn request(
        &self,
        _permit: SendPermit,
        request: RawRequest,
    ) -> BoxFuture<'_, Result<Value, RequestError>> {
        Box::pin(Self::request(self, request))
    }

    fn notify<'a>(
        &'a self,
        _permit: SendPermit,
        method: &'a str,
        params: Option<Value>,
    ) -> BoxFuture<'a, Result<(), RequestError>> {
        Box::pin(Self::notify(self, method, params))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::closed(self))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }
}

impl ServerQueues {
    pub(crate) fn new(width: usize) -> Self {
        Self { width: width.max(1), queues: Mutex::default() }
    }

    /// Waits for a slot.
    pub(crate) async fn enter(&self, server: &ServerName) -> Option<QueueSlot> {
        let queue = {
            let mut queues = self.queues.lock();
            let queue = queues.entry(server.clone());
            Arc::clone(queue.or_insert_with(|| Arc::new(Semaphore::new(self.width))))
        };
        // Queues are never closed.
        queue.acquire_owned().await.ok()
    }
}

/// The part of an error that a server may have written.
fn text_of_server(error: &BrokerError) -> Option<Value> {
    match error {
        BrokerError::Raw(RequestError::Refused(error)) => Some(json!([error.message, error.data])),
        BrokerError::Raw(other) => Some(json!([other.to_string(), null])),
        BrokerError::NoAnswer { why, .. } => Some(json!(why)),
        BrokerError::Call(error) => match &**error {
            CallError::Refused { error, .. } => Some(json!([error.message, error.data])),
            CallError::Transport { message, .. } => Some(json!(message)),
            CallError::Unanswered { asked, why, .. } => Some(json!([asked, why])),
            CallError::NotConnected { failure, .. } | CallError::Unauthorized { failure, .. } => {
                Some(json!(failure.reason))
            }
            _ => None,
        },
        _ => None,
    }
}
