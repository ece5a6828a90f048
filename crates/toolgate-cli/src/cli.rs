//! The arguments of the command line.

mod chat;
mod contents;
#[cfg(test)]
mod pages;
mod policy;
mod setup;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use toolgate::setup::ExposureMode;
use toolgate_search::StrategyName;

use crate::access;

pub(crate) use chat::{Chat, ChatMode};
pub(crate) use policy::{
    Approve, Audit, Definitions, DefinitionsCommand, For, Grants, GrantsCommand, Policy,
    PolicyCommand,
};
pub(crate) use setup::{Add, ClientTransport, SecretCommand, ServiceCommand, Setup};

/// One MCP server in front of all of yours.
///
/// Your agent sees a few tools instead of hundreds. With them it searches, inspects and calls all other tools,
/// and runs scripts that call them. toolgate reads your `mcpServers` file and starts the servers; your agent
/// starts toolgate.
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Start with `toolgate demo`, which needs no configuration. `toolgate tokens FILE` shows what \
                  your servers cost. `toolgate serve --stdio --config FILE` is the command for your agent."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Read this configuration file: toolgate.json, or the file of Claude, Cursor, VS Code, Windsurf, Gemini,
    /// Codex or Zed
    ///
    /// The default is the first of these files that exists: ./toolgate.json, ./toolgate.jsonc, ./.mcp.json, and
    /// toolgate/toolgate.json in the user's configuration folder. toolgate uses a file of the working folder only
    /// after you have trusted it (`toolgate trust`).
    #[arg(long, short, global = true, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Use only the servers of this namespace of the configuration
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Start without servers; `TOOLGATE_NO_MCP=1` does the same
    #[arg(long, global = true)]
    pub(crate) no_mcp: bool,
    /// Log more to stderr; -vv for details, -vvv for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Globals {
    /// The same with the file that a command names itself.
    pub(crate) fn with_file(&self, file: Option<&Path>) -> Self {
        let config = file.map(Path::to_owned).or_else(|| self.config.clone());
        Self { config, ..self.clone() }
    }
}

