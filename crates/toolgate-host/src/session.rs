//! One session of a client with a host.

mod logins;

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{OnceCell, watch};
use toolgate_broker::{BrokerError, CallContext, CallerLocation, SessionContext};
use toolgate_catalog::{
    Catalog, ExposedName, Exposure, ExposureKind, Reason, ServerName, TokenCounter, Tool, nearest,
};
use toolgate_mcp::LogLevel;
use toolgate_policy::{CallPath, definitions::ChangeKind};
use toolgate_upstream::{CallError, CallOptions, InputHandler};

use crate::{
    events::HostEvent,
    extensions::{ClientExtensions, OpenViews},
    host::ToolHost,
    instructions,
    late::Hearing,
    live_sessions::LiveRecord,
    meta::{self, MetaTool, MetaToolOptions},
    recent_searches::RecentSearches,
    resources::{self, NotificationStream, Subscriber, clients::ClientEntry},
    spans,
    tool_filter::HiddenReason,
};

/// What a session is shown, what it has loaded, and how it calls tools.
///
/// What it is shown is decided once, at its first request.
#[derive(Debug)]
pub struct ToolSession {
    host: ToolHost,
    context: Arc<SessionContext>,
    /// Whether grants for the session end with it. The calls of a script are made in a part of the
    /// session that started it.
    ends: bool,
    exposure: OnceCell<Exposure>,
    /// The servers that were disabled when the session began. Servers that are disabled later stay
    /// in its list, so that prompt caches stay valid.
    hidden: OnceLock<BTreeSet<ServerName>>,
    /// The list of a stable session, which never changes once the client has it.
    frozen: OnceCell<Vec<Value>>,
    /// The tools that a dynamic session has found, and those that the program has loaded, in order.
    found: Mutex<Vec<ExposedName>>,
    /// The tools that the program has unloaded.
    unloaded: Mutex<HashSet<ExposedName>>,
    found_changes: watch::Sender<u64>,
    /// Whether the client shows its model one of text and structured content.
    shows_one: AtomicBool,
    fixed_list: AtomicBool,
    pub(crate) searches: RecentSearches,
    subscriber: OnceLock<Subscriber>,
    instructions: OnceLock<String>,
    /// The client, where it can be asked outside of calls.
    client: OnceLock<ClientEntry>,
    pub(crate) hearing: Hearing,
    pub(crate) extensions: ClientExtensions,
    pub(crate) views: OpenViews,
    /// What is shown of the session from outside. A part of a session has none.
    live: Option<Arc<LiveRecord>>,
}

/// Why a call has no result for the model.
#[derive(Debug, Clone, PartialEq)]
pub enum CallFailure {
    /// No tool has this name.
    UnknownTool(String),
    /// The server answered with a JSON-RPC error.
    Refused {
        /// The error code.
        code: i64,
        /// The error message.
        message: String,
        /// The error data.
        data: Option<Value>,
    },
    /// The caller cancelled.
    Cancelled,
}

impl ToolSession {
    pub(crate) fn new(host: ToolHost, context: Arc<SessionContext>) -> Self {
        let mut session = Self::within(host, context);
        session.ends = true;
        let (id, caller) = (session.context.id(), &session.context.caller().name);
        let live = &session.host.inner.live_sessions;
        session.live = Some(live.add(id, caller, session.found_changes.clone()));
        session
    }

    /// A part of a session, for the calls of a script.
    pub(crate) fn within(host: ToolHost, context: Arc<SessionContext>) -> Self {
        Self {
            host,
            context,
            ends: false,
            exposure: OnceCell::new(),
            hidden: OnceLock::new(),
            frozen: OnceCell::new(),
            found: Mutex::default(),
            unloaded: Mutex::default(),
            found_changes: watch::Sender::new(0),
            fixed_list: AtomicBool::new(false),
            shows_one: AtomicBool::new(false),
            searches: RecentSearches::default(),
            subscriber: OnceLock::new(),
            instructions: OnceLock::new(),
            client: OnceLock::new(),
            hearing: Hearing::default(),
            extensions: ClientExtensions::default(),
            views: OpenViews::default(),
            live: None,
        }
    }

