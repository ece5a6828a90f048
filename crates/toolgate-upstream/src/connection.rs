//! One live connection to a server.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientRequest, GetExtensions, RequestMetaObject, ServerResult, SubscriptionFilter},
    service::{Peer, PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{Era, JsonObject, meta, methods};

use crate::{
    backoff::Backoff,
    clock::PERSON_PATIENCE,
    error::CallError,
    handshake::{Handshake, Running},
    input::{InputRequired, MAX_ROUNDS, Unanswered},
    input_handler::{self, InputHandler},
    listing::{self, Listing},
    process::Process,
    raw,
    redact::Redactor,
    spec::ServerLimits,
    tap::Heard,
    ticket::Ticket,
    turns::{Caller, Turn},
};

mod errors;

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
    pub input_handler: Option<Arc<dyn InputHandler>>,
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
    pub(crate) limits: ServerLimits,
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
const CONNECTION_META: [&str; 4] =
    [meta::PROGRESS_TOKEN, meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES];

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
        let filter = self.handshake.announced();
        if self.handshake.era != Era::Modern || filter == SubscriptionFilter::default() {
            return;
        }
        let (peer, heard, mut closed) =
            (self.peer.clone(), Arc::clone(&self.heard), self.closed.clone());
        let listening = async move {
            let mut backoff = Backoff::new();
            loop {
                match peer.listen(filter.clone()).await {
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
    /// What the server asks before it has a result is answered by the caller's respondent.
    pub(crate) async fn request(
        &self,
        about: &str,
        mut request: ClientRequest,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        let mut limits = self.about.limits;
        if request.method() == methods::LISTEN {
            // It has no answer until it is ended.
            (limits.idle, limits.total) = (Duration::MAX, Duration::MAX);
        }
        let mut turn = self.turn(about, &options, limits.total).await?;
        let mut patience = PERSON_PATIENCE;
        for round in 0.. {
            let started = Instant::now();
            let sent = self.send(about, request.clone(), &options, &limits, &mut turn).await;
            let result = match sent {
                // Whoever was asked is not to be asked all over again.
                Err(CallFailure::NotSent) if round > 0 => {
                    return Err(self.failed(about, ServiceError::TransportClosed));
                }
                sent => sent?,
            };
            limits.total = limits.total.saturating_sub(started.elapsed());
            let Some(asked) = InputRequired::read(&result) else { return Ok(result) };
            let asked = asked.map_err(|why| self.unusable(about, why))?;
            if round == MAX_ROUNDS {
                break;
            }
            let started = Instant::now();
            let answering = async {
                tokio::time::sleep(asked.pause(round)).await;
                asked.ask(options.input_handler.as_deref()).await
            };
            let answers = tokio::select! {
                biased;
                () = options.cancel.cancelled() => Err(CallError::Cancelled),
                answers = answering => answers.map_err(|unanswered| self.unanswered(about, unanswered)),
                () = tokio::time::sleep(patience) => Err(self.unanswered(about, Unanswered::Late)),
            };
            patience = patience.saturating_sub(started.elapsed());
            asked.answer(&mut request, answers.map_err(CallFailure::Failed)?);
        }
        Err(self.unusable(about, "the server asks without end"))
    }

    /// Waits until a call may be made. Whom a question of the older protocol is for shows in whose
    /// calls are under way.
    async fn turn(
        &self,
        about: &str,
        options: &CallOptions,
        limit: Duration,
    ) -> Result<Option<Turn>, CallFailure> {
        if self.handshake.era != Era::Legacy {
            return Ok(None);
        }
        let caller = Caller::of(options.input_handler.as_ref());
        tokio::select! {
            biased;
            () = options.cancel.cancelled() => Err(CallFailure::Failed(CallError::Cancelled)),
            turn = self.heard.turn(caller) => {
                turn.map(Some).ok_or_else(|| self.person_elsewhere(about))
            }
            () = self.closed() => Err(CallFailure::NotSent),
            () = tokio::time::sleep(limit) => Err(self.no_turn(about, limit)),
        }
    }

    /// Sends a request once, and gives its result within `limits`. A call that is given up before it
    /// is answered keeps its turn.
    async fn send(
        &self,
        about: &str,
        mut request: ClientRequest,
        options: &CallOptions,
        limits: &ServerLimits,
        turn: &mut Option<Turn>,
    ) -> Result<Value, CallFailure> {
        let ticket = Ticket::new(options.progress.clone(), options.input_handler.clone());
        request.extensions_mut().insert(ticket.clone());
        // The limits are ours: rmcp's would be lost with a call that is cancelled.
        let mut request_options = PeerRequestOptions::no_options();
        request_options.meta = Some(self.meta(options));
        let sent = self.peer.send_request_with_option(request, request_options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(ServiceError::TransportClosed) => return Err(CallFailure::NotSent),
            Err(error) => return Err(self.failed(about, error)),
        };
        let wait = self.wait(&mut handle, &ticket, &options.cancel, limits).await;
        ticket.end();
        match wait {
            Wait::Answered(answer) => {
                self.heard.forget(&handle.id);
                (*answer).map(raw::result).map_err(|error| self.failed(about, error))
            }
            Wait::Closed if !ticket.was_sent() => Err(CallFailure::NotSent),
            Wait::Closed => Err(self.failed(about, ServiceError::TransportClosed)),
            Wait::Cancelled => {
                self.heard.abandon(&handle.id, turn.take());
                tell_cancelled(handle, "cancelled by the caller").await;
                Err(CallFailure::Failed(CallError::Cancelled))
            }
            Wait::TimedOut { limit, total } => {
                self.heard.abandon(&handle.id, turn.take());
                tell_cancelled(handle, "no answer in time").await;
                Err(self.timed_out(about, limit, total))
            }
        }
    }

    async fn wait(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        ticket: &Ticket,
        cancel: &CancellationToken,
        limits: &ServerLimits,
    ) -> Wait {
        let asking = ticket.asking();
        let total = asking.elapse(limits.total, PERSON_PATIENCE);
        let idle = asking.elapse(limits.idle, PERSON_PATIENCE);
        let (mut total, mut idle) = (std::pin::pin!(total), std::pin::pin!(idle));
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => return answer.map_or(Wait::Closed, |answer| Wait::Answered(Box::new(answer))),
                () = cancel.cancelled() => return Wait::Cancelled,
                () = &mut total => {
                    let limit = self.about.limits.total;
                    return Wait::TimedOut { limit, total: true };
                },
                () = ticket.progressed() => idle.set(asking.elapse(limits.idle, PERSON_PATIENCE)),
                () = &mut idle => return Wait::TimedOut { limit: limits.idle, total: false },
            }
        }
    }

    /// What goes with a request: the caller's own words, and to a server of the newer protocol what
    /// the caller can be asked.
    fn meta(&self, options: &CallOptions) -> RequestMetaObject {
        let mut meta = options.meta.clone().map(caller_meta).unwrap_or_default();
        if self.handshake.era == Era::Modern
            && let Some(respondent) = &options.input_handler
        {
            let askable = input_handler::askable(respondent.as_ref());
            meta.insert(meta::CLIENT_CAPABILITIES.to_owned(), Value::Object(askable));
        }
        meta
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
