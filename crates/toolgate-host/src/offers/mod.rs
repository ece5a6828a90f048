//! What servers have beside tools: resources, templates of resources, prompts.
//!
//! All of it is listed and routed through one gateway. A resource's URI names its owner (`uri`), a
//! prompt is named like a tool (`prompts`); all else is as the server sent it. Lists are kept until
//! a server says that they changed (`shelf`), and what servers tell reaches the sessions that it
//! concerns (`news`, `subscriptions`, `watcher`).

mod guarded;
mod kind;
mod links;
mod listing;
mod news;
mod page;
mod prompts;
mod requests;
mod shelf;
mod streams;
mod subscriptions;
#[cfg(test)]
mod tests;
mod uri;
mod watcher;

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use toolgate_catalog::{Catalog, ServerName};
use toolgate_mcp::{Era, meta::SUBSCRIPTION_ID};
use toolgate_upstream::{CallOptions, StateKind, Upstream};

pub(crate) use guarded::is_denied;
pub(crate) use kind::Kind;
pub(crate) use links::{disown, own_content};
pub use news::Notification;
pub(crate) use requests::{answer, read};
pub(crate) use uri::{is_ours, words_of};
pub use watcher::{News, Watcher};

use self::{
    listing::List,
    news::{Event, Events},
    prompts::PromptNames,
    shelf::Shelf,
    streams::Streams,
    subscriptions::Subscriptions,
};
use crate::{host::Host, settings::Connect};

/// What is known of the servers' resources and prompts, and who wants to hear of them.
#[derive(Debug)]
pub(crate) struct Offers {
    shelf: Arc<Shelf>,
    events: Events,
    subscriptions: Subscriptions,
    streams: Streams,
    prompts: Mutex<Arc<PromptNames>>,
    upstream: OnceLock<Weak<Upstream>>,
    /// Servers that were connected when last looked at.
    connected: Mutex<HashSet<ServerName>>,
    /// The lists that somebody has been given since they were last said to have changed, by what
    /// servers declare. Nobody need be told twice: a server could say it a thousand times a second.
    given: Mutex<HashSet<&'static str>>,
    /// Set once the servers of the start are on their way.
    woken: OnceCell<()>,
}

/// The key in `_meta` that says to which stream a notification belongs.

impl Offers {
    pub(crate) fn new() -> Self {
        let events = Events::new();
        Self {
            shelf: Arc::new(Shelf::new(events.clone())),
            events,
            subscriptions: Subscriptions::default(),
            streams: Streams::default(),
            prompts: Mutex::default(),
            upstream: OnceLock::new(),
            connected: Mutex::default(),
            given: Mutex::default(),
            woken: OnceCell::new(),
        }
    }

    /// Tells it where the servers are, once they are there.
    pub(crate) fn attach(&self, upstream: &Arc<Upstream>) {
        let _ = self.upstream.set(Arc::downgrade(upstream));
    }

    /// A server's state is another one. One that is connected anew may list other things, and has
    /// forgotten who subscribed to what.
    pub(crate) fn state_changed(&self, server: &ServerName) {
        let Some(upstream) = self.upstream.get().and_then(Weak::upgrade) else { return };
        let state = upstream.state(server.as_str());
        let ready = state.filter(|state| state.kind == StateKind::Ready);
        let mut connected = self.connected.lock();
        let Some(handshake) = ready.and_then(|state| state.handshake) else {
            connected.remove(server);
            return;
        };
        if !connected.insert(server.clone()) {
            return;
        }
        drop(connected);
        for kind in Kind::ALL {
            self.shelf.outdated(server, kind);
            if declares(&handshake.capabilities, kind) {
                self.announce(kind);
            }
        }
        let uris = self.subscriptions.on(server);
        if handshake.era == Era::Modern {
            self.streams.listen(&upstream, server, uris);
        } else if !uris.is_empty() {
            let server = server.clone();
            tokio::spawn(async move {
                for uri in uris {
                    let params = Some(json!({ "uri": uri }));
                    let (method, options) = ("resources/subscribe", CallOptions::default());
                    let _ = upstream.request(&server, method, params, options).await;
                }
            });
        }
    }

    /// A server told something.
    pub(crate) fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        match method {
            "notifications/resources/list_changed" => {
                self.shelf.outdated(server, Kind::Resources);
                self.shelf.outdated(server, Kind::Templates);
                self.announce(Kind::Resources);
            }
            "notifications/prompts/list_changed" => {
                self.shelf.outdated(server, Kind::Prompts);
                self.announce(Kind::Prompts);
            }
            "notifications/resources/updated" => {
                let Some(params) = params else { return };
                let Some(changed) = params.get("uri").and_then(Value::as_str) else { return };
                let watchers = self.subscriptions.watchers(server, changed);
                if !watchers.is_empty() {
                    let mut params = params.clone();
                    links::own_uri(server, Some(&mut params));
                    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
                        // The stream is ours, and no client knows it.
                        meta.remove(SUBSCRIPTION_ID);
                    }
                    self.events.send(Event::Updated(Arc::new(watchers), params));
                }
            }
            _ => {}
        }
    }

    /// Sees to it, once, that the servers which are connected at the start are on their way: a client's
    /// first list would come before them, and many clients make no second one.
    async fn at_start(&self, host: &Host) {
        let wake = async || {
            if host.settings().connect == Connect::AtStart {
                host.wake().await;
            }
        };
        self.woken.get_or_init(wake).await;
    }

    /// Notes that somebody has a list, or waits for news of it, and is to be told when it changes.
    fn given(&self, kind: Kind) {
        self.given.lock().insert(kind.capability());
    }

    /// Says that a list changed.
    fn announce(&self, kind: Kind) {
        if self.given.lock().remove(kind.capability()) {
            self.events.send(Event::Listed(kind));
        }
    }

    /// The names of all prompts in these lists.
    fn prompt_names(
        &self,
        lists: Vec<(ServerName, Arc<List>)>,
        catalog: &Catalog,
    ) -> Arc<PromptNames> {
        let mut names = self.prompts.lock();
        if !names.are_of(&lists) {
            *names = Arc::new(PromptNames::new(lists, catalog));
        }
        Arc::clone(&names)
    }

    /// Servers that may have a prompt of this name and were never asked.
    fn may_name(&self, host: &Host, prompt: &str) -> Vec<ServerName> {
        let catalog = host.catalog().read();
        let named = catalog.servers().filter(|entry| prompts::could_name(entry, prompt));
        let unknown = named.map(|entry| entry.name.clone()).filter(|server| {
            let kind = Kind::Prompts;
            host.may_have(server, kind) && !self.shelf.is_known(server, kind)
        });
        unknown.collect()
    }
}

/// Whether a server with these capabilities has something of a kind.
pub(crate) fn declares(capabilities: &Map<String, Value>, kind: Kind) -> bool {
    capabilities.contains_key(kind.capability())
}
