//! Streamable HTTP.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use toolgate_http::bounded_body;

use super::{
    backoff::Backoff,
    endpoint::MessageSizes,
    exchange::{Exchange, ExchangeError, Responder, number},
    failure::HttpError,
    http::{
        EVENT_STREAM, EventError, Events, HttpClient, JSON, bounded_events, has_type, header_text,
        unexpected_type,
    },
    incoming,
    parameters::{ParameterHeaders, header_value},
    stdio::too_large,
};
use crate::{Era, ErrorObject, meta, methods, notification_message, request_message};

/// How many requests a server gets at once. Further ones wait.
const MAX_REQUESTS: usize = 256;
/// How often a broken response stream is resumed.
const MAX_RESUMPTIONS: usize = 5;
/// The longest pause that a server may ask for before a stream is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long it may take to read the rest of a stream after its response, so that the connection can
/// be reused.
const REMAINDER_TIMEOUT: Duration = Duration::from_millis(50);
/// How much of the body of an error is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const SESSION: &str = "mcp-session-id";

/// A URL, and the session there.
#[derive(Clone)]
pub(super) struct StreamableTransport {
    client: HttpClient,
    sizes: MessageSizes,
    parameters: ParameterHeaders,
    session: Arc<Mutex<HttpSession>>,
    /// Held while a session is opened in place of another.
    renewing: Arc<tokio::sync::Mutex<()>>,
    /// Notified when that is done.
    renewed: Arc<Notify>,
    /// Limits requests. Responses and notifications need no slot, because a request may wait for
    /// them.
    slots: Arc<Semaphore>,
    exchange: Arc<Exchange>,
}

/// The headers that describe the connection.
#[derive(Debug, Clone, Default)]
struct HttpSession {
    id: Option<Arc<str>>,
    /// The era, after the handshake.
    era: Option<Era>,
    /// The agreed protocol version.
    version: Option<String>,
    /// The parameters of `initialize`, for when the server forgets the session.
    initialize: Option<Value>,
}

impl StreamableTransport {
    pub(super) fn new(client: HttpClient, sizes: MessageSizes, exchange: Arc<Exchange>) -> Self {
        Self {
            client,
            sizes,
            parameters: ParameterHeaders::default(),
            session: Arc::default(),
            renewing: Arc::default(),
            renewed: Arc::default(),
            slots: Arc::new(Semaphore::new(MAX_REQUESTS)),
            exchange,
        }
    }

    /// Continues with the result of the handshake.
    pub(super) fn agreed(&self, era: Era, version: &str, initialize: Option<Value>) {
        let mut session = self.session.lock();
        session.era = Some(era);
        session.version = Some(version.to_owned());
        session.initialize = initialize;
    }

    /// Follows the stream of notifications of a session.
    pub(super) fn listen(&self) {
        if self.session.lock().id.is_none() {
            return;
        }
        let transport = self.clone();
        tokio::spawn(async move {
            let listening = async {
                loop {
                    tokio::select! {
                        () = transport.follow_session() => return,
                        () = transport.renewed.notified() => {}
                    }
                }
            };
            tokio::select! {
                () = listening => {}
                () = transport.exchange.closed() => {}
            }
        });
    }

    /// Posts a request and reads until its response is there.
    pub(super) async fn request(
        &self,
        id: i64,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), ExchangeError> {
        // A subscription has no response until it ends.
        let is_bounded = method != methods::LISTEN;
        let _slot = if is_bounded { self.slots.acquire().await.ok() } else { None };
        let session = self.session.lock().id.clone();
        match self.ask(id, method, params.clone()).await {
            Err(ExchangeError::Http(HttpError::SessionExpired)) => {
                // The server does not know the session, so it did not process the request.
                self.renew(session).await?;
                self.ask(id, method, params).await
            }
            outcome => outcome,
        }
    }

