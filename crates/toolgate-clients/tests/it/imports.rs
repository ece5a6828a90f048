use std::path::Path;

use serde_json::{Value, json};
use toolgate_clients::{Client, identity, imported, is_toolgate};
use toolgate_config::Format;

fn entries(id: &str, text: &str, format: Format) -> Value {
    let client = Client::named(id).unwrap();
    let container: Vec<String> = client.container.iter().map(ToString::to_string).collect();
    let servers = imported(client, text, format, &container, Some(Path::new("/src/app"))).unwrap();
    servers
        .into_iter()
        .map(|it| (it.name, json!([it.enabled, it.entry])))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn entries_of_all_shapes_become_ours() {
    let opencode = r#"{ "mcp": { "a": { "type": "local", "command": ["npx", "a"], "environment": { "K": "{env:K}" }, "enabled": false },
        "b": { "type": "remote", "url": "https://b.example", "headers": { "X": "{file:~/k}" } }, "c": { "enabled": false } } }"#;
    assert_eq!(
        entries("opencode", opencode, Format::Jsonc),
        json!({
            "a": [false, { "command": "npx", "args": ["a"], "env": { "K": "${K:-}" } }],
            "b": [true, { "url": "https://b.example", "headers": { "X": "${file:~/k}" } }],
        })
    );
    let codex = "[mcp_servers.a]\nurl = \"https://a.example\"\nbearer_token_env_var = \"T\"\nenabled_tools = [\"x\"]\n[mcp_servers.b]\ncommand = \"b\"\nstartup_timeout_sec = 20\n";
    assert_eq!(
        entries("codex", codex, Format::Toml),
        json!({
            "a": [true, { "url": "https://a.example", "headers": { "Authorization": "Bearer ${T}" }, "enabled_tools": ["x"] }],
            "b": [true, { "command": "b", "startup_timeout_sec": 20 }],
        })
    );
    let goose = "extensions:\n  developer:\n    type: builtin\n  a:\n    cmd: a\n    envs: {B: '1'}\n    env_keys: [KEY]\n    type: stdio\n  c:\n    type: sse\n    uri: https://c.example\n";
    assert_eq!(
        entries("goose", goose, Format::Yaml),
        json!({
            "a": [true, { "command": "a", "env": { "B": "1", "KEY": "${keychain:KEY}" } }],
            "c": [true, { "type": "sse", "url": "https://c.example" }],
        })
    );
    let vscode = r#"{ "inputs": [{ "id": "key" }], "servers": { "a": { "type": "stdio", "command": "a", "cwd": "${workspaceFolder}/x",
        "env": { "K": "${input:key}" } } } }"#;
    assert_eq!(
        entries("vscode", vscode, Format::Jsonc),
        json!({
            "a": [true, { "command": "a", "env": { "K": "${keychain:key}" }, "cwd": "/src/app/x" }],
        })
    );
    let gemini = r#"{ "mcpServers": { "a": { "url": "https://a.example" }, "b": { "httpUrl": "https://b.example" } } }"#;
    assert_eq!(
        entries("gemini", gemini, Format::Jsonc),
        json!({
            "a": [true, { "type": "sse", "url": "https://a.example" }], "b": [true, { "url": "https://b.example" }],
        })
    );
    let crush = r#"{ "mcp": { "a": { "type": "stdio", "command": "a", "env": { "K": "$(pass show k)", "L": "$L" }, "disabled": true } } }"#;
    assert_eq!(
        entries("crush", crush, Format::Jsonc),
        json!({
            "a": [false, { "command": "a", "env": { "K": "${command:pass show k}", "L": "${L}" } }],
        })
    );
}

#[test]
fn what_a_server_is_does_not_depend_on_its_name() {
    let of = |entry: Value| {
        let resolve = |text: &str| text.replace("${keychain:a/b}", "hunter2");
        identity(entry.as_object().unwrap(), &resolve)
    };
    assert_eq!(
        of(json!({ "command": "x", "args": ["--key", "hunter2"] })),
        of(json!({ "command": "x", "args": ["--key", "${keychain:a/b}"], "env": {} }))
    );
    assert_eq!(
        of(json!({ "url": "https://a.example/" })),
        of(json!({ "url": "https://a.example" }))
    );
    assert_ne!(of(json!({ "command": "x", "args": ["a"] })), of(json!({ "command": "x" })));
    let own = |name: &str, entry: Value| {
        is_toolgate(entry.as_object().unwrap(), name, Path::new("/opt/gate"))
    };
    assert!(own("x", json!({ "command": "/usr/bin/toolgate", "args": ["serve"] })));
    assert!(own("x", json!({ "command": "/opt/gate", "args": ["serve", "--stdio"] })));
    assert!(own("toolgate", json!({ "url": "http://127.0.0.1:8808/mcp" })));
    assert!(!own("crm", json!({ "url": "http://127.0.0.1:8808/mcp" })));
    assert!(!own("x", json!({ "command": "npx", "args": ["serve"] })));
}
