//! Requests and runs, as telemetry is told of them.

use std::sync::Arc;

use serde_json::Value;
use toolgate_broker::{RunContext, SessionContext};
use toolgate_sandbox::{Language, RunOutcome};
use toolgate_telemetry::{Operation, RequestSpan, RunSpan};
use toolgate_upstream::{CallOptions, Upstream};

use crate::{
    code::CodeRun,
    host::Host,
    meta::MetaTool,
    session::{CallFailure, Session},
};

/// The methods that are known beside `tools/call`. What else a client asks for has no name here.
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

/// A call of a client begins. What it leads to is a part of it.
pub(crate) fn call(session: &Session, name: &str, options: &mut CallOptions) -> RequestSpan {
    let is_known = || {
        MetaTool::named(name).is_some() || session.host().catalog().read().resolve(name).is_some()
    };
    let is_on = session.host().settings().telemetry.is_on();
    let tool = (is_on && is_known()).then_some(name);
    begin(session, "tools/call", tool, options)
}

/// Another request of a client begins.
pub(crate) fn request(session: &Session, method: &str, options: &mut CallOptions) -> RequestSpan {
    let known = METHODS.iter().find(|known| **known == method);
    begin(session, known.copied().unwrap_or("_OTHER"), None, options)
}

/// A run begins. Its calls are parts of it.
pub(crate) fn run(
    host: &Host,
    session: &SessionContext,
    run: &RunContext,
    language: Language,
    options: &mut CallOptions,
) -> RunSpan {
    let language = match language {
        Language::TypeScript => "typescript",
        Language::Python => "python",
    };
    let telemetry = &host.settings().telemetry;
    let span = telemetry.run(run.id(), language, session.id(), options.meta.as_ref());
    span.pass_on(&mut options.meta);
    span
}

/// A run is over.
pub(crate) fn ran(span: RunSpan, run: &CodeRun) {
    let error = match run.report.outcome {
        RunOutcome::Value(_) => None,
        RunOutcome::Suspended => Some("waiting_for_approval"),
        RunOutcome::Rejected(_) => Some("rejected"),
        _ => Some("failed"),
    };
    span.end(error, run.report.calls.len() as u64 + run.report.calls_left_out);
}

/// In which way a request failed, in one word of a few.
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

/// Counts the servers that are connected, as long as anybody needs them.
pub(crate) fn connected(
    upstream: &Arc<Upstream>,
) -> impl Fn() -> Option<u64> + Send + Sync + 'static {
    let upstream = Arc::downgrade(upstream);
    move || Some(upstream.upgrade()?.connected() as u64)
}

fn begin(
    session: &Session,
    method: &'static str,
    tool: Option<&str>,
    options: &mut CallOptions,
) -> RequestSpan {
    let operation = Operation { method, tool, session: session.context().id() };
    let telemetry = &session.host().settings().telemetry;
    let span = telemetry.request(&operation, options.meta.as_ref());
    span.pass_on(&mut options.meta);
    span
}
