//! The clock of a run, which can be stopped.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The clock of one run. Its time limit and the time that its script sees are both read from it.
///
/// The clock is [held](Self::hold) while the run waits for a person. That time does not count
/// towards the limit, and timers of the script do not go off. Afterwards the script continues as if
/// it had been suspended and resumed.
#[derive(Debug, Clone)]
pub struct RunClock(Arc<watch::Sender<ClockReading>>);

/// Stops a clock until it is dropped. A clock can have several holds.
#[derive(Debug)]
#[must_use = "the clock goes on when this is dropped"]
pub struct ClockHold(RunClock);

#[derive(Debug, Clone, Copy)]
struct ClockReading {
    /// The time that had passed at the moment `since`.
    passed: Duration,
    since: Instant,
    holds: usize,
}

impl RunClock {
    /// A clock that starts with its run.
    pub fn new() -> Self {
        let reading = ClockReading { passed: Duration::ZERO, since: Instant::now(), holds: 0 };
        Self(Arc::new(watch::Sender::new(reading)))
    }

    /// Stops the clock until the returned value is dropped.
    pub fn hold(&self) -> ClockHold {
        self.0.send_modify(|reading| {
            *reading = ClockReading { holds: reading.holds + 1, ..reading.now() };
        });
        ClockHold(self.clone())
    }

    /// Starts the clock: the run begins now.
    pub(crate) fn start(&self) {
        self.0.send_modify(|reading| {
            *reading = ClockReading { passed: Duration::ZERO, since: Instant::now(), ..*reading };
        });
    }

    /// The time since the start, without the time in which the clock was held.
    pub(crate) fn passed(&self) -> Duration {
        self.0.borrow().now().passed
    }

    /// Waits until `passed` has passed.
    pub(crate) async fn reach(self, passed: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let reading = changes.borrow_and_update().now();
            let left = passed.saturating_sub(reading.passed);
            if left.is_zero() {
                return;
            }
            // The channel stays open because `self` owns it.
            tokio::select! {
                _ = changes.changed() => {}
                () = sleep(left), if reading.holds == 0 => {}
            }
        }
    }
}

impl Default for RunClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ClockReading {
    fn now(self) -> Self {
        let now = Instant::now();
        let more = if self.holds == 0 { now - self.since } else { Duration::ZERO };
        Self { passed: self.passed + more, since: now, ..self }
    }
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.0.0.send_modify(|reading| {
            *reading = ClockReading { holds: reading.holds.saturating_sub(1), ..reading.now() };
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_paused() {
        let clock = RunClock::new();
        advance(SECOND).await;
        let (one, other) = (clock.hold(), clock.hold());
        advance(SECOND).await;
        drop(one);
        advance(SECOND).await;
        assert_eq!(clock.passed(), SECOND);
        drop(other);
        advance(SECOND).await;
        assert_eq!(clock.passed(), 2 * SECOND);
        clock.start();
        assert_eq!(clock.passed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_delay_a_deadline() {
        let clock = RunClock::new();
        let mut reached = std::pin::pin!(clock.clone().reach(3 * SECOND));
        let mut comes = async |after: Duration| {
            advance(after).await;
            reached.as_mut().now_or_never().is_some()
        };
        assert!(!comes(SECOND).await);
        let hold = clock.hold();
        assert!(!comes(60 * SECOND).await);
        drop(hold);
        assert!(!comes(SECOND).await);
        assert!(comes(SECOND).await);
        // A time that has already passed is reached at once, even while the clock is held.
        let _hold = clock.hold();
        assert!(clock.clone().reach(SECOND).now_or_never().is_some());
    }
}
