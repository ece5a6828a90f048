//! What people are shown of a run that the journal has: its state, and which result went into which argument.

use serde::Serialize;
use toolgate_policy::{Contact, Evidence, LabelSet, ScriptWay};
use toolgate_store::{Journal, JournalError, RunCall, RunState, RunSummary};

/// The state of a run, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStanding {
    /// The state in the journal.
    Is(RunState),
    /// The journal says that it is running, but its process has ended.
    Interrupted,
}

impl RunStanding {
    /// The state of a run.
    pub fn of(journal: &dyn Journal, run: &RunSummary) -> Result<Self, JournalError> {
        let interrupted = run.state == RunState::Running && !journal.is_running(&run.id)?;
        Ok(if interrupted { Self::Interrupted } else { Self::Is(run.state) })
    }

    /// The state in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Is(state) => state.name(),
            Self::Interrupted => "interrupted",
        }
    }

    /// The outcome of a call of the run, in a word.
    pub fn of_call(self, call: &RunCall) -> &'static str {
        match (&call.outcome, call.sent) {
            _ if call.unknown => "unknown",
            (Some(Ok(_)), _) => "completed",
            (Some(Err(_)), _) => "failed",
            (None, true) if self == Self::Is(RunState::Running) => "in flight",
            (None, true) => "unknown",
            (None, false) if self == Self::Is(RunState::Waiting) => "waiting",
            (None, false) => "not made",
        }
    }
}

/// Data on its way from a result to a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFlow {
    /// The call of the result.
    pub from: RunFlowEnd,
    /// The call whose arguments contain it.
    pub to: RunFlowEnd,
    /// The argument in which it was found, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// The labels of the data.
    pub labels: LabelSet,
    /// How the call relates to the result.
    pub contact: Contact,
    /// How the script moves it, if its text says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<ScriptWay>,
}

/// One end of a flow.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunFlowEnd {
    /// The number of the call in the run; `None` for data that the session had outside of the run.
    pub call: Option<u64>,
    /// The tool.
    pub tool: String,
}

impl RunFlow {
    /// All data flows of a run, ordered by the receiving call. Unreadable entries are left out.
    pub fn all(calls: &[RunCall]) -> Vec<Self> {
        let mut flows = Vec::new();
        for call in calls {
            let evidence = call.flow.as_deref().and_then(|flow| serde_json::from_str(flow).ok());
            let evidence: Vec<Evidence> = evidence.unwrap_or_default();
            for seen in evidence {
                let Evidence { tool, run_call, labels, contact, argument, way, .. } = seen;
                let earlier = calls.iter().find(|earlier| Some(earlier.number) == run_call);
                let from = earlier.map_or_else(
                    || format!("{}/{}", tool.server, tool.tool),
                    |earlier| earlier.name.clone(),
                );
                flows.push(Self {
                    from: RunFlowEnd { call: run_call, tool: from },
                    to: RunFlowEnd { call: Some(call.number), tool: call.name.clone() },
                    argument,
                    labels,
                    contact,
                    way,
                });
            }
        }
        flows
    }
}

/// The message of an error of a call. The journal has its content blocks after it.
pub fn error_message(error: &str) -> &str {
    error.rsplit_once('\0').map_or(error, |(message, _)| message)
}
