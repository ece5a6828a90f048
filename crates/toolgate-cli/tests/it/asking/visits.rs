//! Legacy servers that refuse a call until a person has visited a page (-32042).

use serde_json::{Value, json};

use super::talk::{Manners, Talk, Way};
use crate::support::{Workplace, text};

const SERVER: &str = include_str!("visits.py");
const VISITOR: Manners = Manners { visits_pages: true, ..Manners::ASKED };

fn workplace() -> Workplace {
    let server = json!({ "command": "python3", "args": ["-c", SERVER] });
    Workplace::deferred(&json!({ "visits": server }))
}

fn call() -> Value {
    json!({ "name": "visits_files", "arguments": {} })
}

#[tokio::test]
async fn a_client_is_asked_for_the_visits_and_the_call_goes_on() {
    for way in Way::ALL {
        let workplace = workplace();
        let (mut client, _kept) = Talk::start(&workplace, way, VISITOR).await;
        let seen = parking_lot::Mutex::new(Vec::new());
        let person = async |question: Value| {
            seen.lock().push(question);
            json!({ "action": "accept" })
        };
        let result = client.call("call_tool", call(), person).await;
        assert_eq!(text(&result), "3 calls", "{way:?}: it was made again after each visit");
        let visit = |number: u64| {
            json!({
                "mode": "url", "elicitationId": format!("visit-{number}"),
                "url": format!("https://example.com/{number}"),
                "message": "Server \"visits\" asks:\nLog in",
            })
        };
        assert_eq!(*seen.lock(), [visit(1), visit(2)], "{way:?}");
    }
}

#[tokio::test]
async fn a_declined_visit_and_a_client_without_visits_get_the_error() {
    let is_right = |error: &Value| {
        assert_eq!(error["code"], -32042, "{error}");
        assert_eq!(error["data"]["elicitations"][0]["url"], "https://example.com/1", "{error}");
    };
    // A client that calls natively gets the error itself.
    let call = json!({ "name": "visits_files", "arguments": {} });
    let workplace = workplace();
    let mut client = workplace.serve(&[]);
    let answer = client.request("tools/call", VISITOR.modern(call.clone())).await.unwrap();
    let asked = &answer["result"];
    assert_eq!(asked["resultType"], "input_required", "{answer}");
    let mut again = call.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({ "visit-1": { "action": "decline" } });
    let answer = client.request("tools/call", VISITOR.modern(again)).await.unwrap();
    is_right(&answer["error"]);

    let mut client = workplace.serve(&[]);
    let answer = client.request("tools/call", Manners::ASKED.modern(call.clone())).await.unwrap();
    is_right(&answer["error"]);

    // A model learns where the person has to go, and a program the rest.
    let mut client = workplace.serve(&[]);
    let through = json!({ "name": "call_tool", "arguments": call });
    let answer = client.request("tools/call", Manners::ASKED.modern(through)).await.unwrap();
    let told = &answer["result"];
    insta::assert_snapshot!(text(told), @"server `visits` refused `files`: A visit is required; a person has to visit https://example.com/1 first, then call again");
    is_right(&told["_meta"]["toolgate/error"]);

    // Its era has the error.
    let mut client = workplace.serve(&[]);
    client.request("initialize", VISITOR.initialize()).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    let answer = client.request("tools/call", call).await.unwrap();
    is_right(&answer["error"]);
}
