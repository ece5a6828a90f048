//! Which clients share a server's process.

/// Which clients share an instance of a server: a process, or a session over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceMode {
    /// All, until the server asks by requests. Then each session has its own.
    #[default]
    Auto,
    /// All.
    Shared,
    /// Each session has its own.
    PerSession,
}
