//! Servers on demand: when they rest, where others are found, which are served apart.

use std::time::Duration;

use toolgate_catalog::{DeferredStyle, RequestedMode};
use toolgate_policy::{
    Annotations, Flow, FlowMode, Label, Mode, NewTools, Policy, PolicySettings, ToolId, Verdict,
};

use crate::{problems, read};

#[test]
fn only_lazy_servers_have_an_idle_timeout_by_default() {
    let configuration = read(
        r#"{ "mcpServers": {
            "eager": { "command": "x" },
            "lazy": { "command": "x", "lazy": true },
            "resting": { "command": "x", "idleTimeoutSeconds": 1.5 },
            "restless": { "command": "x", "lazy": true, "idleTimeoutSeconds": 0 }
        } }"#,
    );
    let rests: Vec<_> =
        configuration.servers.iter().map(|server| server.settings.idle_timeout).collect();
    let expected = [None, Some(Duration::from_mins(30)), Some(Duration::from_millis(1_500)), None];
    assert_eq!(rests, expected);
}

#[test]
fn sources_are_urls_and_paths() {
    let configuration = read(
        r#"{ "registry": {
            "sources": ["./servers", "https://${HOST}/", "http://localhost:8080"], "cacheHours": 0.5
        }, "skills": ["${HOME}/skills"] }"#,
    );
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    assert_eq!(
        configuration.registry.sources,
        ["./servers", "https://crm.example/", "http://localhost:8080",]
    );
    assert_eq!(configuration.registry.cache, Duration::from_mins(30));
    assert_eq!(configuration.skills, [std::path::PathBuf::from("/home/ada/skills")]);
}

#[test]
fn a_source_without_https_is_left_out() {
    insta::assert_snapshot!(problems(
        r#"{ "mcpServers": { "a": { "command": "x" } },
            "registry": { "sources": ["http://registry.example", "ftp://x", 3], "cache": 1 } }"#
    ), @"
    error: toolgate.json:2:77: `registry.sources[2]` must be a string, but is a number
      hint: write the value in double quotes
    warning: toolgate.json:2:81: `registry.cache` is not a known key; it is ignored
    ");
    insta::assert_snapshot!(problems(
        r#"{ "mcpServers": { "a": { "command": "x" } },
            "registry": { "sources": ["http://registry.example", "ftp://x", "${UNSET}"] },
            "skills": "here" }"#
    ), @r#"
    error: toolgate.json:2:39: `registry.sources` has a source that is neither an `https` URL nor a path; it is left out
    error: toolgate.json:2:66: `registry.sources` has a source that is neither an `https` URL nor a path; it is left out
    error: toolgate.json:2:77: `registry.sources[2]` needs the environment variable `UNSET`, which is not set
      hint: set `UNSET`, or write `${UNSET:-default}`
    error: toolgate.json:3:23: `skills` must be a list of strings, but is a string
      hint: write `"skills": ["…", "…"]`
    "#);
}

#[test]
fn a_namespace_has_servers_and_its_own_settings() {
    let configuration = read(
        r#"{ "namespaces": {
                "work": { "servers": ["a", "b", "a"], "mode": "dynamic",
                          "toolSearch": { "maxResults": 7 } },
                "home": { "servers": ["b"], "exclusive": true }
            },
            "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" } },
            "toolSearch": { "enabled": "code", "maxResults": 3, "toolThreshold": 9 } }"#,
    );
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    let [work, home] = &configuration.namespaces[..] else { panic!("two") };
    assert_eq!((work.name.as_str(), work.exclusive), ("work", false));
    assert_eq!(work.servers, ["a", "b"]);
    assert_eq!(work.tool_search.enabled, RequestedMode::Deferred);
    assert_eq!(work.tool_search.deferred, DeferredStyle::Dynamic);
    assert_eq!((work.tool_search.max_results, work.tool_search.tool_threshold), (7, Some(9)));
    assert!(home.exclusive);
    assert_eq!(home.tool_search, configuration.tool_search);
}

