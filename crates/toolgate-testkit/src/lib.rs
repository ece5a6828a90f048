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
//!
//! # Servers that ask
//!
//! [`Builtin::AskForm`], [`Builtin::AskUrl`], [`Builtin::AskModel`] and [`Builtin::AskAll`] ask the
//! client before they answer, in either era and over either transport: a legacy fixture sends
//! requests of its own, a modern one answers `input_required` with a `requestState` that it wants
//! back as it was. All take `rounds` (how often, 1 unless said) and `with` (fields for the
//! parameters of each question), and answer with `structuredContent: {"answers": [round, …]}`. A
//! round maps the keys `form`, `url`, `model` and `roots` to the client's results; a legacy
//! client's refusal is `{"error": …}` in that place. [`Builtin::Log`] sends `notifications/message`,
//! and [`Builtin::Client`] answers with what the client said of itself.
//!
//! # Methods of no protocol
//!
//! [`Fixture::with_method`] answers any method, and [`Fixture::with_capability`] declares it. Beside
//! those every fixture has a few of its own, to see what of a message arrives:
//!
//! | method | what it does |
//! |---|---|
//! | `fixture/echo` | its parameters are the result |
//! | `fixture/fail` | its parameters `{code, message, data}` are the error |
//! | `fixture/notify` | sends the notification `{method, params}`; with `toAll` to whoever listens |
//! | `fixture/ask` | asks `ask` (`{method, params}`) of the client; the answer is the result |
//! | `fixture/heard` | `{heard: [{method, params}], listens: [params]}`: the last notifications of clients, and what they listen to |

mod authorization;
mod binary;
mod builtin;
mod collector;
mod embeddings;
mod engine;
mod error;
mod faults;
mod fixture;
mod http;
mod issuer;
pub mod malformed;
mod model;
mod outbox;
mod peer;
#[cfg(unix)]
mod postgres;
mod questions;
mod raw_client;
mod real_servers;
mod registry;
mod reply;
mod scripted_model;
mod sse;
mod stdio;
mod time;
mod tools;

pub use authorization::{
    AuthorizationFault, AuthorizationOptions, AuthorizationRecord, AuthorizationServer, Discovery,
    PERSON, Visited, send_form, visit, visit_with,
};
pub use binary::{FixtureEntry, conformance_binary, fixture_binary, program_binary};
pub use builtin::Builtin;
pub use collector::{CollectedMetric, CollectedSpan, Collector};
pub use embeddings::{EmbeddingsEndpoint, EmbeddingsFault};
pub use engine::TaskPlan;
pub use error::TestkitError;
pub use faults::{AnswerFault, BrokenAnswer, Cursors, Faults, Pages, StartupExit, StrayOutput};
pub use fixture::{ArgumentAnswer, Fixture, FixtureEra, HttpAnswers, HttpOptions, ProbeRefusal};
pub use http::RunningHttp;
pub use issuer::{Issuer, IssuerFault, SigningKey};
pub use model::{ModelEndpoint, ModelScript};
#[cfg(unix)]
pub use postgres::{PausedPostgres, Postgres};
pub use raw_client::RawClient;
pub use real_servers::{RealServer, RealServers, installed_servers, real_servers};
pub use registry::{RegistryEndpoint, RegistryFault};
pub use scripted_model::ScriptedModel;
pub use sse::PostAddress;
pub use time::{deadline, scaled, until, within};
