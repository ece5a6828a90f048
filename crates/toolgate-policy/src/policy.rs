//! Finds the rule that decides about a call.

use std::sync::Arc;

use serde_json::Value;
use toolgate_catalog::{ServerName, Tool, ToolId, possible_names};

use crate::flow::FlowEvidence;
use crate::index::RuleIndex;
use crate::pattern::{Closeness, CompiledNames};
use crate::rule::ToolFacts;
use crate::{
    Annotations, CallLimit, CallPath, CallerFacts, Decision, Explanation, FindingsMode, Flow,
    FlowFinding, FlowMode, Ground, Hint, LabelSet, Mode, NewTools, PolicySettings, Rule,
    ServerPolicy, Trust, Verdict,
};

/// The compiled rules. Copies share them.
///
/// # Which rule decides
///
/// A matching `deny` overrides everything. Otherwise the most specific rule that applies decides.
/// One tool is more specific than a pattern of names, a pattern more than an annotation, an
/// annotation more than a server, and a server more than all tools. At each of these levels, a rule
/// with conditions is more specific than one without. Of equally specific rules, the later one
/// decides; `approval` at a tool counts as written before all rules. If no rule applies, the mode
/// decides. Rules about data (`carries`, `steeredBy`) are evaluated separately in the same order.
/// Such a rule is overridden only by another one about the same labels or more, and of the two
/// results the stricter one holds. So a tool that is allowed still needs approval when private data
/// would leave through it.
///
/// A rule that denies or asks also matches names that look like those in it, and tools whose name
/// was changed only because two tools had the same one. A rule that allows does not.
///
/// ```
/// use serde_json::json;
/// use toolgate_catalog::ToolId;
/// use toolgate_policy::{Annotations, Flow, Mode, Policy, PolicySettings, Verdict};
///
/// let policy = Policy::new(PolicySettings::of_mode(Mode::Ask));
/// let reads = Annotations::from_value(&json!({ "readOnlyHint": true }));
/// let list = policy.tool(&ToolId::new("github", "list_issues"), "github_list_issues", reads);
/// assert_eq!(list.decide(&json!({}), &Flow::NONE).verdict, Verdict::Allow);
///
/// let nothing = Annotations::default();
/// let close = policy.tool(&ToolId::new("github", "close_issue"), "github_close_issue", nothing);
/// assert_eq!(close.decide(&json!({}), &Flow::NONE).verdict, Verdict::Ask);
/// ```
#[derive(Debug, Clone)]
pub struct Policy(Arc<CompiledPolicy>);

/// The policy for one tool: the rules that match it, in the order in which they decide.
///
/// It is computed once per definition. A call then checks only these rules.
#[derive(Debug, Clone)]
pub struct ToolPolicy {
    /// Rules about the call. The first that applies decides.
    calls: Vec<Arc<Rule>>,
    /// Rules about the data.
    flows: Vec<Arc<Rule>>,
    default: (Mode, Verdict),
    flow_mode: FlowMode,
    labels: LabelSet,
    repeatable: bool,
    /// The limits of its calls, those of the policy above included.
    limits: Vec<Arc<CallLimit>>,
    reads: bool,
    /// The policy above it for the same tool.
    above: Option<Box<ToolPolicy>>,
}

#[derive(Debug)]
struct CompiledPolicy {
    settings: PolicySettings,
    rules: Vec<Arc<Rule>>,
    index: RuleIndex,
    labels: RuleIndex,
    limits: RuleIndex,
    above: Option<Policy>,
    /// All rules, those of the policy above first.
    all: Vec<Arc<Rule>>,
}

impl Policy {
    /// Compiles the settings.
    pub fn new(mut settings: PolicySettings) -> Self {
        let rules: Vec<Arc<Rule>> = settings.all_rules().into_iter().map(Arc::new).collect();
        let index = RuleIndex::new(rules.iter().map(|rule| &rule.target));
        let labels = RuleIndex::new(settings.labels.iter().map(|(target, _)| target));
        let limits = RuleIndex::new(settings.limits.iter().map(|limit| &limit.target));
        let above = settings.above.take().map(|above| Self::new((*above).clone()));
        let mut all = above.as_ref().map(|above| above.all_rules().to_vec()).unwrap_or_default();
        all.extend(rules.iter().cloned());
        Self(Arc::new(CompiledPolicy { settings, rules, index, labels, limits, above, all }))
    }

