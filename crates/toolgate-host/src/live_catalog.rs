//! The catalog and the search index, updated while servers come and go.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet};
use toolgate_broker::SharedCatalog;
use toolgate_catalog::{Catalog, Definition, Fingerprint, ServerName, Tool};
use toolgate_mcp::{JsonObject, extensions};
use toolgate_search::{
    Hit, PreparedTools, Query, Recall, SearchError, SearchIndex, ServerText, StrategyName, ToolKey,
    encoder::{ServerVectors, server_document, tool_document},
};
use toolgate_store::{LogSource, LogWriter, PastUse, ServerKey, ServerMemory, Store};
use toolgate_upstream::{Handshake, Listing, OutputSource, ServerObserver};

use crate::{
    encoding::EncodingQueue,
    other_indexes::OtherIndexes,
    recent_searches::Lesson,
    settings::ServerSetup,
    tool_filter::{HiddenTool, ToolFilter},
    tool_text::{DefinitionText, prepared_version},
    usage::{CatalogTools, Usage},
};

/// The catalog and the index over it. Implements [`ServerObserver`], so that servers update it.
pub(crate) struct LiveCatalog {
    catalog: SharedCatalog,
    index: RwLock<SearchIndex>,
    other_indexes: OtherIndexes,
    /// Whether the index takes texts that were prepared before.
    takes_prepared: bool,
    /// The extensions that servers declare, from the cache or from the server.
    extensions: RwLock<HashMap<ServerName, Arc<JsonObject>>>,
    /// Servers whose tools are known, from the cache or from the server.
    known: Mutex<HashSet<ServerName>>,
    servers: RwLock<HashMap<ServerName, Arc<ServerRecord>>>,
    store: Option<Store>,
    logs: Option<Arc<LogWriter>>,
    /// Which calls were useful for which queries.
    usage: Option<Arc<Usage>>,
    /// Serializes writes to the store.
    writing: Arc<Mutex<()>>,
    /// The pending writes.
    writes: Mutex<JoinSet<()>>,
    /// How many threads still read servers from the cache.
    recalling: watch::Sender<usize>,
    changes: watch::Sender<u64>,
    /// The servers whose tools have to be encoded.
    wanted: Option<Arc<EncodingQueue>>,
    /// Decides which tools are hidden.
    tool_filter: RwLock<Arc<ToolFilter>>,
    hidden: Mutex<HashMap<ServerName, Vec<HiddenTool>>>,
    /// The lists of servers, which may have to be filtered again.
    listed: Mutex<HashMap<ServerName, Vec<Definition>>>,
}

/// The texts of a server for an encoder.
pub(crate) struct Documents {
    /// The text of the server itself.
    pub(crate) server: String,
    /// The texts of its tools.
    pub(crate) tools: Vec<(ToolKey, String)>,
    /// The tools that the texts were made from.
    origin: Vec<Tool>,
}

/// How many threads read the cache at once.
const MAX_RECALL_THREADS: usize = 4;
/// How long a shutdown waits until the cache is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a shutdown waits until the logs are written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What is needed to update the tools of a server.
struct ServerRecord {
    key: ServerKey,
    admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether each caller has their own login. Then its lists are not for the cache, which is for all.
    per_caller: bool,
    /// Whether the server itself has listed its tools. Locked while its tools are replaced, so that
    /// the cache never overwrites them.
    spoken: Mutex<bool>,
}

impl ServerRecord {
    fn of(setup: &ServerSetup) -> Self {
        let key = ServerKey::new(setup.spec.name.as_str(), &setup.spec.endpoint.target());
        let per_caller = setup.spec.callers.is_some();
        Self { key, admits: Arc::clone(&setup.admits), per_caller, spoken: Mutex::new(false) }
    }
}

/// Where definitions come from.
#[derive(PartialEq, Eq)]
enum DefinitionSource {
    Cache,
    Server,
}

