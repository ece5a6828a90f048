//! The pool of workers.

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

use self::spawner::Spawner;
pub(crate) use self::worker::Worker;
use crate::{lockdown::LockdownReport, run};

/// How to start workers, and how many.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The program of the worker.
    pub program: PathBuf,
    /// The arguments that make the program a worker.
    pub arguments: Vec<OsString>,
    /// The number of workers that wait for a script.
    pub warm: usize,
    /// The number of scripts that may run at once.
    pub runs: usize,
}

/// The default number of waiting workers: one for a run, and one for the run right after it.
const DEFAULT_WARM: usize = 2;
/// The default number of scripts that may run at once. Each is a process of a few megabytes.
const DEFAULT_RUNS: usize = 256;

impl PoolSettings {
    /// Settings for a program that is a worker when it gets these arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, warm: DEFAULT_WARM, runs: DEFAULT_RUNS }
    }

    /// Settings that use the running program as the worker.
    pub fn this_program(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> io::Result<Self> {
        // The link leads to the running program even if another one has been installed over it.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self::new(program, arguments))
    }
}

/// Starts workers ahead of time and runs each script in its own worker.
///
/// The pool starts no process before [`Pool::warm_up`] or the first run. Dropping the pool ends its
/// workers.
#[derive(Debug)]
pub struct Pool {
    spawner: Spawner,
    running: Arc<AtomicUsize>,
    runs: usize,
}

impl Pool {
    /// A pool without workers.
    pub fn new(settings: PoolSettings) -> io::Result<Self> {
        let runs = settings.runs;
        Ok(Self { spawner: Spawner::new(settings)?, running: Arc::default(), runs })
    }

    /// Starts the waiting workers, so that the first run need not wait for one.
    pub fn warm_up(&self) {
        self.spawner.warm_up();
    }

    /// The number of workers that wait for a script.
    pub fn waiting(&self) -> usize {
        self.spawner.waiting()
    }

    /// Starts a worker and returns its lockdown report.
    pub async fn probe(&self) -> Result<LockdownReport, ProbeError> {
        let worker = self.take().await.map_err(ProbeError::Spawn)?;
        tokio::time::timeout(PROBE_TIME, run::ready(worker))
            .await
            .map_err(|_| ProbeError::Silent)?
    }

    /// A worker that has received nothing yet.
    pub(crate) async fn take(&self) -> io::Result<Worker> {
        self.spawner.take().await
    }

    /// Reserves a slot for a run. Fails with the limit if all slots are in use.
    pub(crate) fn enter(&self) -> Result<RunSlot, usize> {
        let slot = RunSlot(Arc::clone(&self.running));
        if self.running.fetch_add(1, Ordering::Relaxed) >= self.runs {
            // Dropping the slot releases it.
            return Err(self.runs);
        }
        Ok(slot)
    }
}

/// How long a worker may take to become ready, when nothing else is waited for.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// The slot of a run, released when it is dropped.
#[derive(Debug)]
pub(crate) struct RunSlot(Arc<AtomicUsize>);

impl Drop for RunSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a worker could not be probed. No script can run then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The worker could not be started.
    #[error("cannot start a worker: {0}")]
    Spawn(#[source] io::Error),
    /// The worker ended at once.
    #[error("the worker does not start: {0}")]
    Ended(String),
    /// The worker did not report that it is ready.
    #[error("the worker does not say that it is ready")]
    Silent,
}
