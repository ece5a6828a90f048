//! The MCP client side: connect, probe, list, call, restart.
//!
//! [`Upstream`] holds one supervisor a server. Each connects on its own, with its own deadline,
//! so that a slow or dead server is a [`ServerState`] and never a delay for another. What happens
//! is told to an [`Observer`].
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
mod line;
mod lines;
mod listing;
mod process;
mod questions;
mod raw;
mod reasons;
mod redact;
mod respondent;
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
    AuthorizationSettings, Authorizer, CallbackListener, CredentialKeeper, Credentials,
    KeeperError, KeeperLock, Login, LoginError, LoginState, LogoutOutcome, MemoryKeeper,
};
pub use connection::{CallOptions, Progress};
pub use error::{CallError, Failure};
pub use handshake::Handshake;
pub use line::{Line, LineClient, LineError, LineRequest, LineSink};
pub use listing::{Listing, ListingProblem};
pub use redact::Redactor;
pub use respondent::{ClientId, Question, Respondent, can_answer};
pub use server::{ServerState, StateKind};
pub use spec::{Endpoint, HttpDialect, HttpEndpoint, Limits, ServerSpec, Start, StdioEndpoint};
pub use upstream::{Observer, OutputSource, ServerPool, Upstream};
