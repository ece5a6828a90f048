//! What was heard on a connection.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use crate::{
    connection::Progress,
    raw::{self, Notified},
    ticket::Ticket,
    turns::{Caller, Turn, Turns},
};

/// What was heard on a connection.
pub(crate) struct Heard {
    tickets: Mutex<HashMap<ProgressToken, Ticket>>,
    calls: Mutex<HashMap<RequestId, Call>>,
    probe: Mutex<Probe>,
    initialized: AtomicBool,
    /// The server's own requests that are not answered yet.
    questions: Mutex<HashSet<RequestId>>,
    pub(crate) list_changed: Notify,
    pub(crate) turns: Arc<Turns>,
    on_notification: Box<OnNotification>,
}

/// Gets a notification that is about no call.
type OnNotification = dyn Fn(&str, Option<&Value>) + Send + Sync;

/// A request that was sent.
#[derive(Debug)]
struct Call {
    token: Option<ProgressToken>,
    ticket: Ticket,
    /// Since when nobody waits for it any more, and its turn: it is the caller's for as long as the
    /// server may be at work on it.
    abandoned: Option<(Instant, Option<Turn>)>,
}

/// How long a server that was told of a cancellation may still ask on behalf of the call: until
/// then its question could be that caller's.
const AFTER_CANCELLATION: Duration = Duration::from_secs(10);

/// How long a call waits for its turn while whoever has it is being asked.
const TURN_PATIENCE: Duration = Duration::from_secs(30);

/// More requests of a server than this at a time are not answered: one that asks without end and
/// never reads would fill the memory with answers.
const MAX_QUESTIONS: usize = 64;

/// The life of a `server/discover`.
#[derive(Debug, Default, Clone)]
enum Probe {
    #[default]
    None,
    Sent(RequestId, Instant),
    Answered,
    /// `initialize` was sent without waiting any longer. The answer may still come, and would be
    /// taken for that of `initialize`.
    Abandoned(RequestId, Late),
}

/// What came after the wait was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    Nothing,
    /// The answer of a server that does speak the newer protocol.
    Discovered,
}

impl Call {
    fn may_be_at_work(&self) -> bool {
        self.abandoned.as_ref().is_none_or(|(since, _)| since.elapsed() < AFTER_CANCELLATION)
    }
}

impl Heard {
    /// `on_notification` gets the notifications that are about no call.
    pub(crate) fn new(
        turns: Arc<Turns>,
        on_notification: impl Fn(&str, Option<&Value>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            tickets: Mutex::default(),
            calls: Mutex::default(),
            probe: Mutex::default(),
            initialized: AtomicBool::new(false),
            questions: Mutex::default(),
            list_changed: Notify::new(),
            turns,
            on_notification: Box::new(on_notification),
        }
    }

    /// The call of a request that was sent.
    pub(crate) fn call(&self, id: &RequestId) -> Option<Ticket> {
        self.calls.lock().get(id).map(|call| call.ticket.clone())
    }

    /// The calls that the server may be at work on, the newest first: most servers ask at once.
    pub(crate) fn calls(&self) -> Vec<Ticket> {
        let mut calls = self.calls.lock();
        calls.retain(|_, call| call.may_be_at_work());
        let mut calls: Vec<_> =
            calls.iter().map(|(id, call)| (id.clone(), call.ticket.clone())).collect();
        calls.sort_by_key(|(id, _)| match id {
            RequestId::Number(number) => std::cmp::Reverse(*number),
            RequestId::String(_) => std::cmp::Reverse(i64::MIN),
        });
        calls.into_iter().map(|(_, ticket)| ticket).collect()
    }

