//! The open calls of one connection.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    ErrorObject, JsonObject,
    client::{
        AFTER_CANCELLATION, CallHold, ConnectionHandler, InputRequest, OpenInputRequests,
        OutputSource, RelatedRequest,
    },
    codes, meta, methods,
};

use crate::{
    announced_lists::AnnouncedLists,
    connection::{CallOptions, LogSink, Progress, SubscriptionEvent, logs},
    input_handler::{self, CallClient, ClientKey, InputHandler},
    input_requests::{self, HeldInputRequests},
    server::Asking,
    upstream::ServerObserver,
};

/// An open call.
#[derive(Debug, Default)]
pub(crate) struct PendingCall {
    progressed: Notify,
    progress: Option<mpsc::Sender<Progress>>,
    subscription: Option<mpsc::Sender<SubscriptionEvent>>,
    log: Option<LogSink>,
    pub(crate) input_handler: Option<Arc<dyn InputHandler>>,
    pub(crate) open_input_requests: OpenInputRequests,
    input_requests: AtomicUsize,
    /// Since when the client is asked.
    asked_since: Mutex<Option<Instant>>,
    /// Cancelled when other clients need the instance that waits for this client.
    withdrawn: CancellationToken,
    /// The ids of the elicitations at a URL that the client was asked for.
    elicitations: Mutex<Vec<String>>,
    /// Whether it only listens. Servers do not ask for that.
    is_subscription: bool,
    /// Whether the tool has never answered without asking.
    is_untried: bool,
    stage: watch::Sender<CallStage>,
}

/// How far a call is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum CallStage {
    #[default]
    Open,
    /// No caller waits for it. The server may still work on it.
    Abandoned,
    /// The server has read that it is cancelled. What the server asks from now on is for other calls.
    Withdrawn,
    /// The server has not answered it, and its answer is not awaited any more.
    Unanswered,
    Answered,
}

impl PendingCall {
    pub(crate) fn new(method: &str, is_untried: bool, options: &CallOptions) -> Arc<Self> {
        let is_subscription = method == methods::LISTEN;
        let is_untried = is_untried && !methods::is_list(method);
        let CallOptions { progress, subscription, log, input_handler, .. } = options.clone();
        Arc::new(Self {
            progress,
            subscription,
            log,
            input_handler,
            is_subscription,
            is_untried,
            ..Self::default()
        })
    }

    fn report(&self, params: Value) {
        let Some(progress) = Progress::read(params) else { return };
        self.progressed.notify_one();
        if let Some(sink) = &self.progress {
            // A slow caller loses progress reports, never the result.
            let _ = sink.try_send(progress);
        }
    }

    /// Waits for the next progress.
    pub(crate) async fn progressed(&self) {
        self.progressed.notified().await;
    }

    pub(crate) fn client(&self) -> CallClient {
        CallClient::of(self.input_handler.as_ref())
    }

    /// Whether it is of this session.
    fn is_of(&self, session: &ClientKey) -> bool {
        let client = self.input_handler.as_ref().and_then(|handler| handler.client());
        client.is_some_and(|client| client.key() == session)
    }

    /// Notes how far the call has come. A later stage stays.
    pub(crate) fn reach(&self, stage: CallStage) {
        self.stage.send_if_modified(|current| {
            let is_later = stage > *current;
            *current = stage.max(*current);
            is_later
        });
    }

    /// Waits until the call has come this far, and returns how far it has come.
    pub(crate) async fn reached(&self, stage: CallStage) -> CallStage {
        let mut stages = self.stage.subscribe();
        let reached = stages.wait_for(|current| *current >= stage).await;
        reached.map_or(CallStage::Unanswered, |current| *current)
    }

