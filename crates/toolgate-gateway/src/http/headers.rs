//! Checks that the headers of a request agree with its body.
//!
//! Proxies route by headers alone. So a header that contradicts the body is refused, and so is a header
//! that is present twice.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use toolgate_mcp::{JsonRpcMessage, JsonRpcRequest, methods, versions};

use super::error::HttpError;
use crate::era::{self, DeclaredMeta, Era};

pub(crate) const SESSION_ID: &str = "mcp-session-id";
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAMETER_PREFIX: &str = "mcp-param-";
/// How deep an annotated property may be in a schema.
const MAX_SCHEMA_DEPTH: usize = 16;

/// Checks the size of the request line and the headers, as it was sent.
pub(crate) fn check_size(parts: &Parts, limit: usize) -> Result<(), HttpError> {
    let target = parts.uri.to_string().len();
    let line = parts.method.as_str().len() + target + " HTTP/1.1 \r\n".len();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    if line + headers.sum::<usize>() + "\r\n".len() <= limit {
        return Ok(());
    }
    let message = format!(
        "the head of a request has at most {limit} bytes; send less, or set `gateway.maxHeaderBytes`"
    );
    Err(HttpError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message))
}

/// Checks `Transfer-Encoding`.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), HttpError> {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| {
        value.to_str().is_ok_and(|value| value.trim().eq_ignore_ascii_case("chunked"))
    };
    if encodings.next().is_none_or(is_chunked) && encodings.next().is_none() {
        return Ok(());
    }
    let message = "`Transfer-Encoding` can only be chunked";
    Err(HttpError::new(StatusCode::NOT_IMPLEMENTED, message))
}

/// Checks `Accept`, `Content-Type` and `Content-Encoding` of a POST.
pub(crate) fn check_media_types(headers: &HeaderMap) -> Result<(), HttpError> {
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        let message = "`Accept` must contain application/json and text/event-stream";
        return Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let sent = sent.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !sent.eq_ignore_ascii_case("application/json") {
        let message = "`Content-Type` must be application/json";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let message = "a body must not be compressed; send it without `Content-Encoding`";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

/// Checks `Accept` of a GET.
pub(crate) fn check_accepts_stream(headers: &HeaderMap) -> Result<(), HttpError> {
    if accepts(headers, "text/event-stream") {
        return Ok(());
    }
    let message = "`Accept` must contain text/event-stream";
    Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, message))
}

fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let (family, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|accepted| {
        let accepted = accepted.split(';').next().unwrap_or_default().trim();
        accepted.eq_ignore_ascii_case(media_type)
            || accepted == "*/*"
            || accepted.strip_suffix("/*").is_some_and(|all| all.eq_ignore_ascii_case(family))
    })
}

/// The era that the headers alone declare, as for requests without a body.
pub(crate) fn declared_era(headers: &HeaderMap) -> Result<Era, HttpError> {
    let version = single(headers, PROTOCOL_VERSION, HttpError::header_mismatch)?;
    if let Some(version) = version.filter(|version| !versions::is_known(version)) {
        return Err(HttpError::bad_request(era::unsupported_version(version)));
    }
    Ok(version.map_or(Era::Legacy, Era::of_version))
}

/// The era of a message. Header and body must agree about it.
pub(crate) fn era_of(headers: &HeaderMap, message: &JsonRpcMessage) -> Result<Era, HttpError> {
    let JsonRpcMessage::Request(request) = message else { return declared_era(headers) };
    let header = single(headers, PROTOCOL_VERSION, HttpError::header_mismatch)?;
    let declared = DeclaredMeta::of(request.params.as_ref());
    let body = request.fields().and_then(|params| params.get("protocolVersion"));
    if request.method == methods::INITIALIZE && (body.is_some() || declared.version().is_none()) {
        // `initialize` belongs to the legacy era, whatever version it requests.
        if header.is_some_and(|header| body.is_some_and(|body| body != header)) {
            let message = "`MCP-Protocol-Version` differs from the version in `initialize`";
            return Err(HttpError::new(StatusCode::BAD_REQUEST, message));
        }
        return Ok(Era::Legacy);
    }
    match (header, declared.version()) {
        (_, None) => {
            let era = declared_era(headers)?;
            if era == Era::Modern || request.method == methods::DISCOVER {
                declared.check_complete().map_err(HttpError::bad_request)?;
            }
            Ok(era)
        }
        (None, Some(_)) => Err(HttpError::header_mismatch(
            "a request with a protocol version in its _meta needs `MCP-Protocol-Version`",
        )),
        (Some(header), Some(body)) if header != body => Err(HttpError::header_mismatch(
            "`MCP-Protocol-Version` differs from the protocol version in the request's _meta",
        )),
        (Some(_), Some(_)) => Ok(if declared.is_modern() { Era::Modern } else { Era::Legacy }),
    }
}

