//! What a script is told, and when: first again what it was told before, then what happens.

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

/// The clock of one run, and its history.
#[derive(Debug)]
pub(super) struct JournalReplay {
    pub(super) beginning: RunSeed,
    clock: RunClock,
    /// The run's time when its clock said `since`: what is told again took place before.
    reached: Duration,
    since: Duration,
    /// The last time that the script was told.
    delivered: Duration,
    past: HashMap<CallId, JournaledCall>,
    events: VecDeque<JournalEvent>,
    /// Calls of the past that the script has made again.
    repeated: HashMap<CallId, JournaledCall>,
    /// When the script wants to be told the time.
    pub(super) alarm: Option<Duration>,
}

/// What the history says of a call.
#[derive(Debug)]
pub(super) enum ReplayedCall {
    /// Nothing: it is made for the first time.
    New,
    /// It was made, and what came of it will be told in its turn; what it failed with, if it did.
    Answered { failed: Option<String> },
    /// It was made, and what came of it was due while the script waited for something else: it is told
    /// after what is told again.
    Overdue(Result<Box<RawValue>, ToolException>),
    /// It was made, and nobody knows what came of it.
    Unknown,
    /// Another call was made in its place.
    Differs(JournaledCall),
}

/// What a script is told again, together.
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

    /// Whether there is something left to be told again.
    pub(super) fn is_replaying(&self) -> bool {
        !self.events.is_empty()
    }

    /// The run's time, later than any that was told. Whole microseconds: that is what is sent.
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

    /// What the clock says when the alarm goes off.
    pub(super) fn alarm_at(&self) -> Option<Duration> {
        let left = self.alarm?.saturating_sub(self.reached);
        Some(self.since + left)
    }

    /// What the history says of a call that the script makes now.
    pub(super) fn look_up(&mut self, call: &EngineCall) -> ReplayedCall {
        let Some(past) = self.past.remove(&call.id) else { return ReplayedCall::New };
        if past.name != call.name || past.arguments.get() != call.arguments.get() {
            if past.binds {
                return ReplayedCall::Differs(past);
            }
            // What came of the one before is not told again.
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

    /// What the script is to be told next of its past, if that can be told by now.
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

    /// The script waits, and was told all that could be told. What comes next is about a call that it
    /// has not made this time: that can wait no longer. Should it make the call after all, because it
    /// waited for another one first, then it is overdue.
    pub(super) fn skip_absent(&mut self) {
        while let Some(JournalEvent::Completed { id, .. }) = self.events.front() {
            if self.repeated.contains_key(id) {
                return;
            }
            self.events.pop_front();
        }
    }

    /// Time goes on from here.
    fn reach(&mut self, at: Duration) {
        self.delivered = self.delivered.max(at);
        self.reached = at;
        self.since = self.clock.passed();
    }
}

/// What came of a call was told later than it was due where its event is there a second time.
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

/// The time in whole microseconds, which is what frames carry.
fn micros(time: Duration) -> Duration {
    Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
