//! A server that runs once in a fleet.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, until, within};

use super::{Events, FleetNode, FleetPlace, LegacyClient, effects};
use crate::{
    fixtures::tool,
    support::{Workplace, entry_with, text},
};

/// Long enough that a busy machine renews it in time.
const LEASE_SECONDS: u64 = 4;

impl FleetPlace {
    /// A node of a fleet whose server runs once.
    async fn node_with_single(&self) -> FleetNode {
        let write =
            tool("write", "Write a line.", &json!({ "id": { "type": "integer" } }), &["id"]);
        let fixture = Fixture::new("kit")
            .with_builtins([
                Builtin::Counter,
                Builtin::Sleep,
                Builtin::Progress,
                Builtin::AskForm,
                Builtin::ChangeTools,
                Builtin::Crash,
            ])
            .with_tool(write)
            .with_resources([json!({ "uri": "file:///notes", "name": "notes" })])
            .with_prompts([json!({ "name": "greet" })])
            .with_capability("logging", json!({}))
            .with_answer("write", json!({ "content": [{ "type": "text", "text": "written" }] }))
            .with_call_log(self.log());
        let file = |name: &str| format!("${{file:{}}}", self.folder.path().join(name).display());
        let place = Workplace::new(&json!({
            "mcpServers": { "kit": entry_with(&fixture, json!({ "fleet": "single" })) },
            "policy": "off",
            "fleet": {
                "database": file("database"),
                "secret": file("secret"),
                "advertise": "https://127.0.0.1:0",
                "leaseSeconds": LEASE_SECONDS,
            },
        }));
        let gateway = place.serve_http(&["--mode", "direct"]).await;
        FleetNode { gateway, place }
    }
}

/// What the counter of the process says at a node.
async fn counted(node: &FleetNode) -> Value {
    let result = node.client().call("kit_counter", json!({})).await;
    result["structuredContent"].clone()
}

/// The nodes that have servers, as a command sees them.
async fn holders(node: &FleetNode) -> Vec<Value> {
    let status = node.place.run(&["fleet", "status", "--json"]).await.json();
    status["servers"].as_array().unwrap_or_else(|| panic!("{status}")).clone()
}

#[tokio::test]
async fn one_process_serves_all_nodes_and_another_node_takes_it_over() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let first = place.node_with_single().await;
    let begun = counted(&first).await;
    let second = place.node_with_single().await;
    // The state is that of the one process, wherever the call arrives.
    let number = |counted: &Value| counted.as_object().unwrap().values().next().unwrap().as_u64();
    assert_eq!(number(&begun), Some(1), "{begun}");
    for (node, expected) in [(&second, 2), (&first, 3), (&second, 4)] {
        assert_eq!(number(&counted(node).await), Some(expected));
    }
    let held = holders(&second).await;
    assert_eq!((held.len(), &held[0]["server"], &held[0]["epoch"]), (1, &json!("kit"), &json!(1)));

    // What the server asks during a call reaches the client of the other node, and its answer comes back.
    let client = second.client().with_capabilities(json!({ "elicitation": {} }));
    let waiting = client.call("kit_ask_form", json!({})).await;
    assert_eq!(waiting["resultType"], "input_required", "{waiting}");
    let (key, asked) = waiting["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let message = asked["params"]["message"].as_str().unwrap();
    assert_eq!(message.matches("Server \"kit\" asks:").count(), 1, "{message}");
    let answer = json!({
        "name": "kit_ask_form", "arguments": {}, "requestState": waiting["requestState"],
        "inputResponses": { key: { "action": "accept", "content": {} } },
    });
    let done = client.request("tools/call", answer).await;
    assert_eq!(done["structuredContent"]["answers"][0]["form"]["action"], "accept", "{done}");

    // A new tool is known at both.
    second.client().call("kit_change_tools", json!({ "add": "later" })).await;
    for node in [&first, &second] {
        until("the new tool", async || {
            let listed = node.client().list().await;
            listed.iter().any(|tool| tool["name"] == "kit_later").then_some(())
        })
        .await;
    }

    // The node with the process dies during a call of the other one.
    let client = second.client();
    let open =
        tokio::spawn(async move { client.call("kit_sleep", json!({ "ms": 600_000 })).await });
    let log = place.log();
    let slept = || std::fs::read_to_string(&log).unwrap_or_default().contains("600000");
    until("the call", async || slept().then_some(())).await;
    first.gateway.stop_by_kill().await;
    let lost = open.await.unwrap();
    assert!(text(&lost).contains("unknown whether"), "{lost}");
    let again = async || {
        let result = second.client().call("kit_counter", json!({})).await;
        (result["isError"] != true).then(|| result["structuredContent"].clone())
    };
    let counted = until("another node takes it over", again).await;
    assert_eq!(number(&counted), Some(1), "a new process");
    let held = holders(&second).await;
    assert_eq!((held.len(), &held[0]["epoch"]), (1, &json!(2)), "{held:?}");
    let calls = std::fs::read_to_string(&log).unwrap();
    assert_eq!(calls.matches("600000").count(), 1, "nothing was repeated: {calls}");
}

