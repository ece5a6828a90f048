//! HTTP requests with a token, and responses within bounds.

use std::{fmt, sync::Arc};

use futures::{StreamExt, TryStreamExt, future::BoxFuture, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use parking_lot::Mutex;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use url::Url;

use super::{
    endpoint::HttpEndpoint,
    failure::{AuthorizationError, ConnectFailure, HttpError},
    incoming::{self, Utf8Repair},
    redact::Redactor,
};
use crate::nesting;

/// The media type of a stream of events.
pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// How many tokens one request may try: the one in memory, the stored one, and a renewed one. One more is for a token that
/// was withdrawn between its renewal and its first use.
const MOST_TOKENS: usize = 4;

/// Provides the tokens of one server.
pub trait TokenProvider: fmt::Debug + Send + Sync {
    /// The token to send; `None` without a login.
    fn token(self: Arc<Self>) -> BoxFuture<'static, Result<Option<String>, AuthorizationError>>;

    /// Says what to do about a response with status 401 or 403. `challenge` is its
    /// `WWW-Authenticate: Bearer`, and `used` the token of the request.
    fn refused(
        self: Arc<Self>,
        status: u16,
        challenge: Option<String>,
        used: Option<String>,
    ) -> BoxFuture<'static, TokenVerdict>;

    /// Notes that the server accepted a token.
    fn accepted(&self, token: &str);

    /// The error for a server that refused every token.
    fn login_needed(&self) -> AuthorizationError;

    /// Hides the tokens, now and later.
    fn redactor(&self) -> &Redactor;
}

/// What to do after a server refused a token.
#[derive(Debug)]
pub enum TokenVerdict {
    /// Send the request again with this token. It was refused, so nothing is repeated.
    Retry(String),
    /// Give up.
    Failed(AuthorizationError),
    /// The refusal is not about the token.
    Unrelated,
}

/// The HTTP client of one server.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    client: Client,
    /// The server's URL, parsed once.
    url: Arc<Url>,
    authorizer: Option<Arc<dyn TokenProvider>>,
    /// The configured headers.
    headers: HeaderMap,
    /// Whether the server is on this machine.
    is_here: bool,
}

impl HttpClient {
    pub(super) fn new(endpoint: &HttpEndpoint) -> Result<Self, ConnectFailure> {
        let url = Url::parse(&endpoint.url).map_err(|error| {
            let reason = format!("its `url` is not a URL: {error}");
            ConnectFailure::new(reason, "correct `url` of the server")
        })?;
        let headers = read_headers(endpoint)?;
        let builder = match &endpoint.tls {
            Some(tls) => toolgate_http::client_builder_with(tls),
            None => toolgate_http::client_builder(),
        };
        let mut builder = builder
            // A redirect could carry credentials to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        let is_here = toolgate_http::is_loopback(&url);
        if is_here {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            let reason = format!("no HTTP client: {}", HttpError::from(error));
            ConnectFailure::new(reason, "check `url` of the server")
        })?;
        let authorizer = endpoint.authorizer().cloned();
        Ok(Self { client, url: Arc::new(url), authorizer, headers, is_here })
    }

    /// Adds what a gateway needs to recognise itself.
    fn via(&self, request: RequestBuilder) -> RequestBuilder {
        let passed = nesting::via().map(|ids| (nesting::VIA, ids));
        let names = self.is_here.then(nesting::configurations).flatten();
        let names = names.map(|names| (nesting::CONFIGURATIONS, names));
        let added = passed.into_iter().chain(names);
        added.fold(request, |request, (name, value)| request.header(name, value))
    }

    pub(super) fn get(&self) -> RequestBuilder {
        self.via(self.client.get(self.url())).headers(self.headers.clone())
    }

    pub(super) fn post(&self) -> RequestBuilder {
        self.post_to(self.url())
    }

    /// A request to another URL of the server.
    pub(super) fn post_to(&self, url: Url) -> RequestBuilder {
        self.via(self.client.post(url)).headers(self.headers.clone())
    }

    pub(super) fn delete(&self) -> RequestBuilder {
        self.client.delete(self.url()).headers(self.headers.clone())
    }

    fn url(&self) -> Url {
        Url::clone(&self.url)
    }

    /// Sends a request with the token, and does not renew the token.
    pub(super) async fn send_once(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        let token = match &self.authorizer {
            Some(authorizer) => Arc::clone(authorizer).token().await?,
            None => None,
        };
        send_with(request, token.as_deref()).await
    }

    /// Sends a request with the token. If the server refuses the token, sends it again with another one: what another
    /// process has stored may be refused as well, and is renewed then. The server processed none of the refused ones.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        let Some(authorizer) = &self.authorizer else { return Ok(request.send().await?) };
        let mut token = Arc::clone(authorizer).token().await?;
        let mut request = request;
        for _ in 0..MOST_TOKENS {
            let again = request.try_clone();
            let response = send_with(request, token.as_deref()).await?;
            let verdict = judge(authorizer, &response, token).await;
            (token, request) = match (verdict, again) {
                (Some(TokenVerdict::Retry(token)), Some(again)) => (Some(token), again),
                (Some(TokenVerdict::Failed(error)), _) => return Err(error.into()),
                _ => return Ok(response),
            };
        }
        Err(authorizer.login_needed().into())
    }
}

async fn send_with(request: RequestBuilder, token: Option<&str>) -> Result<Response, HttpError> {
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    Ok(request.send().await?)
}

