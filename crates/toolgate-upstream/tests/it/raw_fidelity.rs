//! Everything passes over a connection as it was sent.

use serde_json::{Map, Value, json};
use toolgate_testkit::{Fixture, FixtureEra};
use toolgate_upstream::RequestError;

use crate::{
    raw_connection::{Call, answering, open},
    support::{Over, serve},
};

/// Values that typed models lose or refuse.
fn odd_values() -> Vec<Value> {
    let mut values = vec![
        json!({}),
        json!({ "tools": [{ "name": 7 }, "junk", null], "nextCursor": { "no": "text" } }),
        json!({ "content": [{ "type": "hologram", "volume": 3.0 }], "isError": "maybe" }),
        json!({ "": { "": [[], [[]], {}] }, "a.b/c": "\u{0}\u{1F980}\n\r\u{2028}" }),
        json!({ "resultType": "odd", "ttlMs": -1, "icons": [{ "src": "x:", "theme": "odd" }] }),
        json!({ "io.toolgate/raw": { "io.toolgate/raw": 1 } }),
        json!({ "method": "notifications/cancelled", "id": 1, "jsonrpc": "1.0", "error": false }),
        json!({ "task": { "ttl": 1e300, "status": "odd" }, "requestState": "s", "uri": ":" }),
        json!({ "big": [i64::MIN, i64::MAX, u64::MAX, 0.1, -0.0, 1e-7] }),
    ];
    // And values of a small generator with a fixed seed.
    let mut seed = 7_u64;
    values.extend((0..40).map(|_| Value::Object(object(&mut seed, 4))));
    values
}

fn next(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

fn object(seed: &mut u64, depth: u64) -> Map<String, Value> {
    const KEYS: [&str; 8] = ["name", "params", "result", "_odd", "content", "ü", "x/y", "data"];
    (0..next(seed, 5))
        .map(|_| {
            let key = KEYS[usize::try_from(next(seed, 8)).unwrap()].to_owned();
            let value = match next(seed, if depth == 0 { 5 } else { 7 }) {
                0 => Value::Null,
                1 => json!(next(seed, 2) == 0),
                2 => json!(i64::try_from(next(seed, 1 << 40)).unwrap() - (1 << 39)),
                3 => json!(f64::from(u32::try_from(next(seed, 1 << 20)).unwrap()) / 64.0),
                4 => json!(format!("{}\"\\\n\u{7f}", next(seed, 1000))),
                5 => Value::Object(object(seed, depth - 1)),
                _ => (0..next(seed, 4)).map(|_| Value::Object(object(seed, depth - 1))).collect(),
            };
            (key, value)
        })
        .collect()
}

/// Each era and transport, and whether notifications of a request arrive on its stream.
const WAYS: [(FixtureEra, Over); 6] = [
    (FixtureEra::Legacy, Over::Stdio),
    (FixtureEra::Legacy, Over::HttpJson),
    (FixtureEra::Legacy, Over::HttpSse),
    (FixtureEra::Modern, Over::Stdio),
    (FixtureEra::Modern, Over::HttpJson),
    (FixtureEra::Modern, Over::HttpSse),
];

#[tokio::test]
async fn parameters_and_results_arrive_unchanged() {
    for (era, over) in WAYS {
        let (spec, _running) = serve(Fixture::new("mirror").with_era(era), over).await;
        let (connection, _heard) = open(&spec).await;
        for value in odd_values() {
            let mut sent = value.clone();
            sent["_meta"] = json!({ "x": { "odd": [1] }, "progressToken": { "odd": true } });
            let mut got = connection.ask("fixture/echo", sent.clone()).await.unwrap();
            if era == FixtureEra::Modern {
                // What the lifecycle adds on the way there, and the fixture on the way back.
                let meta = got["_meta"].as_object_mut().unwrap();
                for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
                    meta.remove(&format!("io.modelcontextprotocol/{key}")).unwrap();
                }
                if sent.get("resultType").is_none() {
                    got.as_object_mut().unwrap().remove("resultType");
                }
            }
            assert_eq!(got, sent, "{era:?} {over:?}");
        }
    }
}

