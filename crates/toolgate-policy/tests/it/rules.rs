//! The order of precedence, case by case.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_catalog::{Catalog, CatalogServer, Definition, ToolId};
use toolgate_policy::{
    Annotations, ArgumentConditions, CallPath, CallerCondition, CallerFacts, Claims, Flow, Hint,
    Label, Mode, NamePattern, Policy, PolicySettings, Rule, RuleTarget, ServerPolicy,
    ToolPolicySettings, Trust,
    Verdict::{self, Allow, Ask, Deny},
};

use crate::{create_issue, policy, rule, verdict, with_arguments};

const TOOL: Option<&str> = Some("github_create_issue");
const SERVER: Option<&str> = Some("github");

#[test]
fn without_rules_the_mode_decides() {
    let nothing = |mode| verdict(mode, vec![]);
    assert_eq!(nothing(Mode::Allow), Allow);
    assert_eq!(nothing(Mode::Ask), Ask);
    assert_eq!(nothing(Mode::DenyWrites), Deny);
    let other = rule(0, None, Some("jira_*"), Deny);
    assert_eq!(verdict(Mode::Ask, vec![other]), Ask);
}

#[test]
fn the_more_specific_rule_decides_in_any_order() {
    let claimed = Rule {
        target: RuleTarget {
            annotations: vec![(Hint::DestructiveHint, true)],
            ..RuleTarget::default()
        },
        ..rule(3, None, None, Ask)
    };
    let conditional =
        with_arguments(rule(6, None, TOOL, Ask), &json!({ "x": { "exists": false } }));
    // From the widest to the narrowest; each is stronger than all before it.
    let ladder = [
        rule(0, None, None, Ask),
        rule(1, SERVER, None, Ask),
        claimed,
        rule(4, None, Some("github_*"), Ask),
        rule(5, None, TOOL, Ask),
        conditional,
    ];
    for (index, stronger) in ladder.iter().enumerate() {
        for weaker in &ladder[..index] {
            for (strong, weak) in [(Allow, Ask), (Ask, Allow)] {
                let strong = Rule { verdict: strong, ..stronger.clone() };
                let weak = Rule { verdict: weak, ..weaker.clone() };
                assert_eq!(verdict(Mode::Deny, vec![strong.clone(), weak.clone()]), strong.verdict);
                assert_eq!(verdict(Mode::Deny, vec![weak, strong.clone()]), strong.verdict);
            }
        }
    }
}

#[test]
fn among_equal_rules_the_later_decides_and_a_denial_always_wins() {
    let wide = |verdict| rule(0, None, Some("github_*"), verdict);
    let narrow = |verdict| rule(1, None, Some("*_create_*"), verdict);
    assert_eq!(verdict(Mode::Deny, vec![wide(Allow), narrow(Ask)]), Ask);
    assert_eq!(verdict(Mode::Deny, vec![narrow(Ask), wide(Allow)]), Allow);
    assert_eq!(
        verdict(Mode::Allow, vec![rule(0, None, None, Deny), rule(1, None, TOOL, Allow)]),
        Deny
    );
}

#[test]
fn a_tool_is_named_in_several_ways() {
    for named in [
        rule(0, None, Some("github_create_issue"), Ask),
        rule(0, None, Some("github/create_issue"), Ask),
        rule(0, SERVER, Some("create_issue"), Ask),
        rule(0, SERVER, TOOL, Ask),
        rule(0, None, Some("*/create_*"), Ask),
        rule(0, Some("git*"), Some("create_?ssue"), Ask),
    ] {
        assert_eq!(verdict(Mode::Allow, vec![named.clone()]), Ask, "{named:?}");
    }
    for other in [
        rule(0, None, Some("create_issue"), Ask),
        rule(0, Some("gitlab"), Some("create_issue"), Ask),
        rule(0, None, Some("gitlab/*"), Ask),
    ] {
        assert_eq!(verdict(Mode::Allow, vec![other.clone()]), Allow, "{other:?}");
    }
}

