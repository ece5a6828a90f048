//! Requests and streamed replies over HTTP.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use chrono::DateTime;
use futures::StreamExt as _;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use sse_stream::SseStream;

use crate::{
    AgentError, ModelKey, ModelSettings, Provider, ProviderError, ProviderReply, ReplyDelta,
    WireRequest,
};

/// No reply is longer. It bounds what a hostile endpoint can make us keep.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// How much of an error body is read, and how much of its message is shown.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_MESSAGE_CHARACTERS: usize = 600;

/// The HTTP client of one provider. It alone knows the key.
#[derive(Clone)]
pub struct WireClient {
    client: Client,
    url: String,
    headers: HeaderMap,
    key: Option<ModelKey>,
    idle_timeout: Duration,
}

impl WireClient {
    /// A client for an endpoint. `authorize` writes the key into a header: its name, and what comes before the key.
    pub fn new(
        settings: &ModelSettings,
        authorize: (&'static str, &'static str),
    ) -> Result<Self, AgentError> {
        let wrong = |why: &str| AgentError::Settings(why.to_owned());
        let url =
            Url::parse(&settings.url).map_err(|_| wrong("the URL of the endpoint is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("the URL of the endpoint must begin with http:// or https://"));
        }
        let mut builder = toolgate_http::client_builder()
            // A redirect could carry the key and the conversation to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        if toolgate_http::is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|_| wrong("no HTTP client can be made for it"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let name =
                HeaderName::try_from(name).map_err(|_| wrong("a header has an invalid name"))?;
            headers
                .insert(name, secret(value).ok_or_else(|| wrong("a header has an invalid value"))?);
        }
        if let Some(key) = &settings.key {
            let (name, scheme) = authorize;
            let value = secret(&format!("{scheme}{}", key.expose()));
            headers.insert(
                name,
                value.ok_or_else(|| wrong("the key has characters that no header takes"))?,
            );
        }
        let (key, idle_timeout) = (settings.key.clone(), settings.idle_timeout);
        Ok(Self { client, url: settings.url.clone(), headers, key, idle_timeout })
    }

