//! A worker process, on the side of the host.

use std::{
    io,
    os::unix::{net::UnixStream as StdStream, process::CommandExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{net::UnixStream, sync::oneshot};

use super::PoolSettings;
use crate::system::clock::CpuClock;

/// A process to be reaped, and the receiver of its exit status.
pub(super) type ReapRequest = (Child, Option<oneshot::Sender<ExitStatus>>);

/// A worker process for one script. Dropping this kills the process.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Option<Child>,
    stream: Option<StdStream>,
    reaper: mpsc::Sender<ReapRequest>,
}

impl Worker {
    /// Starts a worker. It inherits only its end of the pipe.
    pub(super) fn spawn(
        settings: &PoolSettings,
        reaper: mpsc::Sender<ReapRequest>,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        // No code runs between fork and exec, so that the system can start the process without
        // copying this one. The worker itself closes what it does not need.
        let child = Command::new(&settings.program)
            .arg0("toolgate-worker")
            .args(&settings.arguments)
            .env_clear()
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal is meant for the host, which decides what happens to the script.
            .process_group(0)
            .spawn()?;
        Ok(Self { child: Some(child), stream: Some(ours), reaper })
    }

    /// Whether the process still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The host's end of the pipe. It can be taken once.
    pub(crate) fn stream(&mut self) -> io::Result<UnixStream> {
        let stream = self.stream.take().ok_or_else(|| io::Error::other("taken already"))?;
        UnixStream::from_std(stream)
    }

    /// The clock of the worker's CPU time.
    pub(crate) fn clock(&self) -> Option<CpuClock> {
        // The process is not reaped before `self` is dropped, so the id is still its own.
        CpuClock::of(self.child.as_ref()?.id())
    }

    /// Asks the worker to send its remaining frames and to end.
    pub(crate) fn ask_to_stop(&self) {
        let process = self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        if let Some(process) = process.and_then(Pid::from_raw) {
            // The worker may have ended already.
            let _ = kill_process(process, Signal::TERM);
        }
    }

    /// Kills the worker. Frames that it has sent can still be read.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // The worker may have ended already; its exit status then stays as it is.
            let _ = child.kill();
        }
    }

    /// Kills the worker and returns its exit status, also if it had ended before.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        let (answer, status) = oneshot::channel();
        self.reaper.send((self.child.take()?, Some(answer))).ok()?;
        status.await.ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.child.take()
            && let Err(mpsc::SendError((mut child, _))) = self.reaper.send((child, None))
        {
            // The process was killed, so this does not take long.
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpgid;

    use super::*;

    #[test]
    fn signals_of_the_terminal_do_not_reach_a_worker() {
        let settings = PoolSettings::new("cat", std::iter::empty::<String>());
        let (reaper, _burials) = mpsc::channel();
        let worker = Worker::spawn(&settings, reaper).unwrap();
        let process =
            i32::try_from(worker.child.as_ref().unwrap().id()).ok().and_then(Pid::from_raw);
        assert_eq!(getpgid(process).ok(), process, "it leads a group of its own");
    }
}
