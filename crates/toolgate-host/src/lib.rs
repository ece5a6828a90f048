//! Everything put together: the crate that the author of an agent embeds.
//!
//! A [`Host`] connects to servers and knows their tools. A [`Session`] is one conversation with
//! it: what that conversation is shown, what it has loaded, and the meta-tools through which it
//! finds and calls the rest. The MCP gateway and the command line are thin faces over these two.
//!
//! ```no_run
//! use toolgate_host::{Host, HostSettings, ServerSetup};
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
//! let host = Host::start(HostSettings::new(vec![ServerSetup::new(time)]));
//! let session = host.session();
//! for tool in session.list_tools().await {
//!     println!("{}", tool["name"]);
//! }
//! host.shutdown().await;
//! # }
//! ```

mod code;
mod ears;
mod enabling;
mod encoding;
mod find;
mod guarding;
mod host;
mod knowledge;
mod meta;
mod offers;
mod overview;
mod recent;
mod screen;
mod session;
mod settings;
mod single;
mod supply;
mod switches;
mod texts;
mod traced;
mod usage;
mod words;

pub use code::{CodeRun, CodeSettings, NotResumed, Resume, UnknownCall, UnknownCalls, WaitingCall};
pub use encoding::{EncodeTools, EncoderSetup, VectorProgress};
pub use host::Host;
pub use meta::{MetaTool, one_line};
pub use offers::{News, Notification, Watcher};
pub use overview::ServerOverview;
pub use screen::{Pin, PinDefinitions, Withheld, Withholding};
pub use session::{CallFailure, Session};
pub use settings::{AuditSettings, Connect, HostSettings, ServerSetup, Subagent};
pub use single::ServerGuard;
pub use supply::Supply;
