//! The rules of the policy.

use std::sync::Arc;

use toolgate_policy::{
    ArgumentConditions, FlowCondition, Hint, Label, LabelSet, MAX_RULES, Rule, RuleTarget, Trust,
    Verdict,
};

use super::policy::origin;
use super::report::Path;
use super::scope::Scope;
use super::{Context, condition};
use crate::Severity;
use crate::choice::Choice;
use crate::document::{Node, Object, Value};
use crate::keys::{RULE, WHEN};

/// The longest reason, in characters.
const LONGEST_REASON: usize = 500;

/// The keys that say which tools a rule is about.
const TARGET: &[&str] = &["server", "tool", "annotations", "trusted"];

/// What is under `when`.
#[derive(Default)]
struct When {
    arguments: ArgumentConditions,
    flow: FlowCondition,
    to: LabelSet,
}

/// Reads all rules. One that cannot be read denies what it may have been about, unless it was to
/// allow: then it is left out.
pub(super) fn read_all(scope: &mut Scope<'_, '_>) -> Vec<Rule> {
    let Some(member) = scope.object.get("rules") else { return Vec::new() };
    let path = Path::Key(scope.path, &member.key);
    let Value::Array(elements) = &member.node.value else {
        let hint = "write `\"rules\": [{ \"tool\": \"github_*\", \"verdict\": \"ask\" }]`";
        scope.mismatch(Severity::Error, &path, &member.node, "a list", Some(hint.into()));
        return vec![denial(scope.context, &path, &member.node, RuleTarget::default())];
    };
    let mut rules = Vec::with_capacity(elements.len().min(MAX_RULES));
    for (index, element) in elements.iter().enumerate() {
        let path = Path::Index(&path, index);
        read(scope, &path, element, &mut rules);
        if rules.len() > MAX_RULES {
            let predicate = "is one rule too many: a policy may have at most 10,000";
            scope.complain(Severity::Error, &path, element.offset, predicate, None);
            rules.truncate(MAX_RULES);
            rules.push(denial(scope.context, &path, element, RuleTarget::default()));
            break;
        }
    }
    rules
}

fn read(scope: &mut Scope<'_, '_>, path: &Path<'_>, node: &Node<'_>, rules: &mut Vec<Rule>) {
    let Value::Object(object) = &node.value else {
        scope.mismatch(Severity::Error, path, node, "an object", None);
        rules.push(denial(scope.context, path, node, RuleTarget::default()));
        return;
    };
    let outer_error = scope.first_error.take();
    scope.within(object, path, |inner| {
        inner.refuse_replaced(object, path);
        inner.refuse_unknown(RULE);
        let is_twice =
            |keys: &[&str]| object.replaced.iter().any(|each| keys.contains(&&*each.key));
        let targets = targets(inner).filter(|_| !is_twice(TARGET));
        let verdict = verdict(inner, node.offset).filter(|_| !is_twice(&["verdict"]));
        let when = when(inner);
        let reason = reason(inner);
        let is_sound = inner.first_error.is_none();
        let targets = targets.unwrap_or_else(|| vec![RuleTarget::default()]);
        for mut target in targets {
            match verdict {
                Some(verdict) if is_sound => {
                    target.labels = when.to;
                    let origin = origin(inner.context, path, node.offset);
                    rules.push(Rule {
                        arguments: when.arguments.clone(),
                        flow: when.flow,
                        reason: reason.clone(),
                        ..Rule::new(target, verdict, origin)
                    });
                }
                Some(Verdict::Allow) => {}
                _ => rules.push(denial(inner.context, path, node, target)),
            }
        }
    });
    scope.first_error = outer_error;
}

/// What stands in for what cannot be read.
pub(super) fn denial(
    context: &Context<'_>,
    path: &Path<'_>,
    node: &Node<'_>,
    target: RuleTarget,
) -> Rule {
    let origin = origin(context, path, node.offset);
    let reason = Some("a part of the policy cannot be read".into());
    Rule { reason, ..Rule::new(target, Verdict::Deny, origin) }
}

