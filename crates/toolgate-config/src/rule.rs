//! The rules of the policy.

use serde_json::{Map, Value as Json, json};
use toolgate_policy::{
    ArgumentConditions, CallPath, CallerCondition, ConditionAdvice, ConditionError,
    ConditionProblem, FlowCondition, Hint, Label, LabelSet, MAX_RULES, NamePattern, OPERATORS,
    Rule, RuleTarget, Trust, Verdict,
};

use crate::ProblemSeverity;
use crate::document::{Member, Node, Value};
use crate::keys::nearest;
use crate::scope::{FileReader, Location, Scope};
use crate::section::{
    Choice, Custom, Definitions, Flag, Plain, Section as _, Word, Wrong, custom, flag_schema,
    map_schema, one_or_many, section,
};
use crate::server::trusted;

section! {
    /// A rule: it selects calls, and states their verdict.
    pub(crate) struct RuleConfig as "Rule" keys {
        /// The server, or a pattern of servers.
        "server" => |_| json!({ "type": "string" });
        /// The tool: its exposed name, `server/tool` or, beside a `server`, its own name; or a pattern
        /// with `*` and `?`; or a list of these.
        "tool" => |_| one_or_many(&json!({ "type": "string" }));
    } {
        /// The annotations that the tool must have.
        "annotations" => annotations: Vec<(Hint, bool)> = Vec::new(),
            custom(Definitions::reference::<AnnotationKeys>, annotations);
        /// Whether its server is trusted.
        "trusted" => trust: Option<Trust> = None, trusted();
        /// The caller that the call must come from.
        "caller" => caller: CallerConfig = CallerConfig::default(),
            custom(Definitions::reference::<CallerConfig>, caller);
        /// The way in which the call is made: `direct` (by a client, also through `call_tool`) or
        /// `script` (by a script of `run_code`).
        "from" => from: Option<CallPath> = None, Word::<CallPath>(Wrong::Refused);
        /// The conditions that the call must meet.
        "when" => when: WhenConfig = WhenConfig::default(),
            custom(Definitions::reference::<WhenConfig>, when);
        /// The verdict on the call.
        "verdict" => verdict: Option<Verdict> = None, Word::<Verdict>(Wrong::Refused);
        /// The reason. The person who is asked and the model whose call is denied see it.
        "reason" => reason: Option<String> = None, Plain {
            longest: 500,
            fits: |letter| !letter.is_control(),
            expected: "a line of at most 500 characters",
            pattern: None,
        };
    }
}

section! {
    /// The caller of a rule. It must match all keys that are set. Each takes a name, a pattern with
    /// `*` and `?`, or a list of these.
    pub(crate) struct CallerConfig as "Caller" {
        /// The name of the access token.
        "token" => token: Vec<NamePattern> = Vec::new(), patterns();
        /// The subject of the OAuth token.
        "subject" => subject: Vec<NamePattern> = Vec::new(), patterns();
        /// A scope of the OAuth token.
        "scope" => scope: Vec<NamePattern> = Vec::new(), patterns();
        /// A group in the OAuth token (`groups`).
        "group" => group: Vec<NamePattern> = Vec::new(), patterns();
        /// The name and version that the client gives itself. Nothing proves it.
        "client" => client: Vec<NamePattern> = Vec::new(), patterns();
    }
}

section! {
    /// Claims of a server about a tool. If a claim is missing, toolgate assumes the worst.
    pub(crate) struct AnnotationKeys as "Annotations" keys {
        /// The tool changes nothing.
        "readOnlyHint" => flag_schema;
        /// The tool may destroy data.
        "destructiveHint" => flag_schema;
        /// A second call with the same arguments changes nothing more.
        "idempotentHint" => flag_schema;
        /// The tool reaches systems outside of its server.
        "openWorldHint" => flag_schema;
    }
}