    /// The policy for a tool of the catalog.
    pub fn of(&self, tool: &Tool) -> ToolPolicy {
        let (id, prefix) = (&tool.id, tool.prefix.as_deref());
        let annotations = Annotations::of(&tool.definition);
        if crate::is_reading(&id.tool) {
            // Rules that name tools by a pattern also match requests other than tool calls.
            let plain = possible_names(id, prefix).plain;
            return self.judge(
                id,
                &CompiledNames::new(id, prefix, &plain),
                annotations.beyond_doubt(),
            );
        }
        self.judge(id, &CompiledNames::new(id, prefix, tool.name.as_str()), annotations)
    }

    /// The policy for a tool with this identity, exposed name and annotations.
    pub fn tool(&self, id: &ToolId, exposed: &str, annotations: Annotations) -> ToolPolicy {
        self.judge(id, &CompiledNames::new(id, None, exposed), annotations)
    }

    fn judge(&self, id: &ToolId, names: &CompiledNames, annotations: Annotations) -> ToolPolicy {
        let CompiledPolicy { settings, rules, index, limits, above, .. } = &*self.0;
        let above = above.as_ref().map(|above| Box::new(above.judge(id, names, annotations)));
        let mut facts = self.facts(id, names, annotations);
        let mut repeatable = facts.holds(Hint::ReadOnlyHint) || facts.holds(Hint::IdempotentHint);
        if let Some(above) = &above {
            facts.labels = facts.labels.union(above.labels);
            repeatable &= above.repeatable;
        }
        let target = |position: usize| (&rules[position].target, rules[position].closeness());
        let matching = index.matching(&facts, target);
        let mut matching: Vec<(usize, &Arc<Rule>)> =
            matching.into_iter().map(|position| (position, &rules[position])).collect();
        matching.sort_by_key(|(position, rule)| {
            let is_deny = rule.verdict == Verdict::Deny;
            std::cmp::Reverse((is_deny, rule.specificity(), *position))
        });
        let sorted = matching.into_iter().map(|(_, rule)| Arc::clone(rule));
        let (calls, flows) = sorted.partition(|rule| rule.flow.is_empty());
        let is_destructive = annotations.declares_destructive();
        let default = settings.mode.verdict(facts.holds(Hint::ReadOnlyHint), is_destructive);
        let target = |position: usize| (&settings.limits[position].target, Closeness::Alike);
        let limits = limits.matching(&facts, target).into_iter();
        let mut limits: Vec<Arc<CallLimit>> =
            limits.map(|position| Arc::clone(&settings.limits[position])).collect();
        limits.extend(above.iter().flat_map(|above| &above.limits).cloned());
        ToolPolicy {
            calls,
            flows,
            default: (settings.mode, default),
            limits,
            flow_mode: settings.flow,
            labels: facts.labels,
            repeatable,
            reads: facts.holds(Hint::ReadOnlyHint),
            above,
        }
    }

    /// All rules: the built-in ones, those at tools, and those of the policy.
    pub fn all_rules(&self) -> &[Arc<Rule>] {
        &self.0.all
    }

    /// Whether a tool may be closed to one caller or one way of calling, and open to others.
    pub fn tells_callers_apart(&self) -> bool {
        self.0.all.iter().any(|rule| !rule.caller.is_empty())
    }

    /// Whether some tool may be hidden: [`ToolPolicy::is_hidden`]. Without a rule or a mode that denies
    /// there is none, and no definition has to be read to know that.
    pub fn may_hide(&self) -> bool {
        let CompiledPolicy { settings, rules, above, .. } = &*self.0;
        matches!(settings.mode, Mode::DenyWrites | Mode::Deny)
            || rules.iter().any(|rule| rule.verdict == Verdict::Deny && rule.flow.is_empty())
            || above.as_ref().is_some_and(Self::may_hide)
    }

    /// How new tools of a known server are treated.
    pub fn new_tools(&self) -> NewTools {
        self.0.settings.new_tools
    }

    /// How tools with suspicious definitions are treated.
    pub fn findings(&self) -> FindingsMode {
        self.0.settings.findings
    }

