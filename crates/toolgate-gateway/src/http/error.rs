//! HTTP responses for requests that are refused.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use toolgate_mcp::{ErrorObject, codes};

/// Why a request is refused, as an HTTP status and a JSON-RPC error.
#[derive(Debug)]
pub(crate) struct HttpError(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    status: StatusCode,
    id: Option<Value>,
    error: ErrorObject,
    /// The value of `WWW-Authenticate`.
    challenge: Option<String>,
    retry_seconds: Option<u64>,
    is_begun: bool,
}

/// Tells another node that nothing of a request was done, so that it can be done elsewhere.
pub(crate) const NOT_BEGUN: HeaderName = HeaderName::from_static("toolgate-not-begun");
/// For clients that come too early or too often.
const RETRY_SECONDS: u64 = 5;

impl HttpError {
    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self::with(status, ErrorObject::invalid_request(message.into(), None))
    }

    pub(crate) fn with(status: StatusCode, error: ErrorObject) -> Self {
        let is_temporary =
            [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
        let retry_seconds = is_temporary.then_some(RETRY_SECONDS);
        let (id, challenge, is_begun) = (None, None, true);
        Self(Box::new(ErrorParts { status, id, error, challenge, retry_seconds, is_begun }))
    }

    pub(crate) fn bad_request(error: ErrorObject) -> Self {
        Self::with(StatusCode::BAD_REQUEST, error)
    }

    /// A header is missing or contradicts the body.
    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::bad_request(ErrorObject::new(codes::HEADER_MISMATCH, message.into(), None))
    }

    /// Names the JSON-RPC request that the error belongs to.
    pub(crate) fn for_request(mut self, id: Option<&Value>) -> Self {
        self.0.id = id.cloned();
        self
    }

    pub(crate) fn with_challenge(mut self, challenge: String) -> Self {
        self.0.challenge = Some(challenge);
        self
    }

    /// Says that nothing of the request was done.
    pub(crate) fn not_begun(mut self) -> Self {
        self.0.is_begun = false;
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_seconds = Some(seconds);
        self
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let ErrorParts { status, id, error, challenge, retry_seconds, is_begun } = *self.0;
        let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(challenge) = challenge.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        if !is_begun {
            headers.insert(NOT_BEGUN, HeaderValue::from_static("1"));
        }
        if let Some(seconds) = retry_seconds {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// The HTTP status for the outcome of a modern request.
pub(crate) fn status_of(outcome: &Result<Value, ErrorObject>) -> StatusCode {
    match outcome.as_ref().map_err(|error| error.code) {
        Err(
            codes::UNSUPPORTED_PROTOCOL_VERSION
            | codes::MISSING_CLIENT_CAPABILITY
            | codes::HEADER_MISMATCH,
        ) => StatusCode::BAD_REQUEST,
        Err(codes::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
