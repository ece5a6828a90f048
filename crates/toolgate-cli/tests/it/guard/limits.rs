//! Limits of calls, from the configuration to the error, the record and the status.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use crate::support::{Workplace, call, call_through, entry, list, names, text, until};

fn workplace(limits: &Value) -> Workplace {
    let kit = Fixture::new("kit").with_builtins([Builtin::Echo, Builtin::Sleep]);
    Workplace::new(&json!({
        "mcpServers": { "kit": entry(&kit), "other": entry(&Fixture::new("other").with_builtins([Builtin::Echo])) },
        "toolSearch": { "enabled": true }, "policy": "off", "limits": limits,
    }))
}

fn hello() -> Value {
    json!({ "message": "hello" })
}

#[tokio::test]
async fn a_limit_refuses_with_what_for_whom_and_until_when() {
    let place = workplace(&json!([{ "server": "kit", "tool": "echo", "perMinute": 2 }]));
    let mut client = place.connect(&[]).await;
    call_through(&mut client, "kit_echo", hello()).await;
    let code = "await kit_echo({ message: 'a' }); return await kit_echo({ message: 'b' })";
    let script = call(&mut client, "run_code", json!({ "code": code })).await;
    assert_eq!(script["isError"], true, "the calls of a script count too: {script}");
    assert!(text(&script).contains("2 calls a minute"), "{script}");
    let refused = call_through(&mut client, "kit_echo", hello()).await;
    let told = text(&refused);
    assert!(told.starts_with("`kit_echo` was not called: `limits[0]`"), "{told}");
    for part in ["`local`", "2 calls a minute of `echo` of `kit`", "possible at 2", "is refused"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let limit = &refused["_meta"]["toolgate/limit"];
    assert_eq!((&limit["limit"], &limit["most"]), (&json!("perMinute"), &json!(2)), "{limit}");
    assert_eq!((&limit["caller"], &limit["calls"]["server"]), (&json!("local"), &json!("kit")));
    assert!(limit["until"].as_str().is_some_and(|until| until.ends_with('Z')), "{limit}");
    let other = call_through(&mut client, "other_echo", hello()).await;
    assert_ne!(other["isError"], true, "another tool has no such limit: {other}");
    client.close_stdin();
    assert!(client.wait().await.unwrap().success());
    let log = place.run(&["audit", "--json", "--verdict", "deny"]).await.stdout;
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{log}");
    assert!(rows.iter().all(|row| row["outcome"] == "refused"), "{log}");
    assert!(rows[0]["rule"].as_str().unwrap().contains("limits[0]"), "{log}");
    let status = place.run(&["status"]).await.stdout;
    assert!(
        status.contains("local has used the calls of the minute; more are refused"),
        "{status}"
    );
}

#[tokio::test]
async fn the_calls_of_a_day_are_counted_across_restarts_and_shown() {
    let place = workplace(&json!([{ "tool": "kit_*", "perDay": 2 }]));
    let echo = ["call", "kit_echo", r#"{"message":"hello"}"#];
    for _ in 0..2 {
        assert_eq!(place.run(&echo).await.code, Some(0));
    }
    let refused = place.run(&echo).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("allows `shell` 2 calls a day of `kit_*`"), "{refused:?}");
    assert!(refused.stderr.contains("T00:00:00Z"), "until midnight: {refused:?}");
    let mut client = place.connect(&[]).await;
    let model = call_through(&mut client, "kit_echo", hello()).await;
    assert_ne!(model["isError"], true, "another caller has its own count: {model}");
    let status = place.run(&["status"]).await.stdout;
    let line = "`kit_*`: shell has used 2 of 2 calls today; more are refused until 2";
    assert!(status.contains(line), "{status}");
    let status = place.run(&["status", "--json"]).await.json();
    let used: Vec<(&Value, &Value)> = status["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["caller"], &it["usedToday"]))
        .collect();
    assert_eq!(used, [(&json!("local"), &json!(1)), (&json!("shell"), &json!(2))]);
}

#[tokio::test]
async fn a_call_of_a_day_that_cannot_be_counted_is_not_made() {
    let place = workplace(&json!([{ "tool": "kit_*", "perDay": 1 }]));
    let echo = ["call", "kit_echo", r#"{"message":"hello"}"#];
    assert_eq!(place.run(&echo).await.code, Some(0));
    let counts = place.path().join("state/quotas.db");
    assert!(counts.exists());
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.path().join(format!("state/quotas.db{end}")));
    }
    std::fs::create_dir(&counts).unwrap();
    let refused = place.run(&echo).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("how many were made today is not known"), "{refused:?}");
}

