//! Python's own interpreter: it must be there, `python3` of version 3.11 or newer.

mod dense;
mod journal;
mod scripts;

use toolgate_sandbox::{
    MachinePython, Pool, PythonChoice, PythonEngine, PythonSettings, RunReport,
};

use super::support::{limits, python, run, settings};

/// A pool that runs Python scripts with the machine's own Python.
pub(crate) fn pool() -> Pool {
    with(PythonSettings { choice: PythonChoice::Auto, packages: Vec::new() })
}

pub(crate) fn with(python: PythonSettings) -> Pool {
    let mut settings = settings();
    settings.python = python;
    Pool::new(settings)
}

/// The interpreter of a pool.
pub(crate) async fn interpreter(pool: &Pool) -> &MachinePython {
    match pool.python().await {
        PythonEngine::Machine(python) => python,
        other => panic!("the tests need a Python of 3.11 or newer: {other:?}"),
    }
}

pub(crate) async fn run_python(pool: &Pool, code: &str) -> RunReport {
    interpreter(pool).await;
    run(pool, python(code), &limits()).await
}
