//! The arguments of the commands about policy, approvals and the audit log.

use std::{
    ops::Range,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand, ValueEnum};

use super::{ConfigFile, Output};

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The id of a call or server that waits; without it, toolgate lists everything that waits. The id is shown only
    /// on a terminal. With --show and --deny also the name of a question as agents see it (q_…), and with --deny the
    /// name of a server, to revoke its consent
    pub(crate) id: Option<String>,
    /// Show the call or server, and do not decide
    #[arg(long)]
    pub(crate) show: bool,
    /// Deny the call or server, or revoke the consent to a server
    #[arg(long, conflicts_with = "show")]
    pub(crate) deny: bool,
    /// For a call: also approve later calls of the tool; the default is this call only
    #[arg(long = "for", value_name = "EXTENT", conflicts_with_all = ["show", "deny"])]
    pub(crate) lasts: Option<For>,
    /// For a call: approve later calls with any arguments; the default is exactly the same arguments
    #[arg(long, requires = "lasts", conflicts_with_all = ["show", "deny"])]
    pub(crate) any_arguments: bool,
    /// For a call: approve later calls only if their arguments meet this condition, such as 'path=src/*' or
    /// 'amount less 100'; may be repeated, and the arguments must meet all conditions. The operators are those of
    /// the policy
    #[arg(
        long = "where",
        value_name = "CONDITION",
        requires = "lasts",
        conflicts_with_all = ["show", "deny", "any_arguments"]
    )]
    pub(crate) conditions: Vec<String>,
    /// For a call: let the grant expire after this time, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["show", "deny"])]
    pub(crate) expires: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) command: Option<PolicyCommand>,
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Propose labels and rules for tools, each with its reason. toolgate guesses them from annotations, names and
    /// schemas; nothing changes until you accept them
    Suggest {
        /// Propose only for the tools of this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Ask at the terminal which proposals to accept, and write these to the configuration, with a copy of the
        /// old file beside it
        #[arg(long, conflicts_with = "json")]
        write: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Show which of the last 1,000 calls another policy would decide differently; nothing changes
    WhatIf {
        /// The other policy: a file with the value of `policy` as JSON, or a configuration; `-` reads it from stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
    /// Save another policy in place of the one that counts, after you have seen its effect and agreed. On one machine
    /// it replaces `policy` in the configuration; in a fleet it is saved in the database, and holds on all nodes
    /// within a second
    Save {
        /// The other policy: a file with the value of `policy` as JSON, or a configuration; `-` reads it from stdin
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// In a fleet: save it only if this version of the policy is the one that counts, as `toolgate policy` shows it
        #[arg(long, value_name = "VERSION")]
        replace: Option<u64>,
    },
    /// Print the policy as it is written, as JSON that `toolgate policy save` takes
    Export,
    /// Remove the policy that is saved in the database of a fleet, so that `policy` of the configuration counts again
    Remove,
    /// Explain the decision on a call: which rule decides, and which matching rules do not
    Check {
        /// The exposed name of the tool
        #[arg(value_name = "TOOL")]
        name: String,
        /// The arguments as a JSON object
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

/// How long a grant lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum For {
    /// Approve calls of the same run
    Run,
    /// Approve calls of the same session
    Session,
    /// Approve all calls of the same caller, until the grant is revoked
    Always,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Grants {
    #[command(subcommand)]
    pub(crate) command: Option<GrantsCommand>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GrantsCommand {
    /// Revoke a grant
    Revoke {
        /// The id of the grant
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Definitions {
    #[command(subcommand)]
    pub(crate) command: Option<DefinitionsCommand>,
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsCommand {
    /// Show how a definition differs from the approved one
    Diff {
        /// The exposed name of a tool, or a name such as SERVER/prompts/NAME
        name: String,
    },
    /// Approve definitions as they are now, and store them in toolgate.lock beside the configuration
    #[command(arg_required_else_help = true)]
    Approve {
        /// The names of what is held back: exposed names of tools, SERVER/instructions,
        /// SERVER/prompts/NAME, SERVER/resources/URI, SERVER/templates/URI
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Approve all definitions of all servers
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Show only lines about this tool, by its exposed name
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Show only lines about this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Show only lines of callers whose name contains this text: a token, a user, a client
    #[arg(long, value_name = "TEXT")]
    pub(crate) caller: Option<String>,
    /// Show only lines of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Show only lines of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Show only lines that are newer than this: how long ago, such as 30m, 12h or 7d, or a time in UTC, such as 2026-11-18
    /// or 2026-11-18T14:00
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) since: Option<Range<u64>>,
    /// Show only lines that are older than this, with times as for --since; a day is included
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) until: Option<Range<u64>>,
    /// Show only lines with this verdict
    #[arg(long, value_name = "VERDICT", value_parser = ["allow", "ask", "deny"])]
    pub(crate) verdict: Option<String>,
    /// Show only the last N of these lines
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "verify")]
    pub(crate) lines: Option<usize>,
    /// Verify the chain of hashes, and show no lines
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a length of time: a number and `s`, `m`, `h` or `d`.
fn duration(text: &str) -> Result<Duration, &'static str> {
    toolgate_store::duration(text).ok_or("write a number and s, m, h or d, such as 12h")
}

/// Reads a time, in seconds since 1970.
fn time(text: &str) -> Result<Range<u64>, &'static str> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    toolgate_store::named_time(text, now.as_secs())
        .ok_or("write how long ago it is, such as 12h, or a time in UTC, such as 2026-11-18 or 2026-11-18T14:00")
}
