//! What a server or another one may do to a name, and that no rule is slipped out of by it.

use serde_json::json;
use toolgate_catalog::{Catalog, CatalogServer, Definition, Tool};
use toolgate_policy::{
    Claims, Flow, Label, Mode, Policy, PolicySettings, RuleTarget,
    Verdict::{self, Allow, Ask, Deny},
    is_reading, request_as_tool,
};

use crate::{policy, rule, with_arguments};

fn definitions(names: &[&str]) -> Vec<Definition> {
    let define = |name: &&str| {
        Definition::from_value(&json!({ "name": name, "inputSchema": {} })).expect("sound")
    };
    names.iter().map(define).collect()
}

/// A tool of the server `github`, beside what a server `github_delete` has.
fn beside(own: &str, others: &[&str]) -> Tool {
    let servers = ["github", "github_delete"].map(CatalogServer::named);
    let mut catalog = Catalog::new(servers);
    catalog.replace_server(&"github".into(), definitions(&[own]));
    catalog.replace_server(&"github_delete".into(), definitions(others));
    catalog.tools_of("github")[0].clone()
}

fn decide(policy: &Policy, tool: &Tool) -> Verdict {
    policy.of(tool).decide(&json!({}), &Flow::NONE).verdict
}

#[test]
fn a_collision_neither_escapes_a_denial_nor_gains_a_permission() {
    let alone = beside("delete_repo", &[]);
    let contested = beside("delete_repo", &["repo"]);
    assert_eq!(alone.name.as_str(), "github_delete_repo");
    assert_ne!(contested.name, alone.name, "two want the name");
    for (pattern, verdict) in
        [("github_delete_repo", Deny), ("github_delete_*", Deny), ("github_delete_repo", Ask)]
    {
        let policy = policy(Mode::Allow, vec![rule(0, None, Some(pattern), verdict)]);
        assert_eq!(decide(&policy, &alone), verdict);
        assert_eq!(decide(&policy, &contested), verdict, "{pattern}");
        assert_eq!(policy.of(&contested).is_hidden(), verdict == Deny);
    }
    // By the name with a hash it is denied too, whoever is there.
    let hashed = rule(0, None, Some(contested.name.as_str()), Deny);
    assert_eq!(decide(&policy(Mode::Allow, vec![hashed]), &alone), Deny);
    // Who wants the name of another is not allowed what the other is.
    let allowed = policy(Mode::Deny, vec![rule(0, None, Some("github_delete_repo"), Allow)]);
    assert_eq!(decide(&allowed, &alone), Allow);
    assert_eq!(decide(&allowed, &contested), Deny);
}

#[test]
fn shortened_and_keyword_names_are_denied_by_their_full_name() {
    let long = format!("delete_{}", "x".repeat(60));
    let tool = beside(&long, &[]);
    let whole = format!("github_{long}");
    assert!(tool.name.as_str().len() <= 64);
    assert_eq!(decide(&policy(Mode::Allow, vec![rule(0, None, Some(&whole), Deny)]), &tool), Deny);
    let entry = CatalogServer { prefix: Some(String::new()), ..CatalogServer::named("any") };
    let other = CatalogServer { name: "other".into(), ..entry.clone() };
    let mut catalog = Catalog::new([entry, other]);
    catalog.replace_server(&"any".into(), definitions(&["delete"]));
    let denied = policy(Mode::Allow, vec![rule(0, None, Some("delete_"), Deny)]);
    assert_eq!(decide(&denied, &catalog.tools_of("any")[0]), Deny);
    catalog.replace_server(&"other".into(), definitions(&["delete"]));
    assert_eq!(decide(&denied, &catalog.tools_of("any")[0]), Deny);
}

