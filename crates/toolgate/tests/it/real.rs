//! Real servers from npm and PyPI behind one gateway.

use std::process::Command;

use serde_json::{Map, Value, json};
use toolgate_testkit::real_servers;

use crate::support::{Workplace, call, call_through, list, text};

/// All five, working on a folder that is a git repository with one file.
fn workplace(folder: &std::path::Path) -> Workplace {
    let git = |arguments: &[&str]| {
        let status = Command::new("git").args(arguments).current_dir(folder).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    std::fs::write(folder.join("hello.txt"), "Good morning.").unwrap();
    let servers = real_servers().unwrap().all(folder);
    let mut entries: Map<String, Value> = servers
        .into_iter()
        .map(|server| (server.name.to_owned(), server.entry.to_json()))
        .collect();
    entries["memory"]["env"] = json!({ "MEMORY_FILE_PATH": folder.join("graph.json") });
    Workplace::deferred(&Value::Object(entries))
}

#[tokio::test]
async fn all_five_are_found_inspected_and_called() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let workplace = workplace(&root);
    let outcome = workplace.run(&["status", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    let status = outcome.json();
    for server in status["servers"].as_array().unwrap() {
        assert_eq!(server["state"], "ready", "{server}");
        assert!(server["tools"].as_u64().unwrap() > 0, "{server}");
    }

    let mut client = workplace.connect(&[]).await;
    assert_eq!(list(&mut client).await.len(), 5);
    for (query, tool) in [
        ("read the text of a file", "filesystem_read_text_file"),
        ("working tree status of a git repository", "git_git_status"),
        ("convert a time between timezones", "time_convert_time"),
        ("read the whole knowledge graph", "memory_read_graph"),
        ("echo a message back", "everything_echo"),
    ] {
        let result = call(&mut client, "search_tools", json!({ "query": query })).await;
        assert!(text(&result).contains(tool), "{query}: {}", text(&result));
        let result = call(&mut client, "get_tool_details", json!({ "names": [tool] })).await;
        let details = &result["structuredContent"]["tools"][0]["definition"];
        assert!(details["inputSchema"].is_object(), "{details}");
    }

    let path = root.join("hello.txt");
    let arguments = json!({ "path": path });
    let result = call_through(&mut client, "filesystem_read_text_file", arguments).await;
    assert!(text(&result).contains("Good morning."), "{result}");
    let result = call_through(&mut client, "git_git_status", json!({ "repo_path": root })).await;
    assert!(text(&result).contains("hello.txt"), "{result}");
    let times = json!({
        "source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00",
    });
    let result = call_through(&mut client, "time_convert_time", times).await;
    assert!(text(&result).contains("21:00"), "{result}");
    let entity =
        json!({ "name": "toolgate", "entityType": "program", "observations": ["is here"] });
    let entities = json!({ "entities": [entity] });
    call_through(&mut client, "memory_create_entities", entities).await;
    let result = call_through(&mut client, "memory_read_graph", json!({})).await;
    assert!(text(&result).contains("is here"), "{result}");
    let result = call_through(&mut client, "everything_echo", json!({ "message": "hello" })).await;
    assert!(text(&result).contains("hello"), "{result}");
    let wrong = call_through(&mut client, "everything_echo", json!({})).await;
    assert_eq!(wrong["isError"], true);

    // One call that reports progress, and an end that leaves nothing behind.
    let long = json!({ "name": "everything_trigger-long-running-operation" });
    let result = call(&mut client, "get_tool_details", json!({ "names": [long["name"]] })).await;
    assert!(result["structuredContent"]["tools"][0].is_object());
    client.close_stdin();
    assert_eq!(client.wait().await.unwrap().code(), Some(0));
}