    /// Posts a notification or a response.
    pub(super) async fn send(&self, message: Value) -> Result<(), ExchangeError> {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let headers = self.headers(method, message.get("params"));
        let (response, in_session) = self.post(&message, headers).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(refusal(&response, in_session).into())
    }

    /// Ends the session.
    pub(super) async fn close(&self, limit: Duration) {
        if self.session.lock().id.is_some() {
            let request = self.client.delete().headers(self.headers("", None));
            // Servers may not let clients end sessions.
            let _ = tokio::time::timeout(limit, self.client.send_once(request)).await;
        }
    }

    async fn ask(&self, id: i64, method: &str, params: Option<Value>) -> Result<(), ExchangeError> {
        let headers = self.headers(method, params.as_ref());
        let message = request_message(id.into(), method, params);
        self.exchange.mark_sent(id);
        let (response, in_session) = self.post(&message, headers).await?;
        let lists_tools = method == methods::TOOLS_LIST && self.is_modern(message.get("params"));
        if !response.status().is_success() {
            return self.read_refusal(id, response, in_session).await;
        }
        if method == methods::INITIALIZE {
            self.session.lock().id = header_text(&response, SESSION).map(Into::into);
        }
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // The response may come on the stream of the session.
            return if in_session { Ok(()) } else { Err(ExchangeError::NoResponse) };
        }
        if has_type(&response, EVENT_STREAM) {
            let events = bounded_events(response, self.sizes.kept);
            return self.follow(id, events, lists_tools).await;
        }
        if !has_type(&response, JSON) {
            return Err(unexpected_type(&response).into());
        }
        let body = bounded_body(response, self.sizes.kept).await.map_err(HttpError::from)?;
        let unreadable = |why: String| Err(ExchangeError::Unreadable(why));
        let Some(body) = body else { return unreadable(too_large(None, self.sizes.exact)) };
        let mut message = match incoming::read(&body, self.sizes.exact) {
            Ok(Some(read)) => read.message,
            Ok(None) => return unreadable(too_large(Some(body.len()), self.sizes.exact)),
            Err(error) => return unreadable(format!("it is not JSON: {error}")),
        };
        if message.get("id").is_some_and(|other| !other.is_null() && number(other) != Some(id)) {
            return unreadable("it belongs to another request".to_owned());
        }
        if lists_tools {
            self.parameters.read(message.get_mut("result"));
        }
        self.exchange.receive(message, Some(id), &self.responder());
        if self.exchange.is_pending(id) {
            return unreadable("it is not a JSON-RPC response".to_owned());
        }
        Ok(())
    }

    /// Reads an unsuccessful response. Its body may hold a JSON-RPC error, which says more than the
    /// status.
    async fn read_refusal(
        &self,
        id: i64,
        response: Response,
        in_session: bool,
    ) -> Result<(), ExchangeError> {
        let refusal = refusal(&response, in_session);
        if refusal.wants_authorization() || matches!(refusal, HttpError::SessionExpired) {
            return Err(refusal.into());
        }
        let body = bounded_body(response, MAX_ERROR_BYTES).await.ok().flatten();
        let message: Option<Value> = body.and_then(|body| serde_json::from_slice(&body).ok());
        match message.as_ref().and_then(|message| message.get("error")).filter(|it| it.is_object())
        {
            // It answers this request, whatever its id, because this HTTP exchange has no other.
            Some(error) => {
                let error = ErrorObject::from_any(error);
                self.exchange.respond(id, Err(ExchangeError::Refused(error)));
                Ok(())
            }
            None => Err(refusal.into()),
        }
    }

    /// Opens a session in place of one that the server forgot.
    async fn renew(&self, forgotten: Option<Arc<str>>) -> Result<(), ExchangeError> {
        let _renewing = self.renewing.lock().await;
        let initialize = {
            let mut session = self.session.lock();
            if session.id != forgotten {
                // Another request was faster.
                return Ok(());
            }
            session.id = None;
            session.initialize.clone()
        };
        let mut awaited = self.exchange.begin(Value::Null, methods::INITIALIZE, None);
        // Not `request`, so that a server that forgets every session causes no endless loop.
        Box::pin(self.ask(awaited.id(), methods::INITIALIZE, initialize)).await?;
        awaited.received().await?;
        self.renewed.notify_one();
        self.send(notification_message(methods::INITIALIZED, None)).await?;
        self.exchange.handler().session_renewed();
        Ok(())
    }

    /// Reads the stream of a response, and resumes it if it breaks.
    async fn follow(
        &self,
        id: i64,
        mut events: Events,
        lists_tools: bool,
    ) -> Result<(), ExchangeError> {
        let responder = self.responder();
        let (mut last_event, mut pause) = (None, None);
        for resumption in 0..=MAX_RESUMPTIONS {
            while let Some(event) = events.next().await {
                let read = event.and_then(|event| {
                    let message = event.message(self.sizes.exact)?;
                    Ok((event, message))
                });
                let (event, message) = match read {
                    Ok(read) => read,
                    Err(EventError::TooLarge) => {
                        let why = too_large(None, self.sizes.exact);
                        return Err(ExchangeError::Unreadable(why));
                    }
                    Err(EventError::Broken(_)) => break,
                };
                last_event = event.id.or(last_event);
                pause = event.retry.map(Duration::from_millis).or(pause);
                if let Some(mut message) = message {
                    if lists_tools {
                        self.parameters.read(message.get_mut("result"));
                    }
                    self.exchange.receive(message, Some(id), &responder);
                }
                if !self.exchange.is_pending(id) {
                    tokio::spawn(async move {
                        let rest = async { while events.next().await.is_some() {} };
                        let _ = tokio::time::timeout(REMAINDER_TIMEOUT, rest).await;
                    });
                    return Ok(());
                }
            }
            if last_event.is_none() || resumption == MAX_RESUMPTIONS {
                break;
            }
            tokio::time::sleep(pause.unwrap_or(Duration::from_secs(1)).min(MAX_PAUSE)).await;
            match self.open_stream(last_event.as_deref()).await {
                Ok(resumed) => events = resumed,
                Err(error @ (HttpError::Status(_) | HttpError::Authorization(_))) => {
                    return Err(error.into());
                }
                Err(_) => events = futures::stream::empty().boxed(),
            }
        }
        Err(ExchangeError::NoResponse)
    }

    /// Reads the stream of notifications. Returns if there is none.
    async fn follow_session(&self) {
        let responder = self.responder();
        let mut backoff = Backoff::default();
        let mut last_event = None;
        loop {
            let mut pause = None;
            match self.open_stream(last_event.as_deref()).await {
                Ok(mut events) => {
                    backoff.connected(Instant::now());
                    while let Some(Ok(event)) = events.next().await {
                        let message = event.message(self.sizes.exact);
                        last_event = event.id.or(last_event);
                        pause = event.retry.map(Duration::from_millis).or(pause);
                        if let Ok(Some(message)) = message {
                            self.exchange.receive(message, None, &responder);
                        }
                    }
                }
                Err(HttpError::NoEventStream) => return,
                Err(error) => tracing::debug!(%error, "no stream of notifications"),
            }
            let longest = backoff.next(Instant::now());
            tokio::time::sleep(pause.map_or(longest, |pause| pause.min(MAX_PAUSE))).await;
        }
    }

    async fn open_stream(&self, last_event: Option<&str>) -> Result<Events, HttpError> {
        let mut headers = self.headers("", None);
        if let Some(last) = last_event.and_then(|last| HeaderValue::from_str(last).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), last);
        }
        let request = self.client.get().headers(headers);
        let response = self.client.send(request.header(header::ACCEPT, EVENT_STREAM)).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(HttpError::NoEventStream),
            status if !status.is_success() => Err(HttpError::Status(status.as_u16())),
            _ if has_type(&response, EVENT_STREAM) => Ok(bounded_events(response, self.sizes.kept)),
            _ => Err(unexpected_type(&response)),
        }
    }

    /// Posts a message. Also returns whether it was in a session.
    async fn post(
        &self,
        message: &Value,
        headers: HeaderMap,
    ) -> Result<(Response, bool), HttpError> {
        let in_session = headers.contains_key(SESSION);
        let request = self.client.post().headers(headers);
        let request = request.header(header::ACCEPT, format!("{EVENT_STREAM}, {JSON}"));
        Ok((self.client.send(request.json(message)).await?, in_session))
    }

    fn responder(&self) -> Responder {
        let transport = self.clone();
        Arc::new(move |response| {
            let transport = transport.clone();
            Box::pin(async move {
                if let Err(error) = transport.send(response).await {
                    tracing::debug!(?error, "a response did not reach the server");
                }
            })
        })
    }

    /// The version of a message: a modern request has it in its `_meta`.
    fn is_modern(&self, params: Option<&Value>) -> bool {
        let era = self.session.lock().era;
        era.map_or(declared_version(params).is_some(), |era| era == Era::Modern)
    }

    /// The headers of a message: they repeat parts of its body, for proxies that route it without
    /// reading it.
    fn headers(&self, method: &str, params: Option<&Value>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: Option<HeaderValue>| {
            headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        };
        let HttpSession { id, version, .. } = self.session.lock().clone();
        insert(SESSION, id.and_then(|id| HeaderValue::from_str(&id).ok()));
        let version = declared_version(params).or(version.as_deref());
        insert(
            "mcp-protocol-version",
            version.and_then(|version| HeaderValue::from_str(version).ok()),
        );
        if self.is_modern(params) && !method.is_empty() {
            insert("mcp-method", header_value(method));
            let name = methods::name_parameter(method).and_then(|name| params?.get(name)?.as_str());
            insert("mcp-name", name.and_then(header_value));
            if let Some(params) = params.filter(|_| method == methods::TOOLS_CALL) {
                self.parameters.add(params, &mut headers);
            }
        }
        headers
    }
}

