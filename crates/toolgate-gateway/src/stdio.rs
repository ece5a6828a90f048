//! Lines on stdin and stdout: one client, of either era.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{StreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
use rmcp::ErrorData;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter},
    sync::{OnceCell, mpsc},
};
use tokio_util::{
    codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead},
    sync::CancellationToken,
    task::TaskTracker,
};

use crate::{
    caller::Caller,
    conversation::{Conversation, Unwelcome},
    era::{self, Declared, Era},
    face::{Face, Source},
    greeting::Greeting,
    handshake::{self, Terms},
    link::Outbox,
    message::{self, Incoming, Message, Notification, Request, Unreadable},
    running::{Running, Step, Suspended},
};

/// The longest line that is read.
const LINE_BYTES: usize = 16 * 1024 * 1024;
/// Messages that wait for a client that does not read.
const QUEUED: usize = 1024;
/// Requests under way at once.
const IN_FLIGHT: usize = 256;
/// How long a client may take to answer a question.
const PATIENCE: Duration = Duration::from_mins(10);
/// How long requests have to come to an answer once the client has said its last word.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// How long what is cancelled has to end, and the last answers to be read.
const PARTING: Duration = Duration::from_millis(500);

/// Serves one client on stdin and stdout until it leaves, `stop` is cancelled, or there is nothing
/// left to serve.
pub async fn serve_stdio(source: Arc<dyn Source>, stop: CancellationToken) {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    serve_lines(source, reader, writer, stop).await;
}

/// [`serve_stdio`], on other pipes.
pub async fn serve_lines<R, W>(
    source: Arc<dyn Source>,
    reader: R,
    writer: W,
    stop: CancellationToken,
) where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let gone = stop.child_token();
    let (sender, messages) = mpsc::channel(QUEUED);
    let finished = CancellationToken::new();
    let writing = tokio::spawn(write(writer, messages, gone.clone(), finished.clone()));
    let client = Arc::new(OneClient {
        source,
        outbox: Arc::new(Lines(sender)),
        legacy: OnceCell::new(),
        modern: OnceCell::new(),
        in_flight: Mutex::default(),
        suspended: Suspended::new(IN_FLIGHT, PATIENCE),
        place: "stdio".into(),
        tasks: TaskTracker::new(),
        gone: gone.clone(),
        over: CancellationToken::new(),
    });
    let listening = async {
        tokio::select! {
            () = client.read(reader) => {}
            () = client.over.cancelled() => {}
        }
        // It may still want to know what it asked for.
        let _ = tokio::time::timeout(LAST_ANSWERS, client.idle()).await;
    };
    tokio::select! {
        () = listening => {}
        () = gone.cancelled() => {}
    }
    gone.cancel();
    let _ = tokio::time::timeout(PARTING, client.end()).await;
    finished.cancel();
    let _ = tokio::time::timeout(PARTING, writing).await;
}

/// The one client.
#[derive(Debug)]
struct OneClient {
    source: Arc<dyn Source>,
    outbox: Arc<Lines>,
    /// Once it has shaken hands.
    legacy: OnceCell<Arc<Conversation>>,
    /// Once it has asked something without.
    modern: OnceCell<Arc<dyn Face>>,
    /// What it asked without a handshake.
    in_flight: Mutex<HashMap<String, CancellationToken>>,
    suspended: Suspended,
    place: Arc<str>,
    tasks: TaskTracker,
    /// Cancelled when it has left, or is to be left.
    gone: CancellationToken,
    /// Cancelled when there is nothing left to serve.
    over: CancellationToken,
}

