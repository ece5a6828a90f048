//! The `policy` key, and what servers say of who may call what.

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolgate_config::{
    Configuration, Format, SavedPolicyText, StoredReference, Surroundings, parse_within,
};
use toolgate_policy::{
    Annotations, Claims, Flow, FlowMode, Label, LabelSet, Mode, NewTools, Policy, PolicySettings,
    ServerName, Verdict,
};

use crate::{read, read_toml, shown};

fn configuration(policy: &str) -> Configuration {
    read(&format!(
        "{{ \"mcpServers\": {{ \"github\": {{ \"command\": \"x\" }} }}, \"policy\":\n{policy} }}"
    ))
}

/// What people are told.
fn told(configuration: &Configuration) -> String {
    shown(configuration)
}

/// The policy of a file without mistakes.
fn sound(policy: &str) -> PolicySettings {
    let configuration = configuration(policy);
    assert_eq!(told(&configuration), "");
    configuration.policy
}

/// What becomes of a call of `github/create_issue`.
fn verdict(settings: PolicySettings, arguments: &Value) -> Verdict {
    explained(settings, arguments).0
}

fn explained(settings: PolicySettings, arguments: &Value) -> (Verdict, String) {
    let id = toolgate_policy::ToolId::new("github", "create_issue");
    let tool = Policy::new(settings).tool(&id, "github_create_issue", Annotations::default());
    let explanation = tool.explain(arguments, &Flow::NONE);
    (explanation.decision.verdict, explanation.to_string())
}

#[test]
fn one_line_is_a_policy() {
    assert_eq!(sound("\"ask\""), PolicySettings::of_mode(Mode::Ask));
    assert_eq!(sound("\"deny-writes\""), PolicySettings::of_mode(Mode::DenyWrites));
    assert_eq!(sound("{}").mode, Mode::Ask);
    assert_eq!(sound("\"off\""), PolicySettings::of_mode(Mode::Allow));
    assert_eq!(sound("{ \"default\": \"off\" }").mode, Mode::Allow);
    assert_eq!(sound("\"ask-destructive\"").mode, Mode::AskDestructive);
    let toml = "policy = \"ask\"\n[mcp_servers.a]\ncommand = \"x\"";
    assert_eq!(read_toml(toml).policy.mode, Mode::Ask);
}

/// A person who writes `null` may mean that there is none, or that it is off.
#[test]
fn a_policy_of_null_is_an_error_that_names_the_way_out() {
    for text in ["null", "{ \"rules\": null }", "{ \"default\": null }"] {
        let configuration = configuration(text);
        let told = told(&configuration);
        assert!(told.contains("null"), "{text}: {told}");
        assert_eq!(verdict(configuration.policy, &json!({})), Verdict::Deny, "{text}");
    }
    let told = told(&configuration("null"));
    assert!(told.contains("`\"policy\": \"off\"`"), "{told}");
    let limits = read(r#"{ "mcpServers": { "github": { "command": "x" } }, "limits": null }"#);
    assert!(shown(&limits).contains("null"), "{}", shown(&limits));
    assert_eq!(verdict(limits.policy, &json!({})), Verdict::Deny);
    let namespace = read(
        r#"{ "mcpServers": { "github": { "command": "x" } },
             "namespaces": { "n": { "servers": ["github"], "policy": null } } }"#,
    );
    assert!(shown(&namespace).contains("null"), "{}", shown(&namespace));
    assert_eq!(verdict(namespace.namespaces[0].policy.clone(), &json!({})), Verdict::Deny);
}