fn declared_version(params: Option<&Value>) -> Option<&str> {
    params?.get("_meta")?.get(meta::PROTOCOL_VERSION)?.as_str()
}

/// What an unsuccessful response means.
fn refusal(response: &Response, in_session: bool) -> HttpError {
    match response.status() {
        StatusCode::NOT_FOUND if in_session => HttpError::SessionExpired,
        status => HttpError::Status(status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use futures::{future::BoxFuture, poll};

    use super::{
        super::{
            connection::{ConnectionHandler, InputRequest, RelatedRequest},
            endpoint::HttpEndpoint,
        },
        *,
    };

    struct NoHandler;

    impl ConnectionHandler for NoHandler {
        fn notification(&self, _about: Option<&Value>, _method: &str, _params: Option<Value>) {}

        fn input_request(
            &self,
            _about: Option<RelatedRequest>,
            _request: InputRequest,
        ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_server_gets_a_limited_number_of_requests_at_once() {
        // It accepts no connection.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let client = HttpClient::new(&HttpEndpoint::new(&url)).unwrap();
        let exchange = Exchange::new(Arc::new(NoHandler));
        let transport = StreamableTransport::new(
            client,
            MessageSizes { exact: 1024, kept: 1024 },
            Arc::clone(&exchange),
        );
        let begin = |method| {
            let awaited = exchange.begin(Value::Null, method, None);
            (Box::pin(transport.request(awaited.id(), method, None)), awaited)
        };
        let all = u32::try_from(MAX_REQUESTS).unwrap();
        let under_way = transport.slots.acquire_many(all).await.unwrap();
        let (mut next, next_response) = begin(methods::TOOLS_CALL);
        assert!(poll!(&mut next).is_pending() && !next_response.was_sent());
        let (mut listening, subscription) = begin(methods::LISTEN);
        assert!(poll!(&mut listening).is_pending() && subscription.was_sent());
        drop(under_way);
        assert!(poll!(&mut next).is_pending() && next_response.was_sent());
    }
}
