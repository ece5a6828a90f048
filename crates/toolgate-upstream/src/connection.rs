//! One live connection to a server.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    Era, JsonObject,
    client::{
        Backoff, CallHold, ConnectionClient, PERSON_TIMEOUT, RawConnection, Redactor, RequestError,
        ServerLimits, answered,
    },
    extensions, meta, methods,
};

use crate::{
    call_queue::{CallSlot, QueuedCaller},
    calls::{ConnectionState, ListFailed, PendingCall},
    error::CallError,
    handshake::Handshake,
    input_handler::{self, InputHandler},
    input_required::{InputRequired, MAX_ROUNDS, UnansweredInput},
};

mod errors;

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with each report.
    pub progress: f64,
    /// What it grows towards, if known.
    pub total: Option<f64>,
    /// A text for a person.
    pub message: Option<String>,
}

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// `_meta` for the server. Keys that belong to the connection are left out.
    pub meta: Option<JsonObject>,
    /// Receives the progress in order. A slow reader loses reports.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Cancels the call, and notifies the server.
    pub cancel: CancellationToken,
    /// Answers the input requests of the server. Without one they are refused.
    pub input_handler: Option<Arc<dyn InputHandler>>,
    /// Says at the moment of sending whether the call may still be sent. Without one it may.
    pub send_check: Option<SendCheck>,
    /// Dropped when the server no longer works on the call: when it has answered, or some time after
    /// nobody waits any more.
    pub hold: Option<CallHold>,
}

/// Says whether a call may still be sent: the definition of the tool can change while the call waits
/// for a connection, for a slot or for a person.
#[derive(Clone)]
pub struct SendCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl SendCheck {
    /// A check that returns `true` if the call may be sent. It must return soon.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for SendCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SendCheck")
    }
}

/// A connection whose handshake is done. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Connection {
    about: AboutServer,
    pub(crate) raw: Arc<RawConnection>,
    pub(crate) state: Arc<ConnectionState>,
    /// Notified when a call found that the server may be gone.
    doubted: Notify,
    pub(crate) handshake: Handshake,
}

/// The name, limits and secrets of the server.
#[derive(Debug, Clone)]
pub(crate) struct AboutServer {
    pub(crate) name: ServerName,
    pub(crate) limits: ServerLimits,
    pub(crate) redactor: Redactor,
}

/// Why a call failed.
pub(crate) enum CallFailure {
    /// The connection had ended before anything was sent. The call may use another one.
    NotSent,
    Failed(CallError),
}

const ONE_CLIENT: &str = "the server asks for input, so that it is given the calls of one client \
                          at a time; those of others did not end";
const PERSON_ELSEWHERE: &str = "the server has asked for input and waits for a person at another \
                                client; nothing was sent, try again later";
/// `_meta` keys that belong to the connection and not to the caller.
const CONNECTION_META: [&str; 4] =
    [meta::PROGRESS_TOKEN, meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES];

/// toolgate as a client of a server that connects now, with the extensions that its clients have declared so far. A
/// modern server learns with each call what its caller can answer and which extensions it has.
pub(crate) fn client(extensions: &JsonObject) -> ConnectionClient {
    let mut declared = JsonObject::new();
    let views = json!({ "mimeTypes": [extensions::UI_MIME_TYPE] });
    declared.insert(extensions::UI.to_owned(), views);
    extensions::merge(&mut declared, extensions);
    let capability = (extensions::CAPABILITY.to_owned(), Value::Object(declared));
    let mut legacy_capabilities = input_handler::all_capabilities();
    legacy_capabilities.extend([capability.clone()]);
    ConnectionClient {
        info: json!({ "name": "toolgate", "version": env!("CARGO_PKG_VERSION") }),
        legacy_capabilities,
        modern_capabilities: JsonObject::from_iter([capability]),
    }
}

impl Connection {
    pub(crate) fn new(about: AboutServer, raw: RawConnection, state: Arc<ConnectionState>) -> Self {
        let (handshake, raw) = (Handshake::read(&raw), Arc::new(raw));
        let connection = Self { about, raw, state, doubted: Notify::new(), handshake };
        connection.listen_for_changes();
        connection
    }

