//! Counts the calls that need a connection.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// Counts the calls of a server. Its lock is held while the connection is closed, so that no call
/// is lost.
///
/// Code that needs both locks takes this lock before that of the server's state.
#[derive(Debug)]
pub(super) struct Demand {
    needs: Arc<watch::Sender<DemandState>>,
}

#[derive(Debug)]
struct DemandState {
    /// How many calls are open or wait for a connection.
    calls: usize,
    idle_since: Instant,
    /// Whether a connection was requested without a call.
    woken: bool,
    /// How to enable the server, while it is disabled.
    disabled: Option<Arc<str>>,
}

/// One call. Dropping it ends it.
#[derive(Debug)]
pub(super) struct CallInProgress(Arc<watch::Sender<DemandState>>);

impl Demand {
    pub(super) fn new() -> Self {
        let needs =
            DemandState { calls: 0, idle_since: Instant::now(), woken: false, disabled: None };
        Self { needs: Arc::new(watch::Sender::new(needs)) }
    }

    pub(super) fn call(&self) -> CallInProgress {
        // This change wakes no waiter.
        self.needs.send_if_modified(|needs| {
            needs.calls += 1;
            false
        });
        CallInProgress(Arc::clone(&self.needs))
    }

    pub(super) fn wake(&self) {
        self.needs.send_if_modified(|needs| {
            needs.woken = true;
            false
        });
    }

    /// Notes that the requested attempt was made.
    pub(super) fn answered(&self) {
        self.needs.send_if_modified(|needs| {
            needs.woken = false;
            needs.idle_since = Instant::now();
            false
        });
    }

    pub(super) fn is_wanted(&self) -> bool {
        let needs = self.needs.borrow();
        needs.disabled.is_none() && (needs.woken || needs.calls > 0)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.needs.borrow().calls > 0
    }

    /// Since when there is no call; `None` if there are calls.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let needs = self.needs.borrow();
        (needs.calls == 0).then_some(needs.idle_since)
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.needs.borrow().disabled.is_some()
    }

    /// How to enable the server, while it is disabled.
    pub(super) fn way_on(&self) -> Option<Arc<str>> {
        self.needs.borrow().disabled.clone()
    }

    /// Disables or enables the server; `disabled` says how to enable it. Returns whether that changed.
    pub(super) fn set_disabled(&self, disabled: Option<&str>) -> bool {
        self.needs.send_if_modified(|needs| {
            let news = needs.disabled.is_some() != disabled.is_some();
            needs.woken &= disabled.is_none();
            needs.disabled = disabled.map(Arc::from);
            news
        })
    }

    /// Waits until it is disabled.
    pub(super) async fn disabled(&self) {
        let _ = self.needs.subscribe().wait_for(|needs| needs.disabled.is_some()).await;
    }

    /// Waits until no call is open, and either the idle timeout has passed or the server is
    /// disabled.
    pub(super) async fn over(&self, rest_after: Option<Duration>) {
        let mut news = self.needs.subscribe();
        loop {
            let next_look = {
                let needs = news.borrow_and_update();
                if needs.is_over(rest_after) {
                    return;
                }
                let since = if needs.calls > 0 { Instant::now() } else { needs.idle_since };
                rest_after.map(|rest_after| since + rest_after)
            };
            let due = async {
                match next_look {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                change = news.changed() => if change.is_err() { return },
            }
        }
    }

    /// Runs `rest` if no call needs the connection. No call can begin meanwhile.
    pub(super) fn rest_if_over(&self, rest_after: Option<Duration>, rest: impl FnOnce()) -> bool {
        let mut over = false;
        self.needs.send_if_modified(|needs| {
            over = needs.is_over(rest_after);
            if over {
                rest();
            }
            false
        });
        over
    }
}

impl DemandState {
    fn is_over(&self, rest_after: Option<Duration>) -> bool {
        let idle = rest_after.is_some_and(|rest_after| self.idle_since.elapsed() >= rest_after);
        self.calls == 0 && (self.disabled.is_some() || (idle && !self.woken))
    }
}

impl Drop for CallInProgress {
    fn drop(&mut self) {
        self.0.send_if_modified(|needs| {
            needs.calls = needs.calls.saturating_sub(1);
            needs.idle_since = Instant::now();
            // The idle timeout checks this itself.
            needs.disabled.is_some() && needs.calls == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn a_call_keeps_the_connection_in_use_until_it_ends() {
        let demand = Demand::new();
        let call = demand.call();
        assert!(demand.is_wanted());
        assert!(!demand.rest_if_over(Some(Duration::ZERO), || panic!("somebody calls")));
        assert!(demand.set_disabled(Some("a word")));
        assert!(!demand.set_disabled(Some("another")), "no news");
        assert_eq!(demand.way_on().as_deref(), Some("another"));
        assert!(!demand.is_wanted());
        assert!(!demand.rest_if_over(Some(LONG), || panic!("somebody calls")));
        drop(call);
        demand.over(None).await;
        let mut rested = false;
        assert!(demand.rest_if_over(None, || rested = true));
        assert!(rested);
    }

    #[tokio::test]
    async fn a_woken_server_is_not_stopped_before_it_has_answered() {
        let demand = Demand::new();
        demand.wake();
        assert!(demand.is_wanted());
        assert!(!demand.rest_if_over(Some(Duration::ZERO), || {}));
        demand.answered();
        assert!(!demand.is_wanted());
        demand.over(Some(Duration::ZERO)).await;
        assert!(!demand.rest_if_over(None, || {}), "never, unless it is said");
        assert!(!demand.rest_if_over(Some(LONG), || {}), "not yet");
    }
}
