//! Waits for messages that follow each other quickly.
//!
//! To put a thread to sleep and to wake it again takes longer than everything that toolgate does with a call, above all
//! on virtual machines. So a reader whose last messages came quickly looks for the next one for a short time before its
//! thread sleeps. Kernels and hypervisors do the same (halt polling). A reader whose messages come seldom costs nothing:
//! it looks only after two quick messages in a row, and not much longer than the last messages took.

use std::{
    pin::pin,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::yield_now,
};

/// How long a reader looks for a message at most before it sleeps. A message that comes sooner is quick.
const QUICK: Duration = Duration::from_millis(1);
/// How much longer than twice the usual time a reader looks.
const GRACE: Duration = Duration::from_micros(50);
/// To look once takes less.
const TAKEN: Duration = Duration::from_micros(50);
/// To find out reads files of the system.
static HAS_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1));
/// The number of quick messages in a row after which a reader looks for the next one.
const IN_A_ROW: u8 = 2;

/// The waits of one reader.
#[derive(Debug)]
pub struct QuickWait {
    /// How long the reader looks. `None` if it sleeps at once.
    limit: Option<Duration>,
    /// A look that takes so long has given the processor to another program.
    taken: Duration,
    /// How many of the last waits were quick.
    in_a_row: u8,
    /// How long the last waits took, the latest counting most. What takes much longer is late, and its sender may need
    /// the processor that looking keeps busy.
    usual: Duration,
}

impl QuickWait {
    /// The waits of a reader in this runtime.
    ///
    /// The reader only looks where that takes no time from others: in a runtime with one thread, which serves one
    /// client, and on a machine with several processors. Elsewhere it sleeps at once.
    pub fn new() -> Self {
        let has_one_thread = Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread);
        let limit = (has_one_thread && *HAS_PROCESSORS).then_some(QUICK);
        Self { limit, taken: TAKEN, in_a_row: 0, usual: QUICK }
    }

    /// Waits for the next message.
    pub async fn wait<T>(&mut self, message: impl Future<Output = T>) -> T {
        let Some(limit) = self.limit else { return message.await };
        let began = Instant::now();
        let mut message = pin!(message);
        let found = if self.in_a_row >= IN_A_ROW {
            let limit = limit.min(self.usual * 2 + GRACE);
            tokio::select! {
                biased;
                message = &mut message => Some(message),
                () = look(began, limit, self.taken) => {
                    self.in_a_row = 0;
                    None
                }
            }
        } else {
            None
        };
        let message = match found {
            Some(message) => message,
            None => message.await,
        };
        let waited = began.elapsed();
        self.usual = (self.usual * 3 + waited.min(limit)) / 4;
        self.in_a_row = if waited < limit { self.in_a_row.saturating_add(1) } else { 0 };
        message
    }
}

impl Default for QuickWait {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets the runtime look for events again and again, without sleep. Ends early if another program wants the processor:
/// whoever sleeps then gets it back sooner than whoever looks.
async fn look(began: Instant, limit: Duration, taken: Duration) {
    let mut last = began;
    while last - began < limit {
        yield_now().await;
        thread::yield_now();
        let now = Instant::now();
        if now - last >= taken {
            return;
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use super::*;

    /// A message that wakes nobody. Only a reader that looks for it gets it.
    fn silent() -> impl Future<Output = ()> {
        let mut polls = 0;
        poll_fn(move |_| {
            polls += 1;
            if polls > 5 { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    #[tokio::test]
    async fn a_reader_looks_after_quick_messages() {
        let hour = Duration::from_hours(1);
        // However busy the machine is.
        let mut waits = QuickWait { limit: Some(hour), taken: hour, in_a_row: 0, usual: hour };
        for _ in 0..IN_A_ROW {
            waits.wait(std::future::ready(())).await;
        }
        waits.wait(silent()).await;
    }

    #[tokio::test]
    async fn a_reader_of_slow_messages_sleeps() {
        let mut waits = QuickWait {
            limit: Some(Duration::ZERO),
            taken: TAKEN,
            in_a_row: IN_A_ROW,
            usual: QUICK,
        };
        waits.wait(yield_now()).await;
        assert_eq!(waits.in_a_row, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_runtime_with_many_threads_never_looks() {
        assert_eq!(QuickWait::new().limit, None);
    }
}
