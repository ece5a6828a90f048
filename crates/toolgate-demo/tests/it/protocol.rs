//! The loop from end to end, on buffers.

use serde_json::{Value, json};
use toolgate_demo::{DemoError, NOW, serve, servers};

/// What a server answers to these lines.
fn answers(server: &str, lines: &[String]) -> Vec<Value> {
    let mut output = Vec::new();
    serve(server, lines.join("\n").as_bytes(), &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn request(id: u32, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn answer(server: &str, method: &str, params: &Value) -> Value {
    let mut answers = answers(server, &[request(7, method, params)]);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["id"], 7);
    answers.remove(0)
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_session_from_handshake_to_end() {
    let answers = answers(
        "team",
        &[
            request(
                1,
                "initialize",
                &json!({ "protocolVersion": "2025-06-18", "capabilities": {} }),
            ),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            "this is no JSON".to_owned(),
            String::new(),
            "[]".to_owned(),
            json!({ "jsonrpc": "2.0", "id": 99, "result": {} }).to_string(),
            json!({ "jsonrpc": "2.0", "id": { "no": "id" }, "method": "ping" }).to_string(),
            request(2, "ping", &Value::Null),
            request(3, "tools/list", &json!({})),
            request(
                4,
                "tools/call",
                &json!({ "name": "get_team_members", "arguments": { "department": "design" } }),
            ),
            request(5, "tools/call", &json!({ "name": "get_team_members", "arguments": {} })),
            request(6, "tools/call", &json!({ "name": "no_such_tool" })),
            request(7, "resources/list", &json!({})),
            request(8, "server/discover", &json!({ "_meta": meta("2026-07-28") })),
        ],
    );
    let ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
    let result = |index: usize| &answers[index]["result"];
    assert_eq!(result(0)["protocolVersion"], "2025-06-18");
    assert_eq!(result(0)["serverInfo"]["name"], "team");
    assert!(result(0)["instructions"].as_str().unwrap().contains(NOW));
    assert_eq!(*result(1), json!({}));
    assert_eq!(json!(toolgate_demo::definitions("team").unwrap()), result(2)["tools"]);
    assert!(result(2).get("resultType").is_none());

    // A list is bare in the text and wrapped in the structured content.
    let text = result(3)["content"][0]["text"].as_str().unwrap();
    let text: Value = serde_json::from_str(text).unwrap();
    assert_eq!(text[0]["name"], "Clara Dubois");
    assert_eq!(result(3)["structuredContent"], json!({ "result": text }));
    assert_eq!(result(3)["isError"], false);

    assert_eq!(result(4)["isError"], true);
    assert_eq!(result(4)["content"][0]["text"], "Invalid argument `department`: is required");
    assert_eq!(answers[5]["error"]["code"], -32602);
    assert_eq!(answers[6]["error"]["code"], -32601);
    assert_eq!(answers[7]["error"]["code"], -32601);
}

#[test]
fn every_legacy_version_is_accepted_and_others_are_answered_with_one() {
    for server in servers() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let answer = answer(&server.name, "initialize", &json!({ "protocolVersion": version }));
            assert_eq!(answer["result"]["protocolVersion"], version);
        }
        for version in [json!("2026-07-28"), json!("1999-01-01"), json!(5), Value::Null] {
            let answer = answer(&server.name, "initialize", &json!({ "protocolVersion": version }));
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        }
    }
}

#[test]
fn some_servers_can_be_discovered() {
    let modern: Vec<&str> = servers()
        .iter()
        .filter(|server| server.modern)
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(modern, ["logging", "crm", "deploy", "metrics"]);
    for server in modern {
        let params = json!({ "_meta": meta("2026-07-28") });
        let discovered = answer(server, "server/discover", &params);
        let result = &discovered["result"];
        assert_eq!(result["resultType"], "complete");
        assert!(result["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
        assert!(result["capabilities"]["tools"].is_object());
        assert_eq!(result["cacheScope"], "public");
        assert!(result["ttlMs"].is_u64());
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], server);

        let listed = answer(server, "tools/list", &params);
        assert_eq!(listed["result"]["resultType"], "complete");
        assert!(listed["result"]["ttlMs"].is_u64());
        // There is no ping without a session.
        assert_eq!(answer(server, "ping", &params)["error"]["code"], -32601);
    }
}

#[test]
fn modern_requests_need_their_meta() {
    let none = answer("logging", "server/discover", &json!({}));
    assert_eq!(none["error"]["code"], -32602);
    let old = answer("logging", "tools/list", &json!({ "_meta": meta("2099-01-01") }));
    assert_eq!(old["error"]["code"], -32022);
    assert_eq!(old["error"]["data"]["requested"], "2099-01-01");
    let half = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(answer("logging", "tools/list", &half)["error"]["code"], -32602);

    let mut params = json!({ "name": "getLogStats", "arguments": {}, "_meta": meta("2026-07-28") });
    let called = answer("logging", "tools/call", &params);
    assert_eq!(called["result"]["resultType"], "complete");
    // A server of the handshake alone does not know the key, and ignores it.
    params["name"] = json!("listLabels");
    let called = answer("ticketing", "tools/call", &params);
    assert_eq!(called["result"]["isError"], false);
    assert!(called["result"].get("resultType").is_none());
}

#[test]
fn tools_without_an_output_schema_answer_in_text_alone() {
    let params = json!({ "name": "listLabels" });
    let result = answer("ticketing", "tools/call", &params)["result"].clone();
    assert!(result.get("structuredContent").is_none());
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with('['));
}

#[test]
fn an_unknown_server_is_an_error_that_names_the_known_ones() {
    let error = serve("nope", &b""[..], Vec::new()).unwrap_err();
    assert!(matches!(error, DemoError::UnknownServer { .. }));
    assert!(error.to_string().contains("logging, ticketing, team"));
}

#[test]
fn a_client_that_stops_listening_ends_the_loop() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let line = request(1, "ping", &json!({}));
    assert!(serve("docs", line.as_bytes(), Gone).is_ok());
}
