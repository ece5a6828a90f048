//! The files of other clients, as they are.

use std::time::Duration;

use crate::{only, read, read_toml, shown, transport};

#[test]
fn claude_desktop() {
    let server = only(read(
        r#"{
          "globalShortcut": "Ctrl+Space",
          "preferences": { "theme": "dark" },
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}/notes"],
              "env": { "LOG": "${LOG_LEVEL:-info}", "PORT": 8080, "DEBUG": true, "UNSET": null }
            }
          }
        }"#,
    ));
    assert_eq!(server.name, "filesystem");
    insta::assert_snapshot!(transport(&server), @r#"npx ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/notes"] ["DEBUG=true", "LOG=info", "PORT=8080"]"#);
}

#[test]
fn claude_code_with_its_other_keys() {
    let configuration = read(
        r#"{
          "numStartups": 12, "autoUpdates": true, "tipsHistory": { "a": 1, "a": 2 },
          "projects": { "/home/ada/x": { "mcpServers": { "local": { "command": "x" } } } },
          "mcpServers": {
            "docs": { "type": "http", "url": "https://${HOST}/mcp",
                      "headers": { "Authorization": "Bearer ${TOKEN}" }, "alwaysLoad": true,
                      "oauth": { "clientId": "x", "callbackPort": 8123 }, "timeout": 15000 },
            "files": { "type": "stdio", "command": "files", "args": [], "env": {} }
          }
        }"#,
    );
    assert_eq!(shown(&configuration), "");
    let [docs, files] = &configuration.servers[..] else { panic!("two servers") };
    insta::assert_snapshot!(transport(docs), @r#"https://crm.example/mcp ["Authorization: Bearer s3cr3t-t0ken"]"#);
    assert_eq!(docs.settings.defer_loading, Some(false));
    assert_eq!(docs.settings.oauth.client_id.as_deref(), Some("x"));
    assert_eq!(docs.settings.oauth.redirect_port, Some(8123));
    assert_eq!(docs.settings.call_idle_timeout, Duration::from_secs(15));
    insta::assert_snapshot!(transport(files), @"files [] []");
}

#[test]
fn the_messages_api() {
    let configuration = read(
        r#"{ "mcpServers": {
          "most": { "url": "https://a.example/mcp", "default_config": { "defer_loading": true },
                    "configs": { "find": { "defer_loading": false }, "drop": { "enabled": false } } },
          "few": { "command": "x", "default_config": { "enabled": false },
                   "configs": { "find": { "enabled": true }, "list": { "defer_loading": true } } },
          "both": { "command": "x", "deferLoading": false, "includeTools": ["a", "b"],
                    "tools": { "a": { "deferLoading": false } },
                    "default_config": { "enabled": false, "defer_loading": true },
                    "configs": { "a": { "enabled": true, "defer_loading": true }, "c": { "enabled": true } } }
        } }"#,
    );
    assert_eq!(shown(&configuration), "");
    let [most, few, both] = &configuration.servers[..] else { panic!("three servers") };
    assert_eq!(most.settings.defer_loading, Some(true));
    assert_eq!(most.settings.tools["find"].defer_loading, Some(false));
    let admitted = |server: &toolgate_config::ServerConfig| -> Vec<&str> {
        ["a", "b", "c", "find", "drop", "list"]
            .into_iter()
            .filter(|it| server.settings.admits(it))
            .collect()
    };
    assert_eq!(admitted(most), ["a", "b", "c", "find", "list"]);
    assert_eq!(admitted(few), ["find"]);
    // The settings of toolgate's own names win, and a tool is used only if both use it.
    assert_eq!(admitted(both), ["a"]);
    assert_eq!(both.settings.defer_loading, Some(false));
    assert_eq!(both.settings.tools["a"].defer_loading, Some(false));

    let wrong = read(
        r#"{ "mcpServers": {
          "a": { "command": "x", "default_config": { "enabled": "no" } },
          "b": { "command": "x", "configs": [{ "enabled": false }] },
          "c": { "command": "x", "configs": { "find": { "enabeld": false } } },
          "d": { "command": "x", "configs": { "find": { "cache_control": {} } } }
        } }"#,
    );
    insta::assert_snapshot!(shown(&wrong));
    assert!(wrong.servers[0].transport.is_err(), "a tool that should be hidden is not shown");
    assert!(wrong.servers[1].transport.is_err(), "a tool that should be hidden is not shown");
    assert!(wrong.servers[2].transport.is_err(), "a letter does not bring back a tool");
    assert!(wrong.servers[3].transport.is_ok(), "other keys are Anthropic's");
}

