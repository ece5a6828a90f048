//! The MCP server side: one server in front of a [`ToolHost`](toolgate_host::ToolHost), or of one MCP server.
//!
//! A [`McpService`] answers the requests of one client; a [`ServiceFactory`] creates one for each client.
//! The transports ([`serve_stdio`], [`serve_http`]) do framing, handshakes, sessions and the two eras of
//! the protocol. Messages are JSON from end to end: types would drop the fields that they do not know.
//!
//! > **Invariant:** in stdio mode, stdout carries only MCP messages.

mod access;
mod aggregate;
mod channel;
mod era;
mod forwarded;
mod http;
mod modern;
mod passthrough;
mod reports;
mod service;
mod session;
mod stdio;

pub use access::{
    AccessControl, Administrator, CredentialRequirement, IssuerError, IssuerSettings,
};
pub use aggregate::{AggregateFactory, instructions_in};
pub use channel::ClientChannel;
pub use era::{Era, ServerInfo};
pub use forwarded::NodeHosts;
pub use http::{
    BrowserPeer, FleetLink, FleetPeers, HttpLimits, HttpSettings, NamespaceRoute, OwnLogins,
    RouteTable, SERVERS_PATH, serve_http,
};
pub use passthrough::PassthroughFactory;
pub use service::{AuthenticatedClient, ClientInfo, IncomingRequest, McpService, ServiceFactory};
pub use stdio::{serve_lines, serve_stdio};
