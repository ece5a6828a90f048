//! Between rmcp and the transport: sees every message, in its order.
//!
//! rmcp hands each notification to a task of its own, which loses their order, and it chooses
//! progress tokens itself, so that a caller knows its token only after the request has left. Here
//! a call's [`Ticket`] travels with the request, invisible to the wire, and is known before the
//! first byte is sent.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, GetMeta,
        ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

use crate::{connection::Progress, raw};

/// What is known of a call on its way. Put into the request's extensions.
#[derive(Debug, Clone)]
pub(crate) struct Ticket(Arc<TicketState>);

#[derive(Debug)]
struct TicketState {
    sent: AtomicBool,
    progressed: Notify,
    progress: Option<mpsc::Sender<Progress>>,
}

/// A transport that is listened to.
pub(crate) struct Tap<T> {
    inner: T,
    heard: Arc<Heard>,
    options: TapOptions,
}

/// How a transport is listened to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapOptions {
    /// Whether results come sealed (see [`raw::seal`]).
    pub(crate) sealed: bool,
    /// How long a `server/discover` may go unanswered before it is taken for refused. `None`
    /// where the transport cannot go on after it.
    pub(crate) probe_patience: Option<Duration>,
}

/// What was heard on a connection.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    tickets: Mutex<HashMap<ProgressToken, Ticket>>,
    tokens: Mutex<HashMap<RequestId, ProgressToken>>,
    probe: Mutex<Probe>,
    initialized: AtomicBool,
    /// The server's own requests whose answers are on their way.
    questions: AtomicUsize,
    pub(crate) list_changed: Notify,
}

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

impl Ticket {
    pub(crate) fn new(progress: Option<mpsc::Sender<Progress>>) -> Self {
        let (sent, progressed) = (AtomicBool::new(false), Notify::new());
        Self(Arc::new(TicketState { sent, progressed, progress }))
    }

    /// Whether the request was given to the transport. If not, it had no effect.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.sent.load(Ordering::Acquire)
    }

    /// Waits for the next progress.
    pub(crate) async fn progressed(&self) {
        self.0.progressed.notified().await;
    }
}

impl<T> Tap<T> {
    pub(crate) fn new(inner: T, heard: Arc<Heard>, options: TapOptions) -> Self {
        Self { inner, heard, options }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.heard.outgoing(&message);
        let is_answer =
            matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        let sending = self.inner.send(message);
        let heard = is_answer.then(|| Arc::clone(&self.heard));
        async move {
            let outcome = sending.await;
            if let Some(heard) = heard {
                heard.question_is_over();
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let overdue = self.options.probe_patience.and_then(|patience| self.heard.due(patience));
            let message = match overdue {
                None => self.inner.receive().await?,
                Some(due) => match tokio::time::timeout_at(due, self.inner.receive()).await {
                    Ok(message) => message?,
                    Err(_) => match self.heard.abandon_probe() {
                        Some(refusal) => return Some(refusal),
                        None => continue,
                    },
                },
            };
            let message = if self.options.sealed { raw::open(message) } else { message };
            if self.heard.incoming(&message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

impl Heard {
    fn outgoing(&self, message: &ClientJsonRpcMessage) {
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
                ticket.0.sent.store(true, Ordering::Release);
                if let Some(token) = other.get_meta().get_progress_token() {
                    self.tickets.lock().insert(token.clone(), ticket.clone());
                    self.tokens.lock().insert(request.id.clone(), token);
                }
            }
        }
    }

    /// Whether the message is for rmcp.
    fn incoming(&self, message: &ServerJsonRpcMessage) -> bool {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let discovered = matches!(response.result, ServerResult::DiscoverResult(_));
                self.answered(&response.id, discovered)
            }
            ServerJsonRpcMessage::Error(error) => {
                error.id.as_ref().is_none_or(|id| self.answered(id, false))
            }
            ServerJsonRpcMessage::Notification(notification) => {
                match &notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        let params = &progress.params;
                        if let Some(ticket) = self.tickets.lock().get(&params.progress_token) {
                            ticket.0.progressed.notify_one();
                            if let Some(sink) = &ticket.0.progress {
                                // A caller that does not keep up loses steps, never the result.
                                let _ = sink.try_send(Progress {
                                    progress: params.progress,
                                    total: params.total,
                                    message: params.message.clone(),
                                });
                            }
                        }
                    }
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.list_changed.notify_one();
                    }
                    _ => {}
                }
                true
            }
            ServerJsonRpcMessage::Request(_) => {
                let taken =
                    self.questions.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
                        (open < MAX_QUESTIONS).then_some(open + 1)
                    });
                taken.is_ok()
            }
        }
    }

    fn question_is_over(&self) {
        let less = |open: usize| open.checked_sub(1);
        let _ = self.questions.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
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
    fn due(&self, patience: Duration) -> Option<Instant> {
        match &*self.probe.lock() {
            Probe::Sent(_, at) => Some(*at + patience),
            _ => None,
        }
    }

    /// Gives up an unanswered probe. The refusal stands for the answer that did not come.
    fn abandon_probe(&self) -> Option<ServerJsonRpcMessage> {
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

    /// Drops the ticket of a request that is over.
    pub(crate) fn forget(&self, id: &RequestId) {
        let token = self.tokens.lock().remove(id);
        if let Some(token) = token {
            self.tickets.lock().remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams};
    use serde_json::json;

    use super::*;

    fn called(heard: &Heard, id: i64, progress: mpsc::Sender<Progress>) -> Ticket {
        let ticket = Ticket::new(Some(progress));
        let mut request = CallToolRequest::new(CallToolRequestParams::new("t"));
        request.extensions.insert(ticket.clone());
        let mut request = ClientRequest::CallToolRequest(request);
        request.get_meta_mut().set_progress_token(ProgressToken(RequestId::Number(id + 100)));
        assert!(!ticket.was_sent());
        heard.outgoing(&ClientJsonRpcMessage::request(request, RequestId::Number(id)));
        ticket
    }

    fn received(heard: &Heard, message: serde_json::Value) -> bool {
        heard.incoming(&serde_json::from_value(message).unwrap())
    }

    #[tokio::test]
    async fn progress_goes_to_its_call_until_the_call_is_over() {
        let heard = Heard::default();
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
        assert!(heard.tickets.lock().is_empty() && heard.tokens.lock().is_empty());
    }

    #[test]
    fn a_server_that_asks_without_end_is_not_listened_to() {
        let heard = Heard::default();
        let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        assert!((0..MAX_QUESTIONS).all(|id| received(&heard, ping(id))));
        assert!(!received(&heard, ping(1000)));
        heard.question_is_over();
        assert!(received(&heard, ping(1001)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_to_the_probe_is_not_that_of_initialize() {
        let heard = Arc::new(Heard::default());
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
