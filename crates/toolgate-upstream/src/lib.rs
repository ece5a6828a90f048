//! The MCP client side: connect, probe, list, call, restart.
//!
//! [`Upstream`] holds one supervisor a server. Each connects on its own, with its own deadline,
//! so that a slow or dead server is a [`ServerState`] and never a delay for another. What happens
//! is told to an [`ServerObserver`].
//!
//! rmcp does the protocol: requests and their answers, cancellation, both lifecycles, Streamable
//! HTTP. Around it stand three things of our own:
//!
//! - a **raw path** (`raw`): results reach us as the JSON that was sent. rmcp's typed model loses
//!   fields of one tool in four and refuses a whole list for one bad tool;
//! - a **tap** (`tap`) between rmcp and the transport, which sees messages in their order;
//! - **processes** (`process`) that are started in a group of their own and never outlive us.
//!
//! A [`Line`] is the other way to a server: one connection for one client, over which everything
//! passes as it was sent.
//!
//! > **Invariant:** a call that may have had an effect is never repeated.

mod auth;
mod backoff;
mod clock;
mod connection;
mod error;
mod handshake;
mod http;
mod input;
mod input_handler;
mod line;
mod lines;
mod listing;
mod process;
mod questions;
mod raw;
mod reasons;
mod redact;
mod server;
mod spec;
mod sse;
mod stdio;
mod tap;
mod ticket;
mod turns;
mod typed;
mod upstream;
mod watchdog;

pub use auth::{
    AuthorizationSettings, Authorizer, CallbackListener, CredentialLock, CredentialStore,
    CredentialStoreError, Login, LoginCredentials, LoginError, LoginState, LogoutOutcome,
    MemoryCredentialStore,
};
pub use connection::{CallOptions, Progress};
pub use error::{CallError, ConnectFailure};
pub use handshake::Handshake;
pub use input_handler::{ClientId, InputHandler, InputRequest, can_answer};
pub use line::{ConnectionClient, ConnectionHandler, RawConnection, RawRequest, RequestError};
pub use listing::{Listing, ListingProblem};
pub use redact::Redactor;
pub use server::{ServerState, StateKind};
pub use spec::{Endpoint, HttpEndpoint, ServerLimits, ServerSpec, StartMode, StdioEndpoint};
pub use toolgate_mcp::HttpDialect;
pub use upstream::{OutputSource, ServerObserver, ServerPool, Upstream};
