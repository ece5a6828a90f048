//! Answers that say no.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use toolgate_mcp::{ErrorObject, codes};

/// Why a request is not answered, as a status and as JSON-RPC.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    id: Option<Box<Value>>,
    error: Box<ErrorObject>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self::with(status, ErrorObject::invalid_request(message.into(), None))
    }

    pub(crate) fn with(status: StatusCode, error: ErrorObject) -> Self {
        Self { status, id: None, error: Box::new(error) }
    }

    pub(crate) fn bad_request(error: ErrorObject) -> Self {
        Self::with(StatusCode::BAD_REQUEST, error)
    }

    /// A header that says other than the body, or is missing.
    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Self::bad_request(ErrorObject::new(codes::HEADER_MISMATCH, message.into(), None))
    }

    pub(crate) fn about(mut self, id: &Value) -> Self {
        self.id = Some(Box::new(id.clone()));
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error });
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE
            || self.status == StatusCode::TOO_MANY_REQUESTS
        {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, header::HeaderValue::from_static("5"));
        }
        response
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        refusal.into_response()
    }
}

/// The status that goes with the outcome of a request of the modern era.
pub(crate) fn status(outcome: &Result<Value, ErrorObject>) -> StatusCode {
    let Err(error) = outcome else { return StatusCode::OK };
    match error.code {
        codes::UNSUPPORTED_PROTOCOL_VERSION
        | codes::MISSING_CLIENT_CAPABILITY
        | codes::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
