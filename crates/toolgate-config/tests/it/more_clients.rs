//! The files of clients that keep their servers under another key, in another shape or in YAML.

use toolgate_config::{
    CommandTime, Configuration, Format, StoredReference, StoredValueError, Surroundings,
    parse_within,
};

use crate::{environment, shown, transport};

/// The stored values of every test; none may appear in a message.
fn stored(reference: StoredReference<'_>) -> Result<String, StoredValueError> {
    match reference {
        StoredReference::File("secrets/key") => Ok("s3cr3t-file".to_owned()),
        StoredReference::Command("pass show crm") => Ok("s3cr3t-command".to_owned()),
        StoredReference::Keychain("GOOSE_KEY") | StoredReference::Input("key") => {
            Ok("s3cr3t-kept".to_owned())
        }
        StoredReference::Command("slow") => Err(StoredValueError::TimedOut),
        StoredReference::Command("broken") => Err(StoredValueError::Exited(Some(3))),
        _ => Err(StoredValueError::Missing),
    }
}

fn read(text: &str, format: Format, name: &str) -> Configuration {
    let surroundings = Surroundings {
        stored: &stored,
        workspace_folder: Some("/src/app"),
        working_folder: Some("/src/app"),
        ..Surroundings::of(&environment)
    };
    parse_within(text, format, name, &surroundings).expect("the syntax is valid")
}

/// Each server with its transport or its problem, and whether it is enabled.
fn servers(configuration: &Configuration) -> String {
    let lines = configuration.servers.iter().map(|server| {
        let off = if server.settings.enabled { "" } else { " (off)" };
        match &server.transport {
            Ok(_) => format!("{}{off}: {}\n", server.name, transport(server)),
            Err(problem) => format!("{}{off}: {}\n", server.name, problem.message),
        }
    });
    lines.collect()
}

fn json(text: &str) -> String {
    let configuration = read(text, Format::Jsonc, "settings.json");
    format!("{}{}", servers(&configuration), shown(&configuration))
}

