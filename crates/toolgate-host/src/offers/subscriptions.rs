//! Who wants to hear when a resource changes.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use toolgate_catalog::ServerName;

use super::uri;

/// One who subscribes: a session, or a stream of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WatcherId(pub(super) u64);

/// All subscriptions, counted: a server hears of the first and of the end of the last.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    wanted: Mutex<HashMap<ServerName, HashMap<String, HashSet<WatcherId>>>>,
    /// Taken while a server is told, so that it hears of changes in their order.
    turns: Mutex<HashMap<ServerName, Arc<tokio::sync::Mutex<()>>>>,
    next: AtomicU64,
}

/// Why there is no further subscription.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// What one watcher may be subscribed to at once.
pub(super) const MAX_PER_WATCHER: usize = 1_000;

impl Subscriptions {
    pub(super) fn watcher(&self) -> WatcherId {
        WatcherId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits for a turn to tell a server something.
    pub(super) async fn turn(&self, server: &ServerName) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = Arc::clone(self.turns.lock().entry(server.clone()).or_default());
        turn.lock_owned().await
    }

    /// Notes a wish. Says whether it is the first one for this resource.
    pub(super) fn add(
        &self,
        server: &ServerName,
        uri: &str,
        watcher: WatcherId,
    ) -> Result<bool, TooMany> {
        let mut wanted = self.wanted.lock();
        let uris = wanted.values().flatten();
        if uris.filter(|(_, watchers)| watchers.contains(&watcher)).count() >= MAX_PER_WATCHER {
            return Err(TooMany);
        }
        let watchers = wanted.entry(server.clone()).or_default().entry(uri.to_owned()).or_default();
        watchers.insert(watcher);
        Ok(watchers.len() == 1)
    }

    /// Takes a wish back. Says whether it was there and the last one.
    pub(super) fn remove(&self, server: &ServerName, uri: &str, watcher: WatcherId) -> bool {
        let mut wanted = self.wanted.lock();
        let Some(uris) = wanted.get_mut(server) else { return false };
        let Some(watchers) = uris.get_mut(uri) else { return false };
        let last = watchers.remove(&watcher) && watchers.is_empty();
        if watchers.is_empty() {
            uris.remove(uri);
        }
        if uris.is_empty() {
            wanted.remove(server);
        }
        last
    }

    /// What a watcher is subscribed to.
    pub(super) fn of(&self, watcher: WatcherId) -> Vec<(ServerName, String)> {
        let wanted = self.wanted.lock();
        let pairs = wanted.iter().flat_map(|(server, uris)| {
            let mine = uris.iter().filter(|(_, watchers)| watchers.contains(&watcher));
            mine.map(|(uri, _)| (server.clone(), uri.clone()))
        });
        pairs.collect()
    }

    /// The same as clients know it.
    pub(super) fn uris_of(&self, watcher: WatcherId) -> Vec<String> {
        self.of(watcher).iter().map(|(server, uri)| uri::ours(server, uri)).collect()
    }

    /// What anybody wants to hear of a server.
    pub(super) fn on(&self, server: &ServerName) -> Vec<String> {
        let wanted = self.wanted.lock();
        wanted.get(server).map(|uris| uris.keys().cloned().collect()).unwrap_or_default()
    }

    /// Who wants to hear of a change of this resource. A server may tell of a part of what was
    /// subscribed to.
    pub(super) fn watchers(&self, server: &ServerName, changed: &str) -> HashSet<WatcherId> {
        let wanted = self.wanted.lock();
        let uris = wanted.get(server).into_iter().flatten();
        uris.filter(|(uri, _)| is_part_of(changed, uri)).flat_map(|(_, ids)| ids).copied().collect()
    }
}

/// Whether a resource is the other one or below it.
fn is_part_of(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| {
        rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_hears_of_the_first_and_of_the_last() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let (one, two) = (all.watcher(), all.watcher());
        assert_eq!(all.add(&server, "x:1", one), Ok(true));
        assert_eq!(all.add(&server, "x:1", two), Ok(false));
        assert!(!all.remove(&server, "x:1", one));
        assert!(!all.remove(&server, "x:1", one), "twice is once");
        assert!(all.remove(&server, "x:1", two));
        assert!(all.on(&server).is_empty());
    }

    #[test]
    fn a_part_is_told_to_who_watches_the_whole() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let (one, two) = (all.watcher(), all.watcher());
        all.add(&server, "file:///a", one).unwrap();
        all.add(&server, "file:///a/b", two).unwrap();
        assert_eq!(all.watchers(&server, "file:///a/b"), HashSet::from([one, two]));
        assert_eq!(all.watchers(&server, "file:///a"), HashSet::from([one]));
        assert!(all.watchers(&server, "file:///ab").is_empty());
        assert!(all.watchers(&"other".into(), "file:///a").is_empty());
        assert_eq!(all.uris_of(two), ["toolgate://s/file:///a/b"]);
    }

    #[test]
    fn nobody_wants_everything() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let greedy = all.watcher();
        for number in 0..MAX_PER_WATCHER {
            all.add(&server, &format!("x:{number}"), greedy).unwrap();
        }
        assert_eq!(all.add(&server, "x:more", greedy), Err(TooMany));
        assert_eq!(all.add(&server, "x:more", all.watcher()), Ok(true));
    }
}
