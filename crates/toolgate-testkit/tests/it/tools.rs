//! The built-in tools.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, RawClient};

use crate::protocol::modern_meta;
use crate::{connect, start};

async fn all_tools() -> RawClient {
    connect(&Fixture::new("tools").with_builtins(Builtin::ALL)).await
}

#[tokio::test]
async fn simple_tools_answer() {
    let mut client = all_tools().await;
    let meta = json!({ "trace": "t-1" });
    let params = json!({ "name": "echo", "arguments": { "message": "hi" }, "_meta": meta });
    let answer = client.request("tools/call", params).await.unwrap();
    assert_eq!(
        answer["result"],
        json!({
            "content": [{ "type": "text", "text": "{\"message\":\"hi\"}" }],
            "structuredContent": { "message": "hi" },
            "_meta": { "fixture/requestMeta": { "trace": "t-1" } },
        })
    );

    let answer = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 5 }));
    let answer = client.call("fail", json!({ "message": "no" })).await.unwrap();
    assert_eq!(answer["result"]["isError"], true);
    let answer = client.call("rpc_error", json!({ "code": -32042 })).await.unwrap();
    assert_eq!(answer["error"]["code"], -32042);
    let answer = client.call("big", json!({ "bytes": 100_000 })).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 100_000);
    for count in [1, 2] {
        let answer = client.call("counter", json!({})).await.unwrap();
        assert_eq!(answer["result"]["structuredContent"]["count"], count);
    }
    let answer = client.call("absent", json!({})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn media_has_each_kind_of_content() {
    let mut client = all_tools().await;
    let answer = client.call("media", json!({})).await.unwrap();
    let content = answer["result"]["content"].as_array().unwrap();
    let kinds: Vec<&Value> = content.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "image", "audio", "resource_link", "resource", "hologram"]);
}

#[tokio::test]
async fn a_canned_answer_is_sent_as_given() {
    let result = json!({ "content": [{ "type": "resource_link", "size": 12.0 }], "x-odd": null });
    let tool = json!({ "name": "odd", "inputSchema": { "type": "object" } });
    let fixture = Fixture::new("canned").with_tool(tool).with_answer("odd", result.clone());
    let mut client = connect(&fixture).await;
    assert_eq!(client.call("odd", json!({})).await.unwrap()["result"], result);
}

#[tokio::test]
async fn sleep_is_cancelled_and_remembered() {
    let mut client = all_tools().await;
    let call = json!({ "name": "sleep", "arguments": { "ms": 600_000 } });
    let id = client.begin("tools/call", call).await.unwrap();
    let reason = json!({ "requestId": id, "reason": "bored" });
    client.notify("notifications/cancelled", reason.clone()).await.unwrap();
    let answer = client.call("last_cancelled", json!({})).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "lastCancelled": reason }));
    assert!(client.asides.is_empty(), "a cancelled request gets no answer");

    // Too late for this one.
    let id = client.begin("tools/call", json!({ "name": "counter" })).await.unwrap();
    client.answer(id).await.unwrap();
    client.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
    let answer = client.call("last_cancelled", json!({})).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "lastCancelled": reason }));
}

#[tokio::test]
async fn progress_is_reported_to_whoever_asked() {
    let mut client = all_tools().await;
    let arguments = json!({ "steps": 2, "intervalMs": 1 });
    let meta = json!({ "progressToken": "p" });
    let params = json!({ "name": "progress", "arguments": arguments, "_meta": meta });
    client.request("tools/call", params).await.unwrap();
    assert_eq!(client.asides.len(), 2);
    assert_eq!(
        client.asides[1]["params"],
        json!({ "progressToken": "p", "progress": 2, "total": 2, "message": "step 2" })
    );
    client.call("progress", json!({ "steps": 2 })).await.unwrap();
    assert_eq!(client.asides.len(), 2);
}

#[tokio::test]
async fn crash_ends_the_process_without_an_answer() {
    let mut client = all_tools().await;
    client.call("crash", json!({ "code": 9 })).await.unwrap_err();
    assert_eq!(client.wait().await.unwrap().code(), Some(9));
}

#[tokio::test]
async fn change_tools_changes_the_list_and_says_so() {
    let mut client = connect(&Fixture::new("few").with_builtins([Builtin::ChangeTools])).await;
    let answer = client.call("change_tools", json!({ "add": "echo" })).await.unwrap();
    let tools = &answer["result"]["structuredContent"]["tools"];
    assert_eq!(tools, &json!(["change_tools", "echo"]));
    assert_eq!(client.asides[0]["method"], "notifications/tools/list_changed");
    client.call("change_tools", json!({ "remove": "echo" })).await.unwrap();
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list["result"]["tools"], json!([Builtin::ChangeTools.definition()]));
}

#[tokio::test]
async fn environment_shows_the_process() {
    let entry = Fixture::new("env").with_builtins([Builtin::Environment]).entry().unwrap();
    let variables = HashMap::from([("FIXTURE_COLOUR", "green")]);
    let mut client = RawClient::spawn_with(&entry, &variables).unwrap();
    client.initialize().await.unwrap();
    let names = json!({ "names": ["FIXTURE_COLOUR", "FIXTURE_ABSENT", "a=b"] });
    let answer = client.call("environment", names).await.unwrap();
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["variables"], json!({ "FIXTURE_COLOUR": "green", "FIXTURE_ABSENT": null }));
    assert_eq!(result["workingDirectory"], std::env::current_dir().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_grandchild_outlives_the_server() {
    let mut client = all_tools().await;
    let answer = client.call("spawn_grandchild", json!({})).await.unwrap();
    let pid = answer["result"]["structuredContent"]["pid"].as_u64().unwrap().to_string();
    client.close_stdin();
    assert!(client.wait().await.unwrap().success());
    let kill = |signal: &str| {
        std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success()
    };
    assert!(kill("-0"), "the grandchild is alive");
    assert!(kill("-TERM"));
}

#[tokio::test]
async fn stderr_gets_lines() {
    let mut client = all_tools().await;
    client.call("stderr", json!({ "lines": 3 })).await.unwrap();
    client.close_stdin();
    let stderr = client.stderr().await.unwrap();
    assert_eq!(stderr.len(), 3);
    assert_eq!(stderr[2], "fixture stderr line 3");
}

#[tokio::test]
async fn ask_roots_returns_the_clients_answer() {
    let mut client = all_tools().await;
    for (part, value) in [
        ("result", json!({ "roots": [{ "uri": "file:///here" }] })),
        ("error", json!({ "code": -32601, "message": "No roots" })),
    ] {
        let id = client.begin("tools/call", json!({ "name": "ask_roots" })).await.unwrap();
        let question: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        assert_eq!(question["method"], "roots/list");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], part: value });
        client.send_line(&answer.to_string()).await.unwrap();
        let answer = client.answer(id).await.unwrap();
        assert_eq!(answer["result"]["structuredContent"], json!({ part: value }));
    }
}

#[tokio::test]
async fn modern_ask_roots_asks_for_input() {
    let fixture =
        Fixture::new("new").with_era(FixtureEra::Modern).with_builtins([Builtin::AskRoots]);
    let mut client = start(&fixture);
    let mut params = json!({ "name": "ask_roots", "_meta": modern_meta("2026-07-28") });
    let answer = client.request("tools/call", params.clone()).await.unwrap();
    assert_eq!(answer["result"]["resultType"], "input_required");
    assert_eq!(answer["result"]["inputRequests"]["roots"]["method"], "roots/list");
    params["inputResponses"] = json!({ "roots": { "roots": [] } });
    let answer = client.request("tools/call", params).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "answer": { "roots": [] } }));
}