section! {
    /// The conditions that a call must meet.
    pub(crate) struct WhenConfig as "When" {
        /// Conditions on the arguments, by JSON pointer (`/options/force`) or names with dots
        /// (`options.force`); `*` means every element. If toolgate cannot evaluate a condition, it
        /// assumes the worse case.
        "arguments" => arguments: ArgumentConditions = ArgumentConditions::default(),
            custom(map_schema::<ConditionKeys>, conditions);
        /// The arguments carry data with one of these labels.
        "carries" => carries: LabelSet = LabelSet::EMPTY, custom(|_| Label::list_schema(), labels);
        /// The tool has one of these labels.
        "to" => to: LabelSet = LabelSet::EMPTY, custom(|_| Label::list_schema(), labels);
        /// Data with one of these labels may have influenced the call.
        "steeredBy" => steered_by: LabelSet = LabelSet::EMPTY, custom(|_| Label::list_schema(), labels);
    }
}

section! {
    /// The conditions on an argument. The argument must meet all that are set.
    pub(crate) struct ConditionKeys as "Condition" keys {
        /// It is this value.
        "equals" => |_| json!({});
        /// It is one of these values.
        "in" => |_| json!({ "type": "array", "minItems": 1, "maxItems": 1_000 });
        /// The whole text matches this regular expression.
        "matches" => |_| json!({ "type": "string", "minLength": 1, "maxLength": 1_000 });
        /// With false, a part of the text may match. The default is true.
        "anchored" => flag_schema;
        /// The text begins with this.
        "prefix" => |_| json!({ "type": "string", "minLength": 1, "maxLength": 4_096 });
        /// The command line has these words, split as a shell splits them. `*` is any word, and at
        /// the end any number of words. Operators, substitutions, redirections, variables and
        /// patterns of files never match. If the argument is a list, its elements are the words; none
        /// of them is split.
        "argv" => |_| json!({
            "type": "array", "minItems": 1, "maxItems": 100, "items": { "type": "string" }
        });
        /// The path is this folder or is in it, after `.`, `..` and the symbolic links of this
        /// machine are resolved. A path with `*`, `?`, `[`, `{`, `$` or a backtick does not match,
        /// unless a file of this machine has this name. `${NAME}` stands for an environment variable.
        "under" => |_| json!({ "type": "string", "minLength": 1, "maxLength": 4_096 });
        /// The number is less than this.
        "less" => |_| json!({ "type": "number" });
        /// The number is greater than this.
        "greater" => |_| json!({ "type": "number" });
        /// Whether the argument exists and is not null.
        "exists" => flag_schema;
        /// The URL has this host, or one of these, and the scheme `http` or `https`.
        "host" => |_| one_or_many(&json!({ "type": "string" }));
        /// Whether subdomains of the host match too. The default is false.
        "subdomains" => flag_schema;
        /// The schemes that the URL may have, instead of `http` and `https`.
        "schemes" => |_| json!({
            "type": "array", "minItems": 1, "maxItems": 32, "items": { "type": "string" }
        });
    }
}

impl CallerConfig {
    /// The condition of a rule or a limit.
    pub(crate) fn condition(self, from: Option<CallPath>) -> CallerCondition {
        let Self { token, subject, scope, group, client } = self;
        CallerCondition { token, subject, scope, group, client, from }
    }
}

/// The keys that say which tools a rule is about.
const TARGET: &[&str] = &["server", "tool", "annotations", "trusted"];

