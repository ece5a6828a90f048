//! Sends the script the outcomes of its calls and the time.

use std::time::Duration;

use futures::{FutureExt, future::BoxFuture, stream::StreamExt};
use serde_json::value::RawValue;
use toolgate_bindings::check::LookupResult;
use toolgate_engines::{CallId, Completion, ToolException};

use super::{RunDriver, micros};
use crate::{
    frame::{TimedCompletion, ToWorker},
    journal::RunEvent,
    limits::CallRefusal,
    report::CallState,
    run::call_table::CallIndex,
    tools::CallResponse,
};

/// The largest number of completions that are sent together.
const BATCH: usize = 64;

impl RunDriver<'_> {
    pub(super) fn deliver(&mut self, frame: &ToWorker) {
        self.delivered += 1;
        self.wire.send(frame);
    }

    /// Replays recorded events as far as the script has come.
    pub(super) fn deliver_past(&mut self) {
        while self.runs
            && let Some((at, delivered)) = self.replay.next_delivery()
        {
            let last = delivered.len().saturating_sub(1);
            if delivered.is_empty() {
                self.deliver(&ToWorker::Time(micros(at)));
            }
            for (index, (id, outcome)) in delivered.into_iter().enumerate() {
                let completion = Completion { id, outcome };
                let delivered = TimedCompletion { completion, at: micros(at), more: index < last };
                self.deliver(&ToWorker::Completed(delivered));
            }
        }
        if !self.replay.is_replaying() && !self.deferred.is_empty() {
            let deferred = std::mem::take(&mut self.deferred);
            self.answer(deferred);
        }
    }

    pub(super) fn deliver_time(&mut self) {
        self.replay.alarm = None;
        let at = self.replay.stamp();
        self.tools.on_event(&RunEvent::Time { at });
        self.deliver(&ToWorker::Time(micros(at)));
    }

    /// Sends the outcome of a call, together with those of other calls that have ended by now.
    pub(super) fn answer_together(&mut self, first: Ended) {
        let mut ended = vec![first];
        while ended.len() < BATCH && !self.calls.is_empty() && self.wire.has_room() {
            match self.calls.next().now_or_never() {
                Some(Some(another)) => ended.push(another),
                _ => break,
            }
        }
        if self.replay.is_replaying() {
            self.deferred.append(&mut ended);
        } else {
            self.answer(ended);
        }
    }

    fn answer(&mut self, ended: Vec<Ended>) {
        let mut answers = Vec::with_capacity(ended.len());
        for Ended { id, entry, name, answer } in ended {
            match answer {
                CallResponse::Ended(result) => answers.push((id, self.end_of(entry, name, result))),
                CallResponse::Suspended => {
                    self.call_table.end(entry, CallState::Suspended, 0);
                    if self.suspended == 0 {
                        self.wire.send(&ToWorker::ReportWaits);
                    }
                    self.suspended += 1;
                }
            }
        }
        let at = self.replay.stamp();
        let last = answers.len().saturating_sub(1);
        for (index, (id, outcome)) in answers.into_iter().enumerate() {
            self.complete(id, at, index < last, outcome);
        }
    }

    /// The end of a call as the script receives it.
    fn end_of(
        &mut self,
        entry: CallIndex,
        name: String,
        result: Result<Box<RawValue>, ToolException>,
    ) -> Result<Box<RawValue>, ToolException> {
        let (state, bytes, outcome) = match result {
            Ok(value) => {
                let (bytes, limit) = (bytes_of(&value), self.limits.result_bytes);
                if bytes > limit {
                    let mut message = CallRefusal::Result { bytes, limit }.to_string();
                    if let Some(kept) = self.tools.keep(&value) {
                        message.push_str("; ");
                        message.push_str(&kept);
                    }
                    let state = CallState::Undelivered(message.clone());
                    (state, bytes, Err(ToolException::new(name, message)))
                } else {
                    (CallState::Completed, bytes, Ok(value))
                }
            }
            Err(thrown) => (CallState::Failed(thrown.message.clone()), 0, Err(thrown)),
        };
        self.call_table.end(entry, state, bytes);
        outcome
    }

    pub(super) fn complete(
        &mut self,
        id: CallId,
        at: Duration,
        more: bool,
        outcome: Result<Box<RawValue>, ToolException>,
    ) {
        self.tools.on_event(&RunEvent::Completed { id, at, outcome: &outcome });
        let completion = Completion { id, outcome };
        self.deliver(&ToWorker::Completed(TimedCompletion { completion, at: micros(at), more }));
    }
}

pub(super) fn bytes_of(value: &RawValue) -> u64 {
    u64::try_from(value.get().len()).unwrap_or(u64::MAX)
}

/// Waits for the description of names; pending for ever if there is none.
pub(super) async fn described(describing: &mut Option<Describing>) -> Vec<LookupResult> {
    match describing {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// A description of names that the host is fetching.
pub(super) type Describing = BoxFuture<'static, Vec<LookupResult>>;

/// A call with a response.
#[derive(Debug)]
pub(in crate::run) struct Ended {
    pub(super) id: CallId,
    pub(super) entry: CallIndex,
    pub(super) name: String,
    pub(super) answer: CallResponse,
}
