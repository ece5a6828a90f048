//! The password of the person, which the system asks for (polkit).

use std::path::{Path, PathBuf};

use super::system::{of_system, system_command};
use crate::failure::Failure;

/// Finds `pkexec`. One that does not belong to the system is none.
pub(super) fn find() -> Result<PathBuf, Failure> {
    of_system("pkexec").filter(|program| runs_as_root(program)).ok_or_else(|| {
        Failure::usage(
            "`approvals.presence` is \"password\", and there is no `pkexec` of the system to ask for it",
        )
        .hint("install polkit, or set `approvals.presence` to \"terminal\" in the configuration")
    })
}

/// Lets the system ask for the password.
pub(super) fn ask() -> Result<(), Failure> {
    let pkexec = find()?;
    // By its whole path: what `PATH` names would run as root.
    if of_system("true").is_some_and(|nothing| is_given(&pkexec, &nothing)) {
        return Ok(());
    }
    Err(Failure::new("nothing was allowed: the password was not given"))
}

/// Whether the program runs another one for the person, who gives the password for it.
fn is_given(pkexec: &Path, nothing: &Path) -> bool {
    let status = system_command(pkexec).arg(nothing).status();
    status.is_ok_and(|status| status.success())
}

/// Whether the program is what only the administrator can install: it runs as root.
#[cfg(unix)]
fn runs_as_root(program: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    program.metadata().is_ok_and(|file| file.uid() == 0 && file.mode() & 0o4000 != 0)
}

#[cfg(not(unix))]
fn runs_as_root(_program: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_password_that_is_not_given_allows_nothing() {
        use std::{fs, os::unix::fs::PermissionsExt as _};

        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("pkexec");
        for code in [0, 1, 126, 127] {
            fs::write(&program, format!("#!/bin/sh\n\"$@\" && exit {code}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(is_given(&program, Path::new("/bin/true")), code == 0, "{code}");
        }
        assert!(!is_given(&folder.path().join("absent"), Path::new("/bin/true")));
        assert!(!runs_as_root(&program));
    }
}
