//! The lists of tools that a server has announced.

use tokio::sync::watch;

/// Counts the tool lists that a server has announced, and those that were fetched.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedLists(watch::Sender<ListCounts>);

#[derive(Debug, Default)]
struct ListCounts {
    announced: u64,
    /// How many had been announced when the last attempt to fetch a list began.
    tried: u64,
    /// The same for the last attempt that brought a list.
    fetched: u64,
    failures: u64,
}

/// The attempt to fetch an announced list failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListFailed;

impl ListCounts {
    /// Whether the last attempt brought no list, and no other one is due.
    fn is_given_up(&self) -> bool {
        self.fetched < self.announced && self.tried >= self.announced
    }
}

impl AnnouncedLists {
    /// Counts an announced list.
    pub(crate) fn announce(&self) {
        self.0.send_modify(|counts| counts.announced += 1);
    }

    /// How many lists the server has announced so far.
    pub(crate) fn announced(&self) -> u64 {
        self.0.borrow().announced
    }

    /// Notes that the list after this many announcements was fetched.
    pub(crate) fn fetched(&self, announced: u64) {
        self.0.send_modify(|counts| (counts.tried, counts.fetched) = (announced, announced));
    }

    /// Notes that the list after this many announcements did not come.
    pub(crate) fn failed(&self, announced: u64) {
        self.0.send_modify(|counts| {
            counts.tried = announced;
            counts.failures += 1;
        });
    }

    /// Waits until an announced list must be fetched.
    pub(crate) async fn due(&self) {
        let _ = self.0.subscribe().wait_for(|counts| counts.announced > counts.tried).await;
    }

    /// Waits until every list that was announced so far is fetched. Later announcements do not
    /// prolong this: a server that announces all the time must not stop its calls. If the last
    /// attempt failed, `try_again` requests another one.
    pub(crate) async fn current(&self, try_again: impl FnOnce()) -> Result<(), ListFailed> {
        let mut counts = self.0.subscribe();
        let (wanted, failures, is_given_up) = {
            let counts = counts.borrow();
            (counts.announced, counts.failures, counts.is_given_up())
        };
        if is_given_up {
            try_again();
        }
        let is_over = |counts: &ListCounts| {
            counts.fetched >= wanted || (counts.tried >= wanted && counts.failures > failures)
        };
        match counts.wait_for(is_over).await {
            Ok(counts) if counts.fetched >= wanted => Ok(()),
            _ => Err(ListFailed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn announcements_without_end_do_not_stop_calls() {
        let lists = AnnouncedLists::default();
        assert_eq!(lists.current(|| panic!("nothing is missing")).await, Ok(()));
        lists.announce();
        let mut waiting = std::pin::pin!(lists.current(|| panic!("a list is due")));
        assert!(futures::poll!(&mut waiting).is_pending());
        let begun = lists.announced();
        lists.announce();
        lists.fetched(begun);
        assert_eq!(waiting.await, Ok(()));
    }

    #[tokio::test]
    async fn a_list_that_failed_is_missing_until_one_comes() {
        let lists = AnnouncedLists::default();
        lists.announce();
        let mut waiting = std::pin::pin!(lists.current(|| panic!("a list is due")));
        assert!(futures::poll!(&mut waiting).is_pending());
        lists.failed(1);
        assert_eq!(waiting.await, Err(ListFailed));
        assert_eq!(lists.current(|| lists.failed(1)).await, Err(ListFailed));
        assert_eq!(lists.current(|| lists.fetched(1)).await, Ok(()));
    }
}