/// What to do about a refusal; `None` if the request was not refused.
async fn judge(
    authorizer: &Arc<dyn TokenProvider>,
    response: &Response,
    token: Option<String>,
) -> Option<TokenVerdict> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        if let Some(token) = token.filter(|_| status.is_success()) {
            authorizer.accepted(&token);
        }
        return None;
    }
    let challenge = bearer_challenge(response.headers());
    Some(Arc::clone(authorizer).refused(status.as_u16(), challenge, token).await)
}

/// The `WWW-Authenticate: Bearer` of a response.
pub fn bearer_challenge(headers: &HeaderMap) -> Option<String> {
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).into_iter();
    let mut challenges = challenges.filter_map(|value| value.to_str().ok());
    challenges.find(|text| text.to_ascii_lowercase().starts_with("bearer")).map(str::to_owned)
}

fn read_headers(endpoint: &HttpEndpoint) -> Result<HeaderMap, ConnectFailure> {
    let headers = endpoint.headers.iter().map(|(name, value)| {
        let parsed = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
        let (name, mut value) = parsed.ok_or_else(|| {
            let reason = format!("the header `{name}` is not a valid HTTP header");
            ConnectFailure::new(reason, "correct it under `headers` of the server")
        })?;
        // Libraries do not log sensitive values.
        value.set_sensitive(true);
        Ok((name, value))
    });
    headers.collect()
}

pub(super) fn header_text<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
    response.headers().get(name)?.to_str().ok()
}

/// Whether the body is of a media type.
pub(super) fn has_type(response: &Response, media_type: &str) -> bool {
    let content_type = header_text(response, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    content_type.to_ascii_lowercase().starts_with(media_type)
}

/// The error for a body of a type that cannot be read.
pub(super) fn unexpected_type(response: &Response) -> HttpError {
    let content_type = header_text(response, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    HttpError::ContentType(content_type.to_owned())
}

/// The events of a response.
pub(super) type Events = BoxStream<'static, Result<ServerEvent, EventError>>;

/// An event of a server.
#[derive(Debug)]
pub(super) struct ServerEvent {
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    /// Its kind.
    pub(super) event: Option<String>,
    pub(super) data: Option<String>,
    /// How many of its characters were no UTF-8.
    replaced: u64,
}

impl ServerEvent {
    /// The message in it, if it can be read; an error if it is too large.
    pub(super) fn message(&self, exact: usize) -> Result<Option<Value>, EventError> {
        let Some(data) = &self.data else { return Ok(None) };
        let read = match incoming::read(data.as_bytes(), exact) {
            Ok(read) => read.ok_or(EventError::TooLarge)?,
            Err(_) => return Ok(None),
        };
        let mut message = read.message;
        if self.replaced > 0 {
            incoming::add_replaced(&mut message, self.replaced);
        }
        Ok(Some(message))
    }
}

/// Why a stream of events ended early.
#[derive(Debug)]
pub(super) enum EventError {
    /// An event has more bytes than allowed.
    TooLarge,
    Broken(String),
}

impl From<EventError> for HttpError {
    fn from(error: EventError) -> Self {
        Self::Events(match error {
            EventError::TooLarge => "an event is over the limit".to_owned(),
            EventError::Broken(why) => why,
        })
    }
}

/// The events of a response. An event of more than `limit` bytes ends the stream with an error.
pub(super) fn bounded_events(response: Response, limit: usize) -> Events {
    let mut counter = EventCounter::default();
    let repair = Arc::new(Mutex::new(Utf8Repair::default()));
    let repaired = Arc::clone(&repair);
    let bytes = response.bytes_stream().map(move |piece| {
        let piece =
            piece.map_err(|error: reqwest::Error| std::io::Error::other(error.without_url()))?;
        if counter.longest_with(&piece) > limit {
            Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge))
        } else {
            Ok(repaired.lock().push(piece))
        }
    });
    let events = SseStream::from_bytes_stream(bytes);
    events
        .map_ok(move |event| {
            let replaced = std::mem::take(&mut repair.lock().replaced);
            let Sse { id, retry, event, data } = event;
            ServerEvent { id, retry, event, data, replaced }
        })
        .map_err(|error| {
            let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
            while let Some(current) = cause {
                let io = current.downcast_ref::<std::io::Error>();
                if io.is_some_and(|io| io.kind() == std::io::ErrorKind::FileTooLarge) {
                    return EventError::TooLarge;
                }
                cause = current.source();
            }
            EventError::Broken(error.to_string())
        })
        .boxed()
}

/// Counts the bytes of events: an event ends with an empty line.
#[derive(Debug, Default)]
struct EventCounter {
    since_event: usize,
    last_byte: u8,
}

impl EventCounter {
    /// The size of the longest event that ends or continues in `piece`.
    fn longest_with(&mut self, piece: &[u8]) -> usize {
        let mut longest = 0;
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            let ends = *byte == b'\n' && self.last_byte == b'\n';
            self.since_event = if ends { 0 } else { self.since_event + 1 };
            self.last_byte = *byte;
            longest = longest.max(self.since_event);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_across_pieces() {
        let mut counter = EventCounter::default();
        assert_eq!(counter.longest_with(b"data: 12"), 8);
        assert_eq!(counter.longest_with(b"34\r\n\r\ndata: 5"), 11);
        assert_eq!(counter.longest_with(b"6\n\n"), 9);
        assert_eq!(counter.longest_with(b"\n"), 0);
    }
}
