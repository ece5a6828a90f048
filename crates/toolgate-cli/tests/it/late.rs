//! Servers that connect slowly. They start with a file, so that no test depends on the speed of the machine.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Faults, Fixture, within};

use crate::{
    fixtures::notes,
    http::HttpClient,
    support::{Gateway, Workplace, entry, entry_with, list, names, notification, served},
};

/// A server that starts when the gate is open.
struct Gate(PathBuf);

impl Gate {
    fn new(folder: &tempfile::TempDir) -> Self {
        Self(folder.path().join("gate"))
    }

    fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    fn late(&self) -> Fixture {
        let faults = Faults { starts_with_file: Some(self.0.clone()), ..Faults::default() };
        Fixture::new("late")
            .with_builtins([Builtin::Echo])
            .with_resources([json!({ "uri": "file:///late", "name": "late" })])
            .with_prompts([json!({ "name": "greet" })])
            .with_faults(faults)
    }
}

fn has_late(tools: &[Value]) -> bool {
    names(tools).contains(&"late_echo")
}

/// Waits until requests no longer wait for late servers: this list is answered then.
async fn waits_no_more(client: &mut Gateway) {
    let partial = client.request("prompts/list", json!({})).await.unwrap();
    assert!(partial["result"]["_meta"]["toolgate/incomplete"]["late"].is_string(), "{partial}");
}

#[tokio::test]
async fn a_client_that_learns_of_changes_gets_a_list_soon() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new(&folder);
    let servers = json!({ "notes": entry(&notes()), "late": entry(&gate.late()) });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    assert_eq!(served(&mut client).await.len(), 4, "the tools of the other server");
    waits_no_more(&mut client).await;
    let resources = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(resources["result"]["resources"], json!([]), "{resources}");
    gate.open();
    for what in ["tools", "prompts", "resources"] {
        notification(&mut client, &format!("notifications/{what}/list_changed")).await;
    }
    assert!(has_late(&list(&mut client).await));
    let prompts = client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(prompts["result"]["prompts"][0]["name"], "late_greet", "{prompts}");
}

#[tokio::test]
async fn an_empty_list_and_calls_wait_for_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new(&folder);
    let workplace = Workplace::new(&json!({ "mcpServers": { "late": entry(&gate.late()) } }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let token = json!({ "progressToken": "wait" });
    let listing = client.begin("tools/list", json!({ "_meta": token })).await.unwrap();
    let call = json!({ "name": "late_echo", "arguments": { "message": "hi" } });
    let calling = client.begin("tools/call", call).await.unwrap();
    let getting = client.begin("prompts/get", json!({ "name": "late_greet" })).await.unwrap();
    let reading = client.begin("resources/read", json!({ "uri": "file:///late" })).await.unwrap();
    waits_no_more(&mut client).await;
    let ids = [listing, calling, getting, reading];
    for aside in &client.asides {
        assert!(!ids.iter().any(|id| aside["id"] == *id), "answered too soon: {aside}");
    }
    gate.open();
    let mut answers = Vec::new();
    for id in ids {
        let seen = client.asides.iter().position(|message| message["id"] == id);
        answers.push(match seen {
            Some(place) => client.asides.remove(place),
            None => client.answer(id).await.unwrap(),
        });
    }
    assert!(has_late(answers[0]["result"]["tools"].as_array().unwrap()), "{}", answers[0]);
    assert_eq!(answers[1]["result"]["structuredContent"]["message"], "hi", "{}", answers[1]);
    assert!(answers[2]["result"]["messages"].is_array(), "{}", answers[2]);
    assert_eq!(answers[3]["result"]["contents"][0]["text"], "late has file:///late");
    let progress = notification(&mut client, "notifications/progress").await;
    assert_eq!(
        progress,
        json!({ "progressToken": "wait", "progress": 0, "total": 1, "message": "waiting for 1 of 1 servers" })
    );
}

#[tokio::test]
async fn a_call_waits_no_longer_than_its_own_limit() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new(&folder);
    let limit = json!({ "callTotalTimeoutSeconds": 0.2 });
    let servers = json!({ "notes": entry(&notes()), "late": entry_with(&gate.late(), limit) });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let calling = client.begin("tools/call", json!({ "name": "late_echo" })).await.unwrap();
    // The list waits longer, for all servers.
    assert!(!has_late(&list(&mut client).await));
    let refused = client.asides.iter().find(|message| message["id"] == calling);
    let refused = refused.unwrap_or(&Value::Null).to_string();
    let said =
        "server `late` is not connected: it is still connecting after the 0.2 s that a call has";
    assert!(refused.contains(said), "{refused}");
    let params = json!({ "uri": "toolgate://late/file:///late" });
    let refused = client.request("resources/read", params).await.unwrap();
    let said = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(said.contains("still connecting after the 0.2 s that a call has"), "{said}");
}

/// Opens a stream for the changes of lists, and gives it after its first event.
async fn listen(client: &HttpClient) -> reqwest::Response {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = client.post("subscriptions/listen", wanted).await;
    until_event(&mut stream, "notifications/subscriptions/acknowledged").await;
    stream
}

async fn until_event(stream: &mut reqwest::Response, method: &str) {
    let mut seen = String::new();
    while !seen.contains(method) {
        let chunk = within(method, stream.chunk()).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&chunk.unwrap_or_else(|| panic!("ended: {seen}"))));
    }
}

/// A legacy session that opens no stream.
async fn legacy_list(url: &str) -> String {
    let http = toolgate_http::client_builder().build().unwrap();
    let post = |session: Option<String>, body: Value| {
        let request = http.post(url).header("accept", "application/json, text/event-stream");
        let request = match session {
            Some(id) => request.header("mcp-session-id", id),
            None => request,
        };
        request.json(&body).send()
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let opened = post(None, hello).await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(Some(session.clone()), ready).await.unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    post(Some(session), list).await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn over_http_a_list_is_complete_unless_the_client_listens() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Gate::new(&folder);
    let servers = json!({ "notes": entry(&notes()), "late": entry(&gate.late()) });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let gateway = workplace.serve_http(&["--mode", "direct"]).await;
    let listener = gateway.client().named("listener");
    let mut stream = listen(&listener).await;
    let silent = gateway.client().named("silent");
    let (silent_list, url) =
        (tokio::spawn(async move { silent.list().await }), gateway.url().to_owned());
    let legacy = tokio::spawn(async move { legacy_list(&url).await });
    let prompts = gateway.client().named("prompts");
    let prompts = tokio::spawn(async move { prompts.request("prompts/list", json!({})).await });

    let soon = listener.list().await;
    assert!(!has_late(&soon) && soon.len() > 3, "what is known: {:?}", names(&soon));
    assert!(!silent_list.is_finished() && !legacy.is_finished() && !prompts.is_finished());
    gate.open();
    assert!(has_late(&within("the list", silent_list).await.unwrap()));
    let legacy = within("the list of the session", legacy).await.unwrap();
    assert!(legacy.contains("late_echo"), "{legacy}");
    let prompts = within("the prompts", prompts).await.unwrap();
    assert_eq!(prompts["prompts"][0]["name"], "late_greet", "{prompts}");
    until_event(&mut stream, "notifications/tools/list_changed").await;
    assert!(has_late(&listener.list().await));
}
