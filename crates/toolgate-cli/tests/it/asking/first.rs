//! Without a policy, tools that declare themselves destructive ask where somebody can be asked.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use super::{
    called, said,
    talk::{Manners, Talk, Way},
};
use crate::{
    fixtures::tool,
    support::{Workplace, entry, text},
    typist::Typist,
};

/// Two tools: `erase` declares that it destroys, `change` declares nothing.
fn workplace(policy: Option<&str>) -> (Workplace, PathBuf) {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    let mut erase = tool("erase", "Erase a page.", &json!({}), &[]);
    erase["annotations"] = json!({ "destructiveHint": true });
    let change = tool("change", "Change a page.", &json!({}), &[]);
    let pages = Fixture::new("pages").with_tools([erase, change]).with_call_log(&log);
    let mut config =
        json!({ "mcpServers": { "pages": entry(&pages) }, "toolSearch": { "enabled": true } });
    if let Some(policy) = policy {
        config["policy"] = json!(policy);
    }
    place.rewrite(&config.to_string());
    (place, log)
}

fn through(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

#[tokio::test]
async fn without_a_policy_what_declares_itself_destructive_asks_where_it_can() {
    for way in Way::ALL {
        let (place, log) = workplace(None);
        let (mut talk, _kept) = Talk::start(&place, way, Manners::ASKED).await;
        talk.call_alone("call_tool", through("pages_change")).await;
        let no = async |question: Value| {
            assert!(question["message"].as_str().unwrap().contains("pages_erase"), "{question}");
            json!({ "action": "decline" })
        };
        let refused = talk.call("call_tool", through("pages_erase"), no).await;
        assert!(text(&refused).contains("a person denied it"), "{way:?}: {refused}");
        let script = json!({ "code": "return await pages_erase({})" });
        let refused = talk.call("run_code", script, no).await;
        assert!(text(&refused).contains("a person denied it"), "{way:?}: {refused}");
        assert_eq!(called(&log), ["change"], "{way:?}");
        let yes = async |_: Value| said("allow once");
        talk.call("call_tool", through("pages_erase"), yes).await;
        assert_eq!(called(&log), ["change", "erase"], "{way:?}");
    }
}

#[tokio::test]
async fn without_a_policy_everything_goes_through_where_nobody_can_be_asked() {
    for way in Way::ALL {
        let (place, log) = workplace(None);
        let (mut talk, _kept) = Talk::start(&place, way, Manners::ALONE).await;
        let result = talk.call_alone("call_tool", through("pages_erase")).await;
        assert_ne!(result["isError"], true, "{way:?}: {result}");
        let script = json!({ "code": "return await pages_erase({})" });
        talk.call_alone("run_code", script).await;
        assert_eq!(called(&log), ["erase", "erase"], "{way:?}");
    }
    let (place, _) = workplace(None);
    let outcome = place.run(&["call", "pages_erase", "{}"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let row = place.run(&["audit", "--json"]).await.json();
    assert_eq!(
        (&row["verdict"], &row["rule"]),
        (&json!("ask"), &json!("the default \"ask-destructive\"; nobody could be asked"))
    );
}

#[tokio::test]
async fn without_a_policy_a_person_at_a_terminal_is_asked() {
    let (place, log) = workplace(None);
    let mut typist = Typist::start(&place, &["call", "pages_erase", "{}"]);
    typist.sees("or [N]o? ").await.types("no\n");
    assert_eq!(typist.end().await.code, Some(1));
    assert!(called(&log).is_empty());
}

#[tokio::test]
async fn the_first_policy_is_told_and_can_be_switched_off() {
    const TOLD: &str = "No policy is set: a person is asked before a tool is called that declares \
                        itself destructive";
    let (place, _) = workplace(None);
    let status = place.run(&["status"]).await;
    let lines: Vec<&str> = status.stdout.lines().filter(|line| line.starts_with(TOLD)).collect();
    assert!(matches!(lines[..], [line] if line.contains("\"off\" never asks")), "{status:?}");
    let told = place.run(&["serve", "--stdio"]).await.stderr;
    assert!(told.contains(TOLD) && told.contains("toolgate.json"), "{told}");
    let explained = place.run(&["policy", "check", "pages_erase"]).await.stdout;
    assert!(explained.contains("Where nobody can be asked, the call goes through"), "{explained}");
    for policy in ["off", "allow"] {
        let (place, log) = workplace(Some(policy));
        let status = place.run(&["status"]).await;
        assert!(!status.stdout.contains("No policy is set"), "{status:?}");
        assert!(!place.run(&["serve", "--stdio"]).await.stderr.contains("No policy is set"));
        let (mut talk, _kept) = Talk::start(&place, Way::StdioLegacy, Manners::ASKED).await;
        talk.call_alone("call_tool", through("pages_erase")).await;
        assert_eq!(called(&log), ["erase"], "{policy}");
    }
}
