//! One run, on the side of the host.

mod call_table;
mod driver;
mod end;
mod replay;
mod wire;

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use self::{driver::RunDriver, wire::Wire};
use super::journal::SandboxScript;
use crate::{
    captured::CapturedOutput,
    frame::FromWorker,
    limits::{LimitReached, RunLimits},
    lockdown::LockdownReport,
    pool::{Pool, ProbeError, Worker},
    report::{RunOutcome, RunReport},
    tools::Tools,
};

/// How many workers may end before they start the script. All waiting workers may have been killed;
/// more than that is no accident.
const ATTEMPTS: usize = 4;

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
        let started = Instant::now();
        let clock = tools.clock();
        clock.start();
        let _slot = match self.enter() {
            Ok(slot) => slot,
            Err(limit) => {
                return never_began(started, RunOutcome::Stopped(LimitReached::Runs { limit }));
            }
        };
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let taken = tokio::select! {
                taken = self.take() => taken,
                () = cancel.cancelled() => return never_began(started, RunOutcome::Cancelled),
                () = clock.clone().reach(limits.wall) => {
                    let stop = LimitReached::Wall { limit: limits.wall };
                    return never_began(started, RunOutcome::Stopped(stop));
                }
            };
            let driver = taken.and_then(|worker| {
                RunDriver::new(
                    worker,
                    &script,
                    limits,
                    Arc::clone(&tools),
                    &cancel,
                    started,
                    &clock,
                )
            });
            match driver {
                Ok(driver) => match driver.run_to_the_end().await {
                    Ok(report) => return report,
                    Err(ended) => why = ended.to_string(),
                },
                Err(error) => why = error.to_string(),
            }
        }
        never_began(started, RunOutcome::Crashed(format!("the worker does not start: {why}")))
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
            return Err(ProbeError::Ended(end::describe_exit(worker.end().await)));
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
