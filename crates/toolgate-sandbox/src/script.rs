//! What is to run.

use toolgate_bindings::check::Language;

/// A script that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its text, as it was written.
    pub code: String,
    /// What it is written in.
    pub language: Language,
}
