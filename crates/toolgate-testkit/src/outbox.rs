//! The way out: one queue of frames for each stream towards the client.

use serde_json::Value;
use tokio::sync::mpsc;

/// One message, or what is sent in its place, on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The text, without line breaks.
    pub(crate) text: String,
    /// What it is, for transports that treat an answer differently.
    pub(crate) kind: FrameKind,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The answer to a request, broken or not.
    Answer,
    /// A notification or a request of the server's own.
    Initiative,
}

/// The sending end of a stream towards the client.
///
/// The queue is unbounded: a fixture that waits for a slow reader could not misbehave on time.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(mpsc::UnboundedSender<Frame>);

impl Outbox {
    /// A queue and its receiving end.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Frame>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Queues the answer to a request. A client that has gone is no error.
    pub(crate) fn answer(&self, text: String) {
        let _ = self.0.send(Frame { text, kind: FrameKind::Answer });
    }

    /// Queues a notification or a request of the server's own.
    pub(crate) fn initiate(&self, message: &Value) {
        let _ = self.0.send(Frame { text: message.to_string(), kind: FrameKind::Initiative });
    }

    /// Passes a frame on from another stream.
    pub(crate) fn forward(&self, frame: Frame) {
        let _ = self.0.send(frame);
    }

    /// Resolves when nobody reads this stream any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}
