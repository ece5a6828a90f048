//! A person consents to a server of a registry through the client, in both eras.

use serde_json::{Value, json};

use super::registry::{NAME, fake_npx, ran, sums, write};
use crate::{
    http::HttpClient,
    support::{Gateway, Workplace, text},
};

/// A configuration with a registry.
fn workplace() -> Workplace {
    let workplace = Workplace::new(&json!({
        "registry": { "sources": ["./servers"] }, "toolSearch": { "enabled": true },
    }));
    fake_npx(&workplace);
    write(&workplace.path().join("servers"), &sums("1.0.0"));
    workplace
}

/// A client of 2025-11-25 that can be asked this.
async fn legacy(workplace: &Workplace, capabilities: Value) -> Gateway {
    let mut client = workplace.serve(&[]);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    });
    client.request("initialize", params).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

/// What a person says.
fn said(action: &str, decision: Option<&str>) -> Value {
    match decision {
        Some(decision) => json!({ "action": action, "content": { "decision": decision } }),
        None => json!({ "action": action }),
    }
}

/// Enables the server as a legacy client whose person answers this. Returns the question and the
/// result.
async fn enable_legacy(client: &mut Gateway, answer: &Value) -> (Value, Value) {
    let params = json!({ "name": "enable_server", "arguments": { "name": NAME } });
    let id = client.begin("tools/call", params).await.unwrap();
    let question: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    client.send_line(&answer.to_string()).await.unwrap();
    let mut result = client.answer(id).await.unwrap();
    (question["params"].clone(), result["result"].take())
}

/// The same as a client of 2026-07-28.
async fn enable_modern(client: &HttpClient, answer: &Value) -> (Value, Value) {
    let mut params = json!({ "name": "enable_server", "arguments": { "name": NAME } });
    let asked = client.request("tools/call", params.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let (key, question) = requests.iter().next().unwrap();
    assert_eq!((requests.len(), &question["method"]), (1, &json!("elicitation/create")));
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ key: answer });
    let result = client.request("tools/call", params).await;
    (question["params"].clone(), result)
}

#[tokio::test]
async fn a_person_at_a_legacy_client_sees_everything_and_consents() {
    let workplace = workplace();
    let mut client = legacy(&workplace, json!({ "elicitation": {} })).await;
    let query = json!({ "query": "add numbers up" });
    let found = client.call("search_available_servers", query).await.unwrap();
    assert!(text(&found["result"]).contains(NAME), "{found}");
    assert_eq!(ran(&workplace), "");
    let (question, result) = enable_legacy(&mut client, &said("accept", Some("allow"))).await;
    let shown = question["message"].as_str().unwrap();
    let shown = shown.replace(&workplace.path().display().to_string(), "HERE");
    insta::assert_snapshot!(shown, @"
    An agent wants to use a server that is not in your configuration.

    Server io.github.acme/sums 1.0.0 of HERE/servers
    It says of itself: Adds numbers up
    It runs, with your rights: npx -y @acme/sums@1.0.0 --stdio

    Allow this, and nothing else?
    ");
    assert!(text(&result).contains("is connected: 2 tools"), "{result}");
    assert_eq!(ran(&workplace), "-y @acme/sums@1.0.0 --stdio\n");
    let sum = json!({ "name": "sums_add", "arguments": { "a": 2, "b": 3 } });
    let called = client.call("call_tool", sum).await.unwrap();
    assert_eq!(called["result"]["structuredContent"]["sum"], 5, "{called}");
}

#[tokio::test]
async fn a_person_at_a_modern_client_sees_everything_and_consents() {
    let workplace = workplace();
    let gateway = workplace.serve_http(&[]).await;
    let client = gateway.client().with_capabilities(json!({ "elicitation": { "form": {} } }));
    let (question, result) = enable_modern(&client, &said("accept", Some("allow"))).await;
    let shown = question["message"].as_str().unwrap();
    assert!(
        shown.contains("It runs, with your rights: npx -y @acme/sums@1.0.0 --stdio"),
        "{shown}"
    );
    assert!(text(&result).contains("is connected: 2 tools"), "{result}");
    assert_eq!(ran(&workplace), "-y @acme/sums@1.0.0 --stdio\n");
    let sum = json!({ "name": "sums_add", "arguments": { "a": 2, "b": 3 } });
    let called = client.call("call_tool", sum).await;
    assert_eq!(called["structuredContent"]["sum"], 5, "{called}");
    gateway.stop().await;
}

#[tokio::test]
async fn without_consent_nothing_starts() {
    let workplace = workplace();
    let mut older = legacy(&workplace, json!({ "elicitation": { "form": {} } })).await;
    let gateway = workplace.serve_http(&[]).await;
    let newer = gateway.client().with_capabilities(json!({ "elicitation": {} }));
    for answer in [
        said("accept", Some("deny")),
        said("accept", None),
        said("decline", Some("allow")),
        said("cancel", None),
    ] {
        let (_, refused) = enable_legacy(&mut older, &answer).await;
        assert!(text(&refused).contains("did not allow"), "{answer}: {refused}");
        let (_, refused) = enable_modern(&newer, &answer).await;
        assert!(text(&refused).contains("did not allow"), "{answer}: {refused}");
    }
    assert_eq!(ran(&workplace), "");
    let sum = json!({ "name": "sums_add", "arguments": { "a": 2, "b": 3 } });
    assert_eq!(newer.call("call_tool", sum).await["isError"], true);
    gateway.stop().await;
}

#[tokio::test]
async fn if_the_client_cannot_ask_the_model_learns_how_to_consent() {
    let workplace = workplace();
    let gateway = workplace.serve_http(&[]).await;
    let arguments = json!({ "name": NAME });
    // Clients with only URL elicitation, or none.
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let newer = gateway.client().with_capabilities(capabilities.clone());
        let waits = newer.call("enable_server", arguments.clone()).await;
        let id = waits["structuredContent"]["reference"].as_str().unwrap();
        let told = format!("question {id}: `toolgate approve`, in a terminal of their own");
        assert!(text(&waits).contains(&told), "{waits}");
        let mut older = legacy(&workplace, capabilities).await;
        let waits = older.call("enable_server", arguments.clone()).await.unwrap();
        assert_eq!(waits["result"]["structuredContent"]["reference"], id, "{waits}");
    }
    assert_eq!(ran(&workplace), "");
    gateway.stop().await;
}
