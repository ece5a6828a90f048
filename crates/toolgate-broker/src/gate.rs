//! What every request to a server passes, and what takes in what comes of it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_catalog::Tool;
use toolgate_policy::{Decision, Flow, FlowMode, LabelSet, Policy, ToolPolicy};
use toolgate_store::AuditRecord;
use toolgate_telemetry::Telemetry;
use toolgate_upstream::{CallError, CallOptions};

use crate::{
    context::{CallContext, Decided, RunContext, SessionContext},
    error::BrokerError,
    guard::{Guard, GuardSettings, Permit},
    lanes::{Lanes, Place},
    record::{self, Recorder},
    recording::Recording,
    watch::{self, ResultOrigin},
};

/// Decides on requests to servers, whoever sends them: calls of tools, and what else is asked of a
/// server (as [`toolgate_policy::request_as_tool`] sees it).
///
/// > **Invariant:** nothing that brings data in or out is sent to a server before [`Gate::admit`], and
/// > what came of it is handed to [`Admitted::finish`].
#[derive(Debug)]
pub struct Gate {
    guard: Guard,
    lanes: Lanes,
    recorder: Option<Arc<Recorder>>,
    telemetry: Telemetry,
}

/// A request that may be sent now, once. Dropped without an end, its outcome is unknown.
#[derive(Debug)]
pub struct Admitted {
    gate: Arc<Gate>,
    request: Judged,
    recording: Recording,
    /// Held until the end.
    _place: Option<Place>,
}

/// A request that is being decided.
#[derive(Debug)]
struct Judged {
    tool: Tool,
    policy: Arc<ToolPolicy>,
    context: CallContext,
    flow: Flow,
}

impl Gate {
    /// A gate with this policy, and this memory.
    pub fn new(settings: GuardSettings) -> Self {
        let GuardSettings {
            policy,
            journal,
            no_journal,
            endpoints,
            audit,
            script_calls,
            telemetry,
        } = settings;
        Self {
            guard: Guard::new(policy, journal, no_journal, endpoints),
            lanes: Lanes::new(script_calls),
            recorder: audit.map(|audit| Arc::new(Recorder::new(audit))),
            telemetry,
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

    /// Lets a request through, or says why not: sees which earlier results the arguments contain,
    /// decides by the policy, asks a person where it says so, and records what was decided.
    pub async fn admit(
        self: &Arc<Self>,
        tool: &Tool,
        arguments: &Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        let called = (tool.name.as_str(), Some(tool));
        let recording = self.begin(context, called, arguments, options.meta.as_ref());
        self.admit_begun(recording, tool, arguments, context, options).await
    }

    /// Records that somebody called a tool that does not exist, or that nobody is shown.
    pub fn note_unknown(&self, name: &str, arguments: &Value, context: &CallContext) {
        let unknown = BrokerError::UnknownTool { name: name.to_owned(), nearest: Vec::new() };
        self.begin(context, (name, None), arguments, None).end(Err(&unknown));
    }

    /// Begins the record of a request: of a tool, or of none that exists.
    pub(crate) fn begin(
        &self,
        context: &CallContext,
        called: (&str, Option<&Tool>),
        arguments: &Value,
        meta: Option<&Map<String, Value>>,
    ) -> Recording {
        let recorder = self.recorder.clone();
        Recording::start(recorder, &self.telemetry, context, called, arguments, meta)
    }

    /// Lets a request through whose record has begun.
    pub(crate) async fn admit_begun(
        self: &Arc<Self>,
        mut recording: Recording,
        tool: &Tool,
        arguments: &Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        let policy = self.guard.policy_of(tool);
        let flow = watch::flow(context, tool.name.as_str(), arguments, self.policy().flow());
        let decision = policy.decide(arguments, &flow);
        recording.decided(&decision);
        let (tool, context) = (tool.clone(), context.clone());
        let request = Judged { tool, policy, context, flow };
        match self.permit(&request, arguments, &decision, &mut recording, options).await {
            Ok(place) => Ok(Admitted { gate: Arc::clone(self), request, recording, _place: place }),
            Err(error) => {
                recording.end(Err(&error));
                Err(error)
            }
        }
    }

    /// Takes in what a call returned before, so that it is known where a later call has it from: a run
    /// that goes on is answered from the journal, and its calls do not come here again. `known` is what
    /// was written down of it then, and `tool` what has the name now.
    pub(crate) fn recall(
        &self,
        (name, tool): (&str, Option<&Tool>),
        known: Option<&ResultOrigin>,
        arguments: &Value,
        context: &CallContext,
        result: &Value,
    ) {
        let mode = self.policy().flow();
        if mode == FlowMode::Off {
            return;
        }
        let known = match (known, tool) {
            (Some(known), _) => known.clone(),
            (None, Some(tool)) => ResultOrigin { tool: tool.id.clone(), labels: LabelSet::EMPTY },
            (None, None) => ResultOrigin::unknown(name),
        };
        let now = tool.filter(|tool| tool.id == known.tool);
        let now = now.map_or(LabelSet::EMPTY, |tool| self.policy_of(tool).labels());
        // What it carried then, its result has labels of.
        let flow = watch::flow(context, name, arguments, mode);
        let origin = ResultOrigin::new(&known.tool, known.labels.union(now), &flow);
        watch::learn(context, &origin, result);
    }

    /// Forgets what was granted for a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.guard.end_session(session);
    }

    /// Forgets what was granted for a run. Touches the disk.
    pub fn end_run(&self, run: &RunContext) {
        self.guard.end_run(run);
    }

    /// Writes down a decision that is about no request, where there is a record.
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

    /// Authorises what is decided, waits for its turn, and writes it down.
    async fn permit(
        &self,
        request: &Judged,
        arguments: &Value,
        decision: &Decision,
        recording: &mut Recording,
        options: &CallOptions,
    ) -> Result<Option<Place>, BrokerError> {
        let Judged { tool, context, .. } = request;
        let permit = self.guard.authorise(context, tool, arguments, decision, options).await;
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                write_down(request, decision, None)?;
                return Err(error);
            }
        };
        let place = match context.run {
            Some(_) => tokio::select! {
                place = self.lanes.enter(&tool.id.server) => place,
                () = options.cancel.cancelled() => return Err(CallError::Cancelled.into()),
            },
            None => None,
        };
        if !recording.permitted(&permit).await {
            return Err(BrokerError::Unrecorded { tool: tool.name.to_string() });
        }
        write_down(request, decision, Some(&permit))?;
        Ok(place)
    }
}

