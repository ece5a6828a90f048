//! Limits of a conversation, and when a request is sent again.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What ends a turn or a conversation early.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLimits {
    /// The most requests to the model in one turn.
    pub requests: u32,
    /// The most tokens of the conversation, input and output of all requests.
    pub tokens: Option<u64>,
    /// The most US dollars of the conversation. It needs prices.
    pub cost: Option<f64>,
    /// How many tool calls of one reply are made at the same time.
    pub parallel_calls: usize,
    /// The most bytes of one tool result that the model gets. What is longer is cut, and the result says so.
    pub result_bytes: usize,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { requests: 50, tokens: None, cost: None, parallel_calls: 8, result_bytes: 256 * 1024 }
    }
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentLimit {
    /// [`AgentLimits::requests`].
    Requests,
    /// [`AgentLimits::tokens`].
    Tokens,
    /// [`AgentLimits::cost`].
    Cost,
}

/// When a failed request is sent again: after the statuses 429, 500, 502, 503, 504 and 529, and after a connection
/// that ended before a hosted tool began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at most, with the first time.
    pub attempts: u32,
    /// The wait before the second attempt. Each later wait is twice as long, and a part of it is random.
    pub first_wait: Duration,
    /// The longest wait of our own.
    pub longest_wait: Duration,
    /// The longest `Retry-After` that is obeyed. A longer one ends the turn with an error.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_retry_after: Duration::from_mins(2),
        }
    }
}

impl RetryPolicy {
    /// The wait after attempt number `attempt` (from 1), or `None` if there is no further attempt.
    pub(crate) fn wait(&self, attempt: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        if let Some(asked) = retry_after {
            return (asked <= self.longest_retry_after).then_some(asked);
        }
        let doubled = self.first_wait.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let wait = doubled.min(self.longest_wait);
        // Many agents that failed together must not come back together.
        Some(wait.mul_f64(0.5 + 0.5 * fraction_of_now()))
    }
}

/// A number from 0 to 1 that nobody plans with.
fn fraction_of_now() -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    f64::from(now.subsec_micros() % 1_000) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_end() {
        let policy = RetryPolicy::default();
        for (attempt, most) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000)] {
            let wait = policy.wait(attempt, None).unwrap();
            assert!(wait <= Duration::from_millis(most), "{attempt}: {wait:?}");
            assert!(wait >= Duration::from_millis(most / 2), "{attempt}: {wait:?}");
        }
        assert_eq!(policy.wait(5, None), None);
        let patient = RetryPolicy { attempts: 100, ..policy };
        assert!(patient.wait(60, None).unwrap() <= patient.longest_wait);
    }

    #[test]
    fn a_retry_after_is_obeyed_or_ends_the_turn() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait(1, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(policy.wait(1, Some(Duration::from_hours(1))), None);
    }
}
