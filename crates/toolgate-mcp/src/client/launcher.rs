//! Starts servers below a launcher, so that no process of theirs survives (Linux).
//!
//! A process can leave the group, the session and the variables of its server. It cannot leave its
//! ancestors: the system gives an orphan to the nearest ancestor that adopts orphans. So each server
//! runs below a small process of its own, the launcher, which adopts all orphans and ends when the
//! last of them has ended. The launcher is this program in another role.
//!
//! A socket connects toolgate and the launcher. When toolgate closes it, or has ended in any way, the
//! launcher kills the server and everything below. The pipes of the server are its own: the launcher
//! does not touch them.

use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

#[cfg(target_os = "linux")]
mod role;
#[cfg(target_os = "linux")]
mod socket;

#[cfg(target_os = "linux")]
pub(super) use socket::{LauncherSocket, prepare};

/// How this program is started as a launcher.
static LAUNCHER: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Lets the servers of this process be started by a launcher, from now on: `program`, which must
/// call [`launcher_main`] when it is started with these arguments. Only Linux has launchers.
pub fn use_launcher(
    program: impl Into<PathBuf>,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
) {
    let arguments = arguments.into_iter().map(Into::into).collect();
    // The first one stays.
    let _ = LAUNCHER.set((program.into(), arguments));
}

/// The launcher of one server: starts it, and ends what is left of it. Does not return before that.
/// `arguments` are those after the arguments of [`use_launcher`].
pub fn launcher_main(arguments: impl Iterator<Item = OsString>) -> std::process::ExitCode {
    role::run(arguments)
}

/// Only Linux has launchers.
#[cfg(not(target_os = "linux"))]
mod role {
    use std::{ffi::OsString, process::ExitCode};

    pub(super) fn run(_arguments: impl Iterator<Item = OsString>) -> ExitCode {
        ExitCode::FAILURE
    }
}
