//! Servers that run once in a fleet: one node has the process, and the others send their requests to that node.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use toolgate_catalog::ServerName;
use toolgate_mcp::client::{ConnectFailure, HttpEndpoint};

/// Finds the places of servers that run once in a fleet.
pub trait ServerPlaces: fmt::Debug + Send + Sync {
    /// The place of a server. Servers of the same scope are the same one: they run the same program for the same
    /// namespace.
    fn place_of(&self, server: &ServerName, scope: &str) -> Arc<dyn ServerPlacement>;
}

/// Says where one server runs.
pub trait ServerPlacement: fmt::Debug + Send + Sync {
    /// Identifies the server among those of all nodes.
    fn scope(&self) -> &str;

    /// Whether this node has the server and may use it. Does not wait.
    fn is_here(&self) -> bool;

    /// Says where the server runs, for a new connection. If no living node has it, this node takes it.
    fn place(self: Arc<Self>) -> BoxFuture<'static, Result<PlacedServer, ConnectFailure>>;

    /// Waits until the server no longer runs where it was placed.
    fn moved(self: Arc<Self>, placed: PlacedServer) -> BoxFuture<'static, ()>;
}

/// Where a server runs.
#[derive(Debug, Clone)]
pub struct PlacedServer {
    /// The node.
    pub node: String,
    /// Counts how often the server has changed its node.
    pub epoch: u64,
    /// Where to send requests; `None` for this node.
    pub elsewhere: Option<HttpEndpoint>,
}