    /// Subscribes to changes of lists: a modern server notifies only those who ask for it.
    fn listen_for_changes(&self) {
        let Some(wanted) = self.handshake.announced().filter(|_| self.handshake.era == Era::Modern)
        else {
            return;
        };
        let (raw, state) = (Arc::downgrade(&self.raw), Arc::clone(&self.state));
        tokio::spawn(async move {
            let mut backoff = Backoff::default();
            loop {
                let Some(connection) = raw.upgrade().filter(|raw| !raw.is_closed()) else { return };
                let params = json!({ "notifications": wanted });
                let listening = connection.begin(Value::Null, methods::LISTEN, Some(params));
                drop(connection);
                backoff.connected(Instant::now().into_std());
                let ended = match listening {
                    Ok(mut listening) => listening.response().await,
                    Err(error) => Err(error),
                };
                match ended {
                    Err(RequestError::Refused(error)) => {
                        tracing::debug!(%error, "the server accepts no subscription");
                        return;
                    }
                    Err(error) => tracing::debug!(%error, "the subscription ended"),
                    Ok(_) => {}
                }
                // Proxies end streams that are silent for long.
                tokio::time::sleep(backoff.next(Instant::now().into_std())).await;
                state.lists.announce();
            }
        });
    }

    /// Waits for a reason to list again: the server announced changes, or a call found that the
    /// server may be gone.
    pub(crate) async fn list_is_due(&self) {
        tokio::select! {
            () = self.state.lists.due() => {}
            () = self.doubted.notified() => {}
        }
    }

    /// Waits until a call may be sent: the announced list was fetched within the limits of the call,
    /// and the definition of the tool is the one that the call was judged by.
    async fn checked(
        &self,
        about: &str,
        check: &SendCheck,
        options: &CallOptions,
        limits: &ServerLimits,
    ) -> Result<(), CallFailure> {
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        let limit = limits.idle.min(limits.total);
        let missing = tokio::select! {
            current = self.state.lists.current(|| self.doubt()) => {
                current.err().map(|ListFailed| "could not be fetched".to_owned())
            }
            () = options.cancel.cancelled() => {
                return Err(CallFailure::Failed(CallError::Cancelled));
            }
            () = self.raw.closed() => return Err(CallFailure::NotSent),
            () = tokio::time::sleep(limit) => {
                Some(format!("did not come within {} s", limit.as_secs_f64()))
            }
        };
        if let Some(why) = missing {
            return Err(CallFailure::Failed(CallError::DefinitionUnknown { server, tool, why }));
        }
        if !(check.0)() {
            return Err(CallFailure::Failed(CallError::DefinitionChanged { server, tool }));
        }
        Ok(())
    }

    /// Waits for this long, or until a call needs an answer, and requests a check.
    pub(crate) async fn doubt_after(&self, pause: Duration) {
        let _ = tokio::time::timeout(pause, self.doubted.notified()).await;
        self.doubt();
    }

    /// Requests a check whether the server still responds.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Sends a request and returns the result as the server sent it. `about` names the tool or the
    /// method, for errors. The caller's input handler answers the input requests of the server.
    pub(crate) async fn request(
        &self,
        about: &str,
        method: &str,
        mut params: JsonObject,
        options: &CallOptions,
    ) -> Result<Value, CallFailure> {
        let mut limits = self.about.limits;
        if method == methods::LISTEN {
            // It has no response until it ends.
            (limits.idle, limits.total) = (Duration::MAX, Duration::MAX);
        }
        let mut slot = self.slot(about, options, limits.total).await?;
        let mut person_time = PERSON_TIMEOUT;
        for round in 0.. {
            let started = Instant::now();
            let sent = self.send(about, method, params.clone(), options, &limits, &mut slot).await;
            let result = match sent {
                // A person must not be asked the same again.
                Err(CallFailure::NotSent) if round > 0 => return Err(self.lost(about)),
                sent => sent?,
            };
            limits.total = limits.total.saturating_sub(started.elapsed());
            let Some(required) = InputRequired::read(&result) else { return Ok(result) };
            let required = required.map_err(|why| self.unusable(about, why))?;
            if round == MAX_ROUNDS {
                break;
            }
            let started = Instant::now();
            let answering = async {
                tokio::time::sleep(required.pause(round)).await;
                required.ask(&self.about.name, options.input_handler.as_deref()).await
            };
            let answers = tokio::select! {
                biased;
                () = options.cancel.cancelled() => Err(CallError::Cancelled),
                answers = answering => answers.map_err(|unanswered| self.unanswered(about, unanswered)),
                () = tokio::time::sleep(person_time) => {
                    Err(self.unanswered(about, UnansweredInput::Late))
                }
            };
            person_time = person_time.saturating_sub(started.elapsed());
            required.answer(&mut params, answers.map_err(CallFailure::Failed)?);
        }
        Err(self.unusable(about, "the server asks without end"))
    }

