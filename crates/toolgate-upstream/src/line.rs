//! One connection for one client: everything of the protocol, as it was sent.
//!
//! A [`Line`] knows what it has to know to keep a connection, and nothing of what is said over it.
//! Requests, results, errors, notifications and questions pass as JSON, in both directions. rmcp is not
//! part of it: its client chooses progress tokens and the shape of `_meta`, knows a fixed set of
//! subscriptions, and answers what it does not know by itself. What a line needs is less: ids, and
//! who waits for which.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{Era, ErrorObject, JsonObject, methods};

use crate::{
    clock::PERSON_PATIENCE,
    error::ConnectFailure,
    input_handler::InputRequest,
    raw, reasons,
    spec::{Endpoint, ServerSpec, place},
    watchdog::Watchdog,
};

mod connect;
mod dress;
mod exchange;
mod greeting;
mod pipes;
mod post;
mod trouble;
mod web;
mod wire;

use dress::Dress;
use exchange::Exchange;
use trouble::Trouble;
use wire::Wire;

/// Whom a line is for.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionClient {
    /// Its `Implementation`, as the client sent it.
    pub info: Value,
    /// What it can be asked, as the client sent it.
    pub capabilities: JsonObject,
}

/// Gets what a server sends of its own accord. Called in the order in which it came.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// The server tells something. `about` is the key of the request that it belongs to, where that
    /// is known: progress by its token, a subscription by its id, and over HTTP whatever comes on the
    /// stream of a request. Must return soon.
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>);

    /// The server asks something. The answer goes back as it is. It is dropped when the server
    /// withdraws the question or the line ends. `about` is known as for notifications, and where only
    /// one request is under way.
    fn question(
        &self,
        about: Option<&Value>,
        question: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>>;
}

/// A request of the client.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The caller's id for it.
    pub key: Value,
    /// Its method.
    pub method: String,
    /// Its parameters as the client sent them, `_meta` included.
    pub params: Option<Value>,
    /// Ends it; the server is told.
    pub cancel: CancellationToken,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RequestError {
    /// The server answered with a JSON-RPC error. The line is still there.
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    /// The caller cancelled; the server was told.
    #[error("the request was cancelled")]
    Cancelled,
    /// No answer in time. The server was told to cancel. The line is still there.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The message could not be delivered, or its answer not be read; whether it took effect is
    /// unknown. [`Line::closed`] tells whether the line is still there.
    #[error("{0}")]
    Transport(String),
}

/// A connection to one server, for one client. Dropping it ends it, and the server's process with it.
pub struct RawConnection {
    spec: ServerSpec,
    era: Era,
    greeting: Value,
    dress: Dress,
    exchange: Arc<Exchange>,
    wire: Wire,
}

/// One for all lines: it costs a process.
static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(Watchdog::default);

impl RawConnection {
    /// Connects: in the era that [`ServerSpec::remembered_era`] names where it does, and in the newest
    /// that the server speaks otherwise.
    pub async fn open(
        spec: &ServerSpec,
        client: ConnectionClient,
        sink: Arc<dyn ConnectionHandler>,
    ) -> Result<Self, ConnectFailure> {
        let limit = spec.limits.connect;
        match tokio::time::timeout(limit, greeting::open(spec, client, sink)).await {
            Ok(line) => line,
            Err(_) => Err(ConnectFailure {
                reason: format!("no answer to the handshake within {} s", limit.as_secs_f64()),
                action: "raise `connectTimeoutSeconds` of the server".to_owned(),
            }),
        }
    }

    /// The lifecycle that the server speaks on this line.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The result of `initialize` or `server/discover`, as it was sent.
    pub fn greeting(&self) -> &Value {
        &self.greeting
    }

    /// Sends a request and gives its result as it was sent. `subscriptions/listen` lives until it is
    /// cancelled or the server ends it; everything else has the server's `total` limit, in which the
    /// time that people need for questions does not count. The server is told of a request that is
    /// cancelled, not of one that is only waited for no longer.
    pub async fn request(&self, request: RawRequest) -> Result<Value, RequestError> {
        let RawRequest { key, method, params, cancel } = request;
        if cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        let params = self.dress.request(params).map_err(RequestError::Refused)?;
        let mut waiting = self.exchange.begin(key, &method, params.as_ref());
        let id = waiting.id();
        let limit = self.spec.limits.total;
        let in_time = async {
            if method == methods::LISTEN {
                std::future::pending::<()>().await;
            } else {
                self.exchange.asking().elapse(limit, PERSON_PATIENCE).await;
            }
        };
        // Boxed, since it is large and who calls this has futures of its own.
        let carrying = Box::pin(self.wire.carry(id, &method, params));
        let (error, reason) = tokio::select! {
            biased;
            answer = waiting.answered() => return answer.map_err(|trouble| self.error(&trouble)),
            () = cancel.cancelled() => (RequestError::Cancelled, "cancelled by the caller"),
            trouble = carrying => return Err(self.error(&trouble)),
            () = in_time => (RequestError::TimedOut(limit), "no answer in time"),
        };
        drop(waiting);
        if self.wire.is_told_of_cancellations(self.era) {
            let params = json!({ "requestId": id, "reason": reason });
            let telling = self.notify(methods::CANCELLED, Some(params));
            let _ = tokio::time::timeout(STOP_PATIENCE, telling).await;
        }
        Err(error)
    }

    /// Sends a notification of the client. Those of the connection itself, `notifications/initialized`
    /// and the cancellation of requests, are sent by the line.
    pub async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), RequestError> {
        let params = self.dress.notification(params).map_err(RequestError::Refused)?;
        Box::pin(self.wire.notify(method, params)).await.map_err(|trouble| self.error(&trouble))
    }

    /// Waits for the end of the line.
    pub async fn closed(&self) {
        self.exchange.closed().await;
    }

    /// Ends the line in order: a child gets the time that the protocol gives it, and a session is
    /// taken leave of.
    pub async fn close(&self) {
        self.wire.close(STOP_PATIENCE).await;
        self.exchange.close();
    }

    fn error(&self, trouble: &Trouble) -> RequestError {
        let redactor = self.spec.endpoint.redactor();
        let place = match &self.spec.endpoint {
            Endpoint::Stdio(_) => "the server".to_owned(),
            Endpoint::Http(endpoint) => place(&endpoint.url),
        };
        let text = match trouble {
            Trouble::Refused(error) if raw::is_unreadable(error) => {
                format!("the server's answer cannot be used: {}", error.message)
            }
            Trouble::Refused(error) => {
                let mut error = error.clone();
                error.message = redactor.clean(&error.message);
                if let Some(data) = &mut error.data {
                    redactor.clean_value(data);
                }
                return RequestError::Refused(error);
            }
            Trouble::Closed => "the connection to the server ended".to_owned(),
            Trouble::NoAnswer => "the server ended its answer before it was there".to_owned(),
            Trouble::Http(error) => match reasons::unreachable(error.as_ref(), &place) {
                Some(reason) => reason,
                None => match reasons::status(error.as_ref()) {
                    Some(status) => format!("{place} answered HTTP {status}"),
                    None => reasons::plain(error.as_ref()),
                },
            },
        };
        RequestError::Transport(redactor.line(&text))
    }
}

/// How long a server is given to take its leave, and to be told of a cancellation.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

impl fmt::Debug for RawConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (spec, era) = (&self.spec, &self.era);
        formatter
            .debug_struct("RawConnection")
            .field("spec", spec)
            .field("era", era)
            .finish_non_exhaustive()
    }
}

impl Drop for RawConnection {
    fn drop(&mut self) {
        self.exchange.close();
    }
}
