//! The deadlines of tests.
//!
//! A deadline ends a test that hangs. It never decides whether a test passes: what a test waits for
//! either happens or does not. On a slow or busy machine `TOOLGATE_TEST_TIME_FACTOR` (a number, 1
//! unless set) stretches every deadline.

use std::{env, sync::LazyLock, time::Duration};

/// The environment variable that stretches all deadlines.
const FACTOR_VARIABLE: &str = "TOOLGATE_TEST_TIME_FACTOR";
/// The deadline of a single step on a machine of usual speed.
const STEP: Duration = Duration::from_mins(1);
/// The pause between two looks at something that announces no change.
const POLL: Duration = Duration::from_millis(10);

static FACTOR: LazyLock<f64> = LazyLock::new(|| {
    let factor = env::var(FACTOR_VARIABLE).ok().and_then(|factor| factor.parse().ok());
    factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0).unwrap_or(1.0)
});

/// A duration, stretched by `TOOLGATE_TEST_TIME_FACTOR`.
pub fn scaled(duration: Duration) -> Duration {
    duration.mul_f64(*FACTOR)
}

/// The deadline of a single step of a test: a response, a start or end of a process, a notification.
pub fn deadline() -> Duration {
    scaled(STEP)
}

/// Waits for `future` until the [`deadline`].
///
/// # Panics
///
/// If the deadline passes first; the message contains `what`.
#[track_caller]
pub fn within<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        tokio::time::timeout(deadline(), future)
            .await
            .unwrap_or_else(|_| panic!("{what}: not within {:?} (at {caller})", deadline()))
    }
}

/// Calls `poll` again and again until it returns a value. For processes, files and other things that
/// announce no change.
///
/// # Panics
///
/// If the [`deadline`] passes first; the message contains `what`.
#[track_caller]
pub fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    within(what, async move {
        loop {
            if let Some(value) = poll().await {
                return value;
            }
            tokio::time::sleep(POLL).await;
        }
    })
}
