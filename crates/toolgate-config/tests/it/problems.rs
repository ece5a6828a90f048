//! The texts that people see: each one sentence and the way out.

use insta::assert_snapshot;
use toolgate_config::{Problem, ProblemSeverity};

use crate::{problems, read, read_toml, server_problems, shown};

#[test]
fn a_misspelt_command() {
    assert_snapshot!(server_problems(r#""comand": "npx""#), @"
    error: toolgate.json:2:13: `mcpServers.github.comand` is not a known key, and the server has no `command`
      hint: rename `comand` to `command`
    ");
    assert_snapshot!(server_problems(r#""endpoint": "https://x.example""#), @"
    error: toolgate.json:2:13: `mcpServers.github.endpoint` is not a known key, and the server has no `url`
      hint: rename `endpoint` to `url`
    ");
}

#[test]
fn neither_command_nor_url() {
    assert_snapshot!(server_problems(r#""args": ["-y"]"#), @"
    error: toolgate.json:2:1: `mcpServers.github` has neither a `command` nor a `url`
      hint: add the `command` that starts the server, or the `url` where it runs
    ");
}

#[test]
fn both_command_and_url() {
    assert_snapshot!(server_problems(r#""command": "x", "url": "https://x.example""#), @"
    error: toolgate.json:2:1: `mcpServers.github` has both a `command` and a `url`
      hint: keep the one by which the server is reached
    ");
}

#[test]
fn unknown_keys() {
    assert_snapshot!(server_problems(r#""command": "x", "lazzy": true, "colour": "red""#), @"
    warning: toolgate.json:2:29: `mcpServers.github.lazzy` is not a known key; it is ignored
      hint: did you mean `lazy`?
    warning: toolgate.json:2:44: `mcpServers.github.colour` is not a known key; it is ignored
    ");
}

#[test]
fn unset_variables() {
    assert_snapshot!(
        server_problems(r#""command": "x", "args": ["--key", "${GITHUB_TOKEN}"]"#), @"
    error: toolgate.json:2:47: `mcpServers.github.args[1]` needs the environment variable `GITHUB_TOKEN`, which is not set
      hint: set `GITHUB_TOKEN`, or write `${GITHUB_TOKEN:-default}`
    ");
    assert_snapshot!(
        server_problems(r#""command": "x", "env": { "A": "${TOKEN}${B}", "C": "${D}" }"#), @"
    error: toolgate.json:2:43: `mcpServers.github.env.A` needs the environment variable `B`, which is not set
      hint: set `B`, or write `${B:-default}`
    error: toolgate.json:2:64: `mcpServers.github.env.C` needs the environment variable `D`, which is not set
      hint: set `D`, or write `${D:-default}`
    ");
    let codex = "[mcp_servers.a]\nurl = \"https://a.example\"\nbearer_token_env_var = \"NONE\"";
    assert_snapshot!(shown(&read_toml(codex)), @"
    error: config.toml:3:24: `mcp_servers.a.bearer_token_env_var` needs the environment variable `NONE`, which is not set
      hint: set `NONE`
    ");
}

#[test]
fn invalid_variables() {
    assert_snapshot!(server_problems(r#""command": "x", "cwd": "${workspaceFolder}""#), @"
    error: toolgate.json:2:36: `mcpServers.github.cwd` uses `${workspaceFolder}`, which only the editor it was written for knows
      hint: write the value, or `${NAME}` for an environment variable
    ");
    assert_snapshot!(server_problems(r#""command": "x", "cwd": "${A:-${B}}""#), @"
    error: toolgate.json:2:36: `mcpServers.github.cwd` has a variable within the default of another, which is not supported
      hint: write the default as plain text
    ");
    assert_snapshot!(server_problems(r#""command": "a\u0000b""#), @r#"
    error: toolgate.json:2:24: `mcpServers.github.command` contains a NUL character
      hint: remove the `\u0000`, or the character from the variable
    "#);
    assert_snapshot!(server_problems(r#""command": "x", "env": { "A": "$TOKEN" }"#), @"
    warning: toolgate.json:2:43: `mcpServers.github.env.A` looks like a variable of a shell, but is passed on as it is written
      hint: write `${NAME}` for the value of an environment variable
    ");
}

#[test]
fn wrong_urls() {
    assert_snapshot!(server_problems(r#""url": "ftp://x.example""#), @"
    error: toolgate.json:2:20: `mcpServers.github.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    ");
    assert_snapshot!(server_problems(r#""url": "x.example/mcp""#), @"
    error: toolgate.json:2:20: `mcpServers.github.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    ");
    assert_snapshot!(server_problems(r#""url": "${NOT_A_URL}""#), @"
    error: toolgate.json:2:20: `mcpServers.github.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    ");
    assert_snapshot!(server_problems(r#""url": 5"#), @"error: toolgate.json:2:20: `mcpServers.github.url` must be a string, but is a number");
    assert_snapshot!(server_problems(r#""url": """#), @"error: toolgate.json:2:20: `mcpServers.github.url` is empty");
}

#[test]
fn wrong_types() {
    assert_snapshot!(server_problems(r#""type": "carrier", "url": "https://x.example""#), @"
    error: toolgate.json:2:21: `mcpServers.github.type` must be `stdio`, `http` or `sse`
      hint: leave it out: a `command` means stdio and a `url` means http
    ");
    assert_snapshot!(server_problems(r#""type": "http", "command": "x""#), @"
    error: toolgate.json:2:21: `mcpServers.github.type` asks for a `url`, but there is only a `command`
      hint: remove `type`, or correct it
    ");
    assert_snapshot!(server_problems(r#""type": "stdio", "url": "https://x.example""#), @"
    error: toolgate.json:2:21: `mcpServers.github.type` asks for a `command`, but there is only a `url`
      hint: remove `type`, or correct it
    ");
}

#[test]
fn wrong_logins() {
    assert_snapshot!(server_problems(r#""url": "https://x.example", "oauth": "yes""#), @r#"
    error: toolgate.json:2:50: `mcpServers.github.oauth` must be an object, but is a string
      hint: write `"oauth": { "clientId": "…" }`, or leave it out
    "#);
    assert_snapshot!(server_problems(r#""url": "https://x.example", "oauth": { "clientSecret": "${TOKEN}", "clientID": "x" }"#), @"
    error: toolgate.json:2:50: `mcpServers.github.oauth` has a `clientSecret` but no `clientId`
      hint: write the `clientId` that the secret belongs to
    warning: toolgate.json:2:80: `mcpServers.github.oauth.clientID` is not a known key; it is ignored
      hint: did you mean `clientId`?
    ");
    assert_snapshot!(server_problems(r#""url": "https://x.example", "oauth": { "clientId": "x", "clientSecret": "${UNSET}", "redirectPort": 70000 }"#), @"
    error: toolgate.json:2:85: `mcpServers.github.oauth.clientSecret` needs the environment variable `UNSET`, which is not set
      hint: set `UNSET`, or write `${UNSET:-default}`
    warning: toolgate.json:2:113: `mcpServers.github.oauth.redirectPort` must be a whole number from 1 to 65,535; it is ignored
    ");
    assert_snapshot!(server_problems(r#""url": "https://x.example", "oauth": { "clientMetadataUrl": "http://x.example/", "scopes": [1] }"#), @"
    error: toolgate.json:2:73: `mcpServers.github.oauth.clientMetadataUrl` is not the `https` URL of a document
      hint: write its whole URL, such as `https://example.com/client.json`
    error: toolgate.json:2:105: `mcpServers.github.oauth.scopes[0]` must be a string, but is a number
      hint: write the value in double quotes
    ");
}

#[test]
fn wrong_commands() {
    assert_snapshot!(server_problems(r#""command": [""]"#), @"
    error: toolgate.json:2:24: `mcpServers.github.command` is empty
      hint: write the program first, then its arguments
    ");
    assert_snapshot!(server_problems(r#""command": "npx -y server""#), @"
    warning: toolgate.json:2:24: `mcpServers.github.command` has spaces, but is taken as the name of one program
      hint: split into args: write what follows the program as a list under `args`
    ");
    assert_snapshot!(server_problems(r#""command": { "args": [] }"#), @r#"
    error: toolgate.json:2:24: `mcpServers.github.command` has no `path`
      hint: write the program as a string: `"command": "…"`
    "#);
    assert_snapshot!(server_problems(r#""command": "x", "args": "-y""#), @r#"
    error: toolgate.json:2:37: `mcpServers.github.args` must be a list of strings, but is a string
      hint: write `"args": ["…", "…"]`
    "#);
    assert_snapshot!(server_problems(r#""command": "x", "args": ["--port", 80]"#), @"
    error: toolgate.json:2:48: `mcpServers.github.args[1]` must be a string, but is a number
      hint: write the value in double quotes
    ");
}

#[test]
fn wrong_variables_and_headers() {
    assert_snapshot!(server_problems(r#""command": "x", "env": ["A=1"]"#), @r#"
    error: toolgate.json:2:36: `mcpServers.github.env` must be an object, but is a list
      hint: write `"env": { "NAME": "value" }`
    "#);
    assert_snapshot!(server_problems(r#""command": "x", "env": { "A": ["1"], "B=": "2" }"#), @r#"
    error: toolgate.json:2:43: `mcpServers.github.env.A` must be a string, but is a list
    error: toolgate.json:2:50: `mcpServers.github.env["B="]` is not a valid name for an environment variable
    "#);
    assert_snapshot!(
        server_problems(r#""url": "https://x.example", "headers": { "X Y": "1" }"#), @r#"error: toolgate.json:2:54: `mcpServers.github.headers["X Y"]` is not a valid name for a header"#);
    assert_snapshot!(
        server_problems(r#""url": "https://x.example", "headers": { "X": "${BROKEN}" }"#), @"
    error: toolgate.json:2:59: `mcpServers.github.headers.X` has a line break or another control character in its value
      hint: look at the variables that it uses
    ");
}

#[test]
fn keys_written_twice() {
    assert_snapshot!(
        problems("{ \"mcpServers\": {\n\"a\": { \"command\": \"x\" },\n\"a\": { \"command\": \"y\", \"args\": [],\n\"args\": [\"z\"] } } }"), @"
    warning: toolgate.json:3:1: `mcpServers.a` is written more than once; the last one is used
      hint: remove the others
    warning: toolgate.json:4:1: `mcpServers.a.args` is written more than once; the last one is used
      hint: remove the others
    ");
    assert_snapshot!(
        problems(r#"{ "mcpServers": { "a": { "command": "x" } }, "servers": { "a": { "command": "y" } } }"#), @"error: toolgate.json:1:59: `servers.a` is ignored: a server of this name is already defined further up");
}

#[test]
fn invalid_tuning_settings_keep_their_default() {
    let body = r#""command": "x", "lazy": "yes", "connectTimeoutSeconds": 0, "prefix": "a-b",
        "maxResultBytes": 1.5, "description": 5, "timeout": "soon""#;
    assert_snapshot!(server_problems(body), @"
    warning: toolgate.json:2:37: `mcpServers.github.lazy` must be true or false, but is a string; it is ignored
    warning: toolgate.json:2:69: `mcpServers.github.connectTimeoutSeconds` must be a number from 0.1 to 86,400; it is ignored
    warning: toolgate.json:2:82: `mcpServers.github.prefix` must be at most 32 letters, digits and underscores; it is ignored
    warning: toolgate.json:3:27: `mcpServers.github.maxResultBytes` must be a whole number from 1,024 to 1,073,741,824; it is ignored
    warning: toolgate.json:3:47: `mcpServers.github.description` must be a string of at most 2000 characters; it is ignored
    warning: toolgate.json:3:61: `mcpServers.github.timeout` must be a number from 1 to 86,400,000; it is ignored
    ");
    assert!(
        read(&format!(r#"{{ "mcpServers": {{ "a": {{ {body} }} }} }}"#)).servers[0]
            .transport
            .is_ok()
    );
}

#[test]
fn invalid_restrictions_stay_strict() {
    for body in [
        r#""disabled": "yes""#,
        r#""enabled": 0"#,
        r#""excludeTools": "drop""#,
        r#""tools": { "drop": { "approval": "denied" } }"#,
        r#""tools": { "drop": "deny" }"#,
        r#""tools": true"#,
    ] {
        let text = format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x", {body} }} }} }}"#);
        assert!(read(&text).servers[0].transport.is_err(), "{body}");
    }
    assert_snapshot!(
        server_problems(r#""command": "x", "tools": { "drop": { "approval": "denied", "defer": 1 } }"#), @"
    error: toolgate.json:2:62: `mcpServers.github.tools.drop.approval` must be `allow`, `ask` or `deny`
    warning: toolgate.json:2:72: `mcpServers.github.tools.drop.defer` is not a known key; it is ignored
    ");
    assert_snapshot!(server_problems(r#""command": "x", "excludeTools": "drop""#), @r#"
    error: toolgate.json:2:45: `mcpServers.github.excludeTools` must be a list of strings, but is a string
      hint: write `"excludeTools": ["…", "…"]`
    "#);
}

#[test]
fn a_disabled_server_has_no_errors() {
    let configuration = read(
        r#"{ "mcpServers": { "a": { "command": "x", "args": ["${NONE}"], "disabled": true } } }"#,
    );
    assert!(configuration.servers[0].transport.is_err());
    assert!(
        configuration.problems.iter().all(|problem| problem.severity == ProblemSeverity::Warning)
    );
}

#[test]
fn one_bad_server_leaves_the_others() {
    let configuration = read(
        r#"{ "mcpServers": { "bad": 5, "null": null, "worse": { "command": "${NONE}" },
             "good": { "command": "x" } } }"#,
    );
    let usable: Vec<bool> =
        configuration.servers.iter().map(|server| server.transport.is_ok()).collect();
    assert_eq!(usable, [false, false, false, true]);
    let error = configuration.servers[2].transport.as_ref().expect_err("an unset variable");
    assert!(configuration.problems.contains(error));
    assert_snapshot!(shown(&configuration), @"
    error: toolgate.json:1:26: `mcpServers.bad` must be an object with a `command` or a `url`, but is a number
    error: toolgate.json:1:37: `mcpServers.null` must be an object with a `command` or a `url`, but is null
    error: toolgate.json:1:65: `mcpServers.worse.command` needs the environment variable `NONE`, which is not set
      hint: set `NONE`, or write `${NONE:-default}`
    ");
}

#[test]
fn wrong_names() {
    let long = "n".repeat(129);
    let text = format!(
        r#"{{ "mcpServers": {{ "": {{}}, "a\u001b[31m": {{}}, "{long}": {{}}, "a.b c": {{}} }} }}"#
    );
    let configuration = read(&text);
    assert_eq!(configuration.servers.len(), 1);
    assert_snapshot!(shown(&configuration).replace(&long, "n…n"), @r#"
    error: toolgate.json:1:19: `mcpServers[""]` is ignored: the name of a server must have 1 to 128 characters
    error: toolgate.json:1:27: `mcpServers["a�[31m"]` is ignored: the name of a server must not have control characters
    error: toolgate.json:1:46: `mcpServers.n…n` is ignored: the name of a server must have 1 to 128 characters
    error: toolgate.json:1:183: `mcpServers["a.b c"]` has neither a `command` nor a `url`
      hint: add the `command` that starts the server, or the `url` where it runs
    "#);
}

#[test]
fn the_top_of_the_file() {
    assert_snapshot!(problems(r#"{ "mcpServer": { "a": { "command": "x" } } }"#), @"
    error: toolgate.json:1:3: `mcpServer` is not a known key; it is ignored
      hint: did you mean `mcpServers`?
    ");
    assert_snapshot!(problems(r#"{ "mcpServers": [] }"#), @"error: toolgate.json:1:17: `mcpServers` must be an object with a key for each server, but is a list");
    assert_snapshot!(
        problems(r#"{ "mcpServers": { "a": { "command": "x" } }, "toolsearch": {}, "policy": {}, "theme": 1 }"#), @"
    warning: toolgate.json:1:46: `toolsearch` is not a known key; it is ignored
      hint: did you mean `toolSearch`?
    ");
}

#[test]
fn no_servers() {
    assert_snapshot!(problems(""), @r#"
    error: toolgate.json:1:1: the file has no MCP servers
      hint: add one, such as { "mcpServers": { "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] } } }
    "#);
    assert_snapshot!(problems(r#"{ "mcpServers": {} }"#), @r#"
    error: toolgate.json:1:1: the file has no MCP servers
      hint: add one, such as { "mcpServers": { "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] } } }
    "#);
    assert_snapshot!(problems(r#"{ "github": { "command": "x" } }"#), @"
    error: toolgate.json:1:1: the file has no MCP servers
      hint: put `github` and the other servers under a key `mcpServers`
    ");
    assert_snapshot!(
        problems(r#"{ "projects": { "/x": { "mcpServers": { "a": { "command": "x" } } } } }"#), @"
    error: toolgate.json:1:1: the file has no MCP servers
      hint: the servers under `projects` belong to one folder each: start toolgate in that folder, or copy those you want to `mcpServers` at the top of the file
    ");
    assert_snapshot!(shown(&read_toml("")), @r#"
    error: config.toml:1:1: the file has no MCP servers
      hint: add one, such as [mcp_servers.docs] with url = "https://example.com/mcp"
    "#);
}

#[test]
fn tool_search() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } }, "toolSearch": {
        "enabled": "yes", "deferred": "none", "contextWindow": 10, "thresholdPercent": 101,
        "tokenThreshold": -1, "toolThreshold": 1e3, "maxResults": 0, "keepLoadedTools": 1,
        "strategy": "vectors", "tokenCounter": "words", "maxResult": 3 } }"#;
    let configuration = read(text);
    assert_eq!(configuration.tool_search, toolgate_config::ToolSearchConfig::default());
    assert_snapshot!(shown(&configuration), @"
    warning: toolgate.json:2:20: `toolSearch.enabled` must be `auto`, `direct`, `stable`, `dynamic` or `code`, true or false; it is ignored
    warning: toolgate.json:2:39: `toolSearch.deferred` must be `stable` or `dynamic`; it is ignored
    warning: toolgate.json:2:64: `toolSearch.contextWindow` must be a whole number from 1,000 to 100,000,000; it is ignored
    warning: toolgate.json:2:88: `toolSearch.thresholdPercent` must be a number from 0 to 100; it is ignored
    warning: toolgate.json:3:27: `toolSearch.tokenThreshold` must be a whole number from 0 to 1,000,000,000; it is ignored
    warning: toolgate.json:3:48: `toolSearch.toolThreshold` must be a whole number from 0 to 1,000,000; it is ignored
    warning: toolgate.json:3:67: `toolSearch.maxResults` must be a whole number from 1 to 100; it is ignored
    warning: toolgate.json:3:89: `toolSearch.keepLoadedTools` must be true or false, but is a number; it is ignored
    warning: toolgate.json:4:21: `toolSearch.strategy` must be `hybrid`, `bm25`, `embedding`, `keyword`, `regex` or `subagent`; it is ignored
    warning: toolgate.json:4:48: `toolSearch.tokenCounter` must be `o200k` or `characters`; it is ignored
    warning: toolgate.json:4:57: `toolSearch.maxResult` is not a known key; it is ignored
      hint: did you mean `maxResults`?
    ");
    assert_snapshot!(problems(r#"{ "mcpServers": { "a": { "command": "x" } }, "toolSearch": true }"#), @r#"
    warning: toolgate.json:1:60: `toolSearch` must be an object, but is a boolean; it is ignored
      hint: to always defer tools, write `"toolSearch": { "enabled": true }`
    "#);
}

#[test]
fn an_invalid_usage_memory_is_off() {
    let configuration = read(
        r#"{ "mcpServers": { "a": { "command": "x" } }, "toolSearch": { "usageMemory": "no" } }"#,
    );
    assert!(!configuration.tool_search.usage_memory);
    assert_snapshot!(shown(&configuration), @"error: toolgate.json:1:77: `toolSearch.usageMemory` must be true or false, but is a string");
}

#[test]
fn code_mode() {
    let file = |settings: &str| {
        problems(&format!(
            r#"{{ "mcpServers": {{ "a": {{ "command": "x" }} }}, "codeMode": {settings} }}"#
        ))
    };
    assert_snapshot!(file(r#"{ "enabled": "yes", "memoryMB": 1, "maxCalls": -1, "timeoutSeconds": 0 }"#), @r"
    error: toolgate.json:1:71: `codeMode.enabled` must be true or false, but is a string
    warning: toolgate.json:1:78: `codeMode.memoryMB` is not a known key; it is ignored
      hint: did you mean `memoryMb`?
    warning: toolgate.json:1:105: `codeMode.maxCalls` must be a whole number from 0 to 1,000,000; it is ignored
    warning: toolgate.json:1:127: `codeMode.timeoutSeconds` must be a number from 0.1 to 86,400; it is ignored
    ");
    assert_snapshot!(file("\"off\""), @"error: toolgate.json:1:58: `codeMode` must be an object, but is a string; scripts are off");
    assert_snapshot!(file("false"), @"");
    assert_snapshot!(file(r#"{ "enabled": false, "timeoutSeconds": 60, "maxOutputTokens": 8000 }"#), @"");
}

#[test]
fn a_switch_for_python_means_the_embedded_one_or_that_of_the_machine() {
    let python = |value: &str| {
        let text = format!(
            "{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"a\" }} }}, \"codeMode\": {{ \"python\": {value} }} }}"
        );
        let read = crate::read(&text);
        (read.code_mode.python, read.problems.len())
    };
    assert_eq!(python("false"), ("monty".to_owned(), 0));
    assert_eq!(python("true"), ("auto".to_owned(), 0));
    assert_eq!(python("null"), ("auto".to_owned(), 0));
    assert_eq!(python("\"python3\""), ("python3".to_owned(), 0));
    // Nobody knows what was meant, so no program of the machine runs.
    assert_eq!(python("3"), ("monty".to_owned(), 1));
}

#[test]
fn a_fleet_without_a_usable_database() {
    let fleet = |text: &str| read(&format!("{{ \"mcpServers\": {{}}, \"fleet\": {text} }}"));
    assert!(read(r#"{ "mcpServers": {} }"#).fleet.is_none());
    let written = fleet(r#"{ "database": "postgresql://u:s3cr3t@h/d" }"#);
    assert!(shown(&written).contains("`fleet.database` is a secret, and must not be written here"));
    let wrong = [
        r#"{ "database": "postgresql://u:s3cr3t@h/d" }"#,
        r#"{ "secret": "${TOKEN}" }"#,
        r#"{ "database": "${TOKEN}", "secret": "${TOKEN}" }"#,
        r#"{ "database": "${TOKEN}", "advertise": "http://10.0.0.1:8443" }"#,
        r#"{ "database": "${TOKEN}", "leaseSeconds": 0 }"#,
        r#"{ "database": "${TOKEN}", "leaseSecond": 5 }"#,
        r#"{ "database": "${TOKEN}", "leaseSeconds": 5, "leaseSeconds": 7 }"#,
        "7",
    ];
    for wrong in wrong {
        let read = fleet(wrong);
        let is_named = |problem: &Problem| {
            problem.path.starts_with("fleet") && problem.severity == ProblemSeverity::Error
        };
        assert!(read.problems.iter().any(is_named), "{wrong}: {:?}", read.problems);
        // A node that keeps its records for itself is no node.
        assert!(read.fleet.is_some_and(|fleet| fleet.database.is_none()), "{wrong}");
    }
    let right = fleet(
        r#"{ "database": "${TOKEN}", "advertise": "https://10.0.0.1:8443", "leaseSeconds": 2 }"#,
    );
    assert!(!shown(&right).contains("fleet"), "{}", shown(&right));
    let right = right.fleet.unwrap();
    assert_eq!(right.database.as_ref().unwrap().expose(), "s3cr3t-t0ken");
    assert!(!format!("{right:?}").contains("s3cr3t"));
}