    /// Waits until a call may be made. Only legacy servers have a queue: the open calls show for
    /// which caller their input requests are.
    async fn slot(
        &self,
        about: &str,
        options: &CallOptions,
        limit: Duration,
    ) -> Result<Option<CallSlot>, CallFailure> {
        if self.handshake.era != Era::Legacy {
            return Ok(None);
        }
        let caller = QueuedCaller::of(options.input_handler.as_ref());
        tokio::select! {
            biased;
            () = options.cancel.cancelled() => Err(CallFailure::Failed(CallError::Cancelled)),
            slot = self.state.slot(caller) => {
                slot.map(Some).ok_or_else(|| self.transport(about, PERSON_ELSEWHERE.to_owned()))
            }
            () = self.raw.closed() => Err(CallFailure::NotSent),
            () = tokio::time::sleep(limit) => {
                let seconds = limit.as_secs_f64();
                let message = format!("{ONE_CLIENT} within {seconds} s, and nothing was sent");
                Err(self.transport(about, message))
            }
        }
    }

    /// Sends a request once, and returns its result within `limits`. A cancelled call keeps its
    /// slot until the server responds.
    async fn send(
        &self,
        about: &str,
        method: &str,
        mut params: JsonObject,
        options: &CallOptions,
        limits: &ServerLimits,
        slot: &mut Option<CallSlot>,
    ) -> Result<Value, CallFailure> {
        let started = Instant::now();
        if let Some(check) = &options.send_check {
            self.checked(about, check, options, limits).await?;
        }
        if options.cancel.is_cancelled() {
            return Err(CallFailure::Failed(CallError::Cancelled));
        }
        let call = PendingCall::new(options.progress.clone(), options.input_handler.clone());
        let key = self.state.add(Arc::clone(&call));
        self.add_meta(&mut params, key, options);
        let begun = self.raw.begin(json!(key), method, Some(Value::Object(params)));
        let mut request = begun.map_err(|error| {
            self.state.forget(key);
            self.failed(about, error)
        })?;
        let open = &call.open_input_requests;
        let total = limits.total.saturating_sub(started.elapsed());
        let total = open.elapse(total, PERSON_TIMEOUT);
        let idle = open.elapse(limits.idle, PERSON_TIMEOUT);
        let (mut total, mut idle) = (std::pin::pin!(total), std::pin::pin!(idle));
        let (error, reason) = loop {
            tokio::select! {
                biased;
                response = request.response() => {
                    call.over.cancel();
                    self.state.forget(key);
                    return response.map_err(|error| self.failed(about, error));
                }
                () = options.cancel.cancelled() => {
                    break (CallFailure::Failed(CallError::Cancelled), "cancelled by the caller");
                }
                () = &mut total => {
                    let limit = self.about.limits.total;
                    break (self.timed_out(about, limit, true), "no answer in time");
                }
                () = call.progressed() => idle.set(open.elapse(limits.idle, PERSON_TIMEOUT)),
                () = &mut idle => {
                    break (self.timed_out(about, limits.idle, false), "no answer in time");
                }
            }
        };
        call.over.cancel();
        let request = request.cancel(reason).await;
        let kept = (slot.take(), options.hold.clone());
        let is_held = kept.1.is_some();
        self.state.abandon(key, kept, async move {
            if request.is_some() || is_held {
                answered(request).await;
            }
        });
        Err(error)
    }

    /// Adds the caller's `_meta`, the progress token and, for a modern server, the input
    /// capabilities of the caller.
    fn add_meta(&self, params: &mut JsonObject, key: i64, options: &CallOptions) {
        let mut all = match params.remove("_meta") {
            Some(Value::Object(own)) => own,
            _ => JsonObject::new(),
        };
        all.extend(options.meta.clone().unwrap_or_default());
        all.retain(|key, _| !CONNECTION_META.contains(&key.as_str()));
        all.insert(meta::PROGRESS_TOKEN.to_owned(), json!(key));
        if self.handshake.era == Era::Modern
            && let Some(handler) = &options.input_handler
        {
            let capabilities = input_handler::input_capabilities(handler.as_ref());
            all.insert(meta::CLIENT_CAPABILITIES.to_owned(), Value::Object(capabilities));
        }
        params.insert("_meta".to_owned(), Value::Object(all));
    }
}
