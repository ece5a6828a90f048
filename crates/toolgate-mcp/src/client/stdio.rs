//! Messages on the pipes of a child process, or on an in-memory connection, one a line.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
};

use toolgate_wait::QuickWait;

use super::{
    connection::OutputSource,
    endpoint::{MessageSizes, StdioEndpoint},
    exchange::{Exchange, ExchangeError, Responder, number},
    in_process::{self, InProcessServer},
    incoming::{self, IncomingJson},
    process::{self, Process, Started},
    redact::Redactor,
};
use crate::json_line;

/// Each may be as large as the limit.
const QUEUED_MESSAGES: usize = 8;
/// How long it may take to read the rest of the pipe after the exit of a child.
const REMAINDER_TIMEOUT: Duration = Duration::from_millis(500);
/// Distinguishes a message from other JSON.
const VERSION: &str = "\"jsonrpc\"";

/// The queue of messages to a server that reads lines, and its process if it has one.
pub(super) struct StdioTransport {
    /// `None` once its stdin is closed.
    messages: Mutex<Option<mpsc::Sender<Value>>>,
    /// `None` if the server is a part of this program.
    pub(super) process: Option<Arc<Process>>,
    pub(super) exchange: Arc<Exchange>,
}

impl StdioTransport {
    /// Starts the command. It ends with the exchange.
    pub(super) async fn start(
        endpoint: &StdioEndpoint,
        redactor: Redactor,
        sizes: MessageSizes,
        exchange: &Arc<Exchange>,
    ) -> std::io::Result<Self> {
        let observed = Arc::clone(exchange);
        let on_stderr = move |line: &str| observed.handler().output(OutputSource::Stderr, line);
        let started = process::start(endpoint, redactor.clone(), on_stderr).await?;
        Ok(Self::of(started, redactor, sizes, exchange))
    }

    /// Uses a process that was started. It ends with the exchange.
    pub(super) fn of(
        started: Started,
        redactor: Redactor,
        sizes: MessageSizes,
        exchange: &Arc<Exchange>,
    ) -> Self {
        let Started { process, stdin, stdout } = started;
        let process = Some(Arc::new(process));
        Self::connect(stdout, stdin, process, redactor, sizes, exchange)
    }

    /// Connects to a part of this program. It ends with the exchange.
    pub(super) fn in_process(
        server: &dyn InProcessServer,
        redactor: Redactor,
        sizes: MessageSizes,
        exchange: &Arc<Exchange>,
    ) -> Self {
        let observed = Arc::clone(exchange);
        let stream = in_process::start(server, async move { observed.closed().await });
        let (output, input) = tokio::io::split(stream);
        Self::connect(output, input, None, redactor, sizes, exchange)
    }

    fn connect(
        output: impl AsyncRead + Unpin + Send + 'static,
        input: impl AsyncWrite + Unpin + Send + 'static,
        process: Option<Arc<Process>>,
        redactor: Redactor,
        sizes: MessageSizes,
        exchange: &Arc<Exchange>,
    ) -> Self {
        let (messages, queue) = mpsc::channel(QUEUED_MESSAGES);
        tokio::spawn(write(queue, input, Arc::clone(exchange)));
        let responses = messages.downgrade();
        let responder: Responder = Arc::new(move |response| {
            let messages = responses.upgrade();
            Box::pin(async move {
                if let Some(messages) = messages {
                    // A connection that has ended needs no responses.
                    let _ = messages.send(response).await;
                }
            })
        });
        let reader = MessageReader {
            lines: LineReader::new(output, sizes.kept),
            exact: sizes.exact,
            exchange: Arc::clone(exchange),
            responder,
            redactor,
        };
        tokio::spawn(attend(reader, process.clone()));
        let exchange = Arc::clone(exchange);
        Self { messages: Mutex::new(Some(messages)), process, exchange }
    }

    /// Waits until the queue has space for one more message.
    pub(super) async fn reserve(&self) -> Result<mpsc::OwnedPermit<Value>, ExchangeError> {
        let queue = self.messages.lock().clone().ok_or(ExchangeError::Closed)?;
        queue.reserve_owned().await.map_err(|_| ExchangeError::Closed)
    }

