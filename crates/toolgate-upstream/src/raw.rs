//! Messages as they were sent.
//!
//! rmcp decodes a result by trying its types in turn, and what it takes for a `CallToolResult` or
//! a tool list loses every field that the type does not have. Here the results of all requests but
//! the few that rmcp itself has to understand are put into its catch-all, untouched.
//!
//! What a server says of its own accord, questions and notifications, loses fields in the same way.
//! It travels under a method that rmcp does not know, with its parameters in an envelope, and gets
//! its name back behind the decoder.

use rmcp::{
    model::{
        ClientRequest, CustomNotification, CustomRequest, CustomResult, ErrorCode, ErrorData,
        GetExtensions, JsonRpcNotification, JsonRpcRequest, PingRequest, RequestId,
        ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
    },
    transport::common::http_header::JSON_MIME_TYPE,
};
use serde_json::{Map, Value};
use toolgate_mcp::ErrorObject;

/// Marks a result that travels through rmcp's own decoder, inside an object that fits none of its
/// types.
const ENVELOPE: &str = "io.toolgate/raw";
/// Marks the method of what a server says of its own accord.
const INITIATIVE: &str = "io.toolgate/raw:";
/// Marks an error that is about an answer and not from the server.
const UNREADABLE: &str = "io.toolgate/unreadable";

/// A notification as it was sent, among the extensions of what rmcp made of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notified {
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// What of a message is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// Everything.
    All,
    /// What a server says of its own accord; rmcp needs the result in its own types.
    Initiatives,
}

/// Whether rmcp needs the answer to this request in its own types.
pub(crate) fn needs_types(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::SubscriptionsListenRequest(_)
    )
}

/// Reads a message. Results are kept raw unless `typed` says that rmcp needs this one.
pub(crate) fn decode(
    mut message: Value,
    typed: impl FnOnce(&RequestId) -> bool,
) -> Option<ServerJsonRpcMessage> {
    if let Some(fields) = message.as_object_mut()
        && !fields.contains_key("method")
        && let Some(id) = request_id(fields)
    {
        if let Some(result) = fields.get_mut("result") {
            if !typed(&id) {
                return Some(response(result.take(), id));
            }
            keep_capabilities(result);
        }
        if let Some(error) = fields.get("error") {
            return Some(ServerJsonRpcMessage::error(read_error(error), Some(id)));
        }
        // Log lines have ids too; only what calls itself a message is one.
        if fields.contains_key("jsonrpc") && !fields.contains_key("result") {
            return Some(unreadable("it has neither a result nor an error", Some(id)));
        }
    }
    if let Some(fields) = message.as_object_mut() {
        seal_initiative(fields);
    }
    serde_json::from_value(message).ok()
}

/// Stands for an answer that came but cannot be used, so that the call that waits for it ends.
pub(crate) fn unreadable(why: &str, id: Option<RequestId>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(rmcp_error(unreadable_error(why)), id)
}

/// The error of such an answer.
pub(crate) fn unreadable_error(why: &str) -> ErrorObject {
    let mark = Value::Object(Map::from_iter([(UNREADABLE.to_owned(), Value::Bool(true))]));
    ErrorObject::internal_error(why, Some(mark))
}

/// Whether an error is one of ours about an answer ([`unreadable`]).
pub(crate) fn is_unreadable(error: &ErrorObject) -> bool {
    error.data.as_ref().is_some_and(|data| data.get(UNREADABLE).is_some())
}

/// Whether two ids name the same request. Some servers send the number back as a string.
pub(crate) fn same_id(sent: &RequestId, received: &RequestId) -> bool {
    sent == received || number(received).is_some_and(|number| *sent == RequestId::Number(number))
}

/// The number that a string stands for.
pub(crate) fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::String(text) => text.parse().ok(),
        RequestId::Number(_) => None,
    }
}

/// Puts a raw result into the message that rmcp passes on untouched.
pub(crate) fn response(result: Value, id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id)
}

