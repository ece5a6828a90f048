//! Calls as tasks: those of servers, and those that clients get.

use std::sync::Arc;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_gateway::AggregateFactory;
use toolgate_host::{HostSettings, ServerSetup, ToolHost};
use toolgate_store::Store;
use toolgate_testkit::{Builtin, Fixture, FixtureEra, TaskPlan};

use crate::{
    clients::{host_of, spec},
    support::{Endpoint, Events, body, capabilities, deadline},
};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server with tools that can only be called as tasks.
fn fixture(era: FixtureEra) -> Fixture {
    let plans = [
        ("report", TaskPlan::default()),
        ("asks", TaskPlan { asks: vec!["who".to_owned()], ..TaskPlan::default() }),
        (
            "fails",
            TaskPlan {
                error: Some(json!({ "code": -32050, "message": "no paper" })),
                ..TaskPlan::default()
            },
        ),
        ("endless", TaskPlan { looks: None, ..TaskPlan::default() }),
    ];
    let mut fixture =
        Fixture::new("kit").with_era(era).with_builtins([Builtin::Sleep, Builtin::LastCancelled]);
    fixture = match era {
        FixtureEra::Legacy => fixture.with_capability(
            "tasks",
            json!({ "cancel": {}, "requests": { "tools": { "call": {} } } }),
        ),
        _ => fixture.with_capability("extensions", json!({ EXTENSION: {} })),
    };
    for (name, plan) in plans {
        let execution = json!({ "taskSupport": "required" });
        fixture = fixture
            .with_tool(json!({ "name": name, "inputSchema": { "type": "object" }, "execution": execution }))
            .with_task(name, plan);
    }
    fixture
}

async fn endpoint(host: &ToolHost) -> Endpoint {
    let factory = Arc::new(AggregateFactory::new(host.clone()));
    Endpoint::of(factory, Arc::default(), |_| {}).await
}

