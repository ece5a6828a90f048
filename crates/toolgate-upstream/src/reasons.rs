//! Errors in the words of a person.

use std::{error::Error, ffi::OsString, io, path::Path};

use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
    },
};

use crate::{
    auth::Trouble,
    error::ConnectFailure,
    spec::{HttpEndpoint, StdioEndpoint, place},
};

/// What to do about a URL where nobody is.
pub(crate) const START_OR_CORRECT: &str = "start the server, or correct its `url`";

/// An error and its causes in one line, each said once.
pub(crate) fn plain(error: &(dyn Error + 'static)) -> String {
    // rmcp's wrappers name types, which say nothing to a reader.
    let inner = transport_cause(error).unwrap_or(error);
    let inner = http_cause(inner).or_else(|| custom(inner)).unwrap_or(inner);
    let mut text = inner.to_string();
    let mut cause = inner.source();
    while let Some(current) = cause {
        let said = current.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = current.source();
    }
    text
}

/// Says that nobody is at `place`, if that is what the error means: then nothing was sent.
pub(crate) fn unreachable(error: &(dyn Error + 'static), place: &str) -> Option<String> {
    find::<reqwest::Error>(error)
        .filter(|error| error.is_connect())
        .map(|error| format!("nothing answers at {place}: {}", innermost(error)))
}

/// The HTTP status that an error is about.
pub(crate) fn status(error: &(dyn Error + 'static)) -> Option<u16> {
    find::<HttpStatusError>(error).map(|error| error.status)
}

/// What is wrong with a login, if that is what the error means: then the request took no effect.
pub(crate) fn trouble<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Trouble> {
    find::<Trouble>(error)
}

/// Whether a server wants to know who asks.
pub(crate) fn wants_authorization(error: &(dyn Error + 'static)) -> bool {
    trouble(error).is_some()
        || find::<AuthRequiredError>(error).is_some()
        || find::<InsufficientScopeError>(error).is_some()
        || matches!(status(error), Some(401 | 403))
}

/// Whether the other end is gone.
pub(crate) fn is_closed(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_closed(fallback),
        _ => false,
    }
}

/// Whether the server understood the handshake and would not have it.
pub(crate) fn is_refusal(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(_)
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => is_refusal(fallback),
        _ => false,
    }
}

/// Why a handshake over HTTP failed.
pub(crate) fn url_failure(
    endpoint: &HttpEndpoint,
    error: &(dyn Error + 'static),
) -> ConnectFailure {
    let place = place(&endpoint.url);
    if let Some(trouble) = trouble(error) {
        return trouble.failure.clone();
    }
    if wants_authorization(error) {
        let status =
            if find::<AuthRequiredError>(error).is_some() { Some(401) } else { status(error) };
        return ConnectFailure {
            reason: format!("{place} asks for authorization ({})", status.unwrap_or(403)),
            action: "add or correct the `Authorization` header under `headers` of the server"
                .to_owned(),
        };
    }
    if let Some(status) = status(error) {
        return ConnectFailure {
            reason: format!("{place} answered HTTP {status}"),
            action: "check `url` and `headers` of the server".to_owned(),
        };
    }
    match unreachable(error, &place) {
        Some(reason) => ConnectFailure { reason, action: START_OR_CORRECT.to_owned() },
        None => ConnectFailure {
            reason: format!("the handshake with {place} failed: {}", plain(error)),
            action:
                "check that `url` of the server is an MCP endpoint (Streamable HTTP or HTTP+SSE)"
                    .to_owned(),
        },
    }
}

/// Why a command did not start.
pub(crate) fn spawn_failure(endpoint: &StdioEndpoint, error: &io::Error) -> ConnectFailure {
    let command = &endpoint.command;
    if let Some(cwd) = &endpoint.cwd
        && !cwd.is_dir()
    {
        return ConnectFailure {
            reason: format!("its working directory {} does not exist", cwd.display()),
            action: "correct `cwd` of the server".to_owned(),
        };
    }
    let kind = match error.kind() {
        // So it is told where some folder may not be looked into, and no other has it.
        io::ErrorKind::PermissionDenied if !is_on_path(endpoint) => io::ErrorKind::NotFound,
        kind => kind,
    };
    match kind {
        io::ErrorKind::NotFound => ConnectFailure {
            reason: format!("the command `{command}` was not found"),
            action: "install it, or write its full path as `command`".to_owned(),
        },
        io::ErrorKind::PermissionDenied => ConnectFailure {
            reason: format!("the command `{command}` may not be run"),
            action: "make it executable".to_owned(),
        },
        _ => ConnectFailure {
            reason: format!("the command `{command}` did not start: {error}"),
            action: "correct `command` of the server".to_owned(),
        },
    }
}

/// Whether a command is where it is looked for. Where it is a path, that is known.
fn is_on_path(endpoint: &StdioEndpoint) -> bool {
    let command = Path::new(&endpoint.command);
    let own = endpoint.env.get("PATH").map(OsString::from);
    let folders = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    command.components().nth(1).is_some()
        || std::env::split_paths(&folders).any(|folder| folder.join(command).exists())
}

/// The line of a server's last words that says most: the last one that speaks of an error, since
/// runtimes like to end with their version or with an empty trace.
pub(crate) fn telling_line(lines: &[String]) -> Option<&String> {
    let speaks_of_error = |line: &&String| line.to_ascii_lowercase().contains("error");
    lines.iter().rfind(speaks_of_error).or(lines.last())
}

/// What is behind rmcp's wrappers, some of which keep their cause aside.
fn transport_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<ClientInitializeError>() {
        return match error {
            ClientInitializeError::TransportError { error, .. } => Some(error.error.as_ref()),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                let fallback: &(dyn Error + 'static) = fallback.as_ref();
                Some(transport_cause(fallback).unwrap_or(fallback))
            }
            _ => None,
        };
    }
    match error.downcast_ref::<ServiceError>() {
        Some(ServiceError::TransportSend(error)) => Some(error.error.as_ref()),
        _ => None,
    }
}

/// Looks for a cause of type `E`.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(transport_cause(error).unwrap_or(error));
    while let Some(current) = cause {
        if let Some(found) = current
            .downcast_ref::<E>()
            .or_else(|| http_cause(current).or_else(|| custom(current))?.downcast_ref())
        {
            return Some(found);
        }
        cause = current.source();
    }
    None
}

/// What rmcp's HTTP error holds without calling it its source.
fn http_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(error) => Some(error),
        StreamableHttpError::HttpStatus(error) => Some(error),
        StreamableHttpError::Io(error) => custom(error),
        _ => None,
    }
}

/// What an I/O error was made of, which is not its source.
fn custom<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    error.downcast_ref::<std::io::Error>()?.get_ref().map(|error| error as _)
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
    fn a_folder_that_may_not_be_looked_into_has_no_command() {
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
    fn the_line_that_says_most_is_found() {
        let lines =
            ["TypeError: no key", "    at main (x.js:1)", "", "Node.js v22"].map(str::to_owned);
        assert_eq!(telling_line(&lines).unwrap(), "TypeError: no key");
        let lines = ["starting", "bye"].map(str::to_owned);
        assert_eq!(telling_line(&lines).unwrap(), "bye");
        assert_eq!(telling_line(&[]), None);
    }
}