    pub(crate) fn has_reached(&self, stage: CallStage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Whether the server has asked for it.
    pub(crate) fn has_asked(&self) -> bool {
        self.input_requests.load(Ordering::Acquire) > 0
    }

    /// Whether the server waits for the answer of a client, for how long, and whether the client is connected.
    fn waits(&self) -> Option<(Duration, bool)> {
        let since = (*self.asked_since.lock())?;
        let is_there = self.input_handler.as_ref().is_some_and(|handler| handler.is_there());
        Some((since.elapsed(), is_there))
    }

    /// Notes that the client is asked. Waits until the question is withdrawn.
    pub(crate) async fn ask_until_withdrawn(&self) {
        self.asked_since.lock().get_or_insert_with(Instant::now);
        self.withdrawn.cancelled().await;
    }

    /// Notes that the client has answered.
    pub(crate) fn note_answered(&self) {
        *self.asked_since.lock() = None;
    }

    /// Notes what the client is asked for at a URL.
    pub(crate) fn note_elicitation(&self, request: &InputRequest) {
        self.note_elicitation_id(request.params.as_ref());
    }

    /// Notes what the client has to do at URLs before it repeats the call, which was refused until then.
    pub(crate) fn note_required(&self, refusal: &ErrorObject) {
        if refusal.code == codes::URL_ELICITATION_REQUIRED {
            let required =
                refusal.data.as_ref().and_then(|data| data.get("elicitations")?.as_array());
            for elicitation in required.into_iter().flatten() {
                self.note_elicitation_id(Some(elicitation));
            }
        }
    }

    fn note_elicitation_id(&self, elicitation: Option<&Value>) {
        let id = elicitation.and_then(|elicitation| elicitation.get("elicitationId")?.as_str());
        let mut noted = self.elicitations.lock();
        if noted.len() < MAX_ELICITATIONS {
            noted.extend(id.map(str::to_owned));
        }
    }

    /// Counts an input request, and returns the count.
    pub(crate) fn count_input_request(&self) -> usize {
        self.input_requests.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// A call, and what it keeps if it was abandoned.
type CallEntry = (Arc<PendingCall>, Option<CallHold>);

type OpenCalls = Mutex<BTreeMap<i64, CallEntry>>;
type FollowedTasks = watch::Sender<HashMap<String, Arc<PendingCall>>>;

/// The elicitations at a URL that are remembered of a call, and of ended calls of a connection.
const MAX_ELICITATIONS: usize = 64;

/// How long a task may be unknown of which a server asks. Its call has been answered just before.
const TASK_TIMEOUT: Duration = Duration::from_secs(5);

/// The ids of elicitations at a URL that the server said to be done, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Completions(watch::Sender<VecDeque<String>>);

impl Completions {
    fn add(&self, id: &str) {
        self.0.send_modify(|done| {
            done.push_back(id.to_owned());
            let excess = done.len().saturating_sub(MAX_ELICITATIONS);
            done.drain(..excess);
        });
    }

    /// Waits until all of these are done.
    pub(crate) async fn all(&self, ids: &[&str]) {
        let mut done = self.0.subscribe();
        let _ = done.wait_for(|done| ids.iter().all(|id| done.iter().any(|it| it == id))).await;
    }
}

/// The state of one connection. It handles notifications and input requests of the server.
pub(crate) struct ConnectionState {
    server: ServerName,
    observer: Arc<dyn ServerObserver>,
    next_key: AtomicI64,
    /// By their keys.
    calls: Arc<OpenCalls>,
    /// How many of them are of tools that have never answered without asking.
    untried: AtomicUsize,
    /// The calls that wait for tasks, by the ids of the tasks.
    tasks: Arc<FollowedTasks>,
    /// The elicitations at a URL of calls that have ended, and whom they are for. People take longer than calls.
    elicitations: Mutex<VecDeque<(String, ClientKey)>>,
    pub(crate) completions: Completions,
    pub(crate) lists: AnnouncedLists,
    pub(crate) asking: Arc<Asking>,
    held: Arc<HeldInputRequests>,
    /// The extensions that the server declares, once it has.
    pub(crate) extensions: OnceLock<JsonObject>,
    /// Whether it is the instance that clients share, and not one for a single client.
    pub(crate) is_shared: bool,
    /// The other node that runs the server, if one does. It has said already which server asks or logs.
    pub(crate) node: Option<String>,
}

impl ConnectionState {
    pub(crate) fn new(
        server: ServerName,
        observer: Arc<dyn ServerObserver>,
        asking: Arc<Asking>,
    ) -> Self {
        Self {
            server,
            observer,
            next_key: AtomicI64::new(1),
            calls: Arc::default(),
            untried: AtomicUsize::new(0),
            tasks: Arc::default(),
            elicitations: Mutex::default(),
            completions: Completions::default(),
            lists: AnnouncedLists::default(),
            asking,
            held: Arc::default(),
            extensions: OnceLock::new(),
            is_shared: true,
            node: None,
        }
    }

    /// Whether another node runs the server.
    pub(crate) fn is_node(&self) -> bool {
        self.node.is_some()
    }

    /// Adds a call and returns its key.
    pub(crate) fn add(&self, call: Arc<PendingCall>) -> i64 {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        self.untried.fetch_add(usize::from(call.is_untried), Ordering::Relaxed);
        self.calls.lock().insert(key, (call, None));
        key
    }

    /// Lets a call wait for a task. The server may ask for it at any time until that is dropped.
    pub(crate) fn add_task(self: &Arc<Self>, id: &str, call: OpenCall) -> FollowedTask {
        let pending = Arc::clone(&call.call);
        self.tasks.send_modify(|tasks| drop(tasks.insert(id.to_owned(), pending)));
        FollowedTask { id: id.to_owned(), call }
    }

    pub(crate) fn call(&self, key: i64) -> Option<Arc<PendingCall>> {
        self.calls.lock().get(&key).map(|(call, _)| call.clone())
    }

    /// The calls that the server may still work on, the newest first: most servers ask at once.
    pub(crate) fn calls(&self) -> Vec<Arc<PendingCall>> {
        let mut calls = newest_first(&self.calls);
        calls.retain(|call| !call.has_reached(CallStage::Withdrawn));
        calls
    }

    /// The open calls to which an input request can belong that names none. From now on the clients
    /// of the server have their own instances.
    fn asked(&self) -> Vec<Arc<PendingCall>> {
        let mut calls = self.calls();
        calls.retain(|call| !call.is_subscription);
        if let Some(newest) = calls.first()
            && self.asking.note(&newest.client())
        {
            self.observer.asks(&self.server);
        }
        calls
    }

    /// Whether the server works on no calls but those of this session.
    pub(crate) fn has_only_calls_of(&self, session: &ClientKey) -> bool {
        let client = CallClient::Named(session.clone());
        let calls = self.calls.lock();
        let mut calls = calls.values().filter(|(call, _)| !call.is_subscription);
        // A modern client is asked by the results of its calls, and by none of one that it has cancelled.
        let is_cancelled =
            |call: &PendingCall| call.has_reached(CallStage::Abandoned) && call.is_of(session);
        calls.all(|(call, _)| call.client() == client || is_cancelled(call))
    }

    /// For how long the server has waited for a client, if all of its calls wait for answers of clients. A client that is
    /// not connected counts as the longest.
    pub(crate) fn waits_for_clients(&self) -> Option<Duration> {
        let calls = self.calls.lock();
        let mut calls = calls.values().filter(|(call, _)| !call.is_subscription).peekable();
        calls.peek()?;
        let waits: Option<Vec<_>> = calls.map(|(call, _)| call.waits()).collect();
        let is_longest = |(time, is_there)| if is_there { time } else { Duration::MAX };
        waits?.into_iter().map(is_longest).min()
    }

    /// Withdraws the questions to clients. The server gets the answer that a person gives who cancels.
    pub(crate) fn withdraw(&self) {
        for call in self.calls() {
            call.withdrawn.cancel();
        }
    }

    /// Whether another client has an open call for which the server may ask.
    pub(crate) fn may_ask_another(&self, client: &CallClient) -> bool {
        if self.untried.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let calls = self.calls.lock();
        let may_ask = |call: &PendingCall| {
            let is_open = !call.is_subscription && !call.has_reached(CallStage::Withdrawn);
            call.is_untried && is_open && !call.has_asked()
        };
        calls.values().any(|(call, _)| may_ask(call) && call.client() != *client)
    }

    /// Removes a call that the server has answered, or that was not sent.
    pub(crate) fn forget(&self, key: i64) {
        self.remove(key, CallStage::Answered);
    }

    fn remove(&self, key: i64, stage: CallStage) {
        let removed = self.calls.lock().remove(&key);
        let Some((call, _)) = removed else { return };
        self.untried.fetch_sub(usize::from(call.is_untried), Ordering::Relaxed);
        call.reach(stage);
        if let CallClient::Named(client) = call.client() {
            let mut remembered = self.elicitations.lock();
            remembered.extend(call.elicitations.lock().drain(..).map(|id| (id, client.clone())));
            let excess = remembered.len().saturating_sub(MAX_ELICITATIONS);
            remembered.drain(..excess);
        }
    }

    /// Passes a log message on: to the call that it belongs to, or to the observer if there is no call. If
    /// several callers have open calls, it may be about any of them, and none of them gets it.
    fn logged(&self, about: Option<&Value>, params: Option<Value>) {
        let params = if self.is_node() {
            params.filter(|params| logs::level_of(params).is_some())
        } else {
            logs::signed(&self.server, params)
        };
        let Some(params) = params else { return };
        let call = about.and_then(Value::as_i64).and_then(|key| self.call(key));
        let mut open = call.map_or_else(|| self.calls(), |call| vec![call]);
        open.retain(|call| !call.is_subscription);
        let Some(first) = open.first() else {
            // An instance of one client has nothing to tell the others.
            if self.is_shared {
                self.observer.notified(&self.server, methods::LOG_MESSAGE, Some(&params));
            }
            return;
        };
        // A client of the modern era gets the messages of a call with that call, so each call is like a client.
        if open.iter().any(|other| other.client() != first.client()) {
            tracing::debug!(server = %self.server, "a log message may be of any of several callers");
        } else if let Some(log) = open.iter().find_map(|call| call.log.as_ref()) {
            log.send(params);
        }
    }

    /// Lists again after a time without a subscription to these lists.
    pub(crate) fn may_have_missed_changes(&self, wanted: &Value) {
        self.lists.announce();
        let lists = [
            ("promptsListChanged", methods::PROMPTS_CHANGED),
            ("resourcesListChanged", methods::RESOURCES_CHANGED),
        ];
        for (_, method) in
            lists.iter().filter(|(key, _)| self.is_node() && wanted.get(key).is_some())
        {
            self.observer.notified(&self.server, method, None);
        }
    }

    /// Passes a notification to the client whose `subscriptions/listen` it belongs to. Returns false if there is none.
    fn is_subscribed(&self, about: Option<&Value>, method: &str, params: Option<&Value>) -> bool {
        let is_for_one =
            method == methods::LISTEN_ACKNOWLEDGED || methods::is_of_unknown_extension(method);
        let call =
            about.filter(|_| is_for_one).and_then(Value::as_i64).and_then(|key| self.call(key));
        let Some(sink) = call.as_ref().and_then(|call| call.subscription.as_ref()) else {
            return false;
        };
        // A slow client loses notifications.
        let _ =
            sink.try_send(SubscriptionEvent { method: method.to_owned(), params: params.cloned() });
        true
    }

    /// Tells the client that was asked that an elicitation at a URL is done.
    fn completed(&self, params: Option<Value>) {
        let Some(params) = params else { return };
        let Some(id) = params.get("elicitationId").and_then(Value::as_str) else { return };
        self.completions.add(id);
        let calls = newest_first(&self.calls);
        let asked = calls.iter().find(|call| call.elicitations.lock().iter().any(|it| it == id));
        if let Some(handler) = asked.and_then(|call| call.input_handler.as_ref()) {
            return handler.notify(methods::ELICITATION_COMPLETE, params);
        }
        let mut remembered = self.elicitations.lock();
        let found = remembered.iter().position(|(remembered, _)| remembered == id);
        let client = found.and_then(|at| remembered.remove(at));
        drop(remembered);
        if let Some((_, client)) = client {
            self.observer.elicitation_completed(&client, params);
        }
    }

    /// Keeps a call for which no caller waits. The server may still work on it until the call is `answered`, or for
    /// ten seconds, and send an input request for it until the server has `read` that it is cancelled.
    pub(crate) fn abandon(
        self: &Arc<Self>,
        key: i64,
        hold: Option<CallHold>,
        read: impl Future<Output = ()> + Send + 'static,
        answered: impl Future<Output = ()> + Send + 'static,
    ) {
        let abandoned = self.calls.lock().get_mut(&key).map(|(call, kept)| {
            call.reach(CallStage::Abandoned);
            *kept = hold;
            Arc::clone(call)
        });
        let state = Arc::downgrade(self);
        tokio::spawn(async move {
            let withdrawn = async {
                read.await;
                if let Some(call) = abandoned {
                    call.reach(CallStage::Withdrawn);
                }
            };
            let in_time = tokio::time::timeout(AFTER_CANCELLATION, answered);
            let mut in_time = std::pin::pin!(in_time);
            let in_time = tokio::select! {
                biased;
                in_time = &mut in_time => in_time,
                () = withdrawn => in_time.await,
            };
            if let Some(state) = state.upgrade() {
                let end = in_time.map_or(CallStage::Unanswered, |()| CallStage::Answered);
                state.remove(key, end);
            }
        });
    }
}

impl ConnectionHandler for ConnectionState {
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>) {
        match method {
            methods::PROGRESS => {
                // The token is the key. The call that a task belongs to has its response already.
                let token = params.as_ref().and_then(|params| params.get(meta::PROGRESS_TOKEN));
                let key = about.or(token).and_then(Value::as_i64);
                let call = key.and_then(|key| self.call(key));
                let call = call.filter(|call| !call.has_reached(CallStage::Abandoned));
                if let (Some(call), Some(params)) = (call, params) {
                    call.report(params);
                }
            }
            methods::TOOLS_CHANGED | methods::GROUPS_CHANGED => self.lists.announce(),
            methods::LOG_MESSAGE => self.logged(about, params),
            methods::ELICITATION_COMPLETE => self.completed(params),
            _ if self.is_subscribed(about, method, params.as_ref()) => {}
            methods::LISTEN_ACKNOWLEDGED => {}
            _ => self.observer.notified(&self.server, method, params.as_ref()),
        }
    }

    fn input_request(
        &self,
        about: Option<RelatedRequest>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let stream = about.filter(|about| about.is_certain);
        // Other requests have the key `null`. No call has the key 0.
        let stream = stream.map(|about| about.key.as_i64().unwrap_or_default());
        let task = request.params.as_ref().and_then(|params| related_task(params));
        let task = task.filter(|_| stream.is_none_or(|key| key == 0)).map(str::to_owned);
        let calls = match stream {
            Some(key) => self.call(key).into_iter().collect(),
            None => self.asked(),
        };
        if request.method == methods::ROOTS_LIST && calls.is_empty() && task.is_none() {
            return self.observer.roots(&self.server);
        }
        let request =
            if self.is_node() { request } else { input_handler::signed(&self.server, request) };
        let held = Arc::clone(&self.held);
        let extensions = self.extensions.get().cloned().unwrap_or_default();
        let (open, tasks) = (Arc::clone(&self.calls), Arc::clone(&self.tasks));
        Box::pin(async move {
            let calls = match task {
                Some(id) => calls_of_task(&open, &tasks, &id).await.unwrap_or(calls),
                None => calls,
            };
            input_requests::answer(calls, &held, &extensions, request).await
        })
    }

    fn output(&self, source: OutputSource, line: &str) {
        self.observer.output(&self.server, source, line);
    }

    fn session_renewed(&self) {
        // The server lost the session, perhaps because it is another one now.
        self.lists.announce();
    }
}

/// The calls that the server may still work on, the newest first.
fn newest_first(calls: &OpenCalls) -> Vec<Arc<PendingCall>> {
    calls.lock().values().rev().map(|(call, _)| call.clone()).collect()
}

/// The task that a message is about.
fn related_task(params: &Value) -> Option<&str> {
    params.get("_meta")?.get(meta::RELATED_TASK)?.get("taskId")?.as_str()
}

/// The calls of the client whose call waits for a task.
async fn calls_of_task(
    open: &OpenCalls,
    tasks: &FollowedTasks,
    id: &str,
) -> Option<Vec<Arc<PendingCall>>> {
    let mut known = tasks.subscribe();
    let known = known.wait_for(|tasks| tasks.contains_key(id));
    let known = tokio::time::timeout(TASK_TIMEOUT, known).await.ok()?.ok()?;
    let client = known.get(id)?.client();
    drop(known);
    let mut calls = newest_first(open);
    calls.retain(|call| call.client() == client);
    Some(calls)
}

/// A call that the server has answered and that may go on as a task.
#[derive(Debug)]
pub(crate) struct OpenCall {
    state: Arc<ConnectionState>,
    key: i64,
    pub(crate) call: Arc<PendingCall>,
}

impl OpenCall {
    /// The call with this key, which is forgotten when this is dropped.
    pub(crate) fn new(state: &Arc<ConnectionState>, key: i64, call: Arc<PendingCall>) -> Self {
        Self { state: Arc::clone(state), key, call }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.state.forget(self.key);
    }
}

/// A call that waits for a task.
#[derive(Debug)]
pub(crate) struct FollowedTask {
    id: String,
    pub(crate) call: OpenCall,
}

impl Drop for FollowedTask {
    fn drop(&mut self) {
        self.call.state.tasks.send_modify(|tasks| drop(tasks.remove(&self.id)));
    }
}

impl fmt::Debug for ConnectionState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionState")
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use toolgate_mcp::LogLevel;

    use super::*;
    use crate::{handshake::Handshake, input_handler::ClientId, listing::Listing};

    /// Keeps the notifications.
    #[derive(Default)]
    struct Notifications(Mutex<Vec<(String, Option<Value>)>>);

    impl ServerObserver for Notifications {
        fn listed(&self, _server: &ServerName, _handshake: &Handshake, _listing: Listing) {}

        fn notified(&self, _server: &ServerName, method: &str, params: Option<&Value>) {
            self.0.lock().push((method.to_owned(), params.cloned()));
        }
    }

    pub(crate) fn state() -> Arc<ConnectionState> {
        let observer = Arc::new(Notifications::default());
        Arc::new(ConnectionState::new("server".into(), observer, Arc::default()))
    }

    #[tokio::test]
    async fn progress_goes_to_its_call_until_the_call_is_over() {
        let state = state();
        let (sender, mut steps) = mpsc::channel(8);
        let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
        let call = PendingCall::new(methods::TOOLS_CALL, true, &options);
        let key = json!(state.add(call.clone()));
        let step = |progress: i64| Some(json!({ "progressToken": 101, "progress": progress }));
        state.notification(Some(&key), methods::PROGRESS, step(1));
        state.forget(key.as_i64().unwrap());
        state.notification(Some(&key), methods::PROGRESS, step(2));
        call.progressed().await;
        assert_eq!(
            steps.try_recv().unwrap().into_params(&json!("t")),
            json!({ "progressToken": "t", "progress": 1 })
        );
        assert!(steps.try_recv().is_err());
    }

    #[test]
    fn notifications_about_no_call_are_passed_on() {
        let observer = Arc::new(Notifications::default());
        let state = ConnectionState::new("server".into(), observer.clone(), Arc::default());
        for method in [
            "notifications/message",
            "notifications/progress",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
            "notifications/odd",
        ] {
            let params = json!({ "progress": 1, "level": "info", "odd": 1 });
            state.notification(None, method, Some(params));
        }
        let passed = observer.0.lock();
        let methods: Vec<&str> = passed.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(
            methods,
            ["notifications/message", "notifications/resources/updated", "notifications/odd"]
        );
        assert!(passed.iter().all(|(_, params)| params.as_ref().unwrap()["odd"] == 1));
        assert_eq!(passed[0].1.as_ref().unwrap()["logger"], "server");
    }

    #[tokio::test]
    async fn a_log_message_goes_to_its_call_or_to_nobody() {
        let observer = Arc::new(Notifications::default());
        let state = ConnectionState::new("server".into(), observer.clone(), Arc::default());
        let call = |level| {
            let (messages, received) = mpsc::channel(8);
            let log = Some(LogSink { level: Some(level), messages });
            let options = CallOptions { log, ..CallOptions::default() };
            let call = PendingCall::new(methods::TOOLS_CALL, true, &options);
            (state.add(call), received)
        };
        let (key, mut quiet) = call(LogLevel::Error);
        let log = |about: Option<i64>, level: &str| {
            let params = json!({ "level": level, "logger": "db", "data": 1 });
            state.notification(
                about.map(|key| json!(key)).as_ref(),
                methods::LOG_MESSAGE,
                Some(params),
            );
        };
        log(Some(key), "info");
        log(None, "alert");
        let heard = quiet.try_recv().unwrap();
        assert_eq!(heard, json!({ "level": "alert", "logger": "server/db", "data": 1 }));
        assert!(quiet.try_recv().is_err(), "what is less severe was not wanted");
        // Only the stream tells the calls of several callers apart.
        let person: Arc<dyn InputHandler> = Arc::new(Somebody(JsonObject::new()));
        let other = CallOptions { input_handler: Some(person), ..CallOptions::default() };
        state.add(PendingCall::new(methods::TOOLS_CALL, true, &other));
        log(None, "alert");
        assert!(quiet.try_recv().is_err());
        log(Some(key), "alert");
        assert!(quiet.try_recv().is_ok());
        assert!(observer.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_log_message_after_a_cancelled_call_is_of_no_call() {
        let observer = Arc::new(Notifications::default());
        let state =
            Arc::new(ConnectionState::new("server".into(), observer.clone(), Arc::default()));
        let call = PendingCall::new(methods::TOOLS_CALL, true, &CallOptions::default());
        let key = state.add(Arc::clone(&call));
        state.abandon(key, None, std::future::ready(()), std::future::pending());
        call.reached(CallStage::Withdrawn).await;
        let params = json!({ "level": "alert", "data": 1 });
        state.notification(None, methods::LOG_MESSAGE, Some(params));
        assert_eq!(observer.0.lock().len(), 1);
    }

    /// Keeps whose elicitations were completed.
    #[derive(Default)]
    struct Completions(Mutex<Vec<(ClientKey, Value)>>);

    impl ServerObserver for Completions {
        fn listed(&self, _server: &ServerName, _handshake: &Handshake, _listing: Listing) {}

        fn elicitation_completed(&self, client: &ClientKey, params: Value) {
            self.0.lock().push((client.clone(), params));
        }
    }

    #[derive(Debug)]
    struct NamedClient(ClientId, JsonObject);

    impl InputHandler for NamedClient {
        fn capabilities(&self) -> &JsonObject {
            &self.1
        }

        fn answer(&self, _: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }

        fn client(&self) -> Option<ClientId> {
            Some(self.0.clone())
        }
    }

    #[test]
    fn an_elicitation_of_an_ended_call_is_completed_for_its_client_once() {
        let observer = Arc::new(Completions::default());
        let state = ConnectionState::new("server".into(), observer.clone(), Arc::default());
        let (ada, bob) = (ClientId::unique(), ClientId::unique());
        for (client, id) in [(&ada, "of-ada"), (&bob, "of-bob")] {
            let handler = Arc::new(NamedClient(client.clone(), JsonObject::new()));
            let options = CallOptions { input_handler: Some(handler), ..CallOptions::default() };
            let call = PendingCall::new(methods::TOOLS_CALL, true, &options);
            let key = state.add(Arc::clone(&call));
            let required = json!({ "elicitations": [{ "mode": "url", "elicitationId": id }] });
            call.note_required(&ErrorObject::new(
                codes::URL_ELICITATION_REQUIRED,
                "x",
                Some(required),
            ));
            state.forget(key);
        }
        for id in ["of-bob", "of-nobody", "of-bob", "of-ada"] {
            let params = json!({ "elicitationId": id });
            state.notification(None, methods::ELICITATION_COMPLETE, Some(params));
        }
        let completed = observer.0.lock();
        let expected = [(&bob, "of-bob"), (&ada, "of-ada")];
        let expected =
            expected.map(|(client, id)| (client.key().clone(), json!({ "elicitationId": id })));
        assert_eq!(*completed, expected);
    }

    #[derive(Debug)]
    struct Somebody(JsonObject);

    impl InputHandler for Somebody {
        fn capabilities(&self) -> &JsonObject {
            &self.0
        }

        fn answer(&self, _: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }
    }
}