/// Reads all rules. An unreadable rule denies what it may be about. An unreadable `allow` rule is
/// left out.
pub(crate) fn read_all(scope: &mut Scope<'_, '_>) -> Vec<Rule> {
    let Some(member) = scope.object.get("rules") else { return Vec::new() };
    let (error, at) = (ProblemSeverity::Error, scope.at.value(member));
    let Value::Array(elements) = &member.node.value else {
        let hint = "write `\"rules\": [{ \"tool\": \"github_*\", \"verdict\": \"ask\" }]`";
        scope.mismatch(error, &at, &member.node.value, "a list", hint);
        return vec![denial(scope.file, &at, RuleTarget::default())];
    };
    let mut rules = Vec::with_capacity(elements.len().min(MAX_RULES));
    for (index, element) in elements.iter().enumerate() {
        let at = at.element(index, element.offset);
        read(scope, &at, element, &mut rules);
        if rules.len() > MAX_RULES {
            let predicate = "is one rule too many: a policy may have at most 10,000";
            scope.complain(error, &at, predicate, "");
            rules.truncate(MAX_RULES);
            rules.push(denial(scope.file, &at, RuleTarget::default()));
            break;
        }
    }
    rules
}

fn read(scope: &mut Scope<'_, '_>, at: &Location, node: &Node<'_>, rules: &mut Vec<Rule>) {
    let Value::Object(object) = &node.value else {
        scope.mismatch(ProblemSeverity::Error, at, &node.value, "an object", "");
        rules.push(denial(scope.file, at, RuleTarget::default()));
        return;
    };
    let mut scope = Scope::new(object, at.clone(), scope.file);
    scope.refuse_replaced();
    scope.refuse_unknown::<RuleConfig>();
    scope.require("verdict", &format!("add `\"verdict\"`: {}", Verdict::names()));
    let mut rule = RuleConfig::default();
    rule.read_keys(&mut scope);
    let is_twice = |keys: &[&str]| object.replaced.iter().any(|each| keys.contains(&&*each.key));
    let targets = targets(&mut scope, &rule.annotations, rule.trust);
    let targets = targets.filter(|_| !is_twice(TARGET));
    let verdict = rule.verdict.filter(|_| !is_twice(&["verdict"]));
    let RuleConfig { when, reason, from, caller, .. } = rule;
    let caller = caller.condition(from);
    advise(&mut scope, &when.arguments, verdict == Some(Verdict::Allow));
    for mut target in targets.unwrap_or_else(|| vec![RuleTarget::default()]) {
        match verdict {
            Some(verdict) if scope.first_error.is_none() => {
                target.labels = when.to;
                rules.push(Rule {
                    caller: caller.clone(),
                    arguments: when.arguments.clone(),
                    flow: FlowCondition { carries: when.carries, steered_by: when.steered_by },
                    reason: reason.as_deref().map(Into::into),
                    ..Rule::new(target, verdict, scope.file.origin(at))
                });
            }
            Some(Verdict::Allow) => {}
            _ => rules.push(denial(scope.file, at, target)),
        }
    }
}

/// The rule that replaces an unreadable one.
pub(crate) fn denial(file: &FileReader<'_>, at: &Location, target: RuleTarget) -> Rule {
    let reason = Some("a part of the policy cannot be read".into());
    Rule { reason, ..Rule::new(target, Verdict::Deny, file.origin(at)) }
}

/// The targets of the rule, one for each pattern; `None` if they cannot be read.
pub(crate) fn targets(
    scope: &mut Scope<'_, '_>,
    annotations: &[(Hint, bool)],
    trust: Option<Trust>,
) -> Option<Vec<RuleTarget>> {
    let error = ProblemSeverity::Error;
    let server = scope.object.get("server");
    let name = match server.map(|member| (member, &member.node.value)) {
        None => None,
        Some((_, Value::String(name))) => Some(&**name),
        Some((member, value)) => {
            scope.mismatch(error, &scope.at.value(member), value, "a string", "");
            return None;
        }
    };
    let tools = scope.object.get("tool");
    let nodes: Vec<Option<&Node<'_>>> = match tools.map(|member| (member, &member.node.value)) {
        Some((_, Value::Array(nodes))) if !nodes.is_empty() => nodes.iter().map(Some).collect(),
        Some((member, _)) => vec![Some(&member.node)],
        None => vec![None],
    };
    let mut targets = Vec::with_capacity(nodes.len());
    for node in nodes {
        let named = tools.or(server).map(|member| scope.at.value(member)).unwrap_or_default();
        let at = Location { offset: node.map_or(named.offset, |node| node.offset), ..named };
        let tool = match node.map(|node| &node.value) {
            None => None,
            Some(Value::String(tool)) => Some(&**tool),
            Some(value) => {
                scope.mismatch(error, &at, value, "a name or pattern, or a list of them", "");
                return None;
            }
        };
        match RuleTarget::read(name, tool) {
            Ok(target) => {
                let annotations = annotations.to_vec();
                targets.push(RuleTarget { annotations, trust, ..target });
            }
            Err(problem) => {
                scope.complain(error, &at, &problem.to_string(), "");
                return None;
            }
        }
    }
    Some(targets)
}

