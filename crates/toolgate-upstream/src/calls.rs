//! The calls that are under way on one connection.

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
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    ErrorObject,
    client::{ConnectionHandler, InputRequest, OpenInputRequests, OutputSource, RelatedRequest},
    methods,
};

use crate::{
    call_queue::{CallQueue, CallSlot, QueuedCaller},
    connection::Progress,
    input_handler::InputHandler,
    input_requests,
    upstream::ServerObserver,
};

/// How long a server that was told of a cancellation may still ask on behalf of the call: until
/// then its input request could be for that caller.
const AFTER_CANCELLATION: Duration = Duration::from_secs(10);

/// How long a call waits for its slot while a caller that has one is being asked.
const SLOT_TIMEOUT: Duration = Duration::from_secs(30);

/// A call that is under way.
#[derive(Debug, Default)]
pub(crate) struct PendingCall {
    progressed: Notify,
    progress: Option<mpsc::Sender<Progress>>,
    pub(crate) input_handler: Option<Arc<dyn InputHandler>>,
    pub(crate) open_input_requests: OpenInputRequests,
    input_requests: AtomicUsize,
    /// Cancelled when nobody waits for the call any more.
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
            // A caller that does not keep up loses steps, never the result.
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

    /// Counts one more input request, and says how many there have been.
    pub(crate) fn count_input_request(&self) -> usize {
        self.input_requests.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// A call, and its slot if it was abandoned.
type CallEntry = (Arc<PendingCall>, Option<CallSlot>);

/// The state of one connection. It gets what the server sends of its own accord.
pub(crate) struct ConnectionState {
    server: ServerName,
    observer: Arc<dyn ServerObserver>,
    next_key: AtomicI64,
    /// By their keys.
    calls: Mutex<BTreeMap<i64, CallEntry>>,
    pub(crate) list_changed: Notify,
    pub(crate) queue: Arc<CallQueue>,
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
            list_changed: Notify::new(),
            queue,
        }
    }

    /// Adds a call and gives its key.
    pub(crate) fn add(&self, call: Arc<PendingCall>) -> i64 {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().insert(key, (call, None));
        key
    }

    pub(crate) fn call(&self, key: i64) -> Option<Arc<PendingCall>> {
        self.calls.lock().get(&key).map(|(call, _)| call.clone())
    }

    /// The calls that the server may be at work on, the newest first: most servers ask at once.
    pub(crate) fn calls(&self) -> Vec<Arc<PendingCall>> {
        self.calls.lock().values().rev().map(|(call, _)| call.clone()).collect()
    }

    /// Waits until a caller may call. Gives `None` if a caller that has a slot was asked something
    /// that it leaves unanswered.
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

    /// Removes a call that was answered, or is not worked on any more.
    pub(crate) fn forget(&self, key: i64) {
        let call = self.calls.lock().remove(&key);
        // Outside of the lock: a slot that is dropped lets others in.
        drop(call);
    }

    /// Keeps a call that nobody waits for any more. The server may be at work on it, so that the
    /// caller has its slot until the call is `answered`, or for ten seconds.
    pub(crate) fn abandon(
        self: &Arc<Self>,
        key: i64,
        slot: Option<CallSlot>,
        answered: impl Future<Output = ()> + Send + 'static,
    ) {
        if let Some((_, kept)) = self.calls.lock().get_mut(&key) {
            *kept = slot;
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
            methods::TOOLS_CHANGED => self.list_changed.notify_one(),
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
        // Requests that are no calls have the key `null`; no call has the key 0.
        let stream = stream.map(|about| about.key.as_i64().unwrap_or_default());
        let calls = input_requests::find(self, &request, stream);
        Box::pin(input_requests::answer(calls, request))
    }

    fn output(&self, source: OutputSource, line: &str) {
        self.observer.output(&self.server, source, line);
    }

    fn session_renewed(&self) {
        // The server lost the session, perhaps because it is another one now.
        self.list_changed.notify_one();
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
