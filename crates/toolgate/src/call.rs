//! The result of a call, and why there is none.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use thiserror::Error;
use toolgate_broker::BrokerError;
use toolgate_upstream::CallError;

/// The result of a tool, as the server sent it.
///
/// A tool that failed has a result too: [`is_error`](Self::is_error) tells the two apart, and
/// [`parse`](Self::parse) returns the failure as an error.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    tool: String,
    result: Value,
}

/// Why a call has no result. Unless the variant says something else, nothing was sent to the server.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ToolCallError {
    /// No tool has this name.
    #[error(transparent)]
    UnknownTool(#[from] UnknownTool),
    /// The arguments do not match the schema of the tool.
    #[error("{message}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What is wrong where, at most five of them: the path of an argument and what was expected.
        violations: Vec<(String, String)>,
        /// The same for people and models, with the signature of the tool.
        message: String,
    },
    /// The schema of the tool is broken, so that arguments cannot be checked.
    #[error("{message}")]
    BrokenSchema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        message: String,
    },
    /// The policy denies the call, or somebody denied it.
    #[error("{message}")]
    Denied {
        /// The tool.
        tool: String,
        /// Who denied it, and why.
        message: String,
    },
    /// Somebody has to allow the call, and nobody was there to ask. The question waits in the state
    /// folder; `toolgate approve` answers it. After that the same call goes through.
    #[error("{message}")]
    WaitsForApproval {
        /// The tool.
        tool: String,
        /// Names the question. It does not answer it.
        question: String,
        /// What to do, for people.
        message: String,
    },
    /// A limit of calls does not allow the call now.
    #[error("{message}")]
    LimitReached {
        /// The tool.
        tool: String,
        /// Which limit, and until when.
        message: String,
    },
    /// The call cannot be recorded, and must be.
    #[error("{message}")]
    NotRecorded {
        /// The tool.
        tool: String,
        /// What cannot be written.
        message: String,
    },
    /// The server is not connected, or wants a login.
    #[error("{message}")]
    NotConnected {
        /// The server.
        server: String,
        /// Why, and what to do.
        message: String,
    },
    /// The call was sent and did not end. **It may have had an effect.** toolgate never repeats such a
    /// call.
    #[error("{message}")]
    UnknownOutcome {
        /// The server.
        server: String,
        /// The limit, if the call took too long.
        limit: Option<Duration>,
        /// What happened.
        message: String,
    },
    /// The server answered with an error of the protocol.
    #[error("{message}")]
    Refused {
        /// The server.
        server: String,
        /// Its code.
        code: i64,
        /// What it said.
        message: String,
        /// What it said to programs.
        data: Option<Box<Value>>,
    },
    /// Anything else. The text says what is known of the effect.
    #[error("{0}")]
    Other(String),
}

/// No tool has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no tool `{name}`{}", suggestion(nearest))]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// Similar names, best first.
    pub nearest: Vec<String>,
}

/// Why a result is not a value of a type.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ParseResultError {
    /// The tool failed.
    #[error("`{tool}` failed: {message}")]
    ToolFailed {
        /// The tool.
        tool: String,
        /// What it said.
        message: String,
    },
    /// The result is something else.
    #[error("the result of `{tool}` is not a {wanted}: {reason}")]
    OtherType {
        /// The tool.
        tool: String,
        /// The name of the type.
        wanted: &'static str,
        /// What does not fit.
        reason: String,
        /// The result.
        value: Arc<Value>,
    },
}

impl ToolResult {
    pub(crate) fn new(tool: &str, result: Value) -> Self {
        Self { tool: tool.to_owned(), result }
    }

    /// A problem that a model can read.
    pub(crate) fn error(tool: &str, message: &str) -> Self {
        let content = json!([{ "type": "text", "text": message }]);
        Self::new(tool, json!({ "content": content, "isError": true }))
    }

