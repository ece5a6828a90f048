//! The crate's errors.

/// Why a demo server could not be served or called. An [`Instance`](crate::Instance) can be called
/// again after any of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// There is no demo server of this name; the others can be served.
    #[error("there is no demo server `{name}`; there are {known}")]
    UnknownServer {
        /// The name that was asked for.
        name: String,
        /// The names that exist, with commas.
        known: String,
    },
    /// The server has no tool of this name; its other tools can be called.
    #[error("the demo server `{server}` has no tool `{tool}`")]
    UnknownTool {
        /// The server.
        server: &'static str,
        /// The tool that was asked for.
        tool: String,
    },
    /// The tool refused the call. Over the protocol this is a result with `isError`.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The client's end of a pipe failed; the loop has ended.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Why a tool refused a call. The message is written for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The arguments do not fit the tool's schema.
    #[error("Invalid argument `{argument}`: {problem}")]
    Argument {
        /// Which one, as a path.
        argument: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The arguments name something that does not exist.
    #[error("No {what} with id `{id}`")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// The identifier that was asked for.
        id: String,
    },
    /// The arguments fit, but what they ask for is not possible now.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    pub(crate) fn argument(argument: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Argument { argument: argument.into(), problem: problem.into() }
    }

    pub(crate) fn not_found(what: &'static str, id: impl Into<String>) -> Self {
        Self::NotFound { what, id: id.into() }
    }
}
