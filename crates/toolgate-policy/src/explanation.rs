//! Decisions and their explanations.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};
use toolgate_catalog::ToolId;

use crate::definitions::shown;
use crate::{Evidence, LabelSet, Mode, Rule, Verdict};

/// The number of overridden rules in an explanation.
const MAX_CONSIDERED: usize = 32;
/// The number of characters of a server's name that are shown.
const LONGEST_NAME: usize = 128;

/// The decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The rule or mode that decided.
    pub ground: Ground,
    /// The findings of rules about data, except rules that allow. A person who is asked sees the
    /// evidence of all of them, even if another rule asks as well.
    pub flows: Vec<FlowFinding>,
}

/// What decided a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Ground {
    /// A rule.
    Rule(Arc<Rule>),
    /// No rule applies, so the mode decided.
    Mode(Mode),
}

/// A rule about data that applies, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowFinding {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The earlier results that the call relates to. Only a few are listed.
    pub evidence: Vec<Evidence>,
    /// The labels of all of them.
    pub labels: LabelSet,
    /// The tools of all of them.
    pub origins: Vec<ToolId>,
}

/// A decision, together with the rules that applied and did not decide.
///
/// It displays as text for people:
///
/// ```text
/// ask: `policy.rules[1]` (toolgate.json:9:7), a pattern: "Issues are public"
///   `policy.rules[0]` (toolgate.json:8:7) says allow, but is less specific: a server
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The other rules that applied, the most specific first.
    pub considered: Vec<OverriddenRule>,
    /// The number of further rules.
    pub left_out: usize,
    /// The arguments that the deciding rule could not check. They counted against the call.
    pub unclear: Vec<String>,
    /// The arguments of the rules that applied whose symbolic links could not be followed, and why.
    pub links: Vec<String>,
}

/// A rule that applied and did not decide.
#[derive(Debug, Clone, PartialEq)]
pub struct OverriddenRule {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Why it did not decide.
    pub reason: OverrideReason,
}

/// Why a rule that applied did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OverrideReason {
    /// Another rule denies.
    ToADenial,
    /// Another rule is more specific.
    LessSpecific,
    /// Another rule is equally specific and comes later.
    Earlier,
    /// One rule is about the call and the other about its data, and the other verdict is stricter.
    NotAsStrict,
}

impl Decision {
    /// Whether the call is allowed where nobody can be asked: only the mode asks, and that mode asks
    /// where it can.
    pub fn is_optional(&self) -> bool {
        self.verdict == Verdict::Ask && matches!(self.ground, Ground::Mode(Mode::AskDestructive))
    }

    /// Whether a verdict is stricter. One that has to be asked about is stricter than one that is
    /// asked about where it can be.
    pub(crate) fn yields_to(&self, verdict: Verdict, is_optional: bool) -> bool {
        (verdict, !is_optional) > (self.verdict, !self.is_optional())
    }

    /// The reason that the configuration gives for the deciding rule.
    pub fn reason(&self) -> Option<&str> {
        match &self.ground {
            Ground::Rule(rule) => rule.reason.as_deref(),
            Ground::Mode(_) => None,
        }
    }

    /// The labels of the data that the call relates to.
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
    /// Finds out why each rule of `applied` did not decide. The deciding rule is left out.
    pub(crate) fn new(decision: Decision, applied: Vec<Arc<Rule>>, arguments: &Value) -> Self {
        let mut links: Vec<String> =
            applied.iter().flat_map(|rule| rule.arguments.unfollowed(arguments)).collect();
        links.sort();
        links.dedup();
        let is_winner = |rule: &Arc<Rule>| matches!(&decision.ground, Ground::Rule(winner) if Arc::ptr_eq(winner, rule));
        let mut considered: Vec<OverriddenRule> = applied
            .into_iter()
            .filter(|rule| !is_winner(rule))
            .map(|rule| OverriddenRule { reason: override_reason(&decision, &rule), rule })
            .collect();
        considered.sort_by_key(|one| std::cmp::Reverse(one.rule.specificity()));
        let left_out = considered.len().saturating_sub(MAX_CONSIDERED);
        considered.truncate(MAX_CONSIDERED);
        let unclear = match &decision.ground {
            Ground::Rule(rule) => rule.arguments.unclear(arguments),
            Ground::Mode(_) => Vec::new(),
        };
        Self { decision, considered, left_out, unclear, links }
    }
}

fn override_reason(decision: &Decision, rule: &Rule) -> OverrideReason {
    let Ground::Rule(winner) = &decision.ground else { return OverrideReason::NotAsStrict };
    if decision.verdict == Verdict::Deny && rule.verdict != Verdict::Deny {
        OverrideReason::ToADenial
    } else if winner.flow.is_empty() != rule.flow.is_empty() {
        OverrideReason::NotAsStrict
    } else if winner.specificity() > rule.specificity() {
        OverrideReason::LessSpecific
    } else if winner.specificity() == rule.specificity() {
        OverrideReason::Earlier
    } else {
        OverrideReason::NotAsStrict
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
                if *mode == Mode::AskDestructive && *verdict == Verdict::Ask {
                    let told = "the tool declares itself destructive. Where nobody can be asked, the \
                                call goes through";
                    write!(formatter, "; {told}")?;
                }
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
        for note in &self.links {
            write!(formatter, "\n  {note}")?;
        }
        for evidence in self.decision.evidence() {
            let Evidence { tool, call, labels, argument, .. } = evidence;
            let location = shown(argument.as_deref().unwrap_or("the call"), LONGEST_NAME);
            let (server, tool) = (&tool.server, shown(&tool.tool, LONGEST_NAME));
            write!(
                formatter,
                "\n  {location} has data of {server}/{tool} (call {call}): {labels}"
            )?;
        }
        for OverriddenRule { rule, reason } in &self.considered {
            let (origin, verdict) = (&rule.origin, rule.verdict);
            write!(formatter, "\n  {origin} says {verdict}, but {reason}")?;
            if *reason == OverrideReason::LessSpecific {
                write!(formatter, ": {}", rule.specificity())?;
            }
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(formatter, "\n  and {more} more"),
        }
    }
}

impl fmt::Display for OverrideReason {
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
        map.serialize_entry("links", &self.links)?;
        map.serialize_entry("evidence", &self.decision.evidence())?;
        let considered = self.considered.iter().map(|one| {
            json!({ "rule": one.rule.origin, "verdict": one.rule.verdict, "lost": one.reason })
        });
        map.serialize_entry("considered", &considered.collect::<Vec<_>>())?;
        map.serialize_entry("leftOut", &self.left_out)?;
        map.end()
    }
}
