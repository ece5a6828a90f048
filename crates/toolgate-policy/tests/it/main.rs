//! Policies as a whole: which rule decides, what people are told, what holds for all rules.

#![expect(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod catalogue;
mod changes;
mod explanations;
mod findings;
mod flows;
mod forms;
mod grants;
mod names;
mod properties;
mod rules;

use serde_json::{Value, json};
use toolgate_catalog::ToolId;
use toolgate_policy::{
    Annotations, ArgumentConditions, Flow, Mode, Policy, PolicySettings, Rule, RuleOrigin,
    RuleTarget, ToolPolicy, Verdict,
};

/// A rule as a configuration would have it, the `number`th of its file.
fn rule(number: usize, server: Option<&str>, tool: Option<&str>, verdict: Verdict) -> Rule {
    let target = RuleTarget::read(server, tool).expect("a sound pattern");
    let path = format!("policy.rules[{number}]").into();
    let position = Some(format!("toolgate.json:{}:7", number + 2).into());
    Rule::new(target, verdict, RuleOrigin::Configured { path, position })
}

/// The same with conditions on its arguments.
fn with_arguments(rule: Rule, conditions: &Value) -> Rule {
    let arguments = ArgumentConditions::from_value(conditions).expect("sound conditions");
    Rule { arguments, ..rule }
}

fn policy(mode: Mode, rules: Vec<Rule>) -> Policy {
    Policy::new(PolicySettings { rules, ..PolicySettings::of_mode(mode) })
}

/// The policy for `github/create_issue`, of which nothing is claimed.
fn create_issue(policy: &Policy) -> ToolPolicy {
    let id = ToolId::new("github", "create_issue");
    policy.tool(&id, "github_create_issue", Annotations::default())
}

/// What becomes of a call of `github/create_issue` without arguments.
fn verdict(mode: Mode, rules: Vec<Rule>) -> Verdict {
    create_issue(&policy(mode, rules)).decide(&json!({}), &Flow::NONE).verdict
}
