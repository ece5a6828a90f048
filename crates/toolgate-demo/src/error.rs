//! The crate's errors.

/// Why a demo server could not be served or called. An [`Instance`](crate::Instance) can be called
/// again after any of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// There is no demo server of this name.
    #[error("there is no demo server `{name}`; there are {known}")]
    UnknownServer {
        /// The requested name.
        name: String,
        /// The names that exist, with commas.
        known: String,
    },
    /// The server has no tool of this name.
    #[error("the demo server `{server}` has no tool `{tool}`")]
    UnknownTool {
        /// The server.
        server: String,
        /// The requested tool.
        tool: String,
    },
    /// The tool refused the call. The message is written for the model that made it; over the
    /// protocol it is a result with `isError`.
    #[error("{0}")]
    Refused(String),
    /// The file of a server does not describe one. A test reads all files.
    #[error("the file of the demo server `{server}` is broken: {reason}")]
    BrokenFile {
        /// The server.
        server: &'static str,
        /// What is wrong with its file.
        reason: String,
    },
    /// The client's end of a pipe failed; the loop has ended.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Says that an argument does not fit the tool's schema.
pub(crate) fn invalid_argument(path: &str, problem: &str) -> DemoError {
    DemoError::Refused(format!("Invalid argument `{path}`: {problem}"))
}
