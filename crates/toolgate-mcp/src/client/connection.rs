//! One connection to one server. Everything passes as it was sent.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{
    clock::PERSON_TIMEOUT,
    endpoint::{Endpoint, ServerLimits, place},
    exchange::{AwaitedResponse, Exchange, ExchangeError},
    failure::{AuthorizationError, ConnectFailure, with_last_output},
    handshake,
    redact::Redactor,
    request_meta::RequestMeta,
    spare::SpareProcesses,
    transport::Transport,
};
use crate::{Era, ErrorObject, JsonObject, methods, notification_message};

/// The client that a connection is for.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionClient {
    /// Its `Implementation`.
    pub info: Value,
    /// The version that `initialize` requests; `None` means the newest legacy version.
    pub legacy_version: Option<String>,
    /// The capabilities that `initialize` declares.
    pub legacy_capabilities: JsonObject,
    /// The capabilities of modern requests that declare none themselves.
    pub modern_capabilities: JsonObject,
}

/// Handles notifications and requests of a server, in order.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Handles a notification. `about` is the key of the request that it belongs to, if that is
    /// known: from the token of progress, from the id of a subscription, or from the HTTP stream.
    /// Must return soon.
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>);

    /// Answers a request of the server. The future is dropped when the server withdraws the request
    /// or the connection ends.
    fn input_request(
        &self,
        about: Option<RelatedRequest>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>>;

    /// The server wrote something that is no message, or toolgate has a note about the connection.
    /// The text contains no secrets.
    fn output(&self, source: OutputSource, line: &str) {
        tracing::debug!(?source, line, "output of a server");
    }

    /// The server had lost the session, and a new one was opened.
    fn session_renewed(&self) {}
}

/// A request of a server to a client: `elicitation/create`, `sampling/createMessage`, `roots/list`.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// The method.
    pub method: String,
    /// Its parameters, as they were sent.
    pub params: Option<Value>,
}

/// The request of the client to which an input request belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct RelatedRequest {
    /// Its key.
    pub key: Value,
    /// Whether the server said so. Otherwise it is the only open request.
    pub is_certain: bool,
}

/// The source of a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSource {
    /// The server's stderr.
    Stderr,
    /// The server's stdout or stream of events, which should contain only messages.
    Stdout,
    /// toolgate itself, about the server.
    Toolgate,
}

/// A request of the client.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The caller's id for the request.
    pub key: Value,
    /// Its method.
    pub method: String,
    /// Its parameters as the client sent them, `_meta` included.
    pub params: Option<Value>,
    /// Cancels the request, and notifies the server.
    pub cancel: CancellationToken,
    /// Dropped when the server no longer works on the request.
    pub hold: Option<CallHold>,
}

/// Keeps a value while a server may work on a request: until it has answered, or for
/// [`AFTER_CANCELLATION`] after nobody waits any more.
#[derive(Clone)]
pub struct CallHold(Arc<dyn Send + Sync>);

/// How long a server that does not answer may still work on a cancelled request. Most servers do not
/// answer such a request.
pub const AFTER_CANCELLATION: Duration = Duration::from_secs(10);

impl CallHold {
    /// Keeps this.
    pub fn new(kept: Arc<dyn Send + Sync>) -> Self {
        Self(kept)
    }
}

impl fmt::Debug for CallHold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = Arc::strong_count(&self.0);
        formatter.debug_struct("CallHold").field("users", &users).finish()
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RequestError {
    /// The server responded with a JSON-RPC error. The connection is still open.
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    /// The response cannot be read. The connection is still open.
    #[error("the server's answer cannot be used: {0}")]
    Unreadable(String),
    /// The caller cancelled, and the server was notified.
    #[error("the request was cancelled")]
    Cancelled,
    /// No response in time. The server was notified of the cancellation. The connection is still
    /// open.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The request could not be delivered, or its response not be received.
    #[error("{message}")]
    Transport {
        /// What is known about the effect.
        cause: TransportFailure,
        /// What happened, without secrets.
        message: String,
    },
}

/// Why a transport failed, and what is known about the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportFailure {
    /// The connection had ended before the request was sent: it had no effect.
    NotSent,
    /// The connection ended. Whether the request had an effect is unknown.
    Closed,
    /// The stream ended before the response. Whether the request had an effect is unknown.
    NoResponse,
    /// The server answered with this HTTP status.
    Status(u16),
    /// Nothing responds at the URL. The request had no effect.
    Unreachable,
    /// The server requires a login. The request had no effect.
    Authorization(AuthorizationError),
    /// Anything else. Whether the request had an effect is unknown.
    Other,
}

