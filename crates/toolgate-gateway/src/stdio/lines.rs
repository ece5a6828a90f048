//! What is written to the client: a line a message, or a line a batch.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::link::Outbox;

/// Where lines to the client go.
#[derive(Debug)]
pub(super) struct Lines(pub(super) mpsc::Sender<Value>);

impl Outbox for Lines {
    fn offer(&self, message: Value) {
        let _ = self.0.try_send(message);
    }

    fn finish(&self, answer: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(answer) = answer {
                let _ = self.0.send(answer).await;
            }
        })
    }
}

/// Gathers the answers to a batch, which are a batch themselves. What else is said meanwhile is not.
#[derive(Debug)]
pub(super) struct Batch {
    lines: Arc<Lines>,
    gathered: Mutex<Gathered>,
}

#[derive(Debug)]
struct Gathered {
    answers: Vec<Value>,
    /// How many requests have come to no end yet.
    open: usize,
}

impl Batch {
    /// For so many requests.
    pub(super) fn new(lines: Arc<Lines>, requests: usize) -> Self {
        let gathered = Gathered { answers: Vec::with_capacity(requests), open: requests };
        Self { lines, gathered: Mutex::new(gathered) }
    }
}

impl Outbox for Batch {
    fn offer(&self, message: Value) {
        self.lines.offer(message);
    }

    fn finish(&self, answer: Option<Value>) -> BoxFuture<'_, ()> {
        let whole = {
            let mut gathered = self.gathered.lock();
            gathered.answers.extend(answer);
            gathered.open = gathered.open.saturating_sub(1);
            // Where all requests were taken back there is nothing to say.
            let over = gathered.open == 0 && !gathered.answers.is_empty();
            over.then(|| Value::Array(std::mem::take(&mut gathered.answers)))
        };
        Box::pin(async move {
            if let Some(whole) = whole {
                self.lines.finish(Some(whole)).await;
            }
        })
    }
}

/// Writes until nobody reads, or all has been written that was said before it was `finished`.
pub(super) async fn write(
    writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Value>,
    gone: CancellationToken,
    finished: CancellationToken,
) {
    let mut writer = BufWriter::new(writer);
    loop {
        let message = tokio::select! {
            biased;
            message = messages.recv() => message,
            () = finished.cancelled(), if !messages.is_closed() => {
                messages.close();
                continue;
            }
        };
        let Some(message) = message else { break };
        let mut line = message.to_string();
        line.push('\n');
        let mut written = writer.write_all(line.as_bytes()).await;
        if written.is_ok() && messages.is_empty() {
            written = writer.flush().await;
        }
        if written.is_err() {
            gone.cancel();
            return;
        }
    }
    let _ = writer.flush().await;
}
