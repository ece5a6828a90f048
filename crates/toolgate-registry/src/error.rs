//! What can go wrong.

use thiserror::Error;

/// Why a source gave nothing, or less than it has. Other sources are not concerned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// It could not be reached, or broke off. What the cache has of it is used.
    #[error("{place} cannot be reached: {reason}")]
    Unreachable {
        /// The source.
        place: String,
        /// Why.
        reason: String,
    },
    /// It answered something else than a list of servers. What the cache has of it is used.
    #[error("{place} does not answer like a registry: {reason}")]
    Unreadable {
        /// The source.
        place: String,
        /// Why.
        reason: String,
    },
    /// It has more than is read. What was read is used.
    #[error("{place} has more servers than are read: the rest is left out")]
    TooMuch {
        /// The source.
        place: String,
    },
}

/// Why there is no way to use a server of a registry. Others are not concerned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoPlan {
    /// It has neither a package nor a URL that can be used.
    #[error("it offers nothing that can be used here: {0}")]
    NothingUsable(String),
    /// It needs values that only a person can give.
    #[error("it needs {0}, which only a person can give: add the server to `mcpServers`")]
    NeedsValues(String),
    /// It would not be seen whole by the person who is asked.
    #[error("what it would run or contact is too long to be shown")]
    TooLong,
}