#[tokio::test]
async fn a_crash_of_the_process_is_of_unknown_outcome_at_the_other_node() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let first = place.node_with_single().await;
    counted(&first).await;
    let second = place.node_with_single().await;
    let crashed = second.client().call("kit_crash", json!({})).await;
    assert!(text(&crashed).contains("unknown whether `crash` took effect"), "{crashed}");
    let audit = second.place.run(&["audit", "--json"]).await.stdout;
    assert!(audit.contains("\"unknown\""), "{audit}");
    let written = async || {
        let result = second.client().call("kit_write", json!({ "id": 7 })).await;
        (result["isError"] != true).then_some(())
    };
    until("the new process", written).await;
    assert_eq!(effects(&place.log()).get(&7), Some(&1));
    let held = holders(&second).await;
    assert_eq!(held[0]["epoch"], 1, "the node has it still: {held:?}");
}

#[tokio::test]
async fn a_node_that_stops_hands_the_server_over_at_once() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let first = place.node_with_single().await;
    counted(&first).await;
    let second = place.node_with_single().await;
    counted(&second).await;
    first.gateway.stop().await;
    let again = async || {
        let result = second.client().call("kit_counter", json!({})).await;
        (result["isError"] != true).then_some(())
    };
    until("the other node", again).await;
    // A command is no node. It uses the process of the node.
    let called = second.place.run(&["call", "kit_counter"]).await;
    assert!(called.stdout.contains('2'), "{called:?}");
    // Nobody has the address of the nodes but nodes.
    let stranger = toolgate_http::client_builder()
        .no_proxy()
        .tls_danger_accept_invalid_certs(true)
        .build()
        .unwrap();
    let status = second.place.run(&["fleet", "status", "--json"]).await.json();
    let url = status["nodes"][0]["url"].as_str().unwrap();
    assert!(stranger.get(format!("{url}node/servers/x")).send().await.is_err());
}

/// Sends a request of a legacy session to a node; gives its result.
async fn ask(client: &LegacyClient, url: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let response = client.post(url, &body).await.unwrap();
    Events { response, text: String::new(), id: 7 }.answer().await.unwrap()
}

/// What a session is told outside of its requests.
async fn hear(client: &LegacyClient, url: &str) -> Arc<Mutex<Vec<Value>>> {
    let request = client.http.get(url).header("accept", "text/event-stream");
    let request = request.header("mcp-protocol-version", "2025-11-25");
    let response = request.header("mcp-session-id", &client.session).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    tokio::spawn(async move {
        let mut events = Events { response, text: String::new(), id: 0 };
        while let Ok(message) = events.next().await {
            hearing.lock().push(message);
        }
    });
    heard
}

