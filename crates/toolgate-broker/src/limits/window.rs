//! Calls of the last minute, in constant space.

use std::time::Duration;

/// Counts of five seconds each. The last 13 of them cover any 60 seconds, so that a limit never lets
/// more through, and may refuse for up to five seconds longer.
#[derive(Debug, Default)]
pub(super) struct MinuteWindow {
    counts: [u32; PARTS],
    /// The number of the newest part.
    newest: u64,
    /// Until when calls are refused, as it was last reported.
    refused_until: u64,
}

const PARTS: usize = 13;
const PART: u64 = 5_000;

impl MinuteWindow {
    /// Counts a call.
    pub(super) fn add(&mut self, now: Duration) {
        self.advance(now);
        let at = place(self.newest);
        self.counts[at] = self.counts[at].saturating_add(1);
    }

    /// Takes the newest call back.
    pub(super) fn take_back(&mut self) {
        for back in 0..PARTS as u64 {
            let at = place(self.newest.wrapping_sub(back).wrapping_add(PARTS as u64 * 2));
            if self.counts[at] > 0 {
                self.counts[at] -= 1;
                return;
            }
        }
    }

    /// How long a call has to wait; `None` if it is allowed now.
    pub(super) fn wait(&mut self, now: Duration, most: u32) -> Option<Duration> {
        self.advance(now);
        let mut used: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        if used < u64::from(most) {
            return None;
        }
        // The oldest parts leave first.
        for age in (0..PARTS as u64).rev() {
            let Some(part) = self.newest.checked_sub(age) else { continue };
            used -= u64::from(self.counts[place(part)]);
            if used < u64::from(most) {
                let ends = (part + PARTS as u64) * PART;
                return Some(Duration::from_millis(ends.saturating_sub(millis(now))));
            }
        }
        Some(Duration::from_mins(1))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// Whether it was not reported before that calls are refused until then.
    pub(super) fn note_refusal(&mut self, until: u64) -> bool {
        let is_new = until > self.refused_until;
        self.refused_until = self.refused_until.max(until);
        is_new
    }

    fn advance(&mut self, now: Duration) {
        let part = millis(now) / PART;
        let passed = part.saturating_sub(self.newest).min(PARTS as u64);
        for step in 1..=passed {
            self.counts[place(part - passed + step)] = 0;
        }
        self.newest = self.newest.max(part);
    }
}

fn place(part: u64) -> usize {
    usize::try_from(part % PARTS as u64).unwrap_or_default()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_limit_in_any_minute() {
        const MOST: u32 = 7;
        let mut window = MinuteWindow::default();
        let mut made: Vec<u64> = Vec::new();
        // A caller that tries every 700 ms, for ten minutes.
        for now in (0..600_000).step_by(700) {
            if window.wait(Duration::from_millis(now), MOST).is_none() {
                window.add(Duration::from_millis(now));
                made.push(now);
            }
        }
        for (index, first) in made.iter().enumerate() {
            let within = made[index..].iter().filter(|time| **time - first < 60_000).count();
            assert!(within <= MOST as usize, "{within} from {first} ms on");
        }
        assert!(made.len() >= 9 * MOST as usize, "the limit is used: {}", made.len());
    }

    #[test]
    fn the_time_that_it_names_is_the_time_when_a_call_is_allowed() {
        let mut window = MinuteWindow::default();
        let at = |seconds: u64| Duration::from_secs(seconds);
        window.add(at(3));
        window.add(at(31));
        assert_eq!(window.wait(at(40), 3), None);
        let wait = window.wait(at(40), 2).unwrap();
        assert!(
            window
                .wait((at(40) + wait).checked_sub(Duration::from_millis(1)).unwrap(), 2)
                .is_some()
        );
        assert_eq!(window.wait(at(40) + wait, 2), None);
        assert!(window.wait(at(41), 0).is_some());
    }

    #[test]
    fn a_call_that_was_not_made_is_taken_back() {
        let mut window = MinuteWindow::default();
        window.add(Duration::ZERO);
        window.take_back();
        assert!(window.is_empty());
        window.take_back();
        assert!(window.is_empty());
    }
}