    /// Sets the mode, if it is not decided yet.
    pub(crate) fn decide(&self, exposure: Exposure) {
        let _ = self.exposure.set(exposure);
    }

    /// The host of the session.
    pub fn host(&self) -> &ToolHost {
        &self.host
    }

    /// The session as the broker sees it.
    pub fn context(&self) -> &Arc<SessionContext> {
        &self.context
    }

    /// Makes the list of tools constant for the whole session, as protocol version 2026-07-28
    /// requires: `dynamic` becomes `stable`. Must be called before the first request.
    pub fn fix_list(&self) {
        self.fixed_list.store(true, Ordering::Relaxed);
    }

    /// What the session is shown. It is decided at the first request, and waits a short time for
    /// servers whose tools are unknown, unless the decision does not depend on them.
    pub async fn exposure(&self) -> &Exposure {
        self.exposure
            .get_or_init(|| async {
                self.begin().await;
                self.host.recalled().await;
                let mut exposure = self.host.exposure();
                let mut changes = self.host.changes();
                let mut waiting = std::pin::pin!(self.host.first_lists());
                // Each list of a server may settle the decision.
                while matches!(exposure.reason, Reason::Unknown { .. })
                    || exposure.kind == ExposureKind::Direct
                {
                    let waited = tokio::select! {
                        () = &mut waiting => true,
                        notifications = changes.changed() => notifications.is_err(),
                    };
                    exposure = self.host.exposure();
                    if waited {
                        break;
                    }
                }
                if self.fixed_list.load(Ordering::Relaxed) && exposure.kind == ExposureKind::Dynamic
                {
                    exposure.kind = ExposureKind::Stable;
                }
                self.live(|live| {
                    live.note(|session| {
                        session.mode = Some(exposure.kind.to_string());
                        session.reason = Some(exposure.reason.to_string());
                    });
                });
                exposure
            })
            .await
    }

    /// The definitions that the session is shown, with their exposed names.
    pub async fn list_tools(&self) -> Vec<Value> {
        self.list_tools_with(&CallOptions::default()).await
    }

    /// [`list_tools`](Self::list_tools) for a client, which may cancel it. It waits for late servers as long as the
    /// client needs, and reports the progress.
    pub async fn list_tools_with(&self, options: &CallOptions) -> Vec<Value> {
        // The cost of a list depends on it, and so does the mode.
        self.host.code().find_python().await;
        if self.exposure().await.kind == ExposureKind::Direct || self.shows_views() {
            self.await_tools(options).await;
        }
        self.listed_tools(options).await
    }

    /// The definitions that the session is shown now, whichever servers are late.
    pub async fn listed_now(&self) -> Vec<Value> {
        self.listed_tools(&CallOptions::default()).await
    }

    async fn listed_tools(&self, options: &CallOptions) -> Vec<Value> {
        self.host.notice_choices().await;
        self.host.code().find_python().await;
        self.reset_if_asked();
        let exposure = self.exposure().await;
        if !matches!(exposure.kind, ExposureKind::Stable | ExposureKind::Code) {
            return self.current_list(exposure);
        }
        let frozen = self.frozen.get_or_init(|| async {
            self.await_always_loaded(options).await;
            self.current_list(exposure)
        });
        let mut tools = frozen.await.clone();
        if self.shows_views() {
            let catalog = self.host.catalog().read();
            let listed: HashSet<&str> =
                tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            let more = catalog.tools().filter(|tool| !listed.contains(tool.name.as_str()));
            let more: Vec<Value> =
                more.filter(|tool| self.lists_for_view(tool)).map(exposed_definition).collect();
            tools.extend(more);
        }
        tools
    }