#[test]
fn an_approval_is_a_rule_for_one_tool_and_comes_first() {
    let approve = |approval, rules| {
        let tools = BTreeMap::from([(
            "create_issue".into(),
            ToolPolicySettings { approval: Some(approval), labels: None, only_from: None },
        )]);
        let server = ServerPolicy { tools, ..ServerPolicy::default() };
        let servers = BTreeMap::from([("github".into(), server)]);
        let policy = Policy::new(PolicySettings { rules, servers, ..PolicySettings::default() });
        create_issue(&policy).decide(&json!({}), &Flow::NONE).verdict
    };
    assert_eq!(approve(Ask, vec![]), Ask);
    assert_eq!(approve(Ask, vec![rule(0, None, Some("github_*"), Allow)]), Ask);
    assert_eq!(approve(Ask, vec![rule(0, None, TOOL, Allow)]), Allow);
    assert_eq!(approve(Deny, vec![rule(0, None, TOOL, Allow)]), Deny);
}

#[test]
fn claims_count_only_if_trusted() {
    let decide = |claims, trust, mode| {
        let server = ServerPolicy { trust, ..ServerPolicy::default() };
        let servers = BTreeMap::from([("notes".into(), server)]);
        let policy =
            Policy::new(PolicySettings { claims, servers, ..PolicySettings::of_mode(mode) });
        let reads = Annotations::from_value(&json!({ "readOnlyHint": true }));
        let tool = policy.tool(&ToolId::new("notes", "list"), "notes_list", reads);
        tool.decide(&json!({}), &Flow::NONE).verdict
    };
    assert_eq!(decide(Claims::All, Trust::Unknown, Mode::Ask), Allow);
    assert_eq!(decide(Claims::Trusted, Trust::Unknown, Mode::Ask), Ask);
    assert_eq!(decide(Claims::Trusted, Trust::Trusted, Mode::Ask), Allow);
    assert_eq!(decide(Claims::All, Trust::Trusted, Mode::AskAlways), Ask);

    let trusted = |trust| {
        let target = RuleTarget { trust: Some(trust), ..RuleTarget::default() };
        verdict(Mode::Allow, vec![Rule { target, ..rule(0, None, None, Ask) }])
    };
    assert_eq!((trusted(Trust::Unknown), trusted(Trust::Trusted)), (Ask, Allow));
}

#[test]
fn arguments_decide() {
    let rules = vec![
        rule(0, None, TOOL, Ask),
        with_arguments(rule(1, None, TOOL, Allow), &json!({ "repo": { "prefix": "ada/" } })),
        with_arguments(rule(2, None, TOOL, Deny), &json!({ "labels.*": { "equals": "security" } })),
    ];
    let tool = create_issue(&policy(Mode::Allow, rules));
    let decide = |arguments| tool.decide(&arguments, &Flow::NONE).verdict;
    assert_eq!(decide(json!({ "repo": "bob/x" })), Ask);
    assert_eq!(decide(json!({ "repo": "ada/x" })), Allow);
    assert_eq!(decide(json!({ "repo": ["ada/x"] })), Ask, "what is unclear is not allowed");
    assert_eq!(decide(json!({ "repo": "ada/x", "labels": ["bug", "security"] })), Deny);
}

#[test]
fn always_denied_tools_are_hidden() {
    let hidden = |mode, rules| create_issue(&policy(mode, rules)).is_hidden();
    let sometimes =
        |verdict| with_arguments(rule(1, None, TOOL, verdict), &json!({ "x": { "equals": 1 } }));
    assert!(hidden(Mode::Allow, vec![rule(0, SERVER, None, Deny)]));
    assert!(hidden(Mode::Allow, vec![rule(0, SERVER, None, Deny), rule(1, None, TOOL, Allow)]));
    assert!(!hidden(Mode::Allow, vec![sometimes(Deny)]));
    assert!(hidden(Mode::Deny, vec![sometimes(Deny)]));
    assert!(!hidden(Mode::Deny, vec![sometimes(Allow)]));
    assert!(!hidden(Mode::Deny, vec![rule(0, None, None, Ask)]));
    assert!(hidden(Mode::DenyWrites, vec![]));
    let from = |from| {
        let caller = CallerCondition { from: Some(from), ..CallerCondition::default() };
        Rule { caller, ..rule(0, SERVER, None, Deny) }
    };
    assert!(!hidden(Mode::Allow, vec![from(CallPath::Direct)]));
    assert!(hidden(Mode::Allow, vec![from(CallPath::Direct), from(CallPath::Script)]));
    // A rule that allows what another rule denies frees nothing.
    let script = Rule { verdict: Allow, ..from(CallPath::Script) };
    assert!(!hidden(Mode::Deny, vec![script.clone()]));
    assert!(hidden(Mode::Deny, vec![script, from(CallPath::Script)]));
    // One policy denies the one way, the policy above it the other.
    let settings = |rules| PolicySettings { rules, ..PolicySettings::of_mode(Mode::Allow) };
    let folder = settings(vec![from(CallPath::Script)]);
    let own = settings(vec![from(CallPath::Direct)]);
    assert!(create_issue(&Policy::new(folder.clone().under(&own))).is_hidden());
    assert!(!create_issue(&Policy::new(folder.clone().under(&folder))).is_hidden());
}

