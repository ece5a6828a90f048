//! What makes a configuration unusable as a whole.

use crate::Position;

/// Why a configuration cannot be read at all.
///
/// With any of these nothing of the file is usable: where one setting is wrong there could be
/// another meaning for all that follows it. Everything that can be confined to one server or one
/// setting is a [`Problem`](crate::Problem) instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not valid JSON with comments, or not valid TOML.
    #[error("{source_name}:{position}: {message}\n{excerpt}")]
    Syntax {
        /// The name of the file.
        source_name: String,
        /// Where the parser stopped.
        position: Position,
        /// What was expected, in one sentence.
        message: String,
        /// The line of the file with a caret under the position.
        excerpt: String,
    },
    /// The file holds something other than an object at its top.
    #[error(
        "{source_name}: the file must hold an object with an `mcpServers` key, but it holds {found}"
    )]
    NotAnObject {
        /// The name of the file.
        source_name: String,
        /// What it holds, with its article.
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
        position: Position,
        /// The limit.
        limit: usize,
    },
}