impl Command {
    /// The configuration file after the name of the command.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Serve(Serve { file, .. })
            | Self::Status(Status { file, .. })
            | Self::Tokens(Tokens { file, .. })
            | Self::Doctor(Doctor { file, .. })
            | Self::List(List { file, .. })
            | Self::Audit(Audit { file, .. })
            | Self::Config(ConfigCommand::Check { file, .. }) => file.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the servers of all your clients, and let them use toolgate
    ///
    /// It imports the servers into one toolgate.json, starts each once to see what its tools cost, shows the change
    /// of every file, and asks. In the files of clients it adds toolgate, and disables or removes what it has
    /// imported. Comments and everything else stay. A back-up is beside each file. Secrets go into the vault. `toolgate
    /// setup --undo` restores all files. `--client` takes one of: claude-desktop, claude-code, cursor, vscode, windsurf,
    /// antigravity, gemini, qwen, codex, grok, copilot, zed, goose, opencode, kilo, cline, cline-cli, roo, kiro, amazon-q,
    /// amp, crush, junie, warp, lmstudio, kimi, mastra, pi, fx.
    Setup(Setup),
    /// Add a server to the configuration
    Add(Add),
    /// Remove a server from the configuration
    Remove {
        /// The server's name in the configuration
        name: String,
    },
    /// List the servers of the configuration
    List(List),
    /// Run one gateway in the background for all your clients
    ///
    /// The system starts it when you log in: systemd on Linux, launchd on macOS, the Task Scheduler on Windows.
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Store values that a configuration uses as `${keychain:NAME}`
    ///
    /// They are encrypted like logins (see `toolgate login`).
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Serve all configured servers to an agent, as one MCP server
    ///
    /// It watches the configuration and applies edits while it runs: servers come and go, the policy changes, and
    /// sessions stay. It says on stderr what it did, and keeps the old configuration if the new one is broken.
    Serve(Serve),
    /// Show the state of each server, and what a session lists and why
    Status(Status),
    /// Show how many tokens definitions take, with and without toolgate
    Tokens(Tokens),
    /// Create, list and revoke access tokens for HTTP clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// Search for tools by what they do
    Search(Search),
    /// Show the full definitions of tools
    Inspect(Inspect),
    /// Call a tool
    Call(Call),
    /// Run a script that calls tools, or resume a run
    Run(Run),
    /// Talk to a model that uses your servers, or ask it one question
    ///
    /// Every call of the model goes through your policy, and you are asked here. Ctrl-C stops the turn and nothing else.
    /// /help lists the commands within a chat.
    ///
    /// The key of a provider is in the variable that its own programs read, such as `ANTHROPIC_API_KEY`, in
    /// `TOOLGATE_MODEL_KEY`, or stored by --save-key.
    Chat(Box<Chat>),
    /// Show past runs of scripts: their calls, times and results
    Runs(Runs),
    /// Log in to a server with a browser
    ///
    /// toolgate stores the login encrypted. The key is in the system's keychain. If there is no keychain, or with
    /// `TOOLGATE_VAULT=file`, the key is in a file that only you can read. `TOOLGATE_VAULT_KEY` sets your own
    /// key: at least 32 random characters.
    Login(Login),
    /// Log out of a server, and revoke the login there
    Logout {
        /// The server's name in the configuration
        name: String,
    },
    /// Enable a disabled server, or a server of the registry
    Enable(Enable),
    /// Disable a server: refuse its calls, and hide it from new sessions
    Disable {
        /// The server's name
        name: String,
    },
    /// Show what the configuration of a folder would run, and trust it
    ///
    /// toolgate uses the toolgate.json, toolgate.jsonc or .mcp.json of the folder that it is started in only after
    /// you have trusted it. The trust is for the content: after a change, toolgate asks again. A file after
    /// --config needs no trust.
    Trust(Trust),
    /// List calls and servers that wait for approval, and decide on them
    Approve(Approve),
    /// List the skills and the servers they need
    Skills(Skills),
    /// Show what a server wrote to stderr, and its starts and stops
    Logs(Logs),
    /// Show or erase the queries that search has learned from
    Usage(Usage),
    /// Show who may call what, or explain the decision on a call
    Policy(Policy),
    /// List grants, or revoke one
    Grants(Grants),
    /// List definitions that differ from approved ones; approve them
    Definitions(Definitions),
    /// Show the audit log, or verify that it is complete
    Audit(Audit),
    /// Check the configuration, or print its JSON Schema
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check everything: servers, clients, logins, scripts, the disk
    ///
    /// Each line that is not well says what to do. The exit code is 0 if all is well or there are only
    /// warnings, 1 if something does not work, and 2 if nothing can be used.
    Doctor(Doctor),
    /// Show what runs scripts of each language; add or remove one
    ///
    /// Without a configuration it shows what holds by default.
    Engines(Engines),
    /// Measure how well search finds tools, with labelled queries
    ///
    /// With --config, `hybrid` and `embedding` use the encoder of that file.
    Eval(Eval),
    /// Try everything on built-in servers: cost, search, call, script
    Demo(Demo),
    /// Print a completion script for a shell
    ///
    /// For example: `toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate`.
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all pages to a folder
    Man {
        /// Write the pages of all commands to this folder
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Run a script, as a worker of the sandbox
    #[command(hide = true)]
    SandboxWorker,
    /// Serve one of the demo's servers
    #[command(hide = true)]
    DemoServer { name: String },
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Serve on stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve many clients over HTTP, at /mcp of this address; port 0 selects a free port
    #[arg(long, value_name = "ADDR", value_parser = access::read_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve only this server, unchanged: without prefixes and without meta-tools
    #[arg(long, value_name = "NAME", conflicts_with = "mode")]
    pub(crate) passthrough: Option<String>,
    /// Choose which tools the agent sees; the configuration sets the default
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<ExposureMode>,
}

/// The modes, with their names on the command line.
const MODES: [(ExposureMode, &str, &str); 5] = [
    (
        ExposureMode::Auto,
        "auto",
        "Like direct until the definitions exceed a threshold, then like stable, or as the configuration says",
    ),
    (ExposureMode::Direct, "direct", "List every tool"),
    (ExposureMode::Stable, "stable", "List the meta-tools; the list never changes"),
    (
        ExposureMode::Dynamic,
        "dynamic",
        "List the meta-tools; a search adds the tools that it finds",
    ),
    (ExposureMode::Code, "code", "List the meta-tools without `call_tool`: scripts make the calls"),
];

/// Reads a mode.
fn mode() -> impl TypedValueParser<Value = ExposureMode> {
    let old = PossibleValue::new("deferred").hide(true);
    let values = MODES.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values.into_iter().chain([old])).try_map(|chosen| {
        if chosen == "deferred" {
            let instead = ExposureMode::INSTEAD_OF_DEFERRED;
            crate::print::note(format!(
                "warning: `--mode deferred` is an older word\n  hint: {instead}"
            ));
            return Ok(ExposureMode::Deferred);
        }
        let mode = MODES.iter().find(|(_, name, _)| *name == chosen);
        mode.map(|(mode, ..)| *mode).ok_or("unknown mode")
    })
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show it again every two seconds, until Ctrl-C; the servers stay connected
    #[arg(long, short, conflicts_with_all = ["live", "reset", "json"])]
    pub(crate) watch: bool,
    /// List the tools of each server, and whether they are loaded or deferred
    #[arg(long)]
    pub(crate) tools: bool,
    /// Show what a session lists in this mode of `toolgate serve`
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<ExposureMode>,
    /// Show the sessions of running gateways: mode, found and loaded tools, saved tokens
    #[arg(long, conflicts_with_all = ["tools", "mode"])]
    pub(crate) live: bool,
    /// Make a session of a running gateway forget the tools that it has found and loaded
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["tools", "mode"])]
    pub(crate) reset: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Count in this unit
    #[arg(long, value_name = "UNIT", default_value = "tokens")]
    pub(crate) unit: Unit,
    /// Count a text instead: a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Show what a session lists in this mode of `toolgate serve`
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<ExposureMode>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The unit of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Tokens of o200k
    Tokens,
    /// Characters
    Characters,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is not shown again
    Create {
        /// Name the token; the default is a random name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Let the token expire after this number of days; the default is never
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
        expires: Option<u64>,
        /// Limit the token to this namespace, or to /mcp with `default`; may be repeated
        #[arg(long = "opens", value_name = "NAMESPACE")]
        namespaces: Vec<String>,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Revoke a token; running gateways refuse it from now on
    Revoke {
        /// The name of the token
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Write what was measured as pictures to this folder: effect-light.svg and effect-dark.svg
    #[arg(long, value_name = "FOLDER", hide = true, conflicts_with = "json")]
    pub(crate) picture: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Start no server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What the tool should do, in quotes; toolgate merges the results of several queries
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Search only this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Show at most N tools
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Rank with this strategy; the configuration sets the default
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Option<StrategyName>,
    /// Show this much of each tool
    #[arg(long, value_name = "DETAIL", default_value = "description")]
    pub(crate) detail: Detail,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The parts of a tool that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    /// The name
    Name,
    /// The name and the description
    Description,
    /// The name, the description and the input schema
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Names as `toolgate search` shows them
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// A name as `toolgate search` shows it
    pub(crate) name: String,
    /// The arguments as a JSON object; `-` reads them from stdin, `@FILE` from a file
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Set one argument; may be repeated. A value that is not JSON is a text
    #[arg(long = "arg", short = 'a', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A script in TypeScript, JavaScript or Python; `-` reads it from stdin
    #[arg(value_name = "FILE", required_unless_present = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// Read the script in this language: typescript, python, or one that `toolgate engines` lists; the default is
    /// that of the file name, else typescript
    #[arg(long, short, value_name = "LANGUAGE", conflicts_with = "resume")]
    pub(crate) language: Option<String>,
    /// Resume this run without repeating completed calls; FILE, if given, replaces its code
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Repeat calls that were sent and whose outcome is unknown
    #[arg(long, requires = "resume")]
    pub(crate) repeat_unknown: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Show at most N runs, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show a run: its code, its calls in order, its output
    Show {
        /// The id of the run, or the first characters of the id
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Let the next resume of a run repeat a call whose outcome is unknown
    Repeat {
        /// The id of the run, or the first characters of the id
        id: String,
        /// The number of the call
        call: u64,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Engines {
    #[command(subcommand)]
    pub(crate) command: Option<EnginesCommand>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnginesCommand {
    /// Add a WebAssembly component that runs the scripts of a language
    ///
    /// The component is checked, compiled and started once. Its scripts are confined like all others. The program
    /// must be built with the feature `engine-wasm`.
    Add(AddEngine),
    /// Remove the component of a language
    Remove {
        /// The name of the language
        language: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddEngine {
    /// The file of the component
    pub(crate) file: PathBuf,
    /// Name the language; `run_code` chooses it by this name
    #[arg(long, value_name = "NAME")]
    pub(crate) language: String,
    /// Tell models in a sentence how a script calls a tool
    #[arg(long, value_name = "TEXT")]
    pub(crate) hint: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's name in the configuration
    pub(crate) name: String,
    /// Print the URL instead of opening a browser, and read from stdin the URL to which the login redirects
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Request this scope; may be repeated. The default comes from the configuration, else from the server
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// Wait at most this number of seconds for the login
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Enable {
    /// The name of a configured server, or NAME or NAME@VERSION of a server of the registry
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The folder; the default is the working folder
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// List what is trusted
    #[arg(long, conflicts_with = "folder")]
    pub(crate) list: bool,
    /// No longer trust the folder
    #[arg(long, conflicts_with = "list")]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Skills {
    #[command(subcommand)]
    pub(crate) command: Option<SkillsCommand>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// Show a skill with its instructions
    Show {
        /// The name of the skill
        name: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server's name in the configuration
    pub(crate) name: String,
    /// Show the last N lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,
    /// Show new lines as they are written, until Ctrl-C
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Usage {
    #[command(subcommand)]
    pub(crate) command: Option<UsageCommand>,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// Erase queries: those of a tool, of a server, or all
    #[command(arg_required_else_help = true)]
    Erase {
        #[command(flatten)]
        which: Which,
        /// Erase all queries
        #[arg(long, conflicts_with_all = ["tool", "server"])]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Select the queries of this tool, by its exposed name or by the server's own name for it
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Select the queries of this server's tools
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration without starting a server
    Check {
        /// Read this configuration file, as with --config
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Print the JSON Schema of toolgate.json
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Files with labelled sets: each is a JSON object with `corpus` and `queries`; docs/search.md describes them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Measure this strategy; may be repeated, and the first is the baseline. The default is every strategy
    /// except `regex` and `subagent`; `subagent` cannot be measured
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Vec<StrategyName>,
    /// Give each query the hint about its server, if the labelled set has one
    #[arg(long)]
    pub(crate) hints: bool,
    /// Show each query with the rank of its first answer and the first tools that were found
    #[arg(long)]
    pub(crate) queries: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a strategy's name.
fn strategy() -> impl TypedValueParser<Value = StrategyName> {
    let names = StrategyName::ALL.iter().map(|strategy| strategy.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<StrategyName>())
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
