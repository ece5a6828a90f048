//! The data that a call carries, and the conditions that rules have for it.
//!
//! The caller compares arguments with earlier results and reports matches as [`Evidence`]. This
//! module only evaluates them.

use serde::{Deserialize, Serialize};
use toolgate_catalog::ToolId;

use crate::{FlowMode, LabelSet};

/// The number of results in the evidence of a decision.
const MAX_SHOWN: usize = 16;

/// The data behind a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// One entry for each earlier result that matters, in the order of the results.
    pub evidence: Vec<Evidence>,
}

/// An earlier result, and how the call relates to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The tool whose result it is.
    pub tool: ToolId,
    /// The number of the call, as the caller counts them; 0 for a call of an earlier session.
    pub call: u64,
    /// The number of the call in the same run that the result came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_call: Option<u64>,
    /// The labels of the result.
    pub labels: LabelSet,
    /// How the call relates to the result.
    pub contact: Contact,
    /// The argument that matched, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
    /// How the script moves the result to the argument, if that is known from its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<ScriptWay>,
}

/// How a script moves a result to an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptWay {
    /// The variables that the data passes through, in their order.
    pub through: Vec<String>,
    /// Whether the result only decides whether the call is made, or which value is sent.
    pub is_choice: bool,
}

/// How a call relates to an earlier result, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contact {
    /// The run or the session has received the result.
    Touched,
    /// A value of the result, such as a name or an address, is an argument and so influences the
    /// call.
    Steered,
    /// The content of the result is in the arguments.
    Carried,
}

/// The condition of a rule for the data. At least one of the sets has a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCondition {
    /// The arguments carry data with one of these labels.
    pub carries: LabelSet,
    /// Data with one of these labels influences the call.
    pub steered_by: LabelSet,
}

/// The evidence that a condition holds.
#[derive(Debug, Default)]
pub(crate) struct FlowEvidence {
    /// A few of the results.
    pub(crate) evidence: Vec<Evidence>,
    /// The labels of all.
    pub(crate) labels: LabelSet,
    /// The tools of all.
    pub(crate) origins: Vec<ToolId>,
}

impl Flow {
    /// No evidence: a first call, or data is not tracked.
    pub const NONE: Self = Self { evidence: Vec::new() };
}

impl FlowCondition {
    /// Whether there is no condition.
    pub fn is_empty(self) -> bool {
        self.carries.is_empty() && self.steered_by.is_empty()
    }

    /// Whether it includes all labels of the other condition.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.carries.is_superset(other.carries) && self.steered_by.is_superset(other.steered_by)
    }

    /// The evidence that the condition holds, or `None` if it does not hold.
    pub(crate) fn evidence(self, flow: &Flow, mode: FlowMode) -> Option<FlowEvidence> {
        // With labels alone, everything that the run has received may be in the arguments.
        let (carried, steered) = match mode {
            FlowMode::Off => return None,
            FlowMode::Content | FlowMode::Program => (Contact::Carried, Contact::Steered),
            FlowMode::Labels => (Contact::Touched, Contact::Touched),
        };
        let mut shown = FlowEvidence::default();
        for (labels, needed) in [(self.carries, carried), (self.steered_by, steered)] {
            if labels.is_empty() {
                continue;
            }
            let fits = |evidence: &&Evidence| {
                evidence.contact >= needed && !evidence.labels.intersection(labels).is_empty()
            };
            let fitting = || flow.evidence.iter().filter(fits);
            fitting().next()?;
            // A person sees a few results. Their grant covers all of them.
            for evidence in fitting() {
                shown.labels = shown.labels.union(evidence.labels);
                if !shown.origins.contains(&evidence.tool) {
                    shown.origins.push(evidence.tool.clone());
                }
            }
            shown.evidence.extend(fitting().take(MAX_SHOWN).cloned());
        }
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Label;

    fn seen(labels: &[Label], contact: Contact) -> Flow {
        let labels = labels.iter().copied().collect();
        let tool = ToolId::new("crm", "get_customer");
        Flow {
            evidence: vec![Evidence {
                tool,
                call: 1,
                run_call: None,
                labels,
                contact,
                argument: None,
                way: None,
            }],
        }
    }

    #[test]
    fn content_must_be_found_and_labels_must_be_touched() {
        let carries = FlowCondition { carries: Label::Private.into(), ..Default::default() };
        let steered = FlowCondition { steered_by: Label::Private.into(), ..Default::default() };
        let holds = |condition: FlowCondition, contact, mode| {
            condition.evidence(&seen(&[Label::Private], contact), mode).is_some()
        };
        assert!(holds(carries, Contact::Carried, FlowMode::Content));
        assert!(!holds(carries, Contact::Steered, FlowMode::Content));
        assert!(holds(steered, Contact::Steered, FlowMode::Content));
        assert!(holds(steered, Contact::Carried, FlowMode::Content));
        assert!(!holds(steered, Contact::Touched, FlowMode::Content));
        assert!(holds(carries, Contact::Touched, FlowMode::Labels));
        assert!(!holds(carries, Contact::Carried, FlowMode::Off));
    }

    #[test]
    fn both_sides_must_have_their_evidence() {
        let both =
            FlowCondition { carries: Label::Private.into(), steered_by: Label::Untrusted.into() };
        let mode = FlowMode::Content;
        assert!(both.evidence(&seen(&[Label::Private], Contact::Carried), mode).is_none());
        let all = [Label::Private, Label::Untrusted];
        assert!(both.evidence(&seen(&all, Contact::Carried), mode).is_some());
    }
}
