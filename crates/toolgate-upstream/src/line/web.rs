//! A line over Streamable HTTP.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, CustomNotification,
        CustomRequest, CustomResult, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolgate_mcp::{Era, meta::PROTOCOL_VERSION, methods, versions};

use super::{
    exchange::{Exchange, Outlet},
    trouble::Trouble,
};
use crate::{
    backoff::Backoff,
    http::{Events, RawHttp, header_value},
    raw, reasons,
};

type Headers = HashMap<HeaderName, HeaderValue>;

/// How often the stream of an answer is taken up again where it broke off.
const MAX_RESUMPTIONS: usize = 5;
/// The longest pause that a server may ask for before that.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the rest of a stream may take whose answer is there, so that the connection can be used
/// again.
const REMAINDER: Duration = Duration::from_millis(50);

/// A URL and what is known of the session there.
#[derive(Clone)]
pub(super) struct Web {
    client: RawHttp,
    uri: Arc<str>,
    headers: Headers,
    session: Arc<Mutex<Session>>,
    /// Held while a session is opened in the place of another.
    renewing: Arc<tokio::sync::Mutex<()>>,
    /// Told when that is done.
    renewed: Arc<Notify>,
    exchange: Arc<Exchange>,
}

/// What messages say of the connection.
#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<Arc<str>>,
    /// The lifecycle, once it is agreed on.
    era: Option<Era>,
    /// What was agreed on in the older handshake.
    version: Option<String>,
    /// The parameters of that handshake, for when the server forgets the session.
    introduction: Option<Value>,
}

/// rmcp would write parameters that are not there as `null`, which strict servers refuse.
fn some(params: Option<Value>) -> Option<Value> {
    params.or_else(|| Some(json!({})))
}

impl Web {
    pub(super) fn new(
        client: RawHttp,
        url: &str,
        headers: Headers,
        exchange: Arc<Exchange>,
    ) -> Self {
        let (session, renewing, renewed) = (Arc::default(), Arc::default(), Arc::default());
        Self { client, uri: url.into(), headers, session, renewing, renewed, exchange }
    }

    /// Goes on with what the handshake brought.
    pub(super) fn greeted(&self, era: Era, greeting: &Value, introduction: Option<Value>) {
        let mut session = self.session.lock();
        session.era = Some(era);
        session.version = Some(versions::MODERN.to_owned());
        if era == Era::Legacy {
            session.version = greeting["protocolVersion"].as_str().map(str::to_owned);
            session.introduction = introduction;
        }
    }