impl LiveCatalog {
    pub(crate) fn new(
        servers: &[ServerSetup],
        index: SearchIndex,
        store: Option<Store>,
        usage: Option<Usage>,
        wanted: Option<Arc<EncodingQueue>>,
        tool_filter: ToolFilter,
    ) -> Self {
        let record = servers
            .iter()
            .map(|setup| (setup.spec.name.clone(), Arc::new(ServerRecord::of(setup))));
        let catalog = Catalog::new(servers.iter().map(|setup| setup.entry.clone()));
        Self {
            catalog: SharedCatalog::new(catalog),
            takes_prepared: index.takes_prepared(),
            index: RwLock::new(index),
            other_indexes: OtherIndexes::default(),
            extensions: RwLock::default(),
            known: Mutex::default(),
            servers: RwLock::new(record.collect()),
            logs: store.clone().map(LogWriter::start).map(Arc::new),
            store,
            usage: usage.map(Arc::new),
            writing: Arc::default(),
            writes: Mutex::default(),
            recalling: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            wanted,
            tool_filter: RwLock::new(Arc::new(tool_filter)),
            hidden: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    pub(crate) fn catalog(&self) -> &SharedCatalog {
        &self.catalog
    }

    /// Changes with each change of the tools.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The hidden tools.
    pub(crate) fn hidden_tools(&self) -> Vec<HiddenTool> {
        let mut all: Vec<HiddenTool> = self.hidden.lock().values().flatten().cloned().collect();
        all.sort_by(|left, right| left.id.cmp(&right.id));
        all
    }

    pub(crate) fn is_known(&self, server: &ServerName) -> bool {
        self.known.lock().contains(server)
    }

    /// Notes which extensions a server declares.
    pub(crate) fn note_extensions(&self, server: &ServerName, capabilities: &JsonObject) {
        let declared = Arc::new(extensions::declared(capabilities));
        self.extensions.write().insert(server.clone(), declared);
    }

    /// The extensions that a server declares.
    pub(crate) fn extensions(&self, server: &ServerName) -> Arc<JsonObject> {
        self.extensions.read().get(server).cloned().unwrap_or_default()
    }

    /// Whether some server declares an extension.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        self.extensions.read().values().any(|declared| declared.contains_key(name))
    }

    /// Adds a server. Returns `false` if the name is taken.
    pub(crate) fn add(&self, setup: &ServerSetup) -> bool {
        let added = self.catalog.update(|catalog| catalog.add_server(setup.entry.clone()));
        if added {
            self.servers.write().insert(setup.spec.name.clone(), Arc::new(ServerRecord::of(setup)));
            if let Some(usage) = &self.usage {
                usage.guard(setup);
            }
        }
        added
    }

    /// Removes a server and its tools.
    pub(crate) fn remove(&self, server: &ServerName) {
        let Some(record) = self.servers.write().remove(server) else { return };
        // Waits for an update that is under way. None can follow.
        let spoken = record.spoken.lock();
        let replaced = self.catalog.update(|catalog| catalog.remove_server(server));
        self.index.write().remove_server(server.as_str());
        for other in &replaced.renamed {
            self.index_server(other);
        }
        self.known.lock().remove(server);
        self.extensions.write().remove(server);
        if let Some(wanted) = &self.wanted {
            wanted.changed(server);
        }
        self.hidden.lock().remove(server);
        self.listed.lock().remove(server);
        let touched = self.filter().forget(server);
        drop(spoken);
        for other in &touched {
            self.filter_again(other);
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Announces that the lists of sessions may have changed.
    pub(crate) fn announce(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The best tools for a query. Tools that were useful before rank higher.
    pub(crate) fn search(&self, query: &Query<'_>, caller: &str) -> Result<Vec<Hit>, SearchError> {
        let index = self.index.read();
        let Some(usage) = &self.usage else { return index.search(query) };
        let catalog = self.catalog.read();
        let present = CatalogTools { catalog: &catalog, servers: query.servers };
        usage.with_memory(|memory| {
            index.search_remembering(query, &Recall { memory, tools: &present, caller })
        })
    }

    /// The index of another strategy than the configured one. It may have to be made.
    pub(crate) fn other_index(&self, strategy: StrategyName) -> Arc<SearchIndex> {
        // Read before the catalog, so that a change in between makes the index old.
        let version = *self.changes.borrow();
        self.other_indexes.get(strategy, version, &self.catalog)
    }

    /// Reads which calls other sessions and processes found useful since the last time.
    pub(crate) async fn read_usage(&self) {
        if let Some(usage) = self.usage.clone() {
            // If that fails, only the order of tools is affected.
            let _ = tokio::task::spawn_blocking(move || usage.refresh()).await;
        }
    }

    /// Remembers in the background what calls of this caller teach.
    pub(crate) fn remember_use(&self, lessons: &[Lesson], caller: &str) {
        let Some(usage) = self.usage.clone().filter(|_| !lessons.is_empty()) else { return };
        let uses: Vec<PastUse> = usage.keepable(lessons, caller);
        self.write_aside(move || usage.write(&uses));
    }

    /// What the cache knows about a server's connection.
    pub(crate) fn memory(&self, server: &ServerName) -> Option<ServerMemory> {
        let record = self.record(server).filter(|record| !record.per_caller)?;
        let memory = self.store.as_ref()?.definitions().memory(&record.key)?;
        (!is_toolgate(&memory.server_info)).then_some(memory)
    }

    /// Whether a server did not answer a short time ago.
    pub(crate) fn was_silent(&self, server: &ServerName) -> bool {
        let (Some(store), Some(record)) = (&self.store, self.record(server)) else { return false };
        store.definitions().was_silent(&record.key)
    }

    /// Notes that a server has not answered. If that fails, it is waited for the next time.
    pub(crate) fn note_silent(&self, server: &ServerName) {
        if let (Some(store), Some(record)) = (&self.store, self.record(server)) {
            let _ = store.definitions().note_silent(&record.key);
        }
    }

    /// Whether a server has asked by requests.
    pub(crate) fn asks(&self, server: &ServerName) -> bool {
        let (Some(store), Some(record)) = (&self.store, self.record(server)) else { return false };
        store.definitions().asks(&record.key)
    }

    /// Notes that a server asks by requests. If that fails, it is found out again.
    pub(crate) fn note_asks(&self, server: &ServerName) {
        let (Some(store), Some(record)) = (&self.store, self.record(server)) else { return };
        let (cache, key) = (store.definitions(), record.key.clone());
        self.write_aside(move || drop(cache.note_asks(&key)));
    }

    /// Reads cached definitions in the background: the first requests of a client need not wait.
    pub(crate) fn recall(self: &Arc<Self>, servers: Vec<ServerName>) {
        if servers.is_empty() || self.store.is_none() {
            return;
        }
        // More threads than cores would only take memory.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MAX_RECALL_THREADS).min(servers.len());
        self.recalling.send_modify(|left| *left += threads);
        let left = Arc::new(Mutex::new(servers.into_iter()));
        for _ in 0..threads {
            let (live_catalog, left) = (Arc::clone(self), Arc::clone(&left));
            tokio::task::spawn_blocking(move || {
                // Counts down however this ends, because everybody waits for the last one.
                let _done = CountDownOnDrop(&live_catalog.recalling);
                while let Some(server) = { left.lock().next() } {
                    live_catalog.recall_one(&server);
                }
            });
        }
    }

    fn recall_one(&self, server: &ServerName) {
        let (Some(store), Some(record)) = (&self.store, self.record(server)) else { return };
        if let Some(cached) = store.definitions().load(&record.key) {
            self.learn(server, cached.definitions, &DefinitionSource::Cache);
        } else {
            tracing::debug!(%server, "its cached definitions are damaged");
        }
    }

    /// Waits until the cache is read.
    pub(crate) async fn recalled(&self) {
        let _ = self.recalling.subscribe().wait_for(|left| *left == 0).await;
    }

    /// Waits for pending writes. A command that sends one request ends before they are done, and
    /// would leave nothing in the cache for the next command.
    pub(crate) async fn written(&self) {
        let mut writes = std::mem::take(&mut *self.writes.lock());
        let all = async { while writes.join_next().await.is_some() {} };
        if tokio::time::timeout(WRITE_TIMEOUT, all).await.is_err() {
            tracing::warn!("the learned types were not written in time");
        }
        if let Some(logs) = self.logs.clone() {
            let _ = tokio::task::spawn_blocking(move || logs.flush(FLUSH_TIMEOUT)).await;
        }
    }

    fn learn(
        &self,
        server: &ServerName,
        mut definitions: Vec<Definition>,
        source: &DefinitionSource,
    ) {
        let Some(record) = self.record(server) else { return };
        let mut spoken = record.spoken.lock();
        if *source == DefinitionSource::Cache && *spoken {
            return;
        }
        *spoken = *source == DefinitionSource::Server;
        definitions.retain(|definition| (record.admits)(definition.name()));
        {
            let mut listed = self.listed.lock();
            match listed.get(server) {
                // One copy of the texts is enough.
                Some(before) if same_definitions(before, &definitions) => {
                    definitions.clone_from(before);
                }
                _ => drop(listed.insert(server.clone(), definitions.clone())),
            }
        }
        let touched = self.put(server, definitions);
        drop(spoken);
        for other in &touched {
            self.filter_again(other);
        }
    }

    /// Replaces the tools of a server, without hidden ones. Returns the servers that have to be
    /// filtered again.
    fn put(&self, server: &ServerName, mut definitions: Vec<Definition>) -> BTreeSet<ServerName> {
        let prefix = self.prefix(server);
        let filtered = self.filter().filter(server, prefix.as_deref(), &mut definitions);
        self.hidden.lock().insert(server.clone(), filtered.hidden);
        let replaced = self.catalog.update(|catalog| catalog.replace_server(server, definitions));
        if replaced.changed {
            self.index_server(server);
            for other in &replaced.renamed {
                self.index_server(other);
            }
        }
        self.known.lock().insert(server.clone());
        if replaced.changed {
            self.changes.send_modify(|count| *count += 1);
        }
        filtered.touched
    }

    /// Notes that sessions may see other tools than before.
    pub(crate) fn offers_changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Filters a server again, because similar names of another server or the policy have changed.
    fn filter_again(&self, server: &ServerName) {
        let Some(record) = self.record(server) else { return };
        let _spoken = record.spoken.lock();
        let listed = self.listed.lock().get(server).cloned();
        if let Some(definitions) = listed {
            // The names are the same, so no other server is affected.
            self.put(server, definitions);
        }
    }

    /// Replaces the filter, and filters the tools of all servers again.
    pub(crate) fn set_filter(&self, filter: ToolFilter) {
        let listed = self.listed.lock().clone();
        for (server, definitions) in &listed {
            filter.note(server, self.prefix(server).as_deref(), definitions);
        }
        *self.tool_filter.write() = Arc::new(filter);
        for server in listed.keys() {
            self.filter_again(server);
        }
    }

    /// Replaces the name of a server in exposed names.
    fn prefix(&self, server: &ServerName) -> Option<String> {
        self.catalog.read().server(server.as_str()).and_then(|entry| entry.prefix.clone())
    }

    /// The filter of now.
    pub(crate) fn filter(&self) -> Arc<ToolFilter> {
        Arc::clone(&self.tool_filter.read())
    }

    fn index_server(&self, server: &ServerName) {
        let name = server.as_str();
        loop {
            // Parsed outside of all locks, so that searches do not wait.
            let (tools, description) = {
                let catalog = self.catalog.read();
                let description = catalog.server(name).and_then(|entry| entry.description.clone());
                (catalog.tools_of(name).to_vec(), description.unwrap_or_default())
            };
            let text = ServerText { name, description: &description };
            let prepared = self.takes_prepared.then(|| self.prepared(&tools));
            let parsed = if prepared.is_some() { Vec::new() } else { parsed(&tools) };
            let mut index = self.index.write();
            // A change of another server may have renamed these tools meanwhile.
            if same_tools(self.catalog.read().tools_of(name), &tools) {
                if let Some(prepared) = prepared {
                    let named: Vec<(ToolKey, &str)> = tools
                        .iter()
                        .map(|tool| (key_of(tool), &**tool.definition.name()))
                        .collect();
                    index.replace_prepared(name, text, &named, &prepared);
                } else {
                    let texts = tools.iter().zip(&parsed);
                    let texts: Vec<_> =
                        texts.map(|(tool, parsed)| (key_of(tool), parsed.text())).collect();
                    index.replace_server(name, text, &texts);
                }
                break;
            }
        }
        if let Some(wanted) = &self.wanted {
            wanted.changed(server);
        }
    }

    /// What the index needs of these tools: from the disk, or made of their texts and then stored.
    fn prepared(&self, tools: &[Tool]) -> PreparedTools {
        let content = Fingerprint::of_list(tools.iter().map(|tool| &*tool.definition));
        let (cache, version) = (self.store.as_ref().map(Store::prepared), prepared_version());
        let stored = cache.as_ref().and_then(|cache| cache.load(content, &version));
        let stored = stored.and_then(|stored| PreparedTools::from_bytes(stored.content()));
        if let Some(stored) = stored.filter(|stored| stored.len() == tools.len()) {
            return stored;
        }
        let parsed = parsed(tools);
        let texts: Vec<_> = parsed.iter().map(DefinitionText::text).collect();
        let prepared = PreparedTools::of(&texts);
        if let Some(cache) = cache {
            let bytes = prepared.to_bytes();
            self.write_aside(move || {
                if let Err(error) = cache.save(content, &version, &bytes) {
                    tracing::debug!("analysed texts are not cached: {error}");
                }
            });
        }
        prepared
    }

    /// The texts of a server and its tools, for an encoder.
    pub(crate) fn documents(&self, server: &ServerName) -> Documents {
        let name = server.as_str();
        let (origin, description) = {
            let catalog = self.catalog.read();
            let description = catalog.server(name).and_then(|entry| entry.description.clone());
            (catalog.tools_of(name).to_vec(), description.unwrap_or_default())
        };
        let tools = origin.iter().map(|tool| {
            let indexable = DefinitionText::new(tool.definition.to_value());
            (key_of(tool), tool_document(&indexable.text()))
        });
        let tools = tools.collect();
        let server = server_document(ServerText { name, description: &description });
        Documents { server, tools, origin }
    }

    /// Sets the vectors of these texts. Does nothing if the server's tools have changed: they are
    /// encoded next.
    pub(crate) fn set_vectors(
        &self,
        server: &ServerName,
        documents: &Documents,
        vectors: &ServerVectors,
    ) {
        let name = server.as_str();
        let mut index = self.index.write();
        if same_tools(self.catalog.read().tools_of(name), &documents.origin) {
            index.set_vectors(name, vectors);
        }
    }

    /// Writes what a server sent to the cache, in the background: counting tokens and writing files
    /// would delay the server's task.
    fn remember(&self, server: &ServerName, handshake: &Handshake, definitions: Vec<Definition>) {
        if is_toolgate(&handshake.server_info) {
            return;
        }
        let (Some(store), Some(record)) = (&self.store, self.record(server)) else { return };
        if record.per_caller {
            return;
        }
        let (cache, key) = (store.definitions(), record.key.clone());
        let (server, writing) = (server.clone(), Arc::clone(&self.writing));
        let memory = ServerMemory {
            era: handshake.era,
            protocol_version: handshake.protocol_version.clone(),
            server_info: handshake.server_info.clone(),
            instructions: handshake.instructions.clone(),
            capabilities: Some(handshake.capabilities.clone()),
        };
        self.write_aside(move || {
            let _one_at_a_time = writing.lock();
            if let Err(error) = cache.save(&key, server.as_str(), &memory, &definitions) {
                tracing::warn!(%server, "definitions are not cached: {error}");
            }
        });
    }

    fn record(&self, server: &ServerName) -> Option<Arc<ServerRecord>> {
        self.servers.read().get(server).cloned()
    }

    /// Writes in the background; a shutdown waits for it.
    fn write_aside(&self, write: impl FnOnce() + Send + 'static) {
        let mut writes = self.writes.lock();
        while writes.try_join_next().is_some() {}
        writes.spawn_blocking(write);
    }
}

/// Decrements a counter when dropped.
struct CountDownOnDrop<'a>(&'a watch::Sender<usize>);

impl Drop for CountDownOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|left| *left = left.saturating_sub(1));
    }
}

