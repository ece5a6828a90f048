//! The MCP face of a [`Host`](toolgate_host::Host), or of one server: any client sees one server.
//!
//! What answers is a [`Face`]; what makes one for each client is a [`Source`]. Endpoints
//! ([`serve_stdio`], [`serve_http`]) do everything about framing, handshakes, sessions and the two
//! eras of the protocol, so that a face knows none of it. Messages are JSON from end to end, because
//! what servers sent must arrive as it was sent, and types would drop what they do not know.
//!
//! > **Invariant:** in stdio mode stdout carries MCP alone.

mod aggregate;
mod caller;
mod conversation;
mod door;
mod era;
mod face;
mod greeting;
mod handshake;
mod http;
mod link;
mod message;
mod passthrough;
mod results;
mod running;
mod stdio;
mod token;

pub use aggregate::AggregateSource;
pub use caller::Caller;
pub use door::{Credentials, Door, IssuerError, IssuerSettings};
pub use era::Era;
pub use face::{Asked, Client, Face, Source};
pub use greeting::Greeting;
pub use http::{HttpLimits, HttpSettings, Namespace, serve_http};
pub use link::Link;
pub use passthrough::PassthroughSource;
pub use stdio::{serve_lines, serve_stdio};
