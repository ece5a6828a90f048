//! The pool of workers.

mod components;
mod python;
mod spawner;
mod worker;
mod zygote;

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

use tokio::time::timeout;
use toolgate_bindings::check::Language;

pub(crate) use self::worker::Worker;
use self::{components::ComponentPool, python::PythonPool, spawner::Spawner};
use crate::{
    cpython::{MachinePython, PythonEngine, PythonSettings},
    language::{ComponentProgram, ScriptLanguage},
    lockdown::LockdownReport,
    run,
};

/// How to start workers, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// The program whose processes run scripts.
    pub worker: WorkerProgram,
    /// Which Python runs scripts.
    pub python: PythonSettings,
    /// The number of workers of each program that wait for a script.
    pub warm: usize,
    /// The number of scripts that may run at once.
    pub runs: usize,
}

/// A program that is a zygote: it keeps to the protocol of [`crate::control`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    /// The file of the program.
    pub program: PathBuf,
    /// The name that the program is started with (`argv[0]`).
    pub name: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// The environment. The program inherits no other variables.
    pub variables: Vec<(OsString, OsString)>,
    /// What it finds in its control socket when it starts.
    pub messages: Vec<Vec<u8>>,
}

/// The name that makes a program that embeds the library a zygote.
const NAME: &str = "toolgate-worker";
/// The variable that marks a process which was started to run scripts, also if its name is lost, as by a
/// program that starts another one in its place.
pub const WORKER_VARIABLE: &str = "TOOLGATE_WORKER";
/// The default number of waiting workers: one for a run, and one for the run right after it.
const DEFAULT_WARM: usize = 2;
/// The default number of scripts that may run at once. Each is a process of a few megabytes.
const DEFAULT_RUNS: usize = 256;

impl WorkerProgram {
    /// A program that calls [`crate::worker_main`] when it gets these arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            name: NAME.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            messages: Vec::new(),
        }
    }
}

impl PoolSettings {
    /// Settings for a program that calls [`crate::worker_main`] when it gets these arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let worker = WorkerProgram::new(program, arguments);
        let python = PythonSettings::default();
        Self { worker, python, warm: DEFAULT_WARM, runs: DEFAULT_RUNS }
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

/// Runs each script in its own worker, which a zygote forks.
///
/// The pool starts no process before [`Pool::warm_up`] or the first run. Dropping the pool ends its
/// processes.
#[derive(Debug)]
pub struct Pool {
    spawner: Spawner,
    python: Arc<PythonPool>,
    components: ComponentPool,
    running: Arc<AtomicUsize>,
    runs: usize,
}

impl Pool {
    /// A pool without processes.
    pub fn new(settings: PoolSettings) -> Self {
        let PoolSettings { worker, python, warm, runs } = settings;
        let python = Arc::new(PythonPool::new(python, warm));
        let components = ComponentPool::new(worker.clone(), warm);
        let spawner = Spawner::new(worker, warm);
        Self { spawner, python, components, running: Arc::default(), runs }
    }

    /// Starts the zygotes and the waiting workers, so that the first run need not wait for them.
    pub fn warm_up(&self) {
        self.spawner.warm_up();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let python = Arc::clone(&self.python);
            runtime.spawn(async move { python.warm_up().await });
        }
    }

    /// The Python that runs scripts. The first call finds and starts it, which takes a moment.
    pub async fn python(&self) -> &PythonEngine {
        self.python.engine().await
    }

    /// Finds the Python of this machine that will run scripts. The first call asks the program for its
    /// version.
    pub async fn interpreter(&self) -> Option<&MachinePython> {
        self.python.interpreter().await
    }

    /// The same, if it was found already.
    pub fn known_interpreter(&self) -> Option<&MachinePython> {
        self.python.known_interpreter()
    }

    /// The number of workers that wait for a script.
    pub fn waiting(&self) -> usize {
        self.spawner.waiting() + self.python.waiting() + self.components.waiting()
    }

    /// Starts a worker for a language and returns its lockdown report.
    pub async fn probe(
        &self,
        language: impl Into<ScriptLanguage>,
    ) -> Result<LockdownReport, ProbeError> {
        match language.into() {
            ScriptLanguage::Component(component) => {
                probe(&*self.components.of(&component).map_err(ProbeError::Spawn)?).await
            }
            ScriptLanguage::BuiltIn(Language::Python)
                if let PythonEngine::Machine(_) = self.python().await =>
            {
                self.python.probe().await
            }
            ScriptLanguage::BuiltIn(_) => probe(&self.spawner).await,
        }
    }

    /// A worker that has received nothing yet.
    pub(crate) async fn take(&self, language: &ScriptLanguage) -> io::Result<Worker> {
        match language {
            ScriptLanguage::BuiltIn(_) => self.spawner.take().await,
            ScriptLanguage::Component(component) => self.components.of(component)?.take().await,
        }
    }

    /// A worker of Python's own interpreter that has received nothing yet.
    pub(crate) async fn take_interpreter(&self) -> io::Result<Worker> {
        self.python.take().await
    }

    /// Replaces the zygote whose worker crashed.
    ///
    /// The workers of a zygote have the same addresses and secrets of the run-time library. So an
    /// attack that fails must not teach the next one anything.
    pub(crate) fn after_crash(&self, of: &WorkerKind) {
        match of {
            WorkerKind::Own => self.spawner.retire_zygote(),
            WorkerKind::Interpreter => self.python.retire_zygote(),
            WorkerKind::Component(component) => self.components.retire_zygote(component),
        }
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

/// Which zygote a worker comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// That of this program.
    Own,
    /// That of Python's own interpreter.
    Interpreter,
    /// That of a component.
    Component(Arc<ComponentProgram>),
}

/// Takes a worker and returns its report.
async fn probe(spawner: &Spawner) -> Result<LockdownReport, ProbeError> {
    let worker = spawner.take().await.map_err(ProbeError::Spawn)?;
    timeout(PROBE_TIME, run::ready(worker)).await.map_err(|_| ProbeError::Silent)?
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
