//! The real servers start and list their tools.

use std::collections::HashMap;

use serde_json::json;
use toolgate_testkit::{RawClient, real_servers};

#[tokio::test]
async fn each_real_server_lists_its_tools() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let git = std::process::Command::new("git").args(["init", "--quiet"]).arg(root).status();
    assert!(git.unwrap().success());
    let graph = root.join("graph.json");
    let environment = HashMap::from([("MEMORY_FILE_PATH", graph.to_str().unwrap())]);

    let mut found = Vec::new();
    for server in real_servers().unwrap().all(root) {
        let mut client = RawClient::spawn_with(&server.entry, &environment).unwrap();
        client.initialize().await.unwrap();
        let list = client.request("tools/list", json!({})).await.unwrap();
        let tools = list["result"]["tools"].as_array();
        assert!(tools.is_some_and(|tools| !tools.is_empty()), "{}: {list}", server.name);
        found.push(server.name);
    }
    assert_eq!(
        found,
        [
            "everything",
            "filesystem",
            "memory",
            "git",
            "time",
            "thinking",
            "app",
            "runner",
            "calculator",
            "sqlite"
        ]
    );
}