    /// Whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.result.get("isError").and_then(Value::as_bool).unwrap_or_default()
    }

    /// All text of the result.
    pub fn text(&self) -> String {
        let texts = self.content().iter().filter_map(|block| block.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The content blocks of the result: text, images, links and others.
    pub fn content(&self) -> &[Value] {
        self.result.get("content").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The result as data: its structured content, or else its text if that is JSON, or else its text.
    /// This is the value that a script gets.
    pub fn value(&self) -> Value {
        match self.result.get("structuredContent") {
            Some(Value::Object(fields)) if fields.len() == 1 && fields.contains_key("result") => {
                fields["result"].clone()
            }
            Some(structured) if !structured.is_null() => structured.clone(),
            _ => self.value_of_text(),
        }
    }

    /// The result as a value of your type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ParseResultError> {
        if self.is_error() {
            let (tool, message) = (self.tool.clone(), self.text());
            return Err(ParseResultError::ToolFailed { tool, message });
        }
        let value = self.value();
        let problem = match serde_json::from_value(value.clone()) {
            Ok(parsed) => return Ok(parsed),
            Err(problem) => problem,
        };
        // A type of yours may have a field `result` and no other, and a text may only look like JSON.
        let others = [self.result.get("structuredContent").cloned(), Some(json!(self.text()))];
        for other in others.into_iter().flatten() {
            if let Ok(parsed) = serde_json::from_value(other) {
                return Ok(parsed);
            }
        }
        Err(ParseResultError::OtherType {
            tool: self.tool.clone(),
            wanted: std::any::type_name::<T>(),
            reason: problem.to_string(),
            value: Arc::new(value),
        })
    }

    /// The whole result, as the server sent it.
    pub fn raw(&self) -> &Value {
        &self.result
    }

    /// The whole result, as the server sent it.
    pub fn into_raw(self) -> Value {
        self.result
    }

    fn value_of_text(&self) -> Value {
        match self.content() {
            [] => Value::Null,
            [block] => match block.get("text").and_then(Value::as_str) {
                Some(text) => serde_json::from_str(text.trim()).unwrap_or_else(|_| json!(text)),
                None => json!([block]),
            },
            blocks => json!(blocks),
        }
    }
}

impl ToolCallError {
    /// The error for arguments that are no JSON object.
    pub(crate) fn no_object(tool: &str, why: &str) -> Self {
        Self::InvalidArguments {
            tool: tool.to_owned(),
            violations: vec![(String::new(), "an object".to_owned())],
            message: format!(
                "the arguments of `{tool}` {why}; pass an object, such as `json!({{}})`"
            ),
        }
    }

    pub(crate) fn of(error: BrokerError) -> Self {
        let message = error.to_string();
        match error {
            BrokerError::UnknownTool { name, nearest } => UnknownTool { name, nearest }.into(),
            BrokerError::InvalidArguments(invalid) => {
                let violations = invalid.violations.into_iter();
                let violations = violations.map(|it| (it.path, it.expected)).collect();
                Self::InvalidArguments { tool: invalid.tool, violations, message }
            }
            BrokerError::Uncheckable(broken) => Self::BrokenSchema { tool: broken.tool, message },
            BrokerError::Denied { tool, .. } => Self::Denied { tool, message },
            BrokerError::Waiting { reference, tool } => {
                Self::WaitsForApproval { tool, question: reference.to_string(), message }
            }
            BrokerError::Limited { tool, .. } => Self::LimitReached { tool, message },
            BrokerError::Unrecorded { tool, .. } | BrokerError::Unwritten { tool, .. } => {
                Self::NotRecorded { tool, message }
            }
            BrokerError::Call(error) => Self::of_call(*error, message),
            BrokerError::NoAnswer { .. } | BrokerError::UnknownMethod(_) | BrokerError::Raw(_) => {
                Self::Other(message)
            }
        }
    }

    fn of_call(error: CallError, message: String) -> Self {
        match error {
            CallError::NotConnected { server, .. } | CallError::Unauthorized { server, .. } => {
                Self::NotConnected { server: server.to_string(), message }
            }
            CallError::Stopped { server, .. } => {
                Self::UnknownOutcome { server: server.to_string(), limit: None, message }
            }
            CallError::TimedOut { server, limit, .. } => {
                Self::UnknownOutcome { server: server.to_string(), limit: Some(limit), message }
            }
            CallError::Refused { server, error, .. } => Self::Refused {
                server: server.to_string(),
                code: error.code,
                message,
                data: error.data.map(Box::new),
            },
            _ => Self::Other(message),
        }
    }
}

/// The arguments of a call as an object. Nothing at all is an empty object.
pub(crate) fn arguments(
    tool: &str,
    arguments: impl serde::Serialize,
) -> Result<Map<String, Value>, ToolCallError> {
    match serde_json::to_value(arguments) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(ToolCallError::no_object(tool, "are not an object")),
        Err(error) => {
            Err(ToolCallError::no_object(tool, &format!("cannot be written as JSON ({error})")))
        }
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "; a search finds those there are".to_owned(),
        [only] => format!("; did you mean `{only}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> ToolResult {
        ToolResult::new("t", value)
    }

    fn text(text: &str) -> ToolResult {
        result(json!({ "content": [{ "type": "text", "text": text }] }))
    }

    #[test]
    fn a_value_is_structured_content_or_json_or_text() {
        assert_eq!(result(json!({ "structuredContent": { "n": 1 } })).value(), json!({ "n": 1 }));
        assert_eq!(result(json!({ "structuredContent": { "result": [1] } })).value(), json!([1]));
        assert_eq!(text("{\"n\": 1}").value(), json!({ "n": 1 }));
        assert_eq!(text("n").value(), json!("n"));
        assert_eq!(result(json!({ "content": [] })).value(), Value::Null);
    }

    #[test]
    fn parsing_takes_the_type_that_the_program_wants() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Held {
            result: u8,
        }
        let wrapped = result(json!({ "structuredContent": { "result": 7 } }));
        assert_eq!(wrapped.parse::<u8>().unwrap(), 7);
        assert_eq!(wrapped.parse::<Held>().unwrap(), Held { result: 7 });
        assert_eq!(text("42").parse::<String>().unwrap(), "42");
        assert_eq!(text("42").parse::<u8>().unwrap(), 42);
        let error = text("forty").parse::<u8>().unwrap_err().to_string();
        assert!(error.contains("not a u8") && error.contains("forty"), "{error}");
        let failed =
            result(json!({ "isError": true, "content": [{ "type": "text", "text": "no" }] }));
        assert_eq!(failed.parse::<Value>().unwrap_err().to_string(), "`t` failed: no");
    }
}
