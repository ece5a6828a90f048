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
    /// The file of a server failed: it does not describe a server, a tool has a defect, or the state
    /// reached the memory limit.
    #[error("the demo server `{server}` failed: {reason}")]
    BrokenFile {
        /// The server.
        server: &'static str,
        /// What the engine says.
        reason: String,
    },
    /// The client's end of a pipe failed; the loop has ended.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