/// How to connect.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSettings<'a> {
    /// Where the server is.
    pub endpoint: &'a Endpoint,
    /// Limits of time and size.
    pub limits: ServerLimits,
    /// The era to try first; `None` means the modern era.
    pub era: Option<Era>,
    /// The advice for a server that starts and fails: where its output is.
    pub see_output: &'a str,
    /// Processes that were started ahead.
    pub spares: Option<&'a Arc<SpareProcesses>>,
}

/// A connection to one server. Dropping it ends it, and the server's process with it.
pub struct RawConnection {
    shared: Arc<Shared>,
    handshake: Value,
    era: Era,
}

/// The parts of a connection that its open requests need.
struct Shared {
    endpoint: Endpoint,
    redactor: Redactor,
    limits: ServerLimits,
    era: Era,
    meta: RequestMeta,
    exchange: Arc<Exchange>,
    transport: Transport,
}

/// A begun request. Dropping it forgets the request without notifying the server. Over Streamable
/// HTTP that ends its stream, which cancels the request at a modern server.
pub struct PendingRequest {
    shared: Arc<Shared>,
    awaited: AwaitedResponse,
    sending: Pin<Box<dyn Future<Output = ExchangeError> + Send>>,
}

/// How long a server may take to end, and to read a cancellation.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a child that closed its output may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

impl RawConnection {
    /// Connects in the newest era that the server supports.
    pub async fn open(
        settings: ConnectionSettings<'_>,
        client: &ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> Result<Self, ConnectFailure> {
        handshake::open(settings, client, &handler).await
    }

    pub(super) fn new(
        settings: ConnectionSettings<'_>,
        (era, handshake): (Era, Value),
        meta: RequestMeta,
        exchange: Arc<Exchange>,
        transport: Transport,
    ) -> Self {
        let shared = Shared {
            endpoint: settings.endpoint.clone(),
            redactor: settings.endpoint.redactor(),
            limits: settings.limits,
            era,
            meta,
            exchange,
            transport,
        };
        Self { shared: Arc::new(shared), handshake, era }
    }

    /// The era of the connection.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The result of `initialize` or `server/discover`, as it was sent.
    pub fn handshake(&self) -> &Value {
        &self.handshake
    }

    /// Begins a request. [`PendingRequest::response`] sends it.
    pub fn begin(
        &self,
        key: Value,
        method: &str,
        params: Option<Value>,
    ) -> Result<PendingRequest, RequestError> {
        let params = self.shared.meta.request(params).map_err(RequestError::Refused)?;
        let awaited = self.shared.exchange.begin(key, method, params.as_ref());
        let (shared, id, method) = (Arc::clone(&self.shared), awaited.id(), method.to_owned());
        let sending = Box::pin(async move { shared.transport.carry(id, &method, params).await });
        Ok(PendingRequest { shared: Arc::clone(&self.shared), awaited, sending })
    }

    /// Sends a request and returns its result as it was sent. `subscriptions/listen` stays open
    /// until it is cancelled or the server ends it. All other requests have the limit `total`,
    /// which does not count the time that people need for input requests.
    pub async fn request(&self, request: RawRequest) -> Result<Value, RequestError> {
        let RawRequest { key, method, params, cancel, hold } = request;
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        let mut pending = self.begin(key, &method, params)?;
        let limit = self.shared.limits.total;
        let timeout = async {
            if method == methods::LISTEN {
                std::future::pending::<()>().await;
            } else {
                let open = self.shared.exchange.open_input_requests();
                open.elapse(limit, PERSON_TIMEOUT).await;
            }
        };
        let (error, reason) = tokio::select! {
            biased;
            response = pending.response() => return response,
            () = cancel.cancelled() => (RequestError::Cancelled, "cancelled by the caller"),
            () = timeout => (RequestError::TimedOut(limit), "no answer in time"),
        };
        let pending = pending.cancel(reason).await;
        if let Some(hold) = hold {
            tokio::spawn(async move {
                let _ = tokio::time::timeout(AFTER_CANCELLATION, answered(pending)).await;
                drop(hold);
            });
        }
        Err(error)
    }

    /// Sends a notification of the client. The connection itself sends `notifications/initialized`
    /// and cancellations.
    pub async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), RequestError> {
        self.shared.notify(method, params).await
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) {
        self.shared.exchange.closed().await;
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.exchange.is_closed()
    }

    /// Whether the server is a child process.
    pub fn is_child(&self) -> bool {
        matches!(&self.shared.transport, Transport::Stdio(stdio) if stdio.process.is_some())
    }

