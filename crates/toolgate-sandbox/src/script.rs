//! What is to run.

use toolgate_bindings::check::Language;

use crate::history::History;

/// A script that is to run.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its text, as it was written.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// What happened when it ran before, where it is to go on.
    pub history: Option<History>,
}

impl Script {
    /// A script that runs for the first time.
    pub fn new(code: impl Into<String>, language: Language) -> Self {
        Self { code: code.into(), language, history: None }
    }
}
