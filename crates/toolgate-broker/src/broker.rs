//! Validates, authorizes and admits requests to servers.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::{Map, Value};
use toolgate_catalog::{Catalog, Definition, ServerName, Tool, ToolId, nearest};
use toolgate_policy::{
    CallLimit, CallPath, CallerFacts, FlowMode, GrantScope, LabelSet, Policy, PolicySettings,
    ToolPolicy, Verdict, request_as_tool,
};
use toolgate_store::{AuditRecord, Journal};
use toolgate_telemetry::Telemetry;
use toolgate_upstream::{
    CallError, CallOptions, Redactor, SendCheck, ServerObserver, ServerPool, Upstream,
};

use crate::{
    admitted::{Admitted, AdmittedSlots, Judged, Outgoing, ServerQueues},
    audit::{AuditOptions, AuditWriter, CallAudit},
    authorize::{CallAuthorizer, ClientForms, EndpointFingerprints},
    caller_reads::{CallerReads, KeepTime},
    context::{CallContext, RunContext, SessionContext},
    data_flow::{self, CallerMemory, ResultOrigin, SentData},
    error::BrokerError,
    limits::{CallLimitReached, CallLimiter, WhenBusy},
    validate::{Uncheckable, Validators},
};

/// The catalog, which the host updates while calls are made. All clones share their content.
#[derive(Debug, Clone, Default)]
pub struct SharedCatalog(Arc<RwLock<Arc<Catalog>>>);

/// Decides on every request to a server, and owns the connections that they are sent over.
#[derive(Debug)]
pub struct Broker {
    catalog: SharedCatalog,
    validation: RwLock<HashMap<ServerName, ValidationSettings>>,
    validators: Validators,
    authorizer: CallAuthorizer,
    queues: ServerQueues,
    pub(crate) callers: CallerMemory,
    limiter: Arc<CallLimiter>,
    audit: Option<Arc<AuditWriter>>,
    telemetry: Telemetry,
    pub(crate) upstream: Upstream,
}

/// What decides on calls, and where decisions are recorded.
#[derive(Debug, Default)]
pub struct BrokerSettings {
    /// The known tools and servers.
    pub catalog: SharedCatalog,
    /// Who may call what. Without rules every call is allowed.
    pub policy: PolicySettings,
    /// How arguments are checked, by server. Servers that are not listed get the defaults.
    pub validation: HashMap<ServerName, ValidationSettings>,
    /// Where approvals wait for a person, and where grants are stored. Without a journal, an
    /// approval that nobody can give now is a denial.
    pub journal: Option<Arc<dyn Journal>>,
    /// Why there is no journal, if one was wanted.
    pub no_journal: Option<String>,
    /// The fingerprints of the servers.
    pub endpoints: EndpointFingerprints,
    /// Whether approvals are asked for with a form in the client.
    pub forms: ClientForms,
    /// Where every decision and call is recorded.
    pub audit: Option<AuditOptions>,
    /// Where calls are counted for the limits of the policy. Hosts that share it share the counts.
    pub limiter: Option<Arc<CallLimiter>>,
    /// How many calls of scripts a server gets at once; one if unset.
    pub script_calls: usize,
    /// Where spans and metrics go.
    pub telemetry: Telemetry,
    /// What callers have read in other sessions.
    pub callers: CallerReads,
    /// How long that counts: as the policy says. Brokers that share it share the time of the last one.
    pub remember: KeepTime,
}

/// How the arguments for one server's tools are checked, and what the server is told besides.
#[derive(Debug, Clone, Default)]
pub struct ValidationSettings {
    /// Tells the server with each request who makes it.
    pub tell_caller: bool,
    /// Leaves the check of arguments to the server.
    pub skip_validation: bool,
    /// The same for single tools, by their own names. Overrides the setting of the server.
    pub skip_validation_of: HashMap<String, bool>,
}

const SUGGESTIONS: usize = 3;
/// How often a call is judged if the definition of its tool changes each time before it is sent.
const MAX_JUDGEMENTS: usize = 5;
/// How long the check of one call's arguments may take.
const VALIDATION_TIMEOUT: Duration = Duration::from_secs(2);

/// Ignores the events of servers, where there are none.
struct NoObserver;

impl ServerObserver for NoObserver {
    fn listed(
        &self,
        _server: &ServerName,
        _handshake: &toolgate_upstream::Handshake,
        _listing: toolgate_upstream::Listing,
    ) {
    }
}

