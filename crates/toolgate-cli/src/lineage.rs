//! Whether a server of toolgate has started this process.

use crate::failure::Failure;

/// Refuses to let a server of toolgate, or a program that it has started, give a permission.
pub(crate) fn refuse_servers() -> Result<(), Failure> {
    if is_below_server() {
        return Err(Failure::usage(
            "a server of toolgate has started this command, and a server cannot give permissions",
        )
        .hint("run it yourself in a terminal"));
    }
    Ok(())
}

/// Whether a server of toolgate is above this process. A process cannot leave the launcher of its
/// server, which is toolgate too. Only Linux has launchers.
#[cfg(target_os = "linux")]
pub(crate) fn is_below_server() -> bool {
    /// Deeper than people work.
    const DEEPEST: usize = 1_000;
    let mut process = std::process::id();
    for _ in 0..DEEPEST {
        match linux::parent(process) {
            Some(parent @ 1..) => process = parent,
            _ => return false,
        }
        if linux::is_toolgate(process) {
            return true;
        }
    }
    true
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_below_server() -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf};

    pub(super) fn parent(process: u32) -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name is in parentheses and may contain anything: what follows the last one counts.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether the process runs this program, or one of its name. An update replaces the file.
    pub(super) fn is_toolgate(process: u32) -> bool {
        let program = PathBuf::from(format!("/proc/{process}/exe"));
        let file = |path: &PathBuf| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let own = file(&PathBuf::from("/proc/self/exe"));
        let link = fs::read_link(&program).ok();
        let link = link.as_deref().and_then(|path| path.file_name()?.to_str());
        let is_linked = link.is_some_and(|it| it.trim_end_matches(" (deleted)") == "toolgate");
        // toolgate hides its memory, and with it the link. Its name stays readable.
        let name = fs::read_to_string(format!("/proc/{process}/comm"));
        let is_named = name.is_ok_and(|name| name.trim_end() == "toolgate");
        is_linked || is_named || own.is_some() && file(&program) == own
    }
}
