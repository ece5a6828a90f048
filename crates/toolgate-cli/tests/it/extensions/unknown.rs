//! Extensions that toolgate does not know.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra};

use super::{ask, connect_with, modern, refused};
use crate::support::{Workplace, call_through, entry, entry_with, notification, until};

/// A server with an extension that has the methods of all fixtures (`fixture/echo` and others).
fn odd(name: &str, era: FixtureEra) -> Fixture {
    let declared = json!({ "org.example/fixture": { "of": name, name: true } });
    Fixture::new(name)
        .with_era(era)
        .with_capability("extensions", declared)
        .with_builtins([Builtin::Client])
}

fn client() -> Value {
    json!({ "org.example/fixture": { "level": 2 } })
}

#[tokio::test]
async fn methods_and_notifications_pass_untouched_in_both_directions() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let other =
            Fixture::new("other").with_capability("extensions", json!({ "org.example/more": {} }));
        let servers = json!({ "odd": entry(&odd("odd", era)), "other": entry(&other) });
        let workplace = Workplace::deferred(&servers);
        let (mut client, _) = connect_with(&workplace, &[], &client()).await;
        call_through(&mut client, "odd_client", json!({})).await;
        let params = json!({ "uri": "file:///x", "deep": [{ "k": null }], "_meta": { "org.example/trace": [1] } });
        let echoed = ask(&mut client, "fixture/echo", params).await;
        assert_eq!(echoed["uri"], "file:///x", "{echoed}");
        assert_eq!(echoed["deep"], json!([{ "k": null }]));
        assert_eq!(echoed["_meta"]["org.example/trace"], json!([1]), "{echoed}");
        let failing = json!({ "code": -31999, "message": "odd", "data": { "k": 1 } });
        let error = refused(&mut client, "fixture/fail", failing).await;
        assert_eq!(error, json!({ "code": -31999, "message": "odd", "data": { "k": 1 } }));

        client.notify("notifications/fixture/seen", json!({ "k": [1] })).await.unwrap();
        until("the server heard it", async || {
            let heard = ask(&mut client, "fixture/heard", json!({})).await;
            let seen = json!({ "method": "notifications/fixture/seen", "params": { "k": [1] } });
            heard["heard"].as_array().unwrap().contains(&seen).then_some(())
        })
        .await;
        let tell = json!({ "method": "notifications/fixture/happened", "params": { "k": 2 } });
        ask(&mut client, "fixture/notify", tell).await;
        assert_eq!(notification(&mut client, "notifications/fixture/happened").await["k"], 2);
    }
}

