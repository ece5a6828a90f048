//! Resolve, validate, watch the data, authorise, dispatch, learn, record.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::{Map, Value};
use toolgate_catalog::{Catalog, ServerName, Tool, ToolId, nearest};
use toolgate_policy::{Decision, Flow, FlowMode, Policy, ToolPolicy};
use toolgate_store::AuditRecord;
use toolgate_telemetry::Telemetry;
use toolgate_upstream::{CallOptions, Upstream};

use crate::{
    context::{CallContext, Decided, RunContext, SessionContext},
    error::BrokerError,
    guard::{Guard, GuardSettings, Permit},
    record::{self, Recorder},
    recording::Recording,
    validate::{Uncheckable, Validators},
    watch,
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
    guard: Guard,
    recorder: Option<Recorder>,
    telemetry: Telemetry,
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

/// A call that is being decided.
struct Call<'c> {
    tool: &'c Tool,
    policy: &'c ToolPolicy,
    context: &'c CallContext,
    flow: Flow,
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
        let GuardSettings { policy, journal, audit, telemetry } = guard;
        Self {
            catalog,
            upstream,
            rules,
            validators: Validators::default(),
            guard: Guard::new(policy, journal),
            recorder: audit.map(Recorder::new),
            telemetry,
        }
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
        let known = (name, tool.as_ref().ok());
        let (recorder, meta) = (self.recorder.as_ref(), options.meta.as_ref());
        let mut recording =
            Recording::start(recorder, &self.telemetry, context, known, &arguments, meta);
        recording.pass_on(&mut options.meta);
        let outcome = match tool {
            Ok(tool) => self.decide(&tool, arguments, context, &mut recording, options).await,
            Err(unknown) => Err(unknown),
        };
        recording.end(&outcome);
        outcome
    }

    /// Takes in what a call returned before, so that it is known where a later call has it from: a run
    /// that goes on is answered from the journal, and its calls do not come here again.
    pub fn recall(&self, name: &str, context: &CallContext, result: &Value) {
        if let Ok(tool) = self.resolve(name)
            && self.guard.policy().flow() != FlowMode::Off
        {
            let labels = self.guard.policy_of(&tool).labels();
            watch::learn(context, &tool, labels, &Flow::NONE, result);
        }
    }

    /// What the policy makes of calls.
    pub fn policy(&self) -> &Policy {
        self.guard.policy()
    }

    /// What the policy makes of the calls of a tool.
    pub fn policy_of(&self, tool: &Tool) -> Arc<ToolPolicy> {
        self.guard.policy_of(tool)
    }

    /// Forgets what was granted for a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.guard.end_session(session);
    }

    /// Forgets what was granted for a run. Touches the disk.
    pub fn end_run(&self, run: &RunContext) {
        self.guard.end_run(run);
    }

    /// Writes down a decision that is about no call, where there is a record.
    pub fn note(&self, record: AuditRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.note(record);
        }
    }

    /// Waits until everything so far is in the audit log.
    pub fn flush(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.flush();
        }
    }

    /// Decides on a call of a tool that exists, and makes it.
    async fn decide(
        &self,
        tool: &Tool,
        arguments: Value,
        context: &CallContext,
        recording: &mut Recording<'_>,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let policy = self.guard.policy_of(tool);
        if policy.is_hidden() {
            return Err(self.unknown(tool.name.as_str()));
        }
        let arguments =
            if self.validates(&tool.id) { self.check(tool, arguments).await? } else { arguments };
        let flow = watch::flow(context, tool, &arguments, self.guard.policy().flow());
        let call = Call { tool, policy: &policy, context, flow };
        let decision = policy.decide(&arguments, &call.flow);
        recording.decided(&decision);
        self.authorised(&call, arguments, &decision, recording, options).await
    }

    /// Makes a call that is decided, if it may be made, and learns its result.
    async fn authorised(
        &self,
        call: &Call<'_>,
        arguments: Value,
        decision: &Decision,
        recording: &mut Recording<'_>,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let Call { tool, policy, context, flow } = call;
        let permit = self.guard.authorise(context, tool, &arguments, decision, &options).await;
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                write_down(call, decision, None)?;
                return Err(error);
            }
        };
        if !recording.permitted(&permit).await {
            return Err(BrokerError::Unrecorded { tool: tool.name.to_string() });
        }
        let arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        };
        write_down(call, decision, Some(&permit))?;
        let ToolId { server, tool: own } = &tool.id;
        let result = self.upstream.call(server, own, arguments, options).await?;
        if self.guard.policy().flow() != FlowMode::Off {
            watch::learn(context, tool, policy.labels(), flow, &result);
        }
        Ok(result)
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

/// Writes down what was decided of a run's call. With a permit it is sent next, and not before.
fn write_down(
    call: &Call<'_>,
    decision: &Decision,
    permit: Option<&Permit>,
) -> Result<(), BrokerError> {
    let Some((ledger, number)) = call.context.ledger() else { return Ok(()) };
    let evidence = &call.flow.evidence;
    let flow = (!evidence.is_empty()).then(|| serde_json::to_string(evidence).unwrap_or_default());
    let rule = record::rule_of(decision, permit);
    let decided = Decided {
        verdict: decision.verdict.as_str(),
        rule: &rule,
        sent: permit.is_some(),
        flow: flow.as_deref(),
    };
    ledger
        .decided(number, &decided)
        .map_err(|why| BrokerError::Unwritten { tool: call.tool.name.to_string(), why })
}
