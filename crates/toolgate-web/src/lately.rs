//! What was called and saved lately. It is read again after some seconds, because the log may be long.

use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use toolgate_host::CallActivity;

use crate::PageState;

/// How long what was read is used again.
const USED_FOR: Duration = Duration::from_secs(2);
/// After how long the last minute is another one, in milliseconds.
const MOVES_ON: u64 = 10_000;
/// The plot of saved tokens covers this many hours.
pub(crate) const HOURS: usize = 24;

/// What was read last.
#[derive(Debug, Default)]
pub(crate) struct Lately(Mutex<Option<ReadActivity>>);

#[derive(Debug)]
struct ReadActivity {
    at: Instant,
    /// The number of the newest record then.
    newest: u64,
    calls: Arc<CallActivity>,
}

/// The calls of the last hour.
pub(crate) fn activity(page: &PageState) -> Arc<CallActivity> {
    let mut last = page.lately.0.lock();
    if let Some(ReadActivity { at, calls, .. }) = &*last
        && at.elapsed() < USED_FOR
    {
        return Arc::clone(calls);
    }
    let newest = newest(page);
    let read = CallActivity::read(&*page.source.store().audit(), now());
    let calls = Arc::new(read.unwrap_or_else(|error| {
        tracing::warn!("{error}");
        CallActivity::default()
    }));
    *last = Some(ReadActivity { at: Instant::now(), newest, calls: Arc::clone(&calls) });
    calls
}

/// Changes when [`activity`] has something new.
pub(crate) fn stamp(page: &PageState) -> (u64, u64) {
    let newest = newest(page);
    let is_known = page.lately.0.lock().as_ref().is_some_and(|last| last.newest == newest);
    let used_for = u64::try_from(USED_FOR.as_millis()).unwrap_or(MOVES_ON);
    (newest, now() / if is_known { MOVES_ON } else { used_for })
}

/// The number of the newest record of the audit log.
pub(crate) fn newest(page: &PageState) -> u64 {
    let mut number = 0;
    let _ = page.source.store().audit().read_back(None, &mut |seen| {
        number = seen.number;
        ControlFlow::Break(())
    });
    number
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
