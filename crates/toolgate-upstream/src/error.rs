//! What can go wrong with a call.

use std::time::Duration;

use thiserror::Error;
use toolgate_catalog::ServerName;
use toolgate_mcp::{ErrorObject, client::ConnectFailure};

/// Why a call has no result. Each error names its server.
#[derive(Debug, Clone, Error)]
pub enum CallError {
    /// There is no server of this name. Nothing was sent.
    #[error("there is no server `{0}`")]
    UnknownServer(ServerName),
    /// The server is not connected. Nothing was sent, so that trying again is safe.
    #[error("server `{server}` is not connected: {}; {}", failure.reason, failure.action)]
    NotConnected {
        /// The server.
        server: ServerName,
        /// Why.
        failure: ConnectFailure,
    },
    /// The server requires a login, or a login with more scopes. It refused the call, so the call
    /// can be repeated after the login.
    #[error("server `{server}` did not accept `{tool}`: {}; {}", failure.reason, failure.action)]
    Unauthorized {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// What the server requires.
        failure: ConnectFailure,
    },
    /// Each caller has their own login at the server, and this caller has none. Nothing was sent.
    #[error(
        "server `{server}` needs a login of your own: the person opens {link} in their browser and logs in; \
         then call again"
    )]
    LoginNeeded {
        /// The server.
        server: ServerName,
        /// What the person opens.
        link: String,
    },
    /// The connection ended during the call. Whether the call had an effect is unknown, and it was
    /// not repeated. The server is being restarted.
    #[error("{}", stopped(server, tool, node.as_deref()))]
    Stopped {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// The other node of the fleet that ran it, if the connection to that node ended.
        node: Option<String>,
    },
    /// No response and no progress in time. The server was notified of the cancellation; whether it
    /// stopped is unknown. It is still connected.
    #[error(
        "server `{server}` gave no answer to `{tool}` within {} s ({}); it was asked to cancel, \
         and whether the call took effect is unknown",
        limit.as_secs_f64(),
        if *total { "the limit for a whole call, `callTotalTimeoutSeconds`" } else { "without progress, `callIdleTimeoutSeconds`" }
    )]
    TimedOut {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// How long it had.
        limit: Duration,
        /// Whether this was the limit for the whole call.
        total: bool,
    },
    /// An input request of the server was not answered. The server is still connected.
    #[error("server `{server}` requires {asked} before it answers `{tool}`, and {why}")]
    Unanswered {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// A description of the input request.
        asked: String,
        /// Why there is no answer.
        why: String,
    },
    /// The definition of the tool, its server or the policy is not the one that the call was judged
    /// by. Nothing was sent.
    #[error(
        "server `{server}`, its definition of `{tool}` or the policy changed before the call was \
         sent; nothing was sent, look at the tool again and repeat the call"
    )]
    DefinitionChanged {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
    },
    /// The server has announced a new list of tools that is not known yet. Nothing was sent.
    #[error(
        "server `{server}` has announced that its tools changed, and its new list {why}; nothing was \
         sent, because `{tool}` may have another definition now; repeat the call later, and see \
         `toolgate logs {server}` if the list does not come"
    )]
    DefinitionUnknown {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// What is known of the list.
        why: String,
    },
    /// The caller cancelled; the server was told.
    #[error("the call was cancelled")]
    Cancelled,
    /// The server answered with a JSON-RPC error. It is still connected.
    #[error("server `{server}` refused `{tool}`: {}", error.message)]
    Refused {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// Its answer.
        error: ErrorObject,
    },
    /// The request could not be delivered, or its response not be read. The message says what is
    /// known about the effect. Other calls are not affected.
    #[error("the call of `{tool}` on server `{server}` failed: {message}")]
    Transport {
        /// The server.
        server: ServerName,
        /// The tool.
        tool: String,
        /// What happened.
        message: String,
    },
}

/// What ended during a call, and what happens next.
fn stopped(server: &ServerName, tool: &str, node: Option<&str>) -> String {
    let unknown = format!("so it is unknown whether `{tool}` took effect; it was not repeated");
    match node {
        Some(node) => format!(
            "node {node}, which ran server `{server}`, was lost during the call, {unknown}; later calls can be tried again: \
             if the node is dead, another one runs the server once its lease is over"
        ),
        None => format!(
            "server `{server}` stopped during the call, {unknown}, and the server is being restarted (`toolgate logs {server}` \
             shows its last output)"
        ),
    }
}
