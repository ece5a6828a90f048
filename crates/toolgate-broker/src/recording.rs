//! What is known of one call while it is made, for the record and for telemetry.

use std::{sync::Arc, time::Instant};

use serde_json::{Map, Value};
use toolgate_catalog::{Fingerprint, Tool};
use toolgate_policy::{Decision, Verdict};
use toolgate_store::AuditRecord;
use toolgate_telemetry::{CallSpan, CallSpanEnd, Telemetry};
use toolgate_upstream::CallError;

use crate::{
    ask,
    context::CallContext,
    error::BrokerError,
    guard::Permit,
    record::{Outcome, Recorder, permitted, size},
};

/// A call under way. However it ends, it is recorded: dropped before its end, nobody knows whether
/// it had an effect.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Option<Arc<Recorder>>,
    span: Option<CallSpan>,
    record: AuditRecord,
    verdict: Option<Verdict>,
    permit: Option<Answer>,
    started: Instant,
    is_over: bool,
}

/// What is known of the question to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    NotAsked,
    Yes,
}

/// The most of a name that is written down of a tool that does not exist.
const LONGEST_NAME: usize = 128;

impl Recording {
    /// A call begins: of a tool, or of none that exists.
    pub(crate) fn start(
        recorder: Option<Arc<Recorder>>,
        telemetry: &Telemetry,
        context: &CallContext,
        called: (&str, Option<&Tool>),
        arguments: &Value,
        meta: Option<&Map<String, Value>>,
    ) -> Self {
        let (name, tool) = called;
        let (session, run) = (context.session.id(), context.run_id());
        let span = telemetry.is_on().then(|| {
            let tool = tool.map(|tool| (tool.id.server.as_str(), tool.name.as_str()));
            telemetry.call(tool, session, run, meta)
        });
        let mut record = AuditRecord::default();
        if let Some(recorder) = &recorder {
            "call".clone_into(&mut record.kind);
            record.caller = context.session.caller().name.to_string();
            record.session = session.to_string();
            record.run = run.map(str::to_owned);
            record.tool = tool.map_or_else(
                || name.chars().take(LONGEST_NAME).collect(),
                |tool| tool.name.to_string(),
            );
            record.server = tool.map(|tool| tool.id.server.to_string()).unwrap_or_default();
            record.arguments_hash = Fingerprint::of(arguments).to_string();
            // What nobody could call may be of any size.
            record.arguments = tool.and_then(|_| recorder.kept(arguments));
        }
        if recorder.is_some() || span.is_some() {
            record.argument_bytes = size(arguments);
        }
        let started = Instant::now();
        Self { recorder, span, record, verdict: None, permit: None, started, is_over: false }
    }

    /// Tells the server which trace the call belongs to.
    pub(crate) fn pass_on(&self, meta: &mut Option<Map<String, Value>>) {
        if let Some(span) = &self.span {
            span.pass_on(meta);
        }
    }

    /// The policy has decided.
    pub(crate) fn decided(&mut self, decision: &Decision) {
        self.verdict = Some(decision.verdict);
        if self.is_watched() {
            self.record.rule = ask::rule(decision);
        }
    }

    /// It may be made. `false` where that has to be written down first, and could not be.
    pub(crate) async fn permitted(&mut self, permit: &Permit) -> bool {
        self.permit = Some(match permit {
            Permit::Policy | Permit::Grant(_) => Answer::NotAsked,
            Permit::Person => Answer::Yes,
        });
        if self.is_watched() {
            self.record.rule = permitted(std::mem::take(&mut self.record.rule), permit);
        }
        match &self.recorder {
            Some(recorder) => {
                self.record.verdict = self.verdict();
                recorder.before(&self.record).await
            }
            None => true,
        }
    }

    /// It is over.
    pub(crate) fn end(mut self, outcome: Result<&Value, &BrokerError>) {
        if !self.is_watched() {
            self.is_over = true;
            return;
        }
        if self.verdict.is_none() {
            let rule = undecided(outcome, !self.record.server.is_empty());
            rule.clone_into(&mut self.record.rule);
        }
        let ended = match ended(outcome) {
            // Whoever stopped to wait did so before anything was sent.
            Outcome::Unknown if self.permit.is_none() => Outcome::Refused,
            ended => ended,
        };
        self.finish(ended, failure(outcome));
    }