#[test]
fn cursor_and_cline() {
    let configuration = read(
        r#"{ "mcpServers": {
          "a": { "command": "${userHome}/bin/a", "cwd": "${env:HOME}", "disabled": true },
          "b": { "type": "streamableHttp", "url": "https://b.example/mcp", "alwaysAllow": ["x"],
                 "timeout": 1800, "disabledTools": ["drop"] },
          "_comment": "not a server"
        } }"#,
    );
    assert_eq!(shown(&configuration), "");
    let [a, b] = &configuration.servers[..] else { panic!("two servers") };
    assert!(!a.settings.enabled);
    insta::assert_snapshot!(transport(a), @"/home/ada/bin/a [] [] in /home/ada");
    assert_eq!(b.settings.call_idle_timeout, Duration::from_mins(30));
    assert_eq!(b.settings.call_total_timeout, Duration::from_mins(30));
    assert!(!b.settings.admits("drop"));
    assert!(b.settings.admits("x"));
}

#[test]
fn vs_code() {
    let text = r#"{
      "inputs": [{ "type": "promptString", "id": "key", "description": "Key", "password": true }],
      "servers": {
        "github": { "type": "http", "url": "https://api.example/mcp/", "gallery": true },
        "db": { "type": "stdio", "command": "db", "env": { "KEY": "${input:key}" } },
        "env": { "command": "e", "args": ["${env:TOKEN}"], "envFile": "${workspaceFolder}/.env" }
      }
    }"#;
    let configuration = read(text);
    let [github, db, env] = &configuration.servers[..] else { panic!("three servers") };
    insta::assert_snapshot!(transport(github), @"https://api.example/mcp/ []");
    assert!(db.transport.is_err());
    assert!(env.transport.is_err());
    insta::assert_snapshot!(shown(&configuration), @"
    error: toolgate.json:5:67: `servers.db.env.KEY` uses `${input:key}`, which cannot be read here
      hint: store it: `toolgate secret set key`
    error: toolgate.json:6:71: `servers.env.envFile` uses `${workspaceFolder}`, which only the editor it was written for knows
      hint: write the value, or `${NAME}` for an environment variable
    ");

    let settings = format!(r#"{{ "editor.fontSize": 12, "mcp": {text} }}"#);
    assert_eq!(read(&settings).servers.len(), 3);
}

#[test]
fn windsurf() {
    let server = only(read(
        r#"{ "mcpServers": { "figma": { "serverUrl": "https://figma.example/mcp",
             "headers": { "API_KEY": "${env:TOKEN}" } } } }"#,
    ));
    insta::assert_snapshot!(transport(&server), @r#"https://figma.example/mcp ["API_KEY: s3cr3t-t0ken"]"#);
}

#[test]
fn gemini_cli() {
    let configuration = read(
        r#"{ "theme": "GitHub", "mcp": { "allowed": ["a"] }, "mcpServers": {
          "a": { "httpUrl": "https://a.example/mcp", "timeout": 5000, "trust": true,
                 "includeTools": ["x", "y"], "excludeTools": ["y"] },
          "b": { "url": "https://b.example/sse" },
          "c": { "url": "https://c.example/mcp", "type": "http" }
        } }"#,
    );
    let [a, b, c] = &configuration.servers[..] else { panic!("three servers") };
    insta::assert_snapshot!(transport(a), @"https://a.example/mcp []");
    let admitted = ["x", "y", "z"].map(|tool| a.settings.admits(tool));
    assert_eq!(admitted, [true, false, false]);
    insta::assert_snapshot!(transport(b), @"sse https://b.example/sse []");
    insta::assert_snapshot!(transport(c), @"https://c.example/mcp []");
    assert_eq!(shown(&configuration), "");
}

