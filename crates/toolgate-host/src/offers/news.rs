//! What servers tell of their own accord, on its way to the sessions that it concerns.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use super::{kind::Kind, subscriptions::WatcherId};

/// A notification for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Its method.
    pub method: &'static str,
    /// Its parameters, with a URI of ours where there is one.
    pub params: Option<Value>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A list is another one now.
    Listed(Kind),
    /// A resource is another one now; the parameters are for these watchers.
    Updated(Arc<HashSet<WatcherId>>, Value),
}

/// Where everything that happens is told.
#[derive(Debug, Clone)]
pub(super) struct Events(broadcast::Sender<Event>);

/// The news for one watcher.
#[derive(Debug)]
pub(super) struct Feed {
    events: broadcast::Receiver<Event>,
    watcher: WatcherId,
    /// What a slow reader has missed and is told anew.
    pending: Vec<Notification>,
}

/// How many events wait for a slow reader.
const QUEUED: usize = 256;

const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

impl Events {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(QUEUED))
    }

    /// Tells it to whoever listens.
    pub(super) fn send(&self, event: Event) {
        // Nobody may listen.
        let _ = self.0.send(event);
    }

    /// What happens from now on, for one watcher.
    pub(super) fn feed(&self, watcher: WatcherId) -> Feed {
        Feed { events: self.0.subscribe(), watcher, pending: Vec::new() }
    }
}

impl Feed {
    /// The next piece of news; `None` when there will be no more. `watched` are the URIs that the
    /// watcher is subscribed to: a reader that fell behind is told that all of them changed, which
    /// is true of some and harmless for the others.
    pub(super) async fn next(&mut self, watched: impl Fn() -> Vec<String>) -> Option<Notification> {
        loop {
            if let Some(notification) = self.pending.pop() {
                return Some(notification);
            }
            match self.events.recv().await {
                Ok(Event::Listed(kind)) => return Some(listed(kind)),
                Ok(Event::Updated(watchers, params)) if watchers.contains(&self.watcher) => {
                    return Some(Notification { method: UPDATED, params: Some(params) });
                }
                Ok(Event::Updated(..)) => {}
                Err(RecvError::Lagged(_)) => {
                    self.pending = [Kind::Prompts, Kind::Resources].map(listed).to_vec();
                    self.pending.extend(watched().into_iter().map(|uri| Notification {
                        method: UPDATED,
                        params: Some(json!({ "uri": uri })),
                    }));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

fn listed(kind: Kind) -> Notification {
    let method = match kind {
        Kind::Resources | Kind::Templates => RESOURCES_CHANGED,
        Kind::Prompts => PROMPTS_CHANGED,
    };
    Notification { method, params: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(watcher: WatcherId, uri: &str) -> Event {
        Event::Updated(Arc::new(HashSet::from([watcher])), json!({ "uri": uri }))
    }

    #[tokio::test]
    async fn a_watcher_hears_what_is_for_it() {
        let events = Events::new();
        let mut feed = events.feed(WatcherId(1));
        events.send(updated(WatcherId(2), "other"));
        events.send(updated(WatcherId(1), "mine"));
        events.send(Event::Listed(Kind::Prompts));
        let first = feed.next(Vec::new).await.unwrap();
        assert_eq!((first.method, first.params), (UPDATED, Some(json!({ "uri": "mine" }))));
        assert_eq!(feed.next(Vec::new).await.unwrap().method, PROMPTS_CHANGED);
        drop(events);
        assert_eq!(feed.next(Vec::new).await, None);
    }

    #[tokio::test]
    async fn who_falls_behind_is_told_that_all_may_have_changed() {
        let events = Events::new();
        let mut feed = events.feed(WatcherId(1));
        for _ in 0..=QUEUED {
            events.send(updated(WatcherId(2), "other"));
        }
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(feed.next(|| vec!["mine".to_owned()]).await.unwrap().method);
        }
        assert_eq!(told, [UPDATED, RESOURCES_CHANGED, PROMPTS_CHANGED]);
    }
}
