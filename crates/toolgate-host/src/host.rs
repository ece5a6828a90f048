//! The assembly: servers, catalog, search, broker and sandbox.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_broker::{Broker, Caller, EndpointFingerprints, SessionContext, SharedCatalog};
use toolgate_catalog::{
    CatalogServer, DeferredStyle, Exposure, ExposureKind, ExposureSettings, OwnCost, RequestedMode,
    ServerName, decide,
};
use toolgate_mcp::{ErrorObject, extensions};
use toolgate_search::SearchIndex;
use toolgate_store::Journal;
use toolgate_upstream::{
    ClientKey, Handshake, Listing, LoginEvent, OutputSource, ServerObserver, ServerPool, StartMode,
    StateKind,
};

use crate::{
    code::CodeMode,
    directory::DirectoryIndex,
    enabled_servers::EnabledServers,
    encoding::{Encoding, EncodingPhase, EncodingQueue, VectorProgress},
    events::{HostEvent, HostEvents, ReportedPrompt},
    extensions::ExtensionEvents,
    live_catalog::LiveCatalog,
    live_sessions::LiveSessions,
    meta::{self, MetaToolOptions},
    resources::{ListKind, ResourceHub},
    session::ToolSession,
    settings::{Connect, HostSettings, open_journal},
    tool_filter::{HiddenReason, HiddenTool, ToolFilter},
    usage::Usage,
};

/// Connects to servers and knows their tools.
///
/// Cloning is cheap; all clones are the same host.
#[derive(Clone)]
pub struct ToolHost {
    pub(crate) inner: Arc<HostParts>,
}

/// What a host consists of.
pub(crate) struct HostParts {
    pub(crate) live_catalog: Arc<LiveCatalog>,
    pub(crate) broker: Arc<Broker>,
    pub(crate) enabled: EnabledServers,
    pub(crate) directory: DirectoryIndex,
    pub(crate) endpoints: EndpointFingerprints,
    /// Runs, approvals and grants; `None` without a store.
    journal: Option<Arc<dyn Journal>>,
    pub(crate) resources: Arc<ResourceHub>,
    pub(crate) code: CodeMode,
    /// Replaced as a whole by a reload.
    pub(crate) settings: RwLock<Arc<HostSettings>>,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) events: HostEvents,
    pub(crate) extension_events: ExtensionEvents,
    pub(crate) live_sessions: LiveSessions,
    /// Until when requests wait for servers whose tools are unknown.
    pub(crate) first_lists_until: Mutex<Instant>,
    /// Servers that were neither known nor failed by then.
    late: Mutex<BTreeSet<ServerName>>,
    /// Whether each server of the start has listed its tools or failed.
    started: watch::Sender<bool>,
    is_stopping: Arc<AtomicBool>,
}

/// A server whose tools a search does not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsearchedServer {
    /// The server.
    pub server: ServerName,
    /// Whether it was not waited for, because it did not answer the last time.
    pub was_silent: bool,
}

/// How long after the start, or a reload, requests wait for servers whose tools are not even in the cache. Later
/// requests do not wait: one silent server must not delay them all.
pub(crate) const FIRST_LISTS_TIMEOUT: Duration = Duration::from_secs(3);

/// How long cached servers are not started after the cache was read, unless a request needs them: sixty
/// programs that start at once would delay the first search, which needs none of them.
const FIRST_REQUESTS: Duration = Duration::from_millis(100);

