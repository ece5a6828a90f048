//! The pipe, as engines see it.

use std::{collections::VecDeque, time::Duration};

use serde_json::value::RawValue;
use toolgate_engines::{Beginning, Call, Closed, Completion, Stream, Thrown, World};

use super::pipe::{Lost, Pipe};
use crate::{
    frame::{FromWorker, Start, ToWorker, Told, Wait},
    limits::Refusal,
};

/// All that a script can reach: the host.
pub(super) struct PipeWorld {
    pipe: Pipe,
    /// How large a value may be that is sent.
    value_bytes: u64,
    /// Calls that were sent and have no answer yet.
    in_flight: u64,
    /// Calls that failed before they were sent.
    refused: VecDeque<Completion>,
    beginning: Beginning,
    now: Duration,
    /// Whether another completion comes with the last one.
    more: bool,
    /// Whether the host wants to know when we wait.
    tells: bool,
    /// When the host was asked to tell the time, if it has not yet.
    asked: Option<Duration>,
    /// How often we were told something.
    told: u64,
}

impl PipeWorld {
    pub(super) fn new(pipe: Pipe, start: &Start) -> Self {
        let beginning = Beginning { unix: Duration::from_micros(start.began), seed: start.seed };
        Self {
            pipe,
            value_bytes: start.value_bytes,
            in_flight: 0,
            refused: VecDeque::new(),
            beginning,
            now: Duration::ZERO,
            more: false,
            tells: start.tells,
            asked: None,
            told: 0,
        }
    }

    /// The pipe, once the script is done.
    pub(super) fn into_pipe(self) -> Pipe {
        self.pipe
    }

    /// Time goes where the host says, and never back.
    fn reach(&mut self, at: u64) {
        self.told += 1;
        self.now = self.now.max(Duration::from_micros(at));
    }

    /// Says so where the host wants to know, or has to tell the time.
    fn say_that_we_wait(&mut self, deadline: Option<Duration>) {
        if !self.tells && (deadline.is_none() || deadline == self.asked) {
            return;
        }
        self.asked = deadline;
        // Rounded up: a time that is told is to be late enough.
        let until = deadline.map(|deadline| {
            let micros = deadline.as_nanos().div_ceil(1_000);
            u64::try_from(micros).unwrap_or(u64::MAX - 1)
        });
        self.pipe.send(&FromWorker::Waits(Wait { until, told: self.told }));
    }

    fn refusal(&self, value: &RawValue) -> Option<Refusal> {
        let bytes = u64::try_from(value.get().len()).unwrap_or(u64::MAX);
        let limit = self.value_bytes;
        (bytes > limit).then_some(Refusal::Sent { bytes, limit })
    }
}

impl World for PipeWorld {
    fn submit(&mut self, call: Call) -> Result<(), Closed> {
        if let Some(refusal) = self.refusal(&call.arguments) {
            let thrown = Thrown { tool: call.name, message: refusal.to_string() };
            self.refused.push_back(Completion { id: call.id, outcome: Err(thrown) });
            return Ok(());
        }
        self.in_flight += 1;
        Ok(self.pipe.send_soon(&FromWorker::Call(call))?)
    }

    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, Closed> {
        if let Some(completion) = self.refused.pop_front() {
            return Ok(Some(completion));
        }
        if self.in_flight == 0 && deadline.is_none() {
            // Nothing will ever come. The engine should have known.
            return Err(Closed);
        }
        if !self.pipe.has_frame() {
            self.say_that_we_wait(deadline);
        }
        loop {
            match self.pipe.receive()? {
                ToWorker::Completed(Told { completion, at, more }) => {
                    self.in_flight = self.in_flight.saturating_sub(1);
                    self.more = more;
                    self.reach(at);
                    return Ok(Some(completion));
                }
                ToWorker::Time(at) => {
                    self.asked = None;
                    self.reach(at);
                    return Ok(None);
                }
                ToWorker::Tell => {
                    self.tells = true;
                    self.say_that_we_wait(deadline);
                }
                ToWorker::Start(_) | ToWorker::Described(_) => return Err(Closed),
            }
        }
    }

    fn more(&mut self) -> Result<Option<Completion>, Closed> {
        if let Some(completion) = self.refused.pop_front() {
            return Ok(Some(completion));
        }
        if self.more { self.wait(None) } else { Ok(None) }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn beginning(&self) -> Beginning {
        self.beginning
    }

    fn write(&mut self, stream: Stream, text: &str) {
        // Should the host be gone, whoever waits for it next is told.
        let _ = self.pipe.write(stream, text.as_bytes());
    }

    fn emit(&mut self, block: Box<RawValue>) {
        match self.refusal(&block) {
            Some(refusal) => self.write(Stream::Error, &format!("emit: {refusal}\n")),
            None => {
                let _ = self.pipe.send_soon(&FromWorker::Emit(block));
            }
        }
    }
}

impl From<Lost> for Closed {
    fn from(_: Lost) -> Self {
        Self
    }
}