#[tokio::test]
async fn open_calls_are_limited_and_scripts_wait_for_their_turn() {
    let place = workplace(&json!([{ "server": "kit", "inFlight": 1 }]));
    let mut client = place.connect(&[]).await;
    let long = json!({ "name": "kit_sleep", "arguments": { "ms": 600_000 } });
    let long = json!({ "name": "call_tool", "arguments": long });
    // Two calls race for the one slot. If the short one wins, the long one is refused.
    let refused = loop {
        client.begin("tools/call", long.clone()).await.unwrap();
        let other = call_through(&mut client, "kit_echo", hello()).await;
        if other["isError"] == true {
            break other;
        }
    };
    let told = text(&refused);
    assert!(told.contains("1 call at the same time"), "{told}");
    assert!(told.ends_with("possible when one of them has ended"), "{told}");
    assert_eq!(refused["_meta"]["toolgate/limit"]["until"], Value::Null);
    // The open call ends with its gateway.
    drop(client);
    let mut client = place.connect(&[]).await;
    let code = "const all = [1, 2, 3].map(() => kit_echo({ message: 'hello' })); \
                return (await Promise.all(all)).length";
    for _ in 0..5 {
        let done = call(&mut client, "run_code", json!({ "code": code })).await;
        assert!(done["isError"] != true && text(&done).contains('3'), "{done}");
    }
}

#[tokio::test]
async fn counts_that_were_emptied_are_no_new_allowance() {
    let place = workplace(&json!([{ "tool": "kit_*", "perDay": 1 }]));
    let echo = ["call", "kit_echo", r#"{"message":"hello"}"#];
    assert_eq!(place.run(&echo).await.code, Some(0));
    std::fs::write(place.path().join("state/quotas.db"), "").unwrap();
    let refused = place.run(&echo).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("how many were made today is not known"), "{refused:?}");
    let status = place.run(&["status"]).await.stdout;
    let told = "Calls that a limit by the day is about are refused: the counts in ";
    assert!(status.contains(told), "{status}");
    assert!(status.contains("to begin them anew, remove this file and quotas.began"), "{status}");
    for name in ["quotas.db", "quotas.began"] {
        std::fs::remove_file(place.path().join("state").join(name)).unwrap();
    }
    assert_eq!(place.run(&echo).await.code, Some(0));
}

/// A server may still work on a call that was cancelled, so the call stays open until it answers.
#[tokio::test]
async fn a_cancelled_call_is_open_until_the_server_has_answered() {
    for arguments in [vec![], vec!["--passthrough", "stubborn"]] {
        let place = Workplace::empty();
        let server = place.path().join("stubborn.py").display().to_string();
        std::fs::write(&server, include_str!("stubborn.py")).unwrap();
        let server = json!({ "command": "python3", "args": [server, place.path()] });
        place.rewrite(
            &json!({
                "mcpServers": { "stubborn": server }, "policy": "off",
                "toolSearch": { "enabled": false },
                "limits": [{ "server": "stubborn", "inFlight": 1 }],
            })
            .to_string(),
        );
        let mut client = place.connect(&arguments).await;
        let tool = if arguments.is_empty() { "stubborn_work" } else { "work" };
        let work = |until: &str| json!({ "name": tool, "arguments": { "until": until } });
        let log = || {
            let log = std::fs::read_to_string(place.path().join("calls.log"));
            log.unwrap_or_default()
        };
        if arguments.is_empty() {
            // Listed.
            while !names(&list(&mut client).await).contains(&tool) {}
        }
        let first = client.begin("tools/call", work("one")).await.unwrap();
        until("the call at the server", async || log().contains("begin one").then_some(())).await;
        client.notify("notifications/cancelled", json!({ "requestId": first })).await.unwrap();
        let second = client.request("tools/call", work("two")).await.unwrap();
        assert!(text(&second["result"]).contains("1 call at the same time"), "{second}");
        assert_eq!(log(), "begin one\n");
        // The server ends both at once now.
        for name in ["one", "two"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        loop {
            let answer = client.request("tools/call", work("two")).await.unwrap();
            if text(&answer["result"]) == "done" {
                break;
            }
        }
        assert_eq!(log(), "begin one\nend one\nbegin two\nend two\n");
    }
}

#[tokio::test]
async fn resources_and_a_server_that_is_passed_through_are_limited_too() {
    let place = workplace(&json!([
        { "tool": "kit/resources/read", "perMinute": 0 }, { "tool": "kit/echo", "perDay": 1 },
    ]));
    for arguments in [vec![], vec!["--passthrough", "kit"]] {
        let mut client = place.connect(&arguments).await;
        let uri = if arguments.is_empty() { "toolgate://kit/x:1" } else { "x:1" };
        let read = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
        let error = &read["error"];
        let told = error["message"].as_str().unwrap_or_else(|| panic!("{read}"));
        assert!(told.contains("until a person changes the limit"), "{read}");
        assert_eq!(error["data"]["toolgate/limit"]["most"], 0, "{read}");
    }
    let mut client = place.connect(&["--passthrough", "kit"]).await;
    assert_ne!(call(&mut client, "echo", hello()).await["isError"], true);
    let refused = call(&mut client, "echo", hello()).await;
    assert!(text(&refused).starts_with("`echo` was not called: `limits[1]`"), "{refused}");
    assert_eq!(refused["_meta"]["toolgate/limit"]["limit"], "perDay", "{refused}");
}
