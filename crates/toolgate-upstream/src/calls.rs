//! The open calls of one connection.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    ErrorObject,
    client::{
        AFTER_CANCELLATION, CallHold, ConnectionHandler, InputRequest, OpenInputRequests,
        OutputSource, RelatedRequest,
    },
    methods,
};

use crate::{
    call_queue::{CallQueue, CallSlot, QueuedCaller},
    connection::Progress,
    input_handler::{self, InputHandler},
    input_requests,
    upstream::ServerObserver,
};

/// How long a call waits for its slot while the current caller has an open input request.
const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// An open call.
#[derive(Debug, Default)]
pub(crate) struct PendingCall {
    progressed: Notify,
    progress: Option<mpsc::Sender<Progress>>,
    pub(crate) input_handler: Option<Arc<dyn InputHandler>>,
    pub(crate) open_input_requests: OpenInputRequests,
    input_requests: AtomicUsize,
    /// Cancelled when no caller waits for the call.
    pub(crate) over: CancellationToken,
}

impl PendingCall {
    pub(crate) fn new(
        progress: Option<mpsc::Sender<Progress>>,
        input_handler: Option<Arc<dyn InputHandler>>,
    ) -> Arc<Self> {
        Arc::new(Self { progress, input_handler, ..Self::default() })
    }

    fn report(&self, params: &Value) {
        let Some(progress) = params.get("progress").and_then(Value::as_f64) else { return };
        self.progressed.notify_one();
        if let Some(sink) = &self.progress {
            let total = params.get("total").and_then(Value::as_f64);
            let message = params.get("message").and_then(Value::as_str).map(str::to_owned);
            // A slow caller loses progress reports, never the result.
            let _ = sink.try_send(Progress { progress, total, message });
        }
    }

    /// Waits for the next progress.
    pub(crate) async fn progressed(&self) {
        self.progressed.notified().await;
    }

    pub(crate) fn caller(&self) -> QueuedCaller {
        QueuedCaller::of(self.input_handler.as_ref())
    }

