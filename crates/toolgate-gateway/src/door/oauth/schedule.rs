//! When keys are fetched.

use std::time::{Duration, Instant};

/// How long is waited between attempts, whoever asks.
const PAUSE: Duration = Duration::from_mins(1);
/// The same before there was any success.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long keys are good for when nothing better can be had.
const TRUSTED: Duration = Duration::from_hours(24);

/// When keys were fetched last, and for how long they are good.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Schedule {
    tried: Option<Instant>,
    fetched: Option<Instant>,
    lifetime: Duration,
}

impl Schedule {
    /// Notes an attempt.
    pub(super) fn try_now(&mut self, now: Instant) {
        self.tried = Some(now);
    }

    /// Notes that an attempt was of use; what it brought is said to be good for so long.
    pub(super) fn succeed(&mut self, now: Instant, lifetime: Option<Duration>) {
        let lifetime = lifetime.unwrap_or(Duration::from_mins(10));
        self.fetched = Some(now);
        self.lifetime = lifetime.clamp(PAUSE, TRUSTED);
    }

    /// Whether it is time for others.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.age(now).is_none_or(|age| age >= self.lifetime)
    }

    /// Whether there are keys that can still be used.
    pub(super) fn is_trusted(&self, now: Instant) -> bool {
        self.age(now).is_some_and(|age| age < TRUSTED)
    }

    /// Whether it is too early for another attempt.
    pub(super) fn must_wait(&self, now: Instant) -> bool {
        let pause = if self.fetched.is_some() { PAUSE } else { FIRST_PAUSE };
        self.tried.is_some_and(|tried| now.saturating_duration_since(tried) < pause)
    }

    fn age(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.fetched?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn attempts_are_a_minute_apart_once_there_are_keys() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        assert!(schedule.is_stale(start) && !schedule.is_trusted(start));
        assert!(!schedule.must_wait(start));
        schedule.try_now(start);
        assert!(schedule.must_wait(start + SECOND * 4));
        assert!(!schedule.must_wait(start + SECOND * 5), "there is nothing yet");
        schedule.succeed(start, None);
        assert!(schedule.must_wait(start + SECOND * 59));
        assert!(!schedule.must_wait(start + SECOND * 60));
    }

    #[test]
    fn keys_live_as_long_as_they_say_within_reason() {
        let start = Instant::now();
        let stale_after = |lifetime: Option<Duration>| {
            let mut schedule = Schedule::default();
            schedule.succeed(start, lifetime);
            let fresh = |seconds: &u32| schedule.is_stale(start + SECOND * *seconds);
            [59, 60, 599, 600, 3_600, 86_400, 90_000].into_iter().find(fresh).unwrap()
        };
        assert_eq!(stale_after(None), 600);
        assert_eq!(stale_after(Some(Duration::ZERO)), 60);
        assert_eq!(stale_after(Some(SECOND * 3_600)), 3_600);
        assert_eq!(stale_after(Some(SECOND * 1_000_000)), 86_400);
    }

    #[test]
    fn old_keys_are_kept_for_a_day() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        schedule.succeed(start, Some(SECOND * 60));
        let later = start + SECOND * 86_399;
        assert!(schedule.is_stale(later) && schedule.is_trusted(later));
        assert!(!schedule.is_trusted(later + SECOND));
    }
}
