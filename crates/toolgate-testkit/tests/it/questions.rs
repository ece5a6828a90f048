//! Tools that ask, and methods of no protocol.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, RawClient};

use crate::{connect, protocol::modern_meta, start};

fn asking(era: FixtureEra) -> Fixture {
    let builtins = [
        Builtin::AskForm,
        Builtin::AskUrl,
        Builtin::AskModel,
        Builtin::AskAll,
        Builtin::Log,
        Builtin::Client,
    ];
    Fixture::new("curious").with_era(era).with_builtins(builtins)
}

/// Reads until the answer to `id` comes, and answers each question on the way by its method.
async fn answering(client: &mut RawClient, id: u64) -> Value {
    loop {
        let message: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
        let result = json!({ "to": message["method"], "said": message["params"]["odd"] });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        client.send_line(&answer.to_string()).await.unwrap();
    }
}

#[tokio::test]
async fn a_legacy_server_sends_requests_of_its_own() {
    let mut client = connect(&asking(FixtureEra::Legacy)).await;
    for (tool, round) in [
        ("ask_form", json!({ "form": { "to": "elicitation/create", "said": 7 } })),
        ("ask_url", json!({ "url": { "to": "elicitation/create", "said": 7 } })),
        ("ask_model", json!({ "model": { "to": "sampling/createMessage", "said": 7 } })),
        (
            "ask_all",
            json!({
                "form": { "to": "elicitation/create", "said": 7 },
                "model": { "to": "sampling/createMessage", "said": 7 },
                "roots": { "to": "roots/list", "said": 7 },
            }),
        ),
    ] {
        let arguments = json!({ "rounds": 2, "with": { "odd": 7 } });
        let params = json!({ "name": tool, "arguments": arguments });
        let id = client.begin("tools/call", params).await.unwrap();
        let answer = answering(&mut client, id).await;
        let answers = &answer["result"]["structuredContent"]["answers"];
        assert_eq!(*answers, json!([round, round]), "{tool}");
    }
}

#[tokio::test]
async fn a_modern_server_asks_in_its_result_and_wants_its_state_back() {
    let mut client = start(&asking(FixtureEra::Modern));
    let mut params = json!({ "name": "ask_form", "arguments": { "rounds": 2 } });
    params["_meta"] = modern_meta("2026-07-28");
    for round in 1..=2 {
        let answer = client.request("tools/call", params.clone()).await.unwrap();
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required");
        let asked = &result["inputRequests"]["form"];
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["message"], format!("Who are you? ({round})"));
        params["inputResponses"] = json!({ "form": { "action": "accept", "n": round } });
        let mut forgetful = params.clone();
        forgetful.as_object_mut().unwrap().remove("requestState");
        let answer = client.request("tools/call", forgetful).await.unwrap();
        assert_eq!(answer["error"]["code"], -32602);
        params["requestState"] = result["requestState"].clone();
    }
    let answer = client.request("tools/call", params).await.unwrap();
    assert_eq!(
        answer["result"]["structuredContent"]["answers"],
        json!([{ "form": { "action": "accept", "n": 1 } }, { "form": { "action": "accept", "n": 2 } }])
    );
}

#[tokio::test]
async fn log_messages_come_before_the_answer_and_the_client_is_known() {
    let mut client = connect(&asking(FixtureEra::Legacy)).await;
    client.call("log", json!({ "level": "notice", "data": [1], "count": 2 })).await.unwrap();
    let params: Vec<_> = client.asides.iter().map(|message| &message["params"]).collect();
    let expected =
        |number| json!({ "level": "notice", "logger": "fixture", "data": [1], "number": number });
    assert_eq!(params, [&expected(1), &expected(2)]);
    let answer = client.call("client", json!({})).await.unwrap();
    let said = &answer["result"]["structuredContent"];
    assert_eq!(said["clientInfo"]["name"], "raw-client");
}

#[tokio::test]
async fn unknown_methods_echo_what_arrived() {
    let fixture = Fixture::new("odd")
        .with_method("resources/list", json!({ "resources": [], "odd": 1 }))
        .with_capability("resources", json!({ "subscribe": true }));
    let mut client = start(&fixture);
    let greeting = client.initialize().await.unwrap();
    assert_eq!(greeting["result"]["capabilities"]["resources"], json!({ "subscribe": true }));
    let answer = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(answer["result"], json!({ "resources": [], "odd": 1 }));
    let odd = json!({ "a": [null, 1.5], "_meta": { "x": 1 } });
    let answer = client.request("fixture/echo", odd.clone()).await.unwrap();
    assert_eq!(answer["result"], odd);
    let error = json!({ "code": 7, "message": "no", "data": { "why": 1 } });
    let answer = client.request("fixture/fail", error.clone()).await.unwrap();
    assert_eq!(answer["error"], error);
    client.notify("notifications/odd", json!({ "n": 1 })).await.unwrap();
    let answer = client.request("fixture/heard", json!({})).await.unwrap();
    let last = answer["result"]["heard"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last, json!({ "method": "notifications/odd", "params": { "n": 1 } }));
    let told = json!({ "method": "notifications/x", "params": { "y": 1 } });
    client.request("fixture/notify", told).await.unwrap();
    assert_eq!(client.asides.last().unwrap()["params"], json!({ "y": 1 }));
    let ask = json!({ "ask": { "method": "odd/question", "params": { "odd": 3 } } });
    let id = client.begin("fixture/ask", ask).await.unwrap();
    let answer = answering(&mut client, id).await;
    assert_eq!(answer["result"], json!({ "to": "odd/question", "said": 3 }));
}
