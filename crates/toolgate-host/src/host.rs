//! Servers, catalogue, search and broker under one roof.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_broker::{
    Broker, BrokerError, CallContext, Caller, Endpoints, Rules, SessionContext, SharedCatalog,
};
use toolgate_catalog::{Exposure, ServerName, ToolId, decide};
use toolgate_policy::Policy;
use toolgate_sandbox::{Language, lockdown::LockdownReport};
use toolgate_search::{Query, SearchError, SearchIndex, StrategyName};
use toolgate_store::Journal;
use toolgate_upstream::{CallOptions, ServerObserver, ServerState, StartMode, StateKind, Upstream};

use crate::{
    code::{CodeMode, CodeRun, Drawer, Learned, NotResumed, Resume},
    ears::Ears,
    encoding::{EncodedQueries, Encoding, Phase, VectorProgress, Wanted},
    find::{Found, choose, find},
    guarding::{guard, open_journal},
    knowledge::Knowledge,
    offers::{Kind, Offers, declares, is_denied},
    screen::{Screen, Withheld},
    session::Session,
    settings::{Connect, HostSettings},
    supply::Shelf,
    switches::Switches,
    traced,
    usage::Usage,
};

/// Connects to servers and knows their tools.
///
/// Cloning is cheap; all clones are the same host.
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) switches: Switches,
    pub(crate) shelf: Shelf,
    broker: Broker,
    pub(crate) endpoints: Endpoints,
    /// Runs, questions and grants; none without a store.
    journal: Option<Arc<Journal>>,
    offers: Arc<Offers>,
    code: CodeMode,
    settings: HostSettings,
    encoding: Option<Encoding>,
    /// When questions stop to wait for servers of which nothing is known.
    patience_ends: Instant,
}

/// How long, from the start, questions wait for servers of which nothing is known yet, not even
/// from the cache. Later ones do not wait: one server that never answers must not delay them all.
const FIRST_ANSWER_PATIENCE: Duration = Duration::from_secs(3);

impl Host {
    /// Takes what the cache has, starts to connect to all servers, and returns without waiting for
    /// any. Must be called inside a tokio runtime.
    pub fn start(mut settings: HostSettings) -> Self {
        let (switches, plans) = Switches::read(
            settings.choices.clone(),
            settings.servers.iter().map(|setup| &setup.spec.name),
        );
        // Before any server runs: who is interrupted from here on leaves nothing behind.
        let opened = settings.store.as_ref().map(open_journal);
        let guard = guard(&settings, opened.clone());
        let (journal, endpoints) = (guard.journal.clone(), guard.endpoints.clone());
        let index = SearchIndex::ranked_by(settings.strategy);
        let kept = settings.store.as_ref().filter(|_| settings.usage_memory);
        let usage = kept.map(|store| Usage::new(store.usage(), &settings.servers));
        let setup = settings.encoder.clone().filter(|_| settings.strategy.ranks_by_meaning());
        let encoder = setup.map(|setup| (Arc::new(Wanted::new(setup.encoder.name())), setup));
        let wanted = encoder.as_ref().map(|(wanted, _)| Arc::clone(wanted));
        let store = settings.store.clone();
        let screen = Screen::new(
            Policy::new(settings.policy.clone()),
            settings.lock.clone(),
            settings.pin.clone(),
            settings.servers.iter().map(|setup| &setup.spec.name),
        );
        let knowledge =
            Arc::new(Knowledge::new(&settings.servers, index, store, usage, wanted, screen));
        let encoding = encoder.map(|(wanted, setup)| {
            Encoding::start(setup, wanted, Arc::clone(&knowledge), settings.store.as_ref())
        });
        let mut cached = Vec::new();
        for setup in &mut settings.servers {
            if let Some(memory) = knowledge.memory(&setup.spec.name) {
                setup.spec.remembered_era.get_or_insert(memory.era);
                setup.spec.start = StartMode::OnDemand;
                cached.push(setup.spec.name.clone());
            }
            if setup.lazy || switches.is_off(&setup.spec.name) {
                setup.spec.start = StartMode::OnDemand;
            }
        }
        knowledge.recall(cached);
        let specs = settings.servers.iter().map(|setup| setup.spec.clone()).collect();
        let offers = Arc::new(Offers::new());
        let ears = Ears { knowledge: Arc::clone(&knowledge), offers: Arc::clone(&offers) };
        let observer: Arc<dyn ServerObserver> = Arc::new(ears);
        let upstream = Arc::new(Upstream::start(specs, &observer));
        offers.attach(&upstream);
        for server in switches.off() {
            upstream.disable(server.as_str(), &switches.way_on(&server).unwrap_or_default());
        }
        let rules = settings
            .servers
            .iter()
            .map(|setup| (setup.spec.name.clone(), setup.rules.clone()))
            .collect();
        let broker = Broker::new(
            Arc::clone(knowledge.catalog()),
            Arc::clone(&upstream),
            Rules { servers: rules },
            guard,
        );
        let patience_ends = Instant::now() + FIRST_ANSWER_PATIENCE;
        let code = CodeMode::new(settings.code.clone(), settings.store.as_ref(), opened);
        let shelf = Shelf::new(&settings.servers, &settings.supply.skills);
        let wakes = settings.connect == Connect::AtStart;
        let inner = Inner {
            knowledge,
            upstream,
            switches,
            shelf,
            broker,
            endpoints,
            journal,
            offers,
            code,
            settings,
            encoding,
            patience_ends,
        };
        let host = Self { inner: Arc::new(inner) };
        host.settings().telemetry.watch_servers(traced::connected(&host.inner.upstream));
        for plan in &plans {
            host.use_at_start(plan);
        }
        if wakes {
            let host = host.clone();
            tokio::spawn(async move { host.wake().await });
        }
        host
    }

