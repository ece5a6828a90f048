//! The `toolgate` program: arguments, configuration, rendering.

mod access;
mod cli;
mod commands;
mod decisions;
mod failure;
mod fleet;
mod folders;
mod interrupts;
mod lineage;
mod load;
mod logins;
mod memory;
mod own_entry;
mod person;
mod policy_place;
mod print;
mod table;
mod terminal;
mod trust;
mod typed;

use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::{
    cli::{Cli, Command, Serve},
    failure::Failure,
};

/// Reports it when a worker of the sandbox runs out of memory.
#[global_allocator]
static ALLOCATOR: toolgate_sandbox::WorkerAllocator = toolgate_sandbox::WorkerAllocator::new();

/// The argument that makes this program the launcher of a server.
const LAUNCHER: &str = "server-launcher";

fn main() -> ExitCode {
    // Checked first, so that a worker opens nothing that it does not need.
    match std::env::args_os().nth(1) {
        Some(role) if role == load::WORKER => return toolgate_sandbox::worker_main(),
        Some(role) if role == LAUNCHER => {
            return toolgate::setup::launcher_main(std::env::args_os().skip(2));
        }
        _ => {}
    }
    #[cfg(target_os = "linux")]
    {
        hide_memory();
        toolgate::setup::use_launcher("/proc/self/exe", [LAUNCHER]);
    }
    memory::limit_pools();
    let cli = Cli::read();
    start_logging(cli.globals.verbose);
    let outcome = runtime_for(&cli.command)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the runtime did not start: {error}")))
        .and_then(|runtime| {
            let outcome = runtime.block_on(async {
                #[cfg(unix)]
                survive_file_limits();
                let outcome = Box::pin(commands::run(cli)).await;
                load::flush_telemetry().await;
                outcome
            });
            // A read of stdin cannot be interrupted; it must not keep the process alive.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            print::note(&failure);
            failure.exit_code()
        }
    }
}

/// One thread serves one client over stdio: it makes one request after the other most of the time, and to hand a
/// request from thread to thread takes longer than all that toolgate does with it. What takes long, or waits for the
/// disk, has threads of its own.
fn runtime_for(command: &Command) -> Builder {
    match command {
        Command::Serve(Serve { http: None, .. }) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    }
}

/// A write beyond the limit of the size of files (`ulimit -f`) is then an error, as on a full disk. Its
/// signal would end the process. A handler does this and not `SIG_IGN`, because programs that are started
/// would inherit that.
#[cfg(unix)]
fn survive_file_limits() {
    use tokio::signal::unix::{SignalKind, signal};

    // The handler stays. Without it only such a write is worse.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// Hides the memory and the environment of this process, which hold the secrets of all servers, from
/// other processes of the same user. So no core dump is written either.
#[cfg(target_os = "linux")]
fn hide_memory() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    // It fails only for values that the system does not know.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Logs go to stderr. `RUST_LOG` selects in detail. Without it only warnings of toolgate are shown,
/// because libraries may log private data.
fn start_logging(verbose: u8) {
    let default = match verbose {
        0 => "off,toolgate=warn",
        1 => "off,toolgate=info",
        2 => "off,toolgate=debug",
        _ => "info,toolgate=trace",
    };
    // The prefix `toolgate` covers all crates of the workspace.
    let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| default.to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| print::LogWriter)
        // Colours would be spelt out as well.
        .with_ansi(false)
        .without_time()
        .with_target(verbose > 1)
        .init();
}
