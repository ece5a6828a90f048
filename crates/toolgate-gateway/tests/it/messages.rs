//! What servers say and ask outside of the result of a call: log messages and roots.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gateway::AggregateFactory;
use toolgate_host::ToolHost;
use toolgate_testkit::{Builtin, Fixture, FixtureEra};

use crate::{
    clients::{host_of, spec},
    support::{Endpoint, Events, Session, body, status},
};

const ERAS: [FixtureEra; 2] = [FixtureEra::Legacy, FixtureEra::Modern];

fn fixture(era: FixtureEra) -> Fixture {
    Fixture::new("kit")
        .with_era(era)
        .with_builtins([Builtin::Log, Builtin::LastCancelled])
        .with_capability("logging", json!({}))
        .with_method("logging/setLevel", json!({}))
        .with_resources([json!({ "uri": "kit:one", "name": "one" })])
        .with_templates([json!({ "uriTemplate": "kit:item/{id}", "name": "items" })])
}

async fn endpoint(host: &ToolHost) -> Endpoint {
    let factory = Arc::new(AggregateFactory::new(host.clone()));
    Endpoint::of(factory, Arc::default(), |_| {}).await
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

async fn set_level(session: &Session<'_>, level: &str) -> Value {
    let response = session.post(&request("logging/setLevel", &json!({ "level": level })));
    Events::new(response.send().await.unwrap()).message().await
}

/// The log messages of a call, as a client of the legacy era gets them.
async fn logged(session: &Session<'_>, tool: &str) -> Vec<Value> {
    let arguments = json!({ "level": "info", "data": { "odd": 1 }, "count": 2 });
    let params = json!({ "name": tool, "arguments": arguments });
    let response = session.post(&request("tools/call", &params)).send().await.unwrap();
    let mut messages = Events::new(response).rest().await;
    assert!(messages.pop().unwrap()["result"]["content"].is_array());
    messages
}

#[tokio::test]
async fn log_messages_reach_a_legacy_client_by_its_level() {
    for era in ERAS {
        let host = host_of([spec("kit", &fixture(era))]);
        let endpoint = endpoint(&host).await;
        let session = endpoint.session().await;
        assert_eq!(logged(&session, "kit_log").await.len(), 2, "{era:?}: no level is set");
        let refused = set_level(&session, "loud").await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(set_level(&session, "info").await["result"], json!({}));
        let messages = logged(&session, "kit_log").await;
        assert_eq!(messages.len(), 2, "{era:?}: {messages:?}");
        for message in &messages {
            assert_eq!(message["method"], "notifications/message");
            assert_eq!(message["params"]["logger"], "kit/fixture");
            assert_eq!(message["params"]["data"], json!({ "odd": 1 }));
        }
        set_level(&session, "warning").await;
        assert!(logged(&session, "kit_log").await.is_empty());
        // The level of one client is not that of another.
        let other = endpoint.session().await;
        set_level(&other, "info").await;
        assert_eq!(logged(&other, "kit_log").await.len(), 2);
        assert!(logged(&session, "kit_log").await.is_empty());
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_cursor_that_no_list_has_is_refused() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Modern))]);
    let endpoint = endpoint(&host).await;
    let session = endpoint.session().await;
    for method in ["tools/list", "resources/list"] {
        let response = session.post(&request(method, &json!({ "cursor": "odd" })));
        let refused = Events::new(response.send().await.unwrap()).message().await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_has_the_level_of_the_clients_that_are_left() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Legacy))]);
    let endpoint = endpoint(&host).await;
    let (first, second) = (endpoint.session().await, endpoint.session().await);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for session in [&first, &second] {
        assert_eq!(status(session.post(&initialized)).await, 202);
    }
    logged(&first, "kit_log").await;
    set_level(&first, "debug").await;
    set_level(&second, "warning").await;
    let level_is = async |level: &'static str| {
        toolgate_testkit::until("the level at the server", async || {
            let params = json!({ "name": "kit_last_cancelled", "arguments": {} });
            let known = body(endpoint.modern("tools/call", params)).await;
            (known["result"]["structuredContent"]["logLevel"] == level).then_some(())
        })
        .await;
    };
    level_is("debug").await;
    assert!(status(first.delete()).await.is_success());
    level_is("warning").await;
    host.shutdown().await;
}

#[tokio::test]
async fn log_messages_reach_a_modern_client_whose_request_asks_for_them() {
    for era in ERAS {
        let host = host_of([spec("kit", &fixture(era))]);
        let endpoint = endpoint(&host).await;
        for (level, expected) in [(Some("info"), 2), (Some("error"), 0), (None, 0)] {
            let mut params = json!({ "name": "kit_log", "arguments": { "count": 2 } });
            if let Some(level) = level {
                params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
            }
            let response = endpoint.modern("tools/call", params).send().await.unwrap();
            let count = match response.headers()["content-type"].to_str().unwrap() {
                "text/event-stream" => Events::new(response).rest().await.len() - 1,
                _ => 0,
            };
            assert_eq!(count, expected, "{era:?} {level:?}");
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_asks_outside_of_a_call_gets_the_roots_of_the_client() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Legacy))]);
    let endpoint = endpoint(&host).await;
    let session = endpoint.session().await;
    // The server is connected before the client says that it has roots.
    logged(&session, "kit_log").await;
    let mut standing = Events::new(session.get().send().await.unwrap());
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(status(session.post(&initialized)).await, 202);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for (folder, message) in [("file:///one", None), ("file:///two", Some(&changed))] {
        if let Some(message) = message {
            assert_eq!(status(session.post(message)).await, 202);
        }
        let asked = loop {
            let message = standing.message().await;
            if message["method"] == "roots/list" {
                break message;
            }
        };
        let roots = json!({ "roots": [{ "uri": folder, "odd": 1 }] });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots });
        assert_eq!(status(session.post(&answer)).await, 202);
        toolgate_testkit::until("the roots at the server", async || {
            let params = json!({ "name": "kit_last_cancelled", "arguments": {} });
            let known = body(endpoint.modern("tools/call", params)).await;
            (known["result"]["structuredContent"]["roots"]["result"] == roots).then_some(())
        })
        .await;
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_uri_that_only_a_template_names_is_read_from_its_server() {
    let other =
        Fixture::new("other").with_templates([json!({ "uriTemplate": "other:{id}", "name": "o" })]);
    let host = host_of([spec("kit", &fixture(FixtureEra::Modern)), spec("other", &other)]);
    let endpoint = endpoint(&host).await;
    let read = async |uri: &str| {
        let request = endpoint.modern("resources/read", json!({ "uri": uri }));
        body(request.header("mcp-name", uri)).await
    };
    let answer = read("kit:item/5").await;
    assert_eq!(answer["result"]["contents"][0]["uri"], "toolgate://kit/kit:item/5", "{answer}");
    let answer = read("kit:item/5/6").await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    host.shutdown().await;
}
