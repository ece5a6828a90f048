//! JSON-RPC messages, as they are sent. Nothing is dropped that we do not know.

use serde_json::{Map, Value, json};
use toolgate_mcp::{ErrorObject, codes};

/// How many messages a batch may hold.
const BATCH: usize = 64;
/// Longer names of methods are nobody's.
const METHOD_BYTES: usize = 256;
/// Longer ids are an attack on our tables.
const ID_BYTES: usize = 256;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// Something that wants an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// As it was sent: a string or a number.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// Something that wants none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// The answer to a request of ours.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) id: Value,
    pub(crate) outcome: Result<Value, ErrorObject>,
}

/// What came at once: one message, or the batch that 2025-03-26 allowed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    One(Message),
    Batch(Vec<Result<Message, Box<Unreadable>>>),
}

/// Why bytes are no message: the error to answer with, and the id to answer to where there is one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unreadable {
    pub(crate) id: Option<Value>,
    pub(crate) error: ErrorObject,
}

impl Incoming {
    /// Reads bytes whose number is bounded; the depth of what they hold is bounded by the parser.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Box<Unreadable>> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            // The parser's message has a position and no content.
            let message = format!("this is no JSON ({error}); send one JSON-RPC message");
            Box::new(Unreadable { id: None, error: ErrorObject::parse_error(message, None) })
        })?;
        let Value::Array(entries) = value else {
            return Message::from_value(value).map(Self::One);
        };
        if entries.is_empty() || entries.len() > BATCH {
            return Err(invalid(None, format!("a batch has 1 to {BATCH} messages")));
        }
        Ok(Self::Batch(entries.into_iter().map(Message::from_value).collect()))
    }
}

impl Message {
    fn from_value(value: Value) -> Result<Self, Box<Unreadable>> {
        let Value::Object(mut fields) = value else {
            return Err(invalid(None, "a message is an object"));
        };
        let id = match fields.remove("id") {
            None => None,
            Some(id @ (Value::Number(_) | Value::String(_))) => Some(id),
            // An error about a message of ours that could not be read.
            Some(Value::Null) if fields.contains_key("error") => Some(Value::Null),
            Some(_) => return Err(invalid(None, "an id is a string or a number")),
        };
        if id.as_ref().and_then(Value::as_str).is_some_and(|id| id.len() > ID_BYTES) {
            return Err(invalid(None, format!("an id has at most {ID_BYTES} bytes")));
        }
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(invalid(id, "`jsonrpc` has to be \"2.0\""));
        }
        match fields.remove("method") {
            Some(Value::String(method)) if method.len() <= METHOD_BYTES => {
                let params = fields.remove("params");
                if params.as_ref().is_some_and(|params| !params.is_object()) {
                    return Err(invalid(id, "`params` is an object"));
                }
                Ok(match id {
                    Some(id) => Self::Request(Request { id, method, params }),
                    None => Self::Notification(Notification { method, params }),
                })
            }
            Some(_) => Err(invalid(id, "`method` is a short string")),
            None => Self::response(id, fields),
        }
    }

    fn response(
        id: Option<Value>,
        mut fields: Map<String, Value>,
    ) -> Result<Self, Box<Unreadable>> {
        let Some(id) = id else {
            return Err(invalid(None, "a message has a `method` or an `id`"));
        };
        let outcome = match (fields.remove("result"), fields.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(serde_json::from_value(error)
                .map_err(|_| invalid(None, "`error` has a `code` and a `message`"))?),
            _ => return Err(invalid(Some(id), "a response has either `result` or `error`")),
        };
        Ok(Self::Response(Response { id, outcome }))
    }
}

impl Request {
    /// The parameters, where there are any.
    pub(crate) fn fields(&self) -> Option<&Map<String, Value>> {
        self.params.as_ref().and_then(Value::as_object)
    }
}

/// The message that answers a request.
pub(crate) fn answer(id: &Value, outcome: Result<Value, ErrorObject>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

/// The message that wants no answer.
pub(crate) fn notification(method: &str, params: Option<Value>) -> Value {
    match params {
        Some(params) => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
        None => json!({ "jsonrpc": "2.0", "method": method }),
    }
}

/// An error that says that nothing answers to `method`.
pub(crate) fn method_not_found(method: &str) -> ErrorObject {
    ErrorObject::new(codes::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
}

/// An error that says that a request was not brought to its end.
pub(crate) fn stopping() -> ErrorObject {
    let message = "the gateway is stopping: the request was cancelled, and whether it had an effect \
                   is not known";
    ErrorObject::internal_error(message, None)
}

fn invalid(id: Option<Value>, message: impl Into<String>) -> Box<Unreadable> {
    let message = format!("this is no JSON-RPC message: {}", message.into());
    Box::new(Unreadable { id, error: ErrorObject::invalid_request(message, None) })
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
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Incoming::read(&bytes);
        }

        #[test]
        fn what_is_nearly_a_message_is_read_or_refused(text in nearly()) {
            let _ = Incoming::read(text.as_bytes());
        }
    }

    #[test]
    fn parameters_are_kept_as_they_were_sent() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1,"a":1.50,"c":{"z":[]}}}"#;
        let Ok(Incoming::One(Message::Request(request))) = Incoming::read(text.as_bytes()) else {
            panic!("it is a request");
        };
        assert_eq!(request.params.unwrap().to_string(), r#"{"b":1,"a":1.5,"c":{"z":[]}}"#);
    }
}
