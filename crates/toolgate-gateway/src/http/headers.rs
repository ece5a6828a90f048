//! What a request's headers say of its body.
//!
//! Machines between client and server route by headers alone, so that a header that says other than
//! the body is refused, and so is one that is there twice.

use axum::http::{HeaderMap, StatusCode, header};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::refusal::Refusal;
use crate::{
    era::{self, Declared, Era},
    message::{Message, Request},
};

pub(crate) const SESSION: &str = "mcp-session-id";
pub(crate) const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAMETER: &str = "mcp-param-";
/// How deep an annotated property may lie in a schema.
const DEPTH: usize = 16;

/// Whether the client takes what we may answer with.
pub(crate) fn check_media(headers: &HeaderMap) -> Result<(), Refusal> {
    let field = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        let message = "`Accept` has to have application/json and text/event-stream";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
    }
    let kind = field(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = "`Content-Type` has to be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

/// Whether the client takes a stream of events.
pub(crate) fn check_stream(headers: &HeaderMap) -> Result<(), Refusal> {
    if accepts(headers, "text/event-stream") {
        return Ok(());
    }
    let message = "`Accept` has to have text/event-stream";
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = values.flat_map(|value| value.split(','));
    kinds.any(|accepted| {
        let accepted = accepted.split(';').next().unwrap_or_default().trim();
        let (family, _) = kind.split_once('/').unwrap_or((kind, ""));
        accepted.eq_ignore_ascii_case(kind)
            || accepted == "*/*"
            || accepted.strip_suffix("/*").is_some_and(|all| all.eq_ignore_ascii_case(family))
    })
}

/// The era that headers alone speak of, as in requests without a body.
pub(crate) fn era(headers: &HeaderMap) -> Result<Era, Refusal> {
    let version = sole(headers, VERSION)?;
    if let Some(version) = version.filter(|version| !era::is_known(version)) {
        return Err(Refusal::bad_request(era::unsupported(version)));
    }
    Ok(if version.is_some_and(era::is_modern) { Era::Modern } else { Era::Legacy })
}

/// The era of a message, once header and body agree about it.
pub(crate) fn era_of(headers: &HeaderMap, message: &Message) -> Result<Era, Refusal> {
    let Message::Request(request) = message else { return era(headers) };
    let header = sole(headers, VERSION)?;
    let declared = Declared::of(request.params.as_ref());
    let body = request.fields().and_then(|params| params.get("protocolVersion"));
    if request.method == "initialize" && (body.is_some() || declared.version().is_none()) {
        // The handshake is of the legacy era, whatever version it names.
        if header.is_some_and(|header| body.is_some_and(|body| body != header)) {
            let message = "`MCP-Protocol-Version` is not the version of the handshake";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
        return Ok(Era::Legacy);
    }
    match (header, declared.version()) {
        (_, None) => {
            let era = era(headers)?;
            if era == Era::Modern || request.method == "server/discover" {
                declared.complete().map_err(Refusal::bad_request)?;
            }
            Ok(era)
        }
        (None, Some(_)) => Err(Refusal::mismatch(
            "a request whose _meta has a protocol version needs `MCP-Protocol-Version`",
        )),
        (Some(header), Some(body)) if header != body => Err(Refusal::mismatch(
            "`MCP-Protocol-Version` is not the protocol version of the request's _meta",
        )),
        (Some(_), Some(body)) => {
            let modern = era::is_modern(body) || declared.complete().is_ok();
            Ok(if modern { Era::Modern } else { Era::Legacy })
        }
    }
}

/// Makes the trace that headers name that of the request, unless its body names one itself.
pub(crate) fn take_trace(headers: &HeaderMap, request: &mut Request) {
    let field = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let Some(parent) = field("traceparent") else { return };
    let params = request.params.get_or_insert_with(|| json!({}));
    let Some(params) = params.as_object_mut() else { return };
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    let Some(meta) = meta.as_object_mut().filter(|meta| !meta.contains_key("traceparent")) else {
        return;
    };
    meta.insert("traceparent".to_owned(), json!(parent));
    match field("tracestate") {
        Some(state) => meta.insert("tracestate".to_owned(), json!(state)),
        None => meta.shift_remove("tracestate"),
    };
}

/// Checks the headers of a message of the modern era that name what its body asks for.
pub(crate) fn check_names(
    headers: &HeaderMap,
    method: &str,
    params: Option<&Value>,
) -> Result<(), Refusal> {
    match sole(headers, METHOD)? {
        None => return Err(Refusal::mismatch("`Mcp-Method` is missing")),
        Some(value) if value != method => {
            return Err(Refusal::mismatch("`Mcp-Method` is not the method of the body"));
        }
        Some(_) => {}
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(expected) = params.and_then(|params| params.get(key)).and_then(Value::as_str) else {
        return Ok(());
    };
    match sole(headers, NAME)? {
        None => Err(Refusal::mismatch(format!("`Mcp-Name` is missing for {method}"))),
        Some(value) if decode(value).as_deref() != Some(expected) => {
            Err(Refusal::mismatch(format!("`Mcp-Name` is not the `{key}` of the body")))
        }
        Some(_) => Ok(()),
    }
}

/// Checks the arguments of a call that its tool wants repeated as headers.
pub(crate) fn check_arguments(
    headers: &HeaderMap,
    request: &Request,
    schema: &Value,
) -> Result<(), Refusal> {
    let arguments = request.fields().and_then(|params| params.get("arguments"));
    let mut annotated = Vec::new();
    annotations(schema, &mut Vec::new(), &mut annotated);
    for (path, name) in annotated {
        let full = format!("{PARAMETER}{}", name.to_ascii_lowercase());
        let argument = arguments
            .and_then(|arguments| path.iter().try_fold(arguments, |value, key| value.get(key)))
            .and_then(written);
        let header = sole(headers, &full)?;
        let path = path.join(".");
        match (header, argument) {
            (Some(_), None) => {
                return Err(Refusal::mismatch(format!("`{full}` is there and `{path}` is not")));
            }
            (None, Some(_)) => {
                return Err(Refusal::mismatch(format!("`{full}` is missing for `{path}`")));
            }
            (Some(header), Some(argument)) if decode(header).as_ref() != Some(&argument) => {
                return Err(Refusal::mismatch(format!("`{full}` is not `{path}` of the body")));
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
    Ok(())
}

/// The properties of a schema that are annotated with the name of a header, with their paths.
fn annotations<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    found: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if path.len() >= DEPTH {
        return;
    }
    for (name, property) in properties {
        path.push(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str)
            && !header.is_empty()
        {
            found.push((path.clone(), header));
        }
        annotations(property, path, found);
        path.pop();
    }
}

/// An argument as a header has it.
fn written(argument: &Value) -> Option<String> {
    match argument {
        Value::String(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What a header stands for: text that does not fit into one is wrapped.
fn decode(value: &str) -> Option<String> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(value.to_owned());
    };
    String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok()
}

/// The only value of a header.
fn sole<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::mismatch(format!("`{name}` is there twice")));
    }
    value.to_str().map(Some).map_err(|_| Refusal::mismatch(format!("`{name}` cannot be read")))
}
