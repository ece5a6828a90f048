//! Which data a call carries, and what rules may ask of it.
//!
//! Who watches the data is the caller: it compares arguments with earlier results and says what it
//! found as [`Evidence`]. Here it is only weighed.

use serde::{Deserialize, Serialize};
use toolgate_catalog::ToolId;

use crate::{FlowMode, LabelSet};

/// How much evidence a decision repeats.
const MAX_SHOWN: usize = 16;

/// What is known of the data behind a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// One entry for each earlier result that matters, in the order in which they came.
    pub evidence: Vec<Evidence>,
}

/// An earlier result, and how close the call has come to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The tool whose result it is.
    pub tool: ToolId,
    /// Which call it was, as the caller counts them; 0 for one of an earlier session.
    pub call: u64,
    /// The call of the same run that it came from, by its number there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_call: Option<u64>,
    /// What is said of its data.
    pub labels: LabelSet,
    /// How close the call has come to it.
    pub contact: Contact,
    /// The argument in which it was found, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// How close a call has come to an earlier result, from afar to near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Contact {
    /// The run or the session has seen it.
    Touched,
    /// A value of it, such as a name or an address, is an argument: it has a say in what is done.
    Steered,
    /// Its content is in the arguments.
    Carried,
}

/// What a rule asks of the data. At least one of the sets has a label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCondition {
    /// The arguments carry data with one of these labels.
    pub carries: LabelSet,
    /// Data with one of these labels has a say in the call.
    pub steered_by: LabelSet,
}

/// What shows that a condition holds.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// A few of the results.
    pub(crate) evidence: Vec<Evidence>,
    /// The labels of all.
    pub(crate) labels: LabelSet,
    /// The tools of all.
    pub(crate) origins: Vec<ToolId>,
}

impl Flow {
    /// Nothing is known of any data: a first call, or nobody watches.
    pub const NONE: Self = Self { evidence: Vec::new() };
}

impl FlowCondition {
    /// Whether nothing is asked.
    pub fn is_empty(self) -> bool {
        self.carries.is_empty() && self.steered_by.is_empty()
    }

    /// Whether it is about all the labels that the other is about.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.carries.is_superset(other.carries) && self.steered_by.is_superset(other.steered_by)
    }

    /// What shows that it holds; nothing where it does not.
    pub(crate) fn evidence(self, flow: &Flow, mode: FlowMode) -> Option<Shown> {
        // By labels alone, what was seen may be anywhere.
        let (carried, steered) = match mode {
            FlowMode::Off => return None,
            FlowMode::Content => (Contact::Carried, Contact::Steered),
            FlowMode::Labels => (Contact::Touched, Contact::Touched),
        };
        let mut shown = Shown::default();
        for (labels, needed) in [(self.carries, carried), (self.steered_by, steered)] {
            if labels.is_empty() {
                continue;
            }
            let fits = |evidence: &&Evidence| {
                evidence.contact >= needed && !evidence.labels.intersection(labels).is_empty()
            };
            let fitting = || flow.evidence.iter().filter(fits);
            fitting().next()?;
            // A person is shown a few; what they agree to is said of all.
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
