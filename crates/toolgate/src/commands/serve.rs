//! `toolgate serve`

use std::{io::IsTerminal, process::ExitCode};

use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Globals, Serve},
    failure::Failure,
    folders,
    printer::Printer,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Serve,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let _ = arguments.stdio;
    let (loaded, host) = super::start(globals, arguments.mode, printer)?;
    host.warm_up();
    if std::io::stdin().is_terminal() {
        printer.note(format!(
            "toolgate serves {} server(s) of {} on stdin and stdout, and waits for an MCP client; \
             Ctrl-C ends it.\n  hint: an agent starts it by itself, for example: claude mcp add \
             toolgate -- toolgate serve --stdio --config FILE",
            host.settings().servers.len(),
            folders::shown(&loaded.path)
        ));
    }
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let served = toolgate_gateway::serve_stdio(host.clone(), stop).await;
    host.shutdown().await;
    served.map_err(|error| {
        Failure::new(error.to_string())
            .hint("serve is for MCP clients; `toolgate search` and `toolgate call` are for people")
    })?;
    Ok(ExitCode::SUCCESS)
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
