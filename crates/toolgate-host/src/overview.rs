//! The overview for `toolgate status` and `toolgate tokens`.

use serde::Serialize;
use toolgate_catalog::{Exposure, ServerName};
use toolgate_mcp::Era;
use toolgate_upstream::StateKind;

use crate::host::ToolHost;

/// The row of one server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerOverview {
    /// The server.
    pub server: ServerName,
    /// `ready`, `idle`, `connecting`, `failed`, `disabled` or `stopped`.
    pub state: &'static str,
    /// Whether the server connects only when it is needed.
    pub lazy: bool,
    /// Whether each caller logs in there. Then it is idle until one does.
    #[serde(skip_serializing_if = "is_false")]
    pub per_caller: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a person can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What is wrong with its tools. They are served anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The negotiated protocol version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The era of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// The node that runs it for all nodes, if it runs once in a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How often it was connected again in this process.
    #[serde(skip_serializing_if = "is_none")]
    pub restarts: u32,
    /// How many tools are known.
    pub tools: usize,
    /// The tokens that their definitions cost.
    pub tokens: u64,
    /// The tools that a session starts with, by exposed name.
    pub loaded: Vec<String>,
    /// The tools that have to be searched for.
    pub deferred: Vec<String>,
}

impl ToolHost {
    /// One row a server, in the order of the configuration.
    pub fn overview(&self, exposure: &Exposure) -> Vec<ServerOverview> {
        let catalog = self.catalog().read();
        catalog
            .servers()
            .map(|entry| {
                let name = entry.name.as_str();
                let state = self.servers().overall_state(name).unwrap_or_default();
                let tools = catalog.tools_of(name);
                // The tools of a disabled server are not available.
                let seen = tools.iter().filter(|_| state.kind != StateKind::Disabled);
                let (loaded, deferred): (Vec<_>, Vec<_>) =
                    seen.partition(|tool| exposure.loads(tool, entry));
                let names = |tools: Vec<&toolgate_catalog::Tool>| {
                    tools.into_iter().map(|tool| tool.name.to_string()).collect()
                };
                let failure = state.failure.filter(|_| state.kind != StateKind::Ready);
                ServerOverview {
                    server: entry.name.clone(),
                    state: state_name(state.kind, failure.is_some()),
                    lazy: self.is_lazy(&entry.name),
                    per_caller: self.servers().is_per_caller(name),
                    reason: failure.as_ref().map(|failure| failure.reason.clone()),
                    action: failure.map(|failure| failure.action),
                    problems: state.problems.iter().map(ToString::to_string).collect(),
                    protocol_version: state
                        .handshake
                        .as_ref()
                        .map(|handshake| handshake.protocol_version.clone()),
                    era: state.handshake.as_ref().map(|handshake| handshake.era),
                    node: state.node.clone(),
                    restarts: state.attempts.saturating_sub(1),
                    tools: tools.len(),
                    tokens: tools.iter().map(|tool| u64::from(tool.definition.tokens())).sum(),
                    loaded: names(loaded),
                    deferred: names(deferred),
                }
            })
            .collect()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The state as it is shown. A server that failed and is tried again is one that failed.
fn state_name(kind: StateKind, failed: bool) -> &'static str {
    match kind {
        StateKind::Idle => "idle",
        StateKind::Connecting if failed => "failed",
        StateKind::Connecting => "connecting",
        StateKind::Ready => "ready",
        StateKind::Failed => "failed",
        StateKind::Disabled => "disabled",
        StateKind::Stopped => "stopped",
    }
}
