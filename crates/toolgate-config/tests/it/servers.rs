//! What is kept of a server beside what the clients' files show.

use std::time::Duration;

use toolgate_config::{LoginConfig, ServerSettings, ToolSearchConfig, Transport};

use crate::{only, read, server_problems, transport};

#[test]
fn defaults() {
    let server = only(read(r#"{ "mcpServers": { "a": { "command": "x" } } }"#));
    assert_eq!(server.settings, ServerSettings::default());
    assert_eq!(server.settings.call_idle_timeout, Duration::from_mins(1));
    let configuration = read(r#"{ "mcpServers": { "a": { "command": "x" } }, "toolSearch": {} }"#);
    assert_eq!(configuration.tool_search, ToolSearchConfig::default());
}

#[test]
fn nothing_secret_is_in_the_debug_text() {
    let configuration = read(
        r#"{ "mcpServers": {
          "a": { "command": "x", "args": ["${TOKEN}"], "env": { "A": "${TOKEN}" } },
          "b": { "url": "https://u:${TOKEN}@x.example/${TOKEN}?k=${TOKEN}",
                 "headers": { "A": "${TOKEN}" },
                 "oauth": { "clientId": "x", "clientSecret": "${TOKEN}" } }
        } }"#,
    );
    assert!(configuration.servers.iter().all(|server| server.transport.is_ok()));
    let shown = format!("{configuration:?}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn logins_and_the_older_transport() {
    let server = only(read(
        r#"{ "mcpServers": { "a": { "type": "sse", "url": "https://a.example/sse", "oauth": {
          "clientId": "me", "clientSecret": "${TOKEN}", "scopes": ["read", "write"],
          "clientMetadataUrl": "https://a.example/me.json", "redirectPort": 4000 } } } }"#,
    ));
    assert_eq!(transport(&server), "sse https://a.example/sse []");
    let oauth = &server.settings.oauth;
    assert_eq!(
        oauth.client_secret.as_ref().map(toolgate_config::Secret::expose),
        Some("s3cr3t-t0ken")
    );
    assert_eq!(oauth.scopes, ["read", "write"]);
    assert_eq!(oauth.client_metadata_url.as_deref(), Some("https://a.example/me.json"));
    assert_eq!((oauth.client_id.as_deref(), oauth.redirect_port), (Some("me"), Some(4000)));
    let text = r#"{ "mcpServers": { "a": { "url": "https://a.example", "oauth": { "scopes": "read write" } } } }"#;
    assert_eq!(only(read(text)).settings.oauth.scopes, ["read", "write"]);
    let text = r#"{ "mcpServers": { "a": { "url": "https://a.example", "oauth": true } } }"#;
    assert_eq!(only(read(text)).settings.oauth, LoginConfig::default());
}

#[test]
fn servers_keep_the_order_of_the_file() {
    let configuration = read(
        r#"{ "mcpServers": { "z": { "command": "1" }, "a": { "command": "2" }, "m": { "command": "3" } } }"#,
    );
    let names: Vec<&str> = configuration.servers.iter().map(|server| &*server.name).collect();
    assert_eq!(names, ["z", "a", "m"]);
}

#[test]
fn of_equal_keys_the_last_counts() {
    let configuration =
        read(r#"{ "mcpServers": { "a": { "command": "x", "args": ["1"], "args": ["2"] } } }"#);
    assert_eq!(transport(&configuration.servers[0]), r#"x ["2"] []"#);
}

#[test]
fn null_means_not_set() {
    let server = only(read(
        r#"{ "mcpServers": { "a": { "command": "x", "url": null, "type": null, "lazy": null } } }"#,
    ));
    assert!(matches!(server.transport, Ok(Transport::Stdio { .. })));
}

#[test]
fn names_may_be_anything_readable() {
    let server = only(read(r#"{ "mcpServers": { "Мой сервер / 2": { "command": "x" } } }"#));
    assert_eq!(server.name, "Мой сервер / 2");
}

#[test]
fn a_pattern_in_inherit_env_is_an_error() {
    for wrong in ["GITHUB_*", "*", "A B", "A=b", "", "1A"] {
        let told =
            server_problems(&format!(r#""command": "x", "inheritEnv": ["TOKEN", "{wrong}"]"#));
        assert!(told.contains("inheritEnv[1]"), "{wrong}: {told}");
        assert!(told.contains("name each variable"), "{wrong}: {told}");
    }
    assert_eq!(server_problems(r#""command": "x", "inheritEnv": ["TOKEN", "UNSET"]"#), "");
}
