//! The journal of a run, with which the script can be run again without repeating its calls.
//!
//! The course of a script depends only on what it receives from the host, and in which order: the
//! start time, the random seed, the results of its calls and the time of each. A script that
//! receives the same again does the same again. Where the journal ends, it continues for the first
//! time.

use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_engines::{CallId, RunSeed, ToolException};

use crate::language::ScriptLanguage;

/// The journal of an earlier run, up to some point.
#[derive(Debug, Clone, Default)]
pub struct RunJournalRecord {
    /// The start values of the run.
    pub beginning: RunSeed,
    /// The calls that the script made, in their order.
    pub calls: Vec<JournaledCall>,
    /// The events that the script received, in their order.
    pub events: Vec<JournalEvent>,
}

/// A call in a journal.
#[derive(Debug, Clone)]
pub struct JournaledCall {
    /// The number of the call.
    pub id: CallId,
    /// The exposed name of the tool.
    pub name: String,
    /// The arguments, as the script passed them.
    pub arguments: Box<RawValue>,
    /// The outcome. `None` if the run ended first, so that it is unknown whether the call had an
    /// effect. Such a call is passed to [`Tools`](crate::Tools) again under its number.
    pub outcome: Option<Result<Box<RawValue>, ToolException>>,
    /// Whether the script must make the same call again. A call that failed or was never sent may
    /// differ.
    pub binds: bool,
}

/// An event that a script received. Events with the same time were received together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalEvent {
    /// A call ended.
    Completed {
        /// The number of the call.
        id: CallId,
        /// The time since the beginning of the run.
        at: Duration,
    },
    /// Time has passed.
    Time {
        /// The time since the beginning of the run.
        at: Duration,
    },
}

/// An event of a running script, reported before it has any effect on the script. All events of a
/// run together are its [`RunJournalRecord`].
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// The run begins. A run with a journal does not report this.
    Began(RunSeed),
    /// A call is about to be made.
    Called {
        /// The number of the call.
        id: CallId,
        /// The exposed name of the tool.
        name: &'a str,
        /// The arguments.
        arguments: &'a RawValue,
    },
    /// The script repeated a call of the journal. The call is not sent again; the script gets the
    /// earlier outcome.
    Repeated {
        /// The number of the call.
        id: CallId,
        /// The place in the script that made the call now.
        place: Option<u32>,
    },
    /// A call ended, and the script is about to receive the outcome.
    Completed {
        /// The number of the call.
        id: CallId,
        /// The time since the beginning of the run.
        at: Duration,
        /// The outcome of the call.
        outcome: &'a Result<Box<RawValue>, ToolException>,
    },
    /// The script is about to receive the time.
    Time {
        /// The time since the beginning of the run.
        at: Duration,
    },
}

impl JournalEvent {
    /// The time since the beginning of the run.
    pub fn at(self) -> Duration {
        match self {
            Self::Completed { at, .. } | Self::Time { at } => at,
        }
    }
}

/// The script of a run.
#[derive(Debug, Clone)]
pub struct SandboxScript {
    /// The source, as it was written.
    pub code: String,
    /// The language of the source.
    pub language: ScriptLanguage,
    /// The journal of the earlier run that this run continues.
    pub journal: Option<RunJournalRecord>,
}

impl SandboxScript {
    /// A script without a journal.
    pub fn new(code: impl Into<String>, language: impl Into<ScriptLanguage>) -> Self {
        let mut code = code.into();
        // A mark of the encoding that editors write is not part of a script.
        if code.starts_with('\u{feff}') {
            code.drain(..'\u{feff}'.len_utf8());
        }
        Self { code, language: language.into(), journal: None }
    }
}