    /// How the data of a call is determined. With [`FlowMode::Off`] no data has to be tracked.
    pub fn flow(&self) -> FlowMode {
        self.0.settings.flow
    }

    /// Whether data that only decides is in a call as well.
    pub fn branches(&self) -> bool {
        self.0.settings.branches
    }

    fn facts<'f>(
        &self,
        id: &'f ToolId,
        names: &'f CompiledNames,
        annotations: Annotations,
    ) -> ToolFacts<'f> {
        let CompiledPolicy { settings, labels, .. } = &*self.0;
        let server = self.server(&id.server);
        let mut facts = ToolFacts {
            server: id.server.as_str(),
            own: &id.tool,
            names,
            annotations,
            claims: settings.claims,
            trust: server.map_or(Trust::Unknown, |server| server.trust),
            labels: server.map_or(LabelSet::EMPTY, |server| server.labels),
        };
        let own = server.and_then(|server| server.tools.get(&id.tool)?.labels);
        facts.labels = own.unwrap_or_else(|| {
            let target = |position: usize| (&settings.labels[position].0, Closeness::Alike);
            let matching = labels.matching(&facts, target);
            matching
                .into_iter()
                .fold(facts.labels, |found, position| found.union(settings.labels[position].1))
        });
        facts
    }

    fn server(&self, name: &ServerName) -> Option<&ServerPolicy> {
        self.0.settings.servers.get(name)
    }
}

impl ToolPolicy {
    /// Whether a call can be repeated without harm, because the tool is read-only or idempotent and
    /// that claim counts.
    pub fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// Whether the tool only reads, and that claim counts.
    pub fn is_read_only(&self) -> bool {
        self.reads && self.above.as_ref().is_none_or(|above| above.reads)
    }

    /// Decides about a direct call with these arguments and this data, of a caller of whom nothing
    /// is known.
    pub fn decide(&self, arguments: &Value, flow: &Flow) -> Decision {
        self.decide_for(&CallerFacts::default(), CallPath::Direct, arguments, flow)
    }

    /// Decides about a call of this caller.
    pub fn decide_for(
        &self,
        caller: &CallerFacts,
        from: CallPath,
        arguments: &Value,
        flow: &Flow,
    ) -> Decision {
        let applies = |rule: &Rule| applies(rule, caller, from, arguments);
        let rule = self.calls.iter().find(|rule| applies(rule));
        let (verdict, ground) = match rule {
            Some(rule) => (rule.verdict, Ground::Rule(Arc::clone(rule))),
            None => (self.default.1, Ground::Mode(self.default.0)),
        };
        let flows = self.findings(applies, flow);
        let mut decision = Decision { verdict, ground, flows };
        decision.flows.retain(|finding| finding.rule.verdict != Verdict::Allow);
        // The strictest verdict decides; of equal ones the first, which is the most specific.
        for finding in decision.flows.clone() {
            if decision.yields_to(finding.rule.verdict, false) {
                decision.verdict = finding.rule.verdict;
                decision.ground = Ground::Rule(Arc::clone(&finding.rule));
            }
        }
        if let Some(above) = &self.above {
            let above = above.decide_for(caller, from, arguments, flow);
            let is_stricter = decision.yields_to(above.verdict, above.is_optional());
            let Decision { verdict, ground, flows } = above;
            if is_stricter {
                (decision.verdict, decision.ground) = (verdict, ground);
            }
            // Both have the built-in rules.
            let is_new = |finding: &FlowFinding| !decision.flows.contains(finding);
            let flows: Vec<FlowFinding> = flows.into_iter().filter(is_new).collect();
            decision.flows.extend(flows);
        }
        decision
    }

    /// Like [`Self::decide`], with every rule that applies and why it did not decide.
    pub fn explain(&self, arguments: &Value, flow: &Flow) -> Explanation {
        self.explain_for(&CallerFacts::default(), CallPath::Direct, arguments, flow)
    }