    /// A conversation with a model that starts now.
    pub fn session(&self) -> Session {
        self.session_of(SessionContext::new(Caller::model("a model")))
    }

    /// A conversation that starts now, with whoever the context says.
    pub fn session_of(&self, context: SessionContext) -> Session {
        Session::new(self.clone(), Arc::new(context))
    }

    /// Where runs, questions and grants are kept; nowhere without a store.
    pub fn journal(&self) -> Option<&Arc<Journal>> {
        self.inner.journal.as_ref()
    }

    /// What decides on calls.
    pub fn broker(&self) -> &Broker {
        &self.inner.broker
    }

    /// What the host was started with.
    pub fn settings(&self) -> &HostSettings {
        &self.inner.settings
    }

    /// All known tools.
    pub fn catalog(&self) -> &SharedCatalog {
        self.inner.knowledge.catalog()
    }

    /// The tools that nobody is shown: those that the policy denies, and those that are held back.
    pub fn withheld(&self) -> Vec<Withheld> {
        self.inner.knowledge.withheld()
    }

    /// Told after each change of the known tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.knowledge.changes()
    }

    /// How it stands with a server.
    pub fn state(&self, server: &str) -> Option<ServerState> {
        self.inner.upstream.state(server)
    }

    /// What a session that starts now would be shown, and why.
    pub fn exposure(&self) -> Exposure {
        let unknown = self.unknown_servers().len();
        let catalog = self.catalog().read();
        let off = self.inner.switches.off();
        if off.is_empty() {
            return decide(&catalog, &self.settings().exposure, unknown);
        }
        // What is switched off costs nothing.
        let mut seen = catalog.clone();
        for server in &off {
            seen.replace_server(server, Vec::new());
        }
        decide(&seen, &self.settings().exposure, unknown)
    }

    /// What is wrong with the schemas of a server's tools, whose calls are refused for it. Compiles
    /// them all, which takes a moment.
    pub fn broken_schemas(&self, server: &str) -> Vec<String> {
        let tools = self.catalog().read().tools_of(server).to_vec();
        let broken = tools.iter().filter_map(|tool| self.inner.broker.broken_schema(tool));
        broken.map(|problem| problem.to_string()).collect()
    }

    /// Connects to the servers that were left for later. Lazy ones stay as they are.
    pub async fn wake(&self) {
        self.recalled().await;
        for setup in self.settings().servers.iter().filter(|setup| !setup.lazy) {
            self.inner.upstream.wake(setup.spec.name.as_str());
        }
    }

    /// Connects to a server that was left for later, and waits until it has either said what it
    /// has or failed to.
    pub async fn connect(&self, server: &str) {
        self.inner.upstream.wake(server);
        self.settled(server).await;
    }

    /// Waits until one server has either said what it has or failed to.
    pub async fn settled(&self, server: &str) {
        self.inner.upstream.settled(server).await;
    }

    /// Waits until something is known of each server, if only that it failed. Those in the cache
    /// are not waited for.
    pub async fn all_known(&self) {
        self.recalled().await;
        let unknown = self.unknown_servers();
        for server in &unknown {
            // Left for later, it may turn out that what the cache has of it is damaged.
            self.inner.upstream.wake(server.as_str());
        }
        for server in unknown {
            self.settled(server.as_str()).await;
        }
    }

    /// Waits until everything that is in the cache is known. That is work of milliseconds.
    pub async fn recalled(&self) {
        self.inner.knowledge.recalled().await;
    }

    /// Waits, for a short time after the start, for the servers of which nothing is known yet.
    /// Those in the cache are not waited for.
    pub async fn first_answers(&self) {
        // Whoever is late is found by a later question.
        let _ = tokio::time::timeout_at(self.inner.patience_ends.into(), self.all_known()).await;
    }

    /// How many tools have a vector of the configured encoder; `None` where there is no encoder that
    /// search has a use for. What the store has is waited for.
    pub async fn vectors(&self) -> Option<VectorProgress> {
        let encoding = self.inner.encoding.as_ref()?;
        encoding.wanted().reached(Phase::Encoding, &mut |_| {}).await;
        Some(encoding.wanted().progress())
    }

    /// Waits until every tool that is known has a vector, or no more can be had for now. `seen` is
    /// told how far it is.
    pub async fn encoded(&self, seen: &mut (dyn FnMut(&VectorProgress) + Send)) {
        if let Some(encoding) = &self.inner.encoding {
            encoding.wanted().reached(Phase::Idle, seen).await;
        }
    }

    /// Ends all connections in order, and sees to it that what was learnt is kept.
    pub async fn shutdown(&self) {
        if let Some(encoding) = &self.inner.encoding {
            encoding.stop();
        }
        self.inner.upstream.shutdown().await;
        let host = self.clone();
        let _ = tokio::task::spawn_blocking(move || host.inner.broker.flush()).await;
        self.inner.knowledge.written().await;
    }

    /// Whether scripts may run.
    pub fn runs_scripts(&self) -> bool {
        self.inner.code.is_enabled()
    }

    /// Starts workers before the first script comes, so that it does not wait for one.
    pub fn warm_up(&self) {
        self.inner.code.warm_up();
    }

    /// What confines scripts on this system; `None` where they are off.
    pub async fn lockdown(&self) -> Option<Result<LockdownReport, String>> {
        self.inner.code.probe().await
    }

    pub(crate) async fn run_code(
        &self,
        session: &Arc<SessionContext>,
        code: &str,
        language: Language,
        options: CallOptions,
    ) -> Option<CodeRun> {
        self.inner.code.run(self, session, code, language, options).await
    }

    /// Goes on with a run that was interrupted, failed or waits; `None` where scripts are off.
    pub(crate) async fn resume_run(
        &self,
        session: &Arc<SessionContext>,
        id: &str,
        resume: Resume,
        options: CallOptions,
    ) -> Option<Result<CodeRun, NotResumed>> {
        self.inner.code.resume(self, session, id, resume, options).await
    }

    /// The texts of an owner that were too long to show: `read_output` reads them.
    pub(crate) fn drawer<'o>(&'o self, session: &'o SessionContext) -> Drawer<'o> {
        self.inner.code.drawer(session)
    }

    /// How much of a text is shown at once.
    pub(crate) fn output_tokens(&self) -> usize {
        self.inner.code.output_tokens()
    }

    pub(crate) fn offers(&self) -> &Arc<Offers> {
        &self.inner.offers
    }

    pub(crate) fn upstream(&self) -> &Arc<Upstream> {
        &self.inner.upstream
    }

    /// Whether a server may have something of a kind: it says so, or has not said what it has.
    pub(crate) fn may_have(&self, server: &ServerName, kind: Kind) -> bool {
        self.capabilities(server).is_none_or(|capabilities| declares(&capabilities, kind))
    }

    /// Whether a server says that it has something of a kind.
    pub(crate) fn has(&self, server: &ServerName, kind: Kind) -> bool {
        self.capabilities(server).is_some_and(|capabilities| declares(&capabilities, kind))
    }

    fn capabilities(&self, server: &ServerName) -> Option<Map<String, Value>> {
        match self.state(server.as_str()).and_then(|state| state.handshake) {
            Some(handshake) => Some(handshake.capabilities),
            None => self.inner.knowledge.memory(server)?.capabilities,
        }
    }

    /// What a server says of itself to models: now, or when it was last here. Nothing where the policy
    /// lets nothing of it through.
    pub(crate) fn words_of(&self, server: &ServerName) -> Option<String> {
        if is_denied(self, server) {
            return None;
        }
        let now = self.state(server.as_str()).and_then(|state| state.handshake);
        match now {
            Some(handshake) => handshake.instructions,
            None => self.inner.knowledge.memory(server)?.instructions,
        }
    }

    /// Takes in what a tool returned, where its server does not declare it.
    pub(crate) fn learn(&self, name: &str, result: &Value) {
        if !self.runs_scripts() {
            return;
        }
        let tool = self.catalog().read().resolve(name).cloned();
        if let Some(tool) = tool {
            self.learned().learn_from_result(&tool, result);
        }
    }

    pub(crate) fn learned(&self) -> &Learned {
        self.inner.code.learned()
    }

    /// What the encoder makes of queries, and of the hint that goes with all of them.
    pub(crate) async fn encode(&self, queries: &[String], hint: Option<&str>) -> EncodedQueries {
        match &self.inner.encoding {
            Some(encoding) => encoding.queries(queries, hint).await,
            None => EncodedQueries::default(),
        }
    }

    pub(crate) async fn find(
        &self,
        queries: &[Query<'_>],
        limit: usize,
    ) -> Result<Found, SearchError> {
        self.inner.knowledge.usage_read().await;
        let settings = self.settings();
        let subagent = settings.subagent.as_ref();
        if settings.strategy != StrategyName::Subagent {
            return find(&self.inner.knowledge, queries, limit);
        }
        choose(&self.inner.knowledge, queries, limit, subagent).await
    }

    /// Keeps that these queries led to a call of the tool.
    pub(crate) fn keep_use(&self, queries: Vec<String>, tool: &ToolId) {
        // A regular expression is no request that another could be like.
        if self.settings().strategy != StrategyName::Regex {
            self.inner.knowledge.keep_use(queries, tool);
        }
    }

    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        self.notice_switches().await;
        if self.catalog().read().resolve(name).is_none() {
            // A client may know the name from an earlier conversation, and be faster than the server.
            tokio::select! {
                () = options.cancel.cancelled() => {}
                () = self.first_answers_about(name) => {}
            }
        }
        self.inner.broker.call(name, arguments, context, options).await
    }

    /// The first answers, and that of the lazy servers which a tool of this name would belong to.
    pub(crate) async fn first_answers_about(&self, name: &str) {
        self.first_answers().await;
        let owners: Vec<ServerName> = {
            let catalog = self.catalog().read();
            if catalog.resolve(name).is_some() {
                return;
            }
            let owners = catalog.servers().filter(|entry| entry.may_own(name));
            let unknown = |server: &&ServerName| !self.inner.knowledge.is_known(server);
            owners.map(|entry| &entry.name).filter(unknown).cloned().collect()
        };
        for server in owners.iter().filter(|server| self.is_lazy(server)) {
            self.connect(server.as_str()).await;
        }
    }

    /// Servers that may still come up with tools by themselves: neither in the cache nor failed for
    /// now, and not lazy.
    fn unknown_servers(&self) -> Vec<ServerName> {
        let servers = self.settings().servers.iter().filter(|setup| !setup.lazy);
        let names = servers.map(|setup| &setup.spec.name);
        names
            .filter(|name| !self.inner.knowledge.is_known(name))
            .filter(|name| {
                self.state(name.as_str()).is_some_and(|state| {
                    matches!(state.kind, StateKind::Connecting | StateKind::Idle)
                })
            })
            .cloned()
            .collect()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Host").field("settings", self.settings()).finish_non_exhaustive()
    }
}
