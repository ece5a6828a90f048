//! The roles that a program has besides its own: a worker of the sandbox, and the launcher of a server.

use std::{
    ffi::OsString,
    process::{ExitCode, Termination},
    sync::atomic::{AtomicU8, Ordering},
};

use toolgate_sandbox::PoolSettings;

/// Names of processes that are this program in another role. A process cannot change how it was named
/// at its start, so a program that does not play the role cannot start itself again.
const WORKER: &str = "toolgate-worker";
const LAUNCHER: &str = "toolgate-launcher";

/// Whether [`init`] was called, and when.
static CALLED: AtomicU8 = AtomicU8::new(NEVER);
const NEVER: u8 = 0;
const FIRST: u8 = 1;
const LATE: u8 = 2;

/// Why this process cannot start the processes that a host needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleProblem {
    /// This process was started to run a script or a server, and not to be the program again.
    OtherRole,
    /// [`init`] was not called.
    NotCalled,
    /// [`init`] was called inside of a Tokio runtime.
    CalledLate,
}

/// Prepares this program to run scripts and servers. Call it first in `main`.
///
/// A script runs in a process of its own, the worker. The worker is this program, which toolgate starts
/// a second time: in a worker, `init` runs the script and does not return. On Linux each server over
/// stdio also runs below such a process, which ends everything that the server leaves behind. In the
/// ordinary process `init` returns at once.
///
/// ```no_run
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     toolgate::init();
///     tokio::runtime::Runtime::new()?.block_on(async {
///         // The program.
///         Ok(())
///     })
/// }
/// ```
///
/// A worker gives up all rights before it reads a script, and that holds for one thread. So `init` comes
/// before anything that starts threads, such as a Tokio runtime: with `#[tokio::main]` it is too late.
/// [`HostBuilder::start`](crate::HostBuilder::start) refuses to run scripts if `init` was not called, or
/// was called too late.
pub fn init() {
    match role().as_deref() {
        Some(WORKER) => end(toolgate_sandbox::worker_main()),
        Some(LAUNCHER) => end(toolgate_upstream::launcher_main(std::env::args_os().skip(1))),
        _ => {}
    }
    let is_late = tokio::runtime::Handle::try_current().is_ok();
    if is_late {
        CALLED.store(LATE, Ordering::Relaxed);
        return;
    }
    CALLED.store(FIRST, Ordering::Relaxed);
    if cfg!(target_os = "linux") {
        toolgate_upstream::use_launcher("/proc/self/exe", std::iter::empty::<OsString>());
    }
}

/// Refuses a process that has another role.
pub(crate) fn check_role() -> Result<(), RoleProblem> {
    if std::env::var_os(toolgate_sandbox::WORKER_VARIABLE).is_some() {
        return Err(RoleProblem::OtherRole);
    }
    match role().as_deref() {
        Some(WORKER | LAUNCHER) => Err(RoleProblem::OtherRole),
        _ => Ok(()),
    }
}

/// How this program is started as a worker.
pub(crate) fn worker() -> Result<PoolSettings, RoleProblem> {
    match CALLED.load(Ordering::Relaxed) {
        FIRST => PoolSettings::this_program(std::iter::empty::<OsString>())
            .map_err(|_| RoleProblem::NotCalled),
        LATE => Err(RoleProblem::CalledLate),
        _ => Err(RoleProblem::NotCalled),
    }
}

/// The name that this process was started with.
fn role() -> Option<String> {
    std::env::args_os().next()?.into_string().ok()
}

/// Ends the process.
fn end(code: ExitCode) -> ! {
    // `ExitCode` has no number, but a way to report it.
    let failed = format!("{:?}", code.report()) != format!("{:?}", ExitCode::SUCCESS.report());
    std::process::exit(i32::from(failed))
}
