//! Fixture MCP servers that misbehave on request, and the real servers that tests run against.
//!
//! A [`Fixture`] says what a server offers and how it misbehaves. A test hands it to the
//! `toolgate-fixture` binary as one argument and talks to the child process, or serves it over HTTP
//! in its own process:
//!
//! ```no_run
//! use toolgate_testkit::{Builtin, Faults, Fixture};
//!
//! let fixture = Fixture::new("flaky")
//!     .with_builtins([Builtin::Echo, Builtin::Counter])
//!     .with_faults(Faults { crash_after_calls: Some(3), ..Faults::default() });
//! // The value of one `mcpServers` entry: `{"command": "…/toolgate-fixture", "args": […]}`.
//! let entry = fixture.entry()?.to_json();
//! # Ok::<(), toolgate_testkit::TestkitError>(())
//! ```
//!
//! The servers are written on raw JSON, without an SDK, because an SDK would not let them send the
//! broken messages that tests need. [`malformed`] has definitions that real servers really send, and
//! [`RawClient`] talks to any stdio server in the same raw terms.

mod authorization;
mod binary;
mod builtin;
mod embeddings;
mod engine;
mod error;
mod faults;
mod fixture;
mod http;
pub mod malformed;
mod model;
mod outbox;
mod peer;
mod raw_client;
mod real_servers;
mod reply;
mod sse;
mod stdio;
mod tools;

pub use authorization::{
    AuthorizationFault, AuthorizationOptions, AuthorizationRecord, AuthorizationServer, Discovery,
    Visited, visit,
};
pub use binary::{Entry, fixture_binary};
pub use builtin::Builtin;
pub use embeddings::{EmbeddingsEndpoint, EmbeddingsFault};
pub use error::TestkitError;
pub use faults::{AnswerFault, BrokenAnswer, Cursors, Faults, Pages, StartupExit, StrayOutput};
pub use fixture::{Era, Fixture, HttpAnswers, HttpOptions, ProbeRefusal};
pub use http::RunningHttp;
pub use model::{ModelEndpoint, ModelScript};
pub use raw_client::RawClient;
pub use real_servers::{RealServer, RealServers, real_servers};
pub use sse::PostAddress;
