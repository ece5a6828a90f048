//! What the script is told: what came of its calls, and how late it is.

use std::time::Duration;

use futures::{FutureExt, stream::StreamExt};
use serde_json::value::RawValue;
use toolgate_engines::{CallId, Completion, Thrown};

use super::{Drive, micros, pending::Ended};
use crate::{
    frame::{ToWorker, Told},
    history::Happened,
    limits::Refusal,
    report::CallState,
    run::ledger::Entry,
    tools::Answer,
};

/// Completions that are sent together at most, if so many are there.
const BATCH: usize = 64;

impl Drive<'_> {
    pub(super) fn tell(&mut self, frame: &ToWorker) {
        self.told += 1;
        self.wire.send(frame);
    }

    /// Tells again what was told before, as far as the script has come.
    pub(super) fn tell_past(&mut self) {
        while self.runs
            && let Some((at, told)) = self.timeline.next_told()
        {
            let last = told.len().saturating_sub(1);
            if told.is_empty() {
                self.tell(&ToWorker::Time(micros(at)));
            }
            for (index, (id, outcome)) in told.into_iter().enumerate() {
                let completion = Completion { id, outcome };
                let told = Told { completion, at: micros(at), more: index < last };
                self.tell(&ToWorker::Completed(told));
            }
        }
        if !self.timeline.is_replaying() && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.answer(held);
        }
    }

    pub(super) fn tell_time(&mut self) {
        self.timeline.alarm = None;
        let at = self.timeline.stamp();
        self.tools.happened(&Happened::Time { at });
        self.tell(&ToWorker::Time(micros(at)));
    }

    /// Passes on what came of a call, and of others that have come to their end by now.
    pub(super) fn answer_together(&mut self, first: Ended) {
        let mut ended = vec![first];
        while ended.len() < BATCH && !self.calls.is_empty() && self.wire.has_room() {
            match self.calls.next().now_or_never() {
                Some(Some(another)) => ended.push(another),
                _ => break,
            }
        }
        if self.timeline.is_replaying() {
            self.held.append(&mut ended);
        } else {
            self.answer(ended);
        }
    }

    fn answer(&mut self, ended: Vec<Ended>) {
        let mut answers = Vec::with_capacity(ended.len());
        for Ended { id, entry, name, answer } in ended {
            match answer {
                Answer::Ended(result) => answers.push((id, self.end_of(entry, name, result))),
                Answer::Suspended => {
                    self.ledger.end(entry, CallState::Suspended, 0);
                    if self.suspended == 0 {
                        self.wire.send(&ToWorker::Tell);
                    }
                    self.suspended += 1;
                }
            }
        }
        let at = self.timeline.stamp();
        let last = answers.len().saturating_sub(1);
        for (index, (id, outcome)) in answers.into_iter().enumerate() {
            self.complete(id, at, index < last, outcome);
        }
    }

    /// What a call's end is for the script.
    fn end_of(
        &mut self,
        entry: Entry,
        name: String,
        result: Result<Box<RawValue>, Thrown>,
    ) -> Result<Box<RawValue>, Thrown> {
        let (state, bytes, outcome) = match result {
            Ok(value) => {
                let (bytes, limit) = (bytes_of(&value), self.limits.result_bytes);
                if bytes > limit {
                    let message = Refusal::Result { bytes, limit }.to_string();
                    let state = CallState::Undelivered(message.clone());
                    (state, bytes, Err(Thrown { tool: name, message }))
                } else {
                    (CallState::Completed, bytes, Ok(value))
                }
            }
            Err(thrown) => (CallState::Failed(thrown.message.clone()), 0, Err(thrown)),
        };
        self.ledger.end(entry, state, bytes);
        outcome
    }

    pub(super) fn complete(
        &mut self,
        id: CallId,
        at: Duration,
        more: bool,
        outcome: Result<Box<RawValue>, Thrown>,
    ) {
        self.tools.happened(&Happened::Completed { id, at, outcome: &outcome });
        let completion = Completion { id, outcome };
        self.tell(&ToWorker::Completed(Told { completion, at: micros(at), more }));
    }
}

pub(super) fn bytes_of(value: &RawValue) -> u64 {
    u64::try_from(value.get().len()).unwrap_or(u64::MAX)
}
