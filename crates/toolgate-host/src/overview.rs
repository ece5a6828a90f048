//! What `toolgate status` and `toolgate tokens` tell of a host.

use serde::Serialize;
use toolgate_catalog::{Exposure, ServerName};
use toolgate_mcp::Era;
use toolgate_upstream::StateKind;

use crate::host::Host;

/// One server's row.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerOverview {
    /// The server.
    pub server: ServerName,
    /// `ready`, `idle`, `connecting`, `failed`, `disabled` or `stopped`.
    pub state: &'static str,
    /// Whether it is left alone until it is needed.
    pub lazy: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a person can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What is wrong with its tools; they are served all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The protocol version that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The lifecycle it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// How many tools are known.
    pub tools: usize,
    /// What their definitions cost a context window.
    pub tokens: u64,
    /// Which of them a session starts with, by exposed name.
    pub loaded: Vec<String>,
    /// Which of them have to be searched for.
    pub deferred: Vec<String>,
}

impl Host {
    /// A row for each server, in the order of the configuration.
    pub fn overview(&self, exposure: &Exposure) -> Vec<ServerOverview> {
        let catalog = self.catalog().read();
        catalog
            .servers()
            .map(|entry| {
                let name = entry.name.as_str();
                let state = self.servers().state(name).unwrap_or_default();
                let tools = catalog.tools_of(name);
                // What is switched off is there for nobody.
                let seen = tools.iter().filter(|_| state.kind != StateKind::Disabled);
                let (loaded, deferred): (Vec<_>, Vec<_>) =
                    seen.partition(|tool| exposure.loads(tool, entry));
                let names = |tools: Vec<&toolgate_catalog::Tool>| {
                    tools.into_iter().map(|tool| tool.name.to_string()).collect()
                };
                let failure = state.failure.filter(|_| state.kind != StateKind::Ready);
                ServerOverview {
                    server: entry.name.clone(),
                    state: state_name(state.kind),
                    lazy: self.is_lazy(&entry.name),
                    reason: failure.as_ref().map(|failure| failure.reason.clone()),
                    action: failure.map(|failure| failure.action),
                    problems: state.problems.iter().map(ToString::to_string).collect(),
                    protocol_version: state
                        .handshake
                        .as_ref()
                        .map(|handshake| handshake.protocol_version.clone()),
                    era: state.handshake.as_ref().map(|handshake| handshake.era),
                    tools: tools.len(),
                    tokens: tools.iter().map(|tool| u64::from(tool.definition.tokens())).sum(),
                    loaded: names(loaded),
                    deferred: names(deferred),
                }
            })
            .collect()
    }
}

fn state_name(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Idle => "idle",
        StateKind::Connecting => "connecting",
        StateKind::Ready => "ready",
        StateKind::Failed => "failed",
        StateKind::Disabled => "disabled",
        StateKind::Stopped => "stopped",
    }
}
