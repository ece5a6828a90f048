//! What only HTTP servers do, and the fixture does not.

use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use toolgate_upstream::CallError;

use crate::{
    raw_connection::{self, Call},
    support::{Gate, url, with_limits},
};

/// Serves `router` at a URL.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

/// How a tool list is sent.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Json,
    Events,
}

/// A modern server that wants an argument in a header.
fn routed(list: List, headers: &HeaderMap, message: &Value) -> Response {
    let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => Json(answer(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "r", "version": "1" } },
            "ttlMs": 0,
            "cacheScope": "private",
        })))
        .into_response(),
        "tools/list" => {
            let region = json!({ "type": "string", "x-mcp-header": "Region" });
            let schema = json!({ "type": "object", "properties": { "region": region } });
            let tools = json!([{ "name": "query", "inputSchema": schema }]);
            let message = answer(json!({ "resultType": "complete", "tools": tools }));
            if list == List::Json {
                return Json(message).into_response();
            }
            let content_type = [(header::CONTENT_TYPE, "text/event-stream")];
            (content_type, format!("data: {message}\n\n")).into_response()
        }
        _ => {
            let given = headers.get("mcp-param-region").and_then(|value| value.to_str().ok());
            if given != message["params"]["arguments"]["region"].as_str() {
                let error = json!({ "code": -32020, "message": "the header is missing" });
                let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                return (StatusCode::BAD_REQUEST, Json(body)).into_response();
            }
            Json(answer(json!({ "resultType": "complete", "content": [] }))).into_response()
        }
    }
}

#[tokio::test]
async fn marked_arguments_are_in_headers() {
    for list in [List::Json, List::Events] {
        let handler = move |headers: HeaderMap, Json(message): Json<Value>| async move {
            routed(list, &headers, &message)
        };
        let spec = url(&serve(Router::new().route("/mcp", post(handler))).await);
        let (connection, _heard) = raw_connection::open(&spec).await;
        let query = json!({ "name": "query", "arguments": { "region": "eu" } });
        connection.ask("tools/call", query.clone()).await.unwrap_err();
        connection.ask("tools/list", json!({})).await.unwrap();
        connection.ask("tools/call", query).await.unwrap();
        let gate = Gate::ready(spec).await;
        gate.call("query", json!({ "region": "eu" })).await.unwrap();
        gate.call("query", json!({})).await.unwrap();
        // One that was never listed: the refusal without an id ends the call all the same.
        let refused = gate.call("other", json!({ "region": "eu" })).await;
        assert!(matches!(refused, Err(CallError::Refused { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn an_endless_response_is_cut() {
    for content_type in ["application/json", "text/event-stream"] {
        let handler = move || async move {
            let piece = Bytes::from(format!("data: {}", "x".repeat(10_000)));
            let endless =
                futures::stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
            ([(header::CONTENT_TYPE, content_type)], Body::from_stream(endless))
        };
        let spec = url(&serve(Router::new().route("/mcp", post(handler))).await);
        let spec = with_limits(spec, |limits| {
            (limits.max_message_bytes, limits.max_kept_bytes) = (100_000, 0);
        });
        let (_gate, failure) = Gate::failure(spec).await;
        assert!(failure.reason.contains("more than the 100000 bytes allowed"), "{failure:?}");
    }
}

#[tokio::test]
async fn invalid_utf_8_is_replaced_and_noted() {
    for events in [false, true] {
        let handler = move |Json(message): Json<Value>| async move {
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "old", "version": "1" },
                }),
                "tools/list" => {
                    json!({ "tools": [{ "name": "say", "inputSchema": { "type": "object" } }] })
                }
                "tools/call" => json!({ "content": [{ "type": "text", "text": "a#b" }] }),
                "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
                _ => return StatusCode::BAD_REQUEST.into_response(),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let answer = answer.to_string();
            let answer = if events { format!("data: {answer}\n\n") } else { answer };
            let bytes = answer.bytes().map(|byte| if byte == b'#' { 0xff } else { byte });
            let kind = if events { "text/event-stream" } else { "application/json" };
            ([(header::CONTENT_TYPE, kind)], bytes.collect::<Vec<u8>>()).into_response()
        };
        let spec = url(&serve(Router::new().route("/mcp", post(handler))).await);
        let gate = Gate::ready(spec).await;
        let result = gate.call("say", json!({})).await.unwrap();
        assert_eq!(result["content"][0]["text"], "a\u{fffd}b", "events: {events}");
        assert_eq!(result["_meta"]["toolgate/replaced"], 1, "events: {events}");
    }
}

#[tokio::test]
async fn a_bare_http_status_to_discovery_leads_to_initialize() {
    for status in
        [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR]
    {
        let handler = move |Json(message): Json<Value>| async move {
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "old", "version": "1" },
                }),
                "tools/list" => json!({ "tools": [] }),
                "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
                _ => return (status, "what is this?").into_response(),
            };
            let message = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            Json(message).into_response()
        };
        let spec = url(&serve(Router::new().route("/mcp", post(handler))).await);
        let gate = Gate::ready(spec).await;
        let handshake = gate.state("fixture").handshake.unwrap();
        assert_eq!(handshake.protocol_version, "2025-06-18", "{status}");
    }
}

/// A server of the older protocol whose answers break off, and are taken up again by a GET.
fn broken_off(message: &Value) -> Response {
    let events = [(header::CONTENT_TYPE, "text/event-stream")];
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => StatusCode::BAD_REQUEST.into_response(),
        "initialize" => {
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            ([("mcp-session-id", "s")], Json(answer)).into_response()
        }
        "begin" => {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/first" });
            let id = message["id"].to_string();
            (events, format!("id: of-{id}\nretry: 10\ndata: {note}\n\n")).into_response()
        }
        "begin without an id" => (events, "data: \n\n").into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// The rest of what [`broken_off`] began.
fn taken_up(headers: &HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let Some(id) = last.and_then(|last| last.strip_prefix("of-")) else {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    };
    let id: Value = id.parse().unwrap();
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/second" });
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "whole": true } });
    let content_type = [(header::CONTENT_TYPE, "text/event-stream")];
    (content_type, format!("data: {note}\n\ndata: {answer}\n\n")).into_response()
}

#[tokio::test]
async fn a_broken_stream_is_resumed() {
    let handler = post(|Json(message): Json<Value>| async move { broken_off(&message) })
        .get(|headers: HeaderMap| async move { taken_up(&headers) });
    let spec = url(&serve(Router::new().route("/mcp", handler)).await);
    let (connection, heard) = raw_connection::open(&spec).await;
    assert_eq!(connection.ask("begin", json!({})).await.unwrap(), json!({ "whole": true }));
    for method in ["notifications/first", "notifications/second"] {
        let (about, (told, _)) = heard.next_notification().await;
        assert_eq!((about, told.as_str()), (Some(json!("key")), method));
    }
    let error = connection.ask("begin without an id", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "the server closed the stream before it sent the response");
}
