//! What is to run.

use toolgate_bindings::check::Language;

use crate::journal::RunJournalRecord;

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
