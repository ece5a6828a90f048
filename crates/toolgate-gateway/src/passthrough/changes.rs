//! What makes a list of the server that was read before outdated.

use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_host::PassthroughGuard;

/// Counts of the changes that make a list outdated: of the server's own list, and of the policy.
#[derive(Debug)]
pub(crate) struct ListChanges([Mutex<watch::Receiver<u64>>; 2]);

impl ListChanges {
    /// `announced` changes with the server's own list.
    pub(crate) fn new(guard: &PassthroughGuard, announced: watch::Receiver<u64>) -> Self {
        Self([announced, guard.reloads()].map(Mutex::new))
    }

    /// Whether something has changed since the last time.
    pub(crate) fn take(&self) -> bool {
        let have_changed = self.0.each_ref().map(|changes| {
            let mut changes = changes.lock();
            let has_changed = changes.has_changed().unwrap_or_default();
            changes.mark_unchanged();
            has_changed
        });
        have_changed.contains(&true)
    }
}
