//! The password of the person, which the system asks for (polkit).

use std::{path::PathBuf, process::Command};

use super::dialog::on_path;
use crate::failure::Failure;

/// Finds `pkexec`. One that does not belong to the system is none.
pub(super) fn find() -> Result<PathBuf, Failure> {
    on_path("pkexec").filter(|program| is_of_system(program)).ok_or_else(|| {
        Failure::usage(
            "`approvals.presence` is \"password\", and there is no `pkexec` of the system to ask for it",
        )
        .hint("install polkit, or set `approvals.presence` to \"terminal\" in the configuration")
    })
}

/// Lets the system ask for the password.
pub(super) fn ask() -> Result<(), Failure> {
    let status = Command::new(find()?).arg("true").status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Failure::new("nothing was allowed: the password was not given"))
}

/// Whether the program is what only the administrator can install: it runs as root.
#[cfg(unix)]
fn is_of_system(program: &std::path::Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    program.metadata().is_ok_and(|file| file.uid() == 0 && file.mode() & 0o4000 != 0)
}

#[cfg(not(unix))]
fn is_of_system(_program: &std::path::Path) -> bool {
    false
}
