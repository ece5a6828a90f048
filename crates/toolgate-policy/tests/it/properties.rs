//! What holds for all rules.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_catalog::ToolId;
use toolgate_policy::{
    Annotations, CallPath, CallerFacts, Flow, Ground, Hint, Mode, Policy, Rule, RuleTarget,
    ToolPolicy, Verdict,
};

use crate::{policy, rule, with_arguments};

/// The tools that the rules below are about, or not.
const TOOLS: [(&str, &str); 4] =
    [("github", "create_issue"), ("github", "list_issues"), ("git", "hub_list"), ("crm", "list")];

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Allow), Just(Verdict::Ask), Just(Verdict::Deny)]
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Allow), Just(Mode::Ask), Just(Mode::DenyWrites), Just(Mode::Deny)]
}

fn one_rule() -> impl Strategy<Value = Rule> {
    let server = prop_oneof![Just(None), Just(Some("github")), Just(Some("g*"))];
    let tool = prop_oneof![
        Just(None),
        Just(Some("github_create_issue")),
        Just(Some("github_*")),
        Just(Some("*list*")),
        Just(Some("crm/list")),
        Just(Some("*/list*")),
        Just(Some("list_issues")),
    ];
    let claim = prop_oneof![
        3 => Just(None),
        1 => Just(Some((Hint::ReadOnlyHint, true))),
        1 => Just(Some((Hint::DestructiveHint, true))),
    ];
    let condition = prop_oneof![
        2 => Just(json!({})),
        1 => Just(json!({ "n": { "greater": 5 } })),
        1 => Just(json!({ "n": { "exists": true } })),
    ];
    (server, tool, claim, condition, verdicts()).prop_map(
        |(server, tool, claim, condition, verdict)| {
            let made = with_arguments(rule(0, server, tool, verdict), &condition);
            let annotations = claim.into_iter().collect();
            Rule { target: RuleTarget { annotations, ..made.target.clone() }, ..made }
        },
    )
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(one_rule(), 0..8)
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({ "n": 1 })),
        Just(json!({ "n": 9 })),
        Just(json!({ "n": "many" })),
        Just(json!([])),
    ]
}

fn prepared(policy: &Policy, tool: usize, reads: bool) -> ToolPolicy {
    let (server, own) = TOOLS[tool];
    let claims = Annotations::from_value(&json!({ "readOnlyHint": reads }));
    policy.tool(&ToolId::new(server, own), &format!("{server}_{own}"), claims)
}

fn decide(mode: Mode, rules: &[Rule], tool: usize, reads: bool, arguments: &Value) -> Verdict {
    let policy = policy(mode, rules.to_vec());
    prepared(&policy, tool, reads).decide(arguments, &Flow::NONE).verdict
}

/// Whether a rule, alone, decides the call.
fn applies(rule: &Rule, tool: usize, reads: bool, arguments: &Value) -> bool {
    let policy = policy(Mode::Ask, vec![rule.clone()]);
    let decision = prepared(&policy, tool, reads).decide(arguments, &Flow::NONE);
    matches!(decision.ground, Ground::Rule(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The documented order, written down a second time in the plainest way.
    #[test]
    fn the_order_of_precedence(
        mode in modes(), rules in rules(), tool in 0..4_usize, reads: bool, arguments in arguments(),
    ) {
        let applying: Vec<&Rule> =
            rules.iter().filter(|rule| applies(rule, tool, reads, &arguments)).collect();
        let mut expected = mode.verdict(reads, false);
        let mut best = None;
        for rule in &applying {
            if best.is_none_or(|best| rule.specificity() >= best) {
                best = Some(rule.specificity());
                expected = rule.verdict;
            }
        }
        if applying.iter().any(|rule| rule.verdict == Verdict::Deny) {
            expected = Verdict::Deny;
        }
        prop_assert_eq!(decide(mode, &rules, tool, reads, &arguments), expected);
    }

    #[test]
    fn one_more_denial_never_makes_a_verdict_milder(
        mode in modes(), rules in rules(), more in one_rule(), tool in 0..4_usize, arguments in arguments(),
    ) {
        let before = decide(mode, &rules, tool, false, &arguments);
        let denial = Rule { verdict: Verdict::Deny, ..more };
        let all: Vec<Rule> = rules.into_iter().chain([denial]).collect();
        prop_assert!(decide(mode, &all, tool, false, &arguments) >= before);
    }

    #[test]
    fn an_explanation_agrees_with_the_decision_and_names_every_rule(
        mode in modes(), rules in rules(), tool in 0..4_usize, reads: bool, arguments in arguments(),
    ) {
        let count = rules.iter().filter(|rule| applies(rule, tool, reads, &arguments)).count();
        let tool = prepared(&policy(mode, rules), tool, reads);
        let explanation = tool.explain(&arguments, &Flow::NONE);
        prop_assert_eq!(&explanation.decision, &tool.decide(&arguments, &Flow::NONE));
        let decided = usize::from(matches!(explanation.decision.ground, Ground::Rule(_)));
        prop_assert_eq!(explanation.considered.len() + decided, count);
    }

    #[test]
    fn a_hidden_tool_is_always_denied(
        mode in modes(), rules in rules(), tool in 0..4_usize, reads: bool, arguments in arguments(),
    ) {
        let policy = policy(mode, rules);
        let tool = prepared(&policy, tool, reads);
        let verdict = tool.decide(&arguments, &Flow::NONE).verdict;
        prop_assert!(!tool.is_hidden() || verdict == Verdict::Deny);
        prop_assert!(!tool.is_hidden() || policy.may_hide());
        let closed = tool.is_closed_to(&CallerFacts::default(), CallPath::Direct);
        prop_assert!(!tool.is_hidden() || closed);
        prop_assert!(!closed || verdict == Verdict::Deny);
    }

    #[test]
    fn where_no_two_are_equally_specific_their_order_does_not_matter(
        mode in modes(), rules in rules(), tool in 0..4_usize, arguments in arguments(),
    ) {
        let mut rules = rules;
        rules.sort_by_key(Rule::specificity);
        rules.dedup_by_key(|rule| rule.specificity());
        let forward = decide(mode, &rules, tool, false, &arguments);
        rules.reverse();
        prop_assert_eq!(decide(mode, &rules, tool, false, &arguments), forward);
    }
}