impl SharedCatalog {
    /// Shares a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(catalog))))
    }

    /// The catalog as it is now. A reader holds no lock, so that it cannot block an update, or itself
    /// with a second read.
    pub fn read(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read())
    }

    /// Changes the catalog. Readers keep what they have read.
    pub fn update<R>(&self, change: impl FnOnce(&mut Catalog) -> R) -> R {
        change(Arc::make_mut(&mut self.0.write()))
    }
}

impl Broker {
    /// A broker without servers; [`Broker::servers`] adds them. Must be called inside a tokio
    /// runtime.
    pub fn new(settings: BrokerSettings, observer: &Arc<dyn ServerObserver>) -> Arc<Self> {
        let BrokerSettings { policy, journal, no_journal, endpoints, forms, .. } = settings;
        settings.remember.set(policy.remember.0);
        let callers = CallerMemory { reads: settings.callers, keep: settings.remember };
        let authorizer = CallAuthorizer::new(policy, journal, no_journal, endpoints, forms);
        Arc::new(Self {
            catalog: settings.catalog,
            validation: RwLock::new(settings.validation),
            validators: Validators::default(),
            authorizer,
            queues: ServerQueues::new(settings.script_calls),
            callers,
            limiter: settings.limiter.unwrap_or_else(|| CallLimiter::new(None)),
            audit: settings.audit.map(|options| Arc::new(AuditWriter::new(options))),
            telemetry: settings.telemetry,
            upstream: Upstream::start(Vec::new(), observer),
        })
    }

    /// A broker for raw connections, which has no shared servers.
    pub fn without_servers(settings: BrokerSettings) -> Arc<Self> {
        Self::new(settings, &(Arc::new(NoObserver) as Arc<dyn ServerObserver>))
    }

    /// Replaces the policy and the checks of arguments. Calls that were judged before and are not
    /// sent yet are judged anew. `redactors` keep the secrets of new servers out of the audit log.
    pub fn reload(
        &self,
        policy: PolicySettings,
        validation: HashMap<ServerName, ValidationSettings>,
        redactors: Vec<Redactor>,
    ) {
        if let Some(audit) = &self.audit {
            audit.guard(redactors);
        }
        *self.validation.write() = validation;
        self.callers.keep.set(policy.remember.0);
        self.authorizer.reload(policy);
    }

    /// The servers: adds, connects and removes them, and tells their states.
    pub fn servers(&self) -> &ServerPool {
        &self.upstream
    }

    /// Calls a tool, and returns the result as the server sent it.
    ///
    /// The call waits for a connection, for a slot and perhaps for a person. If the server has
    /// another definition of the tool by then, nothing is sent, and the call is judged anew.
    pub async fn call(
        self: &Arc<Self>,
        tool: &Tool,
        arguments: Map<String, Value>,
        context: &CallContext,
        mut options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let given = Value::Object(arguments);
        let mut tool = Cow::Borrowed(tool);
        for judgement in 1.. {
            let unchanged = self.unchanged(&tool, context);
            let called = (tool.name.as_str(), Some(&*tool));
            let audit = self.start_audit(context, called, &given, options.meta.as_ref());
            let arguments = match self.check(&tool, given.clone(), context).await {
                Ok(arguments) => arguments,
                Err(error) => {
                    audit.end(Err(&error)).wait().await;
                    return Err(error);
                }
            };
            let mut admitted =
                self.admit_audited(audit, &tool, arguments, context, &options).await?;
            admitted.is_call = true;
            options.send_check = Some(unchanged);
            let outcome = admitted.send(Outgoing::Shared(options.clone())).await;
            let is_outdated = outcome.as_ref().is_err_and(BrokerError::is_outdated);
            if !is_outdated || judgement >= MAX_JUDGEMENTS {
                return outcome;
            }
            admitted.take_back_limits().await;
            // Under another name it is another tool for whoever called it, and for the flows of a script.
            let current = self.catalog.read().by_id(&tool.id).cloned();
            let Some(current) = current.filter(|current| current.name == tool.name) else {
                let (name, meta) = (tool.name.as_str(), options.meta.as_ref());
                return Err(self.refuse_unknown(name, &given, context, meta).await);
            };
            tool = Cow::Owned(current);
        }
        Err(CallError::Cancelled.into())
    }

