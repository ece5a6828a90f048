//! The channel back to a client: notifications, and input requests with their responses.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolgate_mcp::{
    ErrorObject, JsonObject, JsonRpcResponse, methods, notification_message, request_message,
};
use toolgate_upstream::{ClientId, InputHandler, InputRequest};

use crate::http::RequestPeer;

/// Sends messages to a client, within a request or outside of one.
#[derive(Debug, Clone)]
pub struct ClientChannel {
    capabilities: Arc<JsonObject>,
    client: Option<ClientId>,
    /// The sender of the request, over HTTP.
    peer: Option<RequestPeer>,
    kind: ChannelKind,
}

#[derive(Debug, Clone)]
enum ChannelKind {
    /// Input requests are sent as JSON-RPC requests.
    Legacy { sink: Arc<dyn MessageSink>, pending: Arc<PendingInputRequests> },
    /// Input requests become an `input_required` result.
    Modern(mpsc::Sender<ChannelEvent>),
}

/// Where messages to a client go. Only `finish` waits for a slow client.
pub(crate) trait MessageSink: fmt::Debug + Send + Sync {
    /// Sends a notification or a request. It is lost if the client's queue is full.
    fn send(&self, message: Value);

    /// Whether the client reads what is sent now.
    fn is_read(&self) -> bool {
        true
    }

    /// Sends the response to a request, or records that there will be none.
    fn finish(&self, response: Option<Value>) -> BoxFuture<'_, ()>;
}

/// A message from a service while it answers a modern request.
#[derive(Debug)]
pub(crate) enum ChannelEvent {
    Notification(Value),
    /// With the key that its server gave it, if it did.
    InputRequest(Option<String>, InputRequest, InputResponder),
}

/// Takes the response to an input request.
pub(crate) type InputResponder = oneshot::Sender<Result<Value, ErrorObject>>;

/// Input requests that wait for the response of a legacy client.
#[derive(Debug)]
pub(crate) struct PendingInputRequests {
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, InputResponder>>,
    timeout: Duration,
}

const MAX_PENDING: usize = 64;

impl ClientChannel {
    pub(crate) fn legacy(
        capabilities: Arc<JsonObject>,
        sink: Arc<dyn MessageSink>,
        pending: Arc<PendingInputRequests>,
    ) -> Self {
        let kind = ChannelKind::Legacy { sink, pending };
        Self { capabilities, client: None, peer: None, kind }
    }

    pub(crate) fn modern(capabilities: JsonObject, events: mpsc::Sender<ChannelEvent>) -> Self {
        let capabilities = Arc::new(capabilities);
        Self { capabilities, client: None, peer: None, kind: ChannelKind::Modern(events) }
    }

    /// The same channel, to this sender of a request.
    #[must_use]
    pub(crate) fn with_peer(self, peer: Option<RequestPeer>) -> Self {
        Self { peer, ..self }
    }

    /// The same channel, as one of several that lead to this client.
    #[must_use]
    pub(crate) fn of_client(&self, client: ClientId) -> Self {
        Self { client: Some(client), ..self.clone() }
    }

    /// Sends a notification. It is lost if the client does not read.
    pub fn notify(&self, method: &str, params: Option<Value>) {
        let message = notification_message(method, params);
        match &self.kind {
            ChannelKind::Legacy { sink, .. } => sink.send(message),
            ChannelKind::Modern(events) => {
                let _ = events.try_send(ChannelEvent::Notification(message));
            }
        }
    }

    /// Whether the client reads what is sent now. Over HTTP, a client of the legacy era reads what belongs to no
    /// request only if it has opened a stream for it.
    pub fn is_read(&self) -> bool {
        match &self.kind {
            ChannelKind::Legacy { sink, .. } => sink.is_read(),
            ChannelKind::Modern(events) => !events.is_closed(),
        }
    }

    /// Sends an input request and waits for its response. Dropping the future withdraws the request.
    pub fn request_input(
        &self,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        self.request_keyed_input(None, request)
    }

    fn request_keyed_input(
        &self,
        key: Option<String>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        match self.kind.clone() {
            ChannelKind::Legacy { sink, pending } => Box::pin(pending.request(sink, request)),
            ChannelKind::Modern(events) => Box::pin(async move {
                let (responder, response) = oneshot::channel();
                let event = ChannelEvent::InputRequest(key, request, responder);
                events.send(event).await.map_err(|_| client_gone())?;
                response.await.map_err(|_| client_gone())?
            }),
        }
    }
}

impl InputHandler for ClientChannel {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn answer(&self, request: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        self.request_input(request)
    }

    fn answer_keyed<'a>(
        &'a self,
        key: &'a str,
        request: InputRequest,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        self.request_keyed_input(Some(key.to_owned()), request)
    }

    fn notify(&self, method: &str, params: Value) {
        Self::notify(self, method, Some(params));
    }

    fn is_there(&self) -> bool {
        self.is_read()
    }

    fn is_asked_by_results(&self) -> bool {
        matches!(self.kind, ChannelKind::Modern(_))
    }

    fn takes_requests(&self) -> bool {
        // A modern client gets no requests, only the input requests of the protocol.
        matches!(self.kind, ChannelKind::Legacy { .. })
    }

    fn may_decide(&self) -> BoxFuture<'_, bool> {
        match &self.peer {
            Some(peer) => Box::pin(peer.may_decide()),
            None => Box::pin(std::future::ready(true)),
        }
    }

    fn client(&self) -> Option<ClientId> {
        self.client.clone()
    }
}

impl PendingInputRequests {
    pub(crate) fn new(timeout: Duration) -> Arc<Self> {
        Arc::new(Self { next_id: AtomicU64::new(1), open: Mutex::default(), timeout })
    }

    /// Delivers a response. A response that nobody waits for is ignored.
    pub(crate) fn respond(&self, response: JsonRpcResponse) {
        let id = match &response.id {
            Value::String(id) => id.parse().ok(),
            id => id.as_u64(),
        };
        let responder = id.and_then(|id| self.open.lock().remove(&id));
        if let Some(responder) = responder {
            let _ = responder.send(response.outcome);
        }
    }

    async fn request(
        self: Arc<Self>,
        sink: Arc<dyn MessageSink>,
        request: InputRequest,
    ) -> Result<Value, ErrorObject> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (responder, response) = oneshot::channel();
        {
            let mut open = self.open.lock();
            if open.len() >= MAX_PENDING {
                let message = "the client has too many unanswered requests already";
                return Err(ErrorObject::internal_error(message, None));
            }
            open.insert(id, responder);
        }
        let _withdrawal = Withdrawal { id, pending: &self, sink: &*sink };
        sink.send(request_message(json!(id), &request.method, request.params));
        let Ok(outcome) = tokio::time::timeout(self.timeout, response).await else {
            let message = "the client did not respond in time";
            return Err(ErrorObject::internal_error(message, None));
        };
        outcome.unwrap_or_else(|_| Err(client_gone()))
    }
}

/// Withdraws an input request that has no response when it is dropped.
struct Withdrawal<'a> {
    id: u64,
    pending: &'a PendingInputRequests,
    sink: &'a dyn MessageSink,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if self.pending.open.lock().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id, "reason": "the response is not needed" });
            self.sink.send(notification_message(methods::CANCELLED, Some(params)));
        }
    }
}

fn client_gone() -> ErrorObject {
    ErrorObject::internal_error("the client is gone", None)
}
