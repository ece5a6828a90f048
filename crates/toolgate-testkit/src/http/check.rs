//! Checks the headers of requests.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::Value;

use super::HttpRefusal;
use crate::engine::VERSION_KEY;
use crate::reply::code;

/// Refuses a request without the bearer token, if there must be one.
pub(super) fn bearer(token: Option<&str>, headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let Some(token) = token else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if given.and_then(|text| text.strip_prefix("Bearer ")) == Some(token) {
        return Ok(());
    }
    let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
    Err(HttpRefusal(Box::new((StatusCode::UNAUTHORIZED, challenge).into_response())))
}

/// Refuses a modern request with headers that do not match its body.
pub(super) fn modern_headers(headers: &HeaderMap, message: &Value) -> Result<(), HttpRefusal> {
    let version = &message["params"]["_meta"][VERSION_KEY];
    expect(headers, "mcp-protocol-version", version)?;
    expect(headers, "mcp-method", &message["method"])?;
    if message["method"] == "tools/call" {
        expect(headers, "mcp-name", &message["params"]["name"])?;
    }
    Ok(())
}

fn expect(headers: &HeaderMap, name: &str, expected: &Value) -> Result<(), HttpRefusal> {
    // The engine reports fields that the body lacks.
    let Some(expected) = expected.as_str() else { return Ok(()) };
    let given = headers.get(name).and_then(|value| value.to_str().ok());
    match given {
        Some(given) if given == expected => Ok(()),
        // The form for values that no header can contain. It needs no decoder here.
        Some(given) if given.starts_with("=?base64?") => Ok(()),
        Some(_) | None => {
            let message = format!("The header {name} is missing or does not match the body");
            Err(HttpRefusal::error(StatusCode::BAD_REQUEST, code::HEADER_MISMATCH, &message))
        }
    }
}
