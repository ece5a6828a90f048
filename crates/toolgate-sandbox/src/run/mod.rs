//! One run, seen from the host.

mod crash;
mod drive;
mod end;
mod ledger;
mod timeline;
mod wire;

use std::{sync::Arc, time::Instant};

use tokio_util::sync::CancellationToken;

use self::{drive::Drive, wire::Wire};
use crate::{
    captured::Captured,
    frame::FromWorker,
    limits::{RunLimits, Stop},
    lockdown::LockdownReport,
    pool::{Pool, ProbeError, Worker},
    report::{Outcome, Report},
    script::Script,
    tools::Tools,
};

/// Workers that die before they begin: all that waited may have been killed, more are no accident.
const ATTEMPTS: usize = 4;

/// Runs a script in a worker of its own.
pub(crate) async fn run(
    pool: &Pool,
    script: Script,
    limits: &RunLimits,
    tools: Arc<dyn Tools>,
    cancel: CancellationToken,
) -> Report {
    let started = Instant::now();
    let clock = tools.clock();
    clock.start();
    let _place = match pool.enter() {
        Ok(place) => place,
        Err(limit) => return never_began(started, Outcome::Stopped(Stop::Runs { limit })),
    };
    let mut why = String::new();
    for _ in 0..ATTEMPTS {
        let taken = tokio::select! {
            taken = pool.take() => taken,
            () = cancel.cancelled() => return never_began(started, Outcome::Cancelled),
            () = clock.clone().reach(limits.wall) => {
                let stop = Stop::Wall { limit: limits.wall };
                return never_began(started, Outcome::Stopped(stop));
            }
        };
        let drive = taken.and_then(|worker| {
            Drive::new(worker, &script, limits, Arc::clone(&tools), &cancel, started, &clock)
        });
        match drive {
            Ok(drive) => match drive.run_to_the_end().await {
                Ok(report) => return report,
                Err(never_ready) => why = never_ready,
            },
            Err(error) => why = error.to_string(),
        }
    }
    never_began(started, Outcome::Crashed(format!("the worker does not start: {why}")))
}

/// What a new worker says of itself.
pub(crate) async fn ready(mut worker: Worker) -> Result<LockdownReport, ProbeError> {
    let stream = worker.stream().map_err(ProbeError::Spawn)?;
    let mut wire = Wire::new(stream);
    loop {
        match wire.next_frame() {
            Ok(Some(FromWorker::Ready(report))) => return Ok(report),
            Ok(Some(_)) => return Err(ProbeError::Ended(String::from("it talks nonsense"))),
            Err(error) => return Err(ProbeError::Ended(error.to_string())),
            Ok(None) => {}
        }
        if !wire.read().await {
            return Err(ProbeError::Ended(crash::in_words(worker.end().await)));
        }
    }
}

fn never_began(started: Instant, outcome: Outcome) -> Report {
    Report {
        outcome,
        output: Captured::default(),
        emitted: Vec::new(),
        warnings: Vec::new(),
        calls: Vec::new(),
        calls_left_out: 0,
        cpu: std::time::Duration::ZERO,
        wall: started.elapsed(),
    }
}
