//! ServerLimits that stand still while a person is asked.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

/// What a call may wait for the people and models that its server asks, all questions together. Long
/// enough to fetch a password or to read what is to be signed; short enough that a form nobody looks
/// at does not hold a server's call for ever.
pub(crate) const PERSON_PATIENCE: Duration = Duration::from_mins(10);

/// How many questions are open.
#[derive(Debug, Default)]
pub(crate) struct Asking(watch::Sender<usize>);

/// An open question. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Open<'a>(&'a Asking);

impl Asking {
    /// Opens a question.
    pub(crate) fn open(&self) -> Open<'_> {
        self.0.send_modify(|open| *open += 1);
        Open(self)
    }

    /// Whether a question is open.
    pub(crate) fn is_open(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits for `limit`. Time in which questions are open does not count, as far as `patience`
    /// reaches.
    pub(crate) async fn elapse(&self, limit: Duration, patience: Duration) {
        let mut open = self.0.subscribe();
        let (mut left, mut patience) = (limit, patience);
        while !patience.is_zero() {
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
                () = tokio::time::sleep(patience) => {}
            }
            patience = patience.saturating_sub(asked.elapsed());
        }
        tokio::time::sleep(left).await;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// How long a limit of ten seconds took while `asked` went on.
    async fn took(asking: &Asking, asked: impl Future<Output = ()>) -> u64 {
        let started = Instant::now();
        tokio::join!(asking.elapse(10 * SECOND, 60 * SECOND), asked);
        started.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_somebody_is_asked_does_not_count() {
        let asking = Asking::default();
        assert_eq!(took(&asking, async {}).await, 10);
        let once = async {
            tokio::time::sleep(4 * SECOND).await;
            let _open = asking.open();
            tokio::time::sleep(20 * SECOND).await;
        };
        assert_eq!(took(&asking, once).await, 30);
        let two_at_a_time = async {
            let first = asking.open();
            tokio::time::sleep(5 * SECOND).await;
            let _second = asking.open();
            drop(first);
            tokio::time::sleep(5 * SECOND).await;
        };
        assert_eq!(took(&asking, two_at_a_time).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn patience_has_an_end() {
        let asking = Asking::default();
        let _open = asking.open();
        assert_eq!(took(&asking, async {}).await, 70);
    }
}
