//! Programs of the system that ask a person. Whoever starts this program chooses its variables, so `PATH`
//! says nothing about who a program belongs to.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Where only the administrator installs programs.
const FOLDERS: [&str; 5] =
    ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin"];
/// The variables that a program needs to reach the desktop, in the person's language.
const PASSED: [&str; 10] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LC_ALL",
    "TERM",
    "USER",
];

/// The program of this name that the administrator has installed.
pub(super) fn of_system(name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|program| {
        // A program in a folder that others can write to is not the administrator's.
        let folder = program.parent().and_then(|folder| folder.canonicalize().ok());
        let file = program.canonicalize().ok();
        let both = folder.zip(file);
        both.is_some_and(|(folder, file)| is_administrators(&folder) && is_program(&file))
    })
}

/// A command that gets a few variables alone: others could make a program load code.
pub(super) fn system_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", FOLDERS.join(":"));
    command.envs(PASSED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_run = |file: std::fs::Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    path.metadata().is_ok_and(is_run) && is_administrators(path)
}

/// Whether a file or a folder belongs to root, and nobody else can write to it.
#[cfg(unix)]
fn is_administrators(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
}

#[cfg(not(unix))]
fn is_program(_path: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn is_administrators(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_program_of_the_system_is_not_looked_up_in_path() {
        let shell = of_system("true").unwrap();
        assert!(FOLDERS.iter().any(|folder| shell.starts_with(folder)), "{}", shell.display());
        assert_eq!(of_system("no-such-program-here"), None);
        assert_eq!(of_system("../../tmp"), None, "no program");
    }

    #[test]
    fn a_program_of_the_system_gets_a_few_variables() {
        let command = system_command(Path::new("x"));
        let names: Vec<&str> = command.get_envs().filter_map(|(name, _)| name.to_str()).collect();
        assert!(names.contains(&"PATH"));
        assert!(names.iter().all(|name| *name == "PATH" || PASSED.contains(name)), "{names:?}");
    }
}
