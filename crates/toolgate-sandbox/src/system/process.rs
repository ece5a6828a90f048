//! A process that is not a child of this one.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, kill_process};

use super::clock::CpuClock;

/// A process that its parent reaps only when it is asked to.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    /// The process id in the PID namespace of this process, if it is known.
    process: Option<u32>,
    /// The pidfd: no other process gets a signal, even if the parent has ended and the id belongs to
    /// another process.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "Linux alone has pidfds"))]
    pidfd: Option<OwnedFd>,
}

impl ProcessHandle {
    /// The process with this pidfd; without one, the process with this id.
    pub(crate) fn new(process: u32, pidfd: Option<OwnedFd>) -> Self {
        let process = match &pidfd {
            Some(pidfd) => process_of(pidfd),
            None => Some(process),
        };
        Self { process, pidfd }
    }

    /// Sends a signal. The process may have ended already.
    pub(crate) fn signal(&self, signal: Signal) {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = &self.pidfd {
            let _ = rustix::process::pidfd_send_signal(pidfd, signal);
            return;
        }
        let process = self.process.and_then(|process| i32::try_from(process).ok());
        if let Some(process) = process.and_then(Pid::from_raw) {
            let _ = kill_process(process, signal);
        }
    }

    /// The clock of its CPU time, if the system has one.
    pub(crate) fn clock(&self) -> Option<CpuClock> {
        CpuClock::of(self.process?)
    }
}

/// The process id of a pidfd in the PID namespace of this process.
fn process_of(pidfd: &OwnedFd) -> Option<u32> {
    use std::os::fd::AsRawFd;
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
    about.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use rustix::process::{PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    fn a_pidfd_names_its_process() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let pidfd = pidfd_open(process, PidfdFlags::empty()).unwrap();
        // The zygote may know it by another id.
        let handle = ProcessHandle::new(1, Some(pidfd));
        assert_eq!(handle.process, Some(child.id()));
        assert!(handle.clock().is_some());
        handle.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
        // Afterwards it names nobody.
        assert_ne!(process_of(handle.pidfd.as_ref().unwrap()), Some(child.id()));
        handle.signal(Signal::KILL);
    }
}
