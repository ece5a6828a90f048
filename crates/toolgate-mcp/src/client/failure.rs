//! Failures of connections, as texts for people.

use std::{error::Error, ffi::OsString, io, path::Path};

use thiserror::Error;

use super::{
    connection::TransportFailure,
    endpoint::{HttpEndpoint, StdioEndpoint, place},
};

/// Why a server is not connected: a row of `toolgate status`. Other servers are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectFailure {
    /// What happened, in one sentence without a full stop.
    pub reason: String,
    /// What a person can do about it.
    pub action: String,
    /// Whether another attempt would fail in the same way, so that none is made by itself.
    pub is_final: bool,
}

impl ConnectFailure {
    /// What happened, and what a person can do about it.
    pub fn new(reason: impl Into<String>, action: impl Into<String>) -> Self {
        Self { reason: reason.into(), action: action.into(), is_final: false }
    }

    /// The server is toolgate itself.
    pub(crate) fn own() -> Self {
        let reason = "it is toolgate itself, and is left out";
        let action = "remove the entry; a gateway of another machine can be a server by its `url`";
        Self { is_final: true, ..Self::new(reason, action) }
    }
}

/// Why there is no token that the server would accept. The request took no effect.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}; {}", failure.reason, failure.action)]
pub struct AuthorizationError {
    /// What the server requires.
    pub failure: ConnectFailure,
    /// Whether it concerns only this request, not the server.
    pub only_this_request: bool,
}

/// Why an HTTP request has no usable response.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    /// Without its URL, which can hold a key.
    #[error("{}", error_chain(.0))]
    Request(reqwest::Error),
    #[error("HTTP {0}")]
    Status(u16),
    #[error("the server does not know the session")]
    SessionExpired,
    #[error("the server has no stream for notifications")]
    NoEventStream,
    #[error("the content type `{0}` was not expected")]
    ContentType(String),
    #[error("{0}")]
    Unexpected(&'static str),
    /// The HTTP exchange succeeded, and the handshake in it did not.
    #[error("{0}")]
    Handshake(String),
    #[error("the stream of events broke: {0}")]
    Events(String),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
}

/// The advice for a URL that does not respond.
pub const START_OR_CORRECT: &str = "start the server, or correct its `url`";

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

impl HttpError {
    /// The status of the response, where it is an error.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// The reason, if the error means that nothing responds at `place`. Then nothing was sent.
    pub(crate) fn unreachable(&self, place: &str) -> Option<String> {
        match self {
            Self::Request(error) if error.is_connect() => {
                Some(format!("nothing answers at {place}: {}", innermost(error)))
            }
            _ => None,
        }
    }

    /// Whether the server requires authorization.
    pub(crate) fn wants_authorization(&self) -> bool {
        matches!(self, Self::Authorization(_) | Self::Status(401 | 403))
    }

    pub(crate) fn into_transport_failure(self) -> TransportFailure {
        match self {
            Self::Authorization(error) => TransportFailure::Authorization(error),
            Self::Status(status) => TransportFailure::Status(status),
            _ => TransportFailure::Other,
        }
    }

    /// Why a handshake over HTTP failed.
    pub(crate) fn connect_failure(&self, endpoint: &HttpEndpoint) -> ConnectFailure {
        let place = place(&endpoint.url);
        let (reason, action) = match self {
            Self::Authorization(error) => return error.failure.clone(),
            // Loop Detected: the gateway at the URL is this one, or is behind it.
            Self::Status(508) => return ConnectFailure::own(),
            Self::Status(status @ (401 | 403)) => (
                format!("{place} asks for authorization ({status})"),
                "add or correct the `Authorization` header under `headers` of the server",
            ),
            Self::Status(status) => (
                format!("{place} answered HTTP {status}"),
                "check `url` and `headers` of the server",
            ),
            other => match other.unreachable(&place) {
                Some(reason) => (reason, START_OR_CORRECT),
                None => (
                    format!("the handshake with {place} failed: {other}"),
                    "check that `url` of the server is an MCP endpoint (Streamable HTTP or HTTP+SSE)",
                ),
            },
        };
        ConnectFailure::new(reason, action)
    }
}

/// An error and its causes in one line, each said once.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let said = current.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = current.source();
    }
    text
}