    /// Closes the connection in order: a child process gets the time that the protocol requires,
    /// and a session is deleted.
    pub async fn close(&self) {
        self.shared.transport.close(STOP_TIMEOUT).await;
        self.shared.exchange.close();
    }

    /// Why the connection has ended.
    pub async fn end_reason(&self) -> String {
        let process = match &self.shared.transport {
            Transport::Stdio(stdio) => stdio.process.as_ref(),
            _ => None,
        };
        let Some(process) = process else { return "the connection was closed".to_owned() };
        match process.exited_within(EXIT_TIMEOUT).await {
            Some(status) => {
                let reason = format!("the process ended ({status})");
                let reason = with_last_output(reason, &process.last_output().await);
                self.shared.redactor.line(&reason)
            }
            None => "the process closed its output".to_owned(),
        }
    }
}

impl PendingRequest {
    /// Waits for the result. Can be dropped and called again.
    pub async fn response(&mut self) -> Result<Value, RequestError> {
        let error = tokio::select! {
            biased;
            response = self.awaited.received() => match response {
                Ok(mut result) => {
                    // A server gets the token of a login, and its caller must not.
                    self.shared.redactor.clean_result(&mut result);
                    return Ok(result);
                }
                Err(error) => error,
            },
            error = &mut self.sending => error,
        };
        Err(self.shared.request_error(error, self.awaited.was_sent()))
    }

    /// Notifies the server that the request is cancelled. A legacy server may still respond; the
    /// returned request waits for that.
    pub async fn cancel(self, reason: &str) -> Option<Self> {
        let Self { shared, awaited, sending } = self;
        // Over Streamable HTTP, the end of the stream cancels the request at a modern server.
        if shared.era == Era::Modern && matches!(shared.transport, Transport::Streamable(_)) {
            return None;
        }
        let params = json!({ "requestId": awaited.id(), "reason": reason });
        let notified = shared.notify(methods::CANCELLED, Some(params));
        if tokio::time::timeout(STOP_TIMEOUT, notified).await.is_err() {
            tracing::debug!("the server does not read that a request was cancelled");
        }
        Some(Self { shared, awaited, sending })
    }
}

/// Waits for the answer to a cancelled request; for ever if it has no way back.
pub async fn answered(cancelled: Option<PendingRequest>) {
    match cancelled {
        Some(mut request) => drop(request.response().await),
        None => std::future::pending().await,
    }
}

impl Shared {
    async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), RequestError> {
        let params = self.meta.notification(params).map_err(RequestError::Refused)?;
        let sent = self.transport.send(notification_message(method, params)).await;
        sent.map_err(|error| self.request_error(error, true))
    }

    fn request_error(&self, error: ExchangeError, was_sent: bool) -> RequestError {
        let place = match &self.endpoint {
            Endpoint::Stdio(_) | Endpoint::InProcess(_) => "the server".to_owned(),
            Endpoint::Http(endpoint) => place(&endpoint.url),
        };
        let (cause, message) = match error {
            ExchangeError::Refused(mut error) => {
                error.message = self.redactor.clean(&error.message);
                if let Some(data) = &mut error.data {
                    self.redactor.clean_value(data);
                }
                return RequestError::Refused(error);
            }
            ExchangeError::Unreadable(why) => {
                return RequestError::Unreadable(self.redactor.line(&why));
            }
            ExchangeError::Closed => {
                let cause =
                    if was_sent { TransportFailure::Closed } else { TransportFailure::NotSent };
                (cause, "the connection to the server ended".to_owned())
            }
            ExchangeError::NoResponse => (
                TransportFailure::NoResponse,
                "the server closed the stream before it sent the response".to_owned(),
            ),
            ExchangeError::Http(error) => {
                let unreachable = error.unreachable(&place);
                match (error.status(), unreachable) {
                    (Some(status), _) => (
                        TransportFailure::Status(status),
                        format!("{place} answered HTTP {status}"),
                    ),
                    (None, Some(reason)) => (TransportFailure::Unreachable, reason),
                    (None, None) => {
                        let message = error.to_string();
                        (error.into_transport_failure(), message)
                    }
                }
            }
        };
        RequestError::Transport { cause, message: self.redactor.line(&message) }
    }
}

impl fmt::Debug for RawConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RawConnection")
            .field("endpoint", &self.shared.endpoint)
            .field("era", &self.era)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PendingRequest")
            .field("id", &self.awaited.id())
            .finish_non_exhaustive()
    }
}

impl Drop for RawConnection {
    fn drop(&mut self) {
        self.shared.exchange.close();
    }
}