/// Wraps a message, as text, so that rmcp's decoder leaves it alone. What is no message stays as
/// it is.
pub(crate) fn seal(text: String, what: Seal) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(&text) else { return text };
    if !seal_initiative(&mut fields) {
        let Some(result) = fields.get_mut("result") else { return text };
        match what {
            Seal::Initiatives if !keep_capabilities(result) => return text,
            Seal::Initiatives => {}
            Seal::All => {
                let inner = result.take();
                *result = Value::Object(Map::from_iter([(ENVELOPE.to_owned(), inner)]));
            }
        }
    }
    Value::Object(fields).to_string()
}

/// [`seal`] for a message that is decoded already.
pub(crate) fn sealed(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(response) => {
            let inner = result(response.result);
            let envelope = Map::from_iter([(ENVELOPE.to_owned(), inner)]);
            self::response(Value::Object(envelope), response.id)
        }
        other => other,
    }
}

/// Undoes [`seal`]. Results are looked at where `sealed` says that they are in an envelope.
pub(crate) fn open(message: ServerJsonRpcMessage, sealed: bool) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(mut response) if sealed => {
            if let ServerResult::CustomResult(CustomResult(Value::Object(fields))) =
                &mut response.result
                && fields.len() == 1
                && let Some(inner) = fields.remove(ENVELOPE)
            {
                response.result = ServerResult::CustomResult(CustomResult(inner));
            }
            ServerJsonRpcMessage::Response(response)
        }
        ServerJsonRpcMessage::Request(JsonRpcRequest { jsonrpc, id, request }) => {
            let request = open_request(request);
            ServerJsonRpcMessage::Request(JsonRpcRequest { jsonrpc, id, request })
        }
        ServerJsonRpcMessage::Notification(JsonRpcNotification { jsonrpc, notification }) => {
            let notification = open_notification(notification);
            ServerJsonRpcMessage::Notification(JsonRpcNotification { jsonrpc, notification })
        }
        other => other,
    }
}

/// Undoes [`seal`] for a message that rmcp has not decoded.
pub(crate) fn open_text(text: &str) -> Option<Value> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    let fields = message.as_object_mut()?;
    let mut part = "result";
    if let Some(Value::String(method)) = fields.get_mut("method") {
        *method = method.strip_prefix(INITIATIVE)?.to_owned();
        part = "params";
    }
    if let Some(content) = fields.get_mut(part) {
        *content = content.as_object_mut()?.remove(ENVELOPE)?;
    }
    Some(message)
}

/// What a server declared, as it was sent: taken from where [`decode`] and [`seal`] put it.
pub(crate) fn capabilities(mut typed: Value) -> Map<String, Value> {
    let kept = typed.get_mut("experimental").and_then(|parts| parts.get_mut(ENVELOPE));
    match kept.map(Value::take).unwrap_or(typed) {
        Value::Object(capabilities) => capabilities,
        _ => Map::new(),
    }
}

/// The raw result of a response.
pub(crate) fn result(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(CustomResult(value)) => value,
        // Only what rmcp made itself gets here, and that is written as it would be sent.
        typed => serde_json::to_value(typed).unwrap_or(Value::Null),
    }
}

/// Whether a content type is JSON.
pub(crate) fn is_json(content_type: &str) -> bool {
    content_type.to_ascii_lowercase().starts_with(JSON_MIME_TYPE)
}

/// Puts a copy of what a server declares where rmcp's types keep what they do not know. Says whether
/// there was anything.
fn keep_capabilities(result: &mut Value) -> bool {
    let Some(Value::Object(capabilities)) = result.get_mut("capabilities") else { return false };
    let sent = Value::Object(capabilities.clone());
    let parts = capabilities.entry("experimental").or_insert_with(|| Value::Object(Map::new()));
    let Some(parts) = parts.as_object_mut() else { return false };
    parts.insert(ENVELOPE.to_owned(), sent);
    true
}

/// Hides a question or a notification from rmcp's types. Says whether it is one.
fn seal_initiative(fields: &mut Map<String, Value>) -> bool {
    let Some(Value::String(method)) = fields.get_mut("method") else { return false };
    method.insert_str(0, INITIATIVE);
    if let Some(params) = fields.get_mut("params") {
        let inner = params.take();
        *params = Value::Object(Map::from_iter([(ENVELOPE.to_owned(), inner)]));
    }
    true
}

