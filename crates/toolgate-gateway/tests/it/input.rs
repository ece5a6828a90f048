//! Questions of a server reach the client of either era, and its answers the server.

use std::{sync::atomic::Ordering, time::Duration};

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::support::{Endpoint, Events, body, deadline, status};

fn accepted(text: &str) -> Value {
    json!({ "action": "accept", "content": { "text": text } })
}

/// Tries again with answers.
fn again(endpoint: &Endpoint, tool: &str, state: &Value, responses: &Value) -> RequestBuilder {
    let params = json!({ "name": tool, "requestState": state, "inputResponses": responses });
    endpoint.modern("tools/call", params)
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_the_stream_of_its_call() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "ask").await;
    for text in ["first", "second"] {
        let question = events.message().await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], text);
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted(text) });
        assert_eq!(status(session.post(&answer)).await, 202);
    }
    let result = events.message().await;
    assert_eq!(result["result"]["answers"], json!([accepted("first"), accepted("second")]));
}

#[tokio::test]
async fn the_refusal_of_a_legacy_client_reaches_the_server() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "ask").await;
    let question = events.message().await;
    let error = json!({ "code": -1, "message": "user is out", "data": [1] });
    // An answer to nothing is ignored, whoever sends it.
    let other = endpoint.session().await;
    let stray = json!({ "jsonrpc": "2.0", "id": question["id"], "result": {} });
    assert_eq!(status(other.post(&stray)).await, 202);
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
    assert_eq!(status(session.post(&answer)).await, 202);
    assert_eq!(events.message().await["error"], error);
}

