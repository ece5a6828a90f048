//! What people are shown of a run that the journal has: its state, and which result went into which argument.

use serde::Serialize;
use serde_json::Value;
use toolgate_flow::{DataOrigin, FlowLimits, Memory};
use toolgate_policy::{Contact, Evidence, LabelSet, ScriptWay};
use toolgate_store::{Journal, JournalError, RunCall, RunDetail, RunState, RunSummary};

use crate::code::RunGraph;

/// How much of the journal of a run is compared to find flows. What is beyond it is not looked at.
const COMPARED_CALLS: usize = 500;
const COMPARED_BYTES: usize = 4 * 1024 * 1024;
/// A shorter value says nothing of where it comes from, and a longer one is found by its content.
const SHORTEST_VALUE: usize = 3;
const LONGEST_VALUE: usize = 200;
/// How many values of a call are looked for, and in how many bytes of results.
const MOST_ARGUMENTS: usize = 100;
const KEPT_BYTES: usize = 256 * 1024;
/// How deep a result is read.
const DEEPEST: usize = 32;

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
    /// All data flows of a run: those that decided on calls, and those that a comparison of results and arguments
    /// finds. Where nothing has labels, only the comparison knows of flows.
    pub fn observed(detail: &RunDetail) -> Vec<Self> {
        let mut flows = Self::all(&detail.calls);
        let ends = |flow: &Self| (flow.from.call, flow.to.call);
        for found in Self::compared(detail) {
            let is_known = flows
                .iter()
                .any(|flow| ends(flow) == ends(&found) && flow.contact == Contact::Carried);
            if !is_known {
                flows.push(found);
            }
        }
        flows.sort_by_key(|flow| (flow.to.call, flow.from.call));
        flows
    }

    /// The flows that a comparison of results and arguments finds: long pieces by their content; short values where the
    /// text of the script says that the result can reach the argument.
    fn compared(detail: &RunDetail) -> Vec<Self> {
        let graph =
            detail.graph.as_deref().and_then(|it| serde_json::from_str::<RunGraph>(it).ok());
        let mut memory = Memory::with_limits(FlowLimits::default());
        memory.knows(&detail.code);
        let mut seen: Vec<(u64, String)> = Vec::new();
        let (mut flows, mut bytes, mut kept) = (Vec::new(), 0, 0);
        for call in detail.calls.iter().take(COMPARED_CALLS) {
            bytes += call.arguments.len();
            let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { continue };
            let mut found: Vec<(u64, String)> = memory
                .trace(&call.name, &arguments)
                .matches
                .into_iter()
                .map(|part| (part.origin.call, part.field))
                .collect();
            let mut looked_at = 0;
            each_value(&arguments, "", 0, &mut |pointer, value| {
                looked_at += 1;
                if looked_at > MOST_ARGUMENTS || value.len() > LONGEST_VALUE {
                    return;
                }
                for (from, _) in seen.iter().filter(|(_, text)| text.contains(value)) {
                    let earlier = detail.calls.iter().find(|call| call.number == *from);
                    let may_reach = earlier.is_some_and(|earlier| {
                        reaches(graph.as_ref(), &earlier.name, &call.name, pointer)
                    });
                    if may_reach && found.iter().all(|(known, _)| known != from) {
                        found.push((*from, pointer.to_owned()));
                    }
                }
            });
            for (from, argument) in found {
                let tool = detail.calls.iter().find(|call| call.number == from);
                flows.push(Self {
                    from: RunFlowEnd {
                        call: Some(from),
                        tool: tool.map(|call| call.name.clone()).unwrap_or_default(),
                    },
                    to: RunFlowEnd { call: Some(call.number), tool: call.name.clone() },
                    argument: Some(argument),
                    labels: LabelSet::EMPTY,
                    contact: Contact::Carried,
                    way: None,
                });
            }
            let Some(Ok(result)) = &call.outcome else { continue };
            bytes += result.len();
            if bytes > COMPARED_BYTES {
                break;
            }
            let Ok(result) = serde_json::from_str::<Value>(result) else { continue };
            memory.learn(DataOrigin::new(call.number, call.name.clone()), &result);
            each_value(&result, "", 0, &mut |_, value| {
                kept += value.len();
                if kept <= KEPT_BYTES {
                    seen.push((call.number, value.to_owned()));
                }
            });
        }
        flows
    }

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

/// Whether the text of a script says that a result of a tool can reach an argument of another.
fn reaches(graph: Option<&RunGraph>, from: &str, to: &str, pointer: &str) -> bool {
    let first = pointer.split('/').nth(1).unwrap_or_default();
    graph.is_some_and(|graph| {
        graph.flows.iter().any(|edge| {
            edge.from.tool.as_deref().is_none_or(|tool| tool == from)
                && edge.to.tool.as_deref().is_none_or(|tool| tool == to)
                && edge.argument.as_deref().is_none_or(|argument| argument == first)
                && !edge.is_choice
        })
    })
}

/// Calls `seen` with the texts and numbers in a value, and where they are.
fn each_value(value: &Value, pointer: &str, depth: usize, seen: &mut dyn FnMut(&str, &str)) {
    if depth > DEEPEST {
        return;
    }
    match value {
        Value::String(text) if text.chars().count() >= SHORTEST_VALUE => seen(pointer, text),
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() >= SHORTEST_VALUE {
                seen(pointer, &text);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_value(item, &format!("{pointer}/{index}"), depth + 1, seen);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                each_value(field, &format!("{pointer}/{name}"), depth + 1, seen);
            }
        }
        _ => {}
    }
}

/// The message of an error of a call. The journal has its content blocks after it.
pub fn error_message(error: &str) -> &str {
    error.rsplit_once('\0').map_or(error, |(message, _)| message)
}
