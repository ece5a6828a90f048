//! What servers say reaches a terminal spelt out.

use serde_json::json;
use toolgate_testkit::Fixture;

use crate::{
    fixtures::tool,
    support::{Workplace, entry},
};

const HOSTILE: &str = "Look\u{202e}txt.exe\u{1b}[2J\u{9b}31m\u{200b}\r\u{7}";
const HIDDEN: [char; 6] = ['\u{202e}', '\u{1b}', '\u{9b}', '\u{200b}', '\r', '\u{7}'];

#[tokio::test]
async fn control_characters_are_escaped() {
    let answer = json!({ "content": [{ "type": "text", "text": HOSTILE }] });
    let failure = json!({ "content": [{ "type": "text", "text": HOSTILE }], "isError": true });
    let server = Fixture::new("show")
        .with_tools(["look", "fail"].map(|name| tool(name, HOSTILE, &json!({}), &[])))
        .with_answer("look", answer)
        .with_answer("fail", failure);
    let workplace = Workplace::new(&json!({ "mcpServers": { "show": entry(&server) } }));
    let commands: [&[&str]; 8] = [
        &["inspect", "show_look"],
        &["search", "look"],
        &["search", "look", "--detail", "schema"],
        &["call", "show_look"],
        &["call", "show_fail"],
        &["status", "--tools"],
        &["definitions"],
        &["inspect", "--json", "show_look"],
    ];
    for command in commands {
        let outcome = workplace.run(command).await;
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!all.contains(HIDDEN), "{command:?}: {all:?}");
    }
    let called = workplace.run(&["call", "show_look"]).await;
    let spelt = r"Look\u{202e}txt.exe\u{1b}[2J\u{9b}31m\u{200b}\u{d}\u{7}";
    assert_eq!(called.stdout, format!("{spelt}\n"));
    // JSON stays the same JSON.
    let called = workplace.run(&["call", "show_look", "--json"]).await;
    assert!(!called.stdout.contains(HIDDEN), "{called:?}");
    assert_eq!(called.json()["content"][0]["text"], HOSTILE);
}
