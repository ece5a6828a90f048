//! A worker process, seen from the host.

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

/// A process that is to be reaped, and who wants to know how it ended.
pub(super) type ReapRequest = (Child, Option<oneshot::Sender<ExitStatus>>);

/// A process with a script of its own, or none yet. It does not outlive this.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Option<Child>,
    stream: Option<StdStream>,
    reaper: mpsc::Sender<ReapRequest>,
}

impl Worker {
    /// Starts one. What it inherits is its end of the pipe.
    pub(super) fn spawn(
        settings: &PoolSettings,
        reaper: mpsc::Sender<ReapRequest>,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        // Nothing that runs between fork and exec: so that the system can start it without
        // copying this process. The worker itself drops what it does not need.
        let child = Command::new(&settings.program)
            .arg0("toolgate-worker")
            .args(&settings.arguments)
            .env_clear()
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal is for us: what becomes of a script is not the terminal's to say.
            .process_group(0)
            .spawn()?;
        Ok(Self { child: Some(child), stream: Some(ours), reaper })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// The host's end of the pipe; once.
    pub(crate) fn stream(&mut self) -> io::Result<UnixStream> {
        let stream = self.stream.take().ok_or_else(|| io::Error::other("taken already"))?;
        UnixStream::from_std(stream)
    }

    /// What counts its CPU time.
    pub(crate) fn clock(&self) -> Option<CpuClock> {
        // Not reaped before `self` is gone, so the number is its own.
        CpuClock::of(self.child.as_ref()?.id())
    }

    /// Asks it to send what it has and to end.
    pub(crate) fn ask_to_stop(&self) {
        let process = self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
        if let Some(process) = process.and_then(Pid::from_raw) {
            // That it ended already is fine.
            let _ = kill_process(process, Signal::TERM);
        }
    }

    /// Ends it. What it has sent can still be read.
    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // That it ended already is fine, and leaves how it ended as it is.
            let _ = child.kill();
        }
    }

    /// Ends it, and says how it ended; if it had ended already, how it did so.
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
            // Nobody else is left to do it, and it was killed: this does not take long.
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::getpgid;

    use super::*;

    #[test]
    fn a_terminal_s_signals_are_not_for_it() {
        let settings = PoolSettings::new("cat", std::iter::empty::<String>());
        let (reaper, _burials) = mpsc::channel();
        let worker = Worker::spawn(&settings, reaper).unwrap();
        let process =
            i32::try_from(worker.child.as_ref().unwrap().id()).ok().and_then(Pid::from_raw);
        assert_eq!(getpgid(process).ok(), process, "it leads a group of its own");
    }
}