    /// Listens to what the server says beside its answers, in the older protocol.
    pub(super) fn listen(&self) {
        if self.session.lock().id.is_none() {
            return;
        }
        let web = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = web.attend() => {}
                () = web.exchange.closed() => {}
            }
        });
    }

    /// Posts a request and reads until its answer is there.
    pub(super) async fn request(
        &self,
        id: i64,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Trouble> {
        let session = self.session.lock().id.clone();
        match self.ask(id, method, params.clone()).await {
            Err(Trouble::Http(error)) if matches!(*error, StreamableHttpError::SessionExpired) => {
                // The server does not know the session, so that it did nothing with the request.
                self.renew(session).await?;
                self.ask(id, method, params).await
            }
            outcome => outcome,
        }
    }

    pub(super) async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        let headers = self.headers_of(method, params.as_ref());
        let notification = CustomNotification::new(method, some(params));
        let notification = ClientNotification::CustomNotification(notification);
        self.post(ClientJsonRpcMessage::notification(notification), headers).await?;
        Ok(())
    }

    /// Takes leave of the session.
    pub(super) async fn close(&self, patience: Duration) {
        let session = self.session.lock().clone();
        if let Some(id) = session.id {
            let headers = self.headers_of("", None);
            let leaving = self.client.delete_session(Arc::clone(&self.uri), id, None, headers);
            // Whether it cares is its own affair.
            let _ = tokio::time::timeout(patience, leaving).await;
        }
    }

    async fn ask(&self, id: i64, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        let headers = self.headers_of(method, params.as_ref());
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, some(params)));
        let message = ClientJsonRpcMessage::request(request, RequestId::Number(id));
        let session = match self.post(message, headers).await? {
            StreamableHttpPostResponse::Json(message, session) => {
                self.take(id, message);
                session
            }
            StreamableHttpPostResponse::Sse(events, session) => {
                self.keep_session(method, session);
                return self.follow(id, events).await;
            }
            _ => None,
        };
        self.keep_session(method, session);
        if self.exchange.is_pending(id) { Err(Trouble::NoAnswer) } else { Ok(()) }
    }

    fn keep_session(&self, method: &str, session: Option<String>) {
        if method == methods::INITIALIZE {
            self.session.lock().id = session.map(Into::into);
        }
    }

    /// Opens a session in the place of one that the server forgot.
    async fn renew(&self, forgotten: Option<Arc<str>>) -> Result<(), Trouble> {
        let _renewing = self.renewing.lock().await;
        let introduction = {
            let mut session = self.session.lock();
            if session.id != forgotten {
                // Somebody else was faster.
                return Ok(());
            }
            session.id = None;
            session.introduction.clone()
        };
        let mut waiting = self.exchange.begin(Value::Null, methods::INITIALIZE, None);
        // No deeper than this: a server that forgets a session that it has just opened is no server.
        Box::pin(self.ask(waiting.id(), methods::INITIALIZE, introduction)).await?;
        waiting.answered().await?;
        self.renewed.notify_one();
        self.notify(methods::INITIALIZED, None).await
    }

    /// Reads the stream of an answer, and takes it up again where it breaks off.
    async fn follow(&self, id: i64, mut events: Events) -> Result<(), Trouble> {
        let outlet = self.outlet();
        let (mut last_event, mut pause) = (None, None);
        for resumption in 0..=MAX_RESUMPTIONS {
            while let Some(Ok(event)) = events.next().await {
                last_event = event.id.or(last_event);
                pause = event.retry.map(Duration::from_millis).or(pause);
                if let Some(message) = event.data.as_deref().and_then(raw::open_text) {
                    self.exchange.receive(message, Some(id), &outlet);
                }
                if !self.exchange.is_pending(id) {
                    tokio::spawn(async move {
                        let rest = async { while events.next().await.is_some() {} };
                        let _ = tokio::time::timeout(REMAINDER, rest).await;
                    });
                    return Ok(());
                }
            }
            if last_event.is_none() || resumption == MAX_RESUMPTIONS {
                break;
            }
            tokio::time::sleep(pause.unwrap_or(Duration::from_secs(1)).min(LONGEST_PAUSE)).await;
            match self.stream(last_event.clone()).await {
                Ok(resumed) => events = resumed,
                Err(error) if reasons::status(&error).is_some() => return Err(error.into()),
                Err(_) => events = futures::stream::empty().boxed(),
            }
        }
        Err(Trouble::NoAnswer)
    }

    /// Follows the stream of what belongs to no request, from one session to the next.
    async fn attend(&self) {
        loop {
            tokio::select! {
                () = self.attend_session() => return,
                () = self.renewed.notified() => {}
            }
        }
    }

    /// Returns if there is no such stream.
    async fn attend_session(&self) {
        let outlet = self.outlet();
        let mut backoff = Backoff::new();
        let mut last_event = None;
        loop {
            let mut pause = None;
            match self.stream(last_event.clone()).await {
                Ok(mut events) => {
                    backoff.connected(Instant::now());
                    while let Some(Ok(event)) = events.next().await {
                        last_event = event.id.or(last_event);
                        pause = event.retry.map(Duration::from_millis).or(pause);
                        if let Some(message) = event.data.as_deref().and_then(raw::open_text) {
                            self.exchange.receive(message, None, &outlet);
                        }
                    }
                }
                Err(StreamableHttpError::ServerDoesNotSupportSse) => return,
                Err(error) => tracing::debug!(why = told(error), "no stream of notifications"),
            }
            let longest = backoff.next(Instant::now());
            tokio::time::sleep(pause.map_or(longest, |pause| pause.min(LONGEST_PAUSE))).await;
        }
    }

    async fn stream(
        &self,
        last_event: Option<String>,
    ) -> Result<Events, StreamableHttpError<reqwest::Error>> {
        let session = self.session.lock().id.clone();
        let headers = self.headers_of("", None);
        self.client.get_stream(Arc::clone(&self.uri), session, last_event, None, headers).await
    }

    /// Takes an answer that came as one message.
    fn take(&self, id: i64, message: ServerJsonRpcMessage) {
        match raw::open(message, true) {
            ServerJsonRpcMessage::Response(response) => {
                self.exchange.answer(id, Ok(raw::result(response.result)));
            }
            ServerJsonRpcMessage::Error(error) => {
                self.exchange.answer(id, Err(Trouble::Refused(raw::error_object(error.error))));
            }
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {}
        }
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Trouble> {
        let session = self.session.lock().id.clone();
        let uri = Arc::clone(&self.uri);
        Ok(self.client.post_message(uri, message, session, None, headers).await?)
    }

    /// How answers to questions get to the server.
    fn outlet(&self) -> Outlet {
        let web = self.clone();
        Arc::new(move |answer| {
            let web = web.clone();
            Box::pin(async move {
                let Some(message) = answer_message(answer) else { return };
                let headers = web.headers_of("", None);
                if let Err(Trouble::Http(error)) = web.post(message, headers).await {
                    tracing::debug!(why = told(*error), "an answer did not get to the server");
                }
            })
        })
    }

    /// The headers of a message: what its body says, for whoever routes it without reading that.
    fn headers_of(&self, method: &str, params: Option<&Value>) -> Headers {
        let mut headers = self.headers.clone();
        let mut insert = |name: &'static str, value: Option<HeaderValue>| {
            headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        };
        let Session { era, version: agreed, .. } = self.session.lock().clone();
        // A request of the newer protocol says it for itself.
        let own = params.and_then(|params| params.get("_meta")?.get(PROTOCOL_VERSION)?.as_str());
        let is_modern = era.map_or(own.is_some(), |era| era == Era::Modern);
        let version = own.or(agreed.as_deref());
        insert(
            "mcp-protocol-version",
            version.and_then(|version| HeaderValue::from_str(version).ok()),
        );
        if is_modern && !method.is_empty() {
            insert("mcp-method", header_value(method));
            let name = name_of(method).and_then(|name| params?.get(name)?.as_str());
            insert("mcp-name", name.and_then(header_value));
        }
        headers
    }
}

/// The parameter that is repeated in the header `Mcp-Name`.
fn name_of(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// An error as it may be logged: a URL can hold a key.
fn told(error: StreamableHttpError<reqwest::Error>) -> String {
    match error {
        StreamableHttpError::Client(error) => reasons::plain(&error.without_url()),
        other => reasons::plain(&other),
    }
}

fn answer_message(mut answer: Value) -> Option<ClientJsonRpcMessage> {
    let id = serde_json::from_value(answer["id"].take()).ok()?;
    if let Some(error) = answer.get("error") {
        return Some(ClientJsonRpcMessage::error(raw::read_error(error), Some(id)));
    }
    let result = ClientResult::CustomResult(CustomResult(answer["result"].take()));
    Some(ClientJsonRpcMessage::response(result, id))
}