#[test]
fn an_invalid_namespace_is_left_out() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } }, "namespaces": {
        "Upper/Case": { "servers": ["a"] },
        "none": {},
        "text": "a",
        "odd": { "servers": ["a", "zzz"], "exclusive": "yes", "mode": "wild", "server": [] }
    } }"#;
    insta::assert_snapshot!(problems(text), @r#"
    error: toolgate.json:2:9: `namespaces["Upper/Case"]` is ignored: the name of a namespace must have 1 to 64 lower-case letters, digits, `-` and `_`, since it is part of a path
    error: toolgate.json:3:9: `namespaces.none` has no `servers`
      hint: add `"servers": ["…"]`
    error: toolgate.json:4:17: `namespaces.text` must be an object, but is a string
    warning: toolgate.json:5:35: `namespaces.odd.servers[1]` names no server of this file; it is ignored
    error: toolgate.json:5:56: `namespaces.odd.exclusive` must be true or false, but is a string
    warning: toolgate.json:5:71: `namespaces.odd.mode` must be `auto`, `direct`, `stable`, `dynamic` or `code`; it is ignored
    warning: toolgate.json:5:79: `namespaces.odd.server` is not a known key; it is ignored
      hint: did you mean `servers`?
    "#);
    let namespaces = read(text).namespaces;
    assert_eq!(namespaces.len(), 1);
    assert!(namespaces[0].exclusive, "what is not understood holds back");
    assert_eq!(namespaces[0].servers, ["a"]);
}

/// The verdicts of a policy on tools of the server `a`.
fn verdicts(settings: &PolicySettings, tools: [&str; 3]) -> [Verdict; 3] {
    let policy = Policy::new(settings.clone());
    tools.map(|tool| {
        let id = ToolId::new("a", tool);
        let tool = policy.tool(&id, &format!("a_{tool}"), Annotations::default());
        tool.decide(&serde_json::json!({}), &Flow::NONE).verdict
    })
}

#[test]
fn the_policy_of_a_namespace_extends_that_of_the_file() {
    let configuration = read(
        r#"{ "namespaces": {
                "silent": { "servers": ["a"] },
                "word": { "servers": ["a"], "policy": "allow" },
                "rules": { "servers": ["a"], "policy": {
                    "flow": "labels",
                    "rules": [{ "server": "a", "verdict": "allow" },
                              { "tool": "a_read", "verdict": "deny" }],
                    "labels": { "a_read": "private" } } }
            },
            "mcpServers": { "a": { "command": "x", "tools": { "read": { "approval": "ask" } } } },
            "policy": { "default": "deny-writes", "newTools": "hold",
                        "labels": { "a_*": "egress" },
                        "rules": [{ "tool": "a_drop", "verdict": "deny" }] } }"#,
    );
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    let [silent, word, rules] = &configuration.namespaces[..] else { panic!("three") };
    assert_eq!(silent.policy, configuration.policy);
    let tools = ["drop", "read", "write"];
    let (allow, ask, deny) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
    assert_eq!(verdicts(&configuration.policy, tools), [deny, ask, deny]);
    assert_eq!(verdicts(&word.policy, tools), [deny, ask, allow], "a rule that denies stays");
    assert_eq!(verdicts(&rules.policy, tools), [deny, deny, allow]);
    assert_eq!(
        (rules.policy.mode, rules.policy.new_tools, rules.policy.flow),
        (Mode::DenyWrites, NewTools::Hold, FlowMode::Labels)
    );
    let read = ToolId::new("a", "read");
    let labels = Policy::new(rules.policy.clone()).tool(&read, "a_read", Annotations::default());
    assert_eq!(labels.labels(), [Label::Private, Label::Egress].into_iter().collect());
}

#[test]
fn a_policy_only_in_a_namespace_has_the_same_default() {
    let configuration = read(
        r#"{ "mcpServers": { "a": { "command": "x" } },
             "namespaces": { "n": { "servers": ["a"], "policy": {} } } }"#,
    );
    assert_eq!(configuration.policy.mode, Mode::AskDestructive, "there is none");
    assert_eq!(configuration.namespaces[0].policy.mode, Mode::Ask);
}

#[test]
fn an_invalid_policy_of_a_namespace_denies() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } },
        "policy": { "rules": [{ "server": "a", "verdict": "allow" }] },
        "namespaces": {
            "word": { "servers": ["a"], "policy": "alow" },
            "key": { "servers": ["a"], "policy": { "rulez": [] } }
        } }"#;
    insta::assert_snapshot!(problems(text), @r#"
    error: toolgate.json:4:51: `namespaces.word.policy` must be `allow`, `ask-destructive`, `ask`, `ask-always`, `deny-writes` or `deny`, `off` or an object; every call is denied
      hint: to be asked before a tool changes something, write `"policy": "ask"`
    error: toolgate.json:5:52: `namespaces.key.policy.rulez` is not a known key
      hint: did you mean `rules`?
    "#);
    for namespace in read(text).namespaces {
        let verdicts = verdicts(&namespace.policy, ["drop", "read", "write"]);
        assert_eq!(verdicts, [Verdict::Deny; 3], "{}", namespace.name);
    }
}