#[tokio::test]
async fn what_the_server_says_outside_of_calls_reaches_the_clients_of_all_nodes() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let first = place.node_with_single().await;
    counted(&first).await;
    let second = place.node_with_single().await;
    counted(&second).await;
    let url = second.gateway.url();
    let client = LegacyClient::begin(url).await.unwrap();
    let heard = hear(&client, url).await;
    for (method, field) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        let listed = ask(&client, url, method, json!({})).await;
        assert_eq!(listed[field].as_array().unwrap().len(), 1, "{listed}");
    }
    let uri = "toolgate://kit/file:///notes";
    ask(&client, url, "resources/subscribe", json!({ "uri": uri })).await;
    ask(&client, url, "logging/setLevel", json!({ "level": "debug" })).await;
    heard.lock().clear();

    // The process says it while a client of the other node asks for a prompt, or after that.
    let logged = json!({ "level": "debug", "logger": "db", "data": "outside" });
    for (method, params, after) in [
        ("notifications/resources/updated", json!({ "uri": "file:///notes" }), None),
        ("notifications/prompts/list_changed", json!({}), None),
        ("notifications/resources/list_changed", json!({}), None),
        ("notifications/message", logged, Some("50")),
    ] {
        let mut arguments = json!({ "announce": method, "params": params.to_string() });
        if let Some(after) = after {
            arguments["afterMs"] = json!(after);
        }
        let params = json!({ "name": "kit_greet", "arguments": arguments });
        let told = until(method, async || {
            first.client().request("prompts/get", params.clone()).await;
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            heard.lock().iter().find(|message| message["method"] == method).cloned()
        })
        .await;
        match method {
            "notifications/resources/updated" => assert_eq!(told["params"]["uri"], uri, "{told}"),
            "notifications/message" => assert_eq!(told["params"]["logger"], "kit/db", "{told}"),
            _ => {}
        }
    }

    // Nobody is told what it has not asked for.
    ask(&client, url, "resources/unsubscribe", json!({ "uri": uri })).await;
    let silent = async || {
        heard.lock().clear();
        let params = json!({ "uri": "file:///notes" }).to_string();
        let arguments = json!({ "announce": "notifications/resources/updated", "params": params });
        let params = json!({ "name": "kit_greet", "arguments": arguments });
        first.client().request("prompts/get", params).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        heard.lock().is_empty().then_some(())
    };
    until("the end of the subscription", silent).await;
}

/// What callers at another node are told while the node with the process stops, until their calls go on.
async fn told_during(is_killed: bool) -> Vec<String> {
    let Some(place) = FleetPlace::start(json!("off")).await else { return Vec::new() };
    let first = place.node_with_single().await;
    counted(&first).await;
    let second = place.node_with_single().await;
    counted(&second).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (client, told) = (second.client(), Arc::clone(&told));
            let is_over = Arc::clone(&is_over);
            tokio::spawn(async move {
                let mut errors = 0;
                // Until a call goes on after one that did not.
                while !(errors > 0 && is_over.load(Ordering::Relaxed)) {
                    let params = json!({ "name": "kit_counter", "arguments": {} });
                    let answer = client.answer("tools/call", params).await;
                    let error = answer["error"]["message"].as_str();
                    let text = answer["result"]["content"][0]["text"].as_str();
                    let text = text.filter(|_| answer["result"]["isError"] == true);
                    match error.or(text) {
                        Some(error) => {
                            errors += 1;
                            told.lock().push(error.to_owned());
                        }
                        None if errors > 0 => is_over.store(true, Ordering::Relaxed),
                        None => {}
                    }
                }
            })
        })
        .collect();
    if is_killed {
        first.gateway.stop_by_kill().await;
    } else {
        first.gateway.stop().await;
    }
    for caller in callers {
        within("the other node runs it", caller).await.unwrap();
    }
    let mut told = told.lock().clone();
    told.sort();
    told.dedup();
    told
}

/// A caller knows of no `url`, and the gateway that answers does not stop.
#[tokio::test]
async fn callers_are_told_that_another_node_takes_the_server_over() {
    for is_killed in [false, true] {
        for told in told_during(is_killed).await {
            assert!(told.contains("node"), "{told}");
            for misleading in ["`url`", "this gateway", "is being restarted", "start the server"] {
                assert!(!told.contains(misleading), "{told}");
            }
        }
    }
}
