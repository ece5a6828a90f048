//! What servers listed last, kept until they say that it changed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_catalog::ServerName;
use toolgate_upstream::Upstream;

use super::{
    kind::Kind,
    listing::{List, list_all},
    news::{Event, Events},
};

/// The lists of all servers.
#[derive(Debug)]
pub(super) struct Shelf {
    entries: Mutex<HashMap<(ServerName, Kind), Entry>>,
    events: Events,
}

/// What is known of one list.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// What was listed last; empty where nothing was yet.
    pub(super) list: Arc<List>,
    /// Why it may not be all.
    pub(super) problem: Option<String>,
}

#[derive(Debug, Default)]
struct Entry {
    known: Known,
    /// When it is asked for again.
    good_until: Option<Instant>,
    asking: Option<Asking>,
    /// Grows with each change, so that an answer from before is not taken for the present.
    round: u64,
}

#[derive(Debug, Clone)]
struct Asking {
    since: Instant,
    done: watch::Receiver<bool>,
}

/// How long a list waits for a server. Who is later is announced.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// How long a server has for all its pages.
const LISTING_LIMIT: Duration = Duration::from_mins(1);
/// Servers that announce nothing are asked again after this time.
const GOOD_FOR: Duration = Duration::from_mins(5);
/// And those that failed after this.
const RETRY_AFTER: Duration = Duration::from_secs(10);

impl Shelf {
    pub(super) fn new(events: Events) -> Self {
        Self { entries: Mutex::default(), events }
    }

    /// Asks those of `servers` whose list is not known or no longer good, all at once, and waits for
    /// them a short time.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        servers: &[ServerName],
        kind: Kind,
    ) {
        join_all(servers.iter().map(|server| async move {
            let mut deadline = None;
            // Again, where the list became another one while it was asked for: so it is with a server
            // that was about to be connected.
            while let Some(mut asking) = self.ask(upstream, server, kind) {
                let until = *deadline.get_or_insert(asking.since + PATIENCE);
                let done = asking.done.wait_for(|done| *done);
                // Late ones go on, and are announced when they are done.
                if !matches!(tokio::time::timeout_at(until.into(), done).await, Ok(Ok(_))) {
                    break;
                }
            }
        }))
        .await;
    }

    /// What is known of a server's list.
    pub(super) fn known(&self, server: &ServerName, kind: Kind) -> Known {
        let entries = self.entries.lock();
        let Some(entry) = entries.get(&(server.clone(), kind)) else { return Known::default() };
        let mut known = entry.known.clone();
        if entry.asking.as_ref().is_some_and(Asking::goes_on) {
            let patience = PATIENCE.as_secs();
            known.problem.get_or_insert_with(|| format!("no answer in {patience} s"));
        }
        known
    }

    /// Whether a server has been asked for its list since it last changed.
    pub(super) fn is_known(&self, server: &ServerName, kind: Kind) -> bool {
        let entries = self.entries.lock();
        entries.get(&(server.clone(), kind)).is_some_and(|entry| entry.good_until.is_some())
    }

    /// The list is another one now: it is asked for when it is needed next.
    pub(super) fn outdated(&self, server: &ServerName, kind: Kind) {
        if let Some(entry) = self.entries.lock().get_mut(&(server.clone(), kind)) {
            entry.round += 1;
            entry.good_until = None;
            entry.asking = None;
        }
    }

    /// Sees to it that a list is asked for, unless it is good.
    fn ask(
        self: &Arc<Self>,
        upstream: &Arc<Upstream>,
        server: &ServerName,
        kind: Kind,
    ) -> Option<Asking> {
        let mut entries = self.entries.lock();
        let entry = entries.entry((server.clone(), kind)).or_default();
        if entry.good_until.is_some_and(|until| until > Instant::now()) {
            return None;
        }
        if let Some(asking) = entry.asking.as_ref().filter(|asking| asking.goes_on()) {
            return Some(asking.clone());
        }
        let (sender, done) = watch::channel(false);
        let asking = Asking { since: Instant::now(), done };
        entry.asking = Some(asking.clone());
        let (lists, upstream, server) = (Arc::clone(self), Arc::clone(upstream), server.clone());
        let (since, round) = (asking.since, entry.round);
        tokio::spawn(async move {
            let listing = list_all(&upstream, &server, kind);
            let listed = tokio::time::timeout(LISTING_LIMIT, listing).await.unwrap_or_else(|_| {
                Err(format!("its list did not end in {} s", LISTING_LIMIT.as_secs()))
            });
            let changed = lists.put(&server, kind, round, listed);
            sender.send_replace(true);
            if changed && since.elapsed() >= PATIENCE {
                lists.events.send(Event::Listed(kind));
            }
        });
        Some(asking)
    }

    /// Keeps what came of asking. Says whether there is anything new in it.
    fn put(
        &self,
        server: &ServerName,
        kind: Kind,
        round: u64,
        listed: Result<List, String>,
    ) -> bool {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&(server.clone(), kind)) else { return false };
        if entry.round != round {
            return false;
        }
        entry.asking = None;
        let now = Instant::now();
        match listed {
            Ok(list) => {
                let changed = !(list.items.is_empty() && entry.known.list.items.is_empty());
                entry.known = Known { problem: list.cut.clone(), list: Arc::new(list) };
                entry.good_until = Some(now + GOOD_FOR);
                changed
            }
            // What it listed before is the best that there is.
            Err(problem) => {
                entry.known.problem = Some(problem);
                entry.good_until = Some(now + RETRY_AFTER);
                false
            }
        }
    }
}

impl Asking {
    /// Whether somebody still works on it.
    fn goes_on(&self) -> bool {
        !*self.done.borrow() && self.done.has_changed().is_ok()
    }
}
