//! The arguments, as they are written.

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
/// Your agent sees a handful of tools instead of hundreds: it searches, inspects, calls, and runs
/// scripts that call. Point toolgate
/// at the `mcpServers` file you have, and your agent at toolgate.
#[derive(Debug, Parser)]
#[command(
    name = "toolgate",
    version,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Start with `toolgate demo`, which needs nothing. Then `toolgate tokens --config FILE` \
                  shows what your servers cost a context, and `toolgate serve --stdio --config FILE` \
                  is the command to give to your agent."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Globals {
    /// The configuration: toolgate.json, or the file of Claude, Cursor, VS Code, Windsurf, Gemini, Codex, Zed
    ///
    /// Without it: ./toolgate.json, ./toolgate.jsonc, ./.mcp.json, then toolgate/toolgate.json in
    /// the user's configuration folder.
    #[arg(long, short, global = true, value_name = "FILE", env = "TOOLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Only the servers of this namespace of the configuration, as it serves them
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Say more on stderr; twice for details, three times for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Be an MCP server for an agent, in front of all configured servers
    Serve(Serve),
    /// Show how it stands with each server, and what a session would be shown and why
    Status(Status),
    /// Show what definitions cost a context window, and what a session pays instead
    Tokens(Tokens),
    /// Make, list and revoke the tokens that let clients in over HTTP
    Token(Token),
    /// Find tools by what they do
    Search(Search),
    /// Show the full definitions of tools
    Inspect(Inspect),
    /// Call a tool
    Call(Call),
    /// Run a script that calls tools, in the sandbox, or go on with a run
    Run(Run),
    /// Show the runs of scripts: what they called, how long it took, what came of it
    Runs(Runs),
    /// Log in at a server that asks for it, with a browser
    ///
    /// What the login brings is kept encrypted, with the key in the system's keychain or, where there
    /// is none, in a file that only you can read. `TOOLGATE_VAULT=file` asks for the file;
    /// `TOOLGATE_VAULT_KEY` is a key of your own, of at least 32 random characters.
    Login(Login),
    /// Forget a login, and have the server forget it
    Logout(Logout),
    /// Use a server again that was disabled, or one of the registry
    Enable(Enable),
    /// Do not use a server from the next conversation on
    Disable(Disable),
    /// Show which calls and servers wait for a person, and decide on them
    Approve(Approve),
    /// Show the skills: what they are for and which servers they bring
    Skills(Skills),
    /// Show what a server wrote to stderr, and when it started and stopped
    Logs(Logs),
    /// Show which queries led to which calls, by which searches are ranked, or erase it
    Usage(Usage),
    /// Show who may call what, or explain what becomes of a call
    Policy(Policy),
    /// List what was granted, or revoke it
    Grants(Grants),
    /// Show which tools are not as they were approved, and approve them
    Definitions(Definitions),
    /// Show what was decided and called, or verify that nothing of it is missing
    Audit(Audit),
    /// Check the configuration, or print its JSON Schema for an editor
    Config(Config),
    /// Show what confines scripts on this system
    Doctor(Doctor),
    /// Measure how well strategies find tools, on queries with known answers
    ///
    /// With --config, `hybrid` and `embedding` ask the encoder of that file.
    Eval(Eval),
    /// Run everything on built-in servers: the cost, a search, a call, the saving
    Demo(Demo),
    /// A worker of the sandbox: what scripts run in
    #[command(hide = true)]
    SandboxWorker,
    /// One of the demo's servers
    #[command(hide = true)]
    DemoServer { name: String },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Speak MCP on stdin and stdout (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Speak MCP over HTTP at /mcp of this address, for many clients at once; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = door::read_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Be this one server, as it is: its tools under their own names, and everything else it has
    #[arg(long, value_name = "NAME", conflicts_with = "mode")]
    pub(crate) passthrough: Option<String>,
    /// What the agent is shown; without it, what the configuration says
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
}

/// What an agent is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Deferred once a threshold is passed, else direct
    Auto,
    /// Every tool
    Direct,
    /// The meta-tools, in the style that the configuration says
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
    /// List the tools of each server: which are loaded, which deferred
    #[arg(long)]
    pub(crate) tools: bool,
    /// As for `serve`
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Tokens {
    /// In what the cost is counted
    #[arg(long, value_name = "UNIT", default_value = "tokens")]
    pub(crate) unit: Unit,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// In what a cost is counted.
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
    /// Make a token and print it, this once
    Create {
        /// How you call it; without it, it gets a name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// After how many days it ends; without it, when it is revoked
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
        expires: Option<u64>,
        /// The only namespace that it opens, once for each; `default` is the one at /mcp
        #[arg(long = "opens", value_name = "NAMESPACE")]
        namespaces: Vec<String>,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Take a token back, from running gateways too
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What the tool should do; several queries are merged
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Only this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// How many tools at most
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// How to rank; without it, what the configuration says
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Option<StrategyName>,
    /// How much to show of each tool
    #[arg(long, value_name = "DETAIL", default_value = "description")]
    pub(crate) detail: Detail,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How much is shown of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Detail {
    /// Its name
    Name,
    /// And its description
    Description,
    /// And its input schema
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Names from `toolgate search`
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// A name from `toolgate search`
    pub(crate) name: String,
    /// The arguments as a JSON object; `-` reads them from stdin, `@FILE` from a file
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// One argument; the value is JSON where it parses as JSON, else text
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
    /// What it is written in; by default what the name ends in, typescript without an ending
    #[arg(long, short, value_name = "LANGUAGE", conflicts_with = "resume")]
    pub(crate) language: Option<Language>,
    /// Go on with this run instead; completed calls are not repeated. With FILE: corrected code
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Repeat calls that were sent and of which it is not known what came of them
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
    /// How many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show one run: its code, its calls in their order, its output
    Show {
        /// Its id, or the beginning of it
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Let a call be made again of which it is not known what came of it, once the run is resumed
    Repeat {
        /// The run's id, or the beginning of it
        id: String,
        /// The number of the call
        call: u64,
    },
}

/// What a script is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// TypeScript, and so JavaScript
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
    /// Open no browser: visit the printed URL anywhere, and paste the URL that you are sent to
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// A right to ask for, once for each; without it, what the configuration or the server says
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// How many seconds you have
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
    /// Agree without being asked to what is shown, where it is not configured
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Disable {
    /// The server
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
    /// Show all of a skill
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server's name in the configuration
    pub(crate) name: String,
    /// How many lines
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
    /// Forget queries: those of a tool, of a server, or all
    #[command(arg_required_else_help = true)]
    Erase {
        #[command(flatten)]
        which: Which,
        /// All of them
        #[arg(long, conflicts_with_all = ["tool", "server"])]
        all: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Only those of this tool, by the name that its server gives it or as `server_tool`
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only those of this server's tools
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
    /// Say what is wrong with the configuration, without starting any server
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
    /// A strategy to measure, once for each; the others are compared with the first. Without it, all
    /// but `regex` and `subagent`
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Vec<StrategyName>,
    /// Give the strategies the hints that the set has, of the kind of server wanted
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

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON for a program instead of text for a person
    #[arg(long)]
    pub(crate) json: bool,
}
