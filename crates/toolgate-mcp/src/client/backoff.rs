//! How long to wait before the next attempt.

use std::time::{Duration, Instant};

/// Doubles from half a second to a minute, and starts over after a connection that lasted.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
    connected_at: Option<Instant>,
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(1);
/// A connection that lasted this long was a good one.
const LASTED: Duration = Duration::from_secs(30);

impl Backoff {
    /// Notes that a connection was made.
    pub fn connected(&mut self, now: Instant) {
        self.connected_at = Some(now);
    }

    /// Counts a failure or the end of a connection, and says how long to wait.
    pub fn next(&mut self, now: Instant) -> Duration {
        if let Some(since) = self.connected_at.take()
            && now.duration_since(since) >= LASTED
        {
            self.failures = 0;
        }
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_a_minute_and_starts_over_after_a_good_connection() {
        let start = Instant::now();
        let mut backoff = Backoff::default();
        let delays: Vec<u128> = (0..9).map(|_| backoff.next(start).as_millis()).collect();
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);

        backoff.connected(start);
        assert_eq!(backoff.next(start + Duration::from_secs(1)), LONGEST, "it crashed at once");
        backoff.connected(start);
        assert_eq!(backoff.next(start + LASTED), FIRST);
    }
}