/// Whether a server is a toolgate. It may be this one, which only a request to it can tell: so its
/// definitions are never taken from the cache.
fn is_toolgate(server_info: &Value) -> bool {
    server_info.get("name").is_some_and(|name| name == "toolgate")
}

fn key_of(tool: &Tool) -> ToolKey {
    ToolKey::new(tool.name.to_arc())
}

fn parsed(tools: &[Tool]) -> Vec<DefinitionText> {
    tools.iter().map(|tool| DefinitionText::new(tool.definition.to_value())).collect()
}

fn same_definitions(left: &[Definition], right: &[Definition]) -> bool {
    let fingerprints = left.iter().zip(right);
    left.len() == right.len()
        && fingerprints.into_iter().all(|(left, right)| left.fingerprint() == right.fingerprint())
}

fn same_tools(left: &[Tool], right: &[Tool]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            left.name == right.name && Arc::ptr_eq(&left.definition, &right.definition)
        })
}

impl ServerObserver for LiveCatalog {
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing) {
        self.note_extensions(server, &handshake.capabilities);
        self.remember(server, handshake, listing.definitions.clone());
        self.learn(server, listing.definitions, &DefinitionSource::Server);
        if self.record(server).is_some_and(|record| record.per_caller) {
            // What a caller is offered may have changed, although the catalog has not.
            self.announce();
        }
    }

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        let Some(logs) = &self.logs else { return };
        let source = match source {
            OutputSource::Stderr => LogSource::Stderr,
            OutputSource::Stdout => LogSource::Stdout,
            OutputSource::Toolgate => LogSource::Toolgate,
        };
        logs.line(server.as_str(), source, line);
    }
}
