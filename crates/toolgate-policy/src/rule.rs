//! A rule: the calls that it matches, and its verdict.

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Annotations, ArgumentConditions, CallPath, CallerCondition, Claims, FlowCondition, Hint, Label,
    LabelSet, NamePattern, ToolPattern, Verdict,
    pattern::{Closeness, CompiledNames, Naming},
};

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The tools that the rule matches.
    pub target: RuleTarget,
    /// The callers that the rule matches, and the way in which the call is made.
    pub caller: CallerCondition,
    /// The conditions for the arguments.
    pub arguments: ArgumentConditions,
    /// The conditions for the data that the call carries.
    pub flow: FlowCondition,
    /// The verdict about matching calls.
    pub verdict: Verdict,
    /// The reason, shown to the person who is asked and to the model that is refused.
    pub reason: Option<Arc<str>>,
    /// Where the rule is written.
    pub origin: RuleOrigin,
}

/// The tools that a rule matches: those that match every field that is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleTarget {
    /// The server's name.
    pub server: Option<NamePattern>,
    /// The tool's name.
    pub tool: Option<ToolPattern>,
    /// The values that must be assumed for annotation hints.
    pub annotations: Vec<(Hint, bool)>,
    /// Whether its server is trusted.
    pub trust: Option<Trust>,
    /// Labels, of which the tool has at least one.
    pub labels: LabelSet,
}

/// Whether the claims of a server are believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The configuration does not say so.
    #[default]
    Unknown,
    /// The configuration has `trusted: true`.
    Trusted,
}

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RuleOrigin {
    /// The configuration.
    Configured {
        /// The path in the configuration, such as `policy.rules[2]`.
        path: Arc<str>,
        /// The position in the file, such as `toolgate.json:14:7`, if it is known.
        #[serde(rename = "place")]
        position: Option<Arc<str>>,
    },
    /// A built-in rule with this name.
    BuiltIn(&'static str),
}

/// How specific a rule is. The more specific of two rules that apply decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Specificity {
    /// Rules of the configuration override built-in ones.
    pub configured: bool,
    /// How narrowly the rule selects tools.
    pub breadth: Breadth,
    /// Rules with conditions on arguments, data or labels override rules without.
    pub conditional: bool,
}

/// How narrowly a rule selects tools, from wide to narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Breadth {
    /// All tools.
    Everything,
    /// The tools of a server.
    Server,
    /// Tools with an annotation.
    Annotation,
    /// Tools with a name that matches a pattern.
    Pattern,
    /// One tool.
    Tool,
}

/// The properties of a tool that targets are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolFacts<'f> {
    pub(crate) server: &'f str,
    pub(crate) own: &'f str,
    pub(crate) names: &'f CompiledNames,
    pub(crate) annotations: Annotations,
    pub(crate) claims: Claims,
    pub(crate) trust: Trust,
    pub(crate) labels: LabelSet,
}

impl Rule {
    /// A rule for all calls of the tools in `target`.
    pub fn new(target: RuleTarget, verdict: Verdict, origin: RuleOrigin) -> Self {
        Self {
            target,
            caller: CallerCondition::default(),
            arguments: ArgumentConditions::default(),
            flow: FlowCondition::default(),
            verdict,
            reason: None,
            origin,
        }
    }

    /// The two built-in rules about data. Private data does not leave through open-world tools, and
    /// untrusted data does not influence destructive ones, unless a person approves. Without labels
    /// they have no effect.
    pub(crate) fn built_in() -> [Self; 2] {
        let leaves = RuleTarget { labels: Label::Egress.into(), ..RuleTarget::default() };
        let destroys = RuleTarget {
            annotations: vec![(Hint::DestructiveHint, true)],
            ..RuleTarget::default()
        };
        [
            Self {
                flow: FlowCondition { carries: Label::Private.into(), ..Default::default() },
                reason: Some("private data would leave your control".into()),
                ..Self::new(
                    leaves,
                    Verdict::Ask,
                    RuleOrigin::BuiltIn("private data to an egress tool"),
                )
            },
            Self {
                flow: FlowCondition { steered_by: Label::Untrusted.into(), ..Default::default() },
                reason: Some("untrusted content may have influenced a destructive call".into()),
                ..Self::new(
                    destroys,
                    Verdict::Ask,
                    RuleOrigin::BuiltIn("a destructive call steered by strangers"),
                )
            },
        ]
    }

