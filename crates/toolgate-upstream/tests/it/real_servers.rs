//! The servers that people use.

use std::process::Command;

use serde_json::json;
use toolgate_testkit::real_servers;
use toolgate_upstream::{CallOptions, Endpoint, StateKind};

use crate::support::{Gate, command, within};

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
    within("the end of all attempts", gate.upstream.all_settled()).await;
    for (server, tool) in [
        ("everything", "echo"),
        ("filesystem", "list_directory"),
        ("memory", "read_graph"),
        ("git", "git_status"),
        ("time", "get_current_time"),
    ] {
        let state = gate.state(server);
        assert_eq!(state.kind, StateKind::Ready, "{server}: {state:?}");
        assert!(gate.told.tools_of(server).contains(&tool.to_owned()), "{server}");
    }
    let arguments = json!({ "message": "hello" }).as_object().cloned();
    let server = "everything".into();
    let call = gate.upstream.call(&server, "echo", arguments, CallOptions::default());
    let result = within("echo", call).await.unwrap();
    assert!(result.to_string().contains("hello"), "{result}");
    within("the end", gate.upstream.shutdown()).await;
}
