//! One live connection to a server.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        ClientRequest, GetExtensions, JsonObject, RequestMetaObject, ServerResult,
        SubscriptionFilter,
    },
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::{Era, ServerName};

use crate::{
    backoff::Backoff,
    error::{CallError, Failure},
    handshake::{Handshake, Running},
    listing::{self, Listing},
    process::Process,
    raw, reasons,
    redact::Redactor,
    respondent::Respondent,
    spec::Limits,
    tap::{Heard, Ticket},
};

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with each report.
    pub progress: f64,
    /// What it grows towards, if known.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// `_meta` for the server. Keys that belong to the connection are left out.
    pub meta: Option<JsonObject>,
    /// Gets the progress, in order. A slow reader loses steps.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Ends the call; the server is told.
    pub cancel: CancellationToken,
    /// Answers what the server asks before it has a result. Without one its questions are refused.
    pub respondent: Option<Arc<dyn Respondent>>,
}

/// A connection whose handshake is done. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Connection {
    about: About,
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    cancel: CancellationToken,
    closed: watch::Receiver<bool>,
    /// Told when a call found nobody at the other end.
    doubted: Notify,
    pub(crate) handshake: Handshake,
    /// The child, where there is one.
    pub(crate) process: Option<Arc<Process>>,
}

/// What a connection has to know of its server.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) server: ServerName,
    /// Where it is, for texts; of a child, nothing.
    pub(crate) place: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) redactor: Redactor,
}

/// Why a call came to nothing.
pub(crate) enum CallFailure {
    /// The connection was over before anything was sent: another one may be tried.
    NotSent,
    Failed(CallError),
}

/// How the wait for an answer ended.
enum Wait {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Closed,
    Cancelled,
    TimedOut { limit: Duration, total: bool },
}

/// `_meta` keys that say who speaks on this connection, and how. Ours are not the caller's.
const CONNECTION_META: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// How long what a child still has in its pipe may take after its end.
const AFTERMATH: Duration = Duration::from_millis(500);

impl Connection {
    pub(crate) fn new(
        about: About,
        (running, handshake): (Running, Handshake),
        heard: Arc<Heard>,
        cancel: CancellationToken,
        process: Option<Process>,
    ) -> Self {
        let peer = running.peer().clone();
        let process = process.map(Arc::new);
        let (close, closed) = watch::channel(false);
        let (child, end) = (process.clone(), cancel.clone());
        tokio::spawn(async move {
            let running = running.waiting();
            let mut running = std::pin::pin!(running);
            // A process that left its group can hold the pipes of a server that is long gone.
            let child_ended = async {
                match child {
                    Some(child) => child.exited().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = &mut running => {}
                () = child_ended => {
                    if tokio::time::timeout(AFTERMATH, &mut running).await.is_err() {
                        end.cancel();
                        let _ = running.await;
                    }
                }
            }
            close.send_replace(true);
        });
        let doubted = Notify::new();
        let connection = Self { about, peer, heard, cancel, closed, doubted, handshake, process };
        connection.listen_for_changes();
        connection
    }

    /// From 2026-07-28 on, notifications come only to those who ask for them.
    fn listen_for_changes(&self) {
        if self.handshake.era != Era::Modern || !self.handshake.announces_changes {
            return;
        }
        let (peer, heard, mut closed) =
            (self.peer.clone(), Arc::clone(&self.heard), self.closed.clone());
        let listening = async move {
            let mut backoff = Backoff::new();
            loop {
                let filter = SubscriptionFilter::builder().tools_list_changed().build();
                match peer.listen(filter).await {
                    Ok(mut subscription) => {
                        backoff.connected(std::time::Instant::now());
                        // The tap has heard them already; here they only have to be taken.
                        while let Ok(Some(_)) = subscription.next().await {}
                    }
                    Err(ServiceError::McpError(error)) => {
                        tracing::debug!(%error.message, "the server takes no subscription");
                        return;
                    }
                    Err(error) => tracing::debug!(%error, "the subscription ended"),
                }
                // Proxies end streams that are silent for long.
                tokio::time::sleep(backoff.next(std::time::Instant::now())).await;
                heard.list_changed.notify_one();
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = listening => {}
                _ = closed.wait_for(|closed| *closed) => {}
            }
        });
    }

    pub(crate) async fn list(&self) -> Result<Listing, ServiceError> {
        listing::list(&self.peer).await
    }

    /// Waits for a reason to list again: the server announced a change (any number of
    /// announcements is one reason), or a call met a sign that the server is gone.
    pub(crate) async fn list_is_due(&self) {
        tokio::select! {
            () = self.heard.list_changed.notified() => {}
            () = self.doubted.notified() => {}
        }
    }