#[test]
fn opencode_and_kilo() {
    insta::assert_snapshot!(json(r#"{
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "files": {
          "type": "local", "command": ["npx", "-y", "files", "{env:HOST}"], "enabled": true,
          "environment": { "TOKEN": "{env:TOKEN}", "KEY": "{file:secrets/key}", "NONE": "x{env:NONE}" },
          "timeout": 5000
        },
        "crm": { "type": "remote", "url": "https://crm.example/mcp", "enabled": false,
                 "headers": { "Authorization": "Bearer {env:TOKEN}" } },
        "of-the-team": { "enabled": false },
      },
    }"#), @r#"
    files: npx ["-y", "files", "crm.example"] ["KEY=s3cr3t-file", "NONE=x", "TOKEN=s3cr3t-t0ken"]
    crm (off): https://crm.example/mcp ["Authorization: Bearer s3cr3t-t0ken"]
    "#);
    insta::assert_snapshot!(json(r#"{ "mcp": { "servers": {
        "files": { "type": "local", "command": ["files"], "environment": { "A": "{env:TOKEN}" } }
    } } }"#), @r#"files: files [] ["A=s3cr3t-t0ken"]"#);
    insta::assert_snapshot!(json(r#"{ "mcp": { "a": { "type": "local", "command": [] }, "b": { "command": [1] } } }"#), @"
    a: `mcp.a.command` is empty
    b: `mcp.b.command[0]` must be a string, but is a number
    error: settings.json:1:47: `mcp.a.command` is empty
      hint: write the program first, then its arguments
    error: settings.json:1:72: `mcp.b.command[0]` must be a string, but is a number
      hint: write the value in double quotes
    ");
}

#[test]
fn crush() {
    insta::assert_snapshot!(json(r#"{ "mcp": {
      "files": { "type": "stdio", "command": "files", "args": ["$HOST"], "timeout": 120, "disabled": false,
                 "env": { "TOKEN": "$TOKEN", "KEY": "$(pass show crm)" }, "disabled_tools": ["rm"] },
      "crm": { "type": "http", "url": "https://$HOST/mcp", "headers": { "X-Key": "$(pass show crm)" }, "disabled": true }
    } }"#), @r#"
    files: files ["crm.example"] ["KEY=s3cr3t-command", "TOKEN=s3cr3t-t0ken"]
    crm (off): https://crm.example/mcp ["X-Key: s3cr3t-command"]
    "#);
}

#[test]
fn amp_kimi_fx_and_gemini() {
    insta::assert_snapshot!(json(r#"{
      "amp.mcpServers": { "files": { "command": "files", "args": ["-y"] }, "crm": { "url": "https://crm.example" } },
      "amp.notifications.enabled": false
    }"#), @r#"
    files: files ["-y"] []
    crm: https://crm.example/ []
    "#);
    insta::assert_snapshot!(json(r#"{ "mcpServers": {
      "files": { "transport": "stdio", "command": "files", "env": { "A": "1" } },
      "crm": { "transport": "http", "url": "https://crm.example", "toolTimeoutMs": 5000 }
    } }"#), @r#"
    files: files [] ["A=1"]
    crm: https://crm.example/ []
    "#);
    insta::assert_snapshot!(json(r#"{ "mcp": {
      "crm": { "type": "remote", "url": "https://crm.example", "bearer_token_env": "TOKEN" }
    } }"#), @r#"crm: https://crm.example/ ["Authorization: Bearer s3cr3t-t0ken"]"#);
    // Here the key is about something else.
    let gemini = r#"{ "mcp": { "allowed": ["a"], "serverCommand": "x" }, "mcpServers": { "a": { "command": "x" } } }"#;
    insta::assert_snapshot!(json(gemini), @"a: x [] []");
}

#[test]
fn goose() {
    let text = "\
GOOSE_PROVIDER: anthropic  # mine
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    bundled: true
  files:
    name: files
    type: stdio
    cmd: npx
    args: [\"-y\", files]
    envs:
      TOKEN: ${TOKEN}
      PORT: 80
    env_keys:
    - GOOSE_KEY
    - NOWHERE
    enabled: false
    timeout: 300
  crm:
    type: streamable_http
    uri: https://crm.example/mcp
    headers: {}
    enabled: true
";
    let configuration = read(text, Format::Yaml, "config.yaml");
    insta::assert_snapshot!(
        format!("{}{}", servers(&configuration), shown(&configuration)), @r#"
    files (off): npx ["-y", "files"] ["GOOSE_KEY=s3cr3t-kept", "PORT=80", "TOKEN=s3cr3t-t0ken"]
    crm: https://crm.example/mcp []
    warning: config.yaml:18:7: `extensions.files.env_keys[1]` names `NOWHERE`, a value that the client keeps itself
      hint: store it here too: `toolgate secret set NOWHERE`
    "#);
}

#[test]
fn continue_dev() {
    let text = "\
name: mine
version: 0.0.1
schema: v1
mcpServers:
  - name: Files of mine
    command: npx
    args:
      - -y
      - files
    env:
      KEY: ${keychain:GOOSE_KEY}
  - name: crm
    type: streamable-http
    url: https://crm.example/mcp
";
    let configuration = read(text, Format::Yaml, "mine.yaml");
    insta::assert_snapshot!(format!("{}{}", servers(&configuration), shown(&configuration)), @r#"
    Files of mine: npx ["-y", "files"] ["KEY=s3cr3t-kept"]
    crm: https://crm.example/mcp []
    "#);
}

#[test]
fn the_servers_that_claude_code_has_for_a_folder() {
    insta::assert_snapshot!(json(r#"{
      "mcpServers": { "all": { "command": "all" }, "both": { "command": "global" } },
      "projects": {
        "/src/app": { "mcpServers": { "here": { "command": "here" }, "both": { "command": "local" } }, "history": [] },
        "/src/other": { "mcpServers": { "there": { "command": "there" } } }
      }
    }"#), @"
    here: here [] []
    both: local [] []
    all: all [] []
    ");
}

#[test]
fn stored_values() {
    insta::assert_snapshot!(json(r#"{ "servers": {
      "a": { "command": "a", "args": ["${workspaceFolder}"], "env": { "K": "${input:key}", "F": "${file:secrets/key}" } },
      "b": { "url": "https://b.example", "headers": { "X": "${command:pass show crm}" } },
      "c": { "command": "c", "env": { "K": "${input:other}" } },
      "d": { "command": "d", "env": { "K": "${command:slow}", "L": "${command:broken}", "M": "${file:none}" } }
    } }"#), @r#"
    a: a ["/src/app"] ["F=s3cr3t-file", "K=s3cr3t-kept"]
    b: https://b.example/ ["X: s3cr3t-command"]
    c: `servers.c.env.K` uses `${input:other}`, which is not there
    d: `servers.d.env.K` uses `${command:slow}`, which did not end in time
    error: settings.json:4:44: `servers.c.env.K` uses `${input:other}`, which is not there
      hint: store it: `toolgate secret set other`
    error: settings.json:5:44: `servers.d.env.K` uses `${command:slow}`, which did not end in time
      hint: it must not ask anything; run it in a shell to see what it waits for
    error: settings.json:5:68: `servers.d.env.L` uses `${command:broken}`, which failed with exit code 3
      hint: run it in a shell to see why
    error: settings.json:5:94: `servers.d.env.M` uses `${file:none}`, which is not there
      hint: correct the path; a relative one starts at the folder of this file
    "#);
}

#[test]
fn commands_of_a_server_can_wait_for_its_start() {
    let text = r#"{ "mcpServers": {
      "a": { "command": "a", "args": ["-k", "${TOKEN}"], "env": { "TOKEN": "${command:slow}", "F": "${file:secrets/key}" } },
      "b": { "url": "https://b.example", "headers": { "X": "Bearer ${command:broken}" } },
      "c": { "command": "c", "cwd": "/${command:pass show crm}" },
      "d": { "command": "d" }
    } }"#;
    let surroundings = Surroundings {
        stored: &stored,
        commands: CommandTime::Start,
        ..Surroundings::of(&environment)
    };
    let read = parse_within(text, Format::Jsonc, "toolgate.json", &surroundings).unwrap();
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    insta::assert_snapshot!(servers(&read), @r#"
    a: a ["-k", "${TOKEN}"] ["F=s3cr3t-file", "TOKEN=${command:slow}"]
    b: https://b.example/ ["X: Bearer ${command:broken}"]
    c: c [] [] in /s3cr3t-command
    d: d [] []
    "#);
    let lines: Vec<Vec<&str>> = read
        .servers
        .iter()
        .map(|server| server.commands.iter().map(String::as_str).collect())
        .collect();
    assert_eq!(lines, [vec!["slow"], vec!["broken"], vec![], vec![]]);
}
