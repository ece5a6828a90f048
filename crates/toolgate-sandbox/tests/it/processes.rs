//! The processes of a pool, seen from outside.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::AsRawFd,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};
use toolgate_sandbox::lockdown::LockdownReport;

/// The processes below `ancestor` that still run, each with its parent.
pub(crate) fn below(ancestor: u32) -> BTreeMap<u32, u32> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next(), fields.next().and_then(|text| text.parse().ok()));
        if let Some(parent) = parent
            && state != Some("Z")
        {
            parents.insert(process, parent);
        }
    }
    let mut found = BTreeSet::from([ancestor]);
    loop {
        let size = found.len();
        found.extend(
            parents.iter().filter(|(_, p)| found.contains(p)).map(|(c, _)| *c).collect::<Vec<_>>(),
        );
        if found.len() == size {
            break;
        }
    }
    parents.retain(|process, _| *process != ancestor && found.contains(process));
    parents
}

/// The workers of a host, if there are some, each with its zygote.
pub(crate) fn workers_of(host: u32) -> BTreeMap<u32, u32> {
    let mut processes = below(host);
    let parents: BTreeSet<u32> = processes.values().copied().collect();
    processes.retain(|process, _| !parents.contains(process));
    processes
}

/// The process that forks the workers of a host that has some.
pub(crate) fn zygote_of(host: u32) -> u32 {
    *workers_of(host).values().next().unwrap()
}

pub(crate) fn kill(process: u32) {
    let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    match rustix::process::kill_process(process, Signal::KILL) {
        // It has ended by itself meanwhile.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A host in a process of its own, with one worker that spins and two that wait.
pub(crate) struct Host {
    pub(crate) process: Child,
    pub(crate) report: LockdownReport,
}

impl Host {
    /// Starts it, as another user if that is possible.
    pub(crate) async fn start(user: Option<u32>) -> Self {
        // The other user may not be able to reach the folder of the program.
        let program = std::fs::File::open(env!("CARGO_BIN_EXE_toolgate-sandbox-worker")).unwrap();
        rustix::io::fcntl_setfd(&program, rustix::io::FdFlags::empty()).unwrap();
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        command.arg("host").current_dir("/").stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let report = lines.next_line().await.unwrap().unwrap();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), "running");
        Self { process, report: serde_json::from_str(&report).unwrap() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id().unwrap()
    }
}
