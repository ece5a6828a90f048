//! The calls of a run and their states.

use std::time::{Duration, Instant};

use toolgate_engines::CallId;

use crate::{
    frame::cut,
    limits::{CallRefusal, RunLimits},
    report::{CallRecord, CallState},
};

/// Bytes of the arguments and of an error message that are kept.
const ARGUMENT_BYTES: usize = 256;
const MESSAGE_BYTES: usize = 2 * 1024;
/// The number of refused calls that are listed. Further ones are only counted.
const MOST_REFUSED: u64 = 100;

/// The position of a call in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallIndex(usize);

/// The calls of one run.
#[derive(Debug)]
pub(super) struct CallTable {
    started: Instant,
    calls: Vec<CallRecord>,
    made: u64,
    refused: u64,
    last: Option<CallId>,
}

impl CallTable {
    pub(super) fn new(started: Instant) -> Self {
        Self { started, calls: Vec::new(), made: 0, refused: 0, last: None }
    }

    /// Whether no earlier call had this number.
    pub(super) fn is_new(&mut self, id: CallId) -> bool {
        let is_new = self.last.is_none_or(|last| id > last);
        self.last = Some(id);
        is_new
    }

    /// Adds a call, unless it reaches a limit.
    pub(super) fn begin(
        &mut self,
        name: &str,
        arguments: &str,
        in_flight: usize,
        limits: &RunLimits,
    ) -> Result<CallIndex, CallRefusal> {
        let refusal = if self.made >= limits.calls {
            Some(CallRefusal::Calls { limit: limits.calls })
        } else if in_flight >= limits.calls_in_flight {
            Some(CallRefusal::InFlight { limit: limits.calls_in_flight })
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.refuse(name, arguments, refusal.to_string());
            return Err(refusal);
        }
        self.made += 1;
        self.push(name, arguments, CallState::InFlight);
        Ok(CallIndex(self.calls.len() - 1))
    }

    /// Adds a call that is not made.
    pub(super) fn refuse(&mut self, name: &str, arguments: &str, why: String) {
        self.refused += 1;
        if self.refused <= MOST_REFUSED {
            self.push(name, arguments, CallState::Refused(why));
        }
    }

    /// Sets the final state of a call.
    pub(super) fn end(&mut self, entry: CallIndex, state: CallState, result_bytes: u64) {
        let now = self.started.elapsed();
        if let Some(call) = self.calls.get_mut(entry.0) {
            call.duration = now.saturating_sub(call.started);
            call.result_bytes = result_bytes;
            call.state = match state {
                CallState::Failed(message) => {
                    CallState::Failed(cut(&message, MESSAGE_BYTES).to_owned())
                }
                other => other,
            };
        }
    }

    /// All calls, and the number of refused calls that are not listed.
    pub(super) fn finish(mut self) -> (Vec<CallRecord>, u64) {
        let now = self.started.elapsed();
        for call in self.calls.iter_mut().filter(|call| call.state == CallState::InFlight) {
            call.duration = now.saturating_sub(call.started);
        }
        (self.calls, self.refused.saturating_sub(MOST_REFUSED))
    }

    fn push(&mut self, name: &str, arguments: &str, state: CallState) {
        self.calls.push(CallRecord {
            id: self.last.unwrap_or_default(),
            name: name.to_owned(),
            arguments: cut(arguments, ARGUMENT_BYTES).to_owned(),
            state,
            started: self.started.elapsed(),
            duration: Duration::ZERO,
            result_bytes: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_calls_are_listed_and_then_counted() {
        let limits = RunLimits { calls: 2, ..RunLimits::default() };
        let mut call_table = CallTable::new(Instant::now());
        for _ in 0..1_000 {
            let _ = call_table.begin("tool", "{}", 0, &limits);
        }
        let (calls, left_out) = call_table.finish();
        assert_eq!((calls.len(), left_out), (102, 898));
        assert_eq!(calls[1].state, CallState::InFlight);
        let CallState::Refused(why) = &calls[2].state else { panic!("{:?}", calls[2]) };
        assert!(why.contains("2 calls already; codeMode.maxCalls"), "{why}");
    }

    #[test]
    fn a_number_is_used_once() {
        let mut call_table = CallTable::new(Instant::now());
        assert!(call_table.is_new(0));
        assert!(call_table.is_new(7));
        assert!(!call_table.is_new(7));
        assert!(!call_table.is_new(3));
    }
}
