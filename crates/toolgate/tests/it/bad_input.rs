//! What a person gets for a mistake: one clear sentence, the way out, an exit code that is not 0,
//! and everything else still served.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::{
    fixtures::{kit, notes, odd},
    support::{Workplace, call_through, entry, list, names},
};

/// What a command says about a configuration.
async fn shown(config: &str, arguments: &[&str]) -> String {
    Workplace::with_text(config).run(arguments).await.shown()
}

/// A configuration with one server that is good, and another one.
fn beside_a_good_one(other: &Value) -> Workplace {
    Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()), "other": other } }))
}

/// What `status` says about it; and the good server is served all the same.
async fn told(workplace: &Workplace) -> String {
    let outcome = workplace.run(&["status"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let tools = list(&mut client).await;
    assert!(names(&tools).contains(&"notes_find_notes"));
    let found = call_through(&mut client, "notes_find_notes", json!({ "words": "x" })).await;
    assert_eq!(found["structuredContent"]["words"], "x");
    outcome.shown()
}

#[tokio::test]
async fn invalid_json() {
    let broken = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" \"args\": [] }\n  }\n}\n";
    insta::assert_snapshot!(shown(broken, &["status"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:3:26: expected `,` before the next entry
      |
    3 |     "a": { "command": "x" "args": [] }
      |                          ^
    "#);
    insta::assert_snapshot!(shown("{ \"mcpServers\": {", &["search", "x"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:1:17: expected a `}` that closes this `{`
      |
    1 | { "mcpServers": {
      |                 ^
    "#);
    insta::assert_snapshot!(shown("", &["tokens"]).await, @r#"
    exit code 0
    --- stdout
     server         tools  tokens  of context
     all servers        0       0       0.0 %
     a session now      0       0       0.0 %

    A session is direct: 0 tokens fit into the 10,000 allowed.
    --- stderr
    error: toolgate.json:1:1: the file has no MCP servers
      hint: add one, such as { "mcpServers": { "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] } } }
    "#);
    insta::assert_snapshot!(shown("[]", &["config", "check"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json: the file must hold an object with an `mcpServers` key, but it holds a list
    ");
    // A server for an agent says it where the agent's log is, and nothing on stdout.
    insta::assert_snapshot!(shown("{,}", &["serve", "--stdio"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:1:2: expected a key in double quotes or `}`
      |
    1 | {,}
      |  ^
    ");
}

#[tokio::test]
async fn a_configuration_that_is_not_there() {
    let workplace = Workplace::empty();
    let outcome = workplace.run(&["status", "--config", "nowhere.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read nowhere.json: No such file or directory (os error 2)
      hint: check the path after --config
    ");
    insta::assert_snapshot!(workplace.run(&["serve"]).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no configuration; looked for toolgate.json, toolgate.jsonc, .mcp.json, ~/.config/toolgate/toolgate.json
      hint: name yours: --config FILE (a Claude, Cursor, VS Code, Codex, Gemini or Zed file works as it is)
      hint: or see toolgate at work without one: toolgate demo
    ");
    std::fs::create_dir(workplace.path().join("folder.json")).unwrap();
    let outcome = workplace.run(&["status", "--config", "folder.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read folder.json: Is a directory (os error 21)
    ");
    std::fs::write(workplace.path().join("latin.json"), [b'{', 0xe4, b'}']).unwrap();
    let outcome = workplace.run(&["status", "--config", "latin.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read latin.json: stream did not contain valid UTF-8
      hint: save the file as UTF-8
    ");
}

#[tokio::test]
async fn the_places_where_a_configuration_is_found() {
    let workplace = Workplace::empty();
    let config = json!({ "mcpServers": { "notes": entry(&notes()) } }).to_string();
    let check = async || {
        let outcome = workplace.run(&["config", "check"]).await;
        outcome.stdout.split(':').next().unwrap().to_owned()
    };
    let user = workplace.path().join(".config/toolgate");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("toolgate.json"), &config).unwrap();
    assert_eq!(check().await, "~/.config/toolgate/toolgate.json");
    for place in [".mcp.json", "toolgate.jsonc", "toolgate.json"] {
        std::fs::write(workplace.path().join(place), &config).unwrap();
        assert_eq!(check().await, place, "beats the ones before");
    }
}

#[tokio::test]
async fn unknown_keys_are_named_and_nothing_else_is_lost() {
    let mut config = json!({
        "mcpServers": { "notes": entry(&notes()) }, "toolSerach": {}, "toolSearch": { "maxResult": 3 },
    });
    config["mcpServers"]["notes"]["deferLoadin"] = json!(true);
    let workplace = Workplace::new(&config);
    let outcome = workplace.run(&["search", "look for notes", "--limit", "1"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("notes_find_notes"));
    insta::assert_snapshot!(outcome.stderr, @"
    warning: toolgate.json:9:7: `mcpServers.notes.deferLoadin` is not a known key; it is ignored
      hint: did you mean `deferLoading`?
    warning: toolgate.json:12:3: `toolSerach` is not a known key; it is ignored
      hint: did you mean `toolSearch`?
    warning: toolgate.json:14:5: `toolSearch.maxResult` is not a known key; it is ignored
      hint: did you mean `maxResults`?
    ");
}

#[tokio::test]
async fn a_command_that_is_missing() {
    let workplace = beside_a_good_one(&json!({ "command": "no-such-command-anywhere" }));
    insta::assert_snapshot!(told(&workplace).await, @"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              the command `no-such-command-anywhere` was not found; install it, or write its full path as `command`

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    ");
    let outcome = workplace.run(&["call", "other_tool"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 1
    --- stdout
    --- stderr
    error: there is no tool `other_tool`; search_tools finds those there are
    ");
    let workplace = beside_a_good_one(&json!({ "args": ["-y"] }));
    insta::assert_snapshot!(told(&workplace).await, @"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       `mcpServers.other` has neither a `command` nor a `url`; add the `command` that starts the server, or the `url` where it runs

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    error: toolgate.json:10:5: `mcpServers.other` has neither a `command` nor a `url`
      hint: add the `command` that starts the server, or the `url` where it runs
    ");
    let here = json!({ "command": "sh", "cwd": "/no/such/folder" });
    insta::assert_snapshot!(told(&beside_a_good_one(&here)).await, @"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              its working directory /no/such/folder does not exist; correct `cwd` of the server

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    ");
}

#[tokio::test]
async fn a_variable_that_is_not_set() {
    let other = json!({ "command": "x", "env": { "TOKEN": "${TOOLGATE_TEST_NOT_SET}" } });
    insta::assert_snapshot!(told(&beside_a_good_one(&other)).await, @"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       `mcpServers.other.env.TOKEN` needs the environment variable `TOOLGATE_TEST_NOT_SET`, which is not set; set `TOOLGATE_TEST_NOT_SET`, or write `${TOOLGATE_TEST_NOT_SET:-default}`

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    error: toolgate.json:13:18: `mcpServers.other.env.TOKEN` needs the environment variable `TOOLGATE_TEST_NOT_SET`, which is not set
      hint: set `TOOLGATE_TEST_NOT_SET`, or write `${TOOLGATE_TEST_NOT_SET:-default}`
    ");
}

#[tokio::test]
async fn a_wrong_url() {
    let other = json!({ "url": "localhost:3000/mcp" });
    insta::assert_snapshot!(told(&beside_a_good_one(&other)).await, @"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       `mcpServers.other.url` is not a URL that begins with `http://` or `https://`; write the whole URL, such as `https://example.com/mcp`

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    error: toolgate.json:11:14: `mcpServers.other.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    ");
}

#[tokio::test]
async fn a_port_where_nobody_listens() {
    let port = {
        // Nobody gets it again while this test runs: the system hands out others first.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let other = json!({ "url": format!("http://127.0.0.1:{port}/mcp") });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port.to_string(), "PORT"), @"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              nothing answers at http://127.0.0.1:PORT/mcp: Connection refused (os error 111); start the server, or correct its `url`

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    ");
}

#[tokio::test]
async fn a_server_that_wants_authorization_or_is_no_mcp_server() {
    use toolgate_testkit::HttpOptions;
    let options = HttpOptions { bearer: Some("right".to_owned()), ..HttpOptions::default() };
    let http = kit().with_http(options).serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let port = http.url().split([':', '/']).nth(4).unwrap().to_owned();
    let other = json!({ "url": http.url(), "headers": { "Authorization": "Bearer wrong" } });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port, "PORT"), @"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              http://127.0.0.1:PORT/mcp asks for authorization (401); add or correct the `Authorization` header under `headers` of the server

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    ");
    let other = json!({ "url": http.url().replace("/mcp", "/elsewhere") });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port, "PORT"), @"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              http://127.0.0.1:PORT/elsewhere answered HTTP 404; check `url` and `headers` of the server

    A session of all clients is direct: 231 tokens fit into the 10,000 allowed.
    --- stderr
    ");
    let right = json!({ "url": http.url(), "headers": { "Authorization": "Bearer right" } });
    let outcome = beside_a_good_one(&right).run(&["status"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[tokio::test]
async fn schemas_that_cannot_be_used() {
    insta::assert_snapshot!(told(&beside_a_good_one(&entry(&odd()))).await, @"
    exit code 1
    --- stdout
     server  state  tools  loaded  deferred  protocol    remarks
     notes   ready      4       4         0  2025-11-25
     other   ready      5       5         0  2025-11-25  tool `tool 2` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                         tool `tool 3` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                         tool `tool 4` is left out: the definition is a string, not an object
                                                         tool `no_schema` is left out: `inputSchema` is missing, not an object
                                                         tool `boolean_schema` is left out: `inputSchema` is a boolean, not an object

    A session of all clients is direct: 374 tokens fit into the 10,000 allowed.
    --- stderr
    ");
}

#[tokio::test]
async fn wrong_arguments() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let mut all = Vec::new();
    for arguments in [
        &["serve", "--mode", "direkt"][..],
        &["serach", "x"],
        &["search"],
        &["call"],
        &["tokens", "--unit", "words"],
        &["search", "x", "--limit", "many"],
        &["logs"],
    ] {
        let outcome = workplace.run(arguments).await;
        assert_eq!(outcome.code, Some(2), "{arguments:?}");
        assert_eq!(outcome.stdout, "");
        all.push(format!("$ toolgate {}\n{}", arguments.join(" "), outcome.stderr));
    }
    insta::assert_snapshot!(all.join("\n"), @"
    $ toolgate serve --mode direkt
    error: invalid value 'direkt' for '--mode <MODE>'
      [possible values: auto, direct, deferred, stable, dynamic]

      tip: a similar value exists: 'direct'

    For more information, try '--help'.

    $ toolgate serach x
    error: unrecognized subcommand 'serach'

      tip: some similar subcommands exist: 'serve', 'search'

    Usage: toolgate [OPTIONS] <COMMAND>

    For more information, try '--help'.

    $ toolgate search
    error: the following required arguments were not provided:
      <QUERY>...

    Usage: toolgate search <QUERY>...

    For more information, try '--help'.

    $ toolgate call
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolgate call <NAME> [JSON]

    For more information, try '--help'.

    $ toolgate tokens --unit words
    error: invalid value 'words' for '--unit <UNIT>'
      [possible values: tokens, characters]

    For more information, try '--help'.

    $ toolgate search x --limit many
    error: invalid value 'many' for '--limit <N>': invalid digit found in string

    For more information, try '--help'.

    $ toolgate logs
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolgate logs <NAME>

    For more information, try '--help'.
    ");
}
