//! The end of a run: reads the last frames and makes the report.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use futures::StreamExt;
use tokio::time::{Instant, timeout_at};
use toolgate_engines::{FailureKind, ScriptFailure};

use super::driver::{RunDriver, RunEnding};
use crate::{
    frame::{Done, FromWorker},
    limits::{LimitReached, RunLimits},
    pool::Pool,
    report::{RunOutcome, RunReport},
    system::stop::ExitReason,
};

/// How long a worker has to send its remaining frames after it was asked to end.
const GRACE: Duration = Duration::from_millis(100);
/// How long to wait for the exit of a worker that was killed. The system needs much less.
const KILLED: Duration = Duration::from_secs(2);

/// The worker ended before it started the script.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WorkerEnded(String);

impl RunDriver<'_> {
    /// Runs the script to its end. Fails if the worker ended before it started the script, which has
    /// then had no effect.
    pub(super) async fn run_to_the_end(mut self, pool: &Pool) -> Result<RunReport, WorkerEnded> {
        let mut ending = self.exchange().await;
        if self.only_checks && matches!(ending, RunEnding::Prepared(_)) {
            ending = RunEnding::Done(Done::NoValue);
        }
        if let RunEnding::Prepared(script) = ending {
            ending = match self.interpreter(pool).await {
                Ok(worker) => {
                    worker
                        .and_then(|worker| self.move_to(worker, script))
                        .map_err(|error| WorkerEnded(error.to_string()))?;
                    self.exchange().await
                }
                Err(ending) => ending,
            };
        }
        let cpu = self.cpu_used();
        let limits = self.limits;
        let outcome = match ending {
            RunEnding::Done(done) => outcome_of(done, limits),
            RunEnding::Prepared(_) => RunOutcome::Crashed(String::from("it was checked twice")),
            RunEnding::Broke(what) => RunOutcome::Crashed(what),
            RunEnding::Suspended => RunOutcome::Suspended,
            RunEnding::Diverged(what) => RunOutcome::Diverged(what),
            RunEnding::Cancelled => {
                self.drain().await;
                RunOutcome::Cancelled
            }
            RunEnding::Stop(stop) => match self.drain().await {
                // The script ended just before the limit stopped it.
                Some(done)
                    if matches!(stop, LimitReached::Wall { .. } | LimitReached::Cpu { .. }) =>
                {
                    outcome_of(done, limits)
                }
                _ => RunOutcome::Stopped(stop),
            },
            RunEnding::Gone => {
                let status = self.worker.end().await;
                let exit = describe_exit(status);
                // A worker that was killed while it waited has sent nothing but `Ready`.
                let never_ran = !self.has_begun && was_killed(status);
                if !self.is_ready || never_ran {
                    return Err(WorkerEnded(exit));
                }
                match exit_reason(status) {
                    Some(ExitReason::Memory) => {
                        let limit = limits.memory_bytes;
                        RunOutcome::Stopped(LimitReached::Memory { limit, failure: None })
                    }
                    Some(ExitReason::Stack) => {
                        let limit = limits.stack_bytes;
                        RunOutcome::Stopped(LimitReached::Stack { limit, failure: None })
                    }
                    Some(ExitReason::Cpu) => {
                        RunOutcome::Stopped(LimitReached::Cpu { limit: limits.cpu })
                    }
                    _ => RunOutcome::Crashed(exit),
                }
            }
        };
        if matches!(outcome, RunOutcome::Crashed(_)) {
            pool.after_crash(&self.kind);
        }
        Ok(self.report(outcome, cpu))
    }

    /// Ends the worker and reads its remaining frames.
    async fn drain(&mut self) -> Option<Done> {
        self.worker.ask_to_stop();
        let mut deadline = Instant::now() + GRACE;
        let mut killed = false;
        loop {
            while let Ok(Some(frame)) = self.wire.next_frame() {
                match frame {
                    FromWorker::Output(_, text) => self.capture.push(&text),
                    FromWorker::Emit(block) => {
                        // The size limit no longer matters.
                        let _ = self.take_block(block);
                    }
                    FromWorker::Call(call) => {
                        let why = String::from("not called: the run ended first");
                        self.call_table.refuse(&call.name, call.arguments.get(), why);
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
                    // Frames that it sent before it ended can still be read.
                    self.worker.kill();
                    killed = true;
                    deadline = Instant::now() + KILLED;
                }
            }
        }
    }

    fn report(self, outcome: RunOutcome, cpu: Duration) -> RunReport {
        let mut calls = self.calls;
        if !calls.is_empty() {
            // The calls are cancelled, and their servers must be notified.
            self.token.cancel();
            tokio::spawn(async move { while calls.next().await.is_some() {} });
        }
        let wall = self.started.elapsed();
        let (calls, calls_left_out) = self.call_table.finish();
        let output = self.capture.finish();
        self.worker.retire(self.wire);
        RunReport {
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

fn outcome_of(done: Done, limits: &RunLimits) -> RunOutcome {
    match done {
        Done::Value(value) => RunOutcome::Value(Some(value)),
        Done::NoValue => RunOutcome::Value(None),
        Done::Rejected(findings) => RunOutcome::Rejected(findings),
        Done::Failed(failure) => outcome_of_failure(failure, limits),
        Done::ValueTooLarge { bytes } => {
            RunOutcome::Stopped(LimitReached::Value { bytes, limit: limits.result_bytes })
        }
    }
}

fn outcome_of_failure(failure: ScriptFailure, limits: &RunLimits) -> RunOutcome {
    match failure.kind {
        FailureKind::Memory => RunOutcome::Stopped(LimitReached::Memory {
            limit: limits.memory_bytes,
            failure: Some(failure),
        }),
        FailureKind::Stack => RunOutcome::Stopped(LimitReached::Stack {
            limit: limits.stack_bytes,
            failure: Some(failure),
        }),
        // The host still exists, so the script waited for something that the host does not know of.
        FailureKind::Stalled | FailureKind::Abandoned => {
            RunOutcome::Stopped(LimitReached::Stalled(failure))
        }
        FailureKind::Syntax | FailureKind::Unsupported | FailureKind::Exception => {
            RunOutcome::Failed(failure)
        }
    }
}

/// The reason for which a worker exited by itself, if it did.
pub(super) fn exit_reason(status: Option<ExitStatus>) -> Option<ExitReason> {
    ExitReason::of_code(status?.code()?)
}

/// Whether the worker was killed from outside.
pub(super) fn was_killed(status: Option<ExitStatus>) -> bool {
    status.and_then(|status| status.signal()) == Some(libc::SIGKILL)
}

/// The exit of a worker as a sentence.
pub(crate) fn describe_exit(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return String::from("the worker ended for an unknown reason");
    };
    if let Some(reason) = exit_reason(Some(status)) {
        return String::from(match reason {
            ExitReason::Done => "the worker ended before the script did",
            ExitReason::Asked => "the worker was asked to end",
            ExitReason::Cpu => "the worker reached its limit of CPU time",
            ExitReason::Memory => "the worker ran out of memory",
            ExitReason::Lockdown => "this system does not let the worker give up what it must",
            ExitReason::Lost => "the worker did not understand its host",
            ExitReason::Panicked => "the engine failed",
            ExitReason::Stack => "the worker's stack was full",
        });
    }
    let Some(signal) = status.signal() else {
        return format!("the worker ended before the script did, with {status}");
    };
    let (name, meaning) = match signal {
        libc::SIGSYS => ("SIGSYS", "it tried what the sandbox forbids"),
        libc::SIGSEGV => ("SIGSEGV", "the engine crashed"),
        libc::SIGBUS => ("SIGBUS", "the engine crashed"),
        libc::SIGILL => ("SIGILL", "the engine crashed"),
        libc::SIGFPE => ("SIGFPE", "the engine crashed"),
        libc::SIGTRAP => ("SIGTRAP", "the engine crashed"),
        libc::SIGABRT => ("SIGABRT", "the engine gave up, most likely for want of memory"),
        libc::SIGKILL => {
            ("SIGKILL", "somebody killed it, most likely the system for want of memory")
        }
        libc::SIGXCPU => ("SIGXCPU", "it reached the system's limit of CPU time"),
        libc::SIGXFSZ => ("SIGXFSZ", "it tried to write a file"),
        libc::SIGPIPE => ("SIGPIPE", "it lost its host"),
        libc::SIGTERM => ("SIGTERM", "somebody ended it"),
        other => return format!("the worker was ended by signal {other}"),
    };
    format!("the worker was ended by {name}: {meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_words() {
        let cases = [
            (Some(libc::SIGSYS), "SIGSYS: it tried what the sandbox forbids"),
            (Some(libc::SIGSEGV), "SIGSEGV: the engine crashed"),
            (Some(63), "signal 63"),
            (Some(92 << 8), "ran out of memory"),
            (Some(0), "ended before the script did"),
            (Some(7 << 8), "exit status: 7"),
            (None, "for an unknown reason"),
        ];
        for (status, words) in cases {
            let text = describe_exit(status.map(ExitStatus::from_raw));
            assert!(text.contains(words), "{text}");
        }
    }
}
