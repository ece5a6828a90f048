//! What people have allowed.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_catalog::{Fingerprint, ToolId};
use toolgate_policy::{
    ArgumentConditions, Authorisation, Decision, Flow, Grant, GrantId, GrantRequest, GrantScope,
    GrantedArguments, Grants, GrantsFull, Label, LabelSet, MAX_GRANTS, Mode, Presence, Timestamp,
    Verdict,
};

use crate::{create_issue, policy, rule};

fn tool() -> ToolId {
    ToolId::new("github", "create_issue")
}

fn grant(id: &str, scope: GrantScope) -> Grant {
    Grant {
        id: GrantId(id.into()),
        scope,
        run: Some("run-1".into()),
        caller: "desk".into(),
        tool: tool(),
        endpoint: Fingerprint::of(&json!("here")),
        definition: Some(Fingerprint::of(&json!("creates"))),
        arguments: GrantedArguments::Any,
        meta: None,
        labels: LabelSet::EMPTY,
        origins: Vec::new(),
        granted_at: Timestamp(100),
        expires_at: None,
        by: "ada".into(),
        presence: Presence::Terminal,
    }
}

fn request<'r>(tool: &'r ToolId, arguments: &'r Value) -> GrantRequest<'r> {
    let (run, session) = (Some("run-1"), Some("session-1"));
    let (caller, endpoint) = ("desk", Fingerprint::of(&json!("here")));
    let (labels, origins, now) = (LabelSet::EMPTY, &[], Timestamp(200));
    let (presence, definition) = (Presence::Terminal, Fingerprint::of(&json!("creates")));
    GrantRequest {
        caller,
        tool,
        endpoint,
        definition,
        arguments,
        meta: None,
        labels,
        origins,
        run,
        session,
        presence,
        now,
    }
}

fn decided(verdict: Verdict) -> Decision {
    let rules = vec![rule(0, None, None, verdict)];
    create_issue(&policy(Mode::Allow, rules)).decide(&json!({}), &Flow::NONE)
}

fn covered(grant: Grant, request: &GrantRequest<'_>) -> bool {
    let mut grants = Grants::default();
    grants.add(grant).expect("there is room");
    grants.covers(request).is_some()
}

#[test]
fn a_grant_covers_the_definition_that_the_person_decided_about() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let changed = GrantRequest { definition: Fingerprint::of(&json!("deletes")), ..asked };
    let given = grant("a", GrantScope::Always);
    assert!(covered(given.clone(), &asked));
    assert!(!covered(given.clone(), &changed));
    let earlier = Grant { definition: None, ..given };
    assert!(covered(earlier.clone(), &asked) && covered(earlier, &changed));
}

#[test]
fn a_grant_covers_no_call_that_requires_more_of_the_person() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let strict = GrantRequest { presence: Presence::Password, ..asked };
    let typed = grant("a", GrantScope::Always);
    let proven = Grant { presence: Presence::Password, ..typed.clone() };
    assert!(covered(typed.clone(), &asked) && covered(proven.clone(), &asked));
    assert!(!covered(typed, &strict));
    assert!(covered(proven, &strict));
}

#[test]
fn scopes() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    assert!(covered(grant("a", GrantScope::Always), &asked));
    assert!(covered(grant("a", GrantScope::Run("run-1".into())), &asked));
    assert!(!covered(grant("a", GrantScope::Run("run-2".into())), &asked));
    assert!(covered(grant("a", GrantScope::Session("session-1".into())), &asked));
    assert!(!covered(grant("a", GrantScope::Session("run-1".into())), &asked));
    let elsewhere = GrantRequest { run: None, session: None, ..asked };
    assert!(!covered(grant("a", GrantScope::Run("run-1".into())), &elsewhere));
    let other = ToolId::new("gitlab", "create_issue");
    assert!(!covered(grant("a", GrantScope::Always), &GrantRequest { tool: &other, ..asked }));
}

#[test]
fn only_the_run_that_asked_uses_a_grant_for_one_call() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let once = || grant("a", GrantScope::Once);
    assert!(covered(once(), &asked));
    assert!(!covered(once(), &GrantRequest { run: Some("run-2"), ..asked }));
    assert!(!covered(once(), &GrantRequest { run: None, ..asked }));
    let direct = || Grant { run: None, ..once() };
    assert!(covered(direct(), &GrantRequest { run: None, ..asked }));
    assert!(!covered(direct(), &asked));
}

#[test]
fn a_grant_is_for_its_caller_and_server() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let elsewhere = Fingerprint::of(&json!("elsewhere"));
    for scope in [GrantScope::Once, GrantScope::Always, GrantScope::Run("run-1".into())] {
        assert!(covered(grant("a", scope.clone()), &asked));
        let other_caller = GrantRequest { caller: "another", ..asked };
        assert!(!covered(grant("a", scope.clone()), &other_caller), "{scope:?}");
        let other_server = GrantRequest { endpoint: elsewhere, ..asked };
        assert!(!covered(grant("a", scope.clone()), &other_server), "{scope:?}");
    }
    let mut old = serde_json::to_value(grant("a", GrantScope::Always)).unwrap();
    old.as_object_mut().unwrap().remove("caller");
    assert!(serde_json::from_value::<Grant>(old).is_err(), "nobody's yes grants nothing");
}

