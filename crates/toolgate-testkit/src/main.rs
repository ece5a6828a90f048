//! `toolgate-fixture`: a [`Fixture`] as a process.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use toolgate_testkit::{Fixture, TestkitError};

/// A fixture MCP server that misbehaves on request.
#[derive(Debug, Parser)]
struct Arguments {
    /// The fixture, as JSON; `{}` is a server without tools
    #[arg(long, value_name = "JSON", conflicts_with = "fixture_file")]
    fixture: Option<String>,
    /// A file with the fixture's JSON
    #[arg(long, value_name = "PATH")]
    fixture_file: Option<PathBuf>,
    /// Serve over Streamable HTTP at this address instead of stdio; the first line on stdout is
    /// the URL
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
}

fn main() {
    let arguments = Arguments::parse();
    // Over stdio, one thread: requests that are read together are answered in their order, as most servers do.
    let mut builder = match arguments.http {
        None => tokio::runtime::Builder::new_current_thread(),
        Some(_) => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build();
    let ended = match &runtime {
        Ok(runtime) => runtime.block_on(run(arguments)),
        Err(error) => Err(std::io::Error::from(error.kind()).into()),
    };
    let code = match ended {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "toolgate-fixture: {error}");
            2
        }
    };
    // Not a return from main: the runtime, dropped, would wait for the pending read of stdin.
    std::process::exit(code);
}

async fn run(arguments: Arguments) -> Result<i32, TestkitError> {
    let fixture: Fixture = match (arguments.fixture, arguments.fixture_file) {
        (Some(json), _) => serde_json::from_str(&json)?,
        (None, Some(path)) => serde_json::from_slice(&std::fs::read(path)?)?,
        (None, None) => Fixture::default(),
    };
    let Some(address) = arguments.http else { return Ok(fixture.serve_stdio().await?) };
    let running = match fixture.serve_http(address).await {
        Ok(running) => running,
        Err(TestkitError::Exited { code }) => return Ok(code),
        Err(error) => return Err(error),
    };
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", running.url())?;
    stdout.flush()?;
    Ok(running.ended().await)
}
