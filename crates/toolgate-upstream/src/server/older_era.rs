//! Servers of both eras whose tools can ask their client only in the legacy era.
//!
//! Such a tool asks by a request. In the modern era there are no requests of servers, so the SDK of the server makes an
//! error of it. toolgate then connects in the legacy era, and stays there. The call itself is made again only if it is
//! known to be harmless: the tool may have done something before it asked.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_mcp::Era;

use super::{Server, StateKind};
use crate::{
    connection::{CallFailure, Connection},
    error::CallError,
};

/// Whether a server has to be spoken to in the legacy era. All instances share it, and it outlives connections.
#[derive(Debug, Default)]
pub(super) struct OlderEra(watch::Sender<EraNeed>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EraNeed {
    /// The newest era will do.
    #[default]
    Newest,
    /// A tool can ask only in the legacy era.
    Legacy,
    /// The same, but there is no connection in that era.
    Unavailable,
}

/// What SDKs say when a tool asks by a request in the modern era.
const NO_REQUESTS: [&str; 3] = [
    // The SDK for Python.
    "no back-channel for server-initiated requests",
    // FastMCP 4.
    "server-initiated requests is unavailable on",
    // The SDK for TypeScript.
    "Server-to-client requests are not available on protocol revision",
];

const SWITCHED: &str = "toolgate: this server can ask its client only in the legacy era of MCP, and toolgate uses that \
                        era for it from now on. The call was not repeated, because it may have had an effect: call again";
const NOT_SWITCHED: &str = "toolgate: this server can ask its client only in the legacy era of MCP, and toolgate could \
                            not connect to it again in that era: set `\"protocol\": \"legacy\"` at the server, and \
                            restart toolgate";

impl OlderEra {
    /// The era to connect in first.
    pub(super) fn or(&self, era: Option<Era>) -> Option<Era> {
        match *self.0.borrow() {
            EraNeed::Legacy => Some(Era::Legacy),
            EraNeed::Newest | EraNeed::Unavailable => era,
        }
    }

    /// Waits until the legacy era is needed.
    pub(super) async fn needed(&self) {
        let mut needs = self.0.subscribe();
        if needs.wait_for(|need| *need == EraNeed::Legacy).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Notes that there is no connection in the legacy era.
    pub(super) fn is_unavailable(&self) {
        self.change(EraNeed::Legacy, EraNeed::Unavailable);
    }

    fn change(&self, from: EraNeed, to: EraNeed) {
        self.0.send_if_modified(|need| {
            let is_changed = *need == from;
            if is_changed {
                *need = to;
            }
            is_changed
        });
    }
}

impl Server {
    /// Connects in the legacy era if the outcome of a call says that its tool needs it. Returns `None` if it does not,
    /// and else whether there is such a connection now.
    pub(super) async fn use_older_era(
        &self,
        connection: &Connection,
        outcome: &Result<Value, CallFailure>,
    ) -> Option<bool> {
        // Another node does this for its own servers.
        let may_need = connection.handshake.era == Era::Modern && !connection.state.is_node();
        if !may_need || !wanted_to_ask(outcome) {
            return None;
        }
        let era = self.asking.older_era();
        era.change(EraNeed::Newest, EraNeed::Legacy);
        let (mut needs, mut states) = (era.0.subscribe(), self.state.subscribe());
        let unavailable = needs.wait_for(|need| *need == EraNeed::Unavailable);
        let legacy = states.wait_for(|current| {
            let era = current.connection.as_ref().map(|connection| connection.handshake.era);
            era == Some(Era::Legacy) || current.state.kind == StateKind::Stopped
        });
        let limit = self.spec.limits.connect + Duration::from_secs(1);
        let is_legacy = tokio::select! {
            _ = unavailable => false,
            found = legacy => found.is_ok_and(|current| current.connection.is_some()),
            () = tokio::time::sleep(limit) => false,
        };
        Some(is_legacy)
    }

    /// Connects in the legacy era, and returns the connection if there is one.
    pub(super) async fn connect_older(&self) -> Option<super::supervise::Connected> {
        self.note("a tool can ask only in the legacy era; connecting in that era");
        let connected = tokio::select! {
            () = self.stop.cancelled() => return None,
            connected = self.connect_in_time(Some(Era::Legacy)) => connected,
        };
        match connected {
            Ok(connected) if connected.0.handshake.era == Era::Legacy => return Some(connected),
            Ok((connection, ..)) => connection.raw.close().await,
            Err(failure) => self.note(&failure.reason),
        }
        self.note("there is no connection in the legacy era");
        self.asking.older_era().is_unavailable();
        None
    }
}

/// Whether the outcome of a call is what SDKs make of a question in the modern era.
fn wanted_to_ask(outcome: &Result<Value, CallFailure>) -> bool {
    let says = |text: &str| NO_REQUESTS.iter().any(|said| text.contains(said));
    match outcome {
        Ok(result) if result.get("isError") == Some(&json!(true)) => {
            let content = result.get("content").and_then(Value::as_array).into_iter().flatten();
            let mut texts = content.filter_map(|block| block.get("text")?.as_str());
            texts.any(says)
        }
        Err(CallFailure::Failed(CallError::Refused { error, .. })) => says(&error.message),
        _ => false,
    }
}

/// Adds to the outcome of a call whose tool wanted to ask what the caller can do.
pub(super) fn advise(outcome: &mut Result<Value, CallFailure>, is_switched: bool) {
    let advice = if is_switched { SWITCHED } else { NOT_SWITCHED };
    match outcome {
        Ok(result) => {
            let content = result.get_mut("content").and_then(Value::as_array_mut);
            if let Some(content) = content {
                content.push(json!({ "type": "text", "text": advice }));
            }
        }
        Err(CallFailure::Failed(CallError::Refused { error, .. })) => {
            error.message = format!("{} ({advice})", error.message);
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::ErrorObject;

    use super::*;

    fn is_known_refusal(message: &str) -> bool {
        let error = ErrorObject::new(-32600, message, None);
        let (server, tool) = ("s".into(), "t".to_owned());
        wanted_to_ask(&Err(CallFailure::Failed(CallError::Refused { server, tool, error })))
    }

    fn is_known_result(text: &str, is_error: bool) -> bool {
        let content = json!([{ "type": "text", "text": text }]);
        wanted_to_ask(&Ok(json!({ "content": content, "isError": is_error })))
    }

    #[test]
    fn the_errors_of_sdks_are_known() {
        let python = "Cannot send 'roots/list': this transport context has no back-channel for \
                      server-initiated requests.";
        let fastmcp =
            "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.";
        let typescript = "Server-to-client requests are not available on protocol revision 2026-07-28: \
                          return inputRequired(...) instead";
        for said in [python, fastmcp, typescript] {
            assert!(is_known_refusal(said), "{said}");
            assert!(is_known_result(said, true), "{said}");
            assert!(!is_known_result(said, false), "a result that tells of it: {said}");
        }
        assert!(!is_known_refusal("Method not found"));
    }
}
