//! What is wrong with a configuration that can still be used.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// One thing that is wrong with the configuration, and the way out.
///
/// A problem never stops toolgate: an [error](Severity::Error) costs at most the one server it
/// belongs to, a [warning](Severity::Warning) costs one setting, which keeps its default.
///
/// The texts hold keys and names from the file, made safe to print, but no values: neither those
/// of environment variables nor those written in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What the problem costs.
    pub severity: Severity,
    /// The name of the file, as it was given to [`parse`](crate::parse).
    pub source: Arc<str>,
    /// Where in the file's structure, such as `mcpServers.github.comand`; empty for the file itself.
    pub path: String,
    /// Where in the file's text.
    pub position: Position,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it, where the message does not already say so.
    pub hint: Option<String>,
}

/// What a [`Problem`] costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is ignored or keeps its default; the server it belongs to is served.
    Warning,
    /// The server it belongs to cannot be used, or there is nothing to serve.
    Error,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    /// One line for the problem and one for the hint:
    ///
    /// ```text
    /// error: toolgate.json:3:17: `mcpServers.github` has no `command` …
    ///   hint: rename `comand` to `command`
    /// ```
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, source, position, message, .. } = self;
        write!(formatter, "{severity}: {source}:{position}: {message}")?;
        match &self.hint {
            Some(hint) => write!(formatter, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}