#[tokio::test]
async fn errors_arrive_unchanged() {
    for (era, over) in WAYS {
        let (spec, _running) = serve(Fixture::new("mirror").with_era(era), over).await;
        let (connection, _heard) = open(&spec).await;
        for data in odd_values() {
            let sent = json!({ "code": -32042, "message": "no \u{1F980}", "data": data });
            let error = connection.ask("fixture/fail", sent.clone()).await.unwrap_err();
            let RequestError::Refused(error) = error else { panic!("{error:?}") };
            assert_eq!(serde_json::to_value(error).unwrap(), sent, "{era:?} {over:?}");
        }
        let error = connection.ask("no/such/method", json!({})).await.unwrap_err();
        assert!(
            matches!(&error, RequestError::Refused(error) if error.code == -32601),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn notifications_of_the_server_arrive_unchanged() {
    for (era, over) in WAYS {
        if (era, over) == (FixtureEra::Modern, Over::HttpJson) {
            continue; // There is no room for them beside the answer.
        }
        let (spec, _running) = serve(Fixture::new("mirror").with_era(era), over).await;
        let (connection, heard) = open(&spec).await;
        for (number, params) in odd_values().into_iter().enumerate() {
            let method = ["notifications/message", "notifications/odd", "odd"][number % 3];
            let told = json!({ "method": method, "params": params });
            connection.ask("fixture/notify", told).await.unwrap();
            let (about, got) = heard.next_notification().await;
            assert_eq!(got, (method.to_owned(), Some(params)), "{era:?} {over:?}");
            // Beside the streams of requests, nobody knows.
            let on_a_stream = over == Over::HttpSse;
            assert_eq!(about, on_a_stream.then(|| json!("key")), "{era:?} {over:?}");
        }
        connection.ask("fixture/notify", json!({ "method": "notifications/bare" })).await.unwrap();
        assert_eq!(heard.next_notification().await.1, ("notifications/bare".to_owned(), None));
    }
}

#[tokio::test]
async fn notifications_of_the_client_arrive_unchanged() {
    for (era, over) in WAYS {
        let (spec, _running) = serve(Fixture::new("mirror").with_era(era), over).await;
        let (connection, _heard) = open(&spec).await;
        for params in odd_values() {
            connection.notify("notifications/odd", Some(params.clone())).await.unwrap();
            let mut got = connection.ask("fixture/heard", json!({})).await.unwrap();
            let last = got["heard"].as_array_mut().unwrap().pop().unwrap();
            let sent = json!({ "method": "notifications/odd", "params": params });
            assert_eq!(last, sent, "{era:?} {over:?}");
        }
    }
}

#[tokio::test]
async fn input_requests_and_responses_arrive_unchanged() {
    for over in Over::ALL {
        let (spec, _running) = serve(Fixture::new("mirror"), over).await;
        for answer in odd_values() {
            let (connection, heard) = answering(&spec, Ok(answer.clone())).await;
            for method in ["elicitation/create", "sampling/createMessage", "roots/list", "odd"] {
                let asked = json!({ "method": method, "params": { "odd": [answer.clone()] } });
                let got =
                    connection.ask("fixture/ask", json!({ "ask": asked.clone() })).await.unwrap();
                assert_eq!(got, answer, "{method} {over:?}");
                let (about, question) = heard.next_question().await;
                assert_eq!(about, Some(json!("key")), "{over:?}");
                assert_eq!(json!({ "method": question.method, "params": question.params }), asked);
            }
            if over != Over::Stdio {
                break; // One session each is enough.
            }
        }
        let error = json!({ "code": -1, "message": "no", "data": { "odd": [null] } });
        let refusal = serde_json::from_value(error.clone()).unwrap();
        let (connection, _heard) = answering(&spec, Err(refusal)).await;
        let asked = json!({ "ask": { "method": "roots/list" } });
        let got = connection.ask("fixture/ask", asked).await.unwrap();
        assert_eq!(got, json!({ "error": error }), "{over:?}");
    }
}

#[tokio::test]
async fn a_modern_server_asks_in_its_result() {
    for over in Over::ALL {
        let (spec, _running) =
            serve(Fixture::new("mirror").with_era(FixtureEra::Modern), over).await;
        let (connection, _heard) = open(&spec).await;
        let asked = json!({ "method": "elicitation/create", "params": { "odd": 1 } });
        let got = connection.ask("fixture/ask", json!({ "ask": asked.clone() })).await.unwrap();
        let required = json!({
            "resultType": "input_required",
            "inputRequests": { "asked": asked },
            "requestState": "waiting",
        });
        assert_eq!(got, required, "{over:?}");
        let again = json!({
            "ask": asked, "inputResponses": { "asked": { "odd": 2 } }, "requestState": "waiting",
        });
        let got = connection.ask("fixture/ask", again).await.unwrap();
        assert_eq!(got, json!({ "odd": 2, "resultType": "complete" }), "{over:?}");
    }
}