/// A request of a client that knows tasks.
fn knowing(endpoint: &Endpoint, method: &str, params: Value) -> RequestBuilder {
    let mut declared = capabilities();
    declared["extensions"][EXTENSION] = json!({});
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": declared,
    });
    let name = params.get("name").or_else(|| params.get("taskId")).and_then(Value::as_str);
    let name = name.map(str::to_owned);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = endpoint
        .post(&body)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    match name {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// Calls a tool that becomes a task; returns the id of the task.
async fn begin(endpoint: &Endpoint, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = body(knowing(endpoint, "tools/call", params)).await;
    let result = &answer["result"];
    assert_eq!(
        (&result["resultType"], &result["status"]),
        (&json!("task"), &json!("working")),
        "{answer}"
    );
    assert!(result["ttlMs"].is_u64() && result["pollIntervalMs"].is_u64(), "{answer}");
    result["taskId"].as_str().unwrap().to_owned()
}

async fn look(endpoint: &Endpoint, id: &str) -> Value {
    let mut answer = body(knowing(endpoint, "tasks/get", json!({ "taskId": id }))).await;
    answer["result"].take()
}

/// Looks at a task until it has this status.
async fn until(endpoint: &Endpoint, id: &str, status: &str) -> Value {
    toolgate_testkit::until(status, async || {
        let seen = look(endpoint, id).await;
        (seen["status"] == status).then_some(seen)
    })
    .await
}

async fn update(endpoint: &Endpoint, id: &str, responses: Value) -> Value {
    body(knowing(endpoint, "tasks/update", json!({ "taskId": id, "inputResponses": responses })))
        .await
}

async fn cancel(endpoint: &Endpoint, id: &str) -> Value {
    body(knowing(endpoint, "tasks/cancel", json!({ "taskId": id }))).await
}

#[tokio::test]
async fn a_client_without_tasks_gets_the_result_of_a_servers_task() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let host = host_of([spec("kit", &fixture(era))]);
        let endpoint = endpoint(&host).await;
        let listed = body(endpoint.modern("tools/list", json!({}))).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let report = tools.iter().find(|tool| tool["name"] == "kit_report").unwrap();
        assert!(report["execution"].get("taskSupport").is_none(), "{report}");
        for tool in ["kit_report", "call_tool"] {
            let arguments = match tool {
                "call_tool" => json!({ "name": "kit_report", "arguments": {} }),
                _ => json!({}),
            };
            let params = json!({ "name": tool, "arguments": arguments });
            let answer = body(endpoint.modern("tools/call", params)).await;
            assert_eq!(answer["result"]["structuredContent"]["looks"], 3, "{era:?}: {answer}");
        }
        let params = json!({ "name": "kit_fails", "arguments": {} });
        let answer = body(endpoint.modern("tools/call", params)).await;
        assert_eq!(answer["error"]["code"], -32050, "{era:?}: {answer}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_client_that_knows_tasks_gets_one() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Modern))]);
    let endpoint = endpoint(&host).await;
    let discovered = body(knowing(&endpoint, "server/discover", json!({}))).await;
    assert_eq!(discovered["result"]["capabilities"]["extensions"][EXTENSION], json!({}));
    let id = begin(&endpoint, "kit_report", json!({})).await;
    let seen = until(&endpoint, &id, "completed").await;
    assert_eq!(seen["result"]["structuredContent"]["looks"], 3, "{seen}");
    let id = begin(&endpoint, "kit_fails", json!({})).await;
    let seen = until(&endpoint, &id, "failed").await;
    assert_eq!(seen["error"]["message"], "no paper", "{seen}");
    // The server's question has the server's key, and one answer.
    let id = begin(&endpoint, "call_tool", json!({ "name": "kit_asks", "arguments": {} })).await;
    let seen = until(&endpoint, &id, "input_required").await;
    let message = &seen["inputRequests"]["who"]["params"]["message"];
    assert_eq!(message, "Server \"kit\" asks:\nwho?", "{seen}");
    let said = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = update(&endpoint, &id, json!({ "unknown": {}, "who": said })).await;
    assert_eq!(answer["result"], json!({ "resultType": "complete" }));
    let seen = until(&endpoint, &id, "completed").await;
    assert_eq!(seen["result"]["structuredContent"]["answers"]["who"], said, "{seen}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_task_is_cancelled_at_its_server() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let host = host_of([spec("kit", &fixture(era))]);
        let endpoint = endpoint(&host).await;
        let id = begin(&endpoint, "kit_endless", json!({})).await;
        let answer = cancel(&endpoint, &id).await;
        assert_eq!(answer["result"], json!({ "resultType": "complete" }));
        assert_eq!(look(&endpoint, &id).await["status"], "cancelled");
        toolgate_testkit::until("the cancellation at the server", async || {
            let params = json!({ "name": "kit_last_cancelled", "arguments": {} });
            let answer = body(endpoint.modern("tools/call", params)).await;
            let text = answer["result"].to_string();
            text.contains("task-1").then_some(())
        })
        .await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_slow_call_becomes_a_task_and_survives_its_request() {
    let folder = TempDir::new().unwrap();
    let start = || {
        let mut settings =
            HostSettings::new(vec![ServerSetup::new(spec("kit", &fixture(FixtureEra::Legacy)))]);
        settings.store = Some(Store::new(folder.path()));
        ToolHost::start(settings)
    };
    let host = start();
    let first = endpoint(&host).await;
    let slow = begin(&first, "kit_sleep", json!({ "ms": 3_000 })).await;
    let endless = begin(&first, "kit_endless", json!({})).await;
    let seen = until(&first, &slow, "completed").await;
    assert!(seen["result"]["content"].is_array(), "{seen}");
    host.shutdown().await;
    let lost = until(&first, &endless, "failed").await;
    let why = lost["error"]["message"].as_str().unwrap();
    assert!(why.contains("whether the call had an effect is not known"), "{lost}");
    drop((first, host));
    // The next process knows what came of them.
    let other = start();
    let second = endpoint(&other).await;
    assert_eq!(look(&second, &slow).await["result"], seen["result"]);
    let still = look(&second, &endless).await;
    assert_eq!((&still["status"], &still["error"]), (&json!("failed"), &lost["error"]), "{still}");
    other.shutdown().await;
}

#[tokio::test]
async fn tasks_are_for_those_who_declare_them_and_own_them() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Modern))]);
    let endpoint = endpoint(&host).await;
    let id = begin(&endpoint, "kit_endless", json!({})).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut params = json!({ "taskId": id });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        let request = endpoint.modern(method, params.clone()).header("mcp-name", &id);
        let answer = body(request).await;
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
        let required = &answer["error"]["data"]["requiredCapabilities"]["extensions"][EXTENSION];
        assert_eq!(required, &json!({}));
        params["taskId"] = json!("unknown");
        let answer = body(knowing(&endpoint, method, params)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let params = json!({ "notifications": { "taskIds": [id] } });
    let answer = body(endpoint.modern("subscriptions/listen", params)).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    assert_eq!(look(&endpoint, &id).await["status"], "working");
    host.shutdown().await;
}

#[tokio::test]
async fn a_task_tells_those_who_listen() {
    let host = host_of([spec("kit", &fixture(FixtureEra::Modern))]);
    let endpoint = endpoint(&host).await;
    let id = begin(&endpoint, "kit_asks", json!({})).await;
    let params = json!({ "notifications": { "taskIds": [id, "unknown"] } });
    let listening = knowing(&endpoint, "subscriptions/listen", params);
    let mut events = Events::new(listening.send().await.unwrap());
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]));
    until(&endpoint, &id, "input_required").await;
    update(&endpoint, &id, json!({ "who": { "action": "decline" } })).await;
    let last = tokio::time::timeout(deadline(), async {
        loop {
            let message = events.message().await;
            assert_eq!(message["method"], "notifications/tasks");
            if message["params"]["status"] == "completed" {
                return message;
            }
        }
    });
    let last = last.await.unwrap();
    assert_eq!(
        last["params"]["result"]["structuredContent"]["answers"]["who"]["action"],
        "decline"
    );
    assert_eq!(last["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    drop(events);
    host.shutdown().await;
}
