//! The arguments of the commands that set toolgate up and change its servers.

use std::net::SocketAddr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use toolgate_clients::{CLIENTS, Client};

use super::{ConfigFile, Output};
use crate::access;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Setup {
    /// Set up this client alone; may be repeated
    #[arg(long = "client", value_name = "NAME", value_parser = client(), hide_possible_values = true)]
    pub(crate) clients: Vec<&'static Client>,
    /// Take over the files of the project in the working folder, into ./toolgate.json, instead of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// Ask nothing: where two servers differ the first one wins, a server that does not start stays in its client, and
    /// all files are written
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also take over servers that do not start here; without it they stay in their clients
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not start the servers to count their tools
    #[arg(long)]
    pub(crate) no_probe: bool,
    /// Connect clients in this way
    #[arg(long, value_name = "TRANSPORT", default_value = "stdio")]
    pub(crate) transport: ClientTransport,
    /// Restore the files that the last setup has changed
    #[arg(long, conflicts_with_all = ["clients", "project", "all", "no_probe", "transport"])]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How clients reach toolgate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientTransport {
    /// Each client starts its own toolgate
    Stdio,
    /// Clients share the gateway of `toolgate service`, where they can
    Http,
}

/// Reads the name of a client.
fn client() -> impl TypedValueParser<Value = &'static Client> {
    let values = CLIENTS.iter().map(|client| PossibleValue::new(client.id).help(client.name));
    PossibleValuesParser::new(values)
        .try_map(|name| Client::named(&name).ok_or("there is no such client"))
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name the server; or its URL, whose host then names it
    #[arg(value_name = "NAME|URL")]
    pub(crate) name: String,
    /// The URL of the server
    #[arg(conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The program that starts the server, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Set a variable of the program; may be repeated. A secret is stored encrypted
    #[arg(long, short, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Send a header with every request; may be repeated. A secret is stored encrypted
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    pub(crate) header: Vec<String>,
    /// Take the server from the registry of the configuration, by NAME or NAME@VERSION
    #[arg(long, conflicts_with_all = ["url", "command", "env", "header"])]
    pub(crate) from_registry: bool,
    /// Replace the server of this name
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install the service, and start it
    Install {
        #[command(flatten)]
        from: ConfigFile,
        /// Listen on this address
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8808", value_parser = access::read_address)]
        http: SocketAddr,
        /// Show what would be written and run, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether the service is installed, and whether it answers
    Status {
        #[command(flatten)]
        output: Output,
    },
    /// Stop the service, and remove it
    Remove {
        /// Show what would be removed and run, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Store a value: the line that you type, or that is on stdin
    Set {
        /// The name in `${keychain:NAME}`
        name: String,
    },
    /// List the names that the configuration uses, and which of them have a value
    List {
        #[command(flatten)]
        from: ConfigFile,
    },
    /// Remove a value
    Remove {
        /// The name in `${keychain:NAME}`
        name: String,
    },
}
