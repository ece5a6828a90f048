//! What happened in an earlier run of a script, so that it can be run again without repeating it.
//!
//! A script's course is decided by what it is told, and in which order: when it began, what random
//! numbers are made of, what came of its calls, and how late it was each time. All of that comes from
//! the host, in frames. Told the same again, a script does the same again, up to where the history
//! ends; from there on it goes on for the first time.

use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_bindings::check::Language;
use toolgate_engines::{CallId, RunSeed, ToolException};

/// An earlier run of a script, up to some point.
#[derive(Debug, Clone, Default)]
pub struct RunJournalRecord {
    /// How it began.
    pub beginning: RunSeed,
    /// The calls that it made, in their order.
    pub calls: Vec<JournaledCall>,
    /// What it was told, in the order of telling.
    pub events: Vec<JournalEvent>,
}

/// A call of an earlier run.
#[derive(Debug, Clone)]
pub struct JournaledCall {
    /// Its number.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// Its arguments, as the script gave them.
    pub arguments: Box<RawValue>,
    /// What came of it; nothing where the run ended first, so that it is not known whether it had an
    /// effect. Such a call is handed to [`Tools`](crate::Tools) again, under its number.
    pub outcome: Option<Result<Box<RawValue>, ToolException>>,
    /// Whether the script has to make the same call again. One that failed, or was never sent, may be
    /// made in another way.
    pub binds: bool,
}

/// Something that a script was told. Events of the same time were told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalEvent {
    /// What came of a call.
    Completed {
        /// Which.
        id: CallId,
        /// When, from the beginning of the run on.
        at: Duration,
    },
    /// That so much time has passed.
    Time {
        /// How much, from the beginning of the run on.
        at: Duration,
    },
}

/// What a run tells about itself while it runs, before it has any effect on the script: who writes it
/// down has the [`RunJournalRecord`] of the run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// It begins. Not told of a run that has a history.
    Began(RunSeed),
    /// A call is about to be made.
    Called {
        /// Its number.
        id: CallId,
        /// The tool.
        name: &'a str,
        /// Its arguments.
        arguments: &'a RawValue,
    },
    /// A call was made as it was before. It is not made again: the script is told what came of it then.
    Repeated {
        /// Its number.
        id: CallId,
    },
    /// A call has come to its end, and the script is about to be told.
    Completed {
        /// Which.
        id: CallId,
        /// When, from the beginning of the run on.
        at: Duration,
        /// What came of it.
        outcome: &'a Result<Box<RawValue>, ToolException>,
    },
    /// The script is about to be told the time.
    Time {
        /// How much has passed since the beginning of the run.
        at: Duration,
    },
}

impl JournalEvent {
    /// When it was.
    pub fn at(self) -> Duration {
        match self {
            Self::Completed { at, .. } | Self::Time { at } => at,
        }
    }
}

/// A script that is to run.
#[derive(Debug, Clone)]
pub struct SandboxScript {
    /// Its text, as it was written.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// What happened when it ran before, where it is to go on.
    pub journal: Option<RunJournalRecord>,
}

impl SandboxScript {
    /// A script that runs for the first time.
    pub fn new(code: impl Into<String>, language: Language) -> Self {
        Self { code: code.into(), language, journal: None }
    }
}
