//! The tools of many MCP servers behind one library.
//!
//! A [`Host`] connects to servers and knows their tools. A [`Session`] is one conversation with it:
//! it searches, inspects and calls tools, and runs scripts that call them. [`HostBuilder`] makes a
//! host from the `mcpServers` file that a client such as Claude Code, Cursor or VS Code already has.
//!
//! ```no_run
//! use toolgate::HostBuilder;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let host = HostBuilder::new()
//!     .config_file("mcp.json")?
//!     .environment(|name| std::env::var(name).ok())
//!     .state_folder("/var/lib/my-agent/toolgate")
//!     .start()?;
//! let session = host.session();
//! for tool in session.list_tools().await {
//!     println!("{}", tool["name"]);
//! }
//! host.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! The library reads no environment variable and no home folder by itself. The caller passes what a
//! configuration may use: see [`HostEnvironment`]. What the caller leaves out is not used. Without a
//! state folder nothing is cached, recorded or remembered. Without a [worker](HostBuilder::worker)
//! no script runs. Without a [launcher](use_launcher), a process that has left the session of its server
//! survives if the server crashes or the program is killed.
//!
//! A program that needs more than a running host, such as the problems of a file or the settings of
//! each namespace, reads a [`HostConfig`] and starts hosts from its settings.

mod builder;
mod env_files;
mod host_config;
mod pins;
mod server;

pub use builder::HostBuilder;
pub use env_files::{env_file_path, parse_file, read_env_file};
pub use host_config::{
    EncoderSetupError, HostConfig, HostConfigError, HostEnvironment, StateFolderError, Variables,
    audit_limits, code_settings,
};
pub use pins::{PinFile, PinFileError, PinFileProblem};
pub use server::AuthorizerError;
pub use toolgate_config::{Configuration, EnvFileError, ExposureMode, Format, Problem};
pub use toolgate_host::{Host, HostSettings, ServerSetup, Session};
pub use toolgate_sandbox::PoolSettings;
pub use toolgate_store::{Store, VaultKey};
pub use toolgate_upstream::{
    Endpoint, HttpEndpoint, ServerSpec, StdioEndpoint, launcher_main, use_launcher,
};