impl ToolHost {
    /// Reads the cache, starts to connect to all servers, and returns without waiting for them. Must
    /// be called inside a tokio runtime.
    pub fn start(mut settings: HostSettings) -> Self {
        let (enabled, plans) = EnabledServers::read(
            settings.choices.clone(),
            settings.servers.iter().map(|setup| &setup.spec.name),
        );
        // Opened before any server runs, so that an interrupted start leaves nothing behind.
        let opened = settings.store.as_ref().map(open_journal);
        let index = SearchIndex::ranked_by(settings.strategy);
        let usage = settings.store.as_ref().filter(|_| settings.usage_memory);
        let usage = usage.map(|store| Usage::new(store.usage(), &settings.servers));
        let setup = settings.encoder.clone().filter(|_| settings.strategy.ranks_by_meaning());
        let encoder =
            setup.map(|setup| (Arc::new(EncodingQueue::new(setup.encoder.name())), setup));
        let queue = encoder.as_ref().map(|(queue, _)| Arc::clone(queue));
        let filter = ToolFilter::of(&settings);
        let store = settings.store.clone();
        let live_catalog =
            Arc::new(LiveCatalog::new(&settings.servers, index, store, usage, queue, filter));
        let encoding = encoder.map(|(queue, setup)| {
            Encoding::start(setup, queue, Arc::clone(&live_catalog), settings.store.as_ref())
        });
        let mut cached = Vec::new();
        for setup in &mut settings.servers {
            setup.spec.asks = live_catalog.asks(&setup.spec.name);
            if let Some(memory) = live_catalog.memory(&setup.spec.name) {
                setup.spec.remembered_era.get_or_insert(memory.era);
                let capabilities = memory.capabilities.unwrap_or_default();
                live_catalog.note_extensions(&setup.spec.name, &capabilities);
                setup.spec.start = StartMode::OnDemand;
                cached.push(setup.spec.name.clone());
            }
            let waits = settings.connect == Connect::WhenNeeded
                && live_catalog.was_silent(&setup.spec.name);
            if setup.lazy || waits || enabled.is_off(&setup.spec.name) {
                setup.spec.start = StartMode::OnDemand;
            }
        }
        live_catalog.recall(cached);
        let catalog = live_catalog.catalog().clone();
        let broker_settings = settings.broker_settings(catalog, opened.clone());
        let journal = broker_settings.journal.clone();
        let endpoints = broker_settings.endpoints.clone();
        let resources = Arc::new(ResourceHub::new());
        let extension_events = ExtensionEvents::default();
        let fanout = ObserverFanout {
            extensions: extension_events.clone(),
            live_catalog: Arc::clone(&live_catalog),
            resources: Arc::clone(&resources),
            events: settings.events.clone(),
        };
        let broker = Broker::new(broker_settings, &(Arc::new(fanout) as Arc<dyn ServerObserver>));
        resources.attach(&broker);
        if settings.groups {
            let groups = (extensions::GROUPS.to_owned(), Value::Object(Map::new()));
            broker.servers().declare_extensions(&Map::from_iter([groups]));
        }
        for setup in &settings.servers {
            broker.servers().add(setup.spec.clone());
        }
        for server in enabled.off() {
            let how = enabled.how_to_enable(&server).unwrap_or_default();
            broker.servers().disable(server.as_str(), &how);
        }
        let code = CodeMode::new(settings.code.clone(), settings.store.as_ref(), opened);
        code.shapes.set_private(settings.per_caller());
        let directory = DirectoryIndex::new(&settings.servers, &settings.directory.skills);
        let weak = Arc::downgrade(&broker);
        let connected = move || Some(weak.upgrade()?.servers().connected() as u64);
        settings.telemetry.watch_servers(connected);
        let wakes = settings.connect == Connect::AtStart;
        let events = settings.events.clone();
        let first_lists_until = Mutex::new(Instant::now() + FIRST_LISTS_TIMEOUT);
        let inner = HostParts {
            live_catalog,
            broker,
            enabled,
            directory,
            endpoints,
            journal,
            resources,
            code,
            settings: RwLock::new(Arc::new(settings)),
            encoding,
            events,
            extension_events,
            live_sessions: LiveSessions::default(),
            first_lists_until,
            late: Mutex::default(),
            started: watch::Sender::new(false),
            is_stopping: Arc::default(),
        };
        let host = Self { inner: Arc::new(inner) };
        for plan in &plans {
            host.use_at_start(plan);
        }
        if wakes {
            host.connect_all();
        }
        host.watch_first_lists();
        host
    }