    /// Says whether the definition of a tool and the policy are still those that a call was judged
    /// by. Made before the call is judged.
    fn unchanged(self: &Arc<Self>, tool: &Tool, context: &CallContext) -> SendCheck {
        let (id, same_policy) = (tool.id.clone(), self.same_policy());
        let (catalog, judged) = (self.catalog.clone(), tool.definition.fingerprint());
        let (broker, session) = (Arc::downgrade(self), Arc::clone(&context.session));
        SendCheck::new(move || {
            let is_same = |tool: &Tool| {
                tool.definition.fingerprint() == judged
                    && broker.upgrade().is_some_and(|it| it.offers(tool, &session))
            };
            same_policy() && catalog.read().by_id(&id).is_some_and(is_same)
        })
    }

    /// Whether a server offers a session a tool with this definition. It may depend on the caller where each
    /// caller has their own login, and on the session where it has its own instance.
    pub fn offers(&self, tool: &Tool, session: &SessionContext) -> bool {
        let (definition, owner) =
            (tool.definition.fingerprint(), || session.caller().login_owner());
        let client = session.client();
        self.upstream.offers(&tool.id.server, &tool.id.tool, definition, owner, client)
    }

    /// Says whether the policy is still the one of now.
    pub fn same_policy(self: &Arc<Self>) -> impl Fn() -> bool + Send + Sync + 'static + use<> {
        let (broker, judged_by) = (Arc::downgrade(self), self.authorizer.in_force());
        move || {
            let now = broker.upgrade().map(|broker| broker.authorizer.in_force());
            now.is_some_and(|now| Arc::ptr_eq(&now, &judged_by))
        }
    }

    /// Sends a request that is no tool call, such as `resources/read`, and returns the result as the
    /// server sent it.
    pub async fn request(
        self: &Arc<Self>,
        server: &ServerName,
        method: &str,
        params: Value,
        context: &CallContext,
        mut options: CallOptions,
    ) -> Result<Value, BrokerError> {
        for _ in 1..MAX_JUDGEMENTS {
            options.send_check = Some(SendCheck::new(self.same_policy()));
            let admitted = self.admit_request(server, method, params.clone(), context, &options);
            let outcome = admitted.await?.send(Outgoing::Shared(options.clone())).await;
            if !outcome.as_ref().is_err_and(BrokerError::is_outdated) {
                return outcome;
            }
        }
        Err(CallError::DefinitionChanged { server: server.clone(), tool: method.to_owned() }.into())
    }

    /// Passes a notification of a client on to a server, if the policy allows it as it would allow a request.
    pub async fn notify(
        self: &Arc<Self>,
        server: &ServerName,
        method: &str,
        params: Option<Value>,
        context: &CallContext,
    ) -> Result<(), BrokerError> {
        // A request without an id would be acted on without an answer.
        if !method.starts_with("notifications/") {
            return Err(unknown_method(method));
        }
        let judged = params.clone().unwrap_or_else(|| Value::Object(Map::new()));
        let options = CallOptions::default();
        let admitted = self.admit_request(server, method, judged, context, &options).await?;
        let sent = self.upstream.notify(server, method, params).await.map_err(BrokerError::from);
        admitted.end_unsent(sent.as_ref().map(|()| &Value::Null)).await;
        sent
    }

    /// Sends a request that the policy does not judge, such as `resources/list`.
    pub async fn request_unjudged(
        self: &Arc<Self>,
        server: &ServerName,
        method: &str,
        params: Option<Value>,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let admitted = Admitted::unjudged(Arc::clone(self), server, method, params);
        let mut admitted = admitted.ok_or_else(|| unknown_method(method))?;
        admitted.send(Outgoing::Shared(options)).await
    }

    /// Sends a request that the broker of another node has admitted, to a server that runs here for all nodes. That
    /// broker has judged it, and records it.
    pub async fn forward(
        self: &Arc<Self>,
        server: &ServerName,
        method: &str,
        params: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let mut admitted = Admitted::forwarded(Arc::clone(self), server, method, params);
        admitted.send(Outgoing::Shared(options)).await
    }

    /// Whether the server takes calls of a tool only as tasks.
    pub(crate) fn needs_task(&self, tool: &ToolId) -> bool {
        self.catalog.read().by_id(tool).is_some_and(|tool| tool.definition.needs_task())
    }

    /// Admits a request that is no tool call, or says why not.
    pub async fn admit_request(
        self: &Arc<Self>,
        server: &ServerName,
        method: &str,
        params: Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        let tool = self.request_tool(server, method).ok_or_else(|| unknown_method(method))?;
        self.admit(&tool, params, context, options).await
    }

    /// Admits a request that the policy does not judge; `None` if the policy judges the method.
    pub fn admit_unjudged(self: &Arc<Self>, server: &ServerName, method: &str) -> Option<Admitted> {
        Admitted::unjudged(Arc::clone(self), server, method, None)
    }

    /// Admits a request, or says why not: finds the earlier results that the arguments contain,
    /// decides by the policy, asks a person if the policy requires it, and records the decision.
    pub async fn admit(
        self: &Arc<Self>,
        tool: &Tool,
        arguments: Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        let called = (tool.name.as_str(), Some(tool));
        let audit = self.start_audit(context, called, &arguments, options.meta.as_ref());
        self.admit_audited(audit, tool, arguments, context, options).await
    }

    /// Records the call of a tool that does not exist or is hidden, and names similar tools.
    pub async fn refuse_unknown(
        &self,
        name: &str,
        arguments: &Value,
        context: &CallContext,
        meta: Option<&Map<String, Value>>,
    ) -> BrokerError {
        let unknown = self.unknown(name, context);
        let audit = self.start_audit(context, (name, None), arguments, meta);
        audit.end(Err(&unknown)).wait().await;
        unknown
    }

    /// Remembers the result of a call of an earlier part of a run, which is answered from the journal
    /// and not sent again. `stored` is the origin in the journal.
    pub fn recall(
        &self,
        name: &str,
        stored: Option<&ResultOrigin>,
        arguments: &Value,
        context: &CallContext,
        result: &Value,
    ) {
        let mode = self.policy().flow();
        if mode == FlowMode::Off {
            return;
        }
        let tool = self.catalog.read().resolve(name).cloned();
        let stored = match (stored, &tool) {
            (Some(stored), _) => stored.clone(),
            (None, Some(tool)) => ResultOrigin { tool: tool.id.clone(), labels: LabelSet::EMPTY },
            (None, None) => ResultOrigin::unknown(name),
        };
        let now = tool.filter(|tool| tool.id == stored.tool).map(|tool| self.policy_of(&tool));
        // The result has the labels of the data that the call carried then.
        let sent = SentData { tool: name, arguments, meta: None };
        let mode = (mode, self.policy().branches());
        let flow = data_flow::flow(context, &sent, mode, &self.callers);
        if let Some(policy) = &now {
            data_flow::give(context, &stored.tool, policy, &flow, &self.callers);
        }
        let labels = now.map_or(LabelSet::EMPTY, |policy| policy.labels());
        let labels = stored.labels.union(labels);
        let origin = data_flow::origin(context, &stored.tool, labels, &flow, &self.callers);
        data_flow::learn(context, name, &origin, result, &self.callers);
    }

    /// The policy of all calls, as it is now.
    pub fn policy(&self) -> Policy {
        self.authorizer.in_force().policy.clone()
    }

    /// Whether the policy has no rules, so that no request is judged.
    pub(crate) fn is_idle(&self) -> bool {
        self.authorizer.in_force().is_idle
    }

    /// The policy of the calls of one tool.
    pub fn policy_of(&self, tool: &Tool) -> Arc<ToolPolicy> {
        self.authorizer.policy_of(tool)
    }

    /// Whether the caller can make a call of the tool in this way with some arguments. A tool that is
    /// closed to a caller is neither listed nor suggested.
    pub fn is_open(&self, tool: &Tool, caller: &CallerFacts, from: CallPath) -> bool {
        !self.policy().tells_callers_apart() || !self.policy_of(tool).is_closed_to(caller, from)
    }

    /// Whether the caller can make no call of the tool at all, in no way and with no arguments. For this
    /// caller there is no such tool.
    pub fn is_closed(&self, tool: &Tool, caller: &CallerFacts) -> bool {
        let policy = self.policy_of(tool);
        let is_closed = |from| policy.is_closed_to(caller, from);
        policy.is_hidden() || is_closed(CallPath::Direct) && is_closed(CallPath::Script)
    }

    /// The policy of a request that is no tool call; `None` for names that are no methods.
    pub fn policy_of_request(&self, server: &ServerName, method: &str) -> Option<Arc<ToolPolicy>> {
        self.request_tool(server, method).map(|tool| self.policy_of(&tool))
    }

    /// A request that is no tool call, as the policy sees it; `None` for names that are no methods.
    pub fn request_tool(&self, server: &ServerName, method: &str) -> Option<Tool> {
        request_as_tool(server, self.prefix(server), method)
    }

    /// A tool of a server as the policy sees it, from its definition.
    pub fn tool(&self, server: &ServerName, definition: &Arc<Definition>) -> Tool {
        Tool::alone(server, self.prefix(server), Arc::clone(definition))
    }

    /// Removes the grants of a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.authorizer.end(&GrantScope::Session(Arc::clone(session.id())));
    }

    /// Removes the grants of a run. Touches the disk if a person was asked.
    pub fn end_run(&self, run: &RunContext) {
        if run.may_have_grants() {
            self.authorizer.end(&GrantScope::Run(Arc::clone(run.id())));
        }
    }

    /// Records a decision that is not about a request.
    pub fn record(&self, record: AuditRecord) {
        if let Some(audit) = &self.audit {
            audit.write(record);
        }
    }

    /// Waits until everything so far is in the audit log.
    pub fn flush(&self) {
        if let Some(audit) = &self.audit {
            audit.flush();
        }
    }

    /// What is wrong with a tool's schema, if its calls are refused because of it.
    pub fn broken_schema(&self, tool: &Tool) -> Option<Uncheckable> {
        if !self.validates(&tool.id) {
            return None;
        }
        self.validators.compiled(tool).broken(tool)
    }

    fn start_audit(
        &self,
        context: &CallContext,
        called: (&str, Option<&Tool>),
        arguments: &Value,
        meta: Option<&Map<String, Value>>,
    ) -> CallAudit {
        let writer = self.audit.clone();
        CallAudit::start(writer, &self.telemetry, context, called, arguments, meta)
    }

    /// Refuses hidden tools and invalid arguments. A schema that refers to itself can make the check
    /// take for ever, so that one is checked on another thread with a timeout.
    async fn check(
        &self,
        tool: &Tool,
        arguments: Value,
        context: &CallContext,
    ) -> Result<Value, BrokerError> {
        let caller = context.session.caller();
        if self.is_closed(tool, &caller.facts) || !self.offers(tool, &context.session) {
            return Err(self.unknown(tool.name.as_str(), context));
        }
        self.validate(tool, arguments).await
    }

    /// Whether arguments fit the schema of a tool, as far as it is checked. Nothing is sent or recorded.
    pub async fn accepts(&self, tool: &Tool, arguments: Value) -> bool {
        self.validate(tool, arguments).await.is_ok()
    }

    async fn validate(&self, tool: &Tool, arguments: Value) -> Result<Value, BrokerError> {
        if !self.validates(&tool.id) {
            return Ok(arguments);
        }
        let schema = self.validators.compiled(tool);
        if !schema.refers {
            return schema.check(tool, arguments);
        }
        let checked = tool.clone();
        let checking = tokio::task::spawn_blocking(move || schema.check(&checked, arguments));
        if let Ok(Ok(outcome)) = tokio::time::timeout(VALIDATION_TIMEOUT, checking).await {
            return outcome;
        }
        let reason = "it refers to itself so often that checking does not end".to_owned();
        Err(Uncheckable { tool: tool.name.to_string(), reason }.into())
    }

    /// Admits a request whose audit entry has begun: decides, authorizes, waits for a slot, and writes
    /// the decision down before anything is sent.
    async fn admit_audited(
        self: &Arc<Self>,
        mut audit: CallAudit,
        tool: &Tool,
        arguments: Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        let policy = self.policy_of(tool);
        let meta = options.meta.as_ref();
        let sent = SentData { tool: context.name_of(tool), arguments: &arguments, meta };
        let mode = (self.policy().flow(), self.policy().branches());
        let flow = data_flow::flow(context, &sent, mode, &self.callers);
        let caller = &context.session.caller().facts;
        let decision = policy.decide_for(caller, context.path(), &arguments, &flow);
        let limits = policy.limits().iter();
        let limits: Vec<Arc<CallLimit>> =
            limits.filter(|limit| limit.counts(caller, context.path())).cloned().collect();
        let judged = Judged { tool: tool.clone(), policy, context: context.clone(), flow };
        audit.decided(&decision);
        let authorized = self.authorizer.authorize(context, tool, &arguments, &decision, options);
        let limited = |reached: CallLimitReached| {
            let (tool, reached) = (tool.name.to_string(), Box::new(reached));
            BrokerError::Limited { tool, reached }
        };
        let permitted = async {
            if decision.verdict != Verdict::Deny {
                // Nobody is asked in vain.
                self.limiter.check(&limits, context.identity()).map_err(limited)?;
            }
            let permit = match authorized.await {
                Ok(permit) => permit,
                Err(error) => {
                    judged.write_decision(&decision, None, &self.callers).await?;
                    return Err(error);
                }
            };
            let Judged { tool: Tool { id, .. }, policy, flow, .. } = &judged;
            data_flow::give(context, id, policy, flow, &self.callers);
            let entered = async {
                let (when_busy, queue) = match context.run {
                    Some(_) => (WhenBusy::Wait, self.queues.enter(&tool.id.server).await),
                    None => (WhenBusy::Refuse, None),
                };
                let limits = self.limiter.enter(&limits, context.identity(), when_busy).await;
                limits.map(|limits| AdmittedSlots { _queue: queue, limits })
            };
            let slots = tokio::select! {
                entered = entered => entered.map_err(limited)?,
                () = options.cancel.cancelled() => return Err(CallError::Cancelled.into()),
            };
            let recorded = audit.permitted(&permit).await;
            recorded.map_err(|why| BrokerError::Unrecorded { tool: tool.name.to_string(), why })?;
            judged.write_decision(&decision, Some(&permit), &self.callers).await?;
            Ok(slots)
        };
        match permitted.await {
            Ok(slots) => Ok(Admitted::new(Arc::clone(self), Some(arguments), judged, audit, slots)),
            Err(error) => {
                if let BrokerError::Limited { reached, .. } = &error {
                    audit.limited(reached);
                }
                audit.end(Err(&error)).wait().await;
                Err(error)
            }
        }
    }

    fn unknown(&self, name: &str, context: &CallContext) -> BrokerError {
        let catalog = self.catalog.read();
        let caller = context.session.caller();
        let open = catalog.tools().filter(|tool| {
            self.is_open(tool, &caller.facts, context.path()) && self.offers(tool, &context.session)
        });
        // What only views may call is no tool for a model.
        let open = open.filter(|tool| !tool.definition.view().only_for_views);
        let others = open.map(|tool| tool.name.as_str()).filter(|other| *other != name);
        let nearest = nearest(name, others, SUGGESTIONS);
        BrokerError::UnknownTool {
            name: name.chars().take(128).collect(),
            nearest: nearest.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The prefix that replaces the name of a server in exposed names.
    pub fn prefix(&self, server: &ServerName) -> Option<Arc<str>> {
        let catalog = self.catalog.read();
        catalog.server(server.as_str())?.prefix.as_deref().map(Into::into)
    }

    /// Whether a server is told who makes a request.
    pub(crate) fn tells_caller(&self, server: &ServerName) -> bool {
        self.validation.read().get(server).is_some_and(|settings| settings.tell_caller)
    }

    fn validates(&self, id: &ToolId) -> bool {
        self.validation.read().get(&id.server).is_none_or(|settings| {
            let skip = settings.skip_validation_of.get(id.tool.as_ref()).copied();
            !skip.unwrap_or(settings.skip_validation)
        })
    }
}

fn unknown_method(method: &str) -> BrokerError {
    BrokerError::UnknownMethod(method.chars().take(128).collect())
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use toolgate_catalog::CatalogServer;

    use super::*;

    #[test]
    fn a_reader_of_the_catalog_blocks_no_update_and_no_second_read() {
        let catalog = SharedCatalog::default();
        let held = catalog.read();
        let (send, updated) = mpsc::channel();
        let shared = catalog.clone();
        thread::spawn(move || {
            shared.update(|catalog| catalog.add_server(CatalogServer::named("notes")));
            send.send(()).unwrap();
        });
        updated.recv_timeout(Duration::from_mins(1)).expect("the update does not wait");
        assert!(held.server("notes").is_none());
        assert!(catalog.read().server("notes").is_some());
    }
}
