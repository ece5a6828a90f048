//! The arguments of the command line.

mod chat;
mod contents;
#[cfg(test)]
mod pages;
mod policy;
mod serve;
mod setup;
mod tools;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

pub(crate) use chat::{Chat, ChatMode};
pub(crate) use policy::{
    Approve, Audit, Definitions, DefinitionsCommand, For, Grants, GrantsCommand, Policy,
    PolicyCommand,
};
pub(crate) use serve::{
    Demo, Doctor, FleetCommand, Logins, LoginsCommand, Serve, Status, TokenCommand, Tokens, Unit,
    Web,
};
pub(crate) use setup::{Add, ClientTransport, SecretCommand, ServiceCommand, Setup};
pub(crate) use tools::{
    AddEngine, Call, Engines, EnginesCommand, Eval, Inspect, Run, Runs, RunsCommand, Search,
};

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
            Self::Serve(Serve { from, .. })
            | Self::Web(Web { from, .. })
            | Self::Status(Status { from, .. })
            | Self::Tokens(Tokens { from, .. })
            | Self::Doctor(Doctor { from, .. })
            | Self::List(List { from, .. })
            | Self::Audit(Audit { from, .. })
            | Self::Policy(Policy { from, .. })
            | Self::Definitions(Definitions { from, .. })
            | Self::Usage(Usage { from, .. })
            | Self::Runs(Runs { from, .. })
            | Self::Skills(Skills { from, .. })
            | Self::Engines(Engines { from, .. })
            | Self::Service(ServiceCommand::Install { from, .. })
            | Self::Secret(SecretCommand::List { from })
            | Self::Config(ConfigCommand::Check { from, .. }) => from.file.as_deref(),
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
    /// Open a page to decide, and to see what agents did
    ///
    /// It has approvals, servers, runs, tools, the policy and the audit log. It is for this machine alone, while the command
    /// runs. The link to it works once and is shown on your
    /// terminal only; Enter shows a new one.
    Web(Web),
    /// Show the state of each server, and what a session lists and why
    Status(Status),
    /// Show how many tokens definitions take, with and without toolgate
    Tokens(Tokens),
    /// Create, list and revoke access tokens for HTTP clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show, prepare and fill the database that several toolgates share
    ///
    /// The configuration names it: `"fleet": { "database": "${DATABASE_URL}" }`.
    #[command(subcommand)]
    Fleet(FleetCommand),
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
    /// key: at least 32 random characters. `TOOLGATE_VAULT_KEY_COMMAND` is a command line that prints it.
    Login(Login),
    /// Log out of a server, and revoke the login there
    Logout {
        /// The server's name in the configuration
        name: String,
    },
    /// List and revoke the logins of callers at servers
    ///
    /// They are those at servers with `"auth": "perCaller"`. Nothing secret is shown.
    Logins(Logins),
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

/// The configuration file of a command that takes nothing else.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConfigFile {
    /// Read this configuration file, as with --config
    #[arg(value_name = "FILE", value_parser = config_file)]
    pub(crate) file: Option<PathBuf>,
}

/// Reads the name of a file. One word that is no file is rather a misspelt command.
fn config_file(text: &str) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    let is_word = !text.contains(['.', '/', '\\']);
    if is_word && !path.exists() {
        return Err("there is neither such a file nor such a command");
    }
    Ok(path)
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the servers of the registry instead; with WORDS, those that have all of them in name or description
    #[arg(long, value_name = "WORDS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) registry: Option<String>,
    #[command(flatten)]
    pub(crate) from: ConfigFile,
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
    pub(crate) from: ConfigFile,
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
    pub(crate) from: ConfigFile,
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
        #[command(flatten)]
        from: ConfigFile,
        #[command(flatten)]
        output: Output,
    },
    /// Print the JSON Schema of toolgate.json
    Schema,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