pub(crate) fn annotations(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
) -> Option<Vec<(Hint, bool)>> {
    let hint = "write `\"annotations\": { \"destructiveHint\": true }`";
    scope.nested(member, hint, |scope| {
        scope.refuse_unknown::<AnnotationKeys>();
        let claims = Hint::CHOICES
            .iter()
            .filter_map(|(name, hint)| Some((*hint, scope.setting(name, &Flag(Wrong::Refused))?)));
        claims.collect()
    })
}

fn when(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<WhenConfig> {
    let hint = "write `\"when\": { \"arguments\": { \"path\": { \"under\": \"/srv\" } } }`";
    scope.nested(member, hint, |scope| {
        scope.refuse_unknown::<WhenConfig>();
        let mut when = WhenConfig::default();
        when.read_keys(scope);
        when
    })
}

pub(crate) fn caller(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<CallerConfig> {
    let hint = "write `\"caller\": { \"token\": \"ci\" }`";
    let caller = scope.nested(member, hint, |scope| {
        scope.refuse_unknown::<CallerConfig>();
        let mut caller = CallerConfig::default();
        caller.read_keys(scope);
        caller
    })?;
    if caller == CallerConfig::default() && scope.first_error.is_none() {
        scope.error(member, "names no caller", hint);
    }
    Some(caller)
}

fn patterns() -> Custom<Vec<NamePattern>> {
    custom(|_| one_or_many(&json!({ "type": "string" })), read_patterns)
}

/// Patterns of names. An empty list would make the rule one without the condition.
fn read_patterns(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Vec<NamePattern>> {
    let nodes = match &member.node.value {
        Value::Array(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&member.node),
    };
    let pattern = |node: &Node<'_>| match &node.value {
        Value::String(text) => NamePattern::new(text).ok(),
        _ => None,
    };
    let patterns: Option<Vec<NamePattern>> = nodes.iter().map(pattern).collect();
    let patterns = patterns.filter(|patterns| !patterns.is_empty());
    if patterns.is_none() {
        scope.error(member, "must be a name or pattern, or a list of them", "");
    }
    patterns
}

/// Warns of conditions that mean something else than they seem to.
fn advise(scope: &mut Scope<'_, '_>, conditions: &ArgumentConditions, allows: bool) {
    let tool = scope.object.get("tool").or(scope.object.get("server"));
    let tool = match tool.map(|member| &member.node.value) {
        Some(Value::String(name)) => Some(&**name),
        _ => None,
    };
    for ConditionAdvice { argument, operator, problem, instead } in conditions.advice(tool, allows)
    {
        let (mut object, mut at) = (scope.object, scope.at.clone());
        for key in ["when", "arguments", &argument, operator] {
            let Some(member) = object.get(key) else { break };
            at = at.child(key, member.key_offset);
            if let Value::Object(inner) = &member.node.value {
                object = inner;
            }
        }
        scope.complain(ProblemSeverity::Warning, &at, &problem, &format!("write {instead}"));
    }
}

/// Labels of a condition. An empty list would make the rule one without the condition.
fn labels(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<LabelSet> {
    let labels: Option<LabelSet> = scope.words::<Label, _>(member);
    if labels.is_some_and(LabelSet::is_empty) {
        scope.error(member, "is empty", "name a label, or leave the key out");
    }
    labels
}

/// Reads the conditions under `arguments`; a mistake is an error, and none of them is used. The
/// policy reads the conditions itself; here they get their locations.
fn conditions(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<ArgumentConditions> {
    let hint = "write `\"arguments\": { \"path\": { \"under\": \"/srv\" } }`";
    let conditions = scope.nested(member, hint, |scope| {
        let arguments = arguments(scope)?;
        let conditions = ArgumentConditions::from_value(&Json::Object(arguments));
        conditions.map_err(|error| complain(scope, member, &error)).ok()
    });
    conditions.flatten()
}

/// The conditions as JSON. Variables are expanded where a path is written.
fn arguments(scope: &mut Scope<'_, '_>) -> Option<Map<String, Json>> {
    let mut arguments = Map::new();
    for argument in &scope.object.members {
        let at = scope.at.value(argument);
        let condition = match &argument.node.value {
            Value::Object(body) => scope.within(body, at, |scope| {
                scope.report_replaced();
                let mut operators = Map::new();
                for member in &scope.object.members {
                    let at = scope.at.value(member);
                    let operand = match &member.node.value {
                        Value::String(text) if member.key == "under" => {
                            Json::String(scope.expand(&at, text)?)
                        }
                        _ => as_json(scope, &at, &member.node)?,
                    };
                    operators.insert(member.key.to_string(), operand);
                }
                Some(Json::Object(operators))
            })?,
            _ => as_json(scope, &at, &argument.node)?,
        };
        arguments.insert(argument.key.to_string(), condition);
    }
    Some(arguments)
}

/// The same value as JSON. The depth is bounded by that of the file.
fn as_json(scope: &mut Scope<'_, '_>, at: &Location, node: &Node<'_>) -> Option<Json> {
    let at = &Location { offset: node.offset, path: at.path.clone() };
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::String(text) => Json::String(text.to_string()),
        Value::Number(text) => {
            let Ok(number) = serde_json::from_str(text) else {
                scope.unfit(ProblemSeverity::Error, at, "a number as JSON has them", "");
                return None;
            };
            Json::Number(number)
        }
        Value::Array(nodes) => {
            let items = nodes.iter().map(|node| as_json(scope, at, node));
            Json::Array(items.collect::<Option<_>>()?)
        }
        Value::Object(object) => {
            let fields = object
                .members
                .iter()
                .map(|member| Some((member.key.to_string(), as_json(scope, at, &member.node)?)));
            Json::Object(fields.collect::<Option<_>>()?)
        }
        Value::Date | Value::Alias => {
            let error = ProblemSeverity::Error;
            scope.mismatch(error, at, &node.value, "a value that JSON has", "");
            return None;
        }
    })
}

/// Records an error of the policy at its location in the file.
fn complain(scope: &mut Scope<'_, '_>, member: &Member<'_>, error: &ConditionError) {
    let hint = match (&error.problem, error.path.last()) {
        (ConditionProblem::UnknownOperator, Some(name)) => match nearest(name, OPERATORS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are `{}`", OPERATORS.join("`, `")),
        },
        _ => String::new(),
    };
    let is_key = matches!(
        error.problem,
        ConditionProblem::UnknownOperator | ConditionProblem::Path | ConditionProblem::Alone(_)
    );
    let offset = |member: &Member<'_>| if is_key { member.key_offset } else { member.node.offset };
    let (mut found, mut at) = (member, Location { offset: offset(member), ..scope.at.clone() });
    for (depth, key) in error.path.iter().enumerate() {
        if let Value::Object(object) = &found.node.value
            && let Some(inner) = object.get(key)
        {
            found = inner;
        }
        // Values inside an operand have no path.
        if depth < 2 {
            at = at.child(key, 0);
        }
        at.offset = offset(found);
    }
    scope.complain(ProblemSeverity::Error, &at, &error.problem.to_string(), &hint);
}