#[test]
fn a_file_without_a_policy_has_the_first_one() {
    let alone = read(r#"{ "mcpServers": { "github": { "command": "x" } } }"#);
    assert_eq!((alone.policy.mode, alone.has_policy), (Mode::AskDestructive, false));
    assert!(configuration("\"off\"").has_policy && configuration("{}").has_policy);
}

#[test]
fn limits_select_calls_as_rules_do() {
    let configuration = read(
        r#"{ "mcpServers": { "github": { "command": "x" } },
             "limits": [
                { "server": "github", "tool": "create_*", "caller": { "token": "ci-*" },
                  "from": "script", "perMinute": 30, "perDay": 1000, "inFlight": 4 },
                { "annotations": { "destructiveHint": true }, "perDay": 10, "shared": true },
             ],
             "namespaces": { "n": { "servers": ["github"], "policy": "deny-writes" } } }"#,
    );
    assert_eq!(told(&configuration), "");
    let limits = &configuration.policy.limits;
    let shown: Vec<String> = limits
        .iter()
        .map(|it| format!("{it} {:?} {:?} {:?}", it.per_minute, it.per_day, it.in_flight))
        .collect();
    assert_snapshot!(shown.join("\n"), @"
    `create_*` of `github`, for the token `ci-*`, called by a script Some(30) Some(1000) Some(4)
    all tools, destructiveHint: true None Some(10) None
    ");
    assert!(!limits[0].shared && limits[1].shared);
    assert_eq!(&configuration.namespaces[0].policy.limits, limits, "they hold in namespaces too");
    let id = toolgate_policy::ToolId::new("github", "create_issue");
    let policy = Policy::new(configuration.policy.clone());
    let tool = policy.tool(&id, "github_create_issue", Annotations::default());
    assert_eq!(tool.limits().len(), 2);
    let other = toolgate_policy::ToolId::new("github", "list");
    let reads = Annotations::from_value(&json!({ "readOnlyHint": true }));
    assert!(policy.tool(&other, "github_list", reads).limits().is_empty());
}

#[test]
fn a_limit_that_is_not_understood_allows_nothing() {
    let with = |limits: &str| {
        read(&format!(
            "{{ \"mcpServers\": {{ \"github\": {{ \"command\": \"x\" }} }}, \"policy\": \"allow\",\n\"limits\": {limits} }}"
        ))
    };
    let mut problems = String::new();
    for limits in [
        r#"{ "perMinute": 1 }"#,
        r#"[{ "server": "github" }]"#,
        r#"[{ "server": "github", "perMinuet": 5 }]"#,
        r#"[{ "server": "github", "perMinute": "5" }]"#,
        r#"[{ "server": "github", "perDay": -1 }]"#,
        r#"[{ "server": "github", "inFlight": 1.5 }]"#,
        r#"[{ "server": "github", "tool": ["create_issue", "b"], "perDay": 1 }]"#,
        r#"[{ "server": "github", "perDay": 1, "perDay": 2 }]"#,
        r#"["github"]"#,
    ] {
        let configuration = with(limits);
        problems.push_str(&told(&configuration));
        problems.push('\n');
        assert_eq!(verdict(configuration.policy, &json!({})), Verdict::Deny, "{limits}");
    }
    assert_snapshot!(problems);
    let fine = with(r#"[{ "server": "github", "perDay": 1 }]"#);
    assert_eq!(verdict(fine.policy, &json!({})), Verdict::Allow);
}

#[test]
fn a_whole_policy() {
    let settings = sound(
        r#"{
        "default": "allow",
        "claims": "trusted",
        "flow": "labels",
        "newTools": "hold",
        "labels": { "crm_*": ["private"], "github/*": "egress" },
        "rules": [
            { "tool": "github_*", "verdict": "ask", "reason": "Issues are public" },
            { "server": "github", "tool": ["create_issue", "close_issue"], "verdict": "allow",
              "when": { "arguments": { "repo": { "prefix": "ada/" }, "/n": { "less": 1e3 } } } },
            { "tool": "github_create_issue", "verdict": "deny",
              "when": { "arguments": { "file": { "under": "${HOME}/.ssh" } } } },
            { "annotations": { "destructiveHint": true }, "trusted": false, "verdict": "ask" },
            { "when": { "carries": ["private"], "to": "egress" }, "verdict": "deny" },
            { "when": { "steeredBy": ["untrusted"] }, "verdict": "ask" },
        ] }"#,
    );
    assert_eq!((settings.mode, settings.claims), (Mode::Allow, Claims::Trusted));
    assert_eq!((settings.flow, settings.new_tools), (FlowMode::Labels, NewTools::Hold));
    assert_eq!(settings.rules.len(), 7);
    assert_eq!(settings.rules[5].target.labels, Label::Egress.into());
    assert_eq!(settings.rules[6].flow.steered_by, Label::Untrusted.into());
    let decide = |arguments: Value| verdict(settings.clone(), &arguments);
    assert_eq!(decide(json!({})), Verdict::Ask);
    assert_eq!(decide(json!({ "repo": "ada/x", "n": 7 })), Verdict::Allow);
    assert_eq!(decide(json!({ "file": "/home/ada/.ssh/id_rsa" })), Verdict::Deny);
    assert_snapshot!(explained(settings, &json!({ "repo": "ada/x", "n": 7 })).1, @"
    allow: `policy.rules[1]` (toolgate.json:10:13), one tool with conditions
      `policy.rules[0]` (toolgate.json:9:13) says ask, but is less specific: a pattern
      `policy.rules[3]` (toolgate.json:14:13) says ask, but is less specific: what is claimed of a tool
    ");
}

#[test]
fn approval_and_labels_of_servers_and_tools_are_read() {
    let configuration = read(
        r#"{ "mcpServers": {
        "github": { "command": "x", "labels": ["private", "untrusted"], "trusted": true,
            "tools": { "create_issue": { "approval": "deny", "labels": [] }, "x": { "deferLoading": true } } },
        "silent": { "command": "x" } } }"#,
    );
    assert_eq!(shown(&configuration), "");
    let servers: Vec<&ServerName> = configuration.policy.servers.keys().collect();
    assert_eq!(servers, [&ServerName::from("github")]);
    let github = &configuration.policy.servers["github"];
    assert_eq!(github.labels.to_string(), "private, untrusted");
    assert!(github.tools["create_issue"].labels.is_some_and(LabelSet::is_empty));
    assert_eq!(github.tools.len(), 1);
    assert_snapshot!(explained(configuration.policy, &json!({})).1, @"deny: `mcpServers.github.tools.create_issue.approval` (toolgate.json:2:9), one tool");
}

