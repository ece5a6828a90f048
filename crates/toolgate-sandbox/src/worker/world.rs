//! The pipe, as engines see it.

use std::{collections::VecDeque, time::Instant};

use serde_json::value::RawValue;
use toolgate_engines::{Call, Closed, Completion, Stream, Thrown, World};

use super::pipe::{Lost, Pipe};
use crate::{
    frame::{FromWorker, ToWorker},
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
}

impl PipeWorld {
    pub(super) fn new(pipe: Pipe, value_bytes: u64) -> Self {
        Self { pipe, value_bytes, in_flight: 0, refused: VecDeque::new() }
    }

    /// The pipe, once the script is done.
    pub(super) fn into_pipe(self) -> Pipe {
        self.pipe
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

    fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Completion>, Closed> {
        if let Some(completion) = self.refused.pop_front() {
            return Ok(Some(completion));
        }
        if self.in_flight == 0 && deadline.is_none() {
            // Nothing will ever come. The engine should have known.
            return Err(Closed);
        }
        match self.pipe.receive(deadline)? {
            Some(ToWorker::Completed(completion)) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                Ok(Some(completion))
            }
            Some(_) => Err(Closed),
            None => Ok(None),
        }
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
