//! The record, beyond calls and beyond one file.

use serde_json::{Value, json};

use super::{records, workplace};
use crate::{
    support::{Workplace, entry},
    typist::{agree, approve},
};

async fn rows(workplace: &Workplace) -> Vec<Value> {
    let all = workplace.run(&["audit", "--json"]).await.stdout;
    all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn decisions_of_people_are_in_the_audit_log_with_their_names() {
    let workplace = workplace(&json!("ask"));
    for arguments in [
        &["call", "records_delete", r#"{"id":"1"}"#][..],
        &["disable", "records"],
        &["token", "create", "--name", "laptop"],
        &["token", "revoke", "laptop"],
        &["definitions", "approve", "--all"],
    ] {
        workplace.run(arguments).await;
    }
    agree(&workplace, &["enable", "records"]).await;
    let waiting = workplace.run(&["approve", "--json"]).await.json();
    let reference = waiting[0]["reference"].as_str().unwrap().to_owned();
    approve(&workplace, &reference, &["--for", "always"]).await;
    let grant = workplace.run(&["grants", "--json"]).await.json()[0]["id"].clone();
    let grant = grant.as_str().unwrap().to_owned();
    workplace.run(&["grants", "revoke", &grant]).await;
    let told: Vec<String> = rows(&workplace)
        .await
        .iter()
        .map(|row| {
            let said = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}: {}", said("kind"), said("caller"), said("verdict"), said("rule"))
        })
        .collect();
    let told = told.join("\n").replace(&reference, "QUESTION").replace(&grant, "GRANT");
    insta::assert_snapshot!(told, @r#"
    call shell ask: the default "ask"
    server shell:somebody deny: disabled
    token shell:somebody allow: token laptop made
    token shell:somebody deny: token laptop revoked
    definition shell:somebody allow: 2 definitions approved
    server shell:somebody allow: enabled
    approval shell:somebody allow: approval QUESTION; grant GRANT
    grant shell:somebody deny: grant GRANT revoked
    "#);
}

/// A gateway that is ended in the ordinary way has written everything.
#[tokio::test]
async fn an_interrupted_gateway_loses_no_audit_line() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "records": entry(&records()) } }));
    for signal in ["INT", "TERM"] {
        let gateway = workplace.serve_http(&[]).await;
        let client = gateway.client();
        for number in 0..20 {
            client.call("records_delete", json!({ "id": number.to_string() })).await;
        }
        gateway.stop_by(signal).await;
    }
    assert_eq!(rows(&workplace).await.len(), 40);
}

/// The line of a call is written before its answer goes out, so that `kill -9` cannot take it away.
#[tokio::test]
async fn no_answered_call_is_without_a_line_after_a_kill() {
    for killed_after in [1, 40, 150] {
        let workplace = Workplace::new(&json!({
            "mcpServers": { "records": entry(&records()) }, "policy": "off",
            "toolSearch": { "enabled": false },
        }));
        let mut client = workplace.connect(&[]).await;
        // Connected, and listed.
        crate::support::call(&mut client, "records_list", json!({})).await;
        for number in 0..300 {
            let call =
                json!({ "name": "records_delete", "arguments": { "id": number.to_string() } });
            client.begin("tools/call", call).await.unwrap();
        }
        let is_answer = |line: &String| {
            serde_json::from_str::<Value>(line).unwrap()["result"]["content"].is_array()
        };
        let mut answered = 1;
        while answered <= killed_after {
            answered += usize::from(is_answer(&client.line().await.unwrap()));
        }
        crate::support::signal("KILL", client.pid().unwrap());
        // What was in the pipe was answered too. The last line may be half of one.
        while let Ok(line) = client.line().await {
            let whole = serde_json::from_str::<Value>(&line).is_ok();
            answered += usize::from(whole && is_answer(&line));
        }
        let log = std::fs::read_to_string(workplace.path().join("state/audit/audit.jsonl"));
        let lines = log.unwrap().lines().filter(|line| line.contains("\"ok\"")).count();
        assert!(lines >= answered, "{answered} answered, {lines} written");
        let verified = workplace.run(&["audit", "--verify"]).await;
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

/// Each call is longer than nothing, so that some megabytes are needed; a batch of long arguments
/// makes them.
#[tokio::test]
async fn the_audit_log_rotates_and_is_verified_across_files() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "records": entry(&records()) },
        "audit": { "arguments": true, "maxMegabytes": 1, "keepFiles": 1 },
    }));
    let mut client = workplace.connect(&[]).await;
    let id = "i".repeat(300_000);
    for _ in 0..12 {
        crate::support::call(&mut client, "records_delete", json!({ "id": id })).await;
    }
    client.close_stdin();
    client.wait().await.unwrap();
    let verified = workplace.run(&["audit", "--verify"]).await;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.stdout.contains(" in 2 files. It begins with number "), "{verified:?}");
}

#[tokio::test]
async fn a_missing_head_file_fails_verification() {
    let workplace = workplace(&json!("allow"));
    let fresh = workplace.run(&["audit", "--verify"]).await;
    assert_eq!((fresh.stdout.as_str(), fresh.code), ("There is no audit log yet.\n", Some(0)));
    workplace.run(&["call", "records_delete", r#"{"id":"1"}"#]).await;
    assert_eq!(workplace.run(&["audit", "--verify"]).await.code, Some(0));
    std::fs::remove_file(workplace.path().join("state/audit/audit.head")).unwrap();
    let verified = workplace.run(&["audit", "--verify"]).await;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stderr.contains("how far the log went is not known"), "{verified:?}");
}
