//! A tool whose every call is denied to a caller, or in one way of calling, is not offered there.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use crate::support::{Workplace, call, entry, entry_with, list, names, text};

fn echo(name: &str) -> Fixture {
    Fixture::new(name).with_builtins([Builtin::Echo])
}

fn ways(ways: &Value) -> Value {
    json!({ "tools": { "echo": { "allowedCallers": ways } } })
}

#[tokio::test]
async fn a_tool_is_offered_in_the_ways_that_it_can_be_called() {
    let place = Workplace::new(&json!({
        "mcpServers": {
            "direct": entry_with(&echo("direct"), ways(&json!(["direct"]))),
            "script": entry_with(&echo("script"), ways(&json!(["script"]))),
            "both": entry(&echo("both")),
        },
        "toolSearch": { "enabled": false },
    }));
    let mut client = place.connect(&[]).await;
    let listed = list(&mut client).await;
    let names = names(&listed);
    assert!(names.contains(&"direct_echo") && names.contains(&"both_echo"), "{names:?}");
    assert!(!names.contains(&"script_echo"), "{names:?}");
    assert!(names.contains(&"run_code"), "the way to the tool is offered: {names:?}");
    let found = call(&mut client, "search_tools", json!({ "query": "echo", "limit": 10 })).await;
    assert!(text(&found).contains("script_echo(message?: string) [in run_code only]"), "{found}");
    assert!(
        text(&found).contains("direct_echo(message?: string) [loaded] [not in run_code]"),
        "{found}"
    );
    let code = "const found = await search_tools({ query: 'echo', limit: 10 }); \
                return JSON.stringify(found)";
    let found = call(&mut client, "run_code", json!({ "code": code })).await;
    assert!(text(&found).contains("script_echo"), "{found}");
    assert!(!text(&found).contains("direct_echo"), "{found}");
    let names = json!({ "names": ["direct_echo", "both_echo"], "format": "typescript" });
    let details = call(&mut client, "get_tool_details", names).await;
    assert!(text(&details).contains("direct_echo: it is not for scripts"), "{details}");
    assert!(text(&details).contains("function both_echo"), "{details}");
}

#[tokio::test]
async fn a_tool_that_is_closed_to_a_client_is_not_shown_to_it() {
    let config = |rules: Value, default: &str| {
        json!({
            "mcpServers": { "far": entry(&echo("far")), "near": entry(&echo("near")) },
            "toolSearch": { "enabled": false },
            "policy": { "default": default, "rules": rules },
        })
    };
    let denied =
        json!([{ "server": "far", "caller": { "client": "RAW-client *" }, "verdict": "deny" }]);
    let allowed = json!([
        { "server": "near", "verdict": "allow" },
        { "server": "far", "caller": { "token": "ci" }, "verdict": "allow" },
    ]);
    for config in [config(denied, "allow"), config(allowed, "deny")] {
        let place = Workplace::new(&config);
        for arguments in [vec![], vec!["--mode", "stable"]] {
            let mut client = place.connect(&arguments).await;
            let listed = list(&mut client).await;
            assert!(!names(&listed).contains(&"far_echo"), "{listed:?}");
            let query = json!({ "query": "echo", "limit": 10 });
            let found = call(&mut client, "search_tools", query).await;
            assert!(!text(&found).contains("far_echo"), "{found}");
            assert!(text(&found).contains("near_echo"), "{found}");
            let details =
                call(&mut client, "get_tool_details", json!({ "names": ["far_echo"] })).await;
            assert!(text(&details).contains("there is no such tool"), "{details}");
            let run = json!({ "code": "return await far_echo({ message: 'x' })" });
            let run = call(&mut client, "run_code", run).await;
            assert_eq!(run["isError"], true, "{run}");
            assert!(!text(&run).contains("hello"), "{run}");
        }
        let mut client = place.connect(&["--passthrough", "far"]).await;
        assert!(list(&mut client).await.is_empty());
    }
}

/// What a caller is told of a tool that is closed to it is what it is told of no tool.
#[tokio::test]
async fn a_tool_that_is_closed_to_a_caller_is_like_no_tool() {
    let client = json!({ "client": "raw-client *" });
    let deny = |mut rule: Value| {
        (rule["server"], rule["verdict"]) = (json!("far"), json!("deny"));
        rule
    };
    for rules in [
        json!([deny(json!({ "caller": client }))]),
        json!([
            deny(json!({ "caller": client, "from": "direct" })),
            deny(json!({ "caller": client, "from": "script" })),
        ]),
        json!([deny(json!({ "from": "direct" })), deny(json!({ "from": "script" }))]),
        json!([
            deny(json!({ "when": { "arguments": { "message": { "exists": true } } } })),
            deny(json!({ "when": { "arguments": { "message": { "exists": false } } } })),
        ]),
    ] {
        let place = Workplace::new(&json!({
            "mcpServers": { "far": entry(&echo("far")), "near": entry(&echo("near")) },
            "toolSearch": { "enabled": false },
            "policy": { "default": "allow", "rules": rules },
        }));
        let mut client = place.connect(&[]).await;
        let listed = list(&mut client).await;
        assert!(!names(&listed).contains(&"far_echo"), "{rules}: {listed:?}");
        let mut told = Vec::new();
        for name in ["far_echo", "fax_echo"] {
            let hello = json!({ "message": "hello" });
            let direct = client.call(name, hello.clone()).await.unwrap();
            let through = json!({ "name": name, "arguments": hello });
            let through = call(&mut client, "call_tool", through).await;
            let invalid = json!({ "name": name, "arguments": { "message": 7 } });
            let invalid = call(&mut client, "call_tool", invalid).await;
            let code = format!(
                "return await call_tool({{ name: '{name}', arguments: {{ message: 'x' }} }})"
            );
            let run = call(&mut client, "run_code", json!({ "code": code })).await;
            let all = [
                direct["error"].to_string() + &direct["result"].to_string(),
                text(&through).to_owned(),
                text(&invalid).to_owned(),
                text(&run).lines().filter(|line| !line.contains("run_")).collect(),
            ];
            told.push(all.map(|text| text.replace(name, "NAME")));
        }
        assert_eq!(told[0], told[1], "{rules}");
        let mut client = place.connect(&["--passthrough", "far"]).await;
        assert!(list(&mut client).await.is_empty(), "{rules}");
        let told = ["echo", "fcho"].map(|name| (name, json!({ "message": "hello" })));
        let mut errors = Vec::new();
        for (name, hello) in told {
            let mut answer = client.call(name, hello).await.unwrap();
            answer["id"].take();
            errors.push(answer.to_string().replace(name, "NAME"));
        }
        assert_eq!(errors[0], errors[1], "{rules}");
    }
}
