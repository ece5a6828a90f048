//! What a script is told, and when: first again what it was told before, then what happens.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::value::RawValue;
use toolgate_engines::{Beginning, Call, CallId, Thrown};

use crate::{
    clock::RunClock,
    history::{Event, History, PastCall},
};

/// The clock of one run, and its history.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) beginning: Beginning,
    clock: RunClock,
    /// The run's time when its clock said `since`: what is told again took place before.
    reached: Duration,
    since: Duration,
    /// The last time that the script was told.
    told: Duration,
    past: HashMap<CallId, PastCall>,
    events: VecDeque<Event>,
    /// Calls of the past that the script has made again.
    repeated: HashMap<CallId, PastCall>,
    /// When the script wants to be told the time.
    pub(super) alarm: Option<Duration>,
}

/// What the history says of a call.
#[derive(Debug)]
pub(super) enum Past {
    /// Nothing: it is made for the first time.
    New,
    /// It was made, and what came of it will be told in its turn; what it failed with, if it did.
    Answered { failed: Option<String> },
    /// It was made, and what came of it was due while the script waited for something else: it is told
    /// after what is told again.
    Overdue(Result<Box<RawValue>, Thrown>),
    /// It was made, and nobody knows what came of it.
    Unknown,
    /// Another call was made in its place.
    Differs(PastCall),
}

/// What a script is told again, together.
pub(super) type Retold = Vec<(CallId, Result<Box<RawValue>, Thrown>)>;

impl Timeline {
    pub(super) fn new(history: Option<History>, clock: RunClock) -> Self {
        let History { beginning, calls, events } =
            history.unwrap_or_else(|| History { beginning: beginning(), ..History::default() });
        Self {
            beginning,
            reached: Duration::ZERO,
            since: clock.passed(),
            clock,
            told: Duration::ZERO,
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
        self.told = now.max(self.told + Duration::from_micros(1));
        self.told
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
    pub(super) fn look_up(&mut self, call: &Call) -> Past {
        let Some(past) = self.past.remove(&call.id) else { return Past::New };
        if past.name != call.name || past.arguments.get() != call.arguments.get() {
            if past.binds {
                return Past::Differs(past);
            }
            // What came of the one before is not told again.
            self.events
                .retain(|event| !matches!(event, Event::Completed { id, .. } if *id == call.id));
            return Past::New;
        }
        let Some(outcome) = &past.outcome else { return Past::Unknown };
        let is_its = |event: &Event| matches!(event, Event::Completed { id, .. } if *id == call.id);
        if !self.events.iter().any(is_its) {
            return Past::Overdue(outcome.clone());
        }
        let failed = outcome.as_ref().err().map(|thrown| thrown.message.clone());
        self.repeated.insert(call.id, past);
        Past::Answered { failed }
    }

    /// What the script is to be told next of its past, if that can be told by now.
    pub(super) fn next_told(&mut self) -> Option<(Duration, Retold)> {
        let at = self.events.front()?.at();
        let together = self.events.iter().take_while(|event| event.at() == at).count();
        let ready = self.events.iter().take(together).all(|event| match event {
            Event::Completed { id, .. } => self.repeated.contains_key(id),
            Event::Time { .. } => true,
        });
        if !ready {
            return None;
        }
        let events: Vec<Event> = self.events.drain(..together).collect();
        let told = events.into_iter().filter_map(|event| match event {
            Event::Completed { id, .. } => {
                self.repeated.remove(&id).and_then(|past| Some((id, past.outcome?)))
            }
            Event::Time { .. } => None,
        });
        let told = told.collect();
        self.reach(at);
        Some((at, told))
    }

    /// The script waits, and was told all that could be told. What comes next is about a call that it
    /// has not made this time: that can wait no longer. Should it make the call after all, because it
    /// waited for another one first, then it is overdue.
    pub(super) fn skip_absent(&mut self) {
        while let Some(Event::Completed { id, .. }) = self.events.front() {
            if self.repeated.contains_key(id) {
                return;
            }
            self.events.pop_front();
        }
    }

    /// Time goes on from here.
    fn reach(&mut self, at: Duration) {
        self.told = self.told.max(at);
        self.reached = at;
        self.since = self.clock.passed();
    }
}

/// What came of a call was told later than it was due where its event is there a second time.
fn last_of_each(events: Vec<Event>) -> VecDeque<Event> {
    let mut seen = HashSet::new();
    let mut kept = VecDeque::with_capacity(events.len());
    for event in events.into_iter().rev() {
        if !matches!(event, Event::Completed { id, .. } if !seen.insert(id)) {
            kept.push_front(event);
        }
    }
    kept
}

fn beginning() -> Beginning {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u128(unix.as_nanos());
    Beginning { unix: micros(unix), seed: hasher.finish() }
}

/// The time in whole microseconds, which is what frames carry.
fn micros(time: Duration) -> Duration {
    Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
