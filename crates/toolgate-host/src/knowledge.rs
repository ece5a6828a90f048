//! What is known of the servers' tools, kept up to date while they come and go.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use toolgate_broker::SharedCatalog;
use toolgate_catalog::{Catalog, Definition, ServerName};
use toolgate_search::{Hit, Query, SearchIndex, ServerText, ToolKey};
use toolgate_store::{LogSource, ServerKey, ServerMemory, Store};
use toolgate_upstream::{Handshake, Listing, Observer, OutputSource};

use crate::{settings::ServerSetup, texts::Indexable};

/// The catalogue and the index over it. Implements [`Observer`]: servers tell it what they have.
pub(crate) struct Knowledge {
    catalog: SharedCatalog,
    index: RwLock<SearchIndex>,
    /// Servers whose tools are known, from the cache or from themselves.
    known: Mutex<HashSet<ServerName>>,
    servers: HashMap<ServerName, Kept>,
    store: Option<Store>,
    /// One write to the store at a time.
    writing: Arc<Mutex<()>>,
    changes: watch::Sender<u64>,
}

/// What is needed to deal with a server's news.
struct Kept {
    key: ServerKey,
    admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Knowledge {
    pub(crate) fn new(servers: &[ServerSetup], index: SearchIndex, store: Option<Store>) -> Self {
        let kept = servers.iter().map(|setup| {
            let key = ServerKey::new(setup.spec.name.as_str(), &setup.spec.endpoint.target());
            (setup.spec.name.clone(), Kept { key, admits: Arc::clone(&setup.admits) })
        });
        let catalog = Catalog::new(servers.iter().map(|setup| setup.entry.clone()));
        Self {
            catalog: Arc::new(RwLock::new(catalog)),
            index: RwLock::new(index),
            known: Mutex::default(),
            servers: kept.collect(),
            store,
            writing: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn catalog(&self) -> &SharedCatalog {
        &self.catalog
    }

    /// Told after each change of the tools.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(crate) fn is_known(&self, server: &ServerName) -> bool {
        self.known.lock().contains(server)
    }

    pub(crate) fn search(&self, queries: &[Query<'_>], limit: usize) -> Vec<Hit> {
        self.index.read().search_many(queries, limit)
    }

    /// Takes what the cache has of a server, and says how to talk to it.
    pub(crate) fn recall(&self, server: &ServerName) -> Option<ServerMemory> {
        let (store, kept) = (self.store.as_ref()?, self.servers.get(server)?);
        let cached = store.definitions().load(&kept.key)?;
        self.learn(server, cached.definitions);
        Some(cached.memory)
    }

    fn learn(&self, server: &ServerName, mut definitions: Vec<Definition>) {
        if let Some(kept) = self.servers.get(server) {
            definitions.retain(|definition| (kept.admits)(definition.name()));
        }
        let mut touched = {
            let mut catalog = self.catalog.write();
            let replaced = catalog.replace_server(server, definitions);
            if !replaced.changed {
                self.known.lock().insert(server.clone());
                return;
            }
            replaced.renamed
        };
        touched.insert(server.clone());
        for server in &touched {
            self.index_server(server);
        }
        self.known.lock().insert(server.clone());
        self.changes.send_modify(|count| *count += 1);
    }

    fn index_server(&self, server: &ServerName) {
        // Parsed outside of all locks: a search must not wait for it.
        let (tools, description) = {
            let catalog = self.catalog.read();
            let description =
                catalog.server(server.as_str()).and_then(|entry| entry.description.clone());
            (catalog.tools_of(server.as_str()).to_vec(), description.unwrap_or_default())
        };
        let indexables: Vec<(ToolKey, Indexable)> = tools
            .iter()
            .map(|tool| {
                (ToolKey::new(tool.name.to_arc()), Indexable::new(tool.definition.to_value()))
            })
            .collect();
        let texts: Vec<_> =
            indexables.iter().map(|(key, indexable)| (key.clone(), indexable.text())).collect();
        let text = ServerText { name: server.as_str(), description: &description };
        self.index.write().replace_server(server.as_str(), text, &texts);
    }

    /// Writes what a server said into the cache, aside: counting tokens and writing files takes
    /// time that the server's task does not have.
    fn remember(&self, server: &ServerName, handshake: &Handshake, definitions: Vec<Definition>) {
        let (Some(store), Some(kept)) = (&self.store, self.servers.get(server)) else { return };
        let (cache, key) = (store.definitions(), kept.key.clone());
        let (server, writing) = (server.clone(), Arc::clone(&self.writing));
        let memory = ServerMemory {
            era: handshake.era,
            protocol_version: handshake.protocol_version.clone(),
            server_info: handshake.server_info.clone(),
            instructions: handshake.instructions.clone(),
        };
        tokio::task::spawn_blocking(move || {
            let _one_at_a_time = writing.lock();
            if let Err(error) = cache.save(&key, server.as_str(), &memory, &definitions) {
                tracing::warn!(%server, "definitions are not cached: {error}");
            }
        });
    }
}

impl Observer for Knowledge {
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing) {
        self.remember(server, handshake, listing.definitions.clone());
        self.learn(server, listing.definitions);
    }

    fn state_changed(&self, _server: &ServerName) {}

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        let Some(store) = &self.store else { return };
        let source = match source {
            OutputSource::Stderr => LogSource::Stderr,
            OutputSource::Stdout => LogSource::Stdout,
            OutputSource::Toolgate => LogSource::Toolgate,
        };
        if let Err(error) = store.log(server.as_str()).append(source, line) {
            tracing::debug!(%server, "a log line is lost: {error}");
        }
    }
}
