//! What was called and saved lately. It is read again after some seconds, because the log may be long.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use toolgate_host::CallActivity;

use crate::PageState;

/// How long what was read is used again.
const USED_FOR: Duration = Duration::from_secs(5);
/// The plot of saved tokens covers this many hours.
pub(crate) const HOURS: usize = 24;

/// What was read last, and when.
#[derive(Debug, Default)]
pub(crate) struct Lately(Mutex<Option<(Instant, Arc<CallActivity>)>>);

/// The calls of the last hour.
pub(crate) fn activity(page: &PageState) -> Arc<CallActivity> {
    let mut last = page.lately.0.lock();
    if let Some((at, known)) = &*last
        && at.elapsed() < USED_FOR
    {
        return Arc::clone(known);
    }
    let read = CallActivity::read(&*page.source.store().audit(), now());
    let read = Arc::new(read.unwrap_or_else(|error| {
        tracing::warn!("{error}");
        CallActivity::default()
    }));
    *last = Some((Instant::now(), Arc::clone(&read)));
    read
}

/// The tokens saved in each of the last hours, oldest first: of definitions, and of results.
pub(crate) fn saved(page: &PageState) -> Vec<(u64, u64)> {
    let (hour, mut hours) = (now() / 3_600_000, vec![(0, 0); HOURS]);
    for saved in page.source.store().savings().read() {
        let ago = usize::try_from(hour.saturating_sub(saved.time / 3_600_000)).unwrap_or(HOURS);
        let place = HOURS.checked_sub(ago.saturating_add(1));
        if let Some(place) = place.and_then(|place| hours.get_mut(place)) {
            place.0 += saved.definitions;
            place.1 += saved.results;
        }
    }
    hours
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u64::try_from(now).unwrap_or(u64::MAX)
}