    /// Connects to the servers after the first requests of clients.
    fn connect_all(&self) {
        let host = self.clone();
        tokio::spawn(async move {
            host.first_requests().await;
            host.wake().await;
            for setup in &host.settings().servers {
                host.servers().settled(setup.spec.name.as_str()).await;
            }
            host.inner.started.send_replace(true);
        });
    }

    /// Notes which servers are late when requests no longer wait for them.
    pub(crate) fn watch_first_lists(&self) {
        let until = *self.inner.first_lists_until.lock();
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            tokio::time::sleep_until(until.into()).await;
            let Some(inner) = inner.upgrade() else { return };
            let host = Self { inner };
            let late = host.unknown_servers().into_iter().filter(|server| {
                let state = host.servers().state(server.as_str());
                state.is_some_and(|state| state.failure.is_none())
            });
            let late: Vec<ServerName> = late.collect();
            host.inner.late.lock().extend(late);
        });
    }

    /// Forgets that servers were late, because they are replaced.
    pub(crate) fn forget_late(&self, servers: &[ServerName]) {
        let mut late = self.inner.late.lock();
        for server in servers {
            late.remove(server);
        }
    }

    /// Starts a session of a model.
    pub fn session(&self) -> ToolSession {
        self.session_of(SessionContext::new(Caller::model("a model")))
    }

    /// Starts a session of the caller in the context.
    pub fn session_of(&self, context: SessionContext) -> ToolSession {
        let events = self.inner.events.clone();
        let context = context.map_prompt(|asks| Arc::new(ReportedPrompt::new(asks, events)));
        ToolSession::new(self.clone(), Arc::new(context))
    }

    /// The journal with runs, approvals and grants; `None` without a store.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.inner.journal.as_ref()
    }

    /// All that happens from now on.
    pub fn events(&self) -> &HostEvents {
        &self.inner.events
    }

    /// The broker, which decides on calls and sends them.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.inner.broker
    }

    /// The servers and their states.
    pub fn servers(&self) -> &ServerPool {
        self.inner.broker.servers()
    }

    /// The settings of the host, as they are now.
    pub fn settings(&self) -> Arc<HostSettings> {
        Arc::clone(&self.inner.settings.read())
    }

    /// All known tools.
    pub fn catalog(&self) -> &SharedCatalog {
        self.inner.live_catalog.catalog()
    }

    /// How scripts run.
    pub fn code(&self) -> &CodeMode {
        &self.inner.code
    }

    /// The tools that are shown to nobody: denied by the policy, or held back.
    pub fn hidden_tools(&self) -> Vec<HiddenTool> {
        self.inner.live_catalog.hidden_tools()
    }

    /// Changes with each change of the known tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.live_catalog.changes()
    }

    /// What a session that starts now would be shown, and why.
    pub fn exposure(&self) -> Exposure {
        self.exposure_by(&self.settings().exposure)
    }

    /// What a session that starts now would be shown if no mode were set, and why.
    pub fn automatic_exposure(&self) -> Exposure {
        let settings = self.settings();
        self.exposure_by(&ExposureSettings {
            mode: RequestedMode::Auto,
            ..settings.exposure.clone()
        })
    }

    fn exposure_by(&self, settings: &ExposureSettings) -> Exposure {
        let unknown = self.uncounted_servers();
        let catalog = self.catalog().read();
        let off = self.inner.enabled.off();
        // Only the automatic mode compares costs.
        let own = if settings.mode == RequestedMode::Auto {
            let direct = MetaToolOptions { deferred: false, ..self.meta_tool_options() };
            meta::direct_cost(&direct)
        } else {
            OwnCost::default()
        };
        if off.is_empty() {
            return decide(&catalog, settings, own, &unknown);
        }
        // Disabled servers cost nothing.
        let mut visible = (*catalog).clone();
        for server in &off {
            visible.replace_server(server, Vec::new());
        }
        decide(&visible, settings, own, &unknown)
    }

    /// A session that starts now in this mode, to see what it would list. Nobody uses it.
    pub async fn predicted_session(&self, mode: ExposureKind) -> ToolSession {
        let session = ToolSession::within(
            self.clone(),
            Arc::new(SessionContext::new(Caller::model("a model"))),
        );
        session.begin().await;
        let (mode, deferred) = match mode {
            ExposureKind::Direct => (RequestedMode::Direct, DeferredStyle::Stable),
            ExposureKind::Stable => (RequestedMode::Deferred, DeferredStyle::Stable),
            ExposureKind::Dynamic => (RequestedMode::Deferred, DeferredStyle::Dynamic),
            ExposureKind::Code => (RequestedMode::Code, DeferredStyle::Stable),
        };
        let exposure = ExposureSettings { mode, deferred, ..self.settings().exposure.clone() };
        let decided = decide(&self.catalog().read(), &exposure, OwnCost::default(), &[]);
        session.decide(decided);
        session
    }

    /// The options for the meta-tools of a session that starts now, with deferred tools.
    pub(crate) fn meta_tool_options(&self) -> MetaToolOptions {
        let settings = self.settings();
        MetaToolOptions {
            keep_loaded_tools: settings.keep_loaded_tools,
            scripts: self.code().is_enabled(),
            python: self.code().python_kind(),
            languages: self.code().further_languages(),
            extract: self.code().has_extract_model(),
            deferred: true,
            servers: self.offers_servers(),
            skills: !settings.directory.skills.skills.is_empty() || self.has_server_skills(),
            server_skills: self.has_server_skills(),
        }
    }

    /// What is wrong with the schemas of a server's tools whose calls are refused because of it.
    /// Compiles all schemas, which takes a moment.
    pub fn broken_schemas(&self, server: &str) -> Vec<String> {
        let tools = self.catalog().read().tools_of(server).to_vec();
        let broken = tools.iter().filter_map(|tool| self.inner.broker.broken_schema(tool));
        broken.map(|problem| problem.to_string()).collect()
    }

    /// Connects to the servers whose start was put off. Lazy ones stay as they are.
    pub async fn wake(&self) {
        self.recalled().await;
        for setup in self.settings().servers.iter().filter(|setup| !setup.lazy) {
            self.servers().wake(setup.spec.name.as_str());
        }
    }

    /// Waits until the cache is read, and the first requests of a client had time. What they do not need
    /// begins then.
    pub async fn first_requests(&self) {
        self.recalled().await;
        tokio::time::sleep(FIRST_REQUESTS).await;
    }

    /// Waits until each server that connects at the start has listed its tools or failed; for ever if
    /// none connects at the start.
    pub async fn started(&self) {
        let _ = self.inner.started.subscribe().wait_for(|started| *started).await;
    }

    /// Ends the connection of a server when its open calls have ended, connects again, and waits until the server has
    /// listed its tools or failed. `false` if there is no such server, it is disabled, or its calls do not end soon.
    pub async fn restart(&self, server: &str) -> bool {
        const LIMIT: Duration = Duration::from_secs(20);
        let kind = || self.servers().state(server).map(|state| state.kind);
        if matches!(kind(), None | Some(StateKind::Disabled)) {
            return false;
        }
        self.servers().disable(server, "a person restarts it now; try again");
        // The state is `Disabled` at once, while the connection is still there.
        let ended = self.servers().disconnected(server);
        let has_ended = tokio::time::timeout(LIMIT, ended).await.is_ok();
        self.servers().enable(server);
        self.servers().retry(server);
        let _ = tokio::time::timeout(LIMIT, self.servers().settled(server)).await;
        has_ended
    }

    /// Connects to a server whose start was put off, and waits until it has listed its tools or
    /// failed.
    pub async fn connect(&self, server: &str) {
        self.servers().wake(server);
        self.servers().settled(server).await;
    }

    /// Waits until each server has listed its tools or failed. Servers in the cache are not waited
    /// for.
    pub async fn all_known(&self) {
        self.recalled().await;
        let unknown = self.unknown_servers();
        for server in &unknown {
            // Its start was put off, and then its cache entry turned out to be damaged.
            self.servers().wake(server.as_str());
        }
        for server in unknown {
            self.servers().settled(server.as_str()).await;
        }
    }

    /// Waits for the servers whose tools are unknown, but no longer than `limit` once some tools are known.
    /// A server that did not answer the last time is not waited for, unless nothing else is there. Later
    /// requests do not wait. Returns the servers whose tools are still unknown.
    pub async fn known_soon(&self, limit: Duration) -> Vec<UnsearchedServer> {
        self.recalled().await;
        let (mut silent, mut awaited): (Vec<_>, Vec<_>) = self
            .unknown_servers()
            .into_iter()
            .partition(|server| self.inner.live_catalog.was_silent(server));
        let has_tools = || self.catalog().read().tools().next().is_some();
        let only_silent = awaited.is_empty() && !has_tools();
        if only_silent {
            std::mem::swap(&mut silent, &mut awaited);
        }
        for server in &awaited {
            self.servers().wake(server.as_str());
        }
        let all = async {
            for server in &awaited {
                self.servers().settled(server.as_str()).await;
            }
        };
        let mut changes = self.changes();
        let long_enough = async {
            while !only_silent && !has_tools() && changes.changed().await.is_ok() {}
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            () = all => {}
            () = long_enough => {}
        }
        self.end_first_lists();
        let late = self.note_silent(&awaited);
        let late = late.into_iter().map(|server| UnsearchedServer { server, was_silent: false });
        let silent = silent.into_iter().map(|server| UnsearchedServer { server, was_silent: true });
        late.chain(silent).collect()
    }

    /// Notes which of these servers have not answered, and returns them.
    pub fn note_silent(&self, servers: &[ServerName]) -> Vec<ServerName> {
        let is_silent = |server: &&ServerName| {
            let Some(state) = self.servers().state(server.as_str()) else { return false };
            let is_late = || self.inner.late.lock().contains(*server);
            !self.inner.live_catalog.is_known(server)
                && (state.kind == StateKind::Connecting && state.failure.is_none() || is_late())
        };
        let silent: Vec<ServerName> = servers.iter().filter(is_silent).cloned().collect();
        for server in &silent {
            self.inner.live_catalog.note_silent(server);
        }
        silent
    }

    /// The servers that something with this name may come from: a tool, or `SERVER/prompts/NAME`.
    pub fn owners(&self, name: &str) -> Vec<ServerName> {
        let holding = self.hidden_tools().into_iter().filter(|tool| tool.name == name);
        let mut owners: BTreeSet<ServerName> = holding.map(|tool| tool.id.server).collect();
        let catalog = self.catalog().read();
        owners.extend(catalog.resolve(name).map(|tool| tool.id.server.clone()));
        let may_own = |entry: &&CatalogServer| {
            let has_entry =
                name.strip_prefix(entry.name.as_str()).is_some_and(|rest| rest.starts_with('/'));
            has_entry || self.may_own(entry, name)
        };
        owners.extend(catalog.servers().filter(may_own).map(|entry| entry.name.clone()));
        owners.into_iter().collect()
    }

    /// Waits until a server has listed its tools or failed. A server in the cache is not waited for.
    pub async fn known(&self, server: &str) {
        self.recalled().await;
        if !self.inner.live_catalog.is_known(&server.into()) {
            self.connect(server).await;
        }
    }

    /// Connects to the servers that a tool of this name may belong to, if the tool is not known.
    pub async fn look_for(&self, name: &str) {
        self.recalled().await;
        let owners: Vec<ServerName> = {
            let catalog = self.catalog().read();
            if catalog.resolve(name).is_some() {
                return;
            }
            let owners = catalog.servers().filter(|entry| self.may_own(entry, name));
            owners.map(|entry| entry.name.clone()).collect()
        };
        for server in &owners {
            self.servers().wake(server.as_str());
        }
        for server in &owners {
            self.servers().settled(server.as_str()).await;
        }
    }

    /// Waits until the cache is read, which takes milliseconds.
    pub async fn recalled(&self) {
        self.inner.live_catalog.recalled().await;
    }

    /// Waits, for a short time after the start, for the servers whose tools are unknown. Servers in
    /// the cache are not waited for.
    pub async fn first_lists(&self) {
        let until = *self.inner.first_lists_until.lock();
        if until <= Instant::now() {
            return;
        }
        // A later request finds the tools of a server that is late.
        let _ = tokio::time::timeout_at(until.into(), self.all_known()).await;
    }

    /// Lets no request wait for the first lists any more.
    pub fn end_first_lists(&self) {
        *self.inner.first_lists_until.lock() = Instant::now();
    }

    /// How many tools have a vector of the configured encoder; `None` if search uses no encoder.
    /// Waits until the stored vectors are read.
    pub async fn vectors(&self) -> Option<VectorProgress> {
        let encoding = self.inner.encoding.as_ref()?;
        encoding.queue.reached(EncodingPhase::Encoding, &mut |_| {}).await;
        Some(encoding.queue.progress())
    }

    /// Waits until every known tool has a vector, or encoding is stuck. `report` gets the progress.
    pub async fn encoded(&self, report: &mut (dyn FnMut(&VectorProgress) + Send)) {
        if let Some(encoding) = &self.inner.encoding {
            encoding.queue.reached(EncodingPhase::Idle, report).await;
        }
    }

    /// Ends all connections in order, and writes everything that is still to be written.
    pub async fn shutdown(&self) {
        self.inner.is_stopping.store(true, Ordering::Relaxed);
        if let Some(encoding) = &self.inner.encoding {
            encoding.stop();
        }
        self.servers().shutdown().await;
        let broker = Arc::clone(&self.inner.broker);
        let _ = tokio::task::spawn_blocking(move || broker.flush()).await;
        self.inner.live_catalog.written().await;
    }

    /// Whether [`shutdown`](Self::shutdown) was called. Calls that fail from then on fail because of it.
    pub fn is_stopping(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.inner.is_stopping)
    }

    /// Whether a server declares something of a kind; `None` if its capabilities are unknown.
    pub(crate) fn declares(&self, server: &ServerName, kind: ListKind) -> Option<bool> {
        let capabilities: Map<String, Value> =
            match self.servers().state(server.as_str()).and_then(|state| state.handshake) {
                Some(handshake) => handshake.capabilities,
                None => self.inner.live_catalog.memory(server)?.capabilities?,
            };
        Some(kind.is_declared(&capabilities))
    }

    /// Whether a name may belong to a server: by its prefix, or because nothing is known of it.
    fn may_own(&self, entry: &CatalogServer, name: &str) -> bool {
        let has_no_prefix = entry.prefix.as_deref() == Some("");
        entry.may_own(name) || has_no_prefix && !self.inner.live_catalog.is_known(&entry.name)
    }

    /// Connects the servers that an unknown name may belong to, and those that hold it back by a cached
    /// definition: the server may have another one now. Waits for them within the time limit of their calls.
    pub(crate) async fn connect_owners(&self, name: &str) {
        let since = Instant::now();
        self.recalled().await;
        let is_known = || self.catalog().read().resolve(name).is_some();
        if is_known() {
            return;
        }
        let owners = self.unknown_owners(name);
        if let Some(limit) = owners.iter().map(|server| self.call_limit(server)).max() {
            let first_lists = self.known_or(is_known, self.first_lists());
            let left = limit.saturating_sub(since.elapsed());
            let _ = tokio::time::timeout(left, first_lists).await;
        }
        let owners = self.unknown_owners(name);
        let holding = self
            .hidden_tools()
            .into_iter()
            .filter(|tool| tool.name == name && !matches!(tool.why, HiddenReason::Denied));
        let owners: Vec<ServerName> =
            owners.into_iter().chain(holding.map(|tool| tool.id.server)).collect();
        self.await_owners(&owners, since, is_known).await;
    }

    /// The servers whose tools are unknown and that a name may belong to.
    pub(crate) fn unknown_owners(&self, name: &str) -> Vec<ServerName> {
        let catalog = self.catalog().read();
        let owners = catalog.servers().filter(|entry| self.may_own(entry, name));
        let unknown = |server: &&ServerName| !self.inner.live_catalog.is_known(server);
        owners.map(|entry| &entry.name).filter(unknown).cloned().collect()
    }

    /// The servers whose tools are unknown to a session that starts now: those that may still list them, and
    /// those that did not answer in time. A server that fails at once has no tools.
    fn uncounted_servers(&self) -> Vec<ServerName> {
        let settings = self.settings();
        let off = self.inner.enabled.off();
        let servers = settings.servers.iter().filter(|setup| !setup.lazy);
        let names = servers.map(|setup| &setup.spec.name).filter(|name| !off.contains(*name));
        let late = self.inner.late.lock();
        let is_uncounted = |name: &&ServerName| {
            let may_list = || {
                self.servers().state(name.as_str()).is_some_and(|state| {
                    matches!(state.kind, StateKind::Connecting | StateKind::Idle)
                        && state.failure.is_none()
                })
            };
            !self.inner.live_catalog.is_known(name) && (late.contains(*name) || may_list())
        };
        names.filter(is_uncounted).cloned().collect()
    }

    /// The servers that may still list tools on their own: neither in the cache, nor failed, nor
    /// lazy.
    fn unknown_servers(&self) -> Vec<ServerName> {
        let settings = self.settings();
        let servers = settings.servers.iter().filter(|setup| !setup.lazy);
        let names = servers.map(|setup| &setup.spec.name);
        names
            .filter(|name| !self.inner.live_catalog.is_known(name))
            .filter(|name| {
                self.servers().state(name.as_str()).is_some_and(|state| {
                    matches!(state.kind, StateKind::Connecting | StateKind::Idle)
                })
            })
            .cloned()
            .collect()
    }
}

