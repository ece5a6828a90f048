//! The assembly of servers, catalog, search, broker and sandbox.
//!
//! A [`ToolHost`] connects to servers and knows their tools. A [`ToolSession`] is one session of a client with
//! it: what the session is shown, what it has loaded, and the meta-tools that find and call the rest.
//! The MCP gateway and the command line are thin layers over these two.
//!
//! ```no_run
//! use toolgate_host::{ToolHost, HostSettings, ServerSetup};
//! use toolgate_upstream::{Endpoint, ServerSpec, StdioEndpoint};
//!
//! # async fn example() {
//! let endpoint = Endpoint::Stdio(StdioEndpoint {
//!     command: "mcp-server-time".into(),
//!     args: vec![],
//!     env: Default::default(),
//!     cwd: None,
//! });
//! let time = ServerSpec::new("time", endpoint);
//! let host = ToolHost::start(HostSettings::new(vec![ServerSetup::new(time)]));
//! let session = host.session();
//! for tool in session.list_tools().await {
//!     println!("{}", tool["name"]);
//! }
//! host.shutdown().await;
//! # }
//! ```

mod activity;
mod code;
mod deprecated;
mod directory;
mod enabled_servers;
mod enabling;
mod encoding;
mod entry_filter;
mod events;
mod explaining;
mod extensions;
mod finding;
mod groups;
mod host;
mod instructions;
mod late;
mod live_catalog;
mod live_sessions;
mod meta;
mod other_indexes;
mod overview;
mod passthrough;
mod program;
mod ranking;
mod recent_searches;
mod reload;
mod resources;
mod run_view;
mod session;
mod settings;
mod spans;
mod tool_filter;
mod tool_text;
mod usage;
mod what_if;

pub use activity::{CallActivity, ServerCalls};
pub use code::{
    ArgumentKind, CheckedScript, CodeCompletion, CodeCompletions, CodeMode, CodeRun, CodeSettings,
    ExtractModel, ExtractSettings, GraphCall, GraphEdge, Resume, ResumeError, RunGraph,
    SandboxUnavailable, UnknownCall, UnknownCalls, WaitingCall, built_in_language,
};
pub use directory::ServerDirectory;
pub use encoding::{EncodeTools, EncoderSetup, VectorProgress};
pub use entry_filter::HeldReason;
pub use events::{CallFacts, CallOutcome, HostEvent, HostEvents};
pub use explaining::{ExplainedSearch, ExplainedTool, StrategyPlace};
pub use extensions::ExtensionNotifications;
pub use finding::{FoundStep, FoundTool, FoundTools, ResultBudget, ToolQuery};
pub use host::{ToolHost, UnsearchedServer};
pub use late::ClientList;
pub use live_sessions::LiveSession;
pub use meta::{MetaTool, PythonKind, one_line};
pub use overview::ServerOverview;
pub use passthrough::PassthroughGuard;
pub use program::ProviderProgram;
pub use resources::{
    JudgedEntry, NodeFilter, NodeListener, NotificationStream, ServerNotification, Subscriber,
};
pub use run_view::{RunFlow, RunFlowEnd, RunStanding, error_message};
pub use session::{CallFailure, ToolSession};
pub use settings::{AuditSettings, Connect, HostSettings, ServerSetup, SubagentSettings};
pub use tool_filter::{HiddenReason, HiddenTool, PinWriter, WritePins};
pub use toolgate_broker::CallLimiter;
pub use what_if::{ChangedDecision, JudgedCall, PolicyWhatIf, WHAT_IF_CALLS};
