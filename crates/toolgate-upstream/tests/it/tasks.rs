//! Calls of which a server makes tasks: what it asks meanwhile, and tasks that cannot be used.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_upstream::{CallOptions, ServerSpec};

use crate::{
    questions::{Person, by},
    support::{Gate, command},
};

/// A legacy server. The task of `job` asks while nobody has requested its result, and goes on when it
/// has an answer.
const LEGACY: &str = r#"
import json, sys
answer = None
def send(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def task(): return {"taskId": "t", "status": "completed" if answer else "working", "ttl": 60000, "pollInterval": 20, "createdAt": "", "lastUpdatedAt": ""}
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if id == "q" and method is None: answer = message.get("result") or message.get("error")
    elif method == "initialize":
        capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}]}})
    elif method == "tools/call":
        send({"id": id, "result": {"task": task()}})
        about = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}
        send({"method": "notifications/progress", "params": {"progressToken": params["_meta"]["progressToken"], "progress": 1, "odd": 1}})
        send({"id": "q", "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}, "_meta": about}})
    elif method == "tasks/get": send({"id": id, "result": task()})
    elif method == "tasks/result": send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(answer)}]}})
    elif id is not None: send({"id": id, "error": {"code": -32601, "message": "unknown"}})
"#;

/// A modern server that answers each call with its first argument, `tasks/get` with the second, and `meta`
/// with what it was sent as `_meta`.
const MODERN: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params", {})
    if method == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ["job", "meta"]], "ttlMs": 0, "cacheScope": "private"}
    elif method == "tools/call" and params["name"] == "meta":
        result = {"content": [], "structuredContent": params["_meta"]}
    elif method == "tools/call": result = json.loads(sys.argv[1])
    elif method == "tasks/get": result = json.loads(sys.argv[2])
    else: result = {}
    if id is not None: print(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", **result}}), flush=True)
"#;

fn modern(created: &Value, seen: &Value) -> ServerSpec {
    command("python3", &["-c", MODERN, &created.to_string(), &seen.to_string()])
}

#[tokio::test]
async fn a_task_of_a_legacy_server_asks_before_its_result_is_requested() {
    let gate = Gate::ready(command("python3", &["-c", LEGACY])).await;
    let ada = Arc::new(Person::new("ada"));
    let options = CallOptions { needs_task: true, ..by(&ada) };
    let result = gate.call_with("job", json!({}), options).await.unwrap();
    assert_eq!(ada.asked().len(), 1);
    let answer = result["content"][0]["text"].as_str().unwrap();
    assert!(answer.contains("ada"), "{answer}");
}

#[tokio::test]
async fn progress_of_a_task_of_a_legacy_server_reaches_the_caller() {
    let gate = Gate::ready(command("python3", &["-c", LEGACY])).await;
    let (progress, mut reports) = mpsc::channel(8);
    let ada = Arc::new(Person::new("ada"));
    let options = CallOptions { needs_task: true, progress: Some(progress), ..by(&ada) };
    gate.call_with("job", json!({}), options).await.unwrap();
    let report = reports.try_recv().unwrap().into_params(&json!("t"));
    assert_eq!(report, json!({ "progressToken": "t", "progress": 1, "odd": 1 }));
}

#[tokio::test]
async fn a_task_that_cannot_be_used_is_an_error_of_the_server() {
    let task = |id: Value, status: &str| json!({ "resultType": "task", "taskId": id, "status": status, "pollIntervalMs": 20 });
    let working = task(json!("t"), "working");
    let mut nested = task(json!("t"), "completed");
    nested["result"] = working.clone();
    let mut text = nested.clone();
    text["result"] = json!("text");
    for (created, seen) in [
        (json!({ "resultType": "task", "status": "working" }), json!({})),
        (task(json!(7), "working"), json!({})),
        (task(json!("t".repeat(5_000)), "working"), json!({})),
        (task(json!("t"), "dancing"), json!({})),
        (working.clone(), nested),
        (working.clone(), text),
        (working, json!({ "taskId": "other", "status": "completed", "result": { "content": [] } })),
    ] {
        let gate = Gate::ready(modern(&created, &seen)).await;
        let error = gate.call_with("job", json!({}), CallOptions::default()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("it made a task of the call, but "), "{error}");
        assert!(error.len() < 400, "{}", error.len());
    }
}

#[tokio::test]
async fn a_server_with_tasks_gets_the_extensions_of_the_client_too() {
    let gate = Gate::ready(modern(&json!({}), &json!({}))).await;
    let extensions = json!({ "org.example/events": { "client": true } });
    let capabilities = json!({ "elicitation": {}, "extensions": extensions });
    let ada = Arc::new(Person::new("ada").who_can(&capabilities));
    let result = gate.call_with("meta", json!({}), by(&ada)).await.unwrap();
    let sent = &result["structuredContent"]["io.modelcontextprotocol/clientCapabilities"];
    let all =
        json!({ "org.example/events": { "client": true }, "io.modelcontextprotocol/tasks": {} });
    assert_eq!(sent, &json!({ "elicitation": {}, "extensions": all }));
}
