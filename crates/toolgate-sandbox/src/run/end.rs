//! The end of a run: what is still to be heard, and what is said of it.

use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, timeout_at};
use toolgate_engines::{Failure, FailureKind};

use super::{
    crash,
    drive::{Drive, Ending},
};
use crate::{
    frame::{Done, FromWorker},
    limits::{RunLimits, Stop},
    report::{Outcome, Report},
    system::stop::ExitReason,
};

/// How long a worker has to send what it kept back, once it is asked to end.
const GRACE: Duration = Duration::from_millis(100);
/// How long the system has to end a worker that was killed. It is longer than it ever needs.
const KILLED: Duration = Duration::from_secs(2);

impl Drive<'_> {
    /// Runs the script to its end. `Err` if the worker died before it said anything of the script;
    /// nothing has happened then.
    pub(super) async fn run_to_the_end(mut self) -> Result<Report, String> {
        let ending = self.converse().await;
        let cpu = self.cpu_used();
        let limits = self.limits;
        let outcome = match ending {
            Ending::Done(done) => outcome_of(done, limits),
            Ending::Broke(what) => Outcome::Crashed(what),
            Ending::Suspended => Outcome::Suspended,
            Ending::Diverged(what) => Outcome::Diverged(what),
            Ending::Cancelled => {
                self.drain().await;
                Outcome::Cancelled
            }
            Ending::Stop(stop) => match self.drain().await {
                // It got there at the last moment.
                Some(done) if matches!(stop, Stop::Wall { .. } | Stop::Cpu { .. }) => {
                    outcome_of(done, limits)
                }
                _ => Outcome::Stopped(stop),
            },
            Ending::Gone => {
                let status = self.worker.end().await;
                let words = crash::in_words(status);
                // One that was killed while it waited says no more than that it had been ready.
                let never_ran = !self.has_begun && crash::was_killed(status);
                if !self.is_ready || never_ran {
                    return Err(words);
                }
                match crash::reason(status) {
                    Some(ExitReason::Memory) => {
                        let limit = limits.memory_bytes;
                        Outcome::Stopped(Stop::Memory { limit, failure: None })
                    }
                    Some(ExitReason::Stack) => {
                        let limit = limits.stack_bytes;
                        Outcome::Stopped(Stop::Stack { limit, failure: None })
                    }
                    Some(ExitReason::Cpu) => Outcome::Stopped(Stop::Cpu { limit: limits.cpu }),
                    _ => Outcome::Crashed(words),
                }
            }
        };
        Ok(self.report(outcome, cpu))
    }

    /// Ends the worker and hears what it had still to say.
    async fn drain(&mut self) -> Option<Done> {
        self.worker.ask_to_stop();
        let mut deadline = Instant::now() + GRACE;
        let mut killed = false;
        loop {
            while let Ok(Some(frame)) = self.wire.next_frame() {
                match frame {
                    FromWorker::Output(_, text) => self.capture.push(&text),
                    FromWorker::Emit(block) => {
                        // That it is too much does not matter any more.
                        let _ = self.take_block(block);
                    }
                    FromWorker::Call(call) => {
                        let why = String::from("not called: the run ended first");
                        self.ledger.refuse(&call.name, call.arguments.get(), why);
                    }
                    FromWorker::Done(done) => return Some(done),
                    _ => {}
                }
            }
            match timeout_at(deadline, self.wire.read()).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(_) if killed => return None,
                Err(_) => {
                    // What it sent before it died is still to be read.
                    self.worker.kill();
                    killed = true;
                    deadline = Instant::now() + KILLED;
                }
            }
        }
    }

    fn report(self, outcome: Outcome, cpu: Duration) -> Report {
        let mut calls = self.calls;
        if !calls.is_empty() {
            // They are cancelled, and have to say so to their servers.
            self.token.cancel();
            tokio::spawn(async move { while calls.next().await.is_some() {} });
        }
        let wall = self.started.elapsed();
        let (calls, calls_left_out) = self.ledger.finish();
        let output = self.capture.finish();
        Report {
            outcome,
            output,
            emitted: self.emitted,
            warnings: self.warnings,
            calls,
            calls_left_out,
            cpu,
            wall,
        }
    }
}

fn outcome_of(done: Done, limits: &RunLimits) -> Outcome {
    match done {
        Done::Value(value) => Outcome::Value(value),
        Done::Rejected(findings) => Outcome::Rejected(findings),
        Done::Failed(failure) => outcome_of_failure(failure, limits),
        Done::ValueTooLarge { bytes } => {
            Outcome::Stopped(Stop::Value { bytes, limit: limits.result_bytes })
        }
    }
}

fn outcome_of_failure(failure: Failure, limits: &RunLimits) -> Outcome {
    match failure.kind {
        FailureKind::Memory => {
            Outcome::Stopped(Stop::Memory { limit: limits.memory_bytes, failure: Some(failure) })
        }
        FailureKind::Stack => {
            Outcome::Stopped(Stop::Stack { limit: limits.stack_bytes, failure: Some(failure) })
        }
        // We are still here: so it waited for something that we do not know of.
        FailureKind::Stalled | FailureKind::Abandoned => Outcome::Stopped(Stop::Stalled(failure)),
        FailureKind::Syntax | FailureKind::Unsupported | FailureKind::Exception => {
            Outcome::Failed(failure)
        }
    }
}
