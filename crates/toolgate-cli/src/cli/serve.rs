//! The arguments of the commands that serve an agent, and that show what it gets.

use std::{net::SocketAddr, path::PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use toolgate::setup::ExposureMode;
use toolgate_store::MAX_LIFETIME_DAYS;

use super::{ConfigFile, Output};
use crate::access;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) from: ConfigFile,
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

#[derive(Debug, Args)]
pub(crate) struct Web {
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Listen on this port of this machine; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Show the link, and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
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

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Show it again every two seconds, until Ctrl-C; the servers stay connected
    #[arg(long, short, conflicts_with_all = ["live", "reset", "json"])]
    pub(crate) watch: bool,
    /// List the tools of each server, and whether they are loaded or deferred
    #[arg(long)]
    pub(crate) tools: bool,
    /// Show what a session lists in this mode of `toolgate serve`
    #[arg(long, value_name = "MODE", value_parser = mode())]
    pub(crate) mode: Option<ExposureMode>,
    /// Show the calls of the last hour by server: how many, how many failed, how long they took
    #[arg(long, conflicts_with_all = ["tools", "mode", "watch", "live"])]
    pub(crate) calls: bool,
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
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Count in this unit
    #[arg(long, value_name = "UNIT", default_value = "tokens")]
    pub(crate) unit: Unit,
    /// Show the tokens that sessions did not have to read, by hour: of definitions and of results
    #[arg(long, conflicts_with_all = ["unit", "text", "mode"])]
    pub(crate) saved: bool,
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
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LIFETIME_DAYS)))]
        expires: Option<u32>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Show the nodes, and how much the database has
    Status {
        #[command(flatten)]
        output: Output,
    },
    /// Make the tables, or bring them to the version of this program
    ///
    /// Nodes of the version before go on meanwhile. Tables never become older.
    Migrate {
        #[command(flatten)]
        output: Output,
    },
    /// Copy what is in the state folder of this machine
    ///
    /// It copies runs, grants, open approvals, the audit log, tokens, past queries, the counts of limits of today, and
    /// the logins of callers. What is in the database already stays as it is. The shared login of a server is not
    /// copied.
    Import {
        #[command(flatten)]
        output: Output,
    },
    /// Say that the database was restored from a back-up
    ///
    /// What was open at the time of the back-up may have gone on since then, and must not happen twice: runs can no longer
    /// be resumed, and questions, answers, sessions, waiting requests and tasks are removed. The audit log notes it. Stop
    /// all nodes first.
    Restored {
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Logins {
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(subcommand)]
    pub(crate) command: Option<LoginsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoginsCommand {
    /// Revoke logins; running gateways stop using them within a second
    #[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
    Revoke {
        /// Revoke those of this caller, as `toolgate logins` shows it
        #[arg(long, value_name = "CALLER", group = "which")]
        caller: Option<String>,
        /// Revoke those at this server
        #[arg(long, value_name = "NAME", group = "which")]
        server: Option<String>,
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
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Start no server
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}
