//! Workers that wait for a script.

mod spawner;
mod worker;

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use self::spawner::Spawner;
pub(crate) use self::worker::Worker;
use super::journal::SandboxScript;
use crate::{limits::RunLimits, lockdown::LockdownReport, report::RunReport, run, tools::Tools};

/// How workers are started, and how many wait.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The program that is a worker when it is started with `arguments`.
    pub program: PathBuf,
    /// What makes it one.
    pub arguments: Vec<OsString>,
    /// How many workers wait for a script.
    pub warm: usize,
    /// How many scripts may run at once.
    pub runs: usize,
}

/// How many workers wait if nothing else is said: a run, and one right after it.
const DEFAULT_WARM: usize = 2;
/// How many scripts may run if nothing else is said. Each is a process of a few megabytes.
const DEFAULT_RUNS: usize = 256;

impl PoolSettings {
    /// A program that is a worker when it is started with these arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, warm: DEFAULT_WARM, runs: DEFAULT_RUNS }
    }

    /// This very program, started with these arguments.
    pub fn this_program(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> io::Result<Self> {
        // The link is the program that runs, even if another one was installed in its place since.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self::new(program, arguments))
    }
}

/// Starts workers ahead of time and runs scripts in them, each in one of its own.
///
/// Nothing is started until [`Pool::warm_up`] or the first run. When the pool is dropped, its
/// workers end.
#[derive(Debug)]
pub struct Pool {
    spawner: Spawner,
    running: Arc<AtomicUsize>,
    runs: usize,
}

impl Pool {
    /// A pool that has not started anything yet.
    pub fn new(settings: PoolSettings) -> io::Result<Self> {
        let runs = settings.runs;
        Ok(Self { spawner: Spawner::new(settings)?, running: Arc::default(), runs })
    }

    /// Starts workers, so that the first run finds one waiting.
    pub fn warm_up(&self) {
        self.spawner.warm_up();
    }

    /// How many workers wait for a script right now.
    pub fn waiting(&self) -> usize {
        self.spawner.waiting()
    }

    /// Runs a script to its end, to a limit, or until it is cancelled.
    ///
    /// Dropping the future ends the run as well, without a report.
    pub async fn run(
        &self,
        script: SandboxScript,
        limits: &RunLimits,
        tools: Arc<dyn Tools>,
        cancel: CancellationToken,
    ) -> RunReport {
        run::run(self, script, limits, tools, cancel).await
    }

    /// Starts a worker, to see what holds it.
    pub async fn probe(&self) -> Result<LockdownReport, ProbeError> {
        let worker = self.take().await.map_err(ProbeError::Spawn)?;
        tokio::time::timeout(PROBE_TIME, run::ready(worker))
            .await
            .map_err(|_| ProbeError::Silent)?
    }

    /// A worker that has read nothing yet.
    pub(crate) async fn take(&self) -> io::Result<Worker> {
        self.spawner.take().await
    }

    /// A place among those that run.
    pub(crate) fn enter(&self) -> Result<RunSlot, usize> {
        let slot = RunSlot(Arc::clone(&self.running));
        if self.running.fetch_add(1, Ordering::Relaxed) >= self.runs {
            // Dropping the place gives it back.
            return Err(self.runs);
        }
        Ok(slot)
    }
}

/// How long a worker may take to say that it is ready, when nothing else is waited for.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// A place among those that run, until it is dropped.
#[derive(Debug)]
pub(crate) struct RunSlot(Arc<AtomicUsize>);

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why it is not known what holds a worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It could not be started. No script can run.
    #[error("cannot start a worker: {0}")]
    Spawn(#[source] io::Error),
    /// It ended at once. No script can run.
    #[error("the worker does not start: {0}")]
    Ended(String),
    /// It says nothing. No script can run.
    #[error("the worker does not say that it is ready")]
    Silent,
}
