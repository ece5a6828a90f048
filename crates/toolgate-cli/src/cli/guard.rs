//! The arguments of what decides on calls, asks, and records.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Approve {
    /// What to decide on; without it, what waits is listed
    pub(crate) id: Option<String>,
    /// Only show it
    #[arg(long)]
    pub(crate) show: bool,
    /// Refuse it, or take back that it was approved
    #[arg(long, conflicts_with = "show")]
    pub(crate) deny: bool,
    /// Agree without being asked to what is shown
    #[arg(long, conflicts_with_all = ["show", "deny"])]
    pub(crate) yes: bool,
    /// Of a call: how long a yes holds; without it, for one call
    #[arg(long = "for", value_name = "EXTENT", conflicts_with_all = ["show", "deny"])]
    pub(crate) lasts: Option<For>,
    /// Of a call: only with the arguments that are shown
    #[arg(long, conflicts_with_all = ["show", "deny"])]
    pub(crate) these_arguments: bool,
    /// Of a call: only where this holds of the arguments, such as 'path=src/*' or 'amount less 100';
    /// the operators are those of the policy, and of several conditions all must hold
    #[arg(
        long = "where",
        value_name = "CONDITION",
        requires = "lasts",
        conflicts_with_all = ["show", "deny", "these_arguments"]
    )]
    pub(crate) conditions: Vec<String>,
    /// Of a call: when a yes ends at the latest, such as 30m, 12h or 7d
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
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Say what becomes of a call, by which rule, and which rules lost
    Check {
        /// The tool, by its exposed name
        #[arg(value_name = "TOOL")]
        name: String,
        /// The arguments as a JSON object
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

/// How long a yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum For {
    /// The calls of this run
    Run,
    /// The calls of this session
    Session,
    /// All calls of this caller, until it is revoked
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
    /// Take a grant back
    Revoke {
        /// Its id
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Definitions {
    #[command(subcommand)]
    pub(crate) command: Option<DefinitionsCommand>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DefinitionsCommand {
    /// Show how a tool differs from what was approved
    Diff {
        /// The tool, by its exposed name
        #[arg(value_name = "TOOL")]
        name: String,
    },
    /// Approve definitions as they are now: they are kept in toolgate.lock, beside the configuration
    #[command(arg_required_else_help = true)]
    Approve {
        /// Tools that are held back, by their exposed names
        #[arg(value_name = "TOOL")]
        names: Vec<String>,
        /// All tools of all servers
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only this tool, by its exposed name
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only callers with this in their name: a token, a user, a client
    #[arg(long, value_name = "TEXT")]
    pub(crate) caller: Option<String>,
    /// Only this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only this run of a script
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Only the last while, such as 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// Only this verdict
    #[arg(long, value_name = "VERDICT", value_parser = ["allow", "ask", "deny"])]
    pub(crate) verdict: Option<String>,
    /// Only say whether the chain is whole
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a length of time: a number and `s`, `m`, `h` or `d`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write a number and s, m, h or d, such as 12h");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}
