//! Ten real servers from npm and PyPI behind one gateway, over both transports.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};
use toolgate_testkit::real_servers;

use crate::http::HttpClient;
use crate::support::{Gateway, META, Workplace, call, list, text};

/// One way to talk to the gateway.
enum Connection {
    Stdio(Box<Gateway>),
    Http(HttpClient),
}

impl Connection {
    async fn list(&mut self) -> Vec<Value> {
        match self {
            Self::Stdio(client) => list(client).await,
            Self::Http(client) => client.list().await,
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Stdio(client) => call(client, tool, arguments).await,
            Self::Http(client) => client.call(tool, arguments).await,
        }
    }

    async fn call_through(&mut self, tool: &str, arguments: Value) -> Value {
        self.call("call_tool", json!({ "name": tool, "arguments": arguments })).await
    }
}

/// A query for a tool, its arguments, and a part of its result.
struct Use {
    query: &'static str,
    tool: &'static str,
    arguments: Value,
    answer: &'static str,
}

/// One use of each server.
fn uses(root: &Path) -> [Use; 10] {
    let entity =
        json!({ "name": "toolgate", "entityType": "program", "observations": ["is here"] });
    let times =
        json!({ "source_timezone": "UTC", "target_timezone": "Asia/Tokyo", "time": "12:00" });
    let thought = json!({
        "thought": "Begin.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
    });
    let uses = [
        ("echo a message back", "everything_echo", json!({ "message": "hello" }), "hello"),
        (
            "read the text of a file",
            "filesystem_read_text_file",
            json!({ "path": root.join("hello.txt") }),
            "Good morning.",
        ),
        (
            "create new entities in the knowledge graph",
            "memory_create_entities",
            json!({ "entities": [entity] }),
            "is here",
        ),
        (
            "working tree status of a git repository",
            "git_status",
            json!({ "repo_path": root }),
            "hello.txt",
        ),
        ("convert a time between timezones", "time_convert_time", times, "21:00"),
        ("think step by step", "thinking_sequentialthinking", thought, "totalThoughts"),
        ("get the current server time", "app_get_time", json!({}), "T"),
        (
            "run a snippet of code",
            "runner_run_code",
            json!({ "languageId": "javascript", "code": "console.log(6 * 7)" }),
            "42",
        ),
        (
            "evaluate a mathematical expression",
            "calculator_calculate",
            json!({ "expression": "6 * 7" }),
            "42",
        ),
        (
            "create a table in the sqlite database",
            "sqlite_create_table",
            json!({ "query": "CREATE TABLE notes (text TEXT)" }),
            "created",
        ),
    ];
    uses.map(|(query, tool, arguments, answer)| Use { query, tool, arguments, answer })
}

/// All ten, working on a folder that is a git repository with one file.
fn workplace(folder: &Path) -> Workplace {
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
    for entry in entries.values_mut() {
        // Ten interpreters that start at once on a busy machine take their time.
        entry["connectTimeoutSeconds"] = json!(80);
    }
    entries["memory"]["env"] = json!({ "MEMORY_FILE_PATH": folder.join("graph.json") });
    // It writes each snippet to the same file of the folder for temporary files, where another test's would be in its way.
    entries["runner"]["env"] = json!({ "TMPDIR": folder });
    Workplace::deferred(&Value::Object(entries))
}

/// All of them start, and list their tools.
async fn start_all(workplace: &Workplace) {
    let outcome = workplace.run(&["status", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    let status = outcome.json();
    for server in status["servers"].as_array().unwrap() {
        assert_eq!(server["state"], "ready", "{server}");
        assert!(server["tools"].as_u64().unwrap() > 0, "{server}");
    }
}

/// Finds, inspects and calls one tool of each server.
async fn use_all(client: &mut Connection, root: &Path) {
    assert_eq!(client.list().await.len(), META.len());
    for Use { query, tool, arguments, answer } in uses(root) {
        let result = client.call("search_tools", json!({ "query": query })).await;
        assert!(text(&result).contains(tool), "{query}: {}", text(&result));
        let result =
            client.call("get_tool_details", json!({ "names": [tool], "format": "json" })).await;
        let details = &result["structuredContent"]["tools"][0]["definition"];
        assert!(details["inputSchema"].is_object(), "{tool}: {result}");
        let result = client.call_through(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result.to_string().contains(answer), "{tool}: {result}");
    }
    let wrong = client.call_through("everything_echo", json!({})).await;
    assert_eq!(wrong["isError"], true);
}

#[tokio::test]
async fn all_ten_are_found_inspected_and_called_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let workplace = workplace(&root);
    start_all(&workplace).await;
    let mut client = Connection::Stdio(Box::new(workplace.connect(&[]).await));
    use_all(&mut client, &root).await;
    // An end that leaves nothing behind.
    let Connection::Stdio(mut client) = client else { unreachable!() };
    client.close_stdin();
    assert_eq!(client.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn all_ten_are_found_inspected_and_called_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let workplace = workplace(&root);
    start_all(&workplace).await;
    let gateway = workplace.serve_http(&[]).await;
    let mut client = Connection::Http(gateway.client());
    use_all(&mut client, &root).await;
    gateway.stop().await;
}
