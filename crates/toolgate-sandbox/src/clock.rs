//! The time of a run, which stands still while somebody holds it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// The clock of one run: its limit of time and the time that its script sees are both read from it.
///
/// It is [held](Self::hold) while the run waits for a person. Their time is not the script's: neither
/// does it use up what the script may take, nor do timers of the script go off meanwhile. Afterwards
/// the script goes on as if it had been suspended and resumed.
#[derive(Debug, Clone)]
pub struct RunClock(Arc<watch::Sender<Reading>>);

/// Holds a clock until it is dropped. Others may hold it too.
#[derive(Debug)]
#[must_use = "the clock goes on when this is dropped"]
pub struct ClockHold(RunClock);

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// What had passed at the moment `since`.
    passed: Duration,
    since: Instant,
    holds: usize,
}

impl RunClock {
    /// A clock that starts with its run.
    pub fn new() -> Self {
        let reading = Reading { passed: Duration::ZERO, since: Instant::now(), holds: 0 };
        Self(Arc::new(watch::Sender::new(reading)))
    }

    /// Stops the clock until what is returned is dropped.
    pub fn hold(&self) -> ClockHold {
        self.0.send_modify(|reading| {
            *reading = Reading { holds: reading.holds + 1, ..reading.now() };
        });
        ClockHold(self.clone())
    }

    /// The run begins now.
    pub(crate) fn start(&self) {
        self.0.send_modify(|reading| {
            *reading = Reading { passed: Duration::ZERO, since: Instant::now(), ..*reading };
        });
    }

    /// The time that has passed since the start, without that in which the clock was held.
    pub(crate) fn passed(&self) -> Duration {
        self.0.borrow().now().passed
    }

    /// Waits until so much has passed.
    pub(crate) async fn reach(self, passed: Duration) {
        let mut changes = self.0.subscribe();
        loop {
            let reading = changes.borrow_and_update().now();
            let left = passed.saturating_sub(reading.passed);
            if left.is_zero() {
                return;
            }
            // It changes as long as we have it.
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

impl Reading {
    fn now(self) -> Self {
        let now = Instant::now();
        let more = if self.holds == 0 { now - self.since } else { Duration::ZERO };
        Self { passed: self.passed + more, since: now, ..self }
    }
}

impl Drop for ClockHold {
    fn drop(&mut self) {
        self.0.0.send_modify(|reading| {
            *reading = Reading { holds: reading.holds.saturating_sub(1), ..reading.now() };
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
    async fn it_stands_still_while_anybody_holds_it() {
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
    async fn a_moment_is_later_by_as_long_as_it_was_held() {
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
        // One that has passed is there at once, held or not.
        let _hold = clock.hold();
        assert!(clock.clone().reach(SECOND).now_or_never().is_some());
    }
}