    /// The server has no result: it refused, or was not there.
    pub(crate) fn fail(mut self) {
        self.finish(Outcome::Error, Some("refused_by_server"));
    }

    fn is_watched(&self) -> bool {
        self.recorder.is_some() || self.span.is_some()
    }

    fn verdict(&self) -> String {
        self.verdict.unwrap_or(Verdict::Deny).as_str().to_owned()
    }

    fn finish(&mut self, outcome: Outcome, error: Option<&'static str>) {
        self.is_over = true;
        let mut record = std::mem::take(&mut self.record);
        record.verdict = self.verdict();
        if let Some(span) = self.span.take() {
            let question = match (self.verdict, self.permit, outcome) {
                (Some(Verdict::Ask), Some(Answer::Yes), _) => Some("allow"),
                (Some(Verdict::Ask), None, Outcome::Waiting) => Some("waiting"),
                (Some(Verdict::Ask), None, _) => Some("deny"),
                _ => None,
            };
            let result_bytes = match outcome {
                Outcome::Result { bytes, .. } => Some(bytes),
                _ => None,
            };
            span.end(&CallSpanEnd {
                verdict: self.verdict.unwrap_or(Verdict::Deny).as_str(),
                rule: &record.rule,
                outcome: outcome.name(),
                error,
                argument_bytes: record.argument_bytes,
                result_bytes,
                question,
            });
        }
        if let Some(recorder) = &self.recorder {
            recorder.after(record, outcome, self.started.elapsed());
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.is_over && self.is_watched() {
            // Before it was let through nothing can have been sent.
            let outcome = if self.permit.is_some() { Outcome::Unknown } else { Outcome::Refused };
            if self.verdict.is_none() {
                "it was cancelled".clone_into(&mut self.record.rule);
            }
            self.finish(outcome, Some("cancelled"));
        }
    }
}

/// How a call ended, for the record.
fn ended(outcome: Result<&Value, &BrokerError>) -> Outcome {
    match outcome {
        Ok(result) => {
            let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
            Outcome::Result { bytes: size(result), is_error }
        }
        Err(BrokerError::Waiting { .. }) => Outcome::Waiting,
        Err(BrokerError::Call(error)) => match **error {
            CallError::Stopped { .. } | CallError::TimedOut { .. } | CallError::Cancelled => {
                Outcome::Unknown
            }
            _ => Outcome::Error,
        },
        Err(_) => Outcome::Refused,
    }
}

/// In which way a call failed, in one word of a few.
fn failure(outcome: Result<&Value, &BrokerError>) -> Option<&'static str> {
    Some(match outcome {
        Ok(result) if result.get("isError").and_then(Value::as_bool) == Some(true) => "tool_error",
        Ok(_) => return None,
        Err(BrokerError::UnknownTool { .. }) => "unknown_tool",
        Err(BrokerError::InvalidArguments(_)) => "invalid_arguments",
        Err(BrokerError::Uncheckable(_)) => "broken_schema",
        Err(BrokerError::Denied { .. }) => "denied",
        Err(BrokerError::Waiting { .. }) => "waiting_for_approval",
        Err(BrokerError::Unrecorded { .. } | BrokerError::Unwritten { .. }) => "not_recorded",
        Err(BrokerError::Call(error)) => match **error {
            CallError::UnknownServer(_) | CallError::NotConnected { .. } => "not_connected",
            CallError::Unauthorized { .. } => "unauthorized",
            CallError::Stopped { .. } => "server_stopped",
            CallError::TimedOut { .. } => "timeout",
            CallError::Cancelled => "cancelled",
            CallError::Refused { .. } => "refused_by_server",
            _ => "_OTHER",
        },
    })
}

/// Why a call was refused before the policy was asked.
fn undecided(outcome: Result<&Value, &BrokerError>, exists: bool) -> &'static str {
    match outcome {
        Err(BrokerError::UnknownTool { .. }) if exists => "all its calls are denied",
        Err(BrokerError::UnknownTool { .. }) => "there is no such tool",
        Err(BrokerError::InvalidArguments(_)) => "its arguments do not fit",
        Err(BrokerError::Uncheckable(_)) => "its schema is broken",
        _ => "",
    }
}
