//! Messages with results as they were sent.
//!
//! rmcp decodes a result by trying its types in turn, and what it takes for a `CallToolResult` or
//! a tool list loses every field that the type does not have. Here the results of all requests but
//! the few that rmcp itself has to understand are put into its catch-all, untouched.

use rmcp::{
    model::{
        ClientRequest, CustomResult, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::common::http_header::JSON_MIME_TYPE,
};
use serde_json::{Map, Value};

/// Marks a result that travels through rmcp's own decoder, inside an object that fits none of its
/// types.
const ENVELOPE: &str = "io.toolgate/raw";
/// Marks an error that is about an answer and not from the server.
const UNREADABLE: &str = "io.toolgate/unreadable";

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
        if fields.contains_key("result") && !typed(&id) {
            let result = fields.remove("result").unwrap_or_default();
            return Some(response(result, id));
        }
        if let Some(error) = fields.get("error") {
            return Some(ServerJsonRpcMessage::error(read_error(error), Some(id)));
        }
        // Log lines have ids too; only what calls itself a message is one.
        if fields.contains_key("jsonrpc") && !fields.contains_key("result") {
            return Some(unreadable("it has neither a result nor an error", Some(id)));
        }
    }
    serde_json::from_value(message).ok()
}

/// Stands for an answer that came but cannot be used, so that the call that waits for it ends.
pub(crate) fn unreadable(why: &str, id: Option<RequestId>) -> ServerJsonRpcMessage {
    let mark = Value::Object(Map::from_iter([(UNREADABLE.to_owned(), Value::Bool(true))]));
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), Some(mark));
    ServerJsonRpcMessage::error(error, id)
}

/// Whether an error is one of ours about an answer ([`unreadable`]).
pub(crate) fn is_unreadable(error: &ErrorData) -> bool {
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

/// Wraps the result of a response, as text, so that rmcp's decoder leaves it alone. What is no
/// response with a result stays as it is.
pub(crate) fn seal(text: String) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(&text) else { return text };
    if fields.contains_key("method") {
        return text;
    }
    let Some(result) = fields.get_mut("result") else { return text };
    let inner = result.take();
    *result = Value::Object(Map::from_iter([(ENVELOPE.to_owned(), inner)]));
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

/// Undoes [`seal`].
pub(crate) fn open(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(mut sealed) => {
            if let ServerResult::CustomResult(CustomResult(Value::Object(fields))) =
                &mut sealed.result
                && fields.len() == 1
                && let Some(inner) = fields.remove(ENVELOPE)
            {
                sealed.result = ServerResult::CustomResult(CustomResult(inner));
            }
            ServerJsonRpcMessage::Response(sealed)
        }
        other => other,
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

fn request_id(fields: &Map<String, Value>) -> Option<RequestId> {
    serde_json::from_value(fields.get("id")?.clone()).ok()
}

/// Servers get errors wrong too. Whatever they meant, the call that waits for it must end.
fn read_error(error: &Value) -> ErrorData {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| {
        let message = error
            .get("message")
            .and_then(Value::as_str)
            .map_or_else(|| error.to_string(), str::to_owned);
        let message: String = message.chars().take(2000).collect();
        ErrorData::new(ErrorCode::INTERNAL_ERROR, message, None)
    })
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
            let through: ServerJsonRpcMessage = serde_json::from_str(&seal(text)).unwrap();
            let ServerJsonRpcMessage::Response(opened) = open(through) else { panic!() };
            assert_eq!(result(opened.result), sent);
        }
        let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        assert_eq!(seal(note.to_owned()), note);
        assert_eq!(seal("not json".to_owned()), "not json");
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
        assert!(is_unreadable(&error.error));
    }

    #[test]
    fn what_is_no_message_is_none() {
        assert!(decode(json!({"hello": 1}), |_| false).is_none());
        assert!(decode(json!({"level": 30, "id": 1, "msg": "x"}), |_| false).is_none());
        assert!(decode(json!("text"), |_| false).is_none());
    }
}
