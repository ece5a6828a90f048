//! One live connection to a server.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    Era, ErrorObject, JsonObject, LogLevel,
    client::{
        Backoff, CallHold, ConnectionClient, PERSON_TIMEOUT, RawConnection, Redactor, RequestError,
        ServerLimits, answered,
    },
    extensions, meta, methods,
};

use crate::{
    announced_lists::ListFailed,
    calls::{CallStage, ConnectionState, OpenCall, PendingCall},
    error::CallError,
    handshake::Handshake,
    input_handler::{self, CallClient, InputHandler},
    input_required::{InputRequired, MAX_ROUNDS, UnansweredInput},
};

mod errors;
pub(crate) mod logs;
mod progress;
mod tasks;

pub use logs::LogSink;
pub use progress::Progress;

/// A notification that belongs to a `subscriptions/listen`.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionEvent {
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Option<Value>,
}

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Who calls, where each caller has their own login at the server.
    pub caller: Option<Arc<str>>,
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
    /// Receives the log messages of the server that belong to the call. Without one there are none.
    pub log: Option<LogSink>,
    /// Receives the acknowledgement of a `subscriptions/listen`, and the notifications of extensions that toolgate does
    /// not know and that belong to it.
    pub subscription: Option<mpsc::Sender<SubscriptionEvent>>,
    /// Whether the caller gets the refusal of a server as a text, and so cannot see what it requires.
    pub gets_texts: bool,
    /// Whether the call can be made twice without harm.
    pub is_repeatable: bool,
    /// Whether the server takes the call only as a task (`taskSupport`), in the legacy era.
    pub needs_task: bool,
    /// Given if the caller can fetch the result later. Notified when the call will take long: its server has made
    /// a task of it, or a person decides elsewhere. The call waits for its end all the same.
    pub became_task: Option<Arc<Notify>>,
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
    /// The level of `logging/setLevel`, once it was sent.
    log_level: Mutex<Option<LogLevel>>,
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

const ASKS_WITHOUT_END: &str = "the server asks without end";
/// How long a call waits until its server says that a visit to a page is done.
const VISIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call may be refused until a person has visited a page.
const MAX_VISITS: usize = 3;
/// How long a server may take to answer a ping. Most servers that do not are busy.
const PING_TIMEOUT: Duration = Duration::from_millis(200);
/// `_meta` keys that belong to the connection and not to the caller.
const CONNECTION_META: [&str; 5] = [
    meta::PROGRESS_TOKEN,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
];

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
        legacy_version: None,
        legacy_capabilities,
        modern_capabilities: JsonObject::from_iter([capability]),
    }
}

impl Connection {
    pub(crate) fn new(about: AboutServer, raw: RawConnection, state: Arc<ConnectionState>) -> Self {
        let (handshake, raw) = (Handshake::read(&raw), Arc::new(raw));
        let _ = state.extensions.set(extensions::declared(&handshake.capabilities));
        let (doubted, log_level) = (Notify::new(), Mutex::new(None));
        let connection = Self { about, raw, state, doubted, handshake, log_level };
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
                let params = json!({ "notifications": &wanted });
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
                state.may_have_missed_changes(&wanted);
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
        params: &JsonObject,
        options: &CallOptions,
    ) -> Result<Value, CallFailure> {
        let mut params = Cow::Borrowed(params);
        let mut limits = self.about.limits;
        if method == methods::LISTEN {
            if self.handshake.era == Era::Legacy {
                let error = ErrorObject::method_not_found(method);
                return Err(self.failed(about, RequestError::Refused(error)));
            }
            // It has no response until it ends.
            (limits.idle, limits.total) = (Duration::MAX, Duration::MAX);
        }
        self.set_log_level(method, &params, options).await;
        let is_task = method == methods::TOOLS_CALL && self.add_task(&mut params, options);
        let mut person_time = PERSON_TIMEOUT;
        let mut visited = Vec::new();
        for round in 0.. {
            let started = Instant::now();
            let sent =
                self.send_kept(about, method, JsonObject::clone(&params), options, &limits).await;
            if let Some(visits) = required_visits(&sent, options)
                && visited.len() < MAX_VISITS
                && !visited.contains(&visits)
            {
                limits.total = limits.total.saturating_sub(started.elapsed());
                if self.visited(about, &visits, options, &mut person_time).await? {
                    visited.push(visits);
                    continue;
                }
                return sent.map(|(result, _)| result);
            }
            let (result, call) = match sent {
                // A person must not be asked the same again.
                Err(CallFailure::NotSent) if round > 0 => return Err(self.lost(about)),
                sent => sent?,
            };
            limits.total = limits.total.saturating_sub(started.elapsed());
            if is_task
                && let Some(task) =
                    self.task_of(&result).map_err(|why| self.unusable_task(about, why))?
            {
                return self.follow(about, (task, call), options, limits, person_time).await;
            }
            drop(call);
            let Some(required) = InputRequired::read(&result) else { return Ok(result) };
            let required = required.map_err(|why| self.unusable(about, why))?;
            if round == MAX_ROUNDS {
                break;
            }
            let pause = required.pause(round);
            let answers = self.answers(about, &required, pause, options, &mut person_time).await?;
            required.answer(params.to_mut(), answers);
        }
        Err(self.unusable(about, ASKS_WITHOUT_END))
    }

