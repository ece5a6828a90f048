//! The servers that people use.

use std::{process::Command, sync::Arc};

use serde_json::json;
use toolgate_testkit::{RawClient, real_servers};
use toolgate_upstream::{CallOptions, Endpoint};

use crate::{
    questions::{Person, by},
    raw_connection::{self, Call},
    support::{Gate, NAME, command, within},
};

#[tokio::test]
async fn they_connect_and_list() {
    let servers = real_servers().unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let made = Command::new("git").args(["init", "--quiet"]).arg(&root).status().unwrap();
    assert!(made.success());
    let specs = servers.all(&root).into_iter().map(|server| {
        let args: Vec<&str> = server.entry.args.iter().map(String::as_str).collect();
        let mut spec = command(&server.entry.command, &args);
        spec.name = server.name.into();
        if let Endpoint::Stdio(endpoint) = &mut spec.endpoint {
            let memory = root.join("memory.json").display().to_string();
            endpoint.env.insert("MEMORY_FILE_PATH".into(), memory);
        }
        spec
    });
    let gate = Gate::start(specs.collect());
    for (server, tool) in [
        ("everything", "echo"),
        ("filesystem", "list_directory"),
        ("memory", "read_graph"),
        ("git", "git_status"),
        ("time", "get_current_time"),
    ] {
        gate.settled_ready(server).await;
        assert!(gate.told.tools_of(server).contains(&tool.to_owned()), "{server}");
    }
    let arguments = json!({ "message": "hello" }).as_object().cloned();
    let server = "everything".into();
    let call = gate.upstream.call(&server, "echo", arguments, CallOptions::default());
    let result = within("echo", call).await.unwrap();
    assert!(result.to_string().contains("hello"), "{result}");
    within("the end", gate.upstream.shutdown()).await;
}

#[tokio::test]
async fn a_real_server_gets_answers_to_its_input_requests() {
    let servers = real_servers().unwrap_or_else(|error| panic!("{error}"));
    let entry = servers.everything().entry;
    let args: Vec<&str> = entry.args.iter().map(String::as_str).collect();
    let gate = Gate::ready(command(&entry.command, &args)).await;
    // Some tools are listed only for clients that can be asked, a moment after the handshake.
    gate.until("the tools that ask", |gate| {
        gate.told.tools_of(NAME).contains(&"trigger-sampling-request".to_owned())
    })
    .await;
    let ada = Arc::new(Person::new("ada"));
    for (tool, arguments, answer) in [
        ("trigger-elicitation-request", json!({}), "ada"),
        ("trigger-sampling-request", json!({ "prompt": "Say hello." }), "ada"),
    ] {
        let result = gate.call_with(tool, arguments, by(&ada)).await.unwrap();
        assert!(result.to_string().contains(answer), "{tool}: {result}");
    }
    // The server also asks for the roots, by a timer of its own: maybe during a call.
    let methods: Vec<String> = ada.asked().into_iter().map(|asked| asked.method).collect();
    let of_calls: Vec<&str> =
        methods.iter().map(String::as_str).filter(|method| *method != "roots/list").collect();
    assert_eq!(of_calls, ["elicitation/create", "sampling/createMessage"]);
    within("the end", gate.upstream.shutdown()).await;
}

#[tokio::test]
async fn a_raw_connection_shows_the_same_as_the_server() {
    let servers = real_servers().unwrap_or_else(|error| panic!("{error}"));
    let entry = servers.everything().entry;
    let args: Vec<&str> = entry.args.iter().map(String::as_str).collect();
    let (connection, _heard) = raw_connection::open(&command(&entry.command, &args)).await;
    let mut raw = RawClient::spawn(&entry).unwrap();
    let greeting = raw.initialize().await.unwrap();
    assert_eq!(*connection.handshake(), greeting["result"]);
    let prompt = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let argument = json!({ "name": "department", "value": "E" });
    for (method, params) in [
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", json!({ "ref": prompt, "argument": argument })),
        ("logging/setLevel", json!({ "level": "error" })),
        ("tools/call", json!({ "name": "get-tiny-image", "arguments": {} })),
        (
            "tools/call",
            json!({ "name": "get-structured-content", "arguments": { "location": "New York" } }),
        ),
    ] {
        let expected = raw.request(method, params.clone()).await.unwrap();
        let got = connection.ask(method, params).await.unwrap();
        assert_eq!(got, expected["result"], "{method}");
    }
    within("the end", connection.close()).await;
}
