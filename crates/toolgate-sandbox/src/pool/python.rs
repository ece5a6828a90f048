//! The workers of Python's own interpreter.

use std::io;

use tokio::sync::OnceCell;

use super::{ProbeError, probe, spawner::Spawner, worker::Worker};
use crate::{
    cpython::{self, MachinePython, NoInterpreter, PythonChoice, PythonEngine, PythonSettings},
    lockdown::LockdownReport,
};

/// Finds the interpreter when it is needed first, and starts its workers.
#[derive(Debug)]
pub(super) struct PythonPool {
    settings: PythonSettings,
    warm: usize,
    /// The interpreter, or why there is none.
    found: OnceCell<Result<MachinePython, NoInterpreter>>,
    /// The interpreter after a worker of it has shown that it can be confined.
    started: OnceCell<(PythonEngine, Option<Spawner>)>,
}

impl PythonPool {
    pub(super) fn new(settings: PythonSettings, warm: usize) -> Self {
        Self { settings, warm, found: OnceCell::new(), started: OnceCell::new() }
    }

    /// The Python that runs scripts.
    pub(super) async fn engine(&self) -> &PythonEngine {
        &self.started.get_or_init(|| self.start()).await.0
    }

    /// The interpreter that will most likely run scripts.
    pub(super) async fn interpreter(&self) -> Option<&MachinePython> {
        let _ = self.find().await;
        self.known_interpreter()
    }

    async fn find(&self) -> &Result<MachinePython, NoInterpreter> {
        self.found.get_or_init(|| cpython::find(&self.settings)).await
    }

    /// The same, if it is known already.
    pub(super) fn known_interpreter(&self) -> Option<&MachinePython> {
        match self.started.get() {
            Some((PythonEngine::Machine(_), _)) | None => self.found.get()?.as_ref().ok(),
            Some(_) => None,
        }
    }

    pub(super) async fn warm_up(&self) {
        self.engine().await;
        if let Ok(spawner) = self.spawner() {
            spawner.warm_up();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.spawner().map_or(0, Spawner::waiting)
    }

    pub(super) async fn take(&self) -> io::Result<Worker> {
        self.spawner()?.take().await
    }

    pub(super) async fn probe(&self) -> Result<LockdownReport, ProbeError> {
        probe(self.spawner().map_err(ProbeError::Spawn)?).await
    }

    pub(super) fn retire_zygote(&self) {
        if let Ok(spawner) = self.spawner() {
            spawner.retire_zygote();
        }
    }

    fn spawner(&self) -> io::Result<&Spawner> {
        let spawner = self.started.get().and_then(|(_, spawner)| spawner.as_ref());
        spawner.ok_or_else(|| io::Error::other("no Python of this machine runs scripts"))
    }

    async fn start(&self) -> (PythonEngine, Option<Spawner>) {
        let started = match self.find().await {
            Ok(python) => {
                let started = self.start_zygote(python).await;
                started.map(|spawner| (python.clone(), spawner)).map_err(|why| why.to_string())
            }
            Err(why) => Err(why.to_string()),
        };
        match (started, &self.settings.choice) {
            (Ok((python, spawner)), _) => (PythonEngine::Machine(python), Some(spawner)),
            (Err(why), PythonChoice::Named(_)) => (PythonEngine::Unusable { why }, None),
            (Err(why), PythonChoice::Auto | PythonChoice::Embedded) => {
                (PythonEngine::Embedded { why }, None)
            }
        }
    }

    /// Starts the zygote, and a worker that shows that it can be confined.
    async fn start_zygote(&self, python: &MachinePython) -> Result<Spawner, NoInterpreter> {
        let spawner = Spawner::new(cpython::worker_program(python)?, self.warm);
        let not_confined = |why: String| NoInterpreter::NotConfined { python: python.clone(), why };
        let report = probe(&spawner).await.map_err(|error| not_confined(error.to_string()))?;
        match report.lacking() {
            None => Ok(spawner),
            Some(lacking) => Err(not_confined(lacking.to_string())),
        }
    }
}