    /// Like [`Self::explain`], for a call of this caller.
    pub fn explain_for(
        &self,
        caller: &CallerFacts,
        from: CallPath,
        arguments: &Value,
        flow: &Flow,
    ) -> Explanation {
        let fits = |rule: &Rule| applies(rule, caller, from, arguments);
        let calls = self.calls.iter().filter(|rule| fits(rule));
        let flows = self
            .flows
            .iter()
            .filter(|rule| fits(rule) && rule.flow.evidence(flow, self.flow_mode).is_some());
        let mut applied: Vec<Arc<Rule>> = calls.chain(flows).cloned().collect();
        if let Some(above) = &self.above {
            let explained = above.explain_for(caller, from, arguments, flow);
            applied.extend(explained.considered.into_iter().map(|one| one.rule));
            if let Ground::Rule(rule) = explained.decision.ground {
                applied.push(rule);
            }
        }
        Explanation::new(self.decide_for(caller, from, arguments, flow), applied, arguments)
    }

    /// Whether every call is denied, whoever makes it in whichever way, and whatever its arguments.
    /// Such a tool is not listed.
    pub fn is_hidden(&self) -> bool {
        let denies = |from: CallPath| {
            let may_apply = |rule: &Rule| rule.caller.from.is_none_or(|it| it == from);
            self.denies_all(&|rule| rule.is_for_all(from), &may_apply)
        };
        denies(CallPath::Direct) && denies(CallPath::Script)
    }

    /// Whether every call of this caller in this way is denied, whatever its arguments. Such a tool
    /// is not listed for this caller.
    pub fn is_closed_to(&self, caller: &CallerFacts, from: CallPath) -> bool {
        let may_apply = |rule: &Rule| rule.caller.holds(caller, from, rule.verdict);
        self.denies_all(&may_apply, &may_apply)
    }

    /// Whether all of some calls are denied: by a rule that applies to all of them, by two of which one
    /// applies where the other does not, or by the mode if no other rule may apply to any of them.
    /// `is_for_all` says whether a rule applies to all of them if its conditions on arguments hold.
    fn denies_all(
        &self,
        is_for_all: &dyn Fn(&Rule) -> bool,
        may_apply: &dyn Fn(&Rule) -> bool,
    ) -> bool {
        let is_deny = |rule: &Rule| rule.verdict == Verdict::Deny;
        let denials = || self.calls.iter().filter(|rule| is_deny(rule) && is_for_all(rule));
        let is_halved = |rule: &Rule| {
            let Some((argument, wanted)) = rule.arguments.existence() else { return false };
            let other = Some((argument, !wanted));
            denials().any(|rule| rule.arguments.existence() == other)
        };
        let by_rule = denials().any(|rule| rule.arguments.is_empty() || is_halved(rule));
        let by_mode = || self.calls.iter().all(|rule| is_deny(rule) || !may_apply(rule));
        by_rule
            || (self.default.1 == Verdict::Deny && by_mode())
            || self.above.as_ref().is_some_and(|above| above.denies_all(is_for_all, may_apply))
    }

    /// The limits of its calls.
    pub fn limits(&self) -> &[Arc<CallLimit>] {
        &self.limits
    }

    /// The rules that match the tool, whatever the arguments. Each is one of [`Policy::rules`].
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        let above = self.above.iter().flat_map(|above| above.calls.iter().chain(&above.flows));
        self.calls.iter().chain(&self.flows).chain(above)
    }

    /// The labels of the data that the tool returns and takes.
    pub fn labels(&self) -> LabelSet {
        self.labels
    }

    /// The rules about data that apply and are not overridden, the most specific first.
    fn findings(&self, applies: impl Fn(&Rule) -> bool, flow: &Flow) -> Vec<FlowFinding> {
        let mut found: Vec<FlowFinding> = Vec::new();
        for rule in &self.flows {
            if found.iter().any(|settled| settled.rule.flow.covers(rule.flow)) {
                continue;
            }
            if applies(rule)
                && let Some(shown) = rule.flow.evidence(flow, self.flow_mode)
            {
                let FlowEvidence { evidence, labels, origins } = shown;
                found.push(FlowFinding { rule: Arc::clone(rule), evidence, labels, origins });
            }
        }
        found
    }
}

fn applies(rule: &Rule, caller: &CallerFacts, from: CallPath, arguments: &Value) -> bool {
    rule.caller.holds(caller, from, rule.verdict) && rule.arguments.apply(arguments, rule.verdict)
}
