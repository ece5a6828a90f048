//! `toolgate-conformance`: a server and a client for the official conformance suite of MCP.
//!
//! `server` offers everything that the suite's server scenarios ask for, under the names they use;
//! `client` does what a client scenario wants of a client. Both use only rmcp. The scenarios that
//! they pass without toolgate are the reference for the scenarios with toolgate.

mod client;
mod server;

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;

use clap::Parser;

/// Why the program could not do what it was started for.
type Failure = Box<dyn Error + Send + Sync>;

/// The two ends that the official conformance suite of MCP talks to.
#[derive(Debug, Parser)]
enum Arguments {
    /// Serves over stdio, or over Streamable HTTP
    Server {
        /// Serve over Streamable HTTP at this address; the first line on stdout is the URL
        #[arg(long, value_name = "ADDRESS")]
        http: Option<SocketAddr>,
    },
    /// Does what the scenario in `MCP_CONFORMANCE_SCENARIO` wants of a client
    Client(client::Arguments),
}

#[tokio::main]
async fn main() {
    // rmcp builds HTTP clients of its own.
    toolgate_http::install_tls();
    let outcome = match client::page() {
        Some(url) => client::browse(&url).await,
        None => run(Arguments::parse()).await,
    };
    let code = outcome.map_or_else(
        |error| {
            let _ = writeln!(std::io::stderr(), "toolgate-conformance: {error}");
            1
        },
        |()| 0,
    );
    // Not a return from main: the runtime would wait for a pending read of stdin.
    std::process::exit(code);
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments {
        Arguments::Server { http: None } => server::serve_stdio().await,
        Arguments::Server { http: Some(address) } => server::serve_http(address).await,
        Arguments::Client(arguments) => client::run(arguments).await,
    }
}