#[test]
fn other_case_and_letters_that_look_alike_are_denied_and_not_allowed() {
    for own in
        ["Delete_Repo", "DELETE_REPO", "dеlete_repo", "deIete_repo", "de1ete_repo", "ｄelete_repo"]
    {
        let tool = beside(own, &[]);
        for named in [
            rule(0, None, Some("github_delete_repo"), Deny),
            rule(0, None, Some("github_delete_*"), Deny),
            rule(0, None, Some("*_DELETE_*"), Deny),
            rule(0, None, Some("github/delete_repo"), Deny),
            rule(0, Some("github"), Some("delete_*"), Deny),
        ] {
            let denied = policy(Mode::Allow, vec![named.clone()]);
            assert_eq!(decide(&denied, &tool), Deny, "{own}: {named:?}");
        }
        let allowed = policy(Mode::Deny, vec![rule(0, None, Some("github_delete_repo"), Allow)]);
        assert_eq!(decide(&allowed, &tool), Deny, "{own}");
    }
    let honest = beside("delegate_repo", &[]);
    let denied = policy(Mode::Allow, vec![rule(0, None, Some("github_delete_*"), Deny)]);
    assert_eq!(decide(&denied, &honest), Allow);
}

#[test]
fn a_changed_prefix_does_not_escape_a_rule_by_identity() {
    let entry = CatalogServer { prefix: Some("gh".to_owned()), ..CatalogServer::named("github") };
    let mut catalog = Catalog::new([entry]);
    catalog.replace_server(&"github".into(), definitions(&["delete_repo"]));
    let tool = &catalog.tools_of("github")[0];
    assert_eq!(tool.name.as_str(), "gh_delete_repo");
    for by_identity in ["github/delete_repo", "github/*", "*/delete_*"] {
        let denied = policy(Mode::Allow, vec![rule(0, None, Some(by_identity), Deny)]);
        assert_eq!(decide(&denied, tool), Deny, "{by_identity}");
    }
}

#[test]
fn labels_apply_to_all_names_of_a_tool() {
    let target = RuleTarget::read(None, Some("github_delete_*")).expect("sound");
    let labels = vec![(target, Label::Private.into())];
    let policy = Policy::new(PolicySettings { labels, ..PolicySettings::default() });
    for tool in [beside("delete_repo", &["repo"]), beside("Delete_repo", &[])] {
        assert_eq!(policy.of(&tool).labels(), Label::Private.into());
    }
}

#[test]
fn a_request_is_judged_like_a_tool_that_is_named_after_its_method() {
    let read = request_as_tool(&"github".into(), None, "resources/read").expect("known");
    assert!(is_reading("prompts/get") && !is_reading("tools/call"));
    let verdict = |mode, rules, uri: &str| {
        let policy = policy(mode, rules);
        policy.of(&read).decide(&json!({ "uri": uri }), &Flow::NONE).verdict
    };
    // It only reads, and no server has to be believed for that.
    assert_eq!(verdict(Mode::Ask, vec![], "x:1"), Allow);
    assert_eq!(verdict(Mode::AskAlways, vec![], "x:1"), Ask);
    assert_eq!(verdict(Mode::Deny, vec![], "x:1"), Deny);
    let claims = Claims::Trusted;
    let strict = Policy::new(PolicySettings { claims, ..PolicySettings::of_mode(Mode::Ask) });
    assert_eq!(decide(&strict, &read), Allow);
    for about in [
        rule(0, Some("github"), None, Deny),
        rule(0, None, Some("github/resources/*"), Deny),
        rule(0, Some("git*"), Some("resources/read"), Deny),
        rule(0, None, Some("github_*"), Deny),
    ] {
        assert_eq!(verdict(Mode::Allow, vec![about.clone()], "x:1"), Deny, "{about:?}");
    }
    let secret = with_arguments(
        rule(0, None, Some("*/resources/read"), Deny),
        &json!({ "uri": { "prefix": "secret:" } }),
    );
    assert_eq!(verdict(Mode::Allow, vec![secret.clone()], "secret:1"), Deny);
    assert_eq!(verdict(Mode::Allow, vec![secret], "x:1"), Allow);
    assert_eq!(verdict(Mode::Deny, vec![rule(0, None, Some("github_*"), Allow)], "x:1"), Allow);
    // What nobody knows may do anything.
    let odd = request_as_tool(&"github".into(), None, "vendor/erase").expect("a name");
    assert_eq!(decide(&policy(Mode::Ask, vec![]), &odd), Ask);
    assert!(request_as_tool(&"github".into(), None, "").is_none());
}
