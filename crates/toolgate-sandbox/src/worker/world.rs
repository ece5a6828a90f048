//! The [`World`] of a worker: the pipe to its host.

use std::{collections::VecDeque, time::Duration};

use serde_json::value::RawValue;
use toolgate_engines::{Completion, EngineCall, HostClosed, RunSeed, Stream, ToolException, World};

use super::pipe::{HostLost, Pipe};
use crate::{
    frame::{FromWorker, RunBounds, TimedCompletion, ToWorker, Wait},
    limits::CallRefusal,
};

/// The world of a script: its host.
pub(super) struct PipeWorld {
    pipe: Pipe,
    /// The largest value that may be sent.
    value_bytes: u64,
    /// Calls without a completion.
    in_flight: u64,
    /// Calls that failed before they were sent.
    refused: VecDeque<Completion>,
    beginning: RunSeed,
    now: Duration,
    /// Whether another completion belongs to the same delivery.
    more: bool,
    /// Whether the host wants to know when the script waits.
    reports_waits: bool,
    /// When the host should send the time, if it was asked and has not done so yet.
    time_requested: Option<Duration>,
    /// The number of deliveries that were received.
    delivered: u64,
}

impl PipeWorld {
    pub(super) fn new(pipe: Pipe, start: &RunBounds) -> Self {
        let beginning = RunSeed { unix: Duration::from_micros(start.began), seed: start.seed };
        Self {
            pipe,
            value_bytes: start.value_bytes,
            in_flight: 0,
            refused: VecDeque::new(),
            beginning,
            now: Duration::ZERO,
            more: false,
            reports_waits: start.reports_waits,
            time_requested: None,
            delivered: 0,
        }
    }

    /// The pipe, once the script is done.
    pub(super) fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Sets the time that the host sent. It never goes back.
    fn reach(&mut self, at: u64) {
        self.delivered += 1;
        self.now = self.now.max(Duration::from_micros(at));
    }

    /// Reports that the script waits, if the host wants to know or has to send the time.
    fn report_wait(&mut self, deadline: Option<Duration>) {
        if !self.reports_waits && (deadline.is_none() || deadline == self.time_requested) {
            return;
        }
        self.time_requested = deadline;
        // Rounded up, so that the time is late enough when it arrives.
        let until = deadline.map(|deadline| {
            let micros = deadline.as_nanos().div_ceil(1_000);
            u64::try_from(micros).unwrap_or(u64::MAX - 1)
        });
        self.pipe.send(&FromWorker::Waits(Wait { until, delivered: self.delivered }));
    }

    fn refusal(&self, value: &RawValue) -> Option<CallRefusal> {
        let bytes = u64::try_from(value.get().len()).unwrap_or(u64::MAX);
        let limit = self.value_bytes;
        (bytes > limit).then_some(CallRefusal::Sent { bytes, limit })
    }
}

impl World for PipeWorld {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        if let Some(refusal) = self.refusal(&call.arguments) {
            let thrown = ToolException::new(call.name, refusal.to_string());
            self.refused.push_back(Completion { id: call.id, outcome: Err(thrown) });
            return Ok(());
        }
        self.in_flight += 1;
        Ok(self.pipe.send_now(&FromWorker::Call(call))?)
    }

    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        if let Some(completion) = self.refused.pop_front() {
            return Ok(Some(completion));
        }
        if self.in_flight == 0 && deadline.is_none() {
            // Nothing will ever arrive. The engine should have noticed.
            return Err(HostClosed);
        }
        if !self.pipe.has_frame() {
            self.report_wait(deadline);
        }
        loop {
            match self.pipe.receive()? {
                ToWorker::Completed(TimedCompletion { completion, at, more }) => {
                    self.in_flight = self.in_flight.saturating_sub(1);
                    self.more = more;
                    self.reach(at);
                    return Ok(Some(completion));
                }
                ToWorker::Time(at) => {
                    self.time_requested = None;
                    self.reach(at);
                    return Ok(None);
                }
                ToWorker::ReportWaits => {
                    self.reports_waits = true;
                    self.report_wait(deadline);
                }
                ToWorker::Start(_) | ToWorker::Run(_) | ToWorker::Described(_) => {
                    return Err(HostClosed);
                }
            }
        }
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        if let Some(completion) = self.refused.pop_front() {
            return Ok(Some(completion));
        }
        if self.more { self.wait(None) } else { Ok(None) }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn beginning(&self) -> RunSeed {
        self.beginning
    }

    fn write(&mut self, stream: Stream, text: &str) {
        // If the host is gone, the next wait reports it.
        let _ = self.pipe.write(stream, text.as_bytes());
    }

    fn emit(&mut self, block: Box<RawValue>) {
        match self.refusal(&block) {
            Some(refusal) => self.write(Stream::Error, &format!("emit: {refusal}\n")),
            None => {
                let _ = self.pipe.send_now(&FromWorker::Emit(block));
            }
        }
    }
}

impl From<HostLost> for HostClosed {
    fn from(_: HostLost) -> Self {
        Self
    }
}
