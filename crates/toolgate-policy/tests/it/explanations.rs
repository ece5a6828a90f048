//! What people are told of a decision.

use insta::assert_snapshot;
use serde_json::json;
use toolgate_catalog::ToolId;
use toolgate_policy::{
    Annotations, Contact, Evidence, Flow, FlowCondition, Label, Mode, Rule,
    Verdict::{Allow, Ask, Deny},
};

use crate::{create_issue, policy, rule, with_arguments};

fn explained(mode: Mode, rules: Vec<Rule>, flow: &Flow) -> String {
    create_issue(&policy(mode, rules)).explain(&json!({ "repo": "ada/x" }), flow).to_string()
}

#[test]
fn the_mode() {
    assert_snapshot!(explained(Mode::Ask, vec![], &Flow::NONE), @r#"ask: no rule applies, and the default is "ask"; the tool does not count as read-only"#);
    assert_snapshot!(explained(Mode::Allow, vec![], &Flow::NONE), @r#"allow: no rule applies, and the default is "allow""#);
}

#[test]
fn the_deciding_rule_and_the_other_matching_rules() {
    let winner =
        Rule { reason: Some("Issues are public".into()), ..rule(1, None, Some("github_*"), Ask) };
    let rules = vec![
        rule(0, None, Some("*_issue"), Allow),
        winner,
        rule(2, Some("github"), None, Allow),
        rule(3, None, Some("jira_*"), Deny),
    ];
    assert_snapshot!(explained(Mode::Deny, rules, &Flow::NONE), @r#"
    ask: `policy.rules[1]` (toolgate.json:3:7), a pattern: "Issues are public"
      `policy.rules[0]` (toolgate.json:2:7) says allow, but one as specific is further down
      `policy.rules[2]` (toolgate.json:4:7) says allow, but is less specific: a server
    "#);
}

#[test]
fn a_denial() {
    let rules = vec![
        rule(0, Some("github"), None, Deny),
        with_arguments(
            rule(1, None, Some("github_create_issue"), Allow),
            &json!({ "repo": { "prefix": "ada/" } }),
        ),
    ];
    assert_snapshot!(explained(Mode::Deny, rules, &Flow::NONE), @"
    deny: `policy.rules[0]` (toolgate.json:2:7), a server
      `policy.rules[1]` (toolgate.json:3:7) says allow, but a denial beats it
    ");
}

#[test]
fn data_with_its_evidence() {
    let seen = Evidence {
        run_call: None,
        tool: ToolId::new("crm", "get_customer"),
        call: 3,
        labels: Label::Private.into(),
        contact: Contact::Carried,
        argument: Some("/body".into()),
        way: None,
    };
    let flow = Flow { evidence: vec![seen] };
    let rules = vec![
        rule(0, None, Some("github_create_issue"), Allow),
        Rule {
            flow: FlowCondition { carries: Label::Private.into(), ..Default::default() },
            reason: Some("customers are not for GitHub".into()),
            ..rule(1, Some("github"), None, Deny)
        },
    ];
    assert_snapshot!(explained(Mode::Ask, rules.clone(), &flow), @r#"
    deny: `policy.rules[1]` (toolgate.json:3:7), a server with conditions: "customers are not for GitHub"
      /body has data of crm/get_customer (call 3): private
      `policy.rules[0]` (toolgate.json:2:7) says allow, but a denial beats it
    "#);
    let tool = create_issue(&policy(Mode::Ask, rules));
    let machine =
        serde_json::to_string_pretty(&tool.explain(&json!({}), &flow)).expect("plain JSON");
    assert_snapshot!(machine, @r#"
    {
      "verdict": "deny",
      "rule": {
        "path": "policy.rules[1]",
        "place": "toolgate.json:3:7"
      },
      "specificity": {
        "configured": true,
        "breadth": "server",
        "conditional": true
      },
      "reason": "customers are not for GitHub",
      "unclear": [],
      "links": [],
      "evidence": [
        {
          "tool": {
            "server": "crm",
            "tool": "get_customer"
          },
          "call": 3,
          "labels": [
            "private"
          ],
          "contact": "carried",
          "argument": "/body"
        }
      ],
      "considered": [
        {
          "rule": {
            "path": "policy.rules[0]",
            "place": "toolgate.json:2:7"
          },
          "verdict": "allow",
          "lost": "toADenial"
        }
      ],
      "leftOut": 0
    }
    "#);
}

#[test]
fn what_cannot_be_judged() {
    let conditions = json!({ "repo": { "greater": 7 } });
    let rules = vec![with_arguments(rule(0, None, Some("github_create_issue"), Deny), &conditions)];
    assert_snapshot!(explained(Mode::Allow, rules, &Flow::NONE), @"
    deny: `policy.rules[0]` (toolgate.json:2:7), one tool with conditions
      `repo` cannot be judged, which counts against the call
    ");
}

#[test]
fn a_crowd_is_cut_short() {
    let rules = (0..100).map(|number| rule(number, None, Some("github_*"), Ask)).collect();
    let policy = policy(Mode::Ask, rules);
    let id = ToolId::new("github", "x");
    let explanation =
        policy.tool(&id, "github_x", Annotations::default()).explain(&json!({}), &Flow::NONE);
    assert_eq!((explanation.considered.len(), explanation.left_out), (32, 67));
}
