//! The stdio transport: one client, of either era, and one JSON-RPC message a line.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
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
use toolgate_mcp::{
    ErrorObject, JsonRpcInput, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest,
    MalformedMessage, json_line, methods, response_message, versions,
};
use toolgate_wait::QuickWait;

use crate::{
    channel::MessageSink,
    era::{DeclaredMeta, Era},
    modern::{ParkedRequests, RequestEvent},
    service::{AuthenticatedClient, ClientInfo, McpService, Owner, ServiceFactory},
    session::{InFlightRequests, LegacySession, NO_BATCHES, SessionOptions, stopping},
};

const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Messages that wait for a client that does not read.
const MAX_QUEUED: usize = 1024;
const MAX_IN_FLIGHT: usize = 256;
/// How long a client may take to answer an input request.
const INPUT_TIMEOUT: Duration = Duration::from_mins(10);
/// How long requests may take to finish after the client closed its end.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);
/// How long cancelled requests may take to end, and the client to read the last responses.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves one client on stdin and stdout until it disconnects, `stop` is cancelled, or the service
/// closes.
pub async fn serve_stdio(factory: Arc<dyn ServiceFactory>, stop: CancellationToken) {
    // tokio reads stdin in a thread that cannot be stopped, so pipes are opened again as such.
    #[cfg(target_os = "linux")]
    {
        let options = tokio::net::unix::pipe::OpenOptions::new();
        let reader = options.open_receiver("/proc/self/fd/0");
        if let (Ok(reader), Ok(writer)) = (reader, options.open_sender("/proc/self/fd/1")) {
            return serve_lines(factory, reader, writer, stop).await;
        }
    }
    serve_lines(factory, tokio::io::stdin(), tokio::io::stdout(), stop).await;
}

/// [`serve_stdio`] on other pipes.
pub async fn serve_lines<R, W>(
    factory: Arc<dyn ServiceFactory>,
    reader: R,
    writer: W,
    stop: CancellationToken,
) where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let disconnected = stop.child_token();
    let (sender, messages) = mpsc::channel(MAX_QUEUED);
    let finished = CancellationToken::new();
    let writing = tokio::spawn(write(writer, messages, disconnected.clone(), finished.clone()));
    let connection = Arc::new(StdioConnection {
        factory,
        sink: Arc::new(LineSink(sender)),
        legacy: OnceCell::new(),
        modern: OnceCell::new(),
        in_flight: InFlightRequests::new(MAX_IN_FLIGHT),
        parked: ParkedRequests::new(MAX_IN_FLIGHT, MAX_IN_FLIGHT, INPUT_TIMEOUT),
        owner: Owner { caller: AuthenticatedClient::local(), path: "stdio".into() },
        tasks: TaskTracker::new(),
        disconnected: disconnected.clone(),
        service_closed: CancellationToken::new(),
    });
    let serving = async {
        tokio::select! {
            () = connection.read(reader) => {}
            () = connection.service_closed.cancelled() => {}
        }
        // The client may still read the responses to its last requests.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, connection.idle()).await;
    };
    tokio::select! {
        () = serving => {}
        () = disconnected.cancelled() => {}
    }
    disconnected.cancel();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.end()).await;
    finished.cancel();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, writing).await;
}

#[derive(Debug)]
struct StdioConnection {
    factory: Arc<dyn ServiceFactory>,
    sink: Arc<LineSink>,
    /// Set by `initialize`.
    legacy: OnceCell<Arc<LegacySession>>,
    /// Set by the first modern request.
    modern: OnceCell<Arc<dyn McpService>>,
    /// The modern requests in progress.
    in_flight: Arc<InFlightRequests>,
    parked: ParkedRequests,
    owner: Owner,
    tasks: TaskTracker,
    /// Cancelled when the client has disconnected, or the gateway stops.
    disconnected: CancellationToken,
    service_closed: CancellationToken,
}

