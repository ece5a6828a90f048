//! Timers, ordered by deadline.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

/// The id of a timer in the script. It starts from 1, because scripts test ids for truth.
pub(super) type TimerId = u32;

/// The kinds of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimerKind {
    Once,
    Interval,
    /// Goes off once, if the script still runs. The script does not wait for it.
    Background,
}

/// The timers of a script.
///
/// The time is the last one passed to [`Self::reach`].
#[derive(Debug)]
pub(super) struct Timers<T> {
    due: BTreeMap<(Duration, u64), Timer<T>>,
    keys: HashMap<TimerId, (Duration, u64)>,
    next_id: TimerId,
    next_sequence: u64,
    /// The number of timers that are not in the background.
    holding: usize,
    reached: Duration,
}

#[derive(Debug)]
struct Timer<T> {
    id: TimerId,
    callback: T,
    kind: TimerKind,
    delay: Duration,
}

/// The longest delay, 24 days, as in browsers.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);
/// The shortest interval. An interval of zero would block everything else.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

impl<T: Clone> Timers<T> {
    /// Starts a timer. `delay` is the script's argument in milliseconds, which may be any number.
    pub(super) fn start(&mut self, callback: T, delay: f64, kind: TimerKind) -> TimerId {
        // Also false for NaN.
        let delay = if delay > 0.0 {
            Duration::try_from_secs_f64(delay / 1000.0).unwrap_or(LONGEST).min(LONGEST)
        } else {
            Duration::ZERO
        };
        let delay = if kind == TimerKind::Interval { delay.max(SHORTEST_INTERVAL) } else { delay };
        self.next_id = self.next_id.wrapping_add(1).max(1);
        let id = self.next_id;
        self.insert(Timer { id, callback, kind, delay });
        id
    }

    /// Stops a timer, if it has not gone off.
    pub(super) fn stop(&mut self, id: TimerId) {
        if let Some(key) = self.keys.remove(&id)
            && let Some(timer) = self.due.remove(&key)
        {
            self.uncount(timer.kind);
        }
    }

    /// When the next timer goes off.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.due.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Sets the time to at least `time`.
    pub(super) fn reach(&mut self, time: Duration) {
        self.reached = self.reached.max(time);
    }

    /// Takes the first timer that is due. An interval is started again.
    pub(super) fn take_due(&mut self) -> Option<T> {
        let now = self.reached;
        let entry = self.due.first_entry()?;
        if entry.key().0 > now {
            return None;
        }
        let timer = entry.remove();
        self.keys.remove(&timer.id);
        self.uncount(timer.kind);
        let callback = timer.callback.clone();
        if timer.kind == TimerKind::Interval {
            self.insert(timer);
        }
        Some(callback)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Whether no timer keeps the script from ending.
    pub(super) fn lets_end(&self) -> bool {
        self.holding == 0
    }

    pub(super) fn clear(&mut self) {
        self.due.clear();
        self.keys.clear();
        self.holding = 0;
    }

    fn insert(&mut self, timer: Timer<T>) {
        let key = (self.reached + timer.delay, self.next_sequence);
        self.holding += usize::from(timer.kind != TimerKind::Background);
        self.next_sequence += 1;
        self.keys.insert(timer.id, key);
        self.due.insert(key, timer);
    }

    fn uncount(&mut self, kind: TimerKind) {
        self.holding -= usize::from(kind != TimerKind::Background);
    }
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            keys: HashMap::new(),
            next_id: 0,
            next_sequence: 0,
            holding: 0,
            reached: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fire_all(timers: &mut Timers<&'static str>, most: usize) -> Vec<&'static str> {
        let mut fired = Vec::new();
        while let Some(deadline) = timers.next_deadline() {
            timers.reach(deadline);
            while let Some(callback) = timers.take_due() {
                fired.push(callback);
                if fired.len() == most {
                    return fired;
                }
            }
        }
        fired
    }

    #[test]
    fn timers_fire_in_order_of_time_then_of_creation() {
        let mut timers = Timers::default();
        timers.start("late", 5_000.0, TimerKind::Once);
        timers.start("soon", 1_000.0, TimerKind::Once);
        timers.start("at once", 0.0, TimerKind::Once);
        timers.start("also at once", f64::NAN, TimerKind::Once);
        assert_eq!(fire_all(&mut timers, 9), ["at once", "also at once", "soon", "late"]);
        assert!(timers.is_empty());
    }

    #[test]
    fn a_stopped_timer_is_gone() {
        let mut timers = Timers::default();
        let id = timers.start("stopped", 10.0, TimerKind::Once);
        timers.start("stays", 20.0, TimerKind::Once);
        timers.stop(id);
        timers.stop(id);
        timers.stop(77);
        assert_eq!(fire_all(&mut timers, 9), ["stays"]);
    }

    #[test]
    fn an_interval_repeats_and_other_timers_run_between() {
        let mut timers = Timers::default();
        let id = timers.start("tick", 10_000.0, TimerKind::Interval);
        timers.start("between", 15_000.0, TimerKind::Once);
        assert_eq!(fire_all(&mut timers, 3), ["tick", "between", "tick"]);
        timers.stop(id);
        assert!(timers.is_empty());
    }

    #[test]
    fn background_timers_do_not_keep_the_script_running() {
        let mut timers = Timers::default();
        timers.start("background", 10.0, TimerKind::Background);
        assert!(timers.lets_end() && !timers.is_empty());
        let id = timers.start("tick", 10.0, TimerKind::Interval);
        timers.start("once", 30.0, TimerKind::Once);
        assert!(!timers.lets_end());
        timers.stop(id);
        assert!(!timers.lets_end());
        assert_eq!(fire_all(&mut timers, 9), ["background", "once"]);
        assert!(timers.lets_end());
    }

    #[test]
    fn any_number_is_a_delay() {
        let mut timers = Timers::default();
        for delay in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 1e-300, f64::NAN] {
            timers.start("any", delay, TimerKind::Interval);
        }
        let farthest = timers.due.keys().map(|(deadline, _)| *deadline).max();
        assert!(farthest <= Some(LONGEST));
    }
}
