//! The host: what exists.

use toolgate_broker::{ApprovalPrompt, Caller, SessionContext};
use toolgate_catalog::ServerName;
use toolgate_upstream::StateKind;

use std::sync::Arc;

use crate::{
    EventStream, HostBuilder, Session, SessionMode, ToolDetails, approval::ApprovalCallback,
    details::ModeDecision,
};

/// Connects to servers, and knows their tools and the functions of this program.
///
/// Cloning is cheap, and all clones are the same host. A program needs one. [`Host::builder`] makes it,
/// and [`session`](Self::session) begins a conversation with it.
#[derive(Clone)]
pub struct Host {
    inner: toolgate_host::ToolHost,
    approval: Option<ApprovalCallback>,
}

/// A server of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSummary {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: ServerStatus,
    /// How many of its tools are known.
    pub tools: usize,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerStatus {
    /// It is connected, and its tools are known.
    Ready,
    /// It is being connected.
    Connecting,
    /// It is not connected, because no call needs it.
    Idle,
    /// It could not be connected. toolgate tries again.
    Failed {
        /// Why.
        reason: String,
        /// What to do about it.
        action: String,
    },
    /// It is disabled.
    Disabled,
    /// It was stopped, or is unknown.
    Stopped,
}

impl Host {
    /// Collects what a host is made of.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    pub(crate) fn new(inner: toolgate_host::ToolHost, approval: Option<ApprovalCallback>) -> Self {
        Self { inner, approval }
    }

    /// Begins a session of the model in this program.
    pub fn session(&self) -> Session {
        self.session_of("local")
    }

    /// Begins a session of a caller, for a program that serves several people. Grants, runs and limits
    /// belong to the caller, and nobody else can use them. The program authenticates the caller.
    pub fn session_of(&self, caller: impl Into<String>) -> Session {
        let context = SessionContext::new(Caller::model(caller.into()));
        let context = match &self.approval {
            Some(callback) => {
                context.with_prompt(Arc::new(callback.clone()) as Arc<dyn ApprovalPrompt>)
            }
            None => context,
        };
        Session { inner: self.inner.session_of(context) }
    }

    /// All events from now on.
    pub fn events(&self) -> EventStream {
        EventStream::new(self.inner.clone())
    }

    /// The servers and their states, in the order of the configuration. The functions of this program
    /// are the server `functions`.
    pub fn servers(&self) -> Vec<ServerSummary> {
        let catalog = self.inner.catalog().read();
        let servers = catalog.servers().map(|entry| ServerSummary {
            name: entry.name.to_string(),
            status: status(&self.inner, &entry.name),
            tools: catalog.tools_of(entry.name.as_str()).len(),
        });
        servers.collect()
    }

    /// All known tools, whether a session lists them or not. Tools that the policy denies to everybody
    /// are left out.
    pub fn tools(&self) -> Vec<ToolDetails> {
        self.inner.catalog().read().tools().map(ToolDetails::of).collect()
    }

    /// The mode of a session that begins now, and why.
    pub fn mode(&self) -> ModeDecision {
        let exposure = self.inner.exposure();
        ModeDecision { mode: SessionMode::from(exposure.kind), reason: exposure.reason.to_string() }
    }

    /// Waits until each server has listed its tools or failed. [`HostBuilder::start`] waits at most three
    /// seconds for that. Lazy servers are not waited for.
    pub async fn ready(&self) {
        self.inner.all_known().await;
    }

    /// Connects a server now, also a lazy one, and returns its state.
    pub async fn connect(&self, server: &str) -> ServerStatus {
        self.inner.connect(server).await;
        status(&self.inner, &ServerName::from(server))
    }

    /// Ends all connections in order, and writes everything that is still to be written. Call it before
    /// the program ends.
    pub async fn shutdown(&self) {
        self.inner.shutdown().await;
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Host").field("servers", &self.servers()).finish_non_exhaustive()
    }
}

pub(crate) fn status(host: &toolgate_host::ToolHost, server: &ServerName) -> ServerStatus {
    let Some(state) = host.servers().state(server.as_str()) else { return ServerStatus::Stopped };
    match state.kind {
        StateKind::Ready => ServerStatus::Ready,
        StateKind::Connecting => ServerStatus::Connecting,
        StateKind::Idle => ServerStatus::Idle,
        StateKind::Disabled => ServerStatus::Disabled,
        StateKind::Stopped => ServerStatus::Stopped,
        StateKind::Failed => {
            let failure = state.failure;
            let (reason, action) = failure.map(|it| (it.reason, it.action)).unwrap_or_default();
            ServerStatus::Failed { reason, action }
        }
    }
}