    /// Closes stdin and gives the child time to exit.
    pub(super) async fn close(&self, limit: Duration) {
        if let Some(process) = &self.process {
            process.note_descendants();
        }
        self.messages.lock().take();
        if let Some(process) = &self.process {
            process.stop(limit).await;
        }
    }
}

/// Writes whole messages, even if their senders stop waiting.
async fn write(
    mut messages: mpsc::Receiver<Value>,
    mut stdin: impl AsyncWrite + Unpin,
    exchange: Arc<Exchange>,
) {
    let writing = async {
        while let Some(message) = messages.recv().await {
            let line = json_line(&message);
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    };
    // A server that does not read would block the write for ever.
    tokio::select! {
        () = writing => {}
        () = exchange.closed() => {}
    }
}

/// Reads until the child or the exchange ends, and then ends the other.
async fn attend(reader: MessageReader<impl AsyncRead + Unpin>, process: Option<Arc<Process>>) {
    let exchange = Arc::clone(&reader.exchange);
    let reading = reader.read();
    let mut reading = std::pin::pin!(reading);
    let exited = async {
        match &process {
            Some(process) => process.exited().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = &mut reading => {}
        () = exchange.closed() => {}
        // A process that left its group can hold the pipes of a server that has ended.
        () = exited => {
            let _ = tokio::time::timeout(REMAINDER_TIMEOUT, &mut reading).await;
        }
    }
    exchange.close();
}

/// Reads the messages of a child.
struct MessageReader<R> {
    lines: LineReader<R>,
    /// Larger messages are reduced.
    exact: usize,
    exchange: Arc<Exchange>,
    responder: Responder,
    redactor: Redactor,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    async fn read(mut self) {
        loop {
            match self.lines.next().await {
                ReadLine::Whole => match incoming::read(&self.lines.line, self.exact) {
                    Ok(Some(IncomingJson { message, note })) => {
                        if let Some(note) = note {
                            self.exchange.handler().output(OutputSource::Stdout, &note);
                        }
                        match message {
                            // Protocol version 2025-03-26 had batches.
                            Value::Array(batch) => {
                                for message in batch {
                                    self.receive(message);
                                }
                            }
                            message => self.receive(message),
                        }
                    }
                    Ok(None) => {
                        let line = &self.lines.line;
                        self.drop_line(line.len(), line, line);
                    }
                    Err(error) => {
                        self.stray();
                        let why = format!("it is not JSON: {error}");
                        self.unreadable(&self.lines.line, &self.lines.line, why);
                    }
                },
                ReadLine::TooLong { bytes, head, tail } => self.drop_line(bytes, &head, &tail),
                ReadLine::End => return,
            }
        }
    }

    /// Drops a message that is too large.
    fn drop_line(&self, bytes: usize, head: &[u8], tail: &[u8]) {
        let dropped = format!("(a message of {bytes} bytes, over the limit, was dropped)");
        self.exchange.handler().output(OutputSource::Stdout, &dropped);
        self.unreadable(head, tail, too_large(Some(bytes), self.exact));
    }

    fn receive(&self, message: Value) {
        if !self.exchange.receive(message, None, &self.responder) {
            self.stray();
        }
    }

    /// Reports a line that is no message. It is searched for secrets before it is cut.
    fn stray(&self) {
        let line = &self.lines.line;
        let text = String::from_utf8_lossy(&line[..line.len().min(OVERSIZED_END)]);
        if !text.trim().is_empty() {
            let text = self.redactor.clean(text.trim_end());
            self.exchange.note_stray(&text);
            self.exchange.handler().output(OutputSource::Stdout, &text);
        }
    }

    /// Ends the request that an unreadable response is for, if that can be seen.
    fn unreadable(&self, head: &[u8], tail: &[u8], why: String) {
        if let Some(id) = id_of_unreadable(head, tail) {
            self.exchange.respond(id, Err(ExchangeError::Unreadable(why)));
        }
    }
}

/// The error for a response over the limit.
pub(super) fn too_large(bytes: Option<usize>, limit: usize) -> String {
    let size = bytes.map_or_else(String::new, |bytes| format!("it has {bytes} bytes, "));
    format!(
        "{size}more than the {limit} bytes allowed (`maxResultBytes` of the server raises this)"
    )
}

/// The id of a response of which only both ends can be read: SDKs write it either before the result
/// or at the very end.
fn id_of_unreadable(head: &[u8], tail: &[u8]) -> Option<i64> {
    let head = String::from_utf8_lossy(&head[..head.len().min(OVERSIZED_END)]);
    let tail = &tail[tail.len().saturating_sub(OVERSIZED_END)..];
    let tail = String::from_utf8_lossy(tail);
    if !head.trim_start().starts_with('{') || !(head.contains(VERSION) || tail.contains(VERSION)) {
        return None;
    }
    let before_result = head.split("\"result\"").next().unwrap_or_default();
    if before_result.contains("\"method\"") {
        return None;
    }
    let at_end = tail.rsplit_once("\"id\"").map(|(_, rest)| rest);
    before_result.split_once("\"id\"").map(|(_, rest)| rest).or(at_end).and_then(|rest| {
        let value = rest.trim_start().strip_prefix(':')?;
        let end = value.find([',', '}'])?;
        number(&serde_json::from_str(value[..end].trim()).ok()?)
    })
}

/// How much of an oversized line is kept at each end, to find the id of the request.
const OVERSIZED_END: usize = 4096;
/// How much memory the buffer of a line keeps. Most messages are shorter, and there is a buffer for every server.
const LINE_CAPACITY: usize = 64 * 1024;

/// Reads lines of limited length.
struct LineReader<R> {
    input: BufReader<R>,
    waits: QuickWait,
    line: Vec<u8>,
    limit: usize,
}

/// What was read.
enum ReadLine {
    /// The line without its end is in [`LineReader::line`].
    Whole,
    /// Only both ends of the line were kept.
    TooLong { bytes: usize, head: Vec<u8>, tail: Vec<u8> },
    /// There are no more lines.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(input: R, limit: usize) -> Self {
        let input = BufReader::with_capacity(64 * 1024, input);
        Self { input, waits: QuickWait::new(), line: Vec::new(), limit }
    }

    /// Reads the next line. Stores at most the limit.
    async fn next(&mut self) -> ReadLine {
        self.line.clear();
        // One long message must not keep its memory for the life of the connection.
        self.line.shrink_to(LINE_CAPACITY);
        let mut dropped: Option<(usize, Vec<u8>)> = None;
        loop {
            let filled = self.waits.wait(self.input.fill_buf()).await;
            let Ok(available) = filled else { return ReadLine::End };
            if available.is_empty() {
                // A last line without a newline is a line too.
                let whole = dropped.is_none() && !self.line.is_empty();
                return if whole { ReadLine::Whole } else { ReadLine::End };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |position| position + 1);
            let piece = &available[..end.unwrap_or(taken)];
            if dropped.is_none() && self.line.len() + piece.len() > self.limit {
                dropped = Some((self.line.len(), Vec::new()));
                self.line.truncate(OVERSIZED_END);
                if self.line.len() < OVERSIZED_END {
                    let room = OVERSIZED_END - self.line.len();
                    self.line.extend_from_slice(&piece[..piece.len().min(room)]);
                }
            }
            if let Some((bytes, tail)) = &mut dropped {
                *bytes += piece.len();
                tail.extend_from_slice(&piece[piece.len().saturating_sub(OVERSIZED_END)..]);
                let excess = tail.len().saturating_sub(OVERSIZED_END);
                tail.drain(..excess);
            } else {
                self.line.extend_from_slice(piece);
            }
            self.input.consume(taken);
            if end.is_some() {
                return match dropped {
                    Some((bytes, tail)) => {
                        ReadLine::TooLong { bytes, head: std::mem::take(&mut self.line), tail }
                    }
                    None => ReadLine::Whole,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use serde_json::json;

    use super::{
        super::connection::{ConnectionHandler, InputRequest, RelatedRequest},
        *,
    };
    use crate::ErrorObject;

    /// Keeps the stray lines.
    #[derive(Default)]
    struct Strays(Mutex<Vec<String>>);

    impl ConnectionHandler for Strays {
        fn notification(&self, _about: Option<&Value>, _method: &str, _params: Option<Value>) {}

        fn input_request(
            &self,
            _about: Option<RelatedRequest>,
            _request: InputRequest,
        ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }

        fn output(&self, _source: OutputSource, line: &str) {
            self.0.lock().push(line.to_owned());
        }
    }

    /// How the first `requests` requests end if a server writes `input`, and the stray lines.
    async fn received(
        input: impl AsRef<[u8]>,
        limit: usize,
        requests: usize,
    ) -> (Vec<Result<Value, String>>, Vec<String>) {
        let strays = Arc::new(Strays::default());
        let exchange = Exchange::new(Arc::clone(&strays) as Arc<dyn ConnectionHandler>);
        let waiting: Vec<_> =
            (0..requests).map(|_| exchange.begin(Value::Null, "x", None)).collect();
        let reader = MessageReader {
            lines: LineReader::new(input.as_ref(), limit),
            exact: limit,
            exchange: Arc::clone(&exchange),
            responder: Arc::new(|_| Box::pin(async {})),
            redactor: Redactor::default(),
        };
        reader.read().await;
        exchange.close();
        let mut responses = Vec::new();
        for mut waiting in waiting {
            responses.push(waiting.received().await.map_err(|error| match error {
                ExchangeError::Unreadable(why) => why,
                other => format!("{other:?}"),
            }));
        }
        let strays = strays.0.lock().clone();
        (responses, strays)
    }

    #[tokio::test]
    async fn stray_lines_are_reported_and_change_nothing() {
        let input = "Server ready!\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\r\n\n{\"x\":1}\n[1]\n\
                     [{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n\
                     {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}";
        let (responses, strays) = received(input, 1024, 4).await;
        assert_eq!(responses[0], Ok(json!({ "a": 1 })));
        assert!(responses.iter().all(Result::is_ok), "{responses:?}");
        assert_eq!(strays, ["Server ready!", "{\"x\":1}", "[1]"]);
    }

    #[tokio::test]
    async fn what_is_no_unicode_is_replaced_and_noted() {
        let input = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"x\xffy\"}}\n\
                      {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":\"\\udfff\"}}\n";
        let (responses, strays) = received(input, 1024, 2).await;
        let replaced = json!({ "toolgate/replaced": 1 });
        assert_eq!(responses[0], Ok(json!({ "a": "x\u{fffd}y", "_meta": replaced })));
        assert_eq!(responses[1], Ok(json!({ "a": "\u{fffd}", "_meta": replaced })));
        let note = "(a message was changed: 1 characters were no Unicode and are \u{fffd} now)";
        assert_eq!(strays, [note, note]);
    }

    #[tokio::test]
    async fn a_response_that_cannot_be_read_ends_its_request() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"conte\n\
             {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{deep}}}\n\
             {{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":3,\n\
             {{\"id\":4,\n<html>\n"
        );
        let (responses, strays) = received(&input, 100_000, 4).await;
        let is_no_json = |response: &Result<Value, String>| {
            response.as_ref().is_err_and(|why| why.starts_with("it is not JSON"))
        };
        let unreadable: Vec<bool> = responses.iter().map(is_no_json).collect();
        assert_eq!(unreadable, [true, true, false, false]);
        assert_eq!(strays.len(), 5);
    }

    #[tokio::test]
    async fn an_oversized_response_ends_its_request_and_no_other() {
        let filler = "x".repeat(100_000);
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"t\":\"{filler}\"}}}}\n\
             {{\"result\":{{\"t\":\"{filler}\"}},\"jsonrpc\":\"2.0\",\"id\":\"2\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{}}}}\n"
        );
        let (responses, _) = received(&input, 10_000, 3).await;
        assert!(responses[0].as_ref().unwrap_err().contains("100042 bytes"), "{responses:?}");
        assert!(responses[1].as_ref().unwrap_err().contains("maxResultBytes"), "{responses:?}");
        assert_eq!(responses[2], Ok(json!({})));
    }

    #[tokio::test]
    async fn closing_does_not_wait_for_a_server_that_does_not_read() {
        let exchange = Exchange::new(Arc::new(Strays::default()));
        let (_reader, writer) = tokio::io::simplex(16);
        let (messages, queue) = mpsc::channel(1);
        let writing = tokio::spawn(write(queue, writer, Arc::clone(&exchange)));
        messages.send(json!("x".repeat(1000))).await.unwrap();
        tokio::task::yield_now().await;
        exchange.close();
        writing.await.unwrap();
    }
}