impl StdioConnection {
    /// Reads messages until the end of the input.
    async fn read(self: &Arc<Self>, reader: impl AsyncRead + Unpin) {
        let newline = || b"\n".to_vec();
        let codec = AnyDelimiterCodec::new_with_max_length(newline(), newline(), MAX_LINE_BYTES);
        let mut lines = FramedRead::new(reader, codec);
        let mut waits = QuickWait::new();
        loop {
            match waits.wait(lines.next()).await {
                Some(Ok(line)) if line.trim_ascii().is_empty() => {}
                Some(Ok(line)) => match JsonRpcInput::read(&line) {
                    Ok(JsonRpcInput::One(message)) => self.accept(message, None).await,
                    Ok(JsonRpcInput::Batch(entries)) => self.accept_batch(entries).await,
                    Err(malformed) => self.sink.send(malformed_response(*malformed)),
                },
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    let message = format!("a line has at most {MAX_LINE_BYTES} bytes");
                    let error = ErrorObject::parse_error(message, None);
                    self.sink.send(response_message(&Value::Null, Err(error)));
                    // The codec discards the rest of the line and reports the end once.
                    let _ = lines.next().await;
                }
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => return,
            }
        }
    }

    /// Accepts a batch, which protocol version 2025-03-26 alone has. The responses are one batch too.
    async fn accept_batch(
        self: &Arc<Self>,
        entries: Vec<Result<JsonRpcMessage, Box<MalformedMessage>>>,
    ) {
        if self.legacy.get().is_some_and(|session| session.version != versions::BATCHES) {
            let error = ErrorObject::invalid_request(NO_BATCHES, None);
            return self.sink.send(response_message(&Value::Null, Err(error)));
        }
        let has_response =
            |entry: &&Result<_, _>| matches!(entry, Ok(JsonRpcMessage::Request(_)) | Err(_));
        let responses = entries.iter().filter(has_response).count();
        let batch = Arc::new(BatchSink::new(Arc::clone(&self.sink), responses));
        for entry in entries {
            match entry {
                Ok(message) => self.accept(message, Some(&batch)).await,
                Err(malformed) => batch.finish(Some(malformed_response(*malformed))).await,
            }
        }
    }

    async fn accept(self: &Arc<Self>, message: JsonRpcMessage, batch: Option<&Arc<BatchSink>>) {
        match message {
            JsonRpcMessage::Response(response) => {
                if let Some(session) = self.legacy.get() {
                    session.response(response);
                }
            }
            JsonRpcMessage::Notification(notification) => self.notification(notification).await,
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                if let Err(error) = self.request(request, batch).await {
                    let response = response_message(&id, Err(error));
                    match batch {
                        Some(batch) => batch.finish(Some(response)).await,
                        None => self.sink.send(response),
                    }
                }
            }
        }
    }

    async fn notification(&self, notification: JsonRpcNotification) {
        let is_cancelled =
            notification.method == methods::CANCELLED && self.in_flight.cancel(&notification);
        if is_cancelled {
            return;
        }
        if let Some(session) = self.legacy.get() {
            session.notification(notification).await;
        } else if let Some(service) = self.modern.get()
            && !self.factory.depends_on_capabilities()
        {
            service.notification(notification.method, notification.params).await;
        }
    }

    /// Begins to answer a request, in a task.
    async fn request(
        self: &Arc<Self>,
        request: JsonRpcRequest,
        batch: Option<&Arc<BatchSink>>,
    ) -> Result<(), ErrorObject> {
        let not_in_batch = || {
            let message = "this request cannot be in a batch; send it alone";
            Err(ErrorObject::invalid_request(message, None))
        };
        if request.method == methods::INITIALIZE {
            return if batch.is_some() { not_in_batch() } else { self.initialize(request).await };
        }
        let declared = DeclaredMeta::of(request.params.as_ref());
        declared.check_version()?;
        if declared.is_modern() {
            declared.check_complete()?;
            if batch.is_some() {
                return not_in_batch();
            }
            let in_flight = self.in_flight.begin(&request.id, &self.disconnected)?;
            let connection = Arc::clone(self);
            self.tasks.spawn(async move {
                let id = request.id.clone();
                let outcome = connection.answer_modern(request, &in_flight.cancel).await;
                // The id is free again before the client gets the response.
                drop(in_flight);
                let response = outcome.map(|outcome| response_message(&id, outcome));
                connection.sink.finish(response).await;
            });
            return Ok(());
        }
        let sink: Arc<dyn MessageSink> = match batch {
            None => Arc::clone(&self.sink) as _,
            Some(batch) => Arc::clone(batch) as _,
        };
        match self.legacy.get() {
            Some(session) => session.request(request, sink, None).map_err(ErrorObject::from),
            None if request.method == methods::PING => {
                sink.finish(Some(response_message(&request.id, Ok(json!({}))))).await;
                Ok(())
            }
            None => declared.check_complete(),
        }
    }

    /// Does the handshake. Later messages wait for it.
    async fn initialize(&self, request: JsonRpcRequest) -> Result<(), ErrorObject> {
        if self.legacy.initialized() {
            return Err(ErrorObject::invalid_request("the session is already initialized", None));
        }
        let options = SessionOptions {
            caller: self.owner.caller.clone(),
            sink: Arc::clone(&self.sink) as Arc<dyn MessageSink>,
            input_timeout: INPUT_TIMEOUT,
            max_in_flight: MAX_IN_FLIGHT,
        };
        let (session, result) =
            LegacySession::initialize(&*self.factory, &request, options).await?;
        self.watch(&session.service);
        let _ = self.legacy.set(session);
        self.sink.finish(Some(response_message(&request.id, Ok(result)))).await;
        Ok(())
    }

    /// The outcome of a modern request, or nothing if the client has cancelled it.
    async fn answer_modern(
        &self,
        request: JsonRpcRequest,
        cancel: &CancellationToken,
    ) -> Option<Result<Value, ErrorObject>> {
        let opening = async {
            let declared = DeclaredMeta::of(request.params.as_ref());
            let opened = self.modern.get_or_try_init(|| async {
                let client = ClientInfo::modern(self.owner.caller.clone(), declared);
                let service = self.factory.open(client).await?;
                self.watch(&service);
                Ok::<_, ErrorObject>(service)
            });
            let service = Arc::clone(opened.await?);
            if request.method == methods::DISCOVER {
                let info = service.server_info(Era::Modern).await?;
                return Ok((service, Some(info.into_discover())));
            }
            Ok((service, None))
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = cancel.cancelled() => {
                return self.disconnected.is_cancelled().then(|| Err(stopping()));
            }
        };
        let mut running = match opened {
            Err(error) => return Some(Err(error)),
            Ok((_, Some(info))) => return Some(Ok(info)),
            Ok((service, None)) => {
                match self.parked.resume_or_start(&self.owner, service, request, None) {
                    Ok(running) => running,
                    Err(error) => return Some(Err(error)),
                }
            }
        };
        loop {
            let event = tokio::select! {
                event = running.next_event() => event,
                () = cancel.cancelled() => {
                    let stops = self.disconnected.is_cancelled();
                    return if stops { Some(running.end().await) } else { None };
                }
            };
            match event {
                RequestEvent::Notification(message) => self.sink.send(message),
                RequestEvent::Finished(outcome) => return Some(outcome),
                RequestEvent::InputRequired => return Some(self.parked.park(&self.owner, running)),
            }
        }
    }

    /// Ends the connection when the service closes.
    fn watch(&self, service: &Arc<dyn McpService>) {
        let (service, closed) = (Arc::clone(service), self.service_closed.clone());
        let disconnected = self.disconnected.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = service.closed() => closed.cancel(),
                () = disconnected.cancelled() => {}
            }
        });
    }

    async fn idle(&self) {
        if let Some(session) = self.legacy.get() {
            session.idle().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn end(&self) {
        if let Some(session) = self.legacy.get() {
            session.end().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(service) = self.modern.get() {
            service.close().await;
        }
    }
}

fn malformed_response(malformed: MalformedMessage) -> Value {
    response_message(&json!(malformed.id), Err(malformed.error))
}

/// Sends messages to the client, one a line.
#[derive(Debug)]
struct LineSink(mpsc::Sender<Value>);

impl MessageSink for LineSink {
    fn send(&self, message: Value) {
        let _ = self.0.try_send(message);
    }

    fn finish(&self, response: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(response) = response {
                let _ = self.0.send(response).await;
            }
        })
    }
}

