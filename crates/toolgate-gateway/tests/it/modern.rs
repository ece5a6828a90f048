//! Clients of 2026-07-28: every request says all there is to know.

use std::sync::atomic::Ordering;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Endpoint, Events, body, modern, reaches, refused, status};

#[tokio::test]
async fn a_client_discovers_and_calls_without_a_session() {
    let endpoint = Endpoint::start().await;
    let response = endpoint.modern("server/discover", json!({})).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("mcp-session-id").is_none());
    let found: Value = response.json().await.unwrap();
    let found = &found["result"];
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["ttlMs"], 0);
    assert_eq!(found["cacheScope"], "private");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "probe");
    assert_eq!(found["futureField"]["kept"], true);
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));

    for n in 0..3 {
        let params = json!({ "name": "echo", "arguments": { "n": n } });
        let answer = body(endpoint.modern("tools/call", params)).await;
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": { "echo": { "n": n } } }));
    }
    assert_eq!(endpoint.probe.opened.load(Ordering::SeqCst), 1, "one service for one caller");
}

#[tokio::test]
async fn messages_before_the_result_make_a_stream() {
    let endpoint = Endpoint::start().await;
    let response = endpoint.modern("tools/call", json!({ "name": "progress" })).send().await;
    let messages = Events::new(response.unwrap()).rest().await;
    let steps: Vec<_> = messages.iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(steps, [&json!(1), &json!(2), &json!(3), &Value::Null]);
    assert_eq!(messages[3]["result"], json!({ "done": true }));
}

#[tokio::test]
async fn closing_the_connection_cancels_a_modern_request() {
    let endpoint = Endpoint::start().await;
    let request = endpoint.modern("tools/call", json!({ "name": "wait" }));
    let asking = tokio::spawn(request.send());
    reaches(&endpoint.probe.waiting, 1).await;
    asking.abort();
    reaches(&endpoint.probe.cancelled, 1).await;
}

#[tokio::test]
async fn errors_have_their_status() {
    let endpoint = Endpoint::start().await;
    assert_eq!(refused(endpoint.modern("no/such", json!({}))).await, (404, -32601));
    for removed in ["ping", "initialize", "resources/subscribe"] {
        assert_eq!(refused(endpoint.modern(removed, json!({}))).await, (404, -32601), "{removed}");
    }
    let unknown = body(endpoint.modern("tools/call", json!({ "name": "missing" }))).await;
    assert_eq!(unknown["error"]["code"], -32602, "and a status of 200");
}

/// A request whose headers and body are as given.
fn asking(endpoint: &Endpoint, headers: &[(&str, &str)], body: &Value) -> reqwest::RequestBuilder {
    headers.iter().fold(endpoint.post(body), |request, (name, value)| request.header(*name, *value))
}

#[tokio::test]
async fn headers_must_match_the_body() {
    let endpoint = Endpoint::start().await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "echo");
    let params = modern(json!({ "name": "echo" }));
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    assert_eq!(status(asking(&endpoint, &[version, method, name], &body)).await, 200);
    let encoded = ("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(status(asking(&endpoint, &[version, method, encoded], &body)).await, 200);
    let wrong: [&[(&str, &str)]; 9] = [
        &[method, name],
        &[version, name],
        &[version, method],
        &[("mcp-protocol-version", "2025-11-25"), method, name],
        &[version, ("mcp-method", "tools/list"), name],
        &[version, method, ("mcp-name", "other")],
        &[version, method, ("mcp-name", "=?base64?!!?=")],
        &[version, method, method, name],
        &[version, method, name, name],
    ];
    for headers in wrong {
        assert_eq!(refused(asking(&endpoint, headers, &body)).await, (400, -32020), "{headers:?}");
    }
    let answer = asking(&endpoint, wrong[0], &body).send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap()["id"], 9);

    let bare = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call" });
    assert_eq!(refused(asking(&endpoint, &[version, method], &bare)).await, (400, -32602));
    let mut newer = body.clone();
    newer["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let headers = [("mcp-protocol-version", "2031-01-01"), method, name];
    assert_eq!(refused(asking(&endpoint, &headers, &newer)).await, (400, -32022));
}

#[tokio::test]
async fn arguments_must_be_repeated_in_headers_if_the_tool_requires_it() {
    let endpoint = Endpoint::start().await;
    let call = |arguments: Value| {
        endpoint.modern("tools/call", json!({ "name": "annotated", "arguments": arguments }))
    };
    let both = json!({ "region": "eu", "deep": { "count": 3 } });
    let good = call(both.clone()).header("mcp-param-region", "eu").header("mcp-param-count", "3");
    assert_eq!(status(good).await, 200);
    assert_eq!(status(call(json!({ "region": null }))).await, 200);
    let wrong = [
        call(both.clone()).header("mcp-param-region", "eu"),
        call(both.clone()).header("mcp-param-region", "us").header("mcp-param-count", "3"),
        call(json!({})).header("mcp-param-region", "eu"),
    ];
    for request in wrong {
        assert_eq!(refused(request).await, (400, -32020));
    }
}

#[tokio::test]
async fn modern_clients_have_no_sessions_get_streams_or_batches() {
    let endpoint = Endpoint::start().await;
    let modern = |request: reqwest::RequestBuilder| {
        request.header("mcp-protocol-version", "2026-07-28").header("accept", "text/event-stream")
    };
    let got = modern(endpoint.client.get(endpoint.url())).send().await.unwrap();
    assert_eq!(got.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(got.headers()["allow"], "POST");
    let deleted = status(modern(endpoint.client.delete(endpoint.url()))).await;
    assert_eq!(deleted, StatusCode::METHOD_NOT_ALLOWED);
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(refused(modern(endpoint.post(&answer))).await, (400, -32600));
    assert_eq!(refused(modern(endpoint.post(&json!([answer])))).await, (400, -32600));
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" });
    let noted = modern(endpoint.post(&note)).header("mcp-method", "notifications/cancelled");
    assert_eq!(status(noted).await, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn both_eras_at_once() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let (old, new) = tokio::join!(
        session.call(1, "echo"),
        body(endpoint.modern("tools/call", json!({ "name": "echo" })))
    );
    assert_eq!(old.rest().await.len(), 1);
    assert!(new["result"].is_object());
}