#[test]
fn a_mistake_in_the_policy_denies() {
    for policy in [
        "true",
        "\"always\"",
        r#"{ "default": "sometimes" }"#,
        r#"{ "default": "allow", "rulez": [] }"#,
        r#"{ "default": "allow", "rules": {} }"#,
        r#"{ "default": "allow", "rules": ["deny"] }"#,
        r#"{ "default": "allow", "rules": [{ "tool": "github_*" }] }"#,
        r#"{ "default": "allow", "rules": [{ "tool": "github_*", "verdict": "never" }] }"#,
        r#"{ "default": "allow", "rules": [{ "tools": "other", "verdict": "ask" }] }"#,
        r#"{ "default": "allow", "rules": [{ "tool": "github_*", "verdict": "ask", "if": {} }] }"#,
        r#"{ "default": "allow", "rules": [{ "tool": ["github_*", 7], "verdict": "ask" }] }"#,
        r#"{ "default": "allow", "rules": [{ "server": 7, "verdict": "ask" }] }"#,
        r#"{ "default": "allow", "rules": [{ "when": { "carries": [] }, "verdict": "ask" }] }"#,
        r#"{ "default": "allow", "rules": [{ "when": { "arguments": { "a": 1 } }, "verdict": "ask" }] }"#,
    ] {
        let configuration = configuration(policy);
        assert_ne!(told(&configuration), "", "{policy}");
        assert_eq!(verdict(configuration.policy, &json!({})), Verdict::Deny, "{policy}");
    }
    // What was to allow allows nothing, and what is about another tool stays there.
    let broken = r#"{ "default": "ask", "rules": [
        { "verdict": "allow", "wen": {} }, { "tool": "jira_*", "verdict": "ask", "wen": {} }] }"#;
    assert_eq!(verdict(configuration(broken).policy, &json!({})), Verdict::Ask);
    let broken =
        configuration(r#"{ "flow": 7, "newTools": "no", "claims": [], "labels": { "a": "x" } }"#);
    let PolicySettings { flow, new_tools, claims, labels, .. } = broken.policy;
    assert_eq!((flow, new_tools, claims), (FlowMode::Labels, NewTools::Hold, Claims::Trusted));
    assert_eq!(labels[0].1, Label::ALL.into_iter().collect());
}

