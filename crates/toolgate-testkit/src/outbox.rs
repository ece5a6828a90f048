//! The queues of outgoing frames, one for each stream to a client.

use serde_json::Value;
use tokio::sync::mpsc;

/// An outgoing message, or what is sent in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The text, without line breaks.
    pub(crate) text: String,
    /// The kind, for transports that treat a response differently.
    pub(crate) kind: FrameKind,
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The answer to a request, broken or not.
    Answer,
    /// A notification or request of the server.
    Initiative,
}

/// The sending end of a stream to the client.
///
/// The queue is unbounded, because a fixture that waits for a slow reader could not misbehave on
/// time.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(mpsc::UnboundedSender<Frame>);

impl Outbox {
    /// A queue and its receiving end.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Frame>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Queues the response to a request. A disconnected client is no error.
    pub(crate) fn answer(&self, text: String) {
        let _ = self.0.send(Frame { text, kind: FrameKind::Answer });
    }

    /// Queues a notification or request of the server.
    pub(crate) fn initiate(&self, message: &Value) {
        let _ = self.0.send(Frame { text: message.to_string(), kind: FrameKind::Initiative });
    }

    /// Forwards a frame from another stream.
    pub(crate) fn forward(&self, frame: Frame) {
        let _ = self.0.send(frame);
    }

    /// Resolves when the stream has no reader.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}