    /// Waits for a caller's turn. Nothing, if those whose turn it is were asked something that they
    /// leave unanswered.
    pub(crate) async fn turn(&self, caller: Caller) -> Option<Turn> {
        let somebody_is_asked = async {
            loop {
                tokio::time::sleep(TURN_PATIENCE).await;
                if self.calls().iter().any(|call| call.asking().is_open()) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            turn = self.turns.enter(caller) => Some(turn),
            () = somebody_is_asked => None,
        }
    }

    pub(crate) fn outgoing(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(request) = message else { return };
        match &request.request {
            ClientRequest::DiscoverRequest(_) => {
                *self.probe.lock() = Probe::Sent(request.id.clone(), Instant::now());
            }
            ClientRequest::InitializeRequest(_) => {
                self.abandon_probe();
            }
            other => {
                let Some(ticket) = other.extensions().get::<Ticket>() else { return };
                ticket.sent();
                let token = other.get_meta().get_progress_token();
                if let Some(token) = &token {
                    self.tickets.lock().insert(token.clone(), ticket.clone());
                }
                let call = Call { token, ticket: ticket.clone(), abandoned: None };
                self.calls.lock().insert(request.id.clone(), call);
            }
        }
    }

    /// Whether the message is for rmcp.
    pub(super) fn incoming(&self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let discovered = matches!(response.result, ServerResult::DiscoverResult(_));
                self.answered(&response.id, discovered)
            }
            ServerJsonRpcMessage::Error(error) => {
                error.id.as_ref().is_none_or(|id| self.answered(id, false))
            }
            ServerJsonRpcMessage::Notification(notification) => {
                self.notified(&notification.notification);
                true
            }
            ServerJsonRpcMessage::Request(request) => {
                let mut questions = self.questions.lock();
                questions.len() < MAX_QUESTIONS && questions.insert(request.id.clone())
            }
        }
    }

    fn notified(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                let params = &progress.params;
                if let Some(ticket) = self.tickets.lock().get(&params.progress_token) {
                    ticket.report(Progress {
                        progress: params.progress,
                        total: params.total,
                        message: params.message.clone(),
                    });
                }
            }
            ServerNotification::ToolListChangedNotification(_) => self.list_changed.notify_one(),
            ServerNotification::CancelledNotification(cancelled) => {
                // rmcp drops the answer, which therefore does not pass here.
                if let Some(id) = &cancelled.params.request_id {
                    self.question_is_over(id);
                }
            }
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => {}
            other => {
                if let Some(Notified { method, params }) = other.extensions().get::<Notified>() {
                    (self.on_notification)(method, params.as_ref());
                }
            }
        }
    }

    pub(super) fn question_is_over(&self, id: &RequestId) {
        self.questions.lock().remove(id);
    }

    fn answered(&self, id: &RequestId, discovered: bool) -> bool {
        self.forget(id);
        let mut probe = self.probe.lock();
        match &mut *probe {
            Probe::Sent(sent, _) if raw::same_id(sent, id) => {
                *probe = Probe::Answered;
                true
            }
            Probe::Abandoned(abandoned, late) if raw::same_id(abandoned, id) => {
                if discovered {
                    *late = Late::Discovered;
                }
                false
            }
            _ => true,
        }
    }

    /// Notes that a session was opened. A second one means that the server is not what it was.
    pub(crate) fn initialized(&self) {
        if self.initialized.swap(true, Ordering::AcqRel) {
            self.list_changed.notify_one();
        }
    }

    /// When the patience with an unanswered probe ends.
    pub(super) fn due(&self, patience: Duration) -> Option<Instant> {
        match &*self.probe.lock() {
            Probe::Sent(_, at) => Some(*at + patience),
            _ => None,
        }
    }

    /// Gives up an unanswered probe. The refusal stands for the answer that did not come.
    pub(super) fn abandon_probe(&self) -> Option<ServerJsonRpcMessage> {
        let mut probe = self.probe.lock();
        let Probe::Sent(id, _) = &*probe else { return None };
        let id = id.clone();
        *probe = Probe::Abandoned(id.clone(), Late::Nothing);
        let refusal = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer in time", None);
        Some(ServerJsonRpcMessage::error(refusal, Some(id)))
    }

    /// Whether the probe has been answered, or none was made.
    pub(crate) fn probe_is_answered(&self) -> bool {
        matches!(&*self.probe.lock(), Probe::None | Probe::Answered)
    }

    /// Whether the handshake went on without the probe's answer.
    pub(crate) fn probe_was_abandoned(&self) -> bool {
        matches!(&*self.probe.lock(), Probe::Abandoned(..))
    }

    /// Whether the answer to an abandoned probe was that of the newer protocol after all.
    pub(crate) fn discovered_late(&self) -> bool {
        matches!(&*self.probe.lock(), Probe::Abandoned(_, Late::Discovered))
    }

    /// Drops the ticket of a request that was answered.
    pub(crate) fn forget(&self, id: &RequestId) {
        let call = self.calls.lock().remove(id);
        if let Some(token) = call.and_then(|call| call.token) {
            self.tickets.lock().remove(&token);
        }
    }

    /// Notes that nobody waits for a request any more. The server may be at work on it all the same,
    /// so that the caller's turn is not over before it is answered or can be taken for forgotten.
    pub(crate) fn abandon(self: &Arc<Self>, id: &RequestId, turn: Option<Turn>) {
        let token = {
            let mut calls = self.calls.lock();
            let Some(call) = calls.get_mut(id) else { return };
            call.abandoned = Some((Instant::now(), turn));
            call.token.take()
        };
        if let Some(token) = token {
            self.tickets.lock().remove(&token);
        }
        let heard = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(AFTER_CANCELLATION).await;
            if let Some(heard) = heard.upgrade() {
                heard.calls.lock().retain(|_, call| call.may_be_at_work());
            }
        });
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Heard").field("calls", &self.calls).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams};
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::{
        super::{Tap, TapOptions},
        *,
    };
    use rmcp::transport::Transport;

    fn heard() -> Heard {
        Heard::new(Arc::default(), |_, _| {})
    }

    fn called(heard: &Heard, id: i64, progress: mpsc::Sender<Progress>) -> Ticket {
        let ticket = Ticket::new(Some(progress), None);
        let mut request = CallToolRequest::new(CallToolRequestParams::new("t"));
        request.extensions.insert(ticket.clone());
        let mut request = ClientRequest::CallToolRequest(request);
        request.get_meta_mut().set_progress_token(ProgressToken(RequestId::Number(id + 100)));
        assert!(!ticket.was_sent());
        heard.outgoing(&ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        ticket
    }

    fn received(heard: &Heard, message: serde_json::Value) -> bool {
        heard.incoming(&raw::open(raw::decode(message, |_| false).unwrap(), false))
    }

    #[tokio::test]
    async fn progress_goes_to_its_call_until_the_call_is_over() {
        let heard = heard();
        let (sender, mut steps) = mpsc::channel(8);
        let ticket = called(&heard, 1, sender);
        assert!(ticket.was_sent());
        let step = |progress| {
            json!({"jsonrpc": "2.0", "method": "notifications/progress",
                   "params": {"progressToken": 101, "progress": progress}})
        };
        assert!(received(&heard, step(1)));
        assert!(received(&heard, json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
        assert!(received(&heard, step(2)));
        ticket.progressed().await;
        let first = Progress { progress: 1.0, total: None, message: None };
        assert_eq!(steps.try_recv(), Ok(first));
        assert!(steps.try_recv().is_err());
        assert!(heard.tickets.lock().is_empty() && heard.calls.lock().is_empty());
    }

    #[test]
    fn a_server_that_asks_without_end_is_not_listened_to() {
        let heard = heard();
        let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        assert!((0..MAX_QUESTIONS).all(|id| received(&heard, ping(id))));
        assert!(!received(&heard, ping(1000)));
        heard.question_is_over(&RequestId::Number(1));
        assert!(received(&heard, ping(1001)) && !received(&heard, ping(1002)));
        let withdrawn = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": 2}});
        assert!(received(&heard, withdrawn) && received(&heard, ping(1003)));
    }

    #[test]
    fn what_is_about_no_call_is_passed_on() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let heard = Heard::new(Arc::default(), move |method, params| {
            kept.lock().push((method.to_owned(), params.cloned()));
        });
        for method in [
            "notifications/message",
            "notifications/progress",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
            "notifications/odd",
        ] {
            let params = json!({"progressToken": 1, "progress": 1, "level": "info", "data": 1,
                                "uri": "x:y", "odd": 1});
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            assert!(received(&heard, message));
        }
        let methods: Vec<String> = told.lock().iter().map(|(method, _)| method.clone()).collect();
        assert_eq!(
            methods,
            ["notifications/message", "notifications/resources/updated", "notifications/odd"]
        );
        assert!(told.lock().iter().all(|(_, params)| params.as_ref().unwrap()["odd"] == 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_to_the_probe_is_not_that_of_initialize() {
        let heard = Arc::new(heard());
        let probe = rmcp::model::DiscoverRequest::new(rmcp::model::DiscoverRequestParams {});
        let probe = ClientRequest::DiscoverRequest(probe);
        heard.outgoing(&ClientJsonRpcMessage::request(probe, RequestId::Number(0)));
        let silent = crate::stdio::StdioTransport::new(
            tokio::io::simplex(16).0,
            tokio::io::sink(),
            1024,
            |_| {},
        );
        let patience = Some(Duration::from_secs(3));
        let options = TapOptions { sealed: false, probe_patience: patience };
        let mut tap = Tap::new(silent, Arc::clone(&heard), options);
        let message = tap.receive().await;
        assert!(matches!(message, Some(ServerJsonRpcMessage::Error(_))), "{message:?}");
        assert!(heard.probe_was_abandoned() && !heard.probe_is_answered());

        let late = json!({"jsonrpc": "2.0", "id": "0", "error": {"code": -1, "message": "no"}});
        assert!(!received(&heard, late));
        assert!(!heard.discovered_late());
        assert!(received(&heard, json!({"jsonrpc": "2.0", "id": 1, "result": {}})));
    }
}
