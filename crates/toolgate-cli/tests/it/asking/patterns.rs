//! A yes for some arguments and not for others, from the queue and from the client's form.

use serde_json::{Value, json};

use super::{
    called, logged,
    talk::{Manners, Talk, Way},
    workplace,
};
use crate::{
    support::{Workplace, entry, text},
    typist::{agree, waiting_ids},
};

fn call(path: &str) -> Value {
    json!({ "name": "kit_counter", "arguments": { "path": path } })
}

#[tokio::test]
async fn an_approval_can_be_for_a_pattern_of_arguments() {
    let (workplace, log) = workplace(&json!({}));
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioLegacy, Manners::ALONE).await;
    let waits = client.call_alone("call_tool", call("src/a.rs")).await;
    assert!(text(&waits).contains("waiting for approval"), "{waits}");
    let id = waiting_ids(&workplace).await.remove(0);
    let approve = async |more: &[&str]| {
        let outcome = workplace.run(&[&["approve", &id], more].concat()).await;
        outcome.shown().replace(&id, "ID")
    };
    insta::assert_snapshot!(approve(&["--where", "path=src/*"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      --for <EXTENT>

    Usage: toolgate approve --for <EXTENT> --where <CONDITION> --config <FILE> <ID>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(approve(&["--for", "always", "--where", "path=*.rs"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: in `path=*.rs` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
      hint: the operators are equals, in, matches, anchored, prefix, argv, under, less, greater, exists, host, subdomains, schemes
    ");
    insta::assert_snapshot!(approve(&["--for", "always", "--where", "path=docs/*"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: the call that waits does not meet this condition
      hint: a condition is about the arguments that are shown, by their names
    ");
    let conditions = ["--for", "always", "--where", "path=src/*", "--where", "force exists false"];
    let approved = agree(&workplace, &[&["approve", &id], &conditions[..]].concat()).await;
    insta::assert_snapshot!(approved.shown(), @r#"
    exit code 0
    --- stdout
    kit_counter is allowed to local until it is revoked, only where path is under "src" and force is not there: the agent can make the same call again.
    --- stderr
    "lonely 1" (local) wants to call kit_counter of the server kit
    with {"path":"src/a.rs"}
    Asked because of `mcpServers.kit.tools.counter.approval` (~/toolgate.json:1:16)
    Allow this call and later ones by local, always, with arguments, only where path is under "src" and force is not there? [y/N] y
    "#);
    for covered in ["src/a.rs", "src/deep/b.rs"] {
        let done = client.call_alone("call_tool", call(covered)).await;
        assert_eq!(done.get("isError"), None, "{covered}: {done}");
    }
    // In scripts too.
    let code = "return (await kit_counter({ path: './src/c.rs' })).count";
    let done = client.call_alone("run_code", json!({ "code": code })).await;
    assert!(text(&done).starts_with('3'), "{done}");
    for other in ["src/../../etc/passwd", "/etc/passwd", "SRC/a.rs", "src\\..\\x"] {
        let waits = client.call_alone("call_tool", call(other)).await;
        assert!(text(&waits).contains("waiting for approval"), "{other}: {waits}");
    }
    assert_eq!(called(&log).len(), 3);
    let grants = workplace.run(&["grants"]).await.stdout;
    insta::assert_snapshot!(grants.split_once("  ").unwrap().1.trim(), @r#"kit/counter for local: always, only where path is under "src" and force is not there (by shell:somebody)"#);
}

#[tokio::test]
async fn a_form_can_be_answered_with_a_pattern_of_arguments() {
    let (workplace, log) = workplace(&json!({}));
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioModern, Manners::ASKED).await;
    let says = |conditions: &str| {
        let content = json!({ "answer": "allow always", "onlyWhere": conditions });
        let answer = json!({ "action": "accept", "content": content });
        async move |question: Value| {
            let field = &question["requestedSchema"]["properties"]["onlyWhere"];
            assert_eq!(field["type"], "string", "{question}");
            answer.clone()
        }
    };
    // An invalid condition is a denial, and a condition that the call does not meet does not allow
    // it.
    let no = client.call("call_tool", call("src/a.rs"), says("path=*.rs")).await;
    assert!(text(&no).contains("a person denied it"), "{no}");
    let other = client.call("call_tool", call("src/a.rs"), says("path=docs/*")).await;
    assert!(text(&other).contains("a person allowed it with other arguments"), "{other}");
    assert_eq!(called(&log).len(), 0);
    let yes = client.call("call_tool", call("src/a.rs"), says("path=src/*; force exists false"));
    assert_eq!(yes.await.get("isError"), None);
    let covered = client.call_alone("call_tool", call("src/b.rs")).await;
    assert_eq!(covered.get("isError"), None, "{covered}");
    let deny = async |_| json!({ "action": "decline" });
    let forced = json!({ "path": "src/b.rs", "force": true });
    let forced = json!({ "name": "kit_counter", "arguments": forced });
    let denied = client.call("call_tool", forced, deny).await;
    assert!(text(&denied).contains("a person denied it"), "{denied}");
    assert_eq!(called(&log).len(), 2);
}

#[tokio::test]
async fn a_form_shows_what_rules_are_about_first_and_allows_what_was_shown() {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    let rule = json!({ "tool": "kit_counter", "verdict": "ask",
                       "when": { "arguments": { "options.force": { "equals": true } } } });
    let config = json!({
        "mcpServers": { "kit": entry(&logged(&log)) }, "toolSearch": { "enabled": true },
        "policy": { "default": "allow", "rules": [rule] },
    });
    place.rewrite(&config.to_string());
    let (mut client, _gateway) = Talk::start(&place, Way::StdioModern, Manners::ASKED).await;
    let call = |note: &str| {
        let arguments = json!({ "note": note, "options": { "x": 1, "force": true } });
        json!({ "name": "kit_counter", "arguments": arguments })
    };
    let always = async |question: Value| {
        let shown = question["message"].as_str().unwrap();
        assert!(shown.contains("with {\"options\":{\"force\":true,"), "{shown}");
        json!({ "action": "accept", "content": { "answer": "allow always" } })
    };
    let done = client.call("call_tool", call(&"long ".repeat(1_000)), always).await;
    assert_eq!(done.get("isError"), None, "{done}");
    // The same again, without a question, and nothing else.
    let done = client.call_alone("call_tool", call(&"long ".repeat(1_000))).await;
    assert_eq!(done.get("isError"), None, "{done}");
    let deny = async |_| json!({ "action": "decline" });
    let denied = client.call("call_tool", call("another"), deny).await;
    assert!(text(&denied).contains("a person denied it"), "{denied}");
    // Unless it is widened.
    let widened = async |_| {
        let content = json!({ "answer": "allow always", "anyArguments": true });
        json!({ "action": "accept", "content": content })
    };
    client.call("call_tool", call("another"), widened).await;
    let done = client.call_alone("call_tool", call("yet another")).await;
    assert_eq!(done.get("isError"), None, "{done}");
    assert_eq!(called(&log).len(), 4);
}
