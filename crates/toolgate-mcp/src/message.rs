//! JSON-RPC messages. Nothing that was sent is dropped.

use serde_json::{Value, json};

use crate::{ErrorObject, JsonObject};

/// The most messages of a batch.
const MAX_BATCH: usize = 64;
const MAX_METHOD_BYTES: usize = 256;
/// Ids are kept while their requests run, so that their size is bounded.
const MAX_ID_BYTES: usize = 256;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonRpcMessage {
    /// A message that requires a response.
    Request(JsonRpcRequest),
    /// A message without a response.
    Notification(JsonRpcNotification),
    /// The response to a request.
    Response(JsonRpcResponse),
}

/// A message that requires a response.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcRequest {
    /// The id as it was sent: a string or a number.
    pub id: Value,
    /// The method, with at most 256 bytes.
    pub method: String,
    /// The parameters as they were sent: an object.
    pub params: Option<Value>,
}

/// A message without a response.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcNotification {
    /// The method, with at most 256 bytes.
    pub method: String,
    /// The parameters as they were sent: an object.
    pub params: Option<Value>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRpcResponse {
    /// The id of the request; `null` where the other end could not read it.
    pub id: Value,
    /// The `result` or the `error`.
    pub outcome: Result<Value, ErrorObject>,
}

/// What one body or line holds: one message, or a batch (2025-03-26 allowed those).
#[derive(Debug, Clone, PartialEq)]
pub enum JsonRpcInput {
    /// One message.
    One(JsonRpcMessage),
    /// The messages of a batch, each read on its own.
    Batch(Vec<Result<JsonRpcMessage, Box<MalformedMessage>>>),
}

/// Why JSON is no message: the error to send, and the id if there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedMessage {
    /// The id, where it could be read.
    pub id: Option<Value>,
    /// The error to send.
    pub error: ErrorObject,
}

impl JsonRpcInput {
    /// Reads bytes strictly: refuses everything that violates JSON-RPC or MCP. The caller bounds
    /// the number of bytes; the parser bounds the depth.
    pub fn read(bytes: &[u8]) -> Result<Self, Box<MalformedMessage>> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            // The parser's message has a position and no content.
            let message = format!("this is not JSON ({error}); send one JSON-RPC message");
            Box::new(MalformedMessage { id: None, error: ErrorObject::parse_error(message, None) })
        })?;
        let Value::Array(entries) = value else {
            return JsonRpcMessage::from_value(value).map(Self::One);
        };
        if entries.is_empty() || entries.len() > MAX_BATCH {
            return Err(invalid(None, format!("a batch has 1 to {MAX_BATCH} messages")));
        }
        Ok(Self::Batch(entries.into_iter().map(JsonRpcMessage::from_value).collect()))
    }
}

impl JsonRpcMessage {
    fn from_value(value: Value) -> Result<Self, Box<MalformedMessage>> {
        let Value::Object(mut fields) = value else {
            return Err(invalid(None, "a message is an object"));
        };
        let id = match fields.remove("id") {
            None => None,
            Some(id @ (Value::Number(_) | Value::String(_))) => Some(id),
            // An error about a message that the other side could not read.
            Some(Value::Null) if fields.contains_key("error") => Some(Value::Null),
            Some(_) => return Err(invalid(None, "an id is a string or a number")),
        };
        if id.as_ref().and_then(Value::as_str).is_some_and(|id| id.len() > MAX_ID_BYTES) {
            return Err(invalid(None, format!("an id has at most {MAX_ID_BYTES} bytes")));
        }
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "`jsonrpc` has to be \"2.0\""));
        }
        match fields.remove("method") {
            Some(Value::String(method)) if method.len() <= MAX_METHOD_BYTES => {
                let params = fields.remove("params");
                if params.as_ref().is_some_and(|params| !params.is_object()) {
                    return Err(invalid(id, "`params` is an object"));
                }
                Ok(match id {
                    Some(id) => Self::Request(JsonRpcRequest { id, method, params }),
                    None => Self::Notification(JsonRpcNotification { method, params }),
                })
            }
            Some(_) => Err(invalid(id, "`method` is a short string")),
            None => Self::response(id, fields),
        }
    }

    fn response(id: Option<Value>, mut fields: JsonObject) -> Result<Self, Box<MalformedMessage>> {
        let Some(id) = id else {
            return Err(invalid(None, "a message has a `method` or an `id`"));
        };
        let outcome = match (fields.remove("result"), fields.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(serde_json::from_value(error)
                .map_err(|_| invalid(None, "`error` has a `code` and a `message`"))?),
            _ => return Err(invalid(Some(id), "a response has either `result` or `error`")),
        };
        Ok(Self::Response(JsonRpcResponse { id, outcome }))
    }
}