    /// Calls a meta-tool, or a tool by its exposed name, for a model. The texts of a tool's result are
    /// within the budget for output; `read_output` reads the rest.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        let result = self.call_exact(name, arguments, options).await?;
        match MetaTool::named(name) {
            Some(MetaTool::Call) => Ok(self.within_budget(result, false)),
            Some(_) => Ok(self.said_once(result)),
            None => {
                let is_checked = result.get("structuredContent").is_some() && {
                    let catalog = self.host.catalog().read();
                    let schema = |tool: &Tool| tool.definition.output_schema();
                    catalog.resolve(name).and_then(schema).is_some()
                };
                Ok(self.within_budget(result, is_checked))
            }
        }
    }

    /// The result of a meta-tool without the data that its text says too, if the client shows one of them to
    /// its model.
    fn said_once(&self, mut result: Value) -> Value {
        let has_text = result["content"].as_array().is_some_and(|blocks| !blocks.is_empty());
        if self.shows_one.load(Ordering::Relaxed)
            && has_text
            && let Some(result) = result.as_object_mut()
        {
            result.shift_remove("structuredContent");
        }
        result
    }

    /// Notes that the client shows its model either the texts of a result or the structured content, so that
    /// both would say the same. The meta-tools then answer with texts, which are shorter.
    pub fn set_shows_one(&self) {
        self.shows_one.store(true, Ordering::Relaxed);
    }

    /// Calls a meta-tool, or a tool by its exposed name. The result is as the server sent it.
    pub async fn call_exact(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions,
    ) -> Result<Value, CallFailure> {
        self.host.notice_choices().await;
        self.reset_if_asked();
        self.live(|live| live.note(|session| session.calls += 1));
        let meta = MetaTool::named(name);
        let tool = if meta.is_some() { None } else { self.tool_for_client(name)? };
        let is_known = meta.is_some() || tool.is_some();
        let span = spans::call(self, is_known.then_some(name), &mut options);
        let outcome = match meta.filter(|tool| self.takes(*tool)) {
            Some(tool) => meta::call(self, tool, arguments, options).await,
            None => self.call_listed(name, tool, arguments, options).await,
        };
        span.end(spans::failure(&outcome));
        outcome
    }

    /// The tool that a client calls by this name: an exposed name, or the own name of a tool that a view calls.
    fn tool_for_client(&self, name: &str) -> Result<Option<Tool>, CallFailure> {
        let exposed = self.host.catalog().read().resolve(name).cloned();
        let is_open = |tool: &Tool| self.shows_views() || !tool.definition.view().only_for_views;
        match exposed.filter(is_open) {
            Some(tool) => Ok(Some(tool)),
            None => self.tool_of_view(name).map_err(CallFailure::UnknownTool),
        }
    }

    /// Answers a request for resources, prompts or completions. The result is as the server sent
    /// it, with names and URIs that the client can use.
    pub async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        mut options: CallOptions,
    ) -> Result<Value, CallFailure> {
        self.host.notice_choices().await;
        options.caller = Some(self.context.caller().login_owner());
        let span = spans::request(self, method, &mut options);
        let outcome = resources::answer(self, method, params, options).await;
        span.end(spans::failure(&outcome));
        outcome
    }

    /// The notifications for this session from now on: changed lists, and resources that it
    /// subscribed to.
    pub fn notifications(&self) -> NotificationStream {
        self.subscriber().notifications()
    }

    /// Notes the client of the session, which can be asked outside of calls. Servers are told that there are
    /// other roots now.
    pub fn attach_client(&self, handler: Arc<dyn InputHandler>) {
        let (clients, caller) = (&self.host.inner.resources.clients, self.context.caller());
        let entry = || clients.add(Arc::clone(&caller.identity), handler, &self.host.inner.broker);
        self.client.get_or_init(entry);
    }

    /// Tells servers that the roots of the client changed.
    pub fn roots_changed(&self) {
        if let Some(client) = self.client.get() {
            client.roots_changed();
        }
    }

    /// Notes the least severe log message that the client wants, and tells servers.
    pub async fn set_log_level(&self, level: LogLevel) {
        if let Some(client) = self.client.get() {
            client.set_level(level).await;
        }
    }

    /// Whether the caller may read the log messages of a server.
    pub fn hears(&self, server: &ServerName) -> bool {
        self.sees(server) && !resources::is_denied(self, server)
    }

    /// Adds a subscriber, for a session with several streams.
    pub fn new_subscriber(&self) -> Subscriber {
        Subscriber::new(self.host.clone(), Arc::clone(&self.context))
    }

    /// The instructions of the servers, quoted and within the budget; empty if there are none.
    /// Constant for the whole session.
    pub fn server_instructions(&self) -> &str {
        self.instructions.get_or_init(|| instructions::quoted(self))
    }

    pub(crate) fn subscriber(&self) -> &Subscriber {
        self.subscriber.get_or_init(|| self.new_subscriber())
    }

    /// Calls a tool for a client that has it in its list.
    async fn call_listed(
        &self,
        name: &str,
        tool: Option<Tool>,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        let context = CallContext::direct(&self.context);
        self.call_in(&context, name, tool, arguments, options).await
    }

    /// Calls a tool, and says why there is no result as a client is told.
    pub(crate) async fn call_in(
        &self,
        context: &CallContext,
        name: &str,
        tool: Option<Tool>,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        match self.call_tool(name, tool, arguments, context, options).await {
            Ok((_, result)) => Ok(result),
            Err(BrokerError::UnknownTool { name: wanted, nearest: mut likely }) => {
                // The list has meta-tools too.
                let ours = MetaTool::ALL.into_iter().filter(|tool| self.takes(*tool));
                let ours = nearest(name, ours.map(MetaTool::name), 1);
                likely.splice(0..0, ours.into_iter().map(str::to_owned));
                let error = BrokerError::UnknownTool { name: wanted, nearest: likely };
                Err(CallFailure::UnknownTool(meta::refusal(self, &error)))
            }
            Err(BrokerError::Call(error)) => match *error {
                CallError::Cancelled => Err(CallFailure::Cancelled),
                CallError::Refused { error, .. } => Err(CallFailure::Refused {
                    code: error.code,
                    message: error.message,
                    data: error.data,
                }),
                other => Ok(error_result(&other.to_string())),
            },
            Err(other) => Ok(refused_result(&other.to_string(), &other)),
        }
    }

    /// Calls a tool, and returns it with its result. `tool` is the tool of this name if the caller
    /// has found it already. Remembers the call for the searches that led to it.
    pub(crate) async fn call_tool(
        &self,
        name: &str,
        tool: Option<Tool>,
        mut arguments: Map<String, Value>,
        context: &CallContext,
        options: CallOptions,
    ) -> Result<(Tool, Value), BrokerError> {
        // What only views may call is no tool for a model.
        let is_for_models = |tool: &&Tool| !tool.definition.view().only_for_views;
        let known = || self.host.catalog().read().resolve(name).filter(is_for_models).cloned();
        // The flows of a script know its tools by the names in its text.
        let doubled = || {
            let catalog = self.host.catalog().read();
            let tool = catalog.resolve_doubled(name).filter(|_| context.run.is_none());
            tool.filter(is_for_models).cloned()
        };
        let mut tool = tool.or_else(known);
        if self.host.servers().has_callers() {
            // Boxed, as all that is rare or large: a future is moved with each function around it.
            Box::pin(self.log_in_for(name, tool.as_ref(), &options)).await?;
            tool = tool.or_else(known);
        }
        if tool.is_none() {
            // A client may know the name from an earlier session, and call it before its server has
            // connected.
            tokio::select! {
                () = options.cancel.cancelled() => {}
                () = Box::pin(self.host.connect_owners(name)) => {}
            }
            tool = known().or_else(doubled);
        }
        let broker = &self.host.inner.broker;
        let Some(tool) = tool else {
            let (arguments, meta) = (Value::Object(arguments), options.meta.as_ref());
            let unknown = Box::pin(broker.refuse_unknown(name, &arguments, context, meta)).await;
            return Err(match self.host.still_connecting(name) {
                Some(error) => BrokerError::Call(Box::new(error)),
                None => unknown,
            });
        };
        let watched = self.host.inner.events.call(context, &tool, &arguments);
        let mut options = options;
        if let Some(watched) = &watched {
            watched.watch_progress(&mut options);
        }
        resources::to_server_uris(&tool.id.server, &mut arguments);
        let outcome = Box::pin(broker.call(&tool, arguments, context, options)).await;
        if let Some(watched) = watched {
            watched.ended(&outcome);
        }
        let mut result = outcome?;
        if tool.definition.view().has_view {
            self.views.opened(&tool.id.server);
        }
        resources::to_client_uris(&tool.id.server, &mut result);
        let failed = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
        let lessons = self.searches.called(&tool.id, failed);
        self.host.inner.live_catalog.remember_use(&lessons, self.remembered_as());
        Ok((tool, result))
    }

    /// The name of the caller in the usage memory. Those at this machine are one person.
    pub(crate) fn remembered_as(&self) -> &str {
        let caller = self.context.caller();
        match caller.location {
            CallerLocation::Local => "",
            CallerLocation::Remote => &caller.identity,
        }
    }

    /// Calls a tool by its exposed name, for a program that wants to know why a call has no result.
    /// The result is as the server sent it.
    pub async fn call_by_name(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions,
    ) -> Result<Value, BrokerError> {
        self.host.notice_choices().await;
        self.begin().await;
        let tool = self.host.catalog().read().resolve(name).cloned();
        let span = spans::call(self, tool.is_some().then_some(name), &mut options);
        let context = CallContext::direct(&self.context);
        let outcome = self.call_tool(name, tool, arguments, &context, options).await;
        span.end(spans::broker_failure(&outcome));
        let (tool, result) = outcome?;
        if self.host.code().is_enabled() {
            self.host.code().shapes.learn_from_result(&tool, &result);
        }
        Ok(result)
    }

    /// The meta-tools of a mode, whatever mode the session has.
    pub fn meta_tools(&self, kind: ExposureKind) -> Vec<Value> {
        meta::meta_definitions(kind, &self.offer())
    }

    /// Whether the caller can call a tool directly, and whether a script of the caller can.
    pub fn ways_of(&self, tool: &Tool) -> (bool, bool) {
        let sees = self.sees(&tool.id.server);
        (sees && self.opens(tool, CallPath::Direct), sees && self.opens(tool, CallPath::Script))
    }

    /// Lists these tools from now on, in every mode. A name without a tool is listed once there is one.
    pub fn load_tools(&mut self, names: impl IntoIterator<Item = ExposedName>) {
        {
            let (mut found, mut unloaded) = (self.found.lock(), self.unloaded.lock());
            for name in names {
                unloaded.remove(&name);
                if !found.contains(&name) {
                    found.push(name);
                }
            }
        }
        self.changed_by_program();
    }

    /// Lists these tools no longer, in every mode. Search finds them, and they can be called.
    pub fn unload_tools(&mut self, names: impl IntoIterator<Item = ExposedName>) {
        {
            let (mut found, mut unloaded) = (self.found.lock(), self.unloaded.lock());
            for name in names {
                found.retain(|known| *known != name);
                unloaded.insert(name);
            }
        }
        self.changed_by_program();
    }

    /// Returns to the beginning: what the session is shown is decided again, and what it has loaded and
    /// searched is forgotten. What it has read stays, and so do its grants.
    pub fn restart(&mut self) {
        self.exposure = OnceCell::new();
        self.hidden = OnceLock::new();
        self.searches = RecentSearches::default();
        self.found.lock().clear();
        self.unloaded.lock().clear();
        self.changed_by_program();
    }

    /// A list that never changes in front of a client changes if the program wants it to.
    fn changed_by_program(&mut self) {
        self.frozen = OnceCell::new();
        self.list_changed();
    }

    fn list_changed(&self) {
        self.found_changes.send_modify(|count| *count += 1);
        let session = || Arc::clone(self.context.id());
        self.host.inner.events.send(|| HostEvent::ListChanged { session: session() });
    }

    /// Unloads the found tools, if `keepLoadedTools` is off.
    pub fn unload_found(&self) {
        if self.host.settings().keep_loaded_tools {
            return;
        }
        let mut found = self.found.lock();
        if !found.is_empty() {
            found.clear();
            drop(found);
            self.list_changed();
        }
    }

    /// Notes something for those who look from outside.
    pub(crate) fn live(&self, note: impl FnOnce(&LiveRecord)) {
        if let Some(live) = &self.live {
            note(live);
        }
    }

    /// Forgets what was found and loaded, if somebody outside has asked for it.
    fn reset_if_asked(&self) {
        if self.live.as_ref().is_some_and(|live| live.take_reset()) {
            self.searches.forget();
            self.found.lock().clear();
            self.list_changed();
        }
    }

    /// Changes with the session's own list, in addition to the changes of the host.
    pub fn list_changes(&self) -> watch::Receiver<u64> {
        self.found_changes.subscribe()
    }

    /// Makes found tools callable by name in a dynamic session. Returns those that are new.
    pub(crate) fn load<'a>(
        &self,
        names: impl Iterator<Item = &'a ExposedName>,
    ) -> Vec<ExposedName> {
        let dynamic = self.exposure.get().is_some_and(|given| given.kind == ExposureKind::Dynamic);
        if !dynamic {
            return Vec::new();
        }
        let mut found = self.found.lock();
        let before = found.len();
        for name in names {
            self.unloaded.lock().remove(name);
            if !found.contains(name) {
                found.push(name.clone());
            }
        }
        let added = found[before..].to_vec();
        let loaded = found.iter().map(ToString::to_string).collect();
        drop(found);
        self.live(|live| live.note(|session| session.loaded = loaded));
        if !added.is_empty() {
            self.list_changed();
        }
        added
    }

    /// Whether the model has the definition of the tool.
    pub(crate) fn is_loaded(&self, tool: &Tool, catalog: &Catalog) -> bool {
        if let Some(frozen) = self.frozen.get() {
            return frozen.iter().any(|given| given["name"] == tool.name.as_str());
        }
        let server = catalog.server(tool.id.server.as_str());
        let from_start = self
            .exposure
            .get()
            .zip(server)
            .is_some_and(|(exposure, server)| exposure.loads(tool, server));
        let from_start = from_start && self.sees(&tool.id.server);
        let from_start = from_start && !self.unloaded.lock().contains(&tool.name);
        (from_start || self.found.lock().contains(&tool.name)) && self.opens(tool, CallPath::Direct)
    }

    fn current_list(&self, exposure: &Exposure) -> Vec<Value> {
        let offer = self.offer();
        let catalog = self.host.catalog().read();
        let mut given: HashSet<&ExposedName> = HashSet::new();
        let mut tools: Vec<&Tool> = Vec::new();
        let is_open = |tool: &&Tool| self.opens(tool, CallPath::Direct);
        let unloaded = self.unloaded.lock();
        let loaded = exposure.loaded(&catalog).filter(|tool| self.sees(&tool.id.server));
        let loaded = loaded.filter(|tool| !unloaded.contains(&tool.name));
        for tool in loaded.filter(is_open) {
            given.insert(&tool.name);
            tools.push(tool);
        }
        let seen = catalog.tools().filter(|tool| self.sees(&tool.id.server));
        let seen = seen.filter(|tool| self.offers(tool)).count();
        let offered = tools.iter().filter(|tool| self.offers(tool)).count();
        let all_loaded = exposure.kind == ExposureKind::Direct && offered == seen;
        let found = self.found.lock();
        if self.shows_views() {
            let views = catalog.tools().filter(|tool| self.lists_for_view(tool));
            for tool in views {
                if given.insert(&tool.name) {
                    tools.push(tool);
                }
            }
        }
        tools.extend(
            found
                .iter()
                .filter_map(|name| catalog.resolve(name.as_str()))
                .filter(is_open)
                .filter(|tool| !given.contains(&tool.name)),
        );
        let offer = MetaToolOptions { deferred: !all_loaded, ..offer };
        let own = meta::meta_definitions(exposure.kind, &offer);
        self.live(|live| {
            let tokens = |text: &str| TokenCounter::shared().count(text) as u64;
            let of_own: u64 = own.iter().map(|tool| tokens(&tool.to_string())).sum();
            let of_tools = tools.iter().map(|tool| u64::from(tool.definition.tokens()));
            let listed_tokens = of_own + of_tools.sum::<u64>();
            live.note(|session| {
                session.listed_tools = own.len() + tools.len();
                session.listed_tokens = listed_tokens;
            });
        });
        own.into_iter().chain(tools.into_iter().map(exposed_definition)).collect()
    }

    /// Notes the disabled servers, once.
    pub(crate) async fn begin(&self) {
        if self.hidden.get().is_none() {
            self.host.refresh_choices().await;
            self.recall_logins().await;
            self.hidden.get_or_init(|| self.host.inner.enabled.off());
        }
    }

    /// Whether the session can use a server.
    pub(crate) fn sees(&self, server: &ServerName) -> bool {
        let hidden = self.hidden.get().is_some_and(|hidden| hidden.contains(server));
        !hidden || !self.host.is_off(server)
    }

    /// Why a tool of this name is held back, if the caller could call it otherwise.
    pub(crate) fn held_back(&self, name: &str) -> Option<&'static str> {
        let hidden = self.host.hidden_tools().into_iter().find(|hidden| hidden.name == name)?;
        let why = match &hidden.why {
            HiddenReason::Denied => return None,
            HiddenReason::Held(change) if matches!(change.kind, ChangeKind::Changed(_)) => {
                "differs from the approved one"
            }
            HiddenReason::Held(_) => "is new",
            HiddenReason::Suspicious(_) => "is suspicious",
        };
        let tool = hidden.tool();
        let is_seen = self.sees(&hidden.id.server)
            && self.opens(&tool, CallPath::Direct)
            && !self.host.broker().is_closed(&tool, &self.context.caller().facts);
        is_seen.then_some(why)
    }

    /// Whether the caller can call a tool in this way with some arguments.
    pub(crate) fn opens(&self, tool: &Tool, from: CallPath) -> bool {
        let is_for_views = tool.definition.view().only_for_views;
        if is_for_views && !(self.shows_views() && from == CallPath::Direct) {
            return false;
        }
        let (broker, caller) = (&self.host.inner.broker, self.context.caller());
        broker.is_open(tool, &caller.facts, from) && broker.offers(tool, &self.context)
    }

    /// Whether the caller can call a tool at all: in a script by the script, else also directly.
    pub(crate) fn offers(&self, tool: &Tool) -> bool {
        if tool.definition.view().only_for_views {
            return false;
        }
        let has_scripts = !self.ends || self.host.code().is_enabled();
        (self.ends && self.opens(tool, CallPath::Direct))
            || (has_scripts && self.opens(tool, CallPath::Script))
    }

    /// How many tools of a server the caller can call.
    pub(crate) fn offered_of(&self, catalog: &Catalog, server: &str) -> usize {
        let tools = catalog.tools_of(server);
        let are_alike = !self.host.inner.broker.policy().tells_callers_apart()
            && self.host.servers().offers_all_the_same();
        if are_alike {
            return tools.iter().filter(|tool| !tool.definition.view().only_for_views).count();
        }
        tools.iter().filter(|tool| self.offers(tool)).count()
    }

    /// The options for the session's meta-tools.
    fn offer(&self) -> MetaToolOptions {
        let something_off = self.hidden.get().is_some_and(|hidden| !hidden.is_empty());
        let offer = self.host.meta_tool_options();
        MetaToolOptions { servers: something_off || offer.servers, ..offer }
    }

    /// Whether a meta-tool may be called. Some are not listed and may be called all the same.
    pub(crate) fn takes(&self, tool: MetaTool) -> bool {
        match tool {
            MetaTool::FindServers | MetaTool::Enable | MetaTool::Disable => self.offer().servers,
            MetaTool::LoadSkill => self.offer().skills,
            _ => true,
        }
    }
}

impl Drop for ToolSession {
    fn drop(&mut self) {
        if self.ends {
            self.host.inner.broker.end_session(&self.context);
            self.host.inner.live_sessions.remove(self.context.id());
        }
    }
}

/// The definition as the server sent it, under the exposed name. toolgate waits for tasks itself, so clients
/// need not know which tools need one.
pub(crate) fn exposed_definition(tool: &Tool) -> Value {
    let mut definition = tool.definition.to_value();
    if let Some(name) = definition.get_mut("name") {
        *name = json!(tool.name);
    }
    if tool.definition.needs_task()
        && let Some(Value::Object(execution)) = definition.get_mut("execution")
    {
        execution.shift_remove("taskSupport");
    }
    resources::to_client_views(&tool.id.server, &mut definition);
    definition
}

/// A result that reports a refusal to the model, and to programs what there is to know of it.
pub(crate) fn refused_result(message: &str, error: &BrokerError) -> Value {
    let mut result = error_result(message);
    if let Some(data) = error.data() {
        result["_meta"] = data;
    }
    result
}

/// A result that reports an error to the model.
pub(crate) fn error_result(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}
