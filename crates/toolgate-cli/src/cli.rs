//! The arguments of the command line.

mod contents;
mod guard;

use std::{net::SocketAddr, path::PathBuf};

use clap::builder::TypedValueParser as _;
use clap::{Args, Parser, Subcommand, ValueEnum, builder::PossibleValuesParser};
use toolgate_search::StrategyName;

use crate::door;

pub(crate) use guard::{
    Approve, Audit, Definitions, DefinitionsCommand, For, Grants, GrantsCommand, Policy,
    PolicyCommand,
};

/// One MCP server in front of all of yours.
///
/// Your agent sees a handful of tools instead of hundreds: it searches for tools, inspects them, calls
/// them, and runs scripts that call them. Point toolgate at your `mcpServers` file, and your agent at toolgate.
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Start with `toolgate demo`, which needs no configuration. `toolgate tokens --config FILE` \
                  shows what your servers cost. `toolgate serve --stdio --config FILE` is the command \
                  for your agent."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Globals {
    /// Read this configuration: toolgate.json, or the file of Claude, Cursor, VS Code, Windsurf, Gemini, Codex, Zed
    ///
    /// The default is the first of ./toolgate.json, ./toolgate.jsonc, ./.mcp.json and
    /// toolgate/toolgate.json in the user's configuration folder.
    #[arg(long, short, global = true, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Use only the servers of this namespace of the configuration
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Log more to stderr; twice for details, three times for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve all configured servers to an agent, as one MCP server
    Serve(Serve),
    /// Show the state of each server, and what a session lists and why
    Status(Status),
    /// Show what tool definitions cost a context window, with and without toolgate
    Tokens(Tokens),
    /// Create, list and revoke access tokens for HTTP clients
    Token(Token),
    /// Search for tools by what they do
    Search(Search),
    /// Show the full definitions of tools
    Inspect(Inspect),
    /// Call a tool
    Call(Call),
    /// Run a script that calls tools, or resume a run
    Run(Run),
    /// Show past runs of scripts: their calls, times and results
    Runs(Runs),
    /// Log in to a server with a browser
    ///
    /// The login is stored encrypted. The key is in the system's keychain or, where there is none, in a
    /// file that only you can read. `TOOLGATE_VAULT=file` chooses the file; `TOOLGATE_VAULT_KEY` sets a
    /// key of your own, of at least 32 random characters.
    Login(Login),
    /// Log out of a server, and revoke the login there
    Logout(Logout),
    /// Enable a disabled server, or a server of the registry
    Enable(Enable),
    /// Disable a server for new sessions
    Disable(Disable),
    /// List calls and servers that wait for approval, and decide on them
    Approve(Approve),
    /// List the skills and the servers they need
    Skills(Skills),
    /// Show what a server wrote to stderr, and when it started and stopped
    Logs(Logs),
    /// Show or erase the queries that search has learned from
    Usage(Usage),
    /// Show who may call what, or explain the decision on a call
    Policy(Policy),
    /// List grants, or revoke one
    Grants(Grants),
    /// List tools that differ from their approved definitions, and approve them
    Definitions(Definitions),
    /// Show the audit log, or verify that it is complete
    Audit(Audit),
    /// Check the configuration, or print its JSON Schema
    Config(Config),
    /// Show how this system confines scripts
    Doctor(Doctor),
    /// Measure how well search strategies find tools, with labelled queries
    ///
    /// With --config, `hybrid` and `embedding` use the encoder of that file.
    Eval(Eval),
    /// Try everything on built-in servers: the cost, a search, a call, a script
    Demo(Demo),
    /// Print a completion script for a shell
    ///
    /// For example: `toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate`.
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands to a folder
    Man(Man),
    /// Run a script, as a worker of the sandbox
    #[command(hide = true)]
    SandboxWorker,
    /// Serve one of the demo's servers
    #[command(hide = true)]
    DemoServer { name: String },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Serve on stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Serve over HTTP at /mcp of this address, for many clients at once; port 0 takes a free port
    #[arg(long, value_name = "ADDR", value_parser = door::read_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve only this server, unchanged: its tools under their own names, and its other features
    #[arg(long, value_name = "NAME", conflicts_with = "mode")]
    pub(crate) passthrough: Option<String>,
    /// Choose what the agent sees; the default is set in the configuration
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
}

