//! The state of a legacy session, on any transport: the handshake and the requests in progress.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolgate_mcp::{
    ErrorObject, JsonObject, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, methods,
    response_message, versions,
};

use crate::{
    channel::{ClientChannel, MessageSink, PendingInputRequests},
    era::Era,
    http::RequestPeer,
    service::{AuthenticatedClient, ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

/// A session of the legacy era.
#[derive(Debug)]
pub(crate) struct LegacySession {
    pub(crate) service: Arc<dyn McpService>,
    /// The negotiated protocol version.
    pub(crate) version: &'static str,
    capabilities: Arc<JsonObject>,
    input_requests: Arc<PendingInputRequests>,
    in_flight: Arc<InFlightRequests>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What a transport provides for a new session.
#[derive(Debug)]
pub(crate) struct SessionOptions {
    pub(crate) caller: AuthenticatedClient,
    /// For messages that belong to no request.
    pub(crate) sink: Arc<dyn MessageSink>,
    /// How long the client may take to answer an input request.
    pub(crate) input_timeout: Duration,
    pub(crate) max_in_flight: usize,
}

/// The error for a batch of a version without batches.
pub(crate) const NO_BATCHES: &str = "this protocol version has no batches; send each message alone";

/// How long a cancelled request may take to end, so that the server learns of the cancellation.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

impl LegacySession {
    /// Does the handshake. Returns the session and the result of `initialize`.
    pub(crate) async fn initialize(
        factory: &dyn ServiceFactory,
        request: &JsonRpcRequest,
        options: SessionOptions,
    ) -> Result<(Arc<Self>, Value), ErrorObject> {
        let field = |name: &str| request.fields().and_then(|params| params.get(name));
        let Some(requested) = field("protocolVersion").and_then(Value::as_str) else {
            return Err(ErrorObject::invalid_params("`protocolVersion` is missing", None));
        };
        let capabilities = field("capabilities").and_then(Value::as_object).cloned();
        let capabilities = Arc::new(capabilities.unwrap_or_default());
        let input_requests = PendingInputRequests::new(options.input_timeout);
        let channel = ClientChannel::legacy(
            Arc::clone(&capabilities),
            options.sink,
            Arc::clone(&input_requests),
        );
        let client = ClientInfo {
            caller: options.caller,
            era: Era::Legacy,
            info: field("clientInfo").cloned().unwrap_or_else(|| json!({})),
            capabilities: (*capabilities).clone(),
            requested_version: Some(requested.to_owned()),
            channel: Some(channel),
        };
        let service = factory.open(client).await?;
        let info = service.server_info(Era::Legacy).await?;
        let version = info.version().unwrap_or_else(|| versions::negotiate_legacy(requested));
        let result = info.into_initialize(version);
        let session = Self {
            service,
            version,
            capabilities,
            input_requests,
            in_flight: InFlightRequests::new(options.max_in_flight),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Ok((Arc::new(session), result))
    }

    /// Answers a request in a task. The response is the last message to `sink`; there is none if the
    /// client has cancelled the request.
    pub(crate) fn request(
        self: &Arc<Self>,
        request: JsonRpcRequest,
        sink: Arc<dyn MessageSink>,
        peer: Option<RequestPeer>,
    ) -> Result<(), RequestRejection> {
        let in_flight = self.in_flight.begin(&request.id, &self.stop)?;
        let session = Arc::clone(self);
        self.tasks.spawn(async move {
            let JsonRpcRequest { id, method, params } = request;
            let cancel = &in_flight.cancel;
            let channel = ClientChannel::legacy(
                Arc::clone(&session.capabilities),
                Arc::clone(&sink),
                Arc::clone(&session.input_requests),
            )
            .with_peer(peer);
            let mut answering = if method == methods::PING {
                Box::pin(std::future::ready(Ok(json!({}))))
            } else {
                let (id, era, cancel) = (id.clone(), Era::Legacy, cancel.clone());
                session.service.request(IncomingRequest {
                    id,
                    method,
                    params,
                    era,
                    channel,
                    cancel,
                })
            };
            let outcome = tokio::select! {
                outcome = &mut answering => Some(outcome),
                () = cancel.cancelled() => {
                    tokio::time::timeout(CANCEL_TIMEOUT, answering).await.ok()
                }
            };
            let outcome = match outcome {
                Some(outcome) if !cancel.is_cancelled() => Some(outcome),
                // The client should know of an effect that happened in spite of the cancellation.
                Some(Ok(result)) if session.stop.is_cancelled() => Some(Ok(result)),
                _ if session.stop.is_cancelled() => Some(Err(stopping())),
                _ => None,
            };
            // The id is free again before the client gets the response.
            drop(in_flight);
            sink.finish(outcome.map(|outcome| response_message(&id, outcome))).await;
        });
        Ok(())
    }

    pub(crate) async fn notification(&self, notification: JsonRpcNotification) {
        if notification.method == methods::CANCELLED {
            self.in_flight.cancel(&notification);
        } else {
            self.service.notification(notification.method, notification.params).await;
        }
    }

    pub(crate) fn response(&self, response: JsonRpcResponse) {
        self.input_requests.respond(response);
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.in_flight.tokens.lock().is_empty()
    }

    /// Waits until no request is in progress.
    pub(crate) async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Completes when [`LegacySession::end`] is called.
    pub(crate) async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// Cancels all requests, waits for them, and closes the service.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.service.close().await;
    }
}

/// The requests of one client that are in progress.
#[derive(Debug)]
pub(crate) struct InFlightRequests {
    /// By the JSON text of their ids.
    tokens: Mutex<HashMap<String, CancellationToken>>,
    limit: usize,
}

/// One of them. It is removed on drop, however its task ends.
#[derive(Debug)]
pub(crate) struct InFlightRequest {
    table: Arc<InFlightRequests>,
    key: String,
    pub(crate) cancel: CancellationToken,
}

/// Why a request is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum RequestRejection {
    #[error("a request with this id is already in progress")]
    DuplicateId,
    #[error("too many requests are already in progress")]
    TooMany,
}

impl From<RequestRejection> for ErrorObject {
    fn from(rejection: RequestRejection) -> Self {
        Self::invalid_request(rejection.to_string(), None)
    }
}

impl InFlightRequests {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { tokens: Mutex::default(), limit })
    }

    /// Adds a request. It is cancelled by the client, or when `stop` is.
    pub(crate) fn begin(
        self: &Arc<Self>,
        id: &Value,
        stop: &CancellationToken,
    ) -> Result<InFlightRequest, RequestRejection> {
        let (key, cancel) = (id.to_string(), stop.child_token());
        let mut tokens = self.tokens.lock();
        if tokens.contains_key(&key) {
            return Err(RequestRejection::DuplicateId);
        }
        if tokens.len() >= self.limit {
            return Err(RequestRejection::TooMany);
        }
        tokens.insert(key.clone(), cancel.clone());
        Ok(InFlightRequest { table: Arc::clone(self), key, cancel })
    }

    /// Cancels the request that a `notifications/cancelled` names. Returns whether it exists.
    pub(crate) fn cancel(&self, notification: &JsonRpcNotification) -> bool {
        let id = notification.params.as_ref().and_then(|params| params.get("requestId"));
        let cancel = id.and_then(|id| self.tokens.lock().get(&id.to_string()).cloned());
        cancel.inspect(CancellationToken::cancel).is_some()
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.table.tokens.lock().remove(&self.key);
    }
}

/// The error for a request that was not completed because the gateway stops.
pub(crate) fn stopping() -> ErrorObject {
    let message = "the gateway is stopping: the request was cancelled, and whether it had an effect \
                   is not known";
    ErrorObject::internal_error(message, None)
}