    /// Sends a request and reads the reply. `deltas` gets what can be shown at once.
    pub(crate) async fn exchange(
        &self,
        provider: &dyn Provider,
        request: WireRequest,
        deltas: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<ProviderReply, ProviderError> {
        let mut builder = self
            .client
            .post(format!("{}{}", self.url, request.path))
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        let sent = self.patiently(builder.body(request.body).send()).await?;
        let response = sent.map_err(|error| unreachable(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        if is_events(&response) {
            self.read_events(provider, response, deltas).await
        } else {
            let body =
                self.patiently(toolgate_http::bounded_body(response, MAX_REPLY_BYTES)).await?;
            let body = body.map_err(|_| ProviderError::Cut { after_effect: true })?;
            let body = body.ok_or(ProviderError::TooLarge(MAX_REPLY_BYTES))?;
            let body = String::from_utf8(body).map_err(|_| unreadable("it is not UTF-8"))?;
            provider.read(&body).map_err(|error| self.without_key(error))
        }
    }

    async fn read_events(
        &self,
        provider: &dyn Provider,
        response: Response,
        deltas: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<ProviderReply, ProviderError> {
        let mut decoder = provider.decoder();
        let mut read = 0;
        let bytes = response.bytes_stream().map(move |piece| {
            let piece =
                piece.map_err(|_| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
            read += piece.len();
            if read > MAX_REPLY_BYTES {
                return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
            }
            Ok(piece)
        });
        let mut events = SseStream::from_bytes_stream(bytes);
        while !decoder.is_complete() {
            let event = match self.patiently(events.next()).await {
                Ok(event) => event,
                Err(_) if decoder.had_effect() => {
                    return Err(ProviderError::Cut { after_effect: true });
                }
                Err(silent) => return Err(silent),
            };
            let data = match event {
                Some(Ok(event)) => event.data,
                Some(Err(error)) if is_too_large(&error) => {
                    return Err(ProviderError::TooLarge(MAX_REPLY_BYTES));
                }
                None if decoder.may_end() => break,
                // The stream ended, or the connection was lost.
                Some(Err(_)) | None => {
                    return Err(ProviderError::Cut { after_effect: decoder.had_effect() });
                }
            };
            let Some(data) = data.filter(|data| !data.is_empty()) else { continue };
            let shown = decoder.event(&data).map_err(|error| self.without_key(error))?;
            shown.into_iter().for_each(&mut *deltas);
        }
        decoder.finish().map_err(|error| self.without_key(error))
    }

    async fn patiently<F: Future>(&self, future: F) -> Result<F::Output, ProviderError> {
        let silent = |_| ProviderError::Silent(self.idle_timeout);
        tokio::time::timeout(self.idle_timeout, future).await.map_err(silent)
    }

    async fn refusal(&self, response: Response) -> ProviderError {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let body = self.patiently(toolgate_http::bounded_body(response, MAX_ERROR_BYTES)).await;
        let body = body.ok().and_then(Result::ok).flatten().unwrap_or_default();
        let error = serde_json::from_slice(&body).unwrap_or(Value::Null);
        self.without_key(refused(status, &error, retry_after))
    }

    /// Some providers repeat the key that they refuse.
    fn without_key(&self, error: ProviderError) -> ProviderError {
        let Some(key) = self.key.as_ref().map(ModelKey::expose).filter(|key| !key.is_empty())
        else {
            return error;
        };
        let clean = |text: String| text.replace(key, "…");
        match error {
            ProviderError::Status { status, kind, message, retry_after } => ProviderError::Status {
                status,
                kind: kind.map(clean),
                message: clean(message),
                retry_after,
            },
            ProviderError::Window(message) => ProviderError::Window(clean(message)),
            ProviderError::Unreadable(why) => ProviderError::Unreadable(clean(why)),
            error => error,
        }
    }
}

/// Neither the key nor the URL.
impl fmt::Debug for WireClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WireClient").finish_non_exhaustive()
    }
}

pub(crate) fn unreadable(why: impl Into<String>) -> ProviderError {
    ProviderError::Unreadable(why.into())
}

/// The error that a body, or an event within a stream, describes. All wires have `error` with `message`, and a name in
/// `type`, `code` or `status`.
pub(crate) fn refused(
    status: StatusCode,
    body: &Value,
    retry_after: Option<Duration>,
) -> ProviderError {
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let text = |name: &str| error[name].as_str().map(str::to_owned);
    let kind = text("code").or_else(|| text("type")).or_else(|| text("status"));
    let message = text("message").or_else(|| error.as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| "it gave no reason".to_owned());
    let message: String = message.chars().take(MAX_MESSAGE_CHARACTERS).collect();
    if is_about_window(status, kind.as_deref(), &message) {
        return ProviderError::Window(message);
    }
    ProviderError::Status { status: status.as_u16(), kind, message, retry_after }
}

fn is_about_window(status: StatusCode, kind: Option<&str>, message: &str) -> bool {
    const SIGNS: [&str; 5] = [
        "prompt is too long",
        "maximum context length",
        "context window",
        "exceeds the available context size",
        "exceeds the maximum number of tokens",
    ];
    let message = message.to_ascii_lowercase();
    kind == Some("context_length_exceeded")
        || kind == Some("exceed_context_size_error")
        || (status.is_client_error() && SIGNS.iter().any(|sign| message.contains(sign)))
}

/// `retry-after-ms`, or `Retry-After` as seconds or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|wait| wait.parse().ok()) {
        return Some(Duration::from_millis(wait));
    }
    let wait = text("retry-after")?;
    if let Ok(seconds) = wait.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTime::parse_from_rfc2822(wait).ok()?;
    Some(SystemTime::from(date).duration_since(now).unwrap_or_default())
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn is_too_large(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(current) = cause {
        let io = current.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::FileTooLarge) {
            return true;
        }
        cause = current.source();
    }
    false
}

fn unreachable(error: &reqwest::Error) -> ProviderError {
    ProviderError::Unreachable(toolgate_http::unreachable_reason(error).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_is_read_in_each_spelling() {
        let now = SystemTime::from(DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z").unwrap());
        let read = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            retry_after(&headers, now)
        };
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "1.5"), Some(Duration::from_millis(1_500)));
        assert_eq!(
            read("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(read("retry-after", "Wed, 31 Dec 2025 00:00:30 GMT"), Some(Duration::ZERO));
        for nothing in ["-1", "soon", "inf"] {
            assert_eq!(read("retry-after", nothing), None, "{nothing}");
        }
    }

    #[test]
    fn errors_of_all_wires_are_read() {
        let of = |status: u16, body: Value| {
            refused(StatusCode::from_u16(status).unwrap(), &body, None).to_string()
        };
        let anthropic = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert_eq!(
            of(529, anthropic),
            "the provider refused the request (529, overloaded_error): Overloaded"
        );
        let gemini =
            json!([{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}]);
        assert_eq!(
            of(429, gemini),
            "the provider refused the request (429, RESOURCE_EXHAUSTED): Quota"
        );
        assert!(
            of(400, json!({"error": {"code": "context_length_exceeded", "message": "m"}}))
                .contains("window")
        );
        assert!(
            of(400, json!({"error": {"message": "Prompt is too long: 9 > 8"}})).contains("window")
        );
        assert_eq!(
            of(500, Value::Null),
            "the provider refused the request (500): it gave no reason"
        );
        assert_eq!(
            of(400, json!({"error": "plain"})),
            "the provider refused the request (400): plain"
        );
    }
}