/// Why a command did not start.
pub(crate) fn spawn_failure(endpoint: &StdioEndpoint, error: &io::Error) -> ConnectFailure {
    let command = &endpoint.command;
    if let Some(cwd) = &endpoint.cwd
        && !cwd.is_dir()
    {
        let reason = format!("its working directory {} does not exist", cwd.display());
        return ConnectFailure::new(reason, "correct `cwd` of the server");
    }
    let kind = match error.kind() {
        // The system also reports this if a folder of `PATH` is unreadable and no other folder has
        // the command.
        io::ErrorKind::PermissionDenied if !is_on_path(endpoint) => io::ErrorKind::NotFound,
        kind => kind,
    };
    let program = command.split_whitespace().next().unwrap_or(command);
    let (reason, action) = match kind {
        // What follows may be a secret, so that it is not repeated.
        io::ErrorKind::NotFound if program != command => {
            // So may be the value of a variable at its beginning.
            let begin = program.split_once('=').map_or(program, |(name, _)| name);
            let reason = format!(
                "there is no program whose name is all of `command`, which begins with `{begin}`"
            );
            let action = "split into args: leave the program in `command`, and write what follows as a list under `args`";
            (reason, action)
        }
        io::ErrorKind::NotFound => (
            format!("the command `{command}` was not found"),
            "install it, or write its full path as `command`",
        ),
        io::ErrorKind::PermissionDenied => {
            (format!("the command `{command}` may not be run"), "make it executable")
        }
        _ => (
            format!("the command `{command}` did not start: {error}"),
            "correct `command` of the server",
        ),
    };
    ConnectFailure::new(reason, action)
}

/// Whether a command is in a folder of `PATH`, or is a path itself.
fn is_on_path(endpoint: &StdioEndpoint) -> bool {
    let command = Path::new(&endpoint.command);
    let own = endpoint.env.get("PATH").map(OsString::from);
    let folders = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    command.components().nth(1).is_some()
        || std::env::split_paths(&folders).any(|folder| folder.join(command).exists())
}

/// `what`, and the most informative line of a server's last output: the last line that mentions an
/// error, because runtimes often end with their version or an empty trace.
pub(crate) fn with_last_output(what: String, lines: &[String]) -> String {
    let speaks_of_error = |line: &&String| line.to_ascii_lowercase().contains("error");
    match lines.iter().rfind(speaks_of_error).or(lines.last()) {
        Some(line) => format!("{what}: {line}"),
        None => what,
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(inner) = last.source() {
        last = inner;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_an_unreadable_folder_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("there"), "").unwrap();
        let path = folder.path().display().to_string();
        let reason = |command: &str| {
            let env = [("PATH".to_owned(), path.clone())].into();
            let endpoint =
                StdioEndpoint { command: command.to_owned(), args: Vec::new(), env, cwd: None };
            spawn_failure(&endpoint, &io::ErrorKind::PermissionDenied.into()).reason
        };
        assert_eq!(reason("elsewhere"), "the command `elsewhere` was not found");
        assert_eq!(reason("there"), "the command `there` may not be run");
        assert_eq!(reason("/some/where"), "the command `/some/where` may not be run");
    }

    #[test]
    fn a_whole_command_line_is_to_be_split() {
        let endpoint = StdioEndpoint {
            command: "/no/such/prog --key hunter2".to_owned(),
            args: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
        };
        let failure = spawn_failure(&endpoint, &io::ErrorKind::NotFound.into());
        assert!(failure.reason.ends_with("which begins with `/no/such/prog`"), "{failure:?}");
        assert!(failure.action.starts_with("split into args"), "{failure:?}");
        assert!(!format!("{failure:?}").contains("hunter2"));
        let endpoint = StdioEndpoint { command: "KEY=hunter2 node".to_owned(), ..endpoint };
        let failure = spawn_failure(&endpoint, &io::ErrorKind::NotFound.into());
        assert!(failure.reason.ends_with("which begins with `KEY`"), "{failure:?}");
    }

    #[test]
    fn the_most_informative_line_is_quoted() {
        let lines =
            ["TypeError: no key", "    at main (x.js:1)", "", "Node.js v22"].map(str::to_owned);
        assert_eq!(with_last_output("it ended".to_owned(), &lines), "it ended: TypeError: no key");
        let lines = ["starting", "bye"].map(str::to_owned);
        assert_eq!(with_last_output("it ended".to_owned(), &lines), "it ended: bye");
        assert_eq!(with_last_output("it ended".to_owned(), &[]), "it ended");
    }
}