#[test]
fn what_a_caller_can_never_call_is_closed_to_that_caller() {
    let ci = CallerFacts { token: Some("ci".into()), ..CallerFacts::default() };
    let token = |verdict| {
        let token = vec![NamePattern::new("ci").expect("a sound pattern")];
        let caller = CallerCondition { token, ..CallerCondition::default() };
        Rule { caller, ..rule(0, SERVER, None, verdict) }
    };
    let closed = |mode, rules, caller: &CallerFacts, from| {
        let tool = create_issue(&policy(mode, rules));
        assert!(!tool.is_hidden(), "somebody can call it");
        tool.is_closed_to(caller, from)
    };
    let nobody = CallerFacts::default();
    for from in [CallPath::Direct, CallPath::Script] {
        assert!(closed(Mode::Allow, vec![token(Deny)], &ci, from));
        assert!(!closed(Mode::Allow, vec![token(Deny)], &nobody, from));
        assert!(!closed(Mode::Deny, vec![token(Allow)], &ci, from));
        assert!(closed(Mode::Deny, vec![token(Allow)], &nobody, from));
    }
    let sometimes = with_arguments(token(Deny), &json!({ "x": { "equals": 1 } }));
    assert!(!closed(Mode::Allow, vec![sometimes], &ci, CallPath::Direct));
    let only = ToolPolicySettings { only_from: Some(CallPath::Direct), ..Default::default() };
    let tools = BTreeMap::from([("create_issue".into(), only)]);
    let servers = BTreeMap::from([("github".into(), ServerPolicy { tools, ..Default::default() })]);
    let tool = create_issue(&Policy::new(PolicySettings { servers, ..PolicySettings::default() }));
    assert!(tool.is_closed_to(&nobody, CallPath::Script));
    assert!(!tool.is_closed_to(&nobody, CallPath::Direct));
}

#[test]
fn only_the_first_policy_lets_through_what_nobody_can_be_asked_about() {
    let says = |value| Annotations::from_value(&value);
    let id = ToolId::new("github", "create_issue");
    let first = PolicySettings::of_mode(Mode::AskDestructive);
    let decide = |settings: PolicySettings, annotations| {
        let tool = Policy::new(settings).tool(&id, "github_create_issue", annotations);
        tool.decide(&json!({}), &Flow::NONE)
    };
    let destroys = || says(json!({ "destructiveHint": true }));
    let asked = decide(first.clone(), destroys());
    assert_eq!((asked.verdict, asked.is_optional()), (Ask, true));
    for other in [json!({}), json!({ "readOnlyHint": false }), json!({ "destructiveHint": false })]
    {
        assert_eq!(decide(first.clone(), says(other)).verdict, Allow);
    }
    // Whatever else asks does not let the call through where nobody can be asked.
    let asks = PolicySettings { rules: vec![rule(0, SERVER, None, Ask)], ..first.clone() };
    assert!(!decide(asks.clone(), destroys()).is_optional());
    for (below, above) in [(&asks, &first), (&first, &asks)] {
        let decision = decide(below.clone().under(above), destroys());
        assert_eq!((decision.verdict, decision.is_optional()), (Ask, false));
    }
    let strict = PolicySettings::of_mode(Mode::Ask);
    assert!(!decide(first.clone().under(&strict), destroys()).is_optional());
    assert_eq!(decide(PolicySettings::default().under(&first), destroys()).verdict, Ask);
}