/// Takes the parameters out of the envelope again.
fn open_params(params: Option<Value>) -> Option<Value> {
    match params {
        Some(Value::Object(mut fields)) => fields.remove(ENVELOPE),
        _ => None,
    }
}

fn open_request(request: ServerRequest) -> ServerRequest {
    match request {
        ServerRequest::CustomRequest(CustomRequest { method, params, extensions }) => {
            let Some(method) = method.strip_prefix(INITIATIVE) else {
                return CustomRequest { method, params, extensions }.into();
            };
            if method == "ping" {
                // The one that rmcp answers by itself, during the handshake.
                return PingRequest { method: rmcp::model::PingRequestMethod, extensions }.into();
            }
            let (method, params) = (method.to_owned(), open_params(params));
            CustomRequest { method, params, extensions }.into()
        }
        other => other,
    }
}

/// rmcp needs notifications in its own types, for subscriptions and cancellations.
fn open_notification(notification: ServerNotification) -> ServerNotification {
    match notification {
        ServerNotification::CustomNotification(mut custom) => {
            let Some(method) = custom.method.strip_prefix(INITIATIVE) else {
                return custom.into();
            };
            let (method, params) = (method.to_owned(), open_params(custom.params.take()));
            let mut sent = Map::from_iter([("method".to_owned(), method.clone().into())]);
            sent.extend(params.clone().map(|params| ("params".to_owned(), params)));
            let mut opened = serde_json::from_value(Value::Object(sent)).unwrap_or_else(|_| {
                let custom = CustomNotification::new(method.clone(), params.clone());
                ServerNotification::CustomNotification(custom)
            });
            opened.extensions_mut().insert(Notified { method, params });
            opened
        }
        other => other,
    }
}

fn request_id(fields: &Map<String, Value>) -> Option<RequestId> {
    serde_json::from_value(fields.get("id")?.clone()).ok()
}

/// Servers get errors wrong too. Whatever they meant, the call that waits for it must end.
pub(crate) fn read_error(error: &Value) -> ErrorData {
    rmcp_error(ErrorObject::from_any(error))
}

pub(crate) fn rmcp_error(error: ErrorObject) -> ErrorData {
    let code = i32::try_from(error.code).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, error.message, error.data)
}