    /// The caller's answers to the input requests of a result, within the time for people that is left.
    async fn answers(
        &self,
        about: &str,
        required: &InputRequired,
        pause: Duration,
        options: &CallOptions,
        person_time: &mut Duration,
    ) -> Result<JsonObject, CallFailure> {
        let started = Instant::now();
        let answering = async {
            tokio::time::sleep(pause).await;
            let server = (!self.state.is_node()).then_some(&self.about.name);
            required.ask(server, options.input_handler.as_deref()).await
        };
        let answers = tokio::select! {
            biased;
            () = options.cancel.cancelled() => Err(CallError::Cancelled),
            answers = answering => answers.map_err(|unanswered| self.unanswered(about, unanswered)),
            () = tokio::time::sleep(*person_time) => {
                Err(self.unanswered(about, UnansweredInput::Late))
            }
        };
        *person_time = person_time.saturating_sub(started.elapsed());
        answers.map_err(CallFailure::Failed)
    }

    /// Asks the client for the visits to pages without which the server refuses a call, and waits until the server
    /// says that they are done. Returns whether the call can be made again: not if the person declines.
    async fn visited(
        &self,
        about: &str,
        visits: &InputRequired,
        options: &CallOptions,
        person_time: &mut Duration,
    ) -> Result<bool, CallFailure> {
        let answers = self.answers(about, visits, Duration::ZERO, options, person_time).await?;
        let is_accepted = |answer: &Value| answer.get("action") == Some(&json!("accept"));
        if !answers.values().all(is_accepted) {
            return Ok(false);
        }
        let done = async {
            match visits.elicitations() {
                Some(ids) => self.state.completions.all(&ids).await,
                // The server cannot say that they are done.
                None => std::future::pending().await,
            }
        };
        let (started, limit) = (Instant::now(), VISIT_TIMEOUT.min(*person_time));
        let outcome = tokio::select! {
            biased;
            () = options.cancel.cancelled() => Err(CallError::Cancelled),
            () = done => Ok(true),
            () = self.raw.closed() => Err(self.unfinished(about, visits, "its connection ended before")),
            // A second question would be the same.
            () = tokio::time::sleep(limit) => {
                let why = format!("it did not say within {} s", limit.as_secs());
                Err(self.unfinished(about, visits, &why))
            }
        };
        *person_time = person_time.saturating_sub(started.elapsed());
        outcome.map_err(CallFailure::Failed)
    }

    /// If another client has just called a tool that may ask, lets the server begin that call: it has
    /// when it answers a ping. If it has asked by then, its input request surely belongs to that call.
    /// Returns whether there is such a call.
    pub(crate) async fn let_others_begin(&self, options: &CallOptions) -> bool {
        // Over HTTP an input request names its call, and modern servers know no ping.
        if self.handshake.era == Era::Modern || !self.raw.is_child() {
            return false;
        }
        let client = CallClient::of(options.input_handler.as_ref());
        // The other call may reach the pipe after the first ping.
        for sent in 0..2 {
            if !self.state.may_ask_another(&client) {
                return sent > 0;
            }
            if let Ok(mut ping) = self.raw.begin(Value::Null, methods::PING, None) {
                let _ = tokio::time::timeout(PING_TIMEOUT, ping.response()).await;
            }
        }
        true
    }