/// Which tools the rule is about: one target for each pattern. None where that cannot be read.
fn targets(scope: &mut Scope<'_, '_>) -> Option<Vec<RuleTarget>> {
    let server = scope.object.get("server");
    let name = match server.map(|member| (member, &member.node.value)) {
        None => None,
        Some((_, Value::String(name))) => Some(&**name),
        Some((member, _)) => {
            let path = Path::Key(scope.path, &member.key);
            scope.mismatch(Severity::Error, &path, &member.node, "a string", None);
            return None;
        }
    };
    let tools = scope.object.get("tool");
    let one = tools.map(|member| std::slice::from_ref(&member.node));
    let nodes: Vec<Option<&Node<'_>>> = match tools.map(|member| &member.node.value) {
        Some(Value::Array(nodes)) if !nodes.is_empty() => nodes.iter().map(Some).collect(),
        Some(_) => one.into_iter().flatten().map(Some).collect(),
        None => vec![None],
    };
    let annotations = annotations(scope);
    let trust = scope.boolean("trusted", Severity::Error);
    let trust = trust.map(|trusted| if trusted { Trust::Trusted } else { Trust::Unknown });
    let mut targets = Vec::with_capacity(nodes.len());
    for node in nodes {
        let tool = match node.map(|node| (node, &node.value)) {
            None => None,
            Some((node, Value::String(tool))) => Some((&**tool, node)),
            Some((node, _)) => {
                let path = Path::Key(scope.path, "tool");
                let expected = "a name or pattern, or a list of them";
                scope.mismatch(Severity::Error, &path, node, expected, None);
                return None;
            }
        };
        match RuleTarget::read(name, tool.map(|(name, _)| name)) {
            Ok(target) => {
                targets.push(RuleTarget { annotations: annotations.clone(), trust, ..target });
            }
            Err(error) => {
                let key = if tool.is_some() { "tool" } else { "server" };
                let path = Path::Key(scope.path, key);
                let node = tool.map(|(_, node)| node).or(server.map(|member| &member.node));
                let offset = node.map_or(0, |node| node.offset);
                scope.complain(Severity::Error, &path, offset, &error.to_string(), None);
                return None;
            }
        }
    }
    Some(targets)
}

fn annotations(scope: &mut Scope<'_, '_>) -> Vec<(Hint, bool)> {
    let hint = "write `\"annotations\": { \"destructiveHint\": true }`";
    let Some(member) = scope.object.get("annotations") else { return Vec::new() };
    let Some(object) = scope.members(member, hint) else { return Vec::new() };
    let path = Path::Key(scope.path, &member.key);
    let names: Vec<&str> = Hint::CHOICES.iter().map(|(name, _)| *name).collect();
    scope.within(object, &path, |inner| {
        inner.refuse_unknown(&names);
        Hint::CHOICES
            .iter()
            .filter_map(|(name, hint)| Some((*hint, inner.boolean(name, Severity::Error)?)))
            .collect()
    })
}

fn verdict(scope: &mut Scope<'_, '_>, offset: usize) -> Option<Verdict> {
    if scope.object.get("verdict").is_none() {
        let hint = format!("add `\"verdict\"`: {}", Verdict::names());
        scope.complain(Severity::Error, scope.path, offset, "has no `verdict`", Some(hint));
        return None;
    }
    scope.choice("verdict", Severity::Error)
}

fn when(scope: &mut Scope<'_, '_>) -> When {
    let hint = "write `\"when\": { \"arguments\": { \"path\": { \"under\": \"/srv\" } } }`";
    let Some(member) = scope.object.get("when") else { return When::default() };
    let Some(object) = scope.members(member, hint) else { return When::default() };
    let path = Path::Key(scope.path, &member.key);
    scope.within(object, &path, |inner| {
        inner.refuse_unknown(WHEN);
        When {
            arguments: condition::read(inner),
            flow: FlowCondition {
                carries: labels(inner, "carries"),
                steered_by: labels(inner, "steeredBy"),
            },
            to: labels(inner, "to"),
        }
    })
}

/// Labels of a condition. An empty list would make the rule one without the condition.
fn labels(scope: &mut Scope<'_, '_>, key: &str) -> LabelSet {
    let Some(found) = scope.choices::<Label>(key) else { return LabelSet::EMPTY };
    if found.is_empty() {
        let object: &Object<'_> = scope.object;
        let offset = object.get(key).map_or(0, |member| member.node.offset);
        let path = Path::Key(scope.path, key);
        let hint = Some("name a label, or leave the key out".to_owned());
        scope.complain(Severity::Error, &path, offset, "is empty", hint);
    }
    found.into_iter().collect()
}

fn reason(scope: &mut Scope<'_, '_>) -> Option<Arc<str>> {
    let member = scope.object.get("reason")?;
    if let Value::String(reason) = &member.node.value
        && reason.chars().nth(LONGEST_REASON).is_none()
        && !reason.chars().any(char::is_control)
    {
        return Some(reason.as_ref().into());
    }
    let path = Path::Key(scope.path, &member.key);
    let expected = "a line of at most 500 characters";
    scope.unfit(Severity::Warning, &path, &member.node, expected, None);
    None
}