#[tokio::test]
async fn only_clients_that_declare_an_extension_reach_it() {
    let workplace = Workplace::deferred(&json!({ "odd": entry(&odd("odd", FixtureEra::Legacy)) }));
    let mut client = workplace.connect(&[]).await;
    call_through(&mut client, "odd_client", json!({})).await;
    let error = refused(&mut client, "fixture/echo", json!({})).await;
    assert_eq!(error["code"], -32601);
    let (mut client, _) = connect_with(&workplace, &[], &self::client()).await;
    call_through(&mut client, "odd_client", json!({})).await;
    for method in ["tools/odd", "tasks/odd", "odd", &"x".repeat(200)] {
        let error = refused(&mut client, method, json!({})).await;
        assert_eq!(error["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn requests_of_a_server_reach_the_client_of_the_call() {
    let workplace = Workplace::deferred(&json!({ "odd": entry(&odd("odd", FixtureEra::Legacy)) }));
    let (mut client, _) = connect_with(&workplace, &[], &client()).await;
    call_through(&mut client, "odd_client", json!({})).await;
    let question = json!({ "method": "fixture/question", "params": { "k": [1], "message": "?" } });
    for answer in [
        json!({ "result": { "said": { "k": 2 } } }),
        json!({ "error": { "code": -31998, "message": "no" } }),
    ] {
        let asking = client.begin("fixture/ask", json!({ "ask": question })).await.unwrap();
        let asked = loop {
            let message: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
            assert!(message.get("method").is_some(), "it was not asked: {message}");
            if message["method"] == "fixture/question" {
                break message;
            }
        };
        assert_eq!(asked["params"], question["params"], "untouched: {asked}");
        let mut response = answer.clone();
        response["jsonrpc"] = json!("2.0");
        response["id"] = asked["id"].clone();
        client.send_line(&response.to_string()).await.unwrap();
        let answered = client.answer(asking).await.unwrap();
        // The fixture passes an error on as data.
        let expected = answer.get("result").unwrap_or(&answer);
        assert_eq!(answered["result"], *expected, "{answered}");
    }
    // The protocol has other ways for what it knows.
    let known = json!({ "ask": { "method": "tools/list", "params": {} } });
    let answered = ask(&mut client, "fixture/ask", known).await;
    assert_eq!(answered["error"]["code"], -32601, "{answered}");
}

#[tokio::test]
async fn one_of_several_servers_is_named() {
    let servers = json!({
        "left": entry(&odd("left", FixtureEra::Legacy)), "right": entry(&odd("right", FixtureEra::Modern)),
    });
    let workplace = Workplace::deferred(&servers);
    let (mut client, _) = connect_with(&workplace, &[], &client()).await;
    for tool in ["left_client", "right_client"] {
        call_through(&mut client, tool, json!({})).await;
    }
    let error = refused(&mut client, "fixture/echo", json!({})).await;
    assert_eq!(error["code"], -32602);
    insta::assert_snapshot!(error["message"].as_str().unwrap(), @"several servers may answer this: set `toolgate/server` in `_meta` to one of left, right");
    // No extension is named like this, so that it is not certain that any server knows it.
    let error = refused(&mut client, "other/echo", json!({})).await;
    assert_eq!(error["code"], -32601, "{error}");
    let named = json!({ "_meta": { "toolgate/server": "right" } });
    let error = refused(&mut client, "other/echo", named).await;
    assert_eq!(error["message"], "Method not found: other/echo", "the server was asked: {error}");
    let error =
        refused(&mut client, "other/echo", json!({ "_meta": { "toolgate/server": "x" } })).await;
    assert_eq!(error["code"], -32601, "{error}");
    let params = json!({ "k": 1, "_meta": { "toolgate/server": "right", "x": 1 } });
    let echoed = ask(&mut client, "fixture/echo", params).await;
    assert_eq!(echoed["_meta"]["x"], 1, "{echoed}");
    assert_eq!(echoed["_meta"].get("toolgate/server"), None, "it is for toolgate");
    let version = "io.modelcontextprotocol/protocolVersion";
    assert_eq!(echoed["_meta"][version], "2026-07-28", "the modern one answered");
}

#[tokio::test]
async fn the_declarations_of_servers_reach_clients_merged_in_order() {
    let servers = json!({
        "left": entry(&odd("left", FixtureEra::Legacy)), "right": entry(&odd("right", FixtureEra::Modern)),
    });
    let workplace = Workplace::deferred(&servers);
    let mut client = workplace.serve(&[]);
    let merged = json!({ "org.example/fixture": { "of": "left", "left": true, "right": true } });
    until("both servers are known", async || {
        let found = ask(&mut client, "server/discover", modern(json!({}), &self::client())).await;
        let mut found = found["capabilities"]["extensions"].clone();
        // One of toolgate's own.
        found.as_object_mut()?.remove("io.modelcontextprotocol/tasks");
        (found == merged).then_some(())
    })
    .await;
    client.close_stdin();
    client.wait().await.unwrap();
    // A legacy client is told in its handshake what the cache knows.
    let (_, told) = connect_with(&workplace, &[], &self::client()).await;
    assert_eq!(told["capabilities"]["extensions"], merged);
}

#[tokio::test]
async fn servers_that_connect_later_learn_what_a_client_declares() {
    let lazy = |fixture: &Fixture| entry_with(fixture, json!({ "lazy": true }));
    let servers = json!({
        "old": lazy(&odd("old", FixtureEra::Legacy)), "new": lazy(&odd("new", FixtureEra::Modern)),
    });
    let (mut client, _) = connect_with(&Workplace::deferred(&servers), &[], &self::client()).await;
    let old = call_through(&mut client, "old_client", json!({})).await;
    let old = &old["structuredContent"]["capabilities"]["extensions"];
    assert_eq!(old["org.example/fixture"], json!({ "level": 2 }), "{old}");
    let new = call_through(&mut client, "new_client", json!({})).await;
    let of_request = &new["structuredContent"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(of_request["extensions"], self::client(), "{new}");
}

/// The parameters of a modern client that listens for what only the extension knows.
fn listen(wanted: &Value) -> Value {
    let filter = json!({ "toolsListChanged": true, "org.example/fixture": wanted });
    modern(json!({ "notifications": filter }), &client())
}

#[tokio::test]
async fn a_subscription_of_an_extension_reaches_the_servers_and_its_notifications_the_client() {
    let other =
        Fixture::new("other").with_capability("extensions", json!({ "org.example/more": {} }));
    let servers = json!({
        "odd": entry(&odd("odd", FixtureEra::Modern)),
        "old": entry(&odd("old", FixtureEra::Legacy)),
        "other": entry(&other.with_era(FixtureEra::Modern)),
    });
    let workplace = Workplace::deferred(&servers);
    let mut client = workplace.serve(&[]);
    until("the servers are known", async || {
        let found = ask(&mut client, "server/discover", modern(json!({}), &self::client())).await;
        let of = &found["capabilities"]["extensions"]["org.example/fixture"];
        (of["odd"] == true && of["old"] == true).then_some(())
    })
    .await;
    let wanted = json!({ "topics": ["a"] });
    let listening = client.begin("subscriptions/listen", listen(&wanted)).await.unwrap();
    let told = notification(&mut client, "notifications/subscriptions/acknowledged").await;
    let accepted = json!({ "toolsListChanged": true, "org.example/fixture": wanted });
    assert_eq!(told["notifications"], accepted, "what the server has accepted: {told}");
    let of_odd = json!({ "_meta": { "toolgate/server": "odd" } });
    let known = ask(&mut client, "fixture/heard", modern(of_odd, &self::client())).await;
    let declares = |listen: &Value| {
        let declared = &listen["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        listen["notifications"]["org.example/fixture"] == wanted
            && declared["org.example/fixture"] == json!({ "level": 2 })
    };
    assert!(known["listens"].as_array().unwrap().iter().any(declares), "{known}");
    // Another one, which does not ask for it.
    let filter = json!({ "notifications": { "promptsListChanged": true } });
    client.begin("subscriptions/listen", modern(filter, &self::client())).await.unwrap();
    notification(&mut client, "notifications/subscriptions/acknowledged").await;
    for (method, to_all) in
        [("notifications/fixture/subscribed", true), ("notifications/fixture/happened", false)]
    {
        let tell = json!({
            "method": method, "params": { "k": [1] }, "toAll": to_all,
            "_meta": { "toolgate/server": "odd" },
        });
        ask(&mut client, "fixture/notify", modern(tell, &self::client())).await;
    }
    let heard = notification(&mut client, "notifications/fixture/subscribed").await;
    assert_eq!(heard["k"], json!([1]), "{heard}");
    assert_eq!(heard["_meta"]["io.modelcontextprotocol/subscriptionId"], listening, "{heard}");
    // What names no subscription comes with both.
    for _ in 0..2 {
        notification(&mut client, "notifications/fixture/happened").await;
    }
    let rest = |message: &Value| message["method"] == "notifications/fixture/subscribed";
    assert!(!client.asides.iter().any(rest), "{:?}", client.asides);
}

#[tokio::test]
async fn pass_through_keeps_notifications_of_extensions_while_a_client_listens() {
    for era in [FixtureEra::Modern, FixtureEra::Legacy] {
        let workplace = Workplace::deferred(&json!({ "odd": entry(&odd("odd", era)) }));
        let mut client = workplace.serve(&["--passthrough", "odd"]);
        client.begin("subscriptions/listen", listen(&json!(true))).await.unwrap();
        notification(&mut client, "notifications/subscriptions/acknowledged").await;
        let tell = json!({ "method": "notifications/fixture/happened", "params": { "k": 1 } });
        let tell = modern(tell, &self::client());
        ask(&mut client, "fixture/notify", tell).await;
        let heard = notification(&mut client, "notifications/fixture/happened").await;
        assert_eq!(heard["k"], 1, "{era:?}: {heard}");
    }
}
