//! Finds the processes that a server has started, where no launcher does.

/// How often processes are searched, because a process can start another before it is killed.
const ROUNDS: usize = 10;

/// A process. The system reuses numbers, so its start time is part of its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    number: u32,
    parent: u32,
    started: u64,
}

/// The descendants of a process.
#[cfg(target_os = "linux")]
pub(super) fn of(process: u32) -> Vec<ProcessEntry> {
    let all = linux::processes();
    let mut found: Vec<ProcessEntry> = Vec::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        for child in all.iter().filter(|it| it.parent == parent) {
            if !found.contains(child) {
                found.push(*child);
                parents.push(child.number);
            }
        }
    }
    found
}

/// The numbers of the children of a process.
#[cfg(target_os = "linux")]
pub(super) fn children_of(process: u32) -> Vec<u32> {
    let all = linux::processes().into_iter();
    all.filter(|it| it.parent == process).map(|it| it.number).collect()
}

/// Kills these processes and their descendants.
#[cfg(target_os = "linux")]
pub(super) fn kill(strays: &[ProcessEntry]) {
    let mut left = strays.to_vec();
    for _ in 0..ROUNDS {
        for stray in std::mem::take(&mut left) {
            if linux::entry(stray.number).is_some_and(|now| now.started == stray.started) {
                left.extend(of(stray.number));
                linux::kill(stray.number);
            }
        }
        if left.is_empty() {
            return;
        }
    }
    tracing::warn!("a server starts processes faster than they can be ended");
}

#[cfg(not(target_os = "linux"))]
pub(super) fn of(_process: u32) -> Vec<ProcessEntry> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill(_strays: &[ProcessEntry]) {
    let _ = ROUNDS;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::{Pid, Signal, kill_process};

    use super::ProcessEntry;

    fn numbers() -> impl Iterator<Item = u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// The process, unless it has ended.
    pub(super) fn entry(number: u32) -> Option<ProcessEntry> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name is in parentheses and may contain any text. The fields follow the last
        // parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_over = matches!(*fields.first()?, "Z" | "X");
        let (parent, started) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
        (!is_over).then_some(ProcessEntry { number, parent, started })
    }

    /// All processes, except those that have ended.
    pub(super) fn processes() -> Vec<ProcessEntry> {
        numbers().filter_map(entry).collect()
    }

    pub(super) fn kill(number: u32) {
        if let Some(process) = i32::try_from(number).ok().and_then(Pid::from_raw) {
            // The process may be gone already.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo started; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut started = [0; 8];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut started).unwrap();
        let below = of(child.id());
        assert_eq!(below.len(), 1, "{below:?}");
        kill(&[linux::entry(child.id()).unwrap()]);
        child.wait().unwrap();
        assert!(!linux::processes().iter().any(|it| below.contains(it)));
    }
}