pub(crate) fn error_object(error: ErrorData) -> ErrorObject {
    ErrorObject::new(error.code.0.into(), error.message, error.data)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(message: Value) -> Value {
        match decode(message, |_| false) {
            Some(ServerJsonRpcMessage::Response(response)) => result(response.result),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_arrives_as_it_was_sent() {
        let sent = json!({
            "tools": [{"name": "a", "inputSchema": {}, "execution": {"x": 1}}, "junk"],
            "content": [{"type": "hologram", "volume": 3.0}], "isError": "maybe",
        });
        assert_eq!(raw(json!({"jsonrpc": "2.0", "id": 3, "result": sent.clone()})), sent);
        assert_eq!(raw(json!({"jsonrpc": "2.0", "id": "3", "result": null})), Value::Null);
    }

    #[test]
    fn sealing_survives_rmcps_decoder() {
        for sent in [
            json!({"content": [{"type": "text", "text": "x", "extra": 1}], "resultType": "complete"}),
            json!({}),
            json!(null),
            json!({"io.toolgate/raw": {"io.toolgate/raw": 1}}),
            json!({"tools": [], "nextCursor": "n"}),
        ] {
            let text = json!({"jsonrpc": "2.0", "id": 1, "result": sent.clone()}).to_string();
            let through: ServerJsonRpcMessage =
                serde_json::from_str(&seal(text, Seal::All)).unwrap();
            let ServerJsonRpcMessage::Response(opened) = open(through, true) else { panic!() };
            assert_eq!(result(opened.result), sent);
        }
        let typed = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(seal(typed.to_owned(), Seal::Initiatives), typed);
        assert_eq!(seal("not json".to_owned(), Seal::All), "not json");
    }

    #[test]
    fn questions_and_notifications_arrive_as_they_were_sent() {
        for params in [
            Some(json!({"message": "?", "_meta": {"x": 1}, "requestedSchema": {"odd": [1.5]}})),
            Some(json!({"_meta": "no object"})),
            Some(json!({"io.toolgate/raw": 1})),
            None,
        ] {
            let mut sent = json!({"jsonrpc": "2.0", "method": "elicitation/create"});
            if let Some(params) = &params {
                sent["params"] = params.clone();
            }
            let mut question = sent.clone();
            question["id"] = json!("q");
            let sealed = seal(question.to_string(), Seal::Initiatives);
            for message in [decode(question, |_| false), serde_json::from_str(&sealed).ok()] {
                let Some(ServerJsonRpcMessage::Request(request)) =
                    message.map(|message| open(message, true))
                else {
                    panic!()
                };
                let ServerRequest::CustomRequest(custom) = request.request else { panic!() };
                assert_eq!(
                    (custom.method.as_str(), &custom.params),
                    ("elicitation/create", &params)
                );
            }
            for method in ["notifications/message", "notifications/odd"] {
                sent["method"] = json!(method);
                let Some(ServerJsonRpcMessage::Notification(told)) =
                    decode(sent.clone(), |_| false).map(|message| open(message, false))
                else {
                    panic!()
                };
                let told = told.notification.extensions().get::<Notified>().cloned();
                let params = params.clone();
                assert_eq!(told, Some(Notified { method: method.to_owned(), params }));
            }
        }
    }

    #[test]
    fn rmcp_gets_what_it_has_to_understand_in_its_types() {
        let open = |message| open(decode(message, |_| false).unwrap(), false);
        let told = open(json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                               "params": {"requestId": 3}}));
        let ServerJsonRpcMessage::Notification(told) = told else { panic!() };
        assert!(matches!(told.notification, ServerNotification::CancelledNotification(_)));
        let asked = open(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
        let ServerJsonRpcMessage::Request(asked) = asked else { panic!() };
        assert!(matches!(asked.request, ServerRequest::PingRequest(_)));
    }

    #[test]
    fn what_a_server_declares_survives_rmcps_types() {
        for declared in [
            json!({"tools": {"odd": 1}, "tasks": {"list": {}}, "experimental": {"x": {"y": 1}}}),
            json!({}),
        ] {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": declared,
                                "serverInfo": {"name": "s", "version": "1"}});
            let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
            let sealed = seal(message.to_string(), Seal::Initiatives);
            for message in [decode(message, |_| true), serde_json::from_str(&sealed).ok()] {
                let Some(ServerJsonRpcMessage::Response(response)) = message else { panic!() };
                let ServerResult::InitializeResult(greeting) = response.result else { panic!() };
                let typed = serde_json::to_value(&greeting.capabilities).unwrap();
                assert_eq!(Value::Object(capabilities(typed)), declared);
            }
        }
        assert_eq!(capabilities(json!({"tools": {}})), *json!({"tools": {}}).as_object().unwrap());
    }

    #[test]
    fn a_malformed_error_still_ends_the_call() {
        let message = decode(json!({"id": 1, "error": "boom"}), |_| false);
        let Some(ServerJsonRpcMessage::Error(error)) = message else { panic!("{message:?}") };
        assert_eq!(error.error.message, "\"boom\"");
        let message = decode(json!({"id": 1, "error": {"code": "E1", "message": "no"}}), |_| false);
        let Some(ServerJsonRpcMessage::Error(error)) = message else { panic!("{message:?}") };
        assert_eq!(error.error.message, "no");
    }

    #[test]
    fn a_hollow_answer_ends_the_call_too() {
        let message = decode(json!({"jsonrpc": "2.0", "id": 1}), |_| false);
        let Some(ServerJsonRpcMessage::Error(error)) = message else { panic!("{message:?}") };
        assert!(is_unreadable(&error_object(error.error.clone())));
    }

    #[test]
    fn what_is_no_message_is_none() {
        assert!(decode(json!({"hello": 1}), |_| false).is_none());
        assert!(decode(json!({"level": 30, "id": 1, "msg": "x"}), |_| false).is_none());
        assert!(decode(json!("text"), |_| false).is_none());
    }
}