    /// Counts an input request, and returns the count.
    pub(crate) fn count_input_request(&self) -> usize {
        self.input_requests.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// A call, and what it keeps if it was abandoned.
type CallEntry = (Arc<PendingCall>, AbandonedCall);

/// What an abandoned call keeps: its slot, and what its sender gave it.
pub(crate) type AbandonedCall = (Option<CallSlot>, Option<CallHold>);

/// The state of one connection. It handles notifications and input requests of the server.
pub(crate) struct ConnectionState {
    server: ServerName,
    observer: Arc<dyn ServerObserver>,
    next_key: AtomicI64,
    /// By their keys.
    calls: Mutex<BTreeMap<i64, CallEntry>>,
    pub(crate) lists: AnnouncedLists,
    pub(crate) queue: Arc<CallQueue>,
}

/// Counts the tool lists that a server has announced, and those that were fetched.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedLists(watch::Sender<ListCounts>);

#[derive(Debug, Default)]
struct ListCounts {
    announced: u64,
    /// How many had been announced when the last attempt to fetch a list began.
    tried: u64,
    /// The same for the last attempt that brought a list.
    fetched: u64,
    failures: u64,
}

/// The attempt to fetch an announced list failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListFailed;

impl ListCounts {
    /// Whether the last attempt brought no list, and no other one is due.
    fn is_given_up(&self) -> bool {
        self.fetched < self.announced && self.tried >= self.announced
    }
}

impl AnnouncedLists {
    /// Counts an announced list.
    pub(crate) fn announce(&self) {
        self.0.send_modify(|counts| counts.announced += 1);
    }

    /// How many lists the server has announced so far.
    pub(crate) fn announced(&self) -> u64 {
        self.0.borrow().announced
    }

    /// Notes that the list after this many announcements was fetched.
    pub(crate) fn fetched(&self, announced: u64) {
        self.0.send_modify(|counts| (counts.tried, counts.fetched) = (announced, announced));
    }

    /// Notes that the list after this many announcements did not come.
    pub(crate) fn failed(&self, announced: u64) {
        self.0.send_modify(|counts| {
            counts.tried = announced;
            counts.failures += 1;
        });
    }

    /// Waits until an announced list must be fetched.
    pub(crate) async fn due(&self) {
        let _ = self.0.subscribe().wait_for(|counts| counts.announced > counts.tried).await;
    }

    /// Waits until every list that was announced so far is fetched. Later announcements do not
    /// prolong this: a server that announces all the time must not stop its calls. If the last
    /// attempt failed, `try_again` requests another one.
    pub(crate) async fn current(&self, try_again: impl FnOnce()) -> Result<(), ListFailed> {
        let mut counts = self.0.subscribe();
        let (wanted, failures, is_given_up) = {
            let counts = counts.borrow();
            (counts.announced, counts.failures, counts.is_given_up())
        };
        if is_given_up {
            try_again();
        }
        let is_over = |counts: &ListCounts| {
            counts.fetched >= wanted || (counts.tried >= wanted && counts.failures > failures)
        };
        match counts.wait_for(is_over).await {
            Ok(counts) if counts.fetched >= wanted => Ok(()),
            _ => Err(ListFailed),
        }
    }
}

impl ConnectionState {
    pub(crate) fn new(
        server: ServerName,
        observer: Arc<dyn ServerObserver>,
        queue: Arc<CallQueue>,
    ) -> Self {
        Self {
            server,
            observer,
            next_key: AtomicI64::new(1),
            calls: Mutex::default(),
            lists: AnnouncedLists::default(),
            queue,
        }
    }

    /// Adds a call and returns its key.
    pub(crate) fn add(&self, call: Arc<PendingCall>) -> i64 {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().insert(key, (call, AbandonedCall::default()));
        key
    }

    pub(crate) fn call(&self, key: i64) -> Option<Arc<PendingCall>> {
        self.calls.lock().get(&key).map(|(call, _)| call.clone())
    }

    /// The calls that the server may still work on, the newest first: most servers ask at once.
    pub(crate) fn calls(&self) -> Vec<Arc<PendingCall>> {
        self.calls.lock().values().rev().map(|(call, _)| call.clone()).collect()
    }

    /// Waits until a caller may call. Returns `None` if the current caller does not answer an input
    /// request.
    pub(crate) async fn slot(&self, caller: QueuedCaller) -> Option<CallSlot> {
        let somebody_is_asked = async {
            loop {
                tokio::time::sleep(SLOT_TIMEOUT).await;
                if self.calls().iter().any(|call| call.open_input_requests.is_open()) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            slot = self.queue.enter(caller) => Some(slot),
            () = somebody_is_asked => None,
        }
    }

    /// Removes a call that has ended.
    pub(crate) fn forget(&self, key: i64) {
        let call = self.calls.lock().remove(&key);
        // Dropped outside of the lock, because dropping a slot admits other calls.
        drop(call);
    }

    /// Keeps a call for which no caller waits. The server may still work on it, or send an input request
    /// for it. So the caller keeps its slot until the call is `answered`, or for ten seconds.
    pub(crate) fn abandon(
        self: &Arc<Self>,
        key: i64,
        kept_by: AbandonedCall,
        answered: impl Future<Output = ()> + Send + 'static,
    ) {
        if let Some((_, kept)) = self.calls.lock().get_mut(&key) {
            *kept = kept_by;
        }
        let state = Arc::downgrade(self);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(AFTER_CANCELLATION, answered).await;
            if let Some(state) = state.upgrade() {
                state.forget(key);
            }
        });
    }
}

impl ConnectionHandler for ConnectionState {
    fn notification(&self, about: Option<&Value>, method: &str, params: Option<Value>) {
        match method {
            methods::PROGRESS => {
                let call = about.and_then(Value::as_i64).and_then(|key| self.call(key));
                if let (Some(call), Some(params)) = (call, params) {
                    call.report(&params);
                }
            }
            methods::TOOLS_CHANGED | methods::GROUPS_CHANGED => self.lists.announce(),
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
        let calls = input_requests::find(self, &request, stream);
        Box::pin(input_requests::answer(calls, input_handler::signed(&self.server, request)))
    }

    fn output(&self, source: OutputSource, line: &str) {
        self.observer.output(&self.server, source, line);
    }

    fn session_renewed(&self) {
        // The server lost the session, perhaps because it is another one now.
        self.lists.announce();
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

    use super::*;
    use crate::{handshake::Handshake, listing::Listing};

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
        let call = PendingCall::new(Some(sender), None);
        let key = json!(state.add(call.clone()));
        let step = |progress: i64| Some(json!({ "progressToken": 101, "progress": progress }));
        state.notification(Some(&key), methods::PROGRESS, step(1));
        state.forget(key.as_i64().unwrap());
        state.notification(Some(&key), methods::PROGRESS, step(2));
        call.progressed().await;
        let first = Progress { progress: 1.0, total: None, message: None };
        assert_eq!(steps.try_recv(), Ok(first));
        assert!(steps.try_recv().is_err());
    }

    #[tokio::test]
    async fn announcements_without_end_do_not_stop_calls() {
        let lists = AnnouncedLists::default();
        assert_eq!(lists.current(|| panic!("nothing is missing")).await, Ok(()));
        lists.announce();
        let mut waiting = std::pin::pin!(lists.current(|| panic!("a list is due")));
        assert!(futures::poll!(&mut waiting).is_pending());
        let begun = lists.announced();
        lists.announce();
        lists.fetched(begun);
        assert_eq!(waiting.await, Ok(()));
    }

    #[tokio::test]
    async fn a_list_that_failed_is_missing_until_one_comes() {
        let lists = AnnouncedLists::default();
        lists.announce();
        let mut waiting = std::pin::pin!(lists.current(|| panic!("a list is due")));
        assert!(futures::poll!(&mut waiting).is_pending());
        lists.failed(1);
        assert_eq!(waiting.await, Err(ListFailed));
        assert_eq!(lists.current(|| lists.failed(1)).await, Err(ListFailed));
        assert_eq!(lists.current(|| lists.fetched(1)).await, Ok(()));
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
            state.notification(None, method, Some(json!({ "progress": 1, "odd": 1 })));
        }
        let passed = observer.0.lock();
        let methods: Vec<&str> = passed.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(
            methods,
            ["notifications/message", "notifications/resources/updated", "notifications/odd"]
        );
        assert!(passed.iter().all(|(_, params)| params.as_ref().unwrap()["odd"] == 1));
    }
}
