//! What every request to a server passes, and what takes in what comes of it.

use std::{sync::Arc, time::Instant};

use serde_json::Value;
use toolgate_catalog::Tool;
use toolgate_policy::{Decision, Flow, FlowMode, Policy, ToolPolicy};
use toolgate_store::AuditRecord;
use toolgate_upstream::{CallError, CallOptions};

use crate::{
    context::{CallContext, Decided, RunContext, SessionContext},
    error::BrokerError,
    guard::{Guard, GuardSettings, Permit},
    lanes::{Lanes, Place},
    record::{self, Outcome, Recorder},
    watch,
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
    recorder: Option<Recorder>,
}

/// A request that may be sent now, once. Dropped without an end, its outcome is unknown.
#[derive(Debug)]
pub struct Admitted {
    gate: Arc<Gate>,
    request: Judged,
    record: Option<AuditRecord>,
    started: Instant,
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
        let GuardSettings { policy, journal, audit, script_calls } = settings;
        Self {
            guard: Guard::new(policy, journal),
            lanes: Lanes::new(script_calls),
            recorder: audit.map(Recorder::new),
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
        let started = Instant::now();
        let policy = self.guard.policy_of(tool);
        let flow = watch::flow(context, tool, arguments, self.policy().flow());
        let decision = policy.decide(arguments, &flow);
        let (tool, context) = (tool.clone(), context.clone());
        let request = Judged { tool, policy, context, flow };
        let recorder = self.recorder.as_ref();
        let mut record =
            recorder.map(|it| it.decided(&request.context, &request.tool, arguments, &decision));
        let permitted = self.permit(&request, arguments, &decision, &mut record, options).await;
        match permitted {
            Ok(place) => {
                Ok(Admitted { gate: Arc::clone(self), request, record, started, _place: place })
            }
            Err(error) => {
                if let Some((recorder, record)) = recorder.zip(record) {
                    recorder.after(record, ended(Err(&error)), started.elapsed());
                }
                Err(error)
            }
        }
    }

    /// Takes in what a call returned before, so that it is known where a later call has it from: a run
    /// that goes on is answered from the journal, and its calls do not come here again.
    pub fn recall(&self, tool: &Tool, arguments: &Value, context: &CallContext, result: &Value) {
        let mode = self.policy().flow();
        if mode != FlowMode::Off {
            let labels = self.policy_of(tool).labels();
            // What it carried then, its result has labels of.
            let flow = watch::flow(context, tool, arguments, mode);
            watch::learn(context, tool, labels, &flow, result);
        }
    }

    /// Forgets what was granted for a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.guard.end_session(session);
    }

    /// Forgets what was granted for a run. Touches the disk.
    pub fn end_run(&self, run: &RunContext) {
        self.guard.end_run(run);
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
        record: &mut Option<AuditRecord>,
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
        if let (Some(recorder), Some(record)) = (&self.recorder, record) {
            record::permitted(record, &permit);
            if !recorder.before(record).await {
                return Err(BrokerError::Unrecorded { tool: tool.name.to_string() });
            }
        }
        write_down(request, decision, Some(&permit))?;
        Ok(place)
    }
}

impl Admitted {
    /// Takes in what came of the request: its data is known from now on, and its end is recorded.
    pub fn finish(mut self, outcome: Result<&Value, &BrokerError>) {
        if let Ok(result) = outcome
            && self.gate.policy().flow() != FlowMode::Off
        {
            let Judged { tool, policy, context, flow } = &self.request;
            watch::learn(context, tool, policy.labels(), flow, result);
        }
        self.record_end(ended(outcome));
    }

    /// Notes that the server has no result: it refused, or was not there.
    pub fn failed(mut self) {
        self.record_end(Outcome::Error);
    }

    fn record_end(&mut self, outcome: Outcome) {
        if let Some((recorder, record)) = self.gate.recorder.as_ref().zip(self.record.take()) {
            recorder.after(record, outcome, self.started.elapsed());
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.record_end(Outcome::Unknown);
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
    let decided = Decided {
        verdict: decision.verdict.as_str(),
        rule: &rule,
        sent: permit.is_some(),
        flow: flow.as_deref(),
    };
    ledger
        .decided(number, &decided)
        .map_err(|why| BrokerError::Unwritten { tool: request.tool.name.to_string(), why })
}

/// How a request ended, for the record.
fn ended(outcome: Result<&Value, &BrokerError>) -> Outcome {
    match outcome {
        Ok(result) => {
            let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
            Outcome::Result { bytes: record::size(result), is_error }
        }
        Err(BrokerError::Waiting { .. }) => Outcome::Waiting,
        Err(
            BrokerError::Denied { .. }
            | BrokerError::Unrecorded { .. }
            | BrokerError::Unwritten { .. },
        ) => Outcome::Refused,
        Err(BrokerError::Call(error)) => match **error {
            CallError::Stopped { .. } | CallError::TimedOut { .. } => Outcome::Unknown,
            _ => Outcome::Error,
        },
        Err(_) => Outcome::Error,
    }
}