impl Admitted {
    /// Takes in what came of the request: its data is known from now on, and its end is recorded.
    pub fn finish(self, outcome: Result<&Value, &BrokerError>) {
        match outcome {
            Ok(result) => self.take_in(result),
            Err(BrokerError::Call(error)) => {
                if let Some(said) = words_of(error) {
                    self.take_in(&said);
                }
            }
            Err(_) => {}
        }
        self.recording.end(outcome);
    }

    /// Notes that the server has no result: it refused, or was not there. What it said is data too.
    pub fn failed(self, said: &Value) {
        self.take_in(said);
        self.recording.fail();
    }

    /// Takes in something that the server said before the end.
    pub fn take_in(&self, said: &Value) {
        if self.gate.policy().flow() != FlowMode::Off {
            let Judged { context, .. } = &self.request;
            watch::learn(context, &self.request.origin(), said);
        }
    }

    /// Tells the server which trace the request belongs to.
    pub fn pass_on(&self, meta: &mut Option<Map<String, Value>>) {
        self.recording.pass_on(meta);
    }
}

impl Judged {
    /// Where its result comes from.
    fn origin(&self) -> ResultOrigin {
        ResultOrigin::new(&self.tool.id, self.policy.labels(), &self.flow)
    }
}

/// What of an error may be the server's own words.
fn words_of(error: &CallError) -> Option<Value> {
    match error {
        CallError::Refused { error, .. } => Some(json!([error.message, error.data])),
        CallError::Transport { message, .. } => Some(json!(message)),
        CallError::Unanswered { asked, why, .. } => Some(json!([asked, why])),
        CallError::NotConnected { failure, .. } | CallError::Unauthorized { failure, .. } => {
            Some(json!(failure.reason))
        }
        _ => None,
    }
}

/// Writes down what was decided of a run's call. With a permit it is sent next, and not before.
fn write_down(
    request: &Judged,
    decision: &Decision,
    permit: Option<&Permit>,
) -> Result<(), BrokerError> {
    let Some((ledger, number)) = request.context.ledger() else { return Ok(()) };
    let evidence = &request.flow.evidence;
    let flow = (!evidence.is_empty()).then(|| serde_json::to_string(evidence).unwrap_or_default());
    let rule = record::rule_of(decision, permit);
    let origin = serde_json::to_string(&request.origin()).unwrap_or_default();
    let decided = Decided {
        verdict: decision.verdict.as_str(),
        rule: &rule,
        sent: permit.is_some(),
        flow: flow.as_deref(),
        origin: &origin,
    };
    ledger
        .decided(number, &decided)
        .map_err(|why| BrokerError::Unwritten { tool: request.tool.name.to_string(), why })
}
