//! The configuration of toolgate: text in, settings and problems out.
//!
//! `toolgate.json` is JSON with comments and trailing commas, and a superset of the `mcpServers`
//! file that people already have. A file of Claude Desktop, Claude Code or Cursor works as it is;
//! those of VS Code (`servers`), Windsurf (`serverUrl`), Gemini CLI (`httpUrl`), Codex
//! (`config.toml`), Zed (`context_servers`), opencode, Kilo and Crush (`mcp`), Amp (`amp.mcpServers`),
//! Goose (`extensions` in YAML) and Continue (a list in YAML) are understood too.
//!
//! This crate is pure: it reads no file and no environment; both are passed as arguments
//! ([`Surroundings`]).
//!
//! ```
//! use toolgate_config::{Format, Transport, parse};
//!
//! let text = r#"{
//!     // Comments and trailing commas are fine.
//!     "mcpServers": {
//!         "github": { "command": "github-mcp", "env": { "TOKEN": "${GITHUB_TOKEN}" } },
//!         "crm": { "url": "https://crm.example/mcp", "lazy": true },
//!     },
//! }"#;
//! let environment = |name: &str| (name == "GITHUB_TOKEN").then(|| "hunter2".to_owned());
//! let configuration = parse(text, Format::Jsonc, "toolgate.json", &environment)?;
//!
//! assert!(configuration.problems.is_empty());
//! let [github, crm] = &configuration.servers[..] else { panic!("two servers") };
//! assert!(matches!(&github.transport, Ok(Transport::Stdio { command, .. }) if command == "github-mcp"));
//! assert!(crm.settings.lazy);
//! # Ok::<(), toolgate_config::ConfigError>(())
//! ```
//!
//! One wrong setting never costs more than the server it belongs to. What cannot be understood
//! becomes a [`Problem`] with its position in the file and the way out; only a file whose syntax is
//! broken is refused as a whole, with a [`ConfigError`].

mod approvals;
mod chat;
mod code_mode;
mod configuration;
mod document;
mod edit;
mod env_file;
mod expand;
mod fleet;
mod gateway;
mod keys;
mod limit;
mod namespace;
mod policy;
mod position;
mod problem;
mod rule;
mod scope;
mod secret;
mod section;
mod server;
mod services;
mod stored;
mod tool_search;
mod transport;

use std::path::Path;

pub use approvals::ApprovalsConfig;
pub use chat::{ChatConfig, ChatPrices};
pub use code_mode::{CodeModeConfig, ExtractConfig, JournalConfig};
pub use configuration::{Configuration, json_schema};
pub use edit::{
    PolicyAddition, PolicyEditError, add_to_policy, policy_in, replace_policy, toml_value,
};
pub use env_file::{
    EnvFileError, EnvFileSyntaxError, EnvFiles, MAX_ENV_FILE_BYTES, env_file_names,
};
pub use expand::{ReferenceStyle, in_references};
pub use fleet::FleetConfig;
pub use gateway::{GatewayConfig, OauthConfig};
pub use keys::CONTAINERS;
pub use namespace::{ExposureMode, NamespaceConfig};
pub use problem::{ConfigError, Problem, ProblemSeverity, SourcePosition};
pub use secret::Secret;
pub use server::{
    FleetMode, LoginConfig, LoginGrant, ServerAuth, ServerConfig, ServerPlace, ServerProtocol,
    ServerSettings, ToolConfig,
};
pub use services::{AuditConfig, RegistryConfig, TelemetryConfig};
pub use stored::{CommandTime, MAX_STORED_BYTES, StoredReference, StoredValueError, StoredValues};
pub use tool_search::{ChatProviderName, EmbeddingsConfig, SubagentConfig, ToolSearchConfig};
pub use toolgate_policy::Presence;
pub use transport::{Transport, fits_header, is_command_line};

/// The largest file that is read.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// The largest number of servers that is read from a file.
pub const MAX_SERVERS: usize = 1_000;
/// The largest number of problems that is reported for a file.
pub const MAX_PROBLEMS: usize = 100;

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML, as Codex uses it.
    Toml,
    /// YAML, as Goose and Continue use it.
    Yaml,
}

impl Format {
    /// The syntax that a file most likely has, by its name: TOML with the extension `.toml`, YAML with
    /// `.yaml` or `.yml`, otherwise JSON.
    pub fn of_file(path: &Path) -> Self {
        let is = |name: &str| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(name));
        if is("toml") {
            Self::Toml
        } else if is("yaml") || is("yml") {
            Self::Yaml
        } else {
            Self::Jsonc
        }
    }
}

/// Looks up an environment variable by its name.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a configuration refers to outside of its text. Nothing of it appears in a message.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Looks up the variables that `${NAME}` refers to.
    pub environment: Environment<'a>,
    /// Reads the files of `envFile`.
    pub env_files: EnvFiles<'a>,
    /// Reads the values of `${file:…}`, `${command:…}` and `${keychain:…}`.
    pub stored: StoredValues<'a>,
    /// When the commands of servers run.
    pub commands: CommandTime,
    /// What `${workspaceFolder}` means; without it, only an editor knows that.
    pub workspace_folder: Option<&'a str>,
    /// The folder that the client works in: the servers that Claude Code has for this folder alone are
    /// read too.
    pub working_folder: Option<&'a str>,
    /// The policy that counts in place of `policy` of the text.
    pub saved_policy: Option<SavedPolicyText<'a>>,
}

/// A policy that is saved outside of the configuration. Where it cannot be read, every call is denied.
#[derive(Debug, Clone, Copy)]
pub struct SavedPolicyText<'a> {
    /// What messages call it.
    pub name: &'a str,
    /// The value of `policy` as JSON, or why it is not known.
    pub text: Result<&'a str, &'a str>,
}

impl<'a> Surroundings<'a> {
    /// Environment variables, and nothing else.
    pub fn of(environment: Environment<'a>) -> Self {
        Self {
            environment,
            env_files: &|_| Err(EnvFileError::NoAccess),
            stored: &|_| Err(StoredValueError::NoAccess),
            commands: CommandTime::default(),
            workspace_folder: None,
            working_folder: None,
            saved_policy: None,
        }
    }
}

/// Reads a configuration that has no files beside it. See [`parse_within`].
pub fn parse(
    text: &str,
    format: Format,
    source_name: &str,
    environment: Environment<'_>,
) -> Result<Configuration, ConfigError> {
    parse_within(text, format, source_name, &Surroundings::of(environment))
}

/// Reads a configuration. `source_name` is what messages call the file.
pub fn parse_within(
    text: &str,
    format: Format,
    source_name: &str,
    surroundings: &Surroundings<'_>,
) -> Result<Configuration, ConfigError> {
    let source = position::SourceText::new(text, source_name);
    let root = document::read(&source, format)?;
    let file = scope::FileReader::new(&source, *surroundings);
    let saved = surroundings.saved_policy.map(|saved| policy::read_saved(saved, surroundings));
    Ok(configuration::read(&root, format, file, saved))
}

/// The content of a configuration as it is written: nothing is expanded and nothing left out but
/// comments. Of several equal keys the last one is there, which is the one that [`parse`] reads.
pub fn as_written(
    text: &str,
    format: Format,
    source_name: &str,
) -> Result<serde_json::Map<String, serde_json::Value>, ConfigError> {
    let source = position::SourceText::new(text, source_name);
    Ok(document::read(&source, format)?.to_json())
}