impl OneClient {
    /// Reads to the end.
    async fn read(self: &Arc<Self>, reader: impl AsyncRead + Unpin) {
        let newline = || b"\n".to_vec();
        let codec = AnyDelimiterCodec::new_with_max_length(newline(), newline(), LINE_BYTES);
        let mut lines = FramedRead::new(reader, codec);
        loop {
            match lines.next().await {
                Some(Ok(line)) if line.trim_ascii().is_empty() => {}
                Some(Ok(line)) => match Incoming::read(&line) {
                    Ok(Incoming::One(message)) => self.accept(message).await,
                    Ok(Incoming::Batch(messages)) => {
                        for message in messages {
                            self.accept(message).await;
                        }
                    }
                    Err(unreadable) => {
                        let Unreadable { id, error } = *unreadable;
                        self.refuse(&json!(id), error);
                    }
                },
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    let message = format!("a line has at most {LINE_BYTES} bytes");
                    self.refuse(&Value::Null, ErrorData::parse_error(message, None));
                    // What is left of the line is skipped; the reader stops once and goes on.
                    let _ = lines.next().await;
                }
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => return,
            }
        }
    }

    async fn accept(self: &Arc<Self>, message: Message) {
        match message {
            Message::Response(response) => {
                if let Some(legacy) = self.legacy.get() {
                    legacy.response(response);
                }
            }
            Message::Notification(notification) => self.notification(notification).await,
            Message::Request(request) => {
                let id = request.id.clone();
                if let Err(error) = self.request(request).await {
                    self.refuse(&id, error);
                }
            }
        }
    }

    async fn notification(&self, notification: Notification) {
        if notification.method == "notifications/cancelled" {
            let id = notification.params.as_ref().and_then(|params| params.get("requestId"));
            let cancel = id.and_then(|id| self.in_flight.lock().get(&id.to_string()).cloned());
            if let Some(cancel) = cancel {
                cancel.cancel();
                return;
            }
        }
        if let Some(legacy) = self.legacy.get() {
            legacy.notification(notification).await;
        }
    }

    async fn request(self: &Arc<Self>, request: Request) -> Result<(), ErrorData> {
        if request.method == "initialize" {
            return self.initialize(request).await;
        }
        let declared = Declared::of(request.params.as_ref());
        declared.known()?;
        let modern = declared.version().is_some_and(era::is_modern);
        if modern || declared.complete().is_ok() {
            declared.complete()?;
            return self.start(request);
        }
        match self.legacy.get() {
            Some(legacy) => {
                let outbox = Arc::clone(&self.outbox) as Arc<dyn Outbox>;
                legacy.request(request, outbox).map_err(ErrorData::from)
            }
            None if request.method == "ping" => {
                self.outbox.offer(message::answer(&request.id, Ok(json!({}))));
                Ok(())
            }
            None => declared.complete(),
        }
    }

    /// Shakes hands. What comes after it waits for it.
    async fn initialize(&self, request: Request) -> Result<(), ErrorData> {
        if self.legacy.initialized() {
            return Err(ErrorData::invalid_request("the handshake is done already", None));
        }
        let terms = Terms {
            caller: Caller::local(),
            outbox: Arc::clone(&self.outbox) as Arc<dyn Outbox>,
            patience: PATIENCE,
            in_flight: IN_FLIGHT,
        };
        let agreed = handshake::initialize(&*self.source, &request, terms).await?;
        self.watch(agreed.conversation.face());
        let _ = self.legacy.set(agreed.conversation);
        self.outbox.finish(Some(message::answer(&request.id, Ok(agreed.greeting)))).await;
        Ok(())
    }

    /// Works on a request of the modern era, aside.
    fn start(self: &Arc<Self>, request: Request) -> Result<(), ErrorData> {
        let (key, cancel) = (request.id.to_string(), self.gone.child_token());
        {
            let mut in_flight = self.in_flight.lock();
            if in_flight.contains_key(&key) {
                return Err(Unwelcome::Twice.into());
            }
            if in_flight.len() >= IN_FLIGHT {
                return Err(Unwelcome::TooMany.into());
            }
            in_flight.insert(key.clone(), cancel.clone());
        }
        let client = Arc::clone(self);
        self.tasks.spawn(async move {
            let id = request.id.clone();
            let outcome = tokio::select! {
                outcome = client.work(request) => Some(outcome),
                () = cancel.cancelled() => None,
            };
            client.in_flight.lock().remove(&key);
            if let Some(outcome) = outcome {
                client.outbox.finish(Some(message::answer(&id, outcome))).await;
            }
        });
        Ok(())
    }

    async fn work(&self, request: Request) -> Result<Value, ErrorData> {
        let declared = Declared::of(request.params.as_ref());
        let opening = self.modern.get_or_try_init(|| async {
            let face = handshake::meet(&*self.source, Caller::local(), declared).await?;
            self.watch(&face);
            Ok::<_, ErrorData>(face)
        });
        let face = Arc::clone(opening.await?);
        if request.method == "server/discover" {
            return face.greeting(Era::Modern).await.map(Greeting::into_discover);
        }
        let caller = Caller::local();
        let resumed = self.suspended.resume(&caller, &self.place, &request);
        let mut running = resumed.unwrap_or_else(|| Running::start(face, request));
        loop {
            match running.step().await {
                Step::Notification(message) => self.outbox.offer(message),
                Step::Done(outcome) => return outcome,
                Step::Waiting => return self.suspended.park(&caller, &self.place, running),
            }
        }
    }

    /// When a face can answer no more, neither can we.
    fn watch(&self, face: &Arc<dyn Face>) {
        let (face, over, gone) = (Arc::clone(face), self.over.clone(), self.gone.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = face.closed() => over.cancel(),
                () = gone.cancelled() => {}
            }
        });
    }

    fn refuse(&self, id: &Value, error: ErrorData) {
        self.outbox.offer(message::answer(id, Err(error)));
    }

    async fn idle(&self) {
        if let Some(legacy) = self.legacy.get() {
            legacy.idle().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn end(&self) {
        if let Some(legacy) = self.legacy.get() {
            legacy.end().await;
        }
        if let Some(modern) = self.modern.get() {
            modern.close().await;
        }
    }
}

/// Where lines to the client go.
#[derive(Debug)]
struct Lines(mpsc::Sender<Value>);

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

/// Writes until nobody reads, or all has been written that was said before it was `finished`.
async fn write(
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