#[test]
fn mistakes_have_a_position_and_a_hint() {
    let problems = |policy: &str| told(&configuration(policy));
    assert_snapshot!(problems("7"), @r#"
    error: toolgate.json:2:1: `policy` must be `allow`, `ask-destructive`, `ask`, `ask-always`, `deny-writes` or `deny`, `off` or an object; every call is denied
      hint: to be asked before a tool changes something, write `"policy": "ask"`
    "#);
    assert_snapshot!(problems(r#"{ "defaults": "ask", "default": "asks", "flow": "on" }"#), @"
    error: toolgate.json:2:3: `policy.defaults` is not a known key
      hint: did you mean `default`?
    error: toolgate.json:2:33: `policy.default` must be `allow`, `ask-destructive`, `ask`, `ask-always`, `deny-writes` or `deny`
    error: toolgate.json:2:49: `policy.flow` must be `program`, `content`, `labels` or `off`
    ");
    assert_snapshot!(problems(r#"{ "rules": [
        { "tool": "github_*" },
        { "tols": "github_*", "verdict": "ask", "reason": 7 },
        { "tool": "", "verdict": "denied" },
        { "annotations": { "readonlyHint": true }, "verdict": "allow" },
        { "when": { "carry": "private", "to": "outside" }, "verdict": "ask" }] }"#), @r#"
    error: toolgate.json:3:9: `policy.rules[0]` has no `verdict`
      hint: add `"verdict"`: `allow`, `ask` or `deny`
    error: toolgate.json:4:11: `policy.rules[1].tols` is not a known key
    warning: toolgate.json:4:59: `policy.rules[1].reason` must be a line of at most 500 characters; it is ignored
    error: toolgate.json:5:19: `policy.rules[2].tool` is empty
    error: toolgate.json:5:34: `policy.rules[2].verdict` must be `allow`, `ask` or `deny`
    error: toolgate.json:6:28: `policy.rules[3].annotations.readonlyHint` is not a known key
      hint: did you mean `readOnlyHint`?
    error: toolgate.json:7:21: `policy.rules[4].when.carry` is not a known key
    error: toolgate.json:7:47: `policy.rules[4].when.to` must be `private`, `untrusted` or `egress`, or a list of them
    "#);
    assert_snapshot!(problems(r#"{ "rules": [
        { "verdict": "ask", "when": { "arguments": { "path": { "beneath": "/srv" } } } },
        { "verdict": "ask", "when": { "arguments": { "path": { "unter": "/srv" } } } },
        { "verdict": "ask", "when": { "arguments": { "path": { "under": "${NONE}/x" } } } },
        { "verdict": "ask", "when": { "arguments": { "a.": { "exists": true } } } },
        { "verdict": "ask", "when": { "arguments": { "a": { "matches": "a(b" } } } },
        { "verdict": "ask", "when": { "arguments": { "a": { "less": "b" } } } },
        { "verdict": "ask", "when": { "arguments": { "a": {} } } },
        { "verdict": "ask", "when": { "arguments": [] } }] }"#), @r#"
    error: toolgate.json:3:64: `policy.rules[0].when.arguments.path.beneath` is not a known operator
      hint: there are `equals`, `in`, `matches`, `anchored`, `prefix`, `argv`, `under`, `less`, `greater`, `exists`, `host`, `subdomains`, `schemes`
    error: toolgate.json:4:64: `policy.rules[1].when.arguments.path.unter` is not a known operator
      hint: did you mean `under`?
    error: toolgate.json:5:73: `policy.rules[2].when.arguments.path.under` needs the environment variable `NONE`, which is not set
      hint: set `NONE`, or write `${NONE:-default}`
    error: toolgate.json:6:54: `policy.rules[3].when.arguments["a."]` is no path to an argument: at most 32 non-empty names
    error: toolgate.json:7:72: `policy.rules[4].when.arguments.a.matches` is no regular expression that can be used: unclosed group
    error: toolgate.json:8:69: `policy.rules[5].when.arguments.a.less` must be a number
    error: toolgate.json:9:59: `policy.rules[6].when.arguments.a` has no operator
    error: toolgate.json:10:52: `policy.rules[7].when.arguments` must be an object, but is a list
      hint: write `"arguments": { "path": { "under": "/srv" } }`
    "#);
    let misspelt = read(r#"{ "mcpServers": { "a": { "command": "x" } }, "polcy": "deny" }"#);
    assert_snapshot!(shown(&misspelt), @"
    error: toolgate.json:1:46: `polcy` is not a known key; every call is denied
      hint: did you mean `policy`?
    ");
    assert_snapshot!(problems(r#"{ "labels": { "": "private", "crm_*": "secret" } }"#), @r#"
    error: toolgate.json:2:15: `policy.labels[""]` is empty
    error: toolgate.json:2:39: `policy.labels["crm_*"]` must be `private`, `untrusted` or `egress`, or a list of them
    "#);
    assert_snapshot!(crate::server_problems(r#""command": "x", "labels": "secret", "trusted": "yes", "tools": { "t": { "labels": 7 } }"#), @"
    error: toolgate.json:2:39: `mcpServers.github.labels` must be `private`, `untrusted` or `egress`, or a list of them
    error: toolgate.json:2:60: `mcpServers.github.trusted` must be true or false, but is a string
    error: toolgate.json:2:95: `mcpServers.github.tools.t.labels` must be `private`, `untrusted` or `egress`, or a list of them
    ");
}

#[test]
fn many_rules_are_read_quickly_and_too_many_are_refused() {
    let rules = |count: usize| {
        let rule = r#"{ "tool": "other_*", "verdict": "allow" }"#;
        format!(r#"{{ "default": "allow", "rules": [{}] }}"#, vec![rule; count].join(","))
    };
    let most = configuration(&rules(10_000));
    assert_eq!((told(&most).as_str(), most.policy.rules.len()), ("", 10_000));
    let more = configuration(&rules(10_001));
    assert_snapshot!(told(&more), @"error: toolgate.json:2:420033: `policy.rules[10000]` is one rule too many: a policy may have at most 10,000");
    assert_eq!(verdict(more.policy, &json!({})), Verdict::Deny);
}

#[test]
fn invalid_audit_settings_are_read_strictly() {
    let audit = |text: &str| read(&format!("{{ \"mcpServers\": {{}}, \"audit\": {text} }}")).audit;
    let said = audit(r#"{ "arguments": true, "required": true }"#);
    assert!(said.enabled && said.arguments && said.required);
    assert!(!audit("false").enabled);
    // What is not understood records, keeps no arguments and requires.
    let wrong = audit(r#"{ "enabled": 0, "arguments": "yes", "required": "no" }"#);
    assert!(wrong.enabled && !wrong.arguments && wrong.required);
    assert!(audit(r#"{ "requird": true }"#).required && audit("7").required);
}

#[test]
fn the_limits_of_the_audit_log_are_read() {
    let audit = |text: &str| read(&format!("{{ \"mcpServers\": {{}}, \"audit\": {text} }}")).audit;
    let said = audit(r#"{ "maxMegabytes": 2, "keepFiles": 0 }"#);
    assert_eq!((said.max_megabytes, said.keep_files), (2, 0));
    let wrong = audit(r#"{ "maxMegabytes": 0, "keepFiles": -1 }"#);
    assert_eq!((wrong.max_megabytes, wrong.keep_files), (64, 15));
}

#[test]
fn invalid_telemetry_settings_send_nothing() {
    let telemetry =
        |text: &str| read(&format!("{{ \"mcpServers\": {{}}, \"telemetry\": {text} }}")).telemetry;
    let said = telemetry(
        r#"{ "otlpEndpoint": "http://127.0.0.1:4318", "headers": { "x-key": "hush" }, "serviceName": "gate" }"#,
    );
    let said = said.expect("telemetry is on");
    assert_eq!(said.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318/"));
    assert_eq!(said.headers["x-key"].expose(), "hush");
    assert_eq!(said.service_name.as_deref(), Some("gate"));
    assert!(!format!("{said:?}").contains("hush"));
    let wrong = read(r#"{ "mcpServers": {}, "telemetry": { "otlpEndpoint": "collector:4317" } }"#);
    let mut hints = wrong.problems.iter().filter_map(|problem| problem.hint.as_deref());
    assert!(hints.any(|hint| hint.contains("http://127.0.0.1:4318")), "{:?}", wrong.problems);
    for wrong in [r#"{ "otlpEndpoint": "collector:4317" }"#, "false", "7", r#"{ "headers": 1 }"#] {
        assert!(telemetry(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn a_duplicate_key_never_allows_more() {
    for policy in [
        r#""deny", "policy": "allow""#,
        r#"{ "default": "deny", "default": "allow" }"#,
        r#"{ "default": "allow", "rules": [{ "verdict": "deny" }], "rules": [] }"#,
        r#"{ "default": "allow", "rules": [{ "verdict": "deny", "verdict": "allow" }] }"#,
        r#"{ "default": "allow", "rules": [{ "tool": "github_*", "tool": "x", "verdict": "deny" }] }"#,
    ] {
        let configuration = configuration(policy);
        let told = told(&configuration);
        assert!(told.starts_with("error: ") && told.contains("more than once"), "{told}");
        assert_eq!(verdict(configuration.policy, &json!({})), Verdict::Deny, "{policy}");
    }
}

#[test]
fn a_misspelt_policy_denies() {
    let file = r#"{ "mcpServers": { "github": { "command": "x" } }, "polcy": "deny" }"#;
    let configuration = read(file);
    assert!(told(&configuration).contains("every call is denied"), "{}", told(&configuration));
    assert_eq!(verdict(configuration.policy, &json!({})), Verdict::Deny);
}

#[test]
fn a_misspelt_approval_or_labels_key_is_an_error() {
    for server in [
        r#""tools": { "send": { "aproval": "deny" } }"#,
        r#""tools": { "send": { "approval": "deny", "approval": "allow" } }"#,
        r#""tools": { "send": { "label": ["private"] } }"#,
        r#""label": ["private"]"#,
        r#""policy": "deny""#,
        r#""labels": ["private"], "labels": []"#,
    ] {
        let file = format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", {server} }} }} }}");
        let configuration = read(&file);
        let told = told(&configuration);
        assert!(told.starts_with("error: "), "{server}: {told}");
        assert!(configuration.servers[0].transport.is_err(), "it is not served: {server}");
    }
}

#[test]
fn a_namespace_with_a_misspelt_or_doubled_policy_is_left_out() {
    for wrong in [r#""polcy": "deny""#, r#""policy": "deny", "policy": "allow""#] {
        let namespace = format!(r#"{{ "servers": ["a"], {wrong} }}"#);
        let file = format!(
            r#"{{ "mcpServers": {{ "a": {{ "command": "x" }} }}, "namespaces": {{ "n": {namespace} }} }}"#
        );
        let configuration = read(&file);
        let told = told(&configuration);
        assert!(told.starts_with("error: "), "{wrong}: {told}");
        assert!(configuration.namespaces.is_empty(), "{wrong}");
    }
}

/// A file with a policy of its own, where this policy is saved elsewhere.
fn with_saved(saved: Result<&str, &str>) -> Configuration {
    let text = r#"{
        "mcpServers": { "crm": { "command": "x", "labels": ["private"] } },
        "policy": { "default": "allow", "rules": [{ "tool": "crm_list", "verdict": "deny" }] },
        "namespaces": { "n": { "servers": ["crm"], "policy": { "labels": { "crm_b": "egress" } } } }
    }"#;
    let environment = |name: &str| (name == "HOME").then(|| "/home/a".to_owned());
    let stored = |_: StoredReference<'_>| Ok("stored".to_owned());
    let surroundings = Surroundings {
        stored: &stored,
        saved_policy: Some(SavedPolicyText { name: "policy 7 of the fleet", text: saved }),
        ..Surroundings::of(&environment)
    };
    parse_within(text, Format::Jsonc, "toolgate.json", &surroundings).expect("the syntax is valid")
}

#[test]
fn a_saved_policy_counts_in_place_of_the_one_in_the_file() {
    let saved = r#"{
  "default": "ask",
  "labels": { "crm_a": "untrusted" },
  "rules": [{ "tool": "crm_send", "verdict": "deny",
    "when": { "arguments": { "path": { "under": "${HOME}/x" } } } }]
}"#;
    let read = with_saved(Ok(saved));
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    assert!(read.has_policy);
    assert_eq!(read.policy.mode, Mode::Ask);
    assert_eq!(read.policy.rules.len(), 1, "{:?}", read.policy.rules);
    let origin = read.policy.rules[0].origin.to_string();
    assert_eq!(origin, "`policy.rules[0]` (policy 7 of the fleet:4:13)");
    assert_eq!(read.policy.labels.len(), 1);
    assert_eq!(read.policy.servers.len(), 1, "that of the servers stays in the file");
    let namespace = &read.namespaces[0].policy;
    assert_eq!((namespace.mode, namespace.rules.len()), (Mode::Ask, 1));
    assert_eq!(namespace.labels.len(), 2, "a namespace adds to the saved policy");
}

#[test]
fn a_saved_policy_that_cannot_be_read_denies_every_call() {
    for saved in [
        Err("a newer toolgate has saved it"),
        Ok("{"),
        Ok(""),
        Ok("7"),
        Ok(r#"{ "default": "allow", "futureKey": true }"#),
        Ok(r#"{ "default": "allow", "rules": [{ "tool": "a", "verdict": "perhaps" }] }"#),
        Ok(r#"{ "default": "allow", "default": "ask" }"#),
        Ok(
            r#"{ "rules": [{ "verdict": "allow", "when": { "arguments": { "p": { "under": "${command:id}" } } } }] }"#,
        ),
    ] {
        let read = with_saved(saved);
        for policy in [&read.policy, &read.namespaces[0].policy] {
            assert_eq!(verdict(policy.clone(), &json!({})), Verdict::Deny, "{saved:?}");
        }
        let problem = &read.problems[0];
        assert_eq!(&*problem.source, "policy 7 of the fleet", "{saved:?}");
        assert!(problem.message.contains("every call is denied"), "{problem:?}");
    }
}
