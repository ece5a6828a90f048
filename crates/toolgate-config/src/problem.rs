//! What is wrong with a configuration.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A problem of the configuration, with a hint.
///
/// A problem never stops toolgate. An [error](ProblemSeverity::Error) disables at most its server.
/// After a [warning](ProblemSeverity::Warning) one setting keeps its default.
///
/// The texts contain keys and names from the file, safe to print, but no values of the file or of
/// environment variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The severity of the problem.
    pub severity: ProblemSeverity,
    /// The name of the file, as it was given to [`parse`](crate::parse).
    pub source: Arc<str>,
    /// Where in the file's structure, such as `mcpServers.github.comand`; empty for the file itself.
    pub path: String,
    /// Where in the file's text.
    pub position: SourcePosition,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do, if the message does not say so.
    pub hint: Option<String>,
}

/// The severity of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemSeverity {
    /// Something is ignored or keeps its default; the server it belongs to is served.
    Warning,
    /// The server it belongs to cannot be used, or there is nothing to serve.
    Error,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SourcePosition {
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

impl fmt::Display for ProblemSeverity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// Why a configuration cannot be read at all.
///
/// Then nothing of the file is used, because a syntax error may change the meaning of everything
/// after it. A mistake in one server or one setting is a [`Problem`] instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not valid JSON with comments, or not valid TOML.
    #[error("{source_name}:{position}: {message}\n{excerpt}")]
    Syntax {
        /// The name of the file.
        source_name: String,
        /// Where the parser stopped.
        position: SourcePosition,
        /// What was expected, in one sentence.
        message: String,
        /// The line of the file with a caret under the position.
        excerpt: String,
    },
    /// The top level of the file is not an object.
    #[error(
        "{source_name}: the file must hold an object with an `mcpServers` key, but it holds {found}"
    )]
    NotAnObject {
        /// The name of the file.
        source_name: String,
        /// The kind of its value, with its article.
        found: &'static str,
    },
    /// The file is larger than [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    #[error(
        "{source_name}: the file has {bytes} bytes, but at most {limit} are read; is it the right file?"
    )]
    TooLarge {
        /// The name of the file.
        source_name: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The file is nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error(
        "{source_name}:{position}: the file is nested deeper than {limit} levels; is it the right file?"
    )]
    TooDeep {
        /// The name of the file.
        source_name: String,
        /// Where the level too deep begins.
        position: SourcePosition,
        /// The limit.
        limit: usize,
    },
}
