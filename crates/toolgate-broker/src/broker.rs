//! Resolve, validate, pass the gate, dispatch.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::{Map, Value};
use toolgate_catalog::{Catalog, ServerName, Tool, ToolId, nearest};
use toolgate_policy::{Policy, ToolPolicy};
use toolgate_store::AuditRecord;
use toolgate_upstream::{CallOptions, Upstream};

use crate::{
    context::{CallContext, RunContext, SessionContext},
    error::BrokerError,
    gate::Gate,
    guard::GuardSettings,
    validate::{Uncheckable, Validators},
    watch::ResultOrigin,
};

/// The catalogue, which the host keeps up to date while calls are made.
pub type SharedCatalog = Arc<RwLock<Catalog>>;

/// Decides on every call and makes it.
#[derive(Debug)]
pub struct Broker {
    catalog: SharedCatalog,
    upstream: Arc<Upstream>,
    rules: Rules,
    validators: Validators,
    gate: Arc<Gate>,
}

/// What the configuration says of calls.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// By server; a server that is not here gets the defaults.
    pub servers: HashMap<ServerName, ServerRules>,
}

/// What the configuration says of the calls of one server.
#[derive(Debug, Clone, Default)]
pub struct ServerRules {
    /// Leave the checking of arguments to the server.
    pub skip_validation: bool,
    /// The same for single tools, by their own names; beats the server's.
    pub skip_validation_of: HashMap<String, bool>,
}

const SUGGESTIONS: usize = 3;
/// How long the check of one call's arguments may take.
const CHECKING_PATIENCE: Duration = Duration::from_secs(2);

impl Broker {
    /// A broker for the tools of `catalog`, which are on the servers of `upstream`.
    pub fn new(
        catalog: SharedCatalog,
        upstream: Arc<Upstream>,
        rules: Rules,
        guard: GuardSettings,
    ) -> Self {
        let gate = Arc::new(Gate::new(guard));
        Self { catalog, upstream, rules, validators: Validators::default(), gate }
    }

    /// What decides on requests, calls or not.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Calls the tool of this exposed name, and gives its result as the server sent it.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: &CallContext,
        mut options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let arguments = Value::Object(arguments);
        let tool = self.resolve(name);
        let called = (name, tool.as_ref().ok());
        let recording = self.gate.begin(context, called, &arguments, options.meta.as_ref());
        recording.pass_on(&mut options.meta);
        let (tool, arguments) = match self.checked(tool, arguments).await {
            Ok(checked) => checked,
            Err(error) => {
                recording.end(Err(&error));
                return Err(error);
            }
        };
        let admitted =
            self.gate.admit_begun(recording, &tool, &arguments, context, &options).await?;
        let arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        };
        let ToolId { server, tool: own } = &tool.id;
        let outcome = self.upstream.call(server, own, arguments, options).await;
        let outcome = outcome.map_err(BrokerError::from);
        admitted.finish(outcome.as_ref());
        outcome
    }

    /// Takes in what a call returned before, so that it is known where a later call has it from: a run
    /// that goes on is answered from the journal, and its calls do not come here again. `known` is what
    /// was written down of it then.
    pub fn recall(
        &self,
        name: &str,
        known: Option<&ResultOrigin>,
        arguments: &Value,
        context: &CallContext,
        result: &Value,
    ) {
        let tool = self.resolve(name).ok();
        self.gate.recall((name, tool.as_ref()), known, arguments, context, result);
    }

    /// What the policy makes of calls.
    pub fn policy(&self) -> &Policy {
        self.gate.policy()
    }

    /// What the policy makes of the calls of a tool.
    pub fn policy_of(&self, tool: &Tool) -> Arc<ToolPolicy> {
        self.gate.policy_of(tool)
    }

    /// Forgets what was granted for a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.gate.end_session(session);
    }

    /// Forgets what was granted for a run. Touches the disk.
    pub fn end_run(&self, run: &RunContext) {
        self.gate.end_run(run);
    }

    /// Writes down a decision that is about no call, where there is a record.
    pub fn note(&self, record: AuditRecord) {
        self.gate.note(record);
    }

    /// Waits until everything so far is in the audit log.
    pub fn flush(&self) {
        self.gate.flush();
    }

    /// The tool, if it is there for anybody, and arguments that fit it.
    async fn checked(
        &self,
        tool: Result<Tool, BrokerError>,
        arguments: Value,
    ) -> Result<(Tool, Value), BrokerError> {
        let tool = tool?;
        if self.gate.policy_of(&tool).is_hidden() {
            return Err(self.unknown(tool.name.as_str()));
        }
        let arguments =
            if self.validates(&tool.id) { self.check(&tool, arguments).await? } else { arguments };
        Ok((tool, arguments))
    }

    /// Checks the arguments. A schema that refers to itself can make that take for ever, so that
    /// it is done aside and for a limited time.
    async fn check(&self, tool: &Tool, arguments: Value) -> Result<Value, BrokerError> {
        let schema = self.validators.compiled(tool);
        if !schema.refers {
            return schema.check(tool, arguments);
        }
        let checked = tool.clone();
        let checking = tokio::task::spawn_blocking(move || schema.check(&checked, arguments));
        if let Ok(Ok(outcome)) = tokio::time::timeout(CHECKING_PATIENCE, checking).await {
            return outcome;
        }
        let reason = "it refers to itself so often that checking does not end".to_owned();
        Err(Uncheckable { tool: tool.name.to_string(), reason }.into())
    }

    /// What is wrong with a tool's schema, if its calls have to be refused for it.
    pub fn broken_schema(&self, tool: &Tool) -> Option<Uncheckable> {
        if !self.validates(&tool.id) {
            return None;
        }
        self.validators.compiled(tool).broken(tool)
    }

    fn resolve(&self, name: &str) -> Result<Tool, BrokerError> {
        let found = self.catalog.read().resolve(name).cloned();
        found.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> BrokerError {
        let catalog = self.catalog.read();
        let known = catalog.tools().map(|tool| tool.name.as_str()).filter(|known| *known != name);
        let nearest = nearest(name, known, SUGGESTIONS);
        BrokerError::UnknownTool {
            name: name.chars().take(128).collect(),
            nearest: nearest.into_iter().map(str::to_owned).collect(),
        }
    }

    fn validates(&self, id: &ToolId) -> bool {
        self.rules.servers.get(&id.server).is_none_or(|rules| {
            let skip = rules.skip_validation_of.get(id.tool.as_ref()).copied();
            !skip.unwrap_or(rules.skip_validation)
        })
    }
}
