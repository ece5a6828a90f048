//! A worker process, on the side of the host.

use std::{
    io,
    os::unix::net::UnixStream as StdStream,
    process::ExitStatus,
    sync::{Arc, Weak},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};
use tokio::{net::UnixStream, task::yield_now, time::timeout};

use super::{spawner::SpawnerShared, zygote::Zygote};
use crate::system::{clock::CpuClock, process::ProcessHandle};

/// How long to wait for the exit status of a worker that was killed. The system needs much less.
const REAP_TIME: Duration = Duration::from_secs(2);

/// A worker process for one script. Dropping this kills the process.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The process that started the worker, and that knows it by this process id.
    zygote: Arc<Zygote>,
    process: u32,
    /// `None` once the process is reaped.
    handle: Option<ProcessHandle>,
    stream: Option<StdStream>,
    /// Who starts the next worker.
    spawner: Weak<SpawnerShared>,
}

impl Worker {
    pub(super) fn new(
        zygote: Arc<Zygote>,
        process: u32,
        handle: ProcessHandle,
        stream: StdStream,
        spawner: Weak<SpawnerShared>,
    ) -> Self {
        Self { zygote, process, handle: Some(handle), stream: Some(stream), spawner }
    }

    /// Whether the process still runs.
    pub(super) fn is_alive(&self) -> bool {
        let Some(stream) = &self.stream else { return false };
        let mut descriptors = [PollFd::new(stream, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The pipe is closed when the worker ends.
        matches!(poll(&mut descriptors, Some(&at_once)), Ok(0))
    }

    /// The host's end of the pipe. It can be taken once.
    pub(crate) fn stream(&mut self) -> io::Result<UnixStream> {
        let stream = self.stream.take().ok_or_else(|| io::Error::other("taken already"))?;
        UnixStream::from_std(stream)
    }

    /// The clock of the worker's CPU time.
    pub(crate) fn clock(&self) -> Option<CpuClock> {
        self.handle.as_ref()?.clock()
    }

    /// Asks the worker to send its remaining frames and to end.
    pub(crate) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the worker. Frames that it has sent can still be read.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills the worker and returns its exit status, also if it had ended before.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        self.handle.take()?;
        timeout(REAP_TIME, self.zygote.reap(self.process)).await.ok()?.ok()
    }

    /// Ends the worker after its last frame, and replaces it. Whoever waits for the result of the run gets it first.
    pub(crate) fn retire(self, pipe: impl Send + 'static) {
        tokio::spawn(async move {
            yield_now().await;
            let spawner = Weak::clone(&self.spawner);
            drop((pipe, self));
            if let Some(spawner) = spawner.upgrade() {
                spawner.replace();
            }
        });
    }

    fn signal(&self, signal: Signal) {
        if let Some(handle) = &self.handle {
            handle.signal(signal);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        if self.handle.take().is_some() {
            drop(self.zygote.reap(self.process));
        }
    }
}
