//! The replay of a journal: repeats the earlier events, then continues with new ones.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::value::RawValue;
use toolgate_engines::{CallId, EngineCall, RunSeed, ToolException};

use crate::{
    clock::RunClock,
    journal::{JournalEvent, JournaledCall, RunJournalRecord},
};

/// The clock of one run, and the rest of its journal.
#[derive(Debug)]
pub(super) struct JournalReplay {
    pub(super) beginning: RunSeed,
    clock: RunClock,
    /// The time of the run when the clock showed `since`. Replayed events are earlier.
    reached: Duration,
    since: Duration,
    /// The last time that the script received.
    delivered: Duration,
    past: HashMap<CallId, JournaledCall>,
    events: VecDeque<JournalEvent>,
    /// Calls of the journal that the script has repeated.
    repeated: HashMap<CallId, JournaledCall>,
    /// When the script wants to receive the time.
    pub(super) alarm: Option<Duration>,
}

/// What the journal contains for a call.
#[derive(Debug)]
pub(super) enum ReplayedCall {
    /// Nothing: the call is new.
    New,
    /// The outcome, which the script receives at its recorded time. `failed` is the message of a
    /// failed call.
    Answered { failed: Option<String> },
    /// The outcome was due while the script waited for something else. The script receives it after
    /// the replayed events.
    Overdue(Result<Box<RawValue>, ToolException>),
    /// The call was made, but its outcome is unknown.
    Unknown,
    /// The script made another call at this point.
    Differs(JournaledCall),
}

/// Outcomes that the script receives together.
pub(super) type ReplayedResults = Vec<(CallId, Result<Box<RawValue>, ToolException>)>;

impl JournalReplay {
    pub(super) fn new(journal: Option<RunJournalRecord>, clock: RunClock) -> Self {
        let RunJournalRecord { beginning, calls, events } = journal.unwrap_or_else(|| {
            RunJournalRecord { beginning: beginning(), ..RunJournalRecord::default() }
        });
        Self {
            beginning,
            reached: Duration::ZERO,
            since: clock.passed(),
            clock,
            delivered: Duration::ZERO,
            past: calls.into_iter().map(|call| (call.id, call)).collect(),
            events: last_of_each(events),
            repeated: HashMap::new(),
            alarm: None,
        }
    }

    /// Whether replayed events are left.
    pub(super) fn is_replaying(&self) -> bool {
        !self.events.is_empty()
    }

    /// The current time of the run, later than any time that was sent, in whole microseconds as in
    /// frames.
    pub(super) fn stamp(&mut self) -> Duration {
        let since = self.clock.passed().saturating_sub(self.since);
        let now = micros(self.reached + since);
        self.delivered = now.max(self.delivered + Duration::from_micros(1));
        self.delivered
    }

    /// The clock of the run.
    pub(super) fn clock(&self) -> RunClock {
        self.clock.clone()
    }

    /// The time on the clock when the alarm goes off.
    pub(super) fn alarm_at(&self) -> Option<Duration> {
        let left = self.alarm?.saturating_sub(self.reached);
        Some(self.since + left)
    }

    /// Looks up a call that the script makes now.
    pub(super) fn look_up(&mut self, call: &EngineCall) -> ReplayedCall {
        let Some(past) = self.past.remove(&call.id) else { return ReplayedCall::New };
        if past.name != call.name || past.arguments.get() != call.arguments.get() {
            if past.binds {
                return ReplayedCall::Differs(past);
            }
            // The outcome of the replaced call is not replayed.
            self.events.retain(
                |event| !matches!(event, JournalEvent::Completed { id, .. } if *id == call.id),
            );
            return ReplayedCall::New;
        }
        let Some(outcome) = &past.outcome else { return ReplayedCall::Unknown };
        let is_its = |event: &JournalEvent| matches!(event, JournalEvent::Completed { id, .. } if *id == call.id);
        if !self.events.iter().any(is_its) {
            return ReplayedCall::Overdue(outcome.clone());
        }
        let failed = outcome.as_ref().err().map(|thrown| thrown.message.clone());
        self.repeated.insert(call.id, past);
        ReplayedCall::Answered { failed }
    }

    /// The next replayed events, if the script has made the calls that they belong to.
    pub(super) fn next_delivery(&mut self) -> Option<(Duration, ReplayedResults)> {
        let at = self.events.front()?.at();
        let together = self.events.iter().take_while(|event| event.at() == at).count();
        let ready = self.events.iter().take(together).all(|event| match event {
            JournalEvent::Completed { id, .. } => self.repeated.contains_key(id),
            JournalEvent::Time { .. } => true,
        });
        if !ready {
            return None;
        }
        let events: Vec<JournalEvent> = self.events.drain(..together).collect();
        let delivered = events.into_iter().filter_map(|event| match event {
            JournalEvent::Completed { id, .. } => {
                self.repeated.remove(&id).and_then(|past| Some((id, past.outcome?)))
            }
            JournalEvent::Time { .. } => None,
        });
        let delivered = delivered.collect();
        self.reach(at);
        Some((at, delivered))
    }

    /// Skips events of calls that the script has not made this time. Called when the script waits
    /// and has received everything else. If the script makes such a call later, its outcome is
    /// overdue.
    pub(super) fn skip_absent(&mut self) {
        while let Some(JournalEvent::Completed { id, .. }) = self.events.front() {
            if self.repeated.contains_key(id) {
                return;
            }
            self.events.pop_front();
        }
    }

    /// Continues the time from `at`.
    fn reach(&mut self, at: Duration) {
        self.delivered = self.delivered.max(at);
        self.reached = at;
        self.since = self.clock.passed();
    }
}

/// Keeps the last event of each call: a second event means that the outcome was delivered later
/// than it was due.
fn last_of_each(events: Vec<JournalEvent>) -> VecDeque<JournalEvent> {
    let mut seen = HashSet::new();
    let mut kept = VecDeque::with_capacity(events.len());
    for event in events.into_iter().rev() {
        if !matches!(event, JournalEvent::Completed { id, .. } if !seen.insert(id)) {
            kept.push_front(event);
        }
    }
    kept
}

fn beginning() -> RunSeed {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(unix.as_nanos());
    RunSeed { unix: micros(unix), seed: hasher.finish() }
}

/// Rounds to whole microseconds, as in frames.
fn micros(time: Duration) -> Duration {
    Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
