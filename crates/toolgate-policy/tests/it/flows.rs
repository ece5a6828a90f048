//! Rules about data.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate_catalog::{Fingerprint, ToolId};
use toolgate_policy::{
    Annotations, Authorisation, Contact, Decision, Evidence, Flow, FlowCondition, FlowMode, Grant,
    GrantId, GrantRequest, GrantScope, GrantedArguments, Grants, Label, LabelSet, Policy,
    PolicySettings, Presence, Rule, ServerPolicy, Timestamp,
    Verdict::{self, Allow, Ask, Deny},
};

use crate::rule;

fn seen(label: Label, contact: Contact) -> Evidence {
    let tool = ToolId::new("inbox", "read");
    Evidence {
        tool,
        call: 1,
        run_call: None,
        labels: label.into(),
        contact,
        argument: None,
        way: None,
    }
}

/// What becomes of a call of `slack/post`, an egress tool that changes things.
fn post(mode: FlowMode, rules: Vec<Rule>, evidence: &[Evidence]) -> Verdict {
    decision(mode, rules, evidence).verdict
}

fn decision(mode: FlowMode, rules: Vec<Rule>, evidence: &[Evidence]) -> Decision {
    let server = ServerPolicy { labels: Label::Egress.into(), ..ServerPolicy::default() };
    let servers = BTreeMap::from([("slack".into(), server)]);
    let policy = Policy::new(PolicySettings { flow: mode, rules, servers, ..Default::default() });
    let tool = policy.tool(&ToolId::new("slack", "post"), "slack_post", Annotations::default());
    tool.decide(&json!({}), &Flow { evidence: evidence.to_vec() })
}

fn about(carries: LabelSet, steered_by: LabelSet, rule: Rule) -> Rule {
    Rule { flow: FlowCondition { carries, steered_by }, ..rule }
}

#[test]
fn what_toolgate_brings() {
    let private = [seen(Label::Private, Contact::Carried)];
    assert_eq!(post(FlowMode::Content, vec![], &private), Ask);
    assert_eq!(post(FlowMode::Content, vec![], &[seen(Label::Private, Contact::Touched)]), Allow);
    assert_eq!(post(FlowMode::Labels, vec![], &[seen(Label::Private, Contact::Touched)]), Ask);
    assert_eq!(post(FlowMode::Off, vec![], &private), Allow);
    let steered = [seen(Label::Untrusted, Contact::Steered)];
    assert_eq!(post(FlowMode::Content, vec![], &steered), Ask);
}

#[test]
fn an_allowed_tool_needs_an_approval_if_it_sends_private_data() {
    let allowed = vec![rule(0, None, Some("slack_post"), Allow)];
    assert_eq!(post(FlowMode::Content, allowed, &[seen(Label::Private, Contact::Carried)]), Ask);
}

#[test]
fn configured_rules_override_the_built_in_rules() {
    let fine = about(Label::Private.into(), LabelSet::EMPTY, rule(0, Some("slack"), None, Allow));
    let private = seen(Label::Private, Contact::Carried);
    assert_eq!(post(FlowMode::Content, vec![fine.clone()], std::slice::from_ref(&private)), Allow);
    // It says nothing of strangers.
    let both = [private, seen(Label::Untrusted, Contact::Steered)];
    assert_eq!(post(FlowMode::Content, vec![fine], &both), Ask);
}

#[test]
fn a_stricter_call_stays_strict() {
    let ask = rule(0, None, Some("slack_*"), Ask);
    let fine = about(Label::Private.into(), LabelSet::EMPTY, rule(1, Some("slack"), None, Allow));
    let private = [seen(Label::Private, Contact::Carried)];
    assert_eq!(post(FlowMode::Content, vec![ask, fine], &private), Ask);
    let never = about(Label::Private.into(), LabelSet::EMPTY, rule(0, None, None, Deny));
    let allow = rule(1, None, Some("slack_post"), Allow);
    assert_eq!(post(FlowMode::Content, vec![never, allow], &private), Deny);
}

#[test]
fn a_question_names_every_concern() {
    let mut seen_before = vec![seen(Label::Private, Contact::Carried); 40];
    seen_before.push(seen(Label::Untrusted, Contact::Steered));
    let decision = decision(FlowMode::Content, vec![], &seen_before);
    assert_eq!(decision.flows.len(), 2);
    assert_eq!(decision.flow_labels().to_string(), "private, untrusted");
    assert_eq!(decision.evidence().len(), 2, "each result once");

    let tool = ToolId::new("slack", "post");
    let grant = |labels: LabelSet| Grant {
        id: GrantId("g".into()),
        scope: GrantScope::Always,
        run: None,
        caller: "desk".into(),
        endpoint: Fingerprint::of(&json!("here")),
        definition: None,
        tool: tool.clone(),
        arguments: GrantedArguments::Any,
        meta: None,
        labels,
        origins: decision.flow_origins(),
        granted_at: Timestamp(0),
        expires_at: None,
        by: "ada".into(),
        presence: Presence::Terminal,
    };
    let arguments = json!({});
    let request = GrantRequest {
        caller: "desk",
        endpoint: Fingerprint::of(&json!("here")),
        definition: Fingerprint::of(&json!("posts")),
        tool: &tool,
        arguments: &arguments,
        meta: None,
        labels: LabelSet::EMPTY,
        origins: &[],
        run: None,
        session: None,
        presence: Presence::Terminal,
        now: Timestamp(1),
    };
    let authorise = |labels| {
        let mut grants = Grants::default();
        grants.add(grant(labels)).expect("there is room");
        grants.authorise(&decision, &request)
    };
    assert_eq!(authorise(Label::Private.into()), Authorisation::Ask);
    assert_eq!(
        authorise(decision.flow_labels()),
        Authorisation::Allowed(Some(GrantId("g".into())))
    );
}
