//! The spans of requests and runs.

use serde_json::Value;
use toolgate_broker::{BrokerError, RunContext};
use toolgate_catalog::Tool;
use toolgate_sandbox::{Language, RunOutcome, ScriptLanguage};
use toolgate_telemetry::{Operation, RequestSpan, RunSpan};
use toolgate_upstream::{CallError, CallOptions};

use crate::{
    code::CodeRun,
    session::{CallFailure, ToolSession},
};

/// The methods with a span name of their own. Other methods are named `_OTHER`: clients may send
/// any text.
const METHODS: [&str; 9] = [
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
];

/// Starts the span of a call. `name` is `None` for unknown tools: clients may send any text.
pub(crate) fn call(
    session: &ToolSession,
    name: Option<&str>,
    options: &mut CallOptions,
) -> RequestSpan {
    begin(session, "tools/call", name, options)
}

/// Starts the span of a request that is no call.
pub(crate) fn request(
    session: &ToolSession,
    method: &str,
    options: &mut CallOptions,
) -> RequestSpan {
    let known = METHODS.iter().find(|known| **known == method);
    begin(session, known.copied().unwrap_or("_OTHER"), None, options)
}

/// Starts the span of a run, which contains the spans of its calls.
pub(crate) fn run(
    session: &ToolSession,
    run: &RunContext,
    language: &ScriptLanguage,
    options: &mut CallOptions,
) -> RunSpan {
    let language = match language {
        ScriptLanguage::BuiltIn(Language::TypeScript) => "typescript",
        ScriptLanguage::BuiltIn(Language::Python) => "python",
        ScriptLanguage::Component(_) => "component",
    };
    let telemetry = session.host().settings().telemetry.clone();
    let id = session.context().id();
    let span = telemetry.run(run.id(), language, id, options.meta.as_ref());
    span.pass_on(&mut options.meta);
    span
}

/// Ends the span of a run.
pub(crate) fn end_run(span: RunSpan, run: &CodeRun) {
    let error = match run.report.outcome {
        RunOutcome::Value(_) => None,
        RunOutcome::Suspended => Some("waiting_for_approval"),
        RunOutcome::Rejected(_) => Some("rejected"),
        _ => Some("failed"),
    };
    span.end(error, run.report.calls.len() as u64 + run.report.calls_left_out);
}

/// The name of a failure in telemetry.
pub(crate) fn failure(outcome: &Result<Value, CallFailure>) -> Option<&'static str> {
    match outcome {
        Ok(result) if result.get("isError").and_then(Value::as_bool) == Some(true) => {
            Some("tool_error")
        }
        Ok(_) => None,
        Err(CallFailure::UnknownTool(_)) => Some("unknown_tool"),
        Err(CallFailure::Refused { .. }) => Some("refused"),
        Err(CallFailure::Cancelled) => Some("cancelled"),
    }
}

/// The kind of error of a call that a program made by name.
pub(crate) fn broker_failure(outcome: &Result<(Tool, Value), BrokerError>) -> Option<&'static str> {
    match outcome {
        Ok((_, result)) if result.get("isError").and_then(Value::as_bool) == Some(true) => {
            Some("tool_error")
        }
        Ok(_) => None,
        Err(BrokerError::UnknownTool { .. }) => Some("unknown_tool"),
        Err(BrokerError::Call(error)) if matches!(**error, CallError::Cancelled) => {
            Some("cancelled")
        }
        Err(_) => Some("refused"),
    }
}

fn begin(
    session: &ToolSession,
    method: &'static str,
    tool: Option<&str>,
    options: &mut CallOptions,
) -> RequestSpan {
    let operation = Operation { method, tool, session: session.context().id() };
    let telemetry = session.host().settings().telemetry.clone();
    let span = telemetry.request(&operation, options.meta.as_ref());
    span.pass_on(&mut options.meta);
    span
}
