//! Hostile clients and invalid requests.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Endpoint, call, initialize, refused, status};

#[tokio::test]
async fn other_hosts_and_origins_are_refused() {
    let endpoint = Endpoint::with(|settings| {
        settings.allowed_hosts = vec!["gate.example".to_owned(), "two.example:99".to_owned()];
        settings.allowed_origins = vec!["https://app.example".to_owned()];
    })
    .await;
    let port = endpoint.address.port();
    let ask = || endpoint.post(&initialize("2025-11-25"));
    let good = [
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        "gate.example".to_owned(),
        "gate.example:1234".to_owned(),
        "two.example:99".to_owned(),
    ];
    for host in good {
        assert_eq!(status(ask().header("host", &host)).await, 200, "{host}");
    }
    let bad =
        ["evil.example", "localhost", "localhost:1", "127.0.0.1.evil.example", "two.example:98"];
    for host in bad {
        assert_eq!(refused(ask().header("host", host)).await, (403, -32600), "{host}");
    }
    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://app.example"] {
        assert_eq!(status(ask().header("origin", origin)).await, 200, "{origin}");
    }
    for origin in
        ["https://evil.example", "null", "https://app.example.evil", "file://", "localhost"]
    {
        assert_eq!(refused(ask().header("origin", origin)).await, (403, -32600), "{origin}");
    }
    // Whatever is asked for.
    for request in [endpoint.client.get(endpoint.url()), endpoint.client.delete(endpoint.url())] {
        assert_eq!(status(request.header("host", "evil.example")).await, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn media_types_are_checked() {
    let endpoint = Endpoint::start().await;
    let body = initialize("2025-11-25").to_string();
    let post = |accept: &str, content: &str| {
        let request = endpoint.client.post(endpoint.url()).body(body.clone());
        request.header("accept", accept).header("content-type", content)
    };
    let (both, json) = ("application/json, text/event-stream", "application/json");
    assert_eq!(status(post(both, json)).await, 200);
    assert_eq!(status(post("*/*", "application/json; charset=utf-8")).await, 200);
    assert_eq!(status(post("text/*;q=0.5,application/json", json)).await, 200);
    for accept in ["application/json", "text/event-stream", "text/html", ""] {
        assert_eq!(refused(post(accept, json)).await, (406, -32600), "{accept}");
    }
    for content in ["text/plain", "application/jsonp", ""] {
        assert_eq!(refused(post(both, content)).await, (415, -32600), "{content}");
    }
    let session = endpoint.session().await;
    let get = endpoint.client.get(endpoint.url()).header("mcp-session-id", &session.id);
    assert_eq!(refused(get.header("accept", "application/json")).await, (406, -32600));
    let put = endpoint.client.put(endpoint.url()).send().await.unwrap();
    assert_eq!(put.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(put.headers()["allow"], "GET, POST, DELETE");
    for path in ["/", "/mcp/", "/MCP", "//mcp"] {
        let elsewhere = endpoint.client.post(format!("http://{}{path}", endpoint.address));
        assert_eq!(status(elsewhere.body(body.clone())).await, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn sessions_and_requests_belong_to_their_path() {
    let endpoint = Endpoint::with(|settings| {
        let mut work = settings.namespaces.routes().remove(0);
        work.path = "/mcp/work".to_owned();
        settings.namespaces.push(work);
    })
    .await;
    let session = endpoint.session().await;
    let at_work = |request: reqwest::RequestBuilder| {
        let mut request = request.build().unwrap();
        request.url_mut().set_path("/mcp/work");
        endpoint.client.execute(request)
    };
    let response = at_work(session.post(&call(1, "echo"))).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let begun = at_work(endpoint.post(&initialize("2025-11-25"))).await.unwrap();
    assert_eq!(begun.status(), 200);

    let asked = endpoint.modern("tools/call", json!({ "name": "ask" })).send().await.unwrap();
    let asked: Value = asked.json().await.unwrap();
    let state = &asked["result"]["requestState"];
    let params = json!({ "name": "ask", "requestState": state, "inputResponses": { "1": {} } });
    let retried = at_work(endpoint.modern("tools/call", params)).await.unwrap();
    let retried: Value = retried.json().await.unwrap();
    assert_eq!(retried["error"]["code"], -32602, "as if there were none: {retried}");
}

#[tokio::test]
async fn giants_are_refused() {
    let endpoint = Endpoint::start().await;
    let giant = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\"}}", "a".repeat(5 * 1024 * 1024));
    let outcome = endpoint.post_text(giant).send().await;
    // The connection may be cut before all is sent.
    assert!(outcome.is_err() || outcome.unwrap().status() == StatusCode::PAYLOAD_TOO_LARGE);
    let endpoint = Endpoint::with(|settings| settings.limits.body_bytes = 1000).await;
    let large = endpoint.post_text("[".repeat(1001));
    assert_eq!(refused(large).await, (413, -32600));
    assert_eq!(status(endpoint.post(&initialize("2025-11-25"))).await, 200);
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for text in ["", "{", "nonsense", "\u{0}", deep.as_str(), "{\"jsonrpc\":\"2.0\",\"id\":1e999}"]
    {
        let shown: String = text.chars().take(20).collect();
        assert_eq!(refused(endpoint.post_text(text.to_owned())).await, (400, -32700), "{shown}");
    }
    let invalid = [
        json!(1),
        json!("text"),
        json!(null),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }),
        json!({ "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": [], "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": {}, "result": 1 }),
        json!({ "jsonrpc": "2.0", "id": 1 }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": 1, "error": { "code": 1, "message": "" } }),
        json!({ "jsonrpc": "2.0", "id": 1, "error": "text" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": 5 }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1] }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "m".repeat(300) }),
        json!({ "jsonrpc": "2.0", "id": "i".repeat(300), "method": "ping" }),
        Value::Array(vec![call(1, "echo"); 65]),
    ];
    for message in invalid {
        let shown: String = message.to_string().chars().take(60).collect();
        assert_eq!(refused(session.post(&message)).await, (400, -32600), "{shown}");
    }
    assert_eq!(session.call(1, "echo").await.rest().await.len(), 1, "and it goes on");
}

#[tokio::test]
async fn strange_handshakes_are_answered() {
    let endpoint = Endpoint::start().await;
    let ask = |params: Value| {
        endpoint
            .post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
    };
    assert_eq!(refused(ask(json!({}))).await, (400, -32602));
    assert_eq!(refused(ask(json!({ "protocolVersion": 5 }))).await, (400, -32602));
    let odd = json!({ "protocolVersion": "", "capabilities": 7, "clientInfo": [] });
    assert_eq!(status(ask(odd)).await, 200, "and a version of ours");
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    let endpoint = Endpoint::with(|settings| settings.limits.body_bytes = 1000).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let (client, url) = (&endpoint.client, endpoint.url());
    let mut told = Vec::new();
    for (what, request) in [
        ("no JSON", endpoint.post_text("{oops")),
        ("nothing", endpoint.post_text("")),
        ("no JSON-RPC", endpoint.post(&json!({ "method": "tools/list" }))),
        ("too much", endpoint.post_text("[".repeat(1001))),
        ("Accept", client.post(&url).header("accept", "text/html").json(&list)),
        ("Content-Type", client.post(&url).header("accept", "*/*").body("{}")),
        ("Origin", endpoint.post(&list).header("origin", "https://evil.example")),
        ("Host", endpoint.post(&list).header("host", "evil.example")),
        ("path", client.get(url.replace("/mcp", "/"))),
        ("method", client.put(&url)),
        ("a browser", client.get(&url)),
        ("no session", endpoint.post(&list)),
        ("unknown session", endpoint.post(&list).header("mcp-session-id", "x")),
        ("end of none", client.delete(&url).header("mcp-session-id", "x")),
        ("version", endpoint.post(&list).header("mcp-protocol-version", "1999-01-01")),
        ("token", endpoint.post(&list).bearer_auth("x")),
    ] {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        told.push(format!("{what}: {status}, id {}: {message}", body["id"]));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    no JSON: 400, id null: this is not JSON (key must be a string at line 1 column 2); send one JSON-RPC message
    nothing: 400, id null: this is not JSON (EOF while parsing a value at line 1 column 0); send one JSON-RPC message
    no JSON-RPC: 400, id null: this is not a JSON-RPC message: `jsonrpc` has to be "2.0"
    too much: 413, id null: a request has at most 1000 bytes; send less, or set `gateway.maxBodyBytes`
    Accept: 406, id null: `Accept` must contain application/json and text/event-stream
    Content-Type: 415, id null: `Content-Type` must be application/json
    Origin: 403, id null: web pages of this `Origin` may not use this server; add the origin to `gateway.allowedOrigins` to allow them
    Host: 403, id null: this `Host` is not served here; use the address that toolgate listens on, or add the host to `gateway.allowedHosts`
    path: 404, id null: nothing is served at this path; the endpoint is /mcp, or /mcp/NAME for a namespace
    method: 405, id null: use GET, POST, DELETE here
    a browser: 400, id null: `Mcp-Session-Id` is missing: this is an MCP endpoint, and a session starts with a POST of initialize
    no session: 400, id 1: `Mcp-Session-Id` is missing: this is an MCP endpoint, and a session starts with a POST of initialize
    unknown session: 404, id 1: there is no such session; start a new one with initialize
    end of none: 404, id null: there is no such session; start a new one with initialize
    version: 400, id 1: this protocol version is not supported; use one of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
    token: 401, id null: this token is not valid here: it is wrong, has expired or was revoked; ask for another one
    "#);
}
