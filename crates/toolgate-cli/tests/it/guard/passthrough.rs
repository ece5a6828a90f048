//! The policy applies in pass-through, from the configuration to the audit log.

use serde_json::{Value, json};

use super::{records, workplace};
use crate::{
    support::{call, list, names, text},
    typist::approve,
};

#[tokio::test]
async fn the_policy_applies_in_pass_through() {
    let policy = json!({
        "default": "allow",
        "rules": [
            { "tool": "records_delete", "verdict": "deny" },
            { "server": "records", "tool": "resources/read", "verdict": "deny" },
        ],
    });
    let place = workplace(&policy);
    let mut client = place.connect(&["--passthrough", "records"]).await;
    let listed = list(&mut client).await;
    assert_eq!(names(&listed), ["list"]);
    assert_eq!(listed[0], records().tools[0], "as it was sent");
    let erase = json!({ "name": "delete", "arguments": { "id": "1" } });
    let answer = client.request("tools/call", erase).await.unwrap();
    assert_eq!(answer["error"]["message"], "there is no tool `delete`", "{answer}");
    let read = client.request("resources/read", json!({ "uri": "x:1" })).await.unwrap();
    assert!(read["error"]["message"].as_str().unwrap().contains("denies"), "{read}");
    call(&mut client, "list", json!({})).await;
    client.close_stdin();
    assert!(client.wait().await.unwrap().success());
    let log = place.run(&["audit", "--json"]).await.stdout;
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            format!("{} {} {}", row["tool"], row["verdict"], row["outcome"]).replace('"', "")
        })
        .collect();
    let expected = ["delete deny refused", "resources/read deny refused", "records_list allow ok"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_call_that_is_passed_through_waits_for_an_approval() {
    let place = workplace(&json!("ask"));
    let mut client = place.connect(&["--passthrough", "records"]).await;
    let arguments = json!({ "id": "4711" });
    let waiting = call(&mut client, "delete", arguments.clone()).await;
    let said = text(&waiting).to_owned();
    assert!(
        waiting["isError"] == true && said.contains("waiting for approval, question q_"),
        "{said}"
    );
    assert!(said.starts_with("`delete` was not called"), "as its client knows it: {said}");
    let question = said.split("question ").nth(1).unwrap().split('.').next().unwrap();
    let approved = approve(&place, question, &[]).await;
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let done = call(&mut client, "delete", arguments).await;
    assert!(done.get("isError").is_none_or(|failed| failed == false), "{done}");
}

#[tokio::test]
async fn a_request_is_explained_like_a_call() {
    let place = workplace(&json!({
        "default": "ask",
        "rules": [{ "tool": "records/resources/read", "verdict": "deny",
                    "when": { "arguments": { "uri": { "prefix": "secret:" } } } }],
    }));
    let check = async |uri: &str| {
        let arguments = json!({ "uri": uri }).to_string();
        place.run(&["policy", "check", "records/resources/read", &arguments]).await.shown()
    };
    insta::assert_snapshot!(check("secret:1").await, @"
    exit code 0
    --- stdout
    deny: `policy.rules[0]` (toolgate.json:14:7), one tool with conditions
    --- stderr
    ");
    insta::assert_snapshot!(check("x:1").await, @r#"
    exit code 0
    --- stdout
    allow: no rule applies, and the default is "ask"; the tool counts as read-only
    --- stderr
    "#);
}