#[test]
fn labels_come_from_the_tool_or_from_its_server_and_patterns() {
    let tools = BTreeMap::from([(
        "publish".into(),
        ToolPolicySettings { approval: None, labels: Some(Label::Egress.into()), only_from: None },
    )]);
    let server = ServerPolicy { labels: Label::Private.into(), tools, ..ServerPolicy::default() };
    let policy = Policy::new(PolicySettings {
        servers: BTreeMap::from([("wiki".into(), server)]),
        labels: vec![
            (RuleTarget::read(None, Some("*_comments")).expect("sound"), Label::Untrusted.into()),
            (RuleTarget::read(None, Some("wiki/*")).expect("sound"), Label::Egress.into()),
        ],
        ..PolicySettings::default()
    });
    let definition = |name: &str| {
        Definition::from_value(&json!({ "name": name, "inputSchema": {} })).expect("sound")
    };
    let mut catalog = Catalog::new([CatalogServer::named("wiki"), CatalogServer::named("other")]);
    catalog.replace_server(&"wiki".into(), vec![definition("publish"), definition("comments")]);
    catalog.replace_server(&"other".into(), vec![definition("list")]);
    let labels =
        |name: &str| policy.of(catalog.resolve(name).expect("a known name")).labels().to_string();
    assert_eq!(labels("wiki_publish"), "egress");
    assert_eq!(labels("wiki_comments"), "private, untrusted, egress");
    assert_eq!(labels("other_list"), "");
}

#[test]
fn verdicts_are_words() {
    let words = serde_json::to_value([Verdict::Allow, Ask, Deny]).expect("plain words");
    assert_eq!(words, json!(["allow", "ask", "deny"]));
    assert_eq!(serde_json::to_value(Mode::DenyWrites).expect("a plain word"), "deny-writes");
}

#[test]
fn repeatable_calls_need_a_trusted_claim() {
    let repeatable = |claims, trust, hint: &str| {
        let server = ServerPolicy { trust, ..ServerPolicy::default() };
        let servers = BTreeMap::from([("notes".into(), server)]);
        let policy = Policy::new(PolicySettings { claims, servers, ..PolicySettings::default() });
        let says = Annotations::from_value(&json!({ hint: true }));
        policy.tool(&ToolId::new("notes", "put"), "notes_put", says).is_repeatable()
    };
    for hint in ["readOnlyHint", "idempotentHint"] {
        assert!(repeatable(Claims::All, Trust::Unknown, hint));
        assert!(!repeatable(Claims::Trusted, Trust::Unknown, hint));
        assert!(repeatable(Claims::Trusted, Trust::Trusted, hint));
    }
    assert!(!repeatable(Claims::All, Trust::Trusted, "openWorldHint"));
}

/// Which rules deny does not matter, if together they deny every call.
#[test]
fn denials_that_together_cover_every_call_hide_a_tool() {
    let deny = || rule(0, None, Some("mail_send"), Deny);
    let from = |path| {
        let mut rule = deny();
        rule.caller.from = Some(path);
        rule
    };
    let exists = |wanted: bool| Rule {
        arguments: ArgumentConditions::from_value(&json!({ "to": { "exists": wanted } })).unwrap(),
        ..deny()
    };
    let is_hidden = |rules: Vec<Rule>| {
        let settings = PolicySettings { rules, ..PolicySettings::of_mode(Mode::Allow) };
        let id = ToolId::new("mail", "send");
        Policy::new(settings).tool(&id, "mail_send", Annotations::default()).is_hidden()
    };
    assert!(is_hidden(vec![from(CallPath::Direct), from(CallPath::Script)]));
    assert!(is_hidden(vec![exists(true), exists(false)]));
    assert!(!is_hidden(vec![exists(true)]) && !is_hidden(vec![exists(false)]));
    let mut direct = exists(true);
    direct.caller.from = Some(CallPath::Direct);
    assert!(!is_hidden(vec![direct.clone(), exists(false)]), "a script can name it");
    assert!(is_hidden(vec![direct, exists(false), from(CallPath::Script)]));
}
