use std::path::Path;

use serde_json::{Value, json};
use toolgate_clients::{Client, OwnProgram, identity, imported, is_toolgate};
use toolgate_config::Format;

fn entries(id: &str, text: &str, format: Format) -> Value {
    let client = Client::named(id).unwrap();
    let container: Vec<String> = client.container.iter().map(ToString::to_string).collect();
    let servers = imported(
        client,
        text,
        format,
        &container,
        Path::new("/etc/ada"),
        Some(Path::new("/src/app")),
    )
    .unwrap();
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
fn paths_that_start_at_the_file_are_whole_and_logins_are_ours() {
    let opencode = r#"{ "mcp": { "a": { "type": "remote", "url": "https://a.example", "headers": { "X": "{file:./k} {file:l}" },
        "oauth": { "clientId": "{env:CID}", "scope": "read write" } } } }"#;
    assert_eq!(
        entries("opencode", opencode, Format::Jsonc),
        json!({
            "a": [true, { "url": "https://a.example", "headers": { "X": "${file:/etc/ada/k} ${file:/etc/ada/l}" },
                "oauth": { "clientId": "${CID:-}", "scopes": "read write" } }],
        })
    );
    let vscode = r#"{ "servers": { "a": { "command": "a", "envFile": ".env" } } }"#;
    assert_eq!(
        entries("vscode", vscode, Format::Jsonc),
        json!({ "a": [true, { "command": "a", "envFile": "/src/app/.env" }] })
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
        let own = OwnProgram { program: "/opt/gate".into(), ports: vec![8808] };
        is_toolgate(entry.as_object().unwrap(), name, &own)
    };
    assert!(own("x", json!({ "command": "/usr/bin/toolgate", "args": ["serve"] })));
    assert!(own(
        "x",
        json!({ "command": "npx", "args": ["-y", "toolgate@1", "serve", "--stdio"] })
    ));
    assert!(own(
        "x",
        json!({ "command": "sh", "args": ["-c", "exec /opt/toolgate serve --stdio"] })
    ));
    assert!(!own("x", json!({ "command": "files", "args": ["/src/toolgate"] })));
    assert!(own("toolgate", json!({ "url": "http://127.0.0.1:8808/mcp" })));
    assert!(own("crm", json!({ "url": "http://localhost:8808/mcp" })));
    assert!(!own("crm", json!({ "url": "http://127.0.0.1:8809/mcp" })));
    assert!(!own("crm", json!({ "url": "https://x.example:8808/mcp" })));
    assert!(!own("x", json!({ "command": "npx", "args": ["serve"] })));
}

#[cfg(unix)]
#[test]
fn toolgate_is_recognised_behind_links_and_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("gate"), [0x7f, b'E', b'L', b'F']).unwrap();
    std::os::unix::fs::symlink(path("gate"), path("tg")).unwrap();
    std::fs::hard_link(path("gate"), path("hard")).unwrap();
    std::fs::write(path("wrap.sh"), "#!/bin/sh\nexec toolgate serve --stdio\n").unwrap();
    std::fs::write(path("other.sh"), "#!/bin/sh\nexec server\n").unwrap();
    let own = OwnProgram { program: path("gate"), ports: Vec::new() };
    for (name, expected) in [("tg", true), ("hard", true), ("wrap.sh", true), ("other.sh", false)] {
        let entry = json!({ "command": path(name) });
        assert_eq!(is_toolgate(entry.as_object().unwrap(), "x", &own), expected, "{name}");
        let entry = json!({ "command": "sh", "args": [path(name)] });
        let is_script = name == "wrap.sh";
        assert_eq!(is_toolgate(entry.as_object().unwrap(), "x", &own), is_script, "{name}");
    }
}

#[test]
fn servers_that_a_client_does_not_use_are_off_and_defaults_are_kept() {
    let gemini = r#"{ "mcpServers": { "a": { "command": "a" }, "b": { "command": "b" }, "c": { "command": "c" } },
        "mcp": { "excluded": ["a"], "allowed": ["a", "b"] } }"#;
    let all = entries("gemini", gemini, Format::Jsonc);
    assert_eq!(
        (&all["a"][0], &all["b"][0], &all["c"][0]),
        (&json!(false), &json!(true), &json!(false))
    );
    let vscode = r#"{ "inputs": [{ "id": "region", "type": "pickString", "default": "eu" }, { "id": "key", "default": "x", "password": true }],
        "servers": { "a": { "command": "a", "env": { "R": "${input:region}", "K": "${input:key}" } } } }"#;
    assert_eq!(
        entries("vscode", vscode, Format::Jsonc)["a"][1]["env"],
        json!({ "R": "eu", "K": "${keychain:key}" })
    );
}