impl JsonRpcRequest {
    /// The parameters, where there are any.
    pub fn fields(&self) -> Option<&JsonObject> {
        self.params.as_ref().and_then(Value::as_object)
    }
}

/// The JSON of a request.
pub fn request_message(id: Value, method: &str, params: Option<Value>) -> Value {
    let mut message = notification_fields(method, params);
    message.insert("id".to_owned(), id);
    Value::Object(message)
}

/// The JSON of a notification.
pub fn notification_message(method: &str, params: Option<Value>) -> Value {
    Value::Object(notification_fields(method, params))
}

/// The JSON of a response.
pub fn response_message(id: &Value, outcome: Result<Value, ErrorObject>) -> Value {
    let mut message = JsonObject::with_capacity(3);
    message.insert("jsonrpc".to_owned(), "2.0".into());
    message.insert("id".to_owned(), id.clone());
    match outcome {
        Ok(result) => message.insert("result".to_owned(), result),
        Err(error) => message.insert("error".to_owned(), json!(error)),
    };
    Value::Object(message)
}

/// The macro `json!` would copy the parameters.
fn notification_fields(method: &str, params: Option<Value>) -> JsonObject {
    let mut message = JsonObject::with_capacity(4);
    message.insert("jsonrpc".to_owned(), "2.0".into());
    message.insert("method".to_owned(), method.into());
    message.extend(params.map(|params| ("params".to_owned(), params)));
    message
}

/// A value as JSON text, which is the same as that of `to_string` and costs half.
pub fn json_text(value: &Value) -> String {
    // Writing to memory cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// A message as a line of a pipe.
pub fn json_line(message: &Value) -> Vec<u8> {
    // Most messages are shorter, so that it does not grow.
    let mut line = Vec::with_capacity(512);
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut line, message);
    line.push(b'\n');
    line
}

/// The length of a value as JSON text, in bytes.
pub fn json_size(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn invalid(id: Option<Value>, message: impl Into<String>) -> Box<MalformedMessage> {
    let message = format!("this is not a JSON-RPC message: {}", message.into());
    Box::new(MalformedMessage { id, error: ErrorObject::invalid_request(message, None) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that are nearly messages.
    fn nearly() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("{"),
            Just("}"),
            Just("["),
            Just("]"),
            Just(","),
            Just(":"),
            Just("null"),
            Just("1"),
            Just("-1e9"),
            Just("\"jsonrpc\":\"2.0\""),
            Just("\"id\""),
            Just("\"method\""),
            Just("\"params\""),
            Just("\"result\""),
            Just("\"error\""),
            Just("\"\\ud800\""),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = JsonRpcInput::read(&bytes);
        }

        #[test]
        fn malformed_messages_are_read_or_refused(text in nearly()) {
            let _ = JsonRpcInput::read(text.as_bytes());
        }
    }

    #[test]
    fn parameters_are_kept_as_they_were_sent() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1,"a":1.50,"c":{"z":[]}}}"#;
        let Ok(JsonRpcInput::One(JsonRpcMessage::Request(request))) =
            JsonRpcInput::read(text.as_bytes())
        else {
            panic!("it is a request");
        };
        assert_eq!(request.params.unwrap().to_string(), r#"{"b":1,"a":1.5,"c":{"z":[]}}"#);
    }
}
