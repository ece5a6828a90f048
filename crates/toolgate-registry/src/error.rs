//! The errors of sources and plans.

use thiserror::Error;

use crate::fill::MissingValue;

/// Why a source gave no list, or only a part of it. Other sources are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// It could not be reached, or the connection ended early. The cached list is used.
    #[error("{registry} cannot be reached: {reason}")]
    Unreachable {
        /// The URL of the registry.
        registry: String,
        /// Why.
        reason: String,
    },
    /// Its response is not a list of servers. The cached list is used.
    #[error("{registry} does not respond like a registry: {reason}")]
    Unreadable {
        /// The URL of the registry.
        registry: String,
        /// Why.
        reason: String,
    },
    /// It has more servers than are read. The first ones are used.
    #[error("{registry} has too many servers; the rest is left out")]
    TooMuch {
        /// The URL of the registry.
        registry: String,
    },
}

/// Why a server of a registry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoPlan {
    /// It has neither a package nor a URL that can be used.
    #[error("it offers nothing that can be used here: {0}")]
    NothingUsable(String),
    /// It needs values that a person has to configure.
    #[error("it needs {0}, which only a person can give: add the server to `mcpServers`")]
    NeedsValues(#[from] MissingValue),
    /// Its plan is too long for a person to read.
    #[error("its plan is too long to be shown")]
    TooLong,
}
