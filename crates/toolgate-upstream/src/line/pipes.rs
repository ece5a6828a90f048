//! A line over the pipes of a child.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    process::ChildStdout,
    sync::mpsc,
};

use super::{
    WATCHDOG,
    exchange::{Exchange, Outlet},
    trouble::Trouble,
};
use crate::{
    lines::{Line, LineReader},
    process::{self, Process, Started},
    raw,
    redact::Redactor,
    spec::StdioEndpoint,
    stdio,
};

/// Each may be as large as the limit.
const QUEUED_MESSAGES: usize = 8;
/// How long what a child still has in its pipe may take after its end.
const AFTERMATH: Duration = Duration::from_millis(500);

/// A child and the way to it.
pub(super) struct Pipes {
    /// `None` once its stdin is closed.
    messages: Mutex<Option<mpsc::Sender<Value>>>,
    pub(super) process: Arc<Process>,
}

impl Pipes {
    /// Starts the command. It ends with the exchange.
    pub(super) async fn start(
        endpoint: &StdioEndpoint,
        redactor: Redactor,
        max_message_bytes: usize,
        exchange: &Arc<Exchange>,
    ) -> std::io::Result<Self> {
        let on_stderr = |line: &str| tracing::debug!(%line, "a server's stderr");
        let started = process::start(endpoint, &WATCHDOG, redactor, on_stderr);
        let Started { process, stdin, stdout } = started.await?;
        let process = Arc::new(process);
        let (messages, queue) = mpsc::channel(QUEUED_MESSAGES);
        tokio::spawn(write(queue, stdin, Arc::clone(exchange)));
        let answers = messages.downgrade();
        let outlet: Outlet = Arc::new(move |answer| {
            let messages = answers.upgrade();
            Box::pin(async move {
                if let Some(messages) = messages {
                    // A line that is over needs no answers.
                    let _ = messages.send(answer).await;
                }
            })
        });
        let reader = LineReader::new(stdout, max_message_bytes);
        tokio::spawn(attend(reader, Arc::clone(exchange), outlet, Arc::clone(&process)));
        Ok(Self { messages: Mutex::new(Some(messages)), process })
    }

    pub(super) async fn request(
        &self,
        id: i64,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Trouble> {
        self.send(request(id, method, params)).await
    }

    pub(super) async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        self.send(notification(method, params)).await
    }

    /// Closes stdin and gives the child time to leave.
    pub(super) async fn close(&self, patience: Duration) {
        self.messages.lock().take();
        self.process.stop(patience).await;
    }

    async fn send(&self, message: Map<String, Value>) -> Result<(), Trouble> {
        let messages = self.messages.lock().clone();
        let messages = messages.ok_or(Trouble::Closed)?;
        messages.send(Value::Object(message)).await.map_err(|_| Trouble::Closed)
    }
}

pub(super) fn request(id: i64, method: &str, params: Option<Value>) -> Map<String, Value> {
    let mut message = notification(method, params);
    message.insert("id".to_owned(), json!(id));
    message
}

pub(super) fn notification(method: &str, params: Option<Value>) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), json!("2.0"));
    message.insert("method".to_owned(), json!(method));
    message.extend(params.map(|params| ("params".to_owned(), params)));
    message
}

/// Writes whole messages, whoever stops waiting for one.
async fn write(
    mut messages: mpsc::Receiver<Value>,
    mut stdin: impl AsyncWrite + Unpin,
    exchange: Arc<Exchange>,
) {
    let writing = async {
        while let Some(message) = messages.recv().await {
            let mut line = message.to_string().into_bytes();
            line.push(b'\n');
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    };
    // A server that does not read keeps a write waiting, and the pipe with it.
    tokio::select! {
        () = writing => {}
        () = exchange.closed() => {}
    }
}

/// Reads until the child or the exchange ends, and ends the other then.
async fn attend(
    reader: LineReader<ChildStdout>,
    exchange: Arc<Exchange>,
    outlet: Outlet,
    process: Arc<Process>,
) {
    let reading = read(reader, &exchange, &outlet);
    let mut reading = std::pin::pin!(reading);
    tokio::select! {
        () = &mut reading => {}
        () = exchange.closed() => {}
        // A process that left its group can hold the pipes of a server that is long gone.
        () = process.exited() => {
            let _ = tokio::time::timeout(AFTERMATH, &mut reading).await;
        }
    }
    exchange.close();
}

async fn read(mut reader: LineReader<ChildStdout>, exchange: &Arc<Exchange>, outlet: &Outlet) {
    loop {
        match reader.next().await {
            Line::Whole => match serde_json::from_slice::<Value>(reader.line()) {
                // Protocol version 2025-03-26 had batches.
                Ok(Value::Array(batch)) => {
                    for message in batch {
                        exchange.receive(message, None, outlet);
                    }
                }
                Ok(message) => exchange.receive(message, None, outlet),
                Err(error) => {
                    let why = format!("it is no JSON: {error}");
                    unreadable(exchange, reader.line(), reader.line(), &why);
                }
            },
            Line::TooLong { bytes, head, tail } => {
                let why = stdio::too_large(Some(bytes), reader.limit());
                unreadable(exchange, &head, &tail, &why);
            }
            Line::End => return,
        }
    }
}

/// Ends the request that an unreadable answer is for, if that can be seen.
fn unreadable(exchange: &Exchange, head: &[u8], tail: &[u8], why: &str) {
    let id = stdio::id_of_unreadable(head, tail);
    if let Some(rmcp::model::RequestId::Number(id)) = id {
        exchange.answer(id, Err(Trouble::Refused(raw::unreadable_error(why))));
    }
}
