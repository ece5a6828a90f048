//! Whether a server of toolgate has started this process.

use toolgate_mcp::client::TAG_VARIABLE;

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

/// Whether a server of toolgate is above this process. Its processes inherit a variable. On Linux it
/// does not help them to remove it: the processes above are looked at too, up to toolgate itself.
pub(crate) fn is_below_server() -> bool {
    std::env::var_os(TAG_VARIABLE).is_some() || is_below_toolgate()
}

#[cfg(target_os = "linux")]
fn is_below_toolgate() -> bool {
    /// Deeper than people work.
    const DEEPEST: usize = 1_000;
    let mut process = std::process::id();
    for _ in 0..DEEPEST {
        match linux::parent(process) {
            Some(parent @ 1..) => process = parent,
            _ => return false,
        }
        if linux::has_variable(process, TAG_VARIABLE) || linux::is_toolgate(process) {
            return true;
        }
    }
    true
}

#[cfg(not(target_os = "linux"))]
fn is_below_toolgate() -> bool {
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

    /// Whether the process was started with the variable.
    pub(super) fn has_variable(process: u32, name: &str) -> bool {
        let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let is_it = |variable: &[u8]| {
            variable.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        variables.split(|byte| *byte == 0).any(is_it)
    }

    /// Whether the process runs this program, or one of its name. An update replaces the file.
    pub(super) fn is_toolgate(process: u32) -> bool {
        let program = PathBuf::from(format!("/proc/{process}/exe"));
        let file = |path: &PathBuf| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let own = file(&PathBuf::from("/proc/self/exe"));
        let name = fs::read_link(&program).ok();
        let name = name.as_deref().and_then(|path| path.file_name()?.to_str());
        let is_named = name.is_some_and(|it| it.trim_end_matches(" (deleted)") == "toolgate");
        is_named || own.is_some() && file(&program) == own
    }
}