/// Collects the responses to a batch. Other messages are sent at once.
#[derive(Debug)]
struct BatchSink {
    sink: Arc<LineSink>,
    /// The responses so far, and how many requests are still in progress.
    collected: Mutex<(Vec<Value>, usize)>,
}

impl BatchSink {
    fn new(sink: Arc<LineSink>, requests: usize) -> Self {
        Self { sink, collected: Mutex::new((Vec::with_capacity(requests), requests)) }
    }
}

impl MessageSink for BatchSink {
    fn send(&self, message: Value) {
        self.sink.send(message);
    }

    fn finish(&self, response: Option<Value>) -> BoxFuture<'_, ()> {
        let mut collected = self.collected.lock();
        let (responses, open) = &mut *collected;
        responses.extend(response);
        *open = open.saturating_sub(1);
        // If all requests were cancelled there is no response.
        let is_complete = *open == 0 && !responses.is_empty();
        self.sink.finish(is_complete.then(|| Value::Array(std::mem::take(responses))))
    }
}

/// Writes until the client stops reading, or everything is written that was sent before `finished`.
async fn write(
    writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Value>,
    disconnected: CancellationToken,
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
        let mut written = writer.write_all(&json_line(&message)).await;
        if written.is_ok() && messages.is_empty() {
            written = writer.flush().await;
        }
        if written.is_err() {
            disconnected.cancel();
            return;
        }
    }
    let _ = writer.flush().await;
}