#[test]
fn codex() {
    let configuration = read_toml(
        r#"
        model = "o9"

        [mcp_servers.zulu]
        command = "docs-server"
        args = ["--port", "4000"]
        env = { "API_KEY" = "value" }
        env_vars = ["HOME", "NOT_SET", { name = "TOKEN", source = "local" }]
        startup_timeout_sec = 20
        tool_timeout_sec = 45.5

        [mcp_servers.zulu.tools.search]
        approval_mode = "approve"

        [mcp_servers.alpha]
        url = "https://alpha.example/mcp"
        bearer_token_env_var = "TOKEN"
        http_headers = { "X-Region" = "eu" }
        env_http_headers = { "X-Host" = "HOST" }
        enabled_tools = ["open"]
        enabled = false
        "#,
    );
    assert_eq!(shown(&configuration), "");
    let [zulu, alpha] = &configuration.servers[..] else { panic!("two servers") };
    assert_eq!([zulu.name.as_str(), alpha.name.as_str()], ["zulu", "alpha"], "the file's order");
    insta::assert_snapshot!(transport(zulu), @r#"docs-server ["--port", "4000"] ["API_KEY=value", "HOME=/home/ada", "TOKEN=s3cr3t-t0ken"]"#);
    assert_eq!(zulu.settings.connect_timeout, Duration::from_secs(20));
    assert_eq!(zulu.settings.call_idle_timeout, Duration::from_millis(45_500));
    insta::assert_snapshot!(transport(alpha), @r#"https://alpha.example/mcp ["Authorization: Bearer s3cr3t-t0ken", "X-Host: crm.example", "X-Region: eu"]"#);
    assert!(!alpha.settings.enabled);
    assert!(!alpha.settings.admits("close"));
}

#[test]
fn zed() {
    let configuration = read(
        r#"{
          // Zed's settings have comments.
          "buffer_font_size": 14,
          "context_servers": {
            "nested": { "source": "custom",
                        "command": { "path": "run", "args": ["-v"], "env": { "A": "1" } } },
            "flat": { "source": "custom", "command": "run", "args": [], "env": null },
            "extension": { "source": "extension", "enabled": true, "settings": { "key": "x" } },
          },
        }"#,
    );
    let [nested, flat, extension] = &configuration.servers[..] else { panic!("three servers") };
    insta::assert_snapshot!(transport(nested), @r#"run ["-v"] ["A=1"]"#);
    insta::assert_snapshot!(transport(flat), @"run [] []");
    assert!(extension.transport.is_err());
    insta::assert_snapshot!(shown(&configuration), @"
    error: toolgate.json:8:13: `context_servers.extension` has neither a `command` nor a `url`
      hint: the server comes from an extension of the editor; write the `command` that it runs
    ");
}

#[test]
fn github_copilot() {
    let configuration = read(
        r#"{ "mcpServers": {
          "all": { "type": "local", "command": "x", "tools": ["*"] },
          "some": { "type": "local", "command": "x", "tools": ["read"] }
        } }"#,
    );
    assert_eq!(shown(&configuration), "");
    let [all, some] = &configuration.servers[..] else { panic!("two servers") };
    assert!(all.settings.admits("anything"));
    assert!(some.settings.admits("read") && !some.settings.admits("write"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a snapshot of everything")]
fn toolgate_itself() {
    let configuration = read(
        r#"{
          "$schema": "./toolgate.schema.json",
          "mcpServers": {
            "files": {
              "command": "files", "prefix": "", "description": "Notes", "deferLoading": true,
              "lazy": true, "connectTimeoutSeconds": 5, "callIdleTimeoutSeconds": 0.5,
              "callTotalTimeoutSeconds": 90, "maxResultBytes": 2048, "validateArguments": false,
              "tools": { "write_file": { "approval": "ask", "deferLoading": false } },
            },
          },
          "toolSearch": { "enabled": true, "deferred": "dynamic", "contextWindow": 128000,
            "thresholdPercent": 2.5, "tokenThreshold": 10000, "toolThreshold": 15, "maxResults": 8,
            "keepLoadedTools": false, "instructionsBudget": 200, "strategy": "hybrid", "usageMemory": false,
            "tokenCounter": "characters" },
        }"#,
    );
    insta::assert_debug_snapshot!(configuration.tool_search, @"
    ToolSearchConfig {
        enabled: Auto,
        deferred: Dynamic,
        context_window: 128000,
        threshold_percent: 2.5,
        token_threshold: Some(
            10000,
        ),
        tool_threshold: Some(
            15,
        ),
        max_results: 8,
        keep_loaded_tools: false,
        instructions_budget: 200,
        strategy: Hybrid,
        usage_memory: false,
        groups: false,
        token_counter: Characters,
        subagent: None,
        embeddings: None,
    }
    ");
    let server = only(configuration);
    insta::assert_debug_snapshot!(server, @r#"
    ServerConfig {
        name: "files",
        transport: Ok(
            Stdio {
                command: "files",
                args: [0 arguments],
                env: {},
                cwd: None,
            },
        ),
        commands: {},
        settings: ServerSettings {
            env_file: None,
            enabled: true,
            auth: Shared,
            oauth: LoginConfig {
                client_id: None,
                client_secret: None,
                client_metadata_url: None,
                scopes: [],
                grant: Person,
                private_key: None,
                subject_token: None,
                subject_token_file: None,
                subject_token_type: None,
                idp_token_endpoint: None,
                idp_client_id: None,
                idp_client_secret: None,
                redirect_port: None,
            },
            prefix: Some(
                "",
            ),
            description: Some(
                "Notes",
            ),
            defer_loading: Some(
                true,
            ),
            lazy: true,
            idle_timeout: Some(
                1800s,
            ),
            instances: Auto,
            protocol: Newest,
            fleet: PerNode,
            connect_timeout: 5s,
            call_idle_timeout: 500ms,
            call_total_timeout: 90s,
            max_result_bytes: 2048,
            validate_arguments: false,
            include_tools: None,
            exclude_tools: {},
            tools: {
                "write_file": ToolConfig {
                    defer_loading: Some(
                        false,
                    ),
                    validate_arguments: None,
                    approval: Some(
                        Ask,
                    ),
                    labels: None,
                    allowed_callers: [],
                },
            },
            labels: {},
            tell_caller: false,
            trust: Unknown,
        },
        place: ServerPlace {
            source: "toolgate.json",
            path: "mcpServers.files",
            position: SourcePosition {
                line: 4,
                column: 13,
            },
        },
    }
    "#);
}

#[test]
fn the_variables_of_a_server_are_meant_before_those_of_the_environment() {
    let configuration = read(
        r#"{ "mcpServers": {
          "a": { "command": "${PROGRAM}", "args": ["Authorization:${AUTH_HEADER}", "${TOKEN}"],
                 "env": { "AUTH_HEADER": "Bearer abc", "PROGRAM": "server", "TOKEN": "its own" } },
          "b": { "command": "server", "args": ["${TOKEN}"] }
        } }"#,
    );
    let [a, b] = &configuration.servers[..] else { panic!("two servers") };
    insta::assert_snapshot!(transport(a), @r#"server ["Authorization:${AUTH_HEADER}", "${TOKEN}"] ["AUTH_HEADER=Bearer abc", "PROGRAM=server", "TOKEN=its own"]"#);
    insta::assert_snapshot!(transport(b), @r#"server ["s3cr3t-t0ken"] []"#);
    assert!(configuration.problems.is_empty());
}

#[test]
fn a_server_inherits_the_variables_that_it_names() {
    let configuration = read(
        r#"{ "mcpServers": {
          "named": { "command": "server", "inheritEnv": ["TOKEN", "NOT_SET"] },
          "shell": { "command": "/bin/sh", "args": ["-c", "exec server $TOKEN $HOME $NOT_SET"] }
        } }"#,
    );
    let [named, _] = &configuration.servers[..] else { panic!("two servers") };
    insta::assert_snapshot!(transport(named), @r#"server [] ["TOKEN=s3cr3t-t0ken"]"#);
    insta::assert_snapshot!(shown(&configuration), @r#"
    warning: toolgate.json:3:52: `mcpServers.shell.args` use `$TOKEN`, a variable that the server does not get
      hint: add `"inheritEnv": ["TOKEN"]` to the server
    "#);
}
