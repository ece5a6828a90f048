//! The report of a run.

use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_bindings::check::CheckFinding;
use toolgate_engines::{CallId, ScriptFailure};

use crate::{captured::CapturedOutput, limits::LimitReached};

/// The report of a run. Output and calls are included however the run ended.
#[derive(Debug)]
pub struct RunReport {
    /// How it ended.
    pub outcome: RunOutcome,
    /// The console output.
    pub output: CapturedOutput,
    /// The content blocks that the script emitted.
    pub emitted: Vec<Box<RawValue>>,
    /// Warnings about the script, which ran all the same.
    pub warnings: Vec<CheckFinding>,
    /// The calls that it made, in their order.
    pub calls: Vec<CallRecord>,
    /// The number of refused calls that are not in `calls` because there were too many.
    pub calls_left_out: u64,
    /// The CPU time; zero if the system does not report it.
    pub cpu: Duration,
    /// The time from start to end.
    pub wall: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunOutcome {
    /// The script ran to its end. The value is its result, if it returned one.
    Value(Option<Box<RawValue>>),
    /// The script did not start because the check found errors.
    Rejected(Vec<CheckFinding>),
    /// The script ended with an error.
    Failed(ScriptFailure),
    /// A limit ended the run.
    Stopped(LimitReached),
    /// The caller cancelled the run.
    Cancelled,
    /// The script waits for calls that were not made yet. It can continue later with its
    /// [journal](crate::RunJournalRecord).
    Suspended,
    /// The script makes other calls than its journal contains, so the journal cannot be replayed.
    Diverged(String),
    /// The worker died or was killed, with a description.
    Crashed(String),
}

/// A call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// The number of the call in the run.
    pub id: CallId,
    /// The name of the tool, as the script wrote it.
    pub name: String,
    /// The beginning of the arguments.
    pub arguments: String,
    /// The state of the call when the run ended.
    pub state: CallState,
    /// When the call was made, since the start of the run.
    pub started: Duration,
    /// How long the call took, or had taken when the run ended.
    pub duration: Duration,
    /// The size of the result in bytes.
    pub result_bytes: u64,
}

/// The state of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// The script got the result.
    Completed,
    /// The tool failed with this message.
    Failed(String),
    /// The tool responded, but the result is too large for the script.
    Undelivered(String),
    /// The run ended before the tool responded. The call may or may not have had an effect.
    InFlight,
    /// The tool was not called, for this reason.
    Refused(String),
    /// The tool was not called yet. The run waits until it may be.
    Suspended,
}