    /// How specific it is.
    pub fn specificity(&self) -> Specificity {
        Specificity {
            configured: matches!(self.origin, RuleOrigin::Configured { .. }),
            breadth: self.target.breadth(),
            conditional: !self.is_unconditional() || !self.target.labels.is_empty(),
        }
    }

    /// Whether similar-looking names match too. They do if the rule denies or asks, because servers
    /// choose the names.
    pub(crate) fn closeness(&self) -> Closeness {
        match self.verdict {
            Verdict::Allow => Closeness::Exact,
            Verdict::Ask | Verdict::Deny => Closeness::Alike,
        }
    }

    /// Whether the rule matches every call of its tools that is made in this way, if its conditions
    /// on arguments hold.
    pub(crate) fn is_for_all(&self, from: CallPath) -> bool {
        let caller = CallerCondition {
            from: self.caller.from.filter(|it| *it != from),
            ..self.caller.clone()
        };
        caller.is_empty() && self.flow.is_empty()
    }

    /// Whether the rule has no conditions beside its target.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.caller.is_empty() && self.arguments.is_empty() && self.flow.is_empty()
    }
}

impl RuleTarget {
    /// How narrowly the rule selects tools.
    pub fn breadth(&self) -> Breadth {
        let server_is_one = self.server.as_ref().is_none_or(|server| server.exact().is_some());
        match &self.tool {
            Some(tool) if tool.name.exact().is_some() && server_is_one => Breadth::Tool,
            Some(_) => Breadth::Pattern,
            None if !self.annotations.is_empty() || self.trust.is_some() => Breadth::Annotation,
            None if self.server.is_some() => Breadth::Server,
            None => Breadth::Everything,
        }
    }

    pub(crate) fn matches(&self, facts: &ToolFacts<'_>, closeness: Closeness) -> bool {
        let names = |tool: &ToolPattern| tool.fits(facts.own, facts.names, closeness);
        self.server.as_ref().is_none_or(|server| server.matches(facts.server))
            && self.tool.as_ref().is_none_or(names)
            && self.trust.is_none_or(|trust| trust == facts.trust)
            && (self.labels.is_empty() || !self.labels.intersection(facts.labels).is_empty())
            && self.annotations.iter().all(|(hint, wanted)| facts.holds(*hint) == *wanted)
    }
}

impl ToolFacts<'_> {
    pub(crate) fn holds(&self, hint: Hint) -> bool {
        self.annotations.holds(hint, self.claims, self.trust)
    }
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured { path, position: Some(position) } => {
                write!(formatter, "`{path}` ({position})")
            }
            Self::Configured { path, position: None } => write!(formatter, "`{path}`"),
            Self::BuiltIn(name) => write!(formatter, "the built-in rule \"{name}\""),
        }
    }
}

impl fmt::Display for Specificity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.breadth {
            Breadth::Everything => "all tools",
            Breadth::Server => "a server",
            Breadth::Annotation => "what is claimed of a tool",
            Breadth::Pattern => "a pattern",
            Breadth::Tool => "one tool",
        })?;
        if self.conditional { formatter.write_str(" with conditions") } else { Ok(()) }
    }
}

impl Rule {
    /// The calls that the rule matches, with the keys of the configuration.
    pub fn to_value(&self) -> Value {
        let mut value = self.target.to_map();
        self.caller.add_to(&mut value);
        let mut when = Map::new();
        if !self.arguments.is_empty() {
            when.insert("arguments".to_owned(), self.arguments.to_value());
        }
        let FlowCondition { carries, steered_by } = self.flow;
        for (key, labels) in
            [("carries", carries), ("to", self.target.labels), ("steeredBy", steered_by)]
        {
            if !labels.is_empty() {
                when.insert(key.to_owned(), json!(labels));
            }
        }
        if !when.is_empty() {
            value.insert("when".to_owned(), Value::Object(when));
        }
        Value::Object(value)
    }
}