    /// Asks for a look whether the server is still there.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Waits for the end of the connection.
    pub(crate) async fn closed(&self) {
        let mut closed = self.closed.clone();
        // A sender that is gone means the same.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// Ends the connection in order, and the child with it.
    pub(crate) async fn close(&self) {
        self.cancel.cancel();
        let _ = tokio::time::timeout(STOP_PATIENCE, self.closed()).await;
        if let Some(process) = &self.process {
            process.stop(STOP_PATIENCE).await;
        }
    }

    /// Sends a request and gives its result as it was sent. `about` is what it is about, for errors.
    pub(crate) async fn request(
        &self,
        about: &str,
        mut request: ClientRequest,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        let tool = about;
        let ticket = Ticket::new(options.progress);
        request.extensions_mut().insert(ticket.clone());
        // The limits are ours: rmcp's would be lost with a call that is cancelled.
        let mut request_options = PeerRequestOptions::no_options();
        request_options.meta = options.meta.map(caller_meta);
        let sent = self.peer.send_request_with_option(request, request_options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(ServiceError::TransportClosed) => return Err(CallFailure::NotSent),
            Err(error) => return Err(CallFailure::Failed(self.call_error(tool, error))),
        };
        let wait = self.wait(&mut handle, &ticket, &options.cancel).await;
        self.heard.forget(&handle.id);
        let server = self.about.server.clone();
        let error = match wait {
            Wait::Answered(answer) => match *answer {
                Ok(result) => return Ok(raw::result(result)),
                Err(error) => self.call_error(tool, error),
            },
            Wait::Closed if !ticket.was_sent() => return Err(CallFailure::NotSent),
            Wait::Closed => self.call_error(tool, ServiceError::TransportClosed),
            Wait::Cancelled => {
                tell_cancelled(handle, "cancelled by the caller").await;
                CallError::Cancelled
            }
            Wait::TimedOut { limit, total } => {
                tell_cancelled(handle, "no answer in time").await;
                CallError::TimedOut { server, tool: tool.to_owned(), limit, total }
            }
        };
        Err(CallFailure::Failed(error))
    }

    async fn wait(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        ticket: &Ticket,
        cancel: &CancellationToken,
    ) -> Wait {
        let limits = &self.about.limits;
        let total = tokio::time::sleep(limits.total);
        let idle = tokio::time::sleep(limits.idle);
        let (mut total, mut idle) = (std::pin::pin!(total), std::pin::pin!(idle));
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => return answer.map_or(Wait::Closed, |answer| Wait::Answered(Box::new(answer))),
                () = cancel.cancelled() => return Wait::Cancelled,
                () = &mut total => return Wait::TimedOut { limit: limits.total, total: true },
                () = ticket.progressed() => idle.as_mut().reset(Instant::now() + limits.idle),
                () = &mut idle => return Wait::TimedOut { limit: limits.idle, total: false },
            }
        }
    }

    fn call_error(&self, tool: &str, error: ServiceError) -> CallError {
        let (server, tool) = (self.about.server.clone(), tool.to_owned());
        let redactor = &self.about.redactor;
        match error {
            ServiceError::McpError(error) if raw::is_unreadable(&error) => CallError::Transport {
                server,
                tool,
                message: format!(
                    "its answer cannot be used: {}; the call itself was made",
                    redactor.line(&error.message)
                ),
            },
            ServiceError::McpError(mut error) => {
                error.message = redactor.clean(&error.message).into();
                if let Some(data) = &mut error.data {
                    redactor.clean_value(data);
                }
                CallError::Refused { server, tool, error }
            }
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            // A pipe that is closed is a child that is gone.
            ServiceError::TransportClosed | ServiceError::TransportSend(_)
                if self.process.is_some() =>
            {
                CallError::Stopped { server, tool }
            }
            ServiceError::TransportClosed => {
                self.doubt();
                let message = "the connection ended before the answer came, so that it is unknown \
                               whether the call took effect; it was not repeated"
                    .to_owned();
                CallError::Transport { server, tool, message }
            }
            other => self.transport_error(server, tool, &other),
        }
    }

    fn transport_error(&self, server: ServerName, tool: String, error: &ServiceError) -> CallError {
        let place = self.about.place.as_deref().unwrap_or("the server");
        if let Some(trouble) = reasons::trouble(error) {
            if !trouble.only_this_request {
                self.doubt();
            }
            return CallError::Unauthorized { server, tool, failure: trouble.failure.clone() };
        }
        let status = reasons::status(error);
        if status.is_none() {
            self.doubt();
        }
        if let Some(reason) = reasons::unreachable(error, place) {
            let reason = self.about.redactor.line(&reason);
            let failure = Failure { reason, action: reasons::START_OR_CORRECT.to_owned() };
            return CallError::NotConnected { server, failure };
        }
        let message = match status {
            Some(status) => format!("{place} answered HTTP {status}"),
            None => format!(
                "{}; whether the call took effect is unknown, and it was not repeated",
                reasons::plain(error)
            ),
        };
        CallError::Transport { server, tool, message: self.about.redactor.line(&message) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Tells the server, if it still listens, and lets rmcp forget the call.
async fn tell_cancelled(handle: RequestHandle<RoleClient>, reason: &str) {
    let telling = handle.cancel(Some(reason.to_owned()));
    match tokio::time::timeout(STOP_PATIENCE, telling).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the server could not be told of a cancellation"),
        Err(_) => tracing::debug!("the server does not take the word of a cancellation"),
    }
}

fn caller_meta(mut meta: JsonObject) -> RequestMetaObject {
    meta.retain(|key, _| !CONNECTION_META.contains(&key.as_str()));
    let mut own = RequestMetaObject::new();
    for (key, value) in meta {
        own.insert(key, value);
    }
    own
}
