//! One run, on the side of the host.

mod call_table;
mod driver;
mod end;
mod replay;
mod wire;

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;
use toolgate_bindings::check::Language;

pub(crate) use self::end::describe_exit;
use self::{
    driver::{RunAttempt, RunDriver},
    wire::Wire,
};
use super::journal::SandboxScript;
use crate::{
    captured::CapturedOutput,
    component::{NoComponents, runs_components},
    cpython::PythonEngine,
    frame::{FromWorker, InterpreterFacts},
    language::ScriptLanguage,
    limits::{LimitReached, RunLimits},
    lockdown::LockdownReport,
    pool::{Pool, ProbeError, Worker},
    report::{RunOutcome, RunReport},
    tools::Tools,
};

/// How many workers may end before they start the script. All waiting workers may have been killed;
/// more than that is no accident.
const ATTEMPTS: usize = 4;

/// Why no script of a language runs.
#[derive(Debug, thiserror::Error)]
enum CannotRun {
    /// The Python that the configuration names cannot run scripts. No Python script runs.
    #[error("the Python of codeMode.python cannot run scripts: {0}")]
    Python(String),
    /// This program has no components. Languages that are built in run.
    #[error(transparent)]
    Components(#[from] NoComponents),
}

impl Pool {
    /// Runs a script in a worker of its own: to its end, to a limit, or until it is cancelled.
    ///
    /// Dropping the future ends the run as well, without a report.
    pub async fn run(
        &self,
        script: SandboxScript,
        limits: &RunLimits,
        tools: Arc<dyn Tools>,
        cancel: CancellationToken,
    ) -> RunReport {
        self.take_to_the_end(script, limits, tools, cancel, false).await
    }

    /// Checks a script in a worker of its own, and does not run it. It ends with [`RunOutcome::Value`] if it could run;
    /// findings are in [`RunOutcome::Rejected`] or in the warnings. Of `tools` only the descriptions are used.
    pub async fn check(
        &self,
        script: SandboxScript,
        limits: &RunLimits,
        tools: Arc<dyn Tools>,
        cancel: CancellationToken,
    ) -> RunReport {
        self.take_to_the_end(script, limits, tools, cancel, true).await
    }

    async fn take_to_the_end(
        &self,
        script: SandboxScript,
        limits: &RunLimits,
        tools: Arc<dyn Tools>,
        cancel: CancellationToken,
        only_checks: bool,
    ) -> RunReport {
        let started = Instant::now();
        let clock = tools.clock();
        clock.start();
        let _slot = match self.enter() {
            Ok(slot) => slot,
            Err(limit) => {
                return never_began(started, RunOutcome::Stopped(LimitReached::Runs { limit }));
            }
        };
        let interpreter = tokio::select! {
            interpreter = self.interpreter_of(&script.language) => interpreter,
            () = cancel.cancelled() => return never_began(started, RunOutcome::Cancelled),
            () = clock.clone().reach(limits.wall) => {
                let stop = LimitReached::Wall { limit: limits.wall };
                return never_began(started, RunOutcome::Stopped(stop));
            }
        };
        let interpreter = match interpreter {
            Ok(interpreter) => interpreter,
            Err(why) => return never_began(started, RunOutcome::Crashed(why.to_string())),
        };
        let attempt =
            RunAttempt { limits, cancel: &cancel, started, clock: clock.clone(), only_checks };
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let taken = tokio::select! {
                taken = self.take(&script.language) => taken,
                () = cancel.cancelled() => return never_began(started, RunOutcome::Cancelled),
                () = clock.clone().reach(limits.wall) => {
                    let stop = LimitReached::Wall { limit: limits.wall };
                    return never_began(started, RunOutcome::Stopped(stop));
                }
            };
            let driver = taken.and_then(|worker| {
                let tools = Arc::clone(&tools);
                RunDriver::new(worker, &script, interpreter.as_ref(), tools, &attempt)
            });
            match driver {
                Ok(driver) => match driver.run_to_the_end(self).await {
                    Ok(report) => return report,
                    Err(ended) => why = ended.to_string(),
                },
                Err(error) => why = error.to_string(),
            }
        }
        never_began(started, RunOutcome::Crashed(format!("the worker does not start: {why}")))
    }

    /// What Python's own interpreter has, if it runs scripts of the language.
    async fn interpreter_of(
        &self,
        language: &ScriptLanguage,
    ) -> Result<Option<InterpreterFacts>, CannotRun> {
        match language {
            ScriptLanguage::BuiltIn(Language::TypeScript) => return Ok(None),
            ScriptLanguage::BuiltIn(Language::Python) => {}
            ScriptLanguage::Component(_) => {
                return Ok(runs_components().map(|()| None)?);
            }
        }
        match self.python().await {
            PythonEngine::Embedded { .. } => Ok(None),
            PythonEngine::Machine(python) => {
                let packages = python.usable_packages().map(str::to_owned).collect();
                Ok(Some(InterpreterFacts { packages }))
            }
            PythonEngine::Unusable { why } => Err(CannotRun::Python(why.clone())),
        }
    }
}

/// Waits until a new worker is ready and returns its lockdown report.
pub(crate) async fn ready(mut worker: Worker) -> Result<LockdownReport, ProbeError> {
    let stream = worker.stream().map_err(ProbeError::Spawn)?;
    let mut wire = Wire::new(stream);
    loop {
        match wire.next_frame() {
            Ok(Some(FromWorker::Ready(report))) => return Ok(report),
            Ok(Some(_)) => {
                return Err(ProbeError::Ended(String::from("it sent an unexpected message")));
            }
            Err(error) => return Err(ProbeError::Ended(error.to_string())),
            Ok(None) => {}
        }
        if !wire.read().await {
            return Err(ProbeError::Ended(describe_exit(worker.end().await)));
        }
    }
}

fn never_began(started: Instant, outcome: RunOutcome) -> RunReport {
    RunReport {
        outcome,
        output: CapturedOutput::default(),
        emitted: Vec::new(),
        warnings: Vec::new(),
        calls: Vec::new(),
        calls_left_out: 0,
        cpu: std::time::Duration::ZERO,
        wall: started.elapsed(),
    }
}