#[test]
fn time_is_the_callers() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let short = Grant { expires_at: Some(Timestamp(200)), ..grant("a", GrantScope::Always) };
    assert!(!covered(short.clone(), &asked));
    assert!(covered(short.clone(), &GrantRequest { now: Timestamp(199), ..asked }));
    assert!(!covered(short, &GrantRequest { now: Timestamp(99), ..asked }));
}

#[test]
fn arguments() {
    let tool = tool();
    let shown = json!({ "title": "A", "labels": ["x"] });
    let exact =
        Grant { arguments: GrantedArguments::exactly(&shown), ..grant("a", GrantScope::Always) };
    let same: Value = serde_json::from_str(r#"{"labels":["x"],"title":"A"}"#).expect("sound");
    assert!(covered(exact.clone(), &request(&tool, &same)));
    assert!(!covered(exact, &request(&tool, &json!({ "title": "B", "labels": ["x"] }))));
    let conditions = ArgumentConditions::from_value(&json!({ "repo": { "prefix": "ada/" } }));
    let arguments = GrantedArguments::Matching(conditions.expect("sound"));
    let pattern = Grant { arguments, ..grant("a", GrantScope::Always) };
    assert!(covered(pattern.clone(), &request(&tool, &json!({ "repo": "ada/x" }))));
    assert!(!covered(pattern.clone(), &request(&tool, &json!({ "repo": 7 }))));
    let kept = serde_json::to_string(&pattern).expect("plain JSON");
    assert_eq!(serde_json::from_str::<Grant>(&kept).expect("the same"), pattern);
}

#[test]
fn a_grant_covers_only_the_data_of_its_question() {
    let (tool, arguments) = (tool(), json!({}));
    let carries = GrantRequest { labels: Label::Private.into(), ..request(&tool, &arguments) };
    assert!(!covered(grant("a", GrantScope::Always), &carries));
    let told = Grant { labels: Label::Private.into(), ..grant("a", GrantScope::Always) };
    assert!(covered(told.clone(), &carries));
    // Of which tools it was, they were told too.
    let [crm, hr] = [ToolId::new("crm", "get"), ToolId::new("hr", "pay")];
    let told = Grant { origins: vec![crm.clone()], ..told };
    assert!(covered(
        told.clone(),
        &GrantRequest { origins: std::slice::from_ref(&crm), ..carries }
    ));
    assert!(!covered(told, &GrantRequest { origins: &[crm, hr], ..carries }));
}

#[test]
fn a_grant_for_one_call_is_used_once() {
    let (tool, arguments) = (tool(), json!({}));
    let asked = request(&tool, &arguments);
    let mut grants = Grants::default();
    grants.add(grant("once", GrantScope::Once)).expect("there is room");
    grants.add(grant("run", GrantScope::Run("run-1".into()))).expect("there is room");
    let ask = decided(Verdict::Ask);
    // The one that lasts goes first, so that the other is still there once that one is revoked.
    let by = |id: &str| Authorisation::Allowed(Some(GrantId(id.into())));
    assert_eq!(grants.authorise(&ask, &asked), by("run"));
    let next_run = GrantRequest { run: Some("run-2"), ..asked };
    assert_eq!(grants.authorise(&ask, &next_run), Authorisation::Ask);
    assert!(grants.revoke(&GrantId("run".into())).is_some());
    assert_eq!(grants.authorise(&ask, &asked), by("once"));
    assert_eq!(grants.authorise(&ask, &asked), Authorisation::Ask);
}

#[test]
fn grants_expire() {
    let mut grants = Grants::default();
    for number in 0..MAX_GRANTS {
        let tool = ToolId::new("s", format!("t{number}"));
        grants.add(Grant { tool, ..grant(&number.to_string(), GrantScope::Always) }).expect("room");
    }
    assert_eq!(grants.add(grant("new", GrantScope::Always)), Err(GrantsFull));
    grants.add(grant("7", GrantScope::Always)).expect("it replaces one");
    assert_eq!(grants.iter().count(), MAX_GRANTS);
}

proptest! {
    #[test]
    fn no_grant_overrides_a_denial(once: bool, labels: bool, arguments in 0..3_u8) {
        let (tool, shown) = (tool(), json!({ "a": 1 }));
        let mut grants = Grants::default();
        let arguments = match arguments {
            0 => GrantedArguments::Any,
            1 => GrantedArguments::exactly(&shown),
            _ => GrantedArguments::Matching(ArgumentConditions::default()),
        };
        let labels = if labels { Label::ALL.into_iter().collect() } else { LabelSet::EMPTY };
        let scope = if once { GrantScope::Once } else { GrantScope::Always };
        grants.add(Grant { arguments, labels, ..grant("a", scope) }).expect("there is room");
        let asked = request(&tool, &shown);
        prop_assert_eq!(grants.authorise(&decided(Verdict::Deny), &asked), Authorisation::Denied);
        prop_assert!(grants.covers(&asked).is_some(), "and it is not used up by it");
        prop_assert_eq!(grants.authorise(&decided(Verdict::Allow), &asked), Authorisation::Allowed(None));
    }
}
