//! Limits of time that do not run while a person is asked.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

/// How long a call may wait for the people and models that its server asks, all input requests
/// together. Long enough to fetch a password or to read what is to be signed; short enough that a
/// form nobody looks at does not keep a server's call for ever.
pub const PERSON_TIMEOUT: Duration = Duration::from_mins(10);

/// Counts the input requests that wait for an answer.
#[derive(Debug, Default)]
pub struct OpenInputRequests(watch::Sender<usize>);

/// An input request that waits for an answer. Dropping it ends that.
#[derive(Debug)]
pub struct OpenInputRequest<'a>(&'a OpenInputRequests);

impl OpenInputRequests {
    /// Counts one until it is dropped.
    pub fn open(&self) -> OpenInputRequest<'_> {
        self.0.send_modify(|open| *open += 1);
        OpenInputRequest(self)
    }

    /// Whether one waits for an answer.
    pub fn is_open(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits for `limit`. Time in which input requests are open does not count, up to `person_time`.
    pub async fn elapse(&self, limit: Duration, person_time: Duration) {
        let mut open = self.0.subscribe();
        let (mut left, mut person_time) = (limit, person_time);
        while !person_time.is_zero() {
            let started = Instant::now();
            tokio::select! {
                biased;
                asked = open.wait_for(|open| *open > 0) => drop(asked),
                () = tokio::time::sleep(left) => return,
            }
            left = left.saturating_sub(started.elapsed());
            let asked = Instant::now();
            tokio::select! {
                answered = open.wait_for(|open| *open == 0) => drop(answered),
                () = tokio::time::sleep(person_time) => {}
            }
            person_time = person_time.saturating_sub(asked.elapsed());
        }
        tokio::time::sleep(left).await;
    }
}

impl Drop for OpenInputRequest<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How long a limit of ten seconds took while `asked` went on.
    async fn took(open_requests: &OpenInputRequests, asked: impl Future<Output = ()>) -> u64 {
        let started = Instant::now();
        tokio::join!(open_requests.elapse(10 * SECOND, 60 * SECOND), asked);
        started.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn time_for_a_person_does_not_count() {
        let open_requests = OpenInputRequests::default();
        assert_eq!(took(&open_requests, async {}).await, 10);
        let once = async {
            tokio::time::sleep(4 * SECOND).await;
            let _open = open_requests.open();
            tokio::time::sleep(20 * SECOND).await;
        };
        assert_eq!(took(&open_requests, once).await, 30);
        let two_at_a_time = async {
            let first = open_requests.open();
            tokio::time::sleep(5 * SECOND).await;
            let _second = open_requests.open();
            drop(first);
            tokio::time::sleep(5 * SECOND).await;
        };
        assert_eq!(took(&open_requests, two_at_a_time).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_a_person_is_limited() {
        let open_requests = OpenInputRequests::default();
        let _open = open_requests.open();
        assert_eq!(took(&open_requests, async {}).await, 70);
    }
}
