//! Sessions with their own processes of a server.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, within};

use crate::{
    http::{HttpClient, HttpGateway},
    support::{Workplace, entry_with, until},
};

/// The tools of the server that a session lists.
async fn listed(client: &HttpClient) -> Vec<String> {
    let tools = client.list().await;
    let names = tools.iter().filter_map(|tool| tool["name"].as_str()?.strip_prefix("kit_"));
    names.map(str::to_owned).collect()
}

async fn lists(client: &HttpClient, tools: &[&str]) {
    until(&format!("{tools:?}"), async || (listed(client).await == tools).then_some(())).await;
}

/// A gateway in front of a server of which each session has its own process.
async fn gateway() -> (Workplace, HttpGateway) {
    let kit = Fixture::new("kit").with_builtins([Builtin::ChangeTools, Builtin::Counter]);
    let kit = entry_with(&kit, json!({ "instances": "perSession" }));
    let workplace = Workplace::new(&json!({ "mcpServers": { "kit": kit } }));
    let gateway = workplace.serve_http(&["--mode", "direct"]).await;
    (workplace, gateway)
}

async fn counted(client: &HttpClient) -> Value {
    client.call("kit_counter", json!({})).await["structuredContent"]["count"].clone()
}

#[tokio::test]
async fn a_session_sees_the_tools_of_its_own_process() {
    let (_workplace, gateway) = gateway().await;
    let (ada, bob) = (gateway.client().named("ada"), gateway.client().named("bob"));
    let eve = gateway.client().named("eve");
    lists(&ada, &["change_tools", "counter"]).await;
    assert_eq!((counted(&ada).await, counted(&bob).await), (json!(1), json!(1)), "two processes");
    bob.call("kit_change_tools", json!({ "add": "of_bob" })).await;
    lists(&bob, &["change_tools", "counter", "of_bob"]).await;
    assert_eq!(listed(&ada).await, ["change_tools", "counter"]);
    bob.call("kit_of_bob", json!({})).await;
    let error = ada.refused("tools/call", json!({ "name": "kit_of_bob" })).await;
    assert_eq!(error["code"], -32602, "{error}");

    // The first process changes too.
    ada.call("kit_change_tools", json!({ "add": "of_ada", "remove": "counter" })).await;
    lists(&ada, &["change_tools", "of_ada"]).await;
    assert_eq!(listed(&bob).await, ["change_tools", "counter", "of_bob"]);
    assert_eq!(counted(&bob).await, 2);
    let error = bob.refused("tools/call", json!({ "name": "kit_of_ada" })).await;
    assert_eq!(error["code"], -32602, "{error}");
    // A session that has not called yet has no process.
    assert_eq!(listed(&eve).await, ["change_tools", "of_ada"]);
}

#[tokio::test]
async fn a_session_learns_of_a_change_in_its_own_process() {
    let (_workplace, gateway) = gateway().await;
    let (ada, bob) = (gateway.client().named("ada"), gateway.client().named("bob"));
    lists(&ada, &["change_tools", "counter"]).await;
    assert_eq!((counted(&ada).await, counted(&bob).await), (json!(1), json!(1)), "two processes");
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = bob.post("subscriptions/listen", wanted).await;
    let mut heard = String::new();
    while !heard.contains("acknowledged") {
        heard += std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap();
    }
    // The first process still has it, so the tools of all processes are the same as before.
    bob.call("kit_change_tools", json!({ "remove": "counter" })).await;
    within("the notification", async {
        while !heard.contains("notifications/tools/list_changed") {
            heard += std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap();
        }
    })
    .await;
    assert_eq!(listed(&bob).await, ["change_tools"]);
    assert_eq!(listed(&ada).await, ["change_tools", "counter"]);
}