/// What a session lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Deferred above a threshold, else direct
    Auto,
    /// Every tool
    Direct,
    /// The meta-tools, in the style that is configured
    Deferred,
    /// The meta-tools; the list never changes
    Stable,
    /// The meta-tools; found tools are added to the list
    Dynamic,
    /// Search, details and scripts instead of calls
    Code,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// List the tools of each server, and whether they are loaded or deferred
    #[arg(long)]
    pub(crate) tools: bool,
    /// Show the status of this mode, as for `serve`
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// Count in this unit
    #[arg(long, value_name = "UNIT", default_value = "tokens")]
    pub(crate) unit: Unit,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The unit of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Tokens of o200k
    Tokens,
    /// Characters
    Characters,
}

#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is not shown again
    Create {
        /// Name the token; the default is a random name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Let it expire after so many days; the default is never
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
        expires: Option<u64>,
        /// Limit it to this namespace; may be repeated. `default` is the one at /mcp
        #[arg(long = "opens", value_name = "NAMESPACE")]
        namespaces: Vec<String>,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Revoke a token; running gateways refuse it at once
    Revoke {
        /// The name of the token
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What the tool should do; the results of several queries are merged
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Search only this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Show at most so many tools
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Rank with this strategy; the default is set in the configuration
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Option<StrategyName>,
    /// Show this much of each tool
    #[arg(long, value_name = "DETAIL", default_value = "description")]
    pub(crate) detail: Detail,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The parts of a tool that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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
    /// Set one argument; a value that is not JSON is a text
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
    /// The language of the script; the default follows the file name, or is typescript
    #[arg(long, short, value_name = "LANGUAGE", conflicts_with = "resume")]
    pub(crate) language: Option<Language>,
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
    /// Show at most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show a run: its code, its calls in order, its output
    Show {
        /// The id of the run, or the beginning of it
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Repeat a call with an unknown outcome when the run is resumed
    Repeat {
        /// The id of the run, or the beginning of it
        id: String,
        /// The number of the call
        call: u64,
    },
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypeScript and JavaScript
    Typescript,
    /// Python
    Python,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's name in the configuration
    pub(crate) name: String,
    /// Print the URL instead of opening a browser; paste the URL that the login ends at
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Request this scope; may be repeated. The default is set by the configuration or the server
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// Wait at most so many seconds for the login
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The server's name in the configuration
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Enable {
    /// A server of the configuration, or of the registry as NAME or NAME@VERSION
    pub(crate) name: String,
    /// Consent without a question to what a server of the registry runs or contacts
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Disable {
    /// The server's name
    pub(crate) name: String,
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
    /// Show at most so many lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,
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
    /// Select the queries of this tool, by its server's name for it or as `server_tool`
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Select the queries of this server's tools
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration without starting a server
    Check {
        #[command(flatten)]
        output: Output,
    },
    /// Print the JSON Schema of toolgate.json
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Labelled sets, each a JSON object with `corpus` and `queries`; docs/search.md describes them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Measure this strategy; may be repeated, and the first is the baseline. The default is all but
    /// `regex` and `subagent`
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Vec<StrategyName>,
    /// Give the strategies the hints of the set about the wanted server
    #[arg(long)]
    pub(crate) hints: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a strategy's name.
fn strategy() -> impl clap::builder::TypedValueParser<Value = StrategyName> {
    let names = StrategyName::ALL.iter().map(|strategy| strategy.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<StrategyName>())
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
