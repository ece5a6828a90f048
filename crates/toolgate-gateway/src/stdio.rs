//! Lines on stdin and stdout: one client, of either era.

mod lines;

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{OnceCell, mpsc},
};
use tokio_util::{
    codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead},
    sync::CancellationToken,
    task::TaskTracker,
};
use toolgate_mcp::ErrorObject;

use self::lines::{Batch, Lines, write};
use crate::{
    caller::Caller,
    conversation::{Conversation, Unwelcome},
    era::{self, Declared, Era},
    face::{Face, Source},
    handshake::{self, Terms},
    link::Outbox,
    message::{self, Incoming, Message, Notification, Request, Unreadable, stopping},
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
        suspended: Suspended::new(IN_FLIGHT, IN_FLIGHT, PATIENCE),
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
                    Ok(Incoming::One(message)) => self.accept(message, None).await,
                    Ok(Incoming::Batch(entries)) => self.accept_batch(entries).await,
                    Err(unreadable) => {
                        let Unreadable { id, error } = *unreadable;
                        self.refuse(&json!(id), error);
                    }
                },
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    let message = format!("a line has at most {LINE_BYTES} bytes");
                    self.refuse(&Value::Null, ErrorObject::parse_error(message, None));
                    // What is left of the line is skipped; the reader stops once and goes on.
                    let _ = lines.next().await;
                }
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => return,
            }
        }
    }

    /// What 2025-03-26 allowed. The answers come together, in the order in which they came about.
    async fn accept_batch(self: &Arc<Self>, entries: Vec<Result<Message, Box<Unreadable>>>) {
        let answered = |entry: &&Result<_, _>| matches!(entry, Ok(Message::Request(_)) | Err(_));
        let answers = entries.iter().filter(answered).count();
        let batch = Arc::new(Batch::new(Arc::clone(&self.outbox), answers));
        for entry in entries {
            match entry {
                Ok(message) => self.accept(message, Some(&batch)).await,
                Err(unreadable) => {
                    let Unreadable { id, error } = *unreadable;
                    batch.finish(Some(message::answer(&json!(id), Err(error)))).await;
                }
            }
        }
    }

    async fn accept(self: &Arc<Self>, message: Message, batch: Option<&Arc<Batch>>) {
        match message {
            Message::Response(response) => {
                if let Some(legacy) = self.legacy.get() {
                    legacy.response(response);
                }
            }
            Message::Notification(notification) => self.notification(notification).await,
            Message::Request(request) => {
                let id = request.id.clone();
                match (self.request(request, batch).await, batch) {
                    (Ok(()), _) => {}
                    (Err(error), None) => self.refuse(&id, error),
                    (Err(error), Some(batch)) => {
                        batch.finish(Some(message::answer(&id, Err(error)))).await;
                    }
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

    async fn request(
        self: &Arc<Self>,
        request: Request,
        batch: Option<&Arc<Batch>>,
    ) -> Result<(), ErrorObject> {
        if request.method == "initialize" {
            return match batch {
                None => self.initialize(request).await,
                Some(_) => Err(alone("a handshake")),
            };
        }
        let declared = Declared::of(request.params.as_ref());
        declared.known()?;
        let modern = declared.version().is_some_and(era::is_modern);
        if modern || declared.complete().is_ok() {
            declared.complete()?;
            return match batch {
                None => self.start(request),
                Some(_) => Err(alone("a request of this version")),
            };
        }
        let outbox: Arc<dyn Outbox> = match batch {
            None => Arc::clone(&self.outbox) as _,
            Some(batch) => Arc::clone(batch) as _,
        };
        match self.legacy.get() {
            Some(legacy) => legacy.request(request, outbox).map_err(ErrorObject::from),
            None if request.method == "ping" => {
                outbox.finish(Some(message::answer(&request.id, Ok(json!({}))))).await;
                Ok(())
            }
            None => declared.complete(),
        }
    }

    /// Shakes hands. What comes after it waits for it.
    async fn initialize(&self, request: Request) -> Result<(), ErrorObject> {
        if self.legacy.initialized() {
            return Err(ErrorObject::invalid_request("the handshake is done already", None));
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
    fn start(self: &Arc<Self>, request: Request) -> Result<(), ErrorObject> {
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
            let outcome = client.work(request, &cancel).await;
            client.in_flight.lock().remove(&key);
            if let Some(outcome) = outcome {
                client.outbox.finish(Some(message::answer(&id, outcome))).await;
            }
        });
        Ok(())
    }

    /// Answers, or gives nothing for a request that the client has taken back.
    async fn work(
        &self,
        request: Request,
        cancel: &CancellationToken,
    ) -> Option<Result<Value, ErrorObject>> {
        let begun = tokio::select! {
            begun = self.begin(request) => begun,
            () = cancel.cancelled() => return self.gone.is_cancelled().then(|| Err(stopping())),
        };
        let mut running = match begun {
            Ok(Begun::Running(running)) => running,
            Ok(Begun::Done(result)) => return Some(Ok(result)),
            Err(error) => return Some(Err(error)),
        };
        loop {
            let step = tokio::select! {
                step = running.step() => step,
                () = cancel.cancelled() => {
                    let ended = self.gone.is_cancelled();
                    return if ended { Some(running.end().await) } else { None };
                }
            };
            match step {
                Step::Notification(message) => self.outbox.offer(message),
                Step::Done(outcome) => return Some(outcome),
                Step::Waiting => {
                    return Some(self.suspended.park(&Caller::local(), &self.place, running));
                }
            }
        }
    }

    async fn begin(&self, request: Request) -> Result<Begun, ErrorObject> {
        let declared = Declared::of(request.params.as_ref());
        let opening = self.modern.get_or_try_init(|| async {
            let face = handshake::meet(&*self.source, Caller::local(), declared).await?;
            self.watch(&face);
            Ok::<_, ErrorObject>(face)
        });
        let face = Arc::clone(opening.await?);
        if request.method == "server/discover" {
            let greeting = face.greeting(Era::Modern).await?;
            return Ok(Begun::Done(greeting.into_discover()));
        }
        let caller = Caller::local();
        let running = self.suspended.resume_or_start(&caller, &self.place, face, request)?;
        Ok(Begun::Running(running))
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

    fn refuse(&self, id: &Value, error: ErrorObject) {
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
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(modern) = self.modern.get() {
            modern.close().await;
        }
    }
}

/// What becomes of a request of the modern era.
enum Begun {
    Running(Running),
    Done(Value),
}

/// An error about what cannot be in a batch.
fn alone(what: &str) -> ErrorObject {
    ErrorObject::invalid_request(format!("{what} cannot be in a batch; send it alone"), None)
}
