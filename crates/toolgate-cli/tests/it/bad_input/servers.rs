//! Servers that cannot be used, each beside a good one.

use std::net::TcpListener;

use serde_json::{Value, json};
use toolgate_testkit::HttpOptions;

use crate::{
    fixtures::{kit, notes, odd},
    support::{Workplace, call_through, entry, list, names},
};

/// A configuration with one server that is good, and another one.
fn beside_a_good_one(other: &Value) -> Workplace {
    Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()), "other": other } }))
}

/// The output of `status`. The good server is still served.
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
async fn a_command_that_is_missing() {
    let workplace = beside_a_good_one(&json!({ "command": "no-such-command-anywhere" }));
    insta::assert_snapshot!(told(&workplace).await, @r#"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              the command `no-such-command-anywhere` was not found; install it, or write its full path as `command`

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let outcome = workplace.run(&["call", "other_tool"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 1
    --- stdout
    --- stderr
    error: there is no tool `other_tool`; a search finds those there are
    Not connected: other (the command `no-such-command-anywhere` was not found).
    ");
    let workplace = beside_a_good_one(&json!({ "args": ["-y"] }));
    insta::assert_snapshot!(told(&workplace).await, @r#"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       toolgate.json:10:5: `mcpServers.other` has neither a `command` nor a `url`; add the `command` that starts the server, or the `url` where it runs

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            62       686  now, recommended
     stable                6          729            62       791
     dynamic               6          737            62       799
     code                  5          664            50       714

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 455 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let here = json!({ "command": "sh", "cwd": "/no/such/folder" });
    insta::assert_snapshot!(told(&beside_a_good_one(&here)).await, @r#"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              its working directory /no/such/folder does not exist; correct `cwd` of the server

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_variable_that_is_not_set() {
    let other = json!({ "command": "x", "env": { "TOKEN": "${TOOLGATE_TEST_NOT_SET}" } });
    insta::assert_snapshot!(told(&beside_a_good_one(&other)).await, @r#"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       toolgate.json:13:18: `mcpServers.other.env.TOKEN` needs the environment variable `TOOLGATE_TEST_NOT_SET`, which is not set; set `TOOLGATE_TEST_NOT_SET`, or write `${TOOLGATE_TEST_NOT_SET:-default}`

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            62       686  now, recommended
     stable                6          729            62       791
     dynamic               6          737            62       799
     code                  5          664            50       714

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 455 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_wrong_url() {
    let other = json!({ "url": "localhost:3000/mcp" });
    insta::assert_snapshot!(told(&beside_a_good_one(&other)).await, @r#"
    exit code 1
    --- stdout
     server  state     tools  loaded  deferred  protocol    remarks
     notes   ready         4       4         0  2025-11-25
     other   unusable                                       toolgate.json:11:14: `mcpServers.other.url` is not a URL that begins with `http://` or `https://`; write the whole URL, such as `https://example.com/mcp`

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            62       686  now, recommended
     stable                6          729            62       791
     dynamic               6          737            62       799
     code                  5          664            50       714

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 455 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_closed_port() {
    let port = {
        // The system does not reuse the port soon.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let other = json!({ "url": format!("http://127.0.0.1:{port}/mcp") });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port.to_string(), "PORT"), @r#"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              nothing answers at http://127.0.0.1:PORT/mcp: Connection refused (os error 111); start the server, or correct its `url`

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_server_that_requires_a_login_and_a_web_server() {
    let options = HttpOptions { bearer: Some("right".to_owned()), ..HttpOptions::default() };
    let http = kit().with_http(options).serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let port = http.url().split([':', '/']).nth(4).unwrap().to_owned();
    let other = json!({ "url": http.url(), "headers": { "Authorization": "Bearer wrong" } });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port, "PORT"), @r#"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              http://127.0.0.1:PORT/mcp asks for authorization (401); add or correct the `Authorization` header under `headers` of the server

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let other = json!({ "url": http.url().replace("/mcp", "/elsewhere") });
    let said = told(&beside_a_good_one(&other)).await;
    insta::assert_snapshot!(said.replace(&port, "PORT"), @r#"
    exit code 1
    --- stdout
     server  state   tools  loaded  deferred  protocol    remarks
     notes   ready       4       4         0  2025-11-25
     other   failed      0       0         0              http://127.0.0.1:PORT/elsewhere answered HTTP 404; check `url` and `headers` of the server

    A session of all clients is direct: 620 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let right = json!({ "url": http.url(), "headers": { "Authorization": "Bearer right" } });
    let outcome = beside_a_good_one(&right).run(&["status"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[tokio::test]
async fn schemas_that_cannot_be_used() {
    insta::assert_snapshot!(told(&beside_a_good_one(&entry(&odd()))).await, @r#"
    exit code 1
    --- stdout
     server  state  tools  loaded  deferred  protocol    remarks
     notes   ready      4       4         0  2025-11-25
     other   ready      5       5         0  2025-11-25  tool `#2` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                         tool `#3` is left out: `name` is missing or not a non-empty string of at most 512 bytes
                                                         tool `#4` is left out: the definition is a string, not an object
                                                         tool `no_schema` is left out: `inputSchema` is missing, not an object
                                                         tool `boolean_schema` is left out: `inputSchema` is a boolean, not an object
                                                         the arguments of `other_invalid_pattern` cannot be checked, because its schema is broken ("([unclosed" is not a "regex"); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked
                                                         the arguments of `other_dangling_reference` cannot be checked, because its schema is broken (Pointer '/$defs/absent' does not exist); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked

    A session of all clients is direct: 763 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      9          374             0       374
     direct               12          785            64       849  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because 763 tokens fit into the 10,000 allowed, and no search is needed.
    Code costs 133 less: tools are searched for first, and called by scripts.
    Without toolgate a session costs 475 less, and has no scripts, no search and no policy.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_schema_that_does_not_compile() {
    let workplace = beside_a_good_one(&entry(&odd()));
    let outcome = workplace.run(&["call", "other_invalid_pattern", "-a", "value=x"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 1
    --- stdout
    --- stderr
    error: the arguments of `other_invalid_pattern` cannot be checked, because its schema is broken ("([unclosed" is not a "regex"); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked
    "#);
}

#[tokio::test]
async fn costs_of_servers_that_did_not_connect() {
    let workplace = beside_a_good_one(&json!({ "command": "no-such-command-anywhere" }));
    insta::assert_snapshot!(workplace.run(&["tokens"]).await.shown(), @r#"
    exit code 1
    --- stdout
     server       tools  tokens  of context
     notes            4     231       0.1 %
     other            0       0       0.0 %
     all servers      4     231       0.1 %

     a session         tools  definitions  instructions  together
     without toolgate      4          231             0       231
     direct                7          624            64       688  now, recommended
     stable                6          729            64       793
     dynamic               6          737            64       801
     code                  5          664            52       716

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    Without toolgate a session costs 457 less, and has no scripts, no search and no policy.
    A session now is direct: 620 tokens fit into the 10,000 allowed.
    Counted: name, description and input schema of each listed tool, and the instructions of the handshake.
    --- stderr
    error: server `other` is not counted: the command `no-such-command-anywhere` was not found
      hint: install it, or write its full path as `command`
    "#);
}
