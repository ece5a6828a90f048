//! `toolgate serve`

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{AggregateSource, HttpSettings, Source};

use crate::{
    cli::{Globals, Serve},
    failure::Failure,
    folders,
    load::Loaded,
    printer::Printer,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Serve,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    // Before servers are started in vain.
    let listener = match arguments.http {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let (loaded, host) = super::start(globals, arguments.mode, printer)?;
    host.warm_up();
    let source: Arc<dyn Source> = Arc::new(AggregateSource::new(host.clone()));
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    match listener {
        Some((listener, address)) => {
            printer.note(format!("toolgate listens on http://{address}/mcp"));
            toolgate_gateway::serve_http(listener, HttpSettings::new(source), stop).await;
        }
        None => {
            if io::stdin().is_terminal() {
                explain(&loaded, host.settings().servers.len(), printer);
            }
            toolgate_gateway::serve_stdio(source, stop).await;
        }
    }
    host.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// Takes an address to listen on; gives the real one, where the port was left open.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!("{address} can be reached from other machines"))
            .hint("listen on a loopback address, such as 127.0.0.1:8808"));
    }
    let failed = |error: io::Error| {
        let failure = match error.kind() {
            io::ErrorKind::AddrInUse => format!("{address} is in use by another program"),
            _ => format!("{address} cannot be listened on: {error}"),
        };
        Failure::new(failure).hint("choose another port; port 0 takes one that is free")
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// For a person who has started it by hand.
fn explain(loaded: &Loaded, servers: usize, printer: &mut Printer) {
    printer.note(format!(
        "toolgate serves {servers} server(s) of {} on stdin and stdout, and waits for an MCP client; \
         Ctrl-C ends it.\n  hint: an agent starts it by itself, for example: claude mcp add \
         toolgate -- toolgate serve --stdio --config FILE",
        folders::shown(&loaded.path)
    ));
}

/// However we are asked to end, the servers are ended in order first.
async fn stop_on_signal(stop: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let listen = |kind| signal(kind).ok();
        let (Some(mut terminate), Some(mut interrupt), Some(mut hang_up)) = (
            listen(SignalKind::terminate()),
            listen(SignalKind::interrupt()),
            listen(SignalKind::hangup()),
        ) else {
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    stop.cancel();
}