impl RuleTarget {
    /// The tools, with the keys of the configuration. Labels are a condition and not included.
    pub fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if let Some(server) = &self.server {
            map.insert("server".to_owned(), json!(server.to_string()));
        }
        if let Some(tool) = &self.tool {
            map.insert("tool".to_owned(), json!(tool.name.to_string()));
        }
        if !self.annotations.is_empty() {
            let claims = self.annotations.iter();
            let claims = claims.map(|(hint, wanted)| (hint.as_str().to_owned(), json!(wanted)));
            map.insert("annotations".to_owned(), Value::Object(claims.collect()));
        }
        if let Some(trust) = self.trust {
            map.insert("trusted".to_owned(), json!(trust == Trust::Trusted));
        }
        map
    }
}

impl fmt::Display for Rule {
    /// Displays the calls that the rule matches.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.target, self.caller)?;
        if !self.arguments.is_empty() {
            write!(formatter, ", where {}", self.arguments)?;
        }
        let FlowCondition { carries, steered_by } = self.flow;
        let data = [("with data that is", carries), ("steered by what is", steered_by)];
        for (words, labels) in data.into_iter().filter(|(_, labels)| !labels.is_empty()) {
            write!(formatter, ", {words} {}", either(labels))?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.tool) {
            (None, None) => formatter.write_str("all tools")?,
            (Some(server), None) => write!(formatter, "all of `{server}`")?,
            (None, Some(tool)) => write!(formatter, "`{}`", tool.name)?,
            (Some(server), Some(tool)) if tool.naming == Naming::Own => {
                write!(formatter, "`{server}/{}`", tool.name)?;
            }
            (Some(server), Some(tool)) => write!(formatter, "`{}` of `{server}`", tool.name)?,
        }
        for (hint, wanted) in &self.annotations {
            write!(formatter, ", {}: {wanted}", hint.as_str())?;
        }
        match self.trust {
            Some(Trust::Trusted) => formatter.write_str(", of a trusted server")?,
            Some(Trust::Unknown) => formatter.write_str(", of a server that is not trusted")?,
            None => {}
        }
        if self.labels.is_empty() {
            return Ok(());
        }
        write!(formatter, ", labelled {}", either(self.labels))
    }
}

/// The labels as alternatives.
fn either(labels: LabelSet) -> String {
    labels.iter().map(Label::as_str).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgumentConditions, Hint, RuleOrigin, Verdict};

    #[test]
    fn a_rule_lists_all_its_conditions() {
        let origin = || RuleOrigin::Configured { path: "policy.rules[0]".into(), position: None };
        let rule = |server, tool| {
            Rule::new(RuleTarget::read(server, tool).unwrap(), Verdict::Deny, origin())
        };
        let mut narrow = rule(None, Some("github_delete_*"));
        narrow.target.annotations = vec![(Hint::ReadOnlyHint, false)];
        narrow.target.trust = Some(Trust::Unknown);
        narrow.target.labels = Label::Egress.into();
        narrow.flow.carries = [Label::Private, Label::Untrusted].into_iter().collect();
        narrow.arguments =
            ArgumentConditions::from_value(&json!({ "path": { "under": "/srv" } })).unwrap();
        let rules = [
            rule(None, None),
            rule(Some("git*"), None),
            rule(Some("git"), Some("push")),
            rule(None, Some("git/push")),
            narrow,
        ];
        let told: Vec<String> =
            rules.iter().map(|rule| format!("{rule} {}", rule.to_value())).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        all tools {}
        all of `git*` {"server":"git*"}
        `push` of `git` {"server":"git","tool":"push"}
        `git/push` {"server":"git","tool":"push"}
        `github_delete_*`, readOnlyHint: false, of a server that is not trusted, labelled egress, where path is under "/srv", with data that is private or untrusted {"tool":"github_delete_*","annotations":{"readOnlyHint":false},"trusted":false,"when":{"arguments":{"path":{"under":"/srv"}},"carries":["private","untrusted"],"to":["egress"]}}
        "#);
    }
}