/// Passes the events of servers on: tools and output to the catalog, the rest to the resources.
struct ObserverFanout {
    extensions: ExtensionEvents,
    live_catalog: Arc<LiveCatalog>,
    resources: Arc<ResourceHub>,
    events: HostEvents,
}

impl ServerObserver for ObserverFanout {
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing) {
        self.live_catalog.listed(server, handshake, listing);
        self.events.send(|| HostEvent::ToolsListed { server: server.clone() });
    }

    fn offers_changed(&self, _server: &ServerName) {
        self.live_catalog.offers_changed();
    }

    fn state_changed(&self, server: &ServerName) {
        self.resources.state_changed(server);
        self.events.send(|| HostEvent::ServerChanged { server: server.clone() });
    }

    fn asks(&self, server: &ServerName) {
        self.live_catalog.note_asks(server);
    }

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        self.live_catalog.output(server, source, line);
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        self.resources.notified(server, method, params);
        self.extensions.notified(server, method, params);
    }

    fn elicitation_completed(&self, client: &ClientKey, params: Value) {
        self.resources.clients.elicitation_completed(client, params);
    }

    fn login(&self, server: &ServerName, caller: &str, event: LoginEvent) {
        self.resources.login_changed(server, caller, event);
    }

    fn roots(&self, _server: &ServerName) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        self.resources.clients.roots()
    }
}

impl std::fmt::Debug for ToolHost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ToolHost")
            .field("settings", &self.settings())
            .finish_non_exhaustive()
    }
}
