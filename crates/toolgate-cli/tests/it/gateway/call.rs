//! `call_tool`: arguments in, the server's own result out.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Faults, Fixture, HttpAnswers, HttpOptions, RawClient};

use crate::{
    fixtures::{kit, notes, odd},
    support::{Workplace, call, call_through, entry, entry_with, text},
};

fn workplace() -> Workplace {
    Workplace::deferred(&json!({ "kit": entry(&kit()), "notes": entry(&notes()) }))
}

/// What the same tool answers without a gateway.
async fn directly(fixture: &Fixture, tool: &str) -> Value {
    let mut client = RawClient::spawn(&fixture.entry().unwrap()).unwrap();
    client.initialize().await.unwrap();
    call(&mut client, tool, json!({})).await
}

#[tokio::test]
async fn every_kind_of_content_arrives_whole() {
    let mut client = workplace().connect(&[]).await;
    let media = call_through(&mut client, "kit_media", json!({})).await;
    let mut sent = directly(&kit(), "media").await;
    // Links lead to their owner; all else is as it was sent.
    sent["content"][3]["uri"] = json!("toolgate://kit/fixture://report");
    sent["content"][4]["resource"]["uri"] = json!("toolgate://kit/fixture://note");
    assert_eq!(media, sent);
    assert_eq!(media["content"].as_array().unwrap().len(), 6, "the fixture has each kind");
    let failure = call_through(&mut client, "kit_fail", json!({ "message": "No luck." })).await;
    let expected = json!({ "content": [{ "type": "text", "text": "No luck." }], "isError": true });
    assert_eq!(failure, expected);
    let sum = call_through(&mut client, "kit_add", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum["structuredContent"], json!({ "sum": 42 }));
    assert_eq!(text(&sum), r#"{"sum":42}"#);
}

#[tokio::test]
async fn results_that_no_sdk_would_accept_arrive_whole() {
    let odd_results = [
        json!({ "content": [], "_meta": { "a/b": [1, null] }, "x-cost": 1.50, "isError": false }),
        json!({ "content": [{ "type": "resource_link", "uri": "u:1", "name": "n", "size": 12.0 }] }),
        json!({ "content": [{ "type": "text", "text": "t", "annotations": { "audience": ["system"] } }] }),
        json!({ "structuredContent": [1, 2, { "deep": { "er": null } }], "content": [] }),
        json!({ "structuredContent": { "only": "data" } }),
        json!({ "content": "a string", "isError": true }),
        json!({ "toolResult": { "from": "2024" } }),
        json!({}),
        json!({ "content": null, "structuredContent": "text", "isError": "yes" }),
    ];
    let mut fixture = Fixture::new("odd");
    for (index, result) in odd_results.iter().enumerate() {
        let name = format!("result{index}");
        fixture = fixture
            .with_tool(json!({ "name": name, "inputSchema": { "type": "object" } }))
            .with_answer(name, result.clone());
    }
    let http = fixture.clone().serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let events = HttpOptions { answers: HttpAnswers::Sse, ..HttpOptions::default() };
    let sse = fixture.clone().with_http(events).serve_http(([127, 0, 0, 1], 0).into()).await;
    let sse = sse.unwrap();
    let workplace = Workplace::deferred(&json!({
        "pipe": entry(&fixture), "http": { "url": http.url() }, "sse": { "url": sse.url() },
    }));
    let mut client = workplace.connect(&[]).await;
    for server in ["pipe", "http", "sse"] {
        for (index, sent) in odd_results.iter().enumerate() {
            let name = format!("{server}_result{index}");
            let mut expected = sent.clone();
            if let Some(uri) = expected.pointer_mut("/content/0/uri") {
                *uri = json!(format!("toolgate://{server}/u:1"));
            }
            assert_eq!(call_through(&mut client, &name, json!({})).await, expected, "{name}");
        }
    }
}

#[tokio::test]
async fn a_violation_names_path_expectation_and_signature_and_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let fixture = notes().with_call_log(&log);
    let workplace = Workplace::deferred(&json!({ "notes": entry(&fixture) }));
    let mut client = workplace.connect(&[]).await;
    let wrong = json!({ "id": 7, "readers": [{ "mail": "a@b.c" }, { "level": "high" }] });
    let result = call_through(&mut client, "notes_shareNoteWithTeam", wrong).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text(&result), @r#"
    The arguments do not fit `notes_shareNoteWithTeam`, which was not called:
    - id: 7 is not of type "string"
    - readers[1].level: "high" is not of type "integer"
    Expected: notes_shareNoteWithTeam(id: string, readers: object[])
    "#);
    let result = call_through(&mut client, "notes_create_note", json!({ "colour": "red" })).await;
    insta::assert_snapshot!(text(&result), @r#"
    The arguments do not fit `notes_create_note`, which was not called:
    - arguments: "title" is a required property
    - colour: "red" is not one of "amber" or "teal"
    Expected: notes_create_note(title: string, body?: string, colour?: "amber" | "teal")
    "#);
    assert!(!log.exists(), "nothing was sent");
    let right = json!({ "title": "Hello" });
    call_through(&mut client, "notes_create_note", right.clone()).await;
    let logged: Value = serde_json::from_str(&std::fs::read_to_string(&log).unwrap()).unwrap();
    assert_eq!(logged, json!({ "name": "create_note", "arguments": right }));
}

#[tokio::test]
async fn an_unknown_tool_gets_the_nearest_names() {
    let mut client = workplace().connect(&[]).await;
    let mut told = Vec::new();
    for name in ["notes_create_notes", "create_note", "kit_ecko", "zzzzzzzzzzzzzzzz"] {
        let result = call_through(&mut client, name, json!({})).await;
        assert_eq!(result["isError"], true);
        told.push(text(&result).to_owned());
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    there is no tool `notes_create_notes`; did you mean `notes_create_note`, `notes_delete_note` or `notes_find_notes`?
    there is no tool `create_note`; did you mean `notes_create_note`?
    there is no tool `kit_ecko`; did you mean `kit_echo`?
    there is no tool `zzzzzzzzzzzzzzzz`; a search finds those there are
    "#);
}

#[tokio::test]
async fn arguments_written_as_text_or_left_out_are_understood() {
    let mut client = workplace().connect(&[]).await;
    for arguments in [json!({ "a": 1, "b": 2 }), json!("{\"a\": 1, \"b\": 2}")] {
        let sum = call_through(&mut client, "kit_add", arguments).await;
        assert_eq!(sum["structuredContent"]["sum"], 3);
    }
    for request in
        [json!({ "name": "kit_counter" }), json!({ "name": "kit_counter", "arguments": null })]
    {
        let count = call(&mut client, "call_tool", request).await;
        assert!(count["structuredContent"]["count"].is_u64(), "{count}");
    }
    let mut told = Vec::new();
    for arguments in [json!("[1]"), json!("{"), json!([1]), json!(7)] {
        let result = call_through(&mut client, "kit_add", arguments).await;
        assert_eq!(result["isError"], true);
        told.push(text(&result).to_owned());
    }
    for request in [json!({}), json!({ "name": "kit_add", "args": {} })] {
        let result = call(&mut client, "call_tool", request).await;
        assert_eq!(result["isError"], true);
        told.push(text(&result).to_owned());
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    `arguments` is a text and not a JSON object.
    `arguments` is a text and not a JSON object.
    The arguments do not fit: `arguments` has to be an object. Expected: call_tool(name: string, arguments?: object)
    The arguments do not fit: `arguments` has to be an object. Expected: call_tool(name: string, arguments?: object)
    The arguments do not fit: missing field `name`. Expected: call_tool(name: string, arguments?: object)
    The arguments do not fit: unknown field `args`, expected `name` or `arguments`. Expected: call_tool(name: string, arguments?: object)
    ");
}

#[tokio::test]
async fn json_rpc_errors_of_servers_are_reported_or_passed_on() {
    let mut client = workplace().connect(&[]).await;
    let data = json!({ "k": [1, null] });
    let arguments = json!({ "code": -32042, "message": "Not on Sundays", "data": data });
    let result = call_through(&mut client, "kit_rpc_error", arguments.clone()).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text(&result), @"server `kit` refused `rpc_error`: Not on Sundays");
    assert_eq!(result["_meta"], json!({ "toolgate/error": { "code": -32042, "data": data } }));
    // A client that calls natively gets the error itself.
    let answer = client.call("kit_rpc_error", arguments).await.unwrap();
    assert_eq!(answer["error"]["code"], -32042);
    assert_eq!(answer["error"]["message"], "Not on Sundays");
    assert_eq!(answer["error"]["data"], data);
    // What is longer than anybody reads is left out.
    let arguments = json!({ "code": -32050, "data": "x".repeat(20_000) });
    let result = call_through(&mut client, "kit_rpc_error", arguments).await;
    assert_eq!(result["_meta"], json!({ "toolgate/error": { "code": -32050 } }));
}

#[tokio::test]
async fn a_broken_schema_is_refused_with_a_hint_that_works() {
    let workplace = Workplace::deferred(&json!({ "odd": entry(&odd()) }));
    let mut client = workplace.connect(&[]).await;
    let mut told = Vec::new();
    for name in ["odd_invalid_pattern", "odd_dangling_reference"] {
        let result = call_through(&mut client, name, json!({ "value": "x" })).await;
        assert_eq!(result["isError"], true);
        told.push(text(&result).to_owned());
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    the arguments of `odd_invalid_pattern` cannot be checked, because its schema is broken ("([unclosed" is not a "regex"); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked
    the arguments of `odd_dangling_reference` cannot be checked, because its schema is broken (Pointer '/$defs/absent' does not exist); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked
    "#);
    let echoed = call_through(&mut client, "odd_echo", json!({ "message": "hi" })).await;
    assert_eq!(echoed["structuredContent"]["message"], "hi", "its neighbour is not concerned");

    let unchecked = json!({ "tools": { "invalid_pattern": { "validateArguments": false } } });
    let workplace = Workplace::deferred(&json!({
        "odd": entry_with(&odd(), unchecked),
        "loose": entry_with(&odd(), json!({ "validateArguments": false })),
    }));
    let mut client = workplace.connect(&[]).await;
    for name in ["odd_invalid_pattern", "loose_invalid_pattern", "loose_dangling_reference"] {
        let result = call_through(&mut client, name, json!({ "value": "x" })).await;
        assert_eq!(result["structuredContent"], json!({ "value": "x" }), "{name}");
    }
    let result = call_through(&mut client, "odd_dangling_reference", json!({ "value": "x" })).await;
    assert_eq!(result["isError"], true, "only the one tool was excepted");
}

#[tokio::test]
async fn a_result_over_the_limit_is_an_error_in_pass_through() {
    let limited = json!({ "maxResultBytes": 100_000 });
    let fixture = Fixture::new("big").with_builtins([Builtin::Big, Builtin::Echo]);
    let workplace = Workplace::deferred(&json!({ "big": entry_with(&fixture, limited) }));
    let mut client = workplace.connect(&["--passthrough", "big"]).await;
    let result = call(&mut client, "big", json!({ "bytes": 50_000 })).await;
    assert_eq!(text(&result).len(), 50_000);
    let refused = client.call("big", json!({ "bytes": 5_000_000 })).await.unwrap();
    let told = refused.to_string();
    assert!(told.contains("`maxResultBytes` of the server raises this"), "{refused}");
    let echoed = call(&mut client, "echo", json!({ "message": "hi" })).await;
    assert_eq!(echoed["structuredContent"]["message"], "hi", "the server is still there");
}

#[tokio::test]
async fn a_tool_can_be_called_before_any_list() {
    // The server is slower than the client, which knows the name from an earlier conversation.
    let late = Faults { start_delay_ms: 700, ..Faults::default() };
    let workplace =
        Workplace::new(&json!({ "mcpServers": { "kit": entry(&kit().with_faults(late)) } }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let sum = call(&mut client, "kit_add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(sum["structuredContent"]["sum"], 3);
    let workplace_too = Workplace::deferred(&json!({ "kit": entry(&kit().with_faults(
        Faults { start_delay_ms: 700, ..Faults::default() })) }));
    let mut client = workplace_too.connect(&[]).await;
    let sum = call_through(&mut client, "kit_add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(sum["structuredContent"]["sum"], 3, "{sum}");
}

#[tokio::test]
async fn a_schema_that_takes_for_ever_does_not_block_others() {
    let node = json!({ "$ref": "#/$defs/Node" });
    let option = |required: &[&str]| json!({ "type": "object", "properties": { "a": node }, "required": required });
    let options = [option(&["a"]), option(&["a", "b"]), option(&["a", "c"])];
    let walk = json!({
        "name": "walk", "description": "Walks.",
        "inputSchema": {
            "type": "object", "properties": { "node": node },
            "$defs": { "Node": { "anyOf": options } },
        },
    });
    let references = vec![json!({ "$ref": "#" }); 300];
    let spin = json!({ "name": "spin", "inputSchema": { "type": "object", "anyOf": references } });
    let maze = Fixture::new("maze").with_tools([walk, spin]);
    let workplace = Workplace::deferred(&json!({ "maze": entry(&maze), "notes": entry(&notes()) }));
    let mut client = workplace.connect(&[]).await;
    let found = call(&mut client, "search_tools", json!({ "query": "walk" })).await;
    assert_eq!(found["structuredContent"]["servers"][0]["server"], "maze", "it was indexed");

    let deep = (0..16).fold(json!(7), |inner, _| json!({ "a": inner }));
    let refused = call_through(&mut client, "maze_walk", json!({ "node": deep })).await;
    assert_eq!(refused["isError"], true);
    insta::assert_snapshot!(text(&refused), @"the arguments of `maze_walk` cannot be checked, because its schema is broken (it refers to itself so often that checking does not end); the server has to mend it, or set `validateArguments: false` for the tool to call it unchecked");
}

#[tokio::test]
async fn suggestions_include_meta_tools() {
    let mut client = workplace().connect(&[]).await;
    let params = json!({ "name": "call_tol", "arguments": {} });
    let answer = client.request("tools/call", params).await.unwrap();
    let told = answer["error"]["message"].as_str().unwrap();
    assert!(told.starts_with("there is no tool `call_tol`; did you mean `call_tool`"), "{told}");
    let found = call(&mut client, "search_tools", json!({ "query": "x", "limit": -1 })).await;
    assert!(text(&found).contains("-1 is not a whole number of at least 1"), "{found}");
}
