//! The reply to a request, and its JSON-RPC form.

use serde_json::{Value, json};

/// The JSON-RPC error codes that fixtures send.
pub(crate) mod code {
    /// The text was no JSON.
    pub(crate) const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a valid request, or came at the wrong time.
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    /// No such tool, or a missing `_meta` key.
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    /// A required session is missing.
    pub(crate) const SESSION_PROBLEM: i64 = -32000;
    /// A session that the server does not know.
    pub(crate) const SESSION_UNKNOWN: i64 = -32001;
    /// HTTP headers that do not match the body.
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    /// A protocol revision that the server does not speak.
    pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    /// A `result`.
    Result(Value),
    /// An `error`.
    Error { code: i64, message: String, data: Option<Value> },
    /// No answer: the request was cancelled, or the process is on its way out.
    Nothing,
}

impl Reply {
    /// An error without data.
    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into(), data: None }
    }

    /// A `tools/call` result of one text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Result(json!({ "content": [{ "type": "text", "text": text.into() }] }))
    }

    /// A `tools/call` result of one value: as text and as structured content.
    pub(crate) fn structured(value: &Value) -> Self {
        Self::Result(json!({
            "content": [{ "type": "text", "text": value.to_string() }],
            "structuredContent": value,
        }))
    }

    /// A `tools/call` result that says that the tool failed.
    pub(crate) fn failure(text: impl Into<String>) -> Self {
        Self::Result(json!({
            "content": [{ "type": "text", "text": text.into() }],
            "isError": true,
        }))
    }

    /// The message that carries this reply, if there is one.
    pub(crate) fn into_message(self, id: &Value) -> Option<Value> {
        match self {
            Self::Result(result) => Some(json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Self::Error { code, message, data } => {
                let mut error = json!({ "code": code, "message": message });
                if let Some(data) = data {
                    error["data"] = data;
                }
                Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
            Self::Nothing => None,
        }
    }
}
