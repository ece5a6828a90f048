//! The tools of many MCP servers, and your own functions, for the agent that you write.
//!
//! A [`Host`] connects to servers and knows their tools. A [`Session`] is one conversation with it: it
//! searches, inspects and calls tools, and runs scripts that call them. A policy authorises every call,
//! whoever makes it.
//!
//! ```no_run
//! use toolgate::{Approval, Host, Script, Stdio, json};
//!
//! /// Doubles a number.
//! #[toolgate::tool]
//! async fn double(
//!     /// The number.
//!     n: i64,
//! ) -> i64 {
//!     n * 2
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     toolgate::init();
//!     tokio::runtime::Runtime::new()?.block_on(run())
//! }
//!
//! # #[derive(serde::Deserialize)]
//! # struct Issue { number: u64 }
//! async fn run() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::builder()
//!         .config_file("mcp.json")?
//!         .server(Stdio::new("time", "mcp-server-time"))
//!         .tool(double)
//!         .on_approval(|_question| async { Approval::Once })
//!         .start()
//!         .await?;
//!     let mut session = host.session();
//!     session.preload(["time_get_current_time"])?;
//!     let hits = session.search("create an issue").limit(3).await?;
//!     let issue: Issue = session.call(&hits[0].name, json!({ "title": "x" })).await?.parse()?;
//!     let run = session.run(Script::typescript("return await double({ n: 21 })")).await?;
//!     assert_eq!(run.parse::<i64>()?, 42);
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Where to start
//!
//! - [`Host::builder`] lists everything that a host can be made of.
//! - [`init`] belongs first into `main`: scripts run in processes of your own program.
//! - [`tool`](macro@tool) and [`FunctionTool`] make tools of your functions.
//! - [`HostBuilder::on_approval`] decides about calls that the policy asks about.
//! - [`Session::loaded`] is the list for your model, and [`Session::answer`] answers what it calls.
//! - [`Chat`] asks a model, and answers its calls with the tools of a session.
//! - [`Host::events`] reports calls, scripts and servers as they happen.
//!
//! The examples of this crate (`embed`, `functions`, `approval` and `chat`) are whole programs, which the tests
//! run.
//!
//! # Names
//!
//! Every tool has one name in search, in calls and in scripts: `server_tool`, or the name of a function as
//! it is. If two tools would have the same name, both names get a hash, so that a name never silently
//! becomes the name of another tool.
//!
//! # Types of other crates
//!
//! The API has types of this crate only, with three exceptions that every program around JSON shares:
//! [`Value`] of `serde_json`, because a tool returns any JSON, and a copy of that type would have to be
//! converted at every call; and the traits of `serde` and `schemars` in bounds, because your types
//! implement them. [`json`], [`Value`] and [`schemars`] are re-exported.

mod approval;
mod builder;
mod call;
mod chat;
mod details;
mod endpoints;
mod env_files;
mod event;
mod function;
mod function_server;
mod host;
mod host_config;
mod pins;
mod role;
mod saved_policy;
mod script;
mod search;
mod server;
mod session;
mod session_tools;
mod stored_values;

pub use approval::{Approval, ApprovalQuestion};
pub use builder::{HostBuilder, StartError};
pub use call::{ParseResultError, ToolCallError, ToolResult, UnknownTool};
pub use chat::{AskError, Chat, ChatCancel, ChatEvent, Model, ModelPrices};
pub use details::{LoadedTool, ModeDecision, SessionMode, ToolDetails};
pub use endpoints::{AddedServer, Http, Stdio};
pub use event::{Event, EventCall, EventStream};
pub use function::FunctionTool;
pub use host::{Host, ServerStatus, ServerSummary};
pub use role::init;
pub use schemars;
pub use script::{ParseRunError, RunEnd, RunError, Script, ScriptCall, ScriptRun};
pub use search::{Search, SearchFailed, SearchHit, SearchResults};
pub use serde_json::{Value, json};
pub use session::Session;
/// Makes a tool of a function: its name, its parameters and its documentation are those of the tool.
///
/// The doc comment is what a model reads, so a function needs one. The parameters are the arguments, with
/// their doc comments. An `Option` may be left out by the model. The types of parameters implement
/// `serde::Deserialize` and `schemars::JsonSchema`, and the type of the result `serde::Serialize` and
/// `schemars::JsonSchema`. A function that returns a `Result` passes the text of its error to the model.
///
/// ```
/// /// Looks up the stock of an article.
/// #[toolgate::tool(read_only)]
/// async fn stock(
///     /// The number of the article.
///     article: u32,
///     /// Which store; all of them if left out.
///     store: Option<String>,
/// ) -> Result<u64, String> {
///     match article {
///         7 => Ok(if store.is_some() { 2 } else { 12 }),
///         _ => Err(format!("there is no article {article}")),
///     }
/// }
///
/// let builder = toolgate::Host::builder().tool(stock);
/// ```
///
/// The attribute turns the name of the function into a value that [`HostBuilder::tool`] takes. The function
/// itself is `stock::call`.
///
/// # State
///
/// A first parameter with `#[state]` comes from your program and not from the model. `with` passes it, and
/// each call gets a clone:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
///
/// /// Counts up.
/// #[toolgate::tool]
/// fn count(#[state] counter: Arc<AtomicU64>, by: u64) -> u64 {
///     counter.fetch_add(by, Ordering::Relaxed) + by
/// }
///
/// let counter = Arc::new(AtomicU64::new(0));
/// let builder = toolgate::Host::builder().tool(count.with(Arc::clone(&counter)));
/// ```
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `read_only`, `destructive`, `idempotent` | what the policy and models know of the function |
/// | `deferred`, `always_loaded` | whether sessions list it from the start |
/// | `name = "…"`, `title = "…"` | another name, and a title for people |
/// | `timeout_seconds = 5` | how long a call may take |
///
/// [`FunctionTool`] has a method for each of them.
pub use toolgate_macros::tool;

/// What the program `toolgate` uses besides. It is no part of the API and may change at any time.
#[doc(hidden)]
pub mod setup {
    pub use crate::env_files::{FileAccess, env_file_path, parse_file, read_env_file};
    pub use crate::host_config::{
        EncoderSetupError, HostConfig, HostConfigError, HostEnvironment, StateFolderError,
        Variables, audit_limits, code_settings, configuration_name,
    };
    pub use crate::pins::{PinFile, PinFileError, PinFileProblem};
    pub use crate::saved_policy::{PolicyContent, SavedPolicy};
    pub use crate::server::AuthorizerError;
    pub use crate::session_tools::{SavedChat, SessionTools};
    pub use crate::stored_values::{read_stored, read_stored_file, vault_name};
    pub use toolgate_config::{
        CommandTime, Configuration, EnvFileError, ExposureMode, Format, Problem, StoredReference,
        StoredValueError,
    };
    pub use toolgate_host::HostSettings;
    pub use toolgate_sandbox::PoolSettings;
    pub use toolgate_store::{Store, VaultKey};
    pub use toolgate_upstream::{launcher_main, use_launcher};
}

/// What the attribute `tool` writes into a program.
#[doc(hidden)]
pub mod __private {
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize};
}
