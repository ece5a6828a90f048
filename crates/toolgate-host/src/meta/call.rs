//! `call_tool`.

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_broker::{BrokerError, CallContext};
use toolgate_upstream::{CallError, CallOptions};

use super::MetaTool;
use crate::session::{CallFailure, ToolSession, error_result, refused_result};

/// The arguments of `call_tool`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallRequest {
    name: String,
    #[serde(default)]
    arguments: Arguments,
}

/// Models often write the arguments as text. The meaning is clear, so it is accepted.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`arguments` has to be an object")]
enum Arguments {
    Object(Map<String, Value>),
    Text(String),
    None(()),
}

/// Calls the tool. Errors become results for the model, except a cancellation, because nobody waits
/// for its result.
pub(super) async fn call(
    session: &ToolSession,
    request: CallRequest,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    if MetaTool::named(&request.name).is_some() {
        return Ok(error_result(&format!(
            "Call {} directly, not through call_tool.",
            request.name
        )));
    }
    let arguments = match request.arguments {
        Arguments::Object(arguments) => arguments,
        Arguments::None(()) => Map::new(),
        Arguments::Text(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => arguments,
            _ => return Ok(error_result("`arguments` is a text and not a JSON object.")),
        },
    };
    let context = CallContext::direct(session.context());
    match session.call_tool(&request.name, None, arguments, &context, options).await {
        Ok((tool, result)) => {
            let code = session.host().code();
            if code.is_enabled() {
                code.shapes.learn_from_result(&tool, &result);
            }
            Ok(result)
        }
        Err(BrokerError::Call(error)) if matches!(*error, CallError::Cancelled) => {
            Err(CallFailure::Cancelled)
        }
        Err(error) => Ok(refused_result(&super::refusal(session, &error), &error)),
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::None(())
    }
}
