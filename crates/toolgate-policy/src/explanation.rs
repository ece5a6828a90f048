//! What was decided, and why not otherwise.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;
use toolgate_catalog::ToolId;

use crate::definitions::shown;
use crate::{Evidence, LabelSet, Mode, Rule, Verdict};

/// How many of the rules that lost are kept.
const MAX_CONSIDERED: usize = 32;
/// How much of a name that a server chose is shown.
const LONGEST_NAME: usize = 128;

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// What decided.
    pub ground: Ground,
    /// What rules about data found, where they do not simply allow. A person who is asked sees the
    /// evidence of all of them, also where another rule would have asked anyway.
    pub flows: Vec<FlowFinding>,
}

/// What decided a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ground {
    /// A rule.
    Rule(Arc<Rule>),
    /// No rule; so the mode did.
    Mode(Mode),
}

/// A rule about data that applies, and what shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowFinding {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The earlier results that the call has to do with; at most a few are repeated.
    pub evidence: Vec<Evidence>,
    /// The labels of all of them.
    pub labels: LabelSet,
    /// The tools of all of them.
    pub origins: Vec<ToolId>,
}

/// A decision with the rules that applied too and why they lost.
///
/// Its text is for a person:
///
/// ```text
/// ask: `policy.rules[1]` (toolgate.json:9:7), a pattern: "Issues are public"
///   `policy.rules[0]` (toolgate.json:8:7) says allow, but is less specific: a server
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What becomes of the call.
    pub decision: Decision,
    /// The other rules that applied, the most specific first.
    pub considered: Vec<Considered>,
    /// How many more there are.
    pub left_out: usize,
    /// The arguments that the deciding rule could not judge, which counted against the call.
    pub unclear: Vec<String>,
}

/// A rule that applied and did not decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Considered {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Why it did not decide.
    pub lost: Lost,
}

/// Why a rule that applied did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Lost {
    /// Another one denies.
    ToADenial,
    /// Another one is more specific.
    LessSpecific,
    /// Another one, as specific, is further down.
    Earlier,
    /// It answers another question (the call, or its data), and the stricter answer holds.
    NotAsStrict,
}

impl Decision {
    /// Why, in the words of the configuration.
    pub fn reason(&self) -> Option<&str> {
        match &self.ground {
            Ground::Rule(rule) => rule.reason.as_deref(),
            Ground::Mode(_) => None,
        }
    }

    /// The labels of the data that the call was found to have to do with.
    pub fn flow_labels(&self) -> LabelSet {
        self.flows.iter().fold(LabelSet::EMPTY, |labels, flow| labels.union(flow.labels))
    }

    /// The tools that this data came from, each once.
    pub fn flow_origins(&self) -> Vec<ToolId> {
        let all: BTreeSet<&ToolId> = self.flows.iter().flat_map(|flow| &flow.origins).collect();
        all.into_iter().cloned().collect()
    }

    /// The evidence of all rules about data, each result once.
    pub fn evidence(&self) -> Vec<&Evidence> {
        let mut all: Vec<&Evidence> = Vec::new();
        for evidence in self.flows.iter().flat_map(|flow| &flow.evidence) {
            if !all.contains(&evidence) {
                all.push(evidence);
            }
        }
        all
    }
}

impl Explanation {
    /// Sorts out why each rule of `applied` lost; the one that decided is left out.
    pub(crate) fn new(decision: Decision, applied: Vec<Arc<Rule>>, arguments: &Value) -> Self {
        let is_winner = |rule: &Arc<Rule>| matches!(&decision.ground, Ground::Rule(winner) if Arc::ptr_eq(winner, rule));
        let mut considered: Vec<Considered> = applied
            .into_iter()
            .filter(|rule| !is_winner(rule))
            .map(|rule| Considered { lost: lost(&decision, &rule), rule })
            .collect();
        considered.sort_by_key(|one| std::cmp::Reverse(one.rule.specificity()));
        let left_out = considered.len().saturating_sub(MAX_CONSIDERED);
        considered.truncate(MAX_CONSIDERED);
        let unclear = match &decision.ground {
            Ground::Rule(rule) => rule.arguments.unclear(arguments),
            Ground::Mode(_) => Vec::new(),
        };
        Self { decision, considered, left_out, unclear }
    }
}

fn lost(decision: &Decision, rule: &Rule) -> Lost {
    let Ground::Rule(winner) = &decision.ground else { return Lost::NotAsStrict };
    if decision.verdict == Verdict::Deny && rule.verdict != Verdict::Deny {
        Lost::ToADenial
    } else if winner.flow.is_empty() != rule.flow.is_empty() {
        Lost::NotAsStrict
    } else if winner.specificity() > rule.specificity() {
        Lost::LessSpecific
    } else if winner.specificity() == rule.specificity() {
        Lost::Earlier
    } else {
        Lost::NotAsStrict
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { verdict, ground, .. } = &self.decision;
        match ground {
            Ground::Rule(rule) => {
                write!(formatter, "{verdict}: {}, {}", rule.origin, rule.specificity())?;
                if let Some(reason) = &rule.reason {
                    write!(formatter, ": \"{reason}\"")?;
                }
            }
            Ground::Mode(mode) => {
                write!(formatter, "{verdict}: no rule applies, and the default is \"{mode}\"")?;
                if mode.heeds_read_only() {
                    let counts =
                        if *verdict == Verdict::Allow { "counts" } else { "does not count" };
                    write!(formatter, "; the tool {counts} as read-only")?;
                }
            }
        }
        for argument in &self.unclear {
            write!(formatter, "\n  `{argument}` cannot be judged, which counts against the call")?;
        }
        for evidence in self.decision.evidence() {
            let Evidence { tool, call, labels, argument, .. } = evidence;
            let place = shown(argument.as_deref().unwrap_or("the call"), LONGEST_NAME);
            let (server, tool) = (&tool.server, shown(&tool.tool, LONGEST_NAME));
            write!(formatter, "\n  {place} has data of {server}/{tool} (call {call}): {labels}")?;
        }
        for Considered { rule, lost } in &self.considered {
            let (origin, verdict) = (&rule.origin, rule.verdict);
            write!(formatter, "\n  {origin} says {verdict}, but {lost}")?;
            if *lost == Lost::LessSpecific {
                write!(formatter, ": {}", rule.specificity())?;
            }
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(formatter, "\n  and {more} more"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ToADenial => "a denial beats it",
            Self::LessSpecific => "is less specific",
            Self::Earlier => "one as specific is further down",
            Self::NotAsStrict => "answers another question, less strictly",
        })
    }
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Other<'r> {
            rule: &'r crate::RuleOrigin,
            verdict: Verdict,
            lost: Lost,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("verdict", &self.decision.verdict)?;
        match &self.decision.ground {
            Ground::Rule(rule) => {
                map.serialize_entry("rule", &rule.origin)?;
                map.serialize_entry("specificity", &rule.specificity())?;
            }
            Ground::Mode(mode) => map.serialize_entry("default", mode)?,
        }
        map.serialize_entry("reason", &self.decision.reason())?;
        map.serialize_entry("unclear", &self.unclear)?;
        map.serialize_entry("evidence", &self.decision.evidence())?;
        let considered: Vec<Other<'_>> = self
            .considered
            .iter()
            .map(|one| Other { rule: &one.rule.origin, verdict: one.rule.verdict, lost: one.lost })
            .collect();
        map.serialize_entry("considered", &considered)?;
        map.serialize_entry("leftOut", &self.left_out)?;
        map.end()
    }
}
