//! The error of a JSON-RPC response.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::codes;

/// The `error` of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct ErrorObject {
    /// One of [`codes`], or a code of the server's own.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// An error with any code.
    pub fn new(code: i64, message: impl Into<String>, data: Option<Value>) -> Self {
        Self { code, message: message.into(), data }
    }

    /// An error with [`codes::PARSE_ERROR`].
    pub fn parse_error(message: impl Into<String>, data: Option<Value>) -> Self {
        Self::new(codes::PARSE_ERROR, message, data)
    }

    /// An error with [`codes::INVALID_REQUEST`].
    pub fn invalid_request(message: impl Into<String>, data: Option<Value>) -> Self {
        Self::new(codes::INVALID_REQUEST, message, data)
    }

    /// An error with [`codes::INVALID_PARAMS`].
    pub fn invalid_params(message: impl Into<String>, data: Option<Value>) -> Self {
        Self::new(codes::INVALID_PARAMS, message, data)
    }

    /// An error with [`codes::INTERNAL_ERROR`].
    pub fn internal_error(message: impl Into<String>, data: Option<Value>) -> Self {
        Self::new(codes::INTERNAL_ERROR, message, data)
    }

    /// The error for an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(codes::METHOD_NOT_FOUND, format!("there is no method `{method}`"), None)
    }

    /// Reads an `error` of any shape, because the request that waits for it must end.
    pub fn from_any(error: &Value) -> Self {
        serde_json::from_value(error.clone()).unwrap_or_else(|_| {
            let message = error.get("message").and_then(Value::as_str);
            let message = message.map_or_else(|| error.to_string(), str::to_owned);
            Self::internal_error(message.chars().take(2000).collect::<String>(), None)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_error_can_be_read() {
        let error = ErrorObject::from_any(&json!({ "code": -5, "message": "no", "data": [1] }));
        assert_eq!(error, ErrorObject::new(-5, "no", Some(json!([1]))));
        assert_eq!(ErrorObject::from_any(&json!("boom")).message, "\"boom\"");
        let odd = ErrorObject::from_any(&json!({ "code": "x", "message": "odd" }));
        assert_eq!(odd, ErrorObject::internal_error("odd", None));
        assert_eq!(serde_json::to_value(odd).unwrap(), json!({ "code": -32603, "message": "odd" }));
    }
}
