//! Whether a process belongs to a server (Linux).
//!
//! Each server carries a mark and hands it down to every program that it starts: a hard limit on file
//! locks, which the system no longer enforces. A process can lower such a limit but cannot raise it,
//! in no session and no namespace, and the mark stays when the launcher is killed. Only root removes
//! it. Besides, a process that has lost its mark is known by its ancestors, one of which is toolgate.

/// Whether a server has started a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessLineage {
    /// No server has started it. Systems other than Linux always say so.
    Free,
    /// A server has started it, or a program of a server has.
    OfServer,
    /// The system does not show its ancestors.
    Unknown,
}

#[cfg(target_os = "linux")]
pub(super) use linux::mark;
#[cfg(target_os = "linux")]
pub use linux::{lineage_of, own_lineage};

/// Whether a server has started this process.
#[cfg(not(target_os = "linux"))]
pub fn own_lineage() -> ProcessLineage {
    ProcessLineage::Free
}

/// Whether a server has started the process of this number.
#[cfg(not(target_os = "linux"))]
pub fn lineage_of(_process: u32) -> ProcessLineage {
    ProcessLineage::Free
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf};

    use rustix::{
        fs::{PROC_SUPER_MAGIC, statfs},
        process::{Resource, Rlimit, getrlimit, setrlimit},
    };

    use super::ProcessLineage;

    /// The limit on file locks that marks a server. Nobody else sets one that is as low.
    const MARK: u64 = 7;
    /// Deeper than people work.
    const DEEPEST: usize = 1_000;

    /// Marks this process and all that it will start. Makes two system calls, so that it can be used
    /// between fork and exec. A system without such limits stays without the mark.
    pub(in super::super) fn mark() {
        if !is_marked(getrlimit(Resource::Locks).maximum) {
            let _ = setrlimit(Resource::Locks, Rlimit { current: Some(MARK), maximum: Some(MARK) });
        }
    }

    /// Whether a server has started this process.
    pub fn own_lineage() -> ProcessLineage {
        if is_marked(getrlimit(Resource::Locks).maximum) {
            return ProcessLineage::OfServer;
        }
        let own = std::process::id();
        // A process can put another folder there, or see that of another namespace.
        let is_real = statfs("/proc").is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC);
        let seen = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let seen = seen.split(' ').next().and_then(|number| number.parse().ok());
        if !is_real || seen != Some(own) {
            return ProcessLineage::Unknown;
        }
        by_ancestors(own)
    }

    /// Whether a server has started the process of this number.
    pub fn lineage_of(process: u32) -> ProcessLineage {
        match fs::read_to_string(format!("/proc/{process}/limits")) {
            Err(_) => ProcessLineage::Unknown,
            Ok(limits) if is_marked(hard_limit(&limits)) => ProcessLineage::OfServer,
            Ok(_) => by_ancestors(process),
        }
    }

    fn is_marked(limit: Option<u64>) -> bool {
        limit.is_some_and(|limit| limit <= MARK)
    }

    /// The hard limit on file locks in a `limits` file; `None` if there is none.
    fn hard_limit(limits: &str) -> Option<u64> {
        let values = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
        values.split_whitespace().nth(1)?.parse().ok()
    }

    fn by_ancestors(mut process: u32) -> ProcessLineage {
        for _ in 0..DEEPEST {
            match parent(process) {
                Some(parent @ 1..) => process = parent,
                // The first process, or one that another user hides.
                _ => return ProcessLineage::Free,
            }
            if is_toolgate(process) {
                return ProcessLineage::OfServer;
            }
        }
        ProcessLineage::OfServer
    }

    fn parent(process: u32) -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name is in parentheses and may contain anything: what follows the last one counts.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether the process runs this program, or one of its name. An update replaces the file.
    fn is_toolgate(process: u32) -> bool {
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

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_mark_is_read_from_the_limits_of_a_process() {
            let limits = |hard: &str| {
                format!(
                    "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max cpu time              unlimited            unlimited            seconds   \n\
                     Max file locks            5                    {hard}            locks     \n"
                )
            };
            assert!(is_marked(hard_limit(&limits("7"))));
            assert!(is_marked(hard_limit(&limits("0"))), "it can be lowered");
            assert!(!is_marked(hard_limit(&limits("unlimited"))));
            assert!(!is_marked(hard_limit(&limits("100000"))));
        }
    }
}
