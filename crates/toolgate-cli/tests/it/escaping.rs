//! What servers say reaches a terminal spelt out.

use serde_json::json;
use toolgate_testkit::{Builtin, Faults, Fixture, StartupExit};

use crate::{
    fixtures::tool,
    support::{Workplace, entry},
    typist::Typist,
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

/// A server that says it wherever it can: name, version, instructions, definitions, results, errors,
/// stderr.
#[tokio::test]
async fn no_command_prints_what_a_terminal_would_obey() {
    let said = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let properties = json!({ HOSTILE: { "type": "string", "description": HOSTILE } });
    let mut look = tool("look", HOSTILE, &properties, &[]);
    look["title"] = json!(HOSTILE);
    look["annotations"] = json!({ "title": HOSTILE, "readOnlyHint": true });
    let delete = tool("delete", HOSTILE, &properties, &[]);
    let named = tool(&format!("odd{HOSTILE}"), HOSTILE, &json!({}), &[]);
    let shows = Fixture::new(HOSTILE)
        .with_builtins([Builtin::RpcError, Builtin::Log])
        .with_tools([look, delete, named])
        .with_instructions(HOSTILE)
        .with_answer("look", said(HOSTILE))
        .with_answer("delete", said(HOSTILE))
        .with_resources([json!({ "uri": "a:b", "name": HOSTILE, "description": HOSTILE })])
        .with_prompts([json!({ "name": HOSTILE, "description": HOSTILE })]);
    let exit = StartupExit { code: 1, message: HOSTILE.to_owned() };
    let dies = Faults { exit_at_start: Some(exit), ..Faults::default() };
    let dead = Fixture::new("dead").with_faults(dies);
    let place = Workplace::new(&json!({
        "mcpServers": { "show": entry(&shows), "dead": entry(&dead), HOSTILE: { "command": HOSTILE } },
        "policy": { "default": "ask", "rules": [
            { "tool": "show_delete", "verdict": "ask", "reason": HOSTILE },
            { "tool": HOSTILE, "verdict": "deny" },
        ] },
        HOSTILE: HOSTILE,
    }));
    let hostile = json!({ HOSTILE: HOSTILE }).to_string();
    let error = json!({ "code": -1, "message": HOSTILE }).to_string();
    let code = format!("console.log({0}); throw new Error({0})", json!(HOSTILE));
    std::fs::write(place.path().join("throws.ts"), code).unwrap();
    let code = format!("await show_look({hostile}); await show_delete({hostile})");
    std::fs::write(place.path().join("waits.ts"), code).unwrap();
    let commands: [&[&str]; 35] = [
        &["call", "show_look", &hostile],
        &["call", "show_delete", &hostile],
        &["call", "show_rpc_error", &error],
        &["call", HOSTILE],
        &["run", "throws.ts"],
        &["run", "waits.ts"],
        &["run", HOSTILE],
        &["runs"],
        &["runs", "show", "run_"],
        &["runs", "show", HOSTILE],
        &["inspect", "show_look", "show_delete"],
        &["inspect", HOSTILE],
        &["search", "look"],
        &["search", HOSTILE],
        &["status"],
        &["status", "--tools"],
        &["status", "--json"],
        &["-vvv", "status"],
        &["definitions"],
        &["definitions", "diff", HOSTILE],
        &["policy"],
        &["policy", "check", "show_delete", &hostile],
        &["config", "check"],
        &["doctor"],
        &["engines"],
        &["tokens"],
        &["usage"],
        &["skills"],
        &["logs", "dead"],
        &["logs", "dead", "--json"],
        &["logs", HOSTILE],
        &["approve"],
        &["approve", "--json"],
        &["audit"],
        &["audit", "--json"],
    ];
    for command in commands {
        let outcome = place.run(command).await;
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!all.contains(HIDDEN), "{command:?}: {all:?}");
        if command.contains(&"--json") && !command.contains(&"audit") {
            outcome.json();
        }
    }
    // They do not merely leave it out.
    let logged = place.run(&["logs", "dead"]).await;
    assert!(logged.stdout.contains(r"txt.exe\u{1b}[2J"), "{logged:?}");
    let waiting = place.run(&["approve"]).await;
    assert!(waiting.stdout.contains(r"Look\u{202e}txt.exe"), "{waiting:?}");
    let mut typist = Typist::start(&place, &["call", "show_delete", &hostile]);
    typist.sees("or [N]o? ").await.types("n\n");
    let screen = typist.end().await.stderr;
    assert!(!screen.contains(HIDDEN), "{screen:?}");
    assert!(screen.contains(r"Look\u{202e}txt.exe"), "{screen:?}");
}