    /// Sends a request once, and returns its result within `limits`.
    async fn send(
        &self,
        about: &str,
        method: &str,
        params: JsonObject,
        options: &CallOptions,
        limits: &ServerLimits,
    ) -> Result<Value, CallFailure> {
        self.send_kept(about, method, params, options, limits).await.map(|(result, _)| result)
    }

    /// The same. The call stays open until the second value is dropped, because its result may be a task.
    async fn send_kept(
        &self,
        about: &str,
        method: &str,
        mut params: JsonObject,
        options: &CallOptions,
        limits: &ServerLimits,
    ) -> Result<(Value, OpenCall), CallFailure> {
        let started = Instant::now();
        if let Some(check) = &options.send_check {
            self.checked(about, check, options, limits).await?;
        }
        if options.cancel.is_cancelled() {
            return Err(CallFailure::Failed(CallError::Cancelled));
        }
        let is_untried = !self.state.asking.is_quiet(about);
        let call = PendingCall::new(method, is_untried, options);
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
                    if let Err(RequestError::Refused(refusal)) = &response {
                        call.note_required(refusal);
                    }
                    if is_untried && response.is_ok() && !call.has_asked() {
                        self.state.asking.note_quiet(about);
                    }
                    let answered = OpenCall::new(&self.state, key, Arc::clone(&call));
                    let failed = |error| self.failed(about, error);
                    return response.map(|result| (result, answered)).map_err(failed);
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
        call.reach(CallStage::Abandoned);
        let request = request.cancel(reason).await;
        let hold = options.hold.clone();
        let is_held = hold.is_some();
        self.state.abandon(key, hold, self.has_read(), async move {
            if request.is_some() || is_held {
                answered(request).await;
            }
        });
        Err(error)
    }

    /// Waits until a legacy server has read what it was sent before. A server that does not answer a ping may read it
    /// at any time.
    fn has_read(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        // Modern servers know no ping, and do not ask by requests.
        let is_legacy = self.handshake.era == Era::Legacy;
        let ping = is_legacy.then(|| self.raw.begin(Value::Null, methods::PING, None).ok());
        async move {
            if let Some(mut ping) = ping.flatten()
                && let Ok(_) | Err(RequestError::Refused(_)) = ping.response().await
            {
                return;
            }
            std::future::pending::<()>().await;
        }
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
        if self.handshake.era == Era::Modern {
            let handler = options.input_handler.as_deref();
            let mut capabilities =
                handler.map(input_handler::input_capabilities).unwrap_or_default();
            if self.has_tasks() {
                // The connection waits for the end of a task itself.
                let all = capabilities.entry(extensions::CAPABILITY).or_insert_with(|| json!({}));
                all[extensions::TASKS] = json!({});
            }
            if handler.is_some() || !capabilities.is_empty() {
                all.insert(meta::CLIENT_CAPABILITIES.to_owned(), Value::Object(capabilities));
            }
            if let Some(level) = options.log.as_ref().and_then(|log| log.level) {
                all.insert(meta::LOG_LEVEL.to_owned(), json!(level.as_str()));
            }
        }
        params.insert("_meta".to_owned(), Value::Object(all));
    }
}

/// The visits to pages that a refused call requires, if the client does not learn of them by the refusal: the modern
/// era has no such error.
fn required_visits<T>(
    sent: &Result<T, CallFailure>,
    options: &CallOptions,
) -> Option<InputRequired> {
    let Err(CallFailure::Failed(CallError::Refused { error, .. })) = sent else { return None };
    let handler = options.input_handler.as_deref()?;
    let is_asked = handler.is_asked_by_results() || options.gets_texts;
    InputRequired::of_refusal(error, handler).filter(|_| is_asked)
}