/// Copies the trace headers into the `_meta` of a request, unless it names a trace itself.
pub(crate) fn copy_trace(headers: &HeaderMap, request: &mut JsonRpcRequest) {
    let field = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let Some(parent) = field("traceparent") else { return };
    let params = request.params.get_or_insert_with(|| json!({}));
    let Some(params) = params.as_object_mut() else { return };
    let entry = params.entry("_meta").or_insert_with(|| json!({}));
    let Some(fields) = entry.as_object_mut().filter(|it| !it.contains_key("traceparent")) else {
        return;
    };
    fields.insert("traceparent".to_owned(), json!(parent));
    match field("tracestate") {
        Some(state) => fields.insert("tracestate".to_owned(), json!(state)),
        None => fields.shift_remove("tracestate"),
    };
}

/// Checks `Mcp-Method` and `Mcp-Name` of a modern message.
pub(crate) fn check_names(
    headers: &HeaderMap,
    method: &str,
    params: Option<&Value>,
) -> Result<(), HttpError> {
    match single(headers, METHOD, HttpError::header_mismatch)? {
        None => return Err(HttpError::header_mismatch("`Mcp-Method` is missing")),
        Some(value) if value != method => {
            return Err(HttpError::header_mismatch(
                "`Mcp-Method` differs from the method in the body",
            ));
        }
        Some(_) => {}
    }
    let Some(key) = methods::name_parameter(method) else { return Ok(()) };
    let Some(expected) = params.and_then(|params| params.get(key)).and_then(Value::as_str) else {
        return Ok(());
    };
    match single(headers, NAME, HttpError::header_mismatch)? {
        None => Err(HttpError::header_mismatch(format!("`Mcp-Name` is missing for {method}"))),
        Some(value) if decode(value).as_deref() != Some(expected) => {
            let message = format!("`Mcp-Name` differs from the `{key}` in the body");
            Err(HttpError::header_mismatch(message))
        }
        Some(_) => Ok(()),
    }
}

/// Checks the arguments of a call that its tool wants repeated as headers.
pub(crate) fn check_arguments(
    headers: &HeaderMap,
    request: &JsonRpcRequest,
    schema: &Value,
) -> Result<(), HttpError> {
    let arguments = request.fields().and_then(|params| params.get("arguments"));
    let mut annotated = Vec::new();
    find_annotations(schema, &mut Vec::new(), &mut annotated);
    for (path, name) in annotated {
        let full = format!("{PARAMETER_PREFIX}{}", name.to_ascii_lowercase());
        let argument = arguments
            .and_then(|arguments| path.iter().try_fold(arguments, |value, key| value.get(key)))
            .and_then(header_text);
        let header = single(headers, &full, HttpError::header_mismatch)?;
        let path = path.join(".");
        let message = match (header, argument) {
            (Some(_), None) => format!("`{full}` is present but `{path}` is not"),
            (None, Some(_)) => format!("`{full}` is missing for `{path}`"),
            (Some(header), Some(argument)) if decode(header).as_ref() != Some(&argument) => {
                format!("`{full}` differs from `{path}` in the body")
            }
            (None, None) | (Some(_), Some(_)) => continue,
        };
        return Err(HttpError::header_mismatch(message));
    }
    Ok(())
}

/// Finds the properties of a schema that are annotated with the name of a header, with their paths.
fn find_annotations<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    found: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if path.len() >= MAX_SCHEMA_DEPTH {
        return;
    }
    for (name, property) in properties {
        path.push(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str)
            && !header.is_empty()
        {
            found.push((path.clone(), header));
        }
        find_annotations(property, path, found);
        path.pop();
    }
}

/// The text of an argument in a header.
fn header_text(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(argument.to_string()),
        _ => None,
    }
}

/// Decodes a header. Text that is not allowed in a header is wrapped in base64.
fn decode(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok()
}

/// The only value of a header. With two, this server and a proxy could read different ones.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &str,
    refuse: impl Fn(String) -> HttpError,
) -> Result<Option<&'a str>, HttpError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refuse(format!("`{name}` is present twice")));
    }
    value.to_str().map(Some).map_err(|_| refuse(format!("`{name}` cannot be read")))
}
