//! Rules and tools that name the way in which a call is made, and the client that makes it.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use crate::support::{Workplace, call, call_through, entry, entry_with, text};

fn echo(name: &str) -> Fixture {
    Fixture::new(name).with_builtins([Builtin::Echo])
}

#[tokio::test]
async fn allowed_callers_limit_the_ways_of_a_call() {
    let tools = |ways: Value| json!({ "tools": { "echo": { "allowedCallers": ways } } });
    let place = Workplace::new(&json!({
        "mcpServers": {
            "direct": entry_with(&echo("direct"), tools(json!(["direct"]))),
            "script": entry_with(&echo("script"), tools(json!(["script"]))),
            "both": entry_with(&echo("both"), tools(json!(["script", "direct"]))),
            "ruled": entry(&echo("ruled")),
        },
        "policy": { "default": "allow",
                    "rules": [{ "server": "ruled", "from": "script", "verdict": "deny" }] },
    }));
    let mut client = place.connect(&["--mode", "code"]).await;
    for (server, by_client, by_script) in [
        ("direct", true, false),
        ("script", false, true),
        ("both", true, true),
        ("ruled", true, false),
    ] {
        let name = format!("{server}_echo");
        let arguments = json!({ "message": "hello" });
        let direct = call_through(&mut client, &name, arguments).await;
        assert_eq!(direct["isError"] != true, by_client, "{server}: {direct}");
        let code = format!("return await {name}({{ message: 'hello' }})");
        let script = call(&mut client, "run_code", json!({ "code": code })).await;
        assert_eq!(script["isError"] != true, by_script, "{server}: {script}");
        if !by_client {
            assert!(text(&direct).contains("called by scripts alone: use `run_code`"), "{direct}");
        }
    }
}

#[tokio::test]
async fn a_rule_names_the_client() {
    let place = Workplace::new(&json!({
        "mcpServers": { "far": entry(&echo("far")) },
        "policy": { "default": "allow",
                    "rules": [{ "caller": { "client": "raw-client *" }, "verdict": "deny" }] },
    }));
    let mut client = place.connect(&["--mode", "deferred"]).await;
    let denied = call_through(&mut client, "far_echo", json!({ "message": "hello" })).await;
    assert!(text(&denied).contains("there is no tool `far_echo`"), "{denied}");
}

#[tokio::test]
async fn a_mistake_in_a_caller_allows_nothing() {
    for (rule, told) in [
        (json!({ "caller": {}, "verdict": "allow" }), "names no caller"),
        (json!({ "caller": { "tokn": "ci" }, "verdict": "allow" }), "is not a known key"),
        (json!({ "caller": { "token": [] }, "verdict": "allow" }), "must be a name or pattern"),
        (json!({ "from": "shell", "verdict": "allow" }), "must be"),
    ] {
        let place = Workplace::new(&json!({
            "mcpServers": { "far": entry(&echo("far")) },
            "policy": { "default": "deny", "rules": [rule] },
        }));
        let checked = place.run(&["config", "check"]).await;
        assert!(checked.code != Some(0) && checked.stderr.contains(told), "{checked:?}");
    }
}