#[tokio::test]
async fn an_input_request_to_a_legacy_client_times_out() {
    let endpoint = Endpoint::with(|settings| {
        settings.limits.input_timeout = Duration::from_millis(50);
    })
    .await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "ask").await;
    let question = events.message().await;
    let taken_back = events.message().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(events.message().await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_modern_client_gets_input_requests_in_the_result() {
    let endpoint = Endpoint::start().await;
    let mut answer = body(endpoint.modern("tools/call", json!({ "name": "ask" }))).await;
    for text in ["first", "second"] {
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required");
        let requests = result["inputRequests"].as_object().unwrap();
        let (key, question) = requests.iter().next().unwrap();
        assert_eq!((requests.len(), &question["params"]["message"]), (1, &json!(text)));
        assert_eq!(question["method"], "elicitation/create");
        let responses = json!({ key: accepted(text) });
        answer = body(again(&endpoint, "ask", &result["requestState"], &responses)).await;
    }
    let expected = json!([accepted("first"), accepted("second")]);
    assert_eq!(answer["result"]["answers"], expected);
}

#[tokio::test]
async fn simultaneous_input_requests_are_sent_together() {
    let endpoint = Endpoint::start().await;
    let answer = body(endpoint.modern("tools/call", json!({ "name": "ask_both" }))).await;
    let requests = answer["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 2);
    // One answer is not enough; the other question stays.
    let (first, second) = (&requests["1"]["params"]["message"], requests.get("2").unwrap());
    assert_eq!(first, "first");
    let state = &answer["result"]["requestState"];
    let half = body(again(&endpoint, "ask_both", state, &json!({ "1": accepted("a") }))).await;
    assert_eq!(half["result"]["inputRequests"], json!({ "2": second }));
    let state = &half["result"]["requestState"];
    let whole = body(again(&endpoint, "ask_both", state, &json!({ "2": accepted("b") }))).await;
    assert_eq!(whole["result"]["answers"], json!([accepted("a"), accepted("b")]));
}

#[tokio::test]
async fn an_input_request_can_end_a_stream() {
    let endpoint = Endpoint::start().await;
    let asked = endpoint.modern("tools/call", json!({ "name": "ask_late" })).send().await;
    let messages = Events::new(asked.unwrap()).rest().await;
    assert_eq!(messages[0]["params"]["data"], "thinking");
    let result = &messages[1]["result"];
    assert_eq!(result["resultType"], "input_required");
    let responses = json!({ "1": accepted("x") });
    let answer = body(again(&endpoint, "ask_late", &result["requestState"], &responses)).await;
    assert_eq!(answer["result"]["answers"], json!([accepted("x")]));
}

#[tokio::test]
async fn a_request_state_is_valid_once_and_for_its_method() {
    let endpoint = Endpoint::start().await;
    let answer = body(endpoint.modern("tools/call", json!({ "name": "ask" }))).await;
    let state = &answer["result"]["requestState"];
    assert!(state.as_str().unwrap().len() >= 43, "256 bits");
    let params = json!({ "requestState": state, "inputResponses": { "1": accepted("x") } });
    let other = body(endpoint.modern("prompts/get", params)).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let responses = json!({ "1": accepted("x") });
    let went_on = body(again(&endpoint, "ask", state, &responses)).await;
    assert_ne!(&went_on["result"]["requestState"], state);
    let twice = body(again(&endpoint, "ask", state, &responses)).await;
    assert_eq!(twice["error"]["code"], -32602, "{twice}");
}

#[tokio::test]
async fn a_lost_state_is_an_error_and_no_new_call() {
    let endpoint = Endpoint::start().await;
    let responses = json!({ "1": accepted("x") });
    let unknown = body(again(&endpoint, "echo", &json!("gone"), &responses)).await;
    assert_eq!(unknown["error"]["code"], -32602);
    insta::assert_snapshot!(unknown["error"]["message"].as_str().unwrap(), @"this `requestState` is unknown, has expired or belongs to another client; nothing is called now, and what the call did before it asked is not known; look before you send it again without `requestState` and `inputResponses`");
    for lost in [
        json!({ "name": "echo", "inputResponses": responses }),
        json!({ "name": "echo", "requestState": 7 }),
    ] {
        let answer = body(endpoint.modern("tools/call", lost)).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(endpoint.probe.calls.load(Ordering::SeqCst), 0);
    let new = json!({ "name": "echo", "requestState": null, "inputResponses": null });
    assert!(body(endpoint.modern("tools/call", new)).await["result"].is_object());
}

#[tokio::test]
async fn a_parked_request_expires() {
    let endpoint = Endpoint::with(|settings| {
        settings.limits.input_timeout = Duration::from_millis(50);
        settings.limits.parked = 1;
    })
    .await;
    let first = body(endpoint.modern("tools/call", json!({ "name": "ask" }))).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    // There is room again once the first has waited in vain.
    loop {
        let next = body(endpoint.modern("tools/call", json!({ "name": "ask" }))).await;
        if next["result"]["resultType"] == "input_required" {
            let state = &first["result"]["requestState"];
            let late = body(again(&endpoint, "ask", state, &json!({ "1": accepted("x") }))).await;
            assert_eq!(late["error"]["code"], -32602, "{late}");
            break;
        }
        assert_eq!(next["error"]["code"], -32603, "{next}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_input_request() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "ask").await;
    let question = events.message().await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                       "params": { "requestId": 1 } });
    assert_eq!(status(session.post(&note)).await, 202);
    let taken_back = events.message().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
}

#[tokio::test]
async fn a_parked_request_keeps_its_service() {
    let idle = Duration::from_millis(100);
    let endpoint = Endpoint::with(|settings| settings.limits.session_idle = idle).await;
    let asked = body(endpoint.modern("tools/call", json!({ "name": "ask" }))).await;
    let state = &asked["result"]["requestState"];
    // What is unused since later has been ended by then.
    endpoint.session().await;
    let ended = async {
        while endpoint.probe.closed.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(deadline(), ended).await.unwrap();
    let went_on = body(again(&endpoint, "ask", state, &json!({ "1": accepted("x") }))).await;
    assert_eq!(went_on["result"]["resultType"], "input_required");
    assert_eq!(endpoint.probe.opened.load(Ordering::SeqCst), 2, "one for each of the two");
    assert_eq!(endpoint.probe.closed.load(Ordering::SeqCst), 1);
}
