//! What is known of a call on its way.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{clock::Asking, connection::Progress, input_handler::InputHandler, turns::Caller};

/// Travels with a request, invisible to the wire.
#[derive(Debug, Clone)]
pub(crate) struct Ticket(Arc<State>);

#[derive(Debug)]
struct State {
    sent: AtomicBool,
    progressed: Notify,
    progress: Option<mpsc::Sender<Progress>>,
    respondent: Option<Arc<dyn InputHandler>>,
    asking: Asking,
    asked: AtomicUsize,
    over: CancellationToken,
}

impl Ticket {
    pub(crate) fn new(
        progress: Option<mpsc::Sender<Progress>>,
        respondent: Option<Arc<dyn InputHandler>>,
    ) -> Self {
        Self(Arc::new(State {
            sent: AtomicBool::new(false),
            progressed: Notify::new(),
            progress,
            respondent,
            asking: Asking::default(),
            asked: AtomicUsize::new(0),
            over: CancellationToken::new(),
        }))
    }

    /// Notes that the request is given to the transport.
    pub(crate) fn sent(&self) {
        self.0.sent.store(true, Ordering::Release);
    }

    /// Whether the request was given to the transport. If not, it had no effect.
    pub(crate) fn was_sent(&self) -> bool {
        self.0.sent.load(Ordering::Acquire)
    }

    /// Passes a sign of life on.
    pub(crate) fn report(&self, progress: Progress) {
        self.0.progressed.notify_one();
        if let Some(sink) = &self.0.progress {
            // A caller that does not keep up loses steps, never the result.
            let _ = sink.try_send(progress);
        }
    }

    /// Waits for the next progress.
    pub(crate) async fn progressed(&self) {
        self.0.progressed.notified().await;
    }

    /// Who answers for the caller.
    pub(crate) fn respondent(&self) -> Option<&Arc<dyn InputHandler>> {
        self.0.respondent.as_ref()
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::of(self.0.respondent.as_ref())
    }

    /// The questions that are open for this call.
    pub(crate) fn asking(&self) -> &Asking {
        &self.0.asking
    }

    /// Counts one more question, and says how many there have been.
    pub(crate) fn count_question(&self) -> usize {
        self.0.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Notes that nobody waits for the call any more.
    pub(crate) fn end(&self) {
        self.0.over.cancel();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.over.is_cancelled()
    }

    /// Waits until nobody waits for the call any more.
    pub(crate) async fn over(&self) {
        self.0.over.cancelled().await;
    }
}
