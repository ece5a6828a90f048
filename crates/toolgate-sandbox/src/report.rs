//! What came of a run.

use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_bindings::check::CheckFinding;
use toolgate_engines::{CallId, ScriptFailure};

use crate::{captured::CapturedOutput, limits::LimitReached};

/// What came of a run. What it wrote and what it called are here however it ended.
#[derive(Debug)]
pub struct RunReport {
    /// How it ended.
    pub outcome: RunOutcome,
    /// What it wrote.
    pub output: CapturedOutput,
    /// Content blocks that it gave to whoever reads the result.
    pub emitted: Vec<Box<RawValue>>,
    /// What is odd about the script. It ran all the same.
    pub warnings: Vec<CheckFinding>,
    /// The calls that it made, in their order.
    pub calls: Vec<CallRecord>,
    /// Calls that were refused after so many others were that they are only counted.
    pub calls_left_out: u64,
    /// CPU time that it used; zero where the system does not say.
    pub cpu: Duration,
    /// How long it took.
    pub wall: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunOutcome {
    /// It ran to its end; its value, if it has one.
    Value(Option<Box<RawValue>>),
    /// It did not begin: something is wrong with it.
    Rejected(Vec<CheckFinding>),
    /// It ended with an error.
    Failed(ScriptFailure),
    /// A limit ended it.
    Stopped(LimitReached),
    /// Whoever asked for it does not want it any more.
    Cancelled,
    /// It waits for calls that were not made yet: with its [history](crate::History) it can go on later.
    Suspended,
    /// It makes other calls than it made before, so that its history is not its own.
    Diverged(String),
    /// Its worker died, or had to be killed; what happened, in words.
    Crashed(String),
}

/// One call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its number in the run.
    pub id: CallId,
    /// The tool's name, as the script said it.
    pub name: String,
    /// The beginning of its arguments.
    pub arguments: String,
    /// What became of it.
    pub state: CallState,
    /// When it was made, from the start of the run on.
    pub started: Duration,
    /// How long it took, or had taken when the run ended.
    pub duration: Duration,
    /// Bytes of its result.
    pub result_bytes: u64,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// The tool answered, and the script got the answer.
    Completed,
    /// The tool failed; what it said.
    Failed(String),
    /// The tool answered, but the script did not get it: it is too large.
    Undelivered(String),
    /// The run ended before the tool answered. It may or may not have had an effect.
    InFlight,
    /// The tool was not called; why.
    Refused(String),
    /// The tool was not called yet: the run waits until it may be.
    Suspended,
}
