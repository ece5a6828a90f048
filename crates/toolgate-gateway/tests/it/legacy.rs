//! Clients until 2025-11-25: a handshake, then a session.

use std::sync::atomic::Ordering;

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Endpoint, Events, body, call, initialize, reaches, refused, status};

#[tokio::test]
async fn a_session_begins_and_ends() {
    let endpoint = Endpoint::start().await;
    let response = endpoint.post(&initialize("2025-06-18")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert!(id.len() >= 43, "256 bits: {id}");
    let greeting: serde_json::Value = response.json().await.unwrap();
    assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(greeting["result"]["serverInfo"]["futureField"], 1);
    assert_eq!(greeting["result"]["futureField"]["kept"], true);

    let session = endpoint.session().await;
    assert_ne!(session.id, id);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let noted = session.post(&note).send().await.unwrap();
    assert_eq!(noted.status(), StatusCode::ACCEPTED);
    assert_eq!(noted.text().await.unwrap(), "");
    assert_eq!(*endpoint.probe.notifications.lock(), ["notifications/initialized"]);

    let messages = session.call(7, "echo").await.rest().await;
    assert_eq!(messages, [json!({ "jsonrpc": "2.0", "id": 7, "result": { "echo": { "n": 7 } } })]);

    assert_eq!(status(session.delete()).await, StatusCode::NO_CONTENT);
    assert_eq!(refused(session.post(&call(8, "echo"))).await, (404, -32600));
    assert_eq!(status(session.get()).await, StatusCode::NOT_FOUND);
    assert_eq!(status(session.delete()).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn ids_arrive_as_they_were_sent() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    for id in [json!("text"), json!(-3), json!(0), json!(1.5), json!("1")] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let messages = Events::new(session.post(&request).send().await.unwrap()).rest().await;
        assert_eq!(messages, [json!({ "jsonrpc": "2.0", "id": id, "result": {} })]);
    }
}

#[tokio::test]
async fn a_session_id_is_required_and_must_exist() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    assert_eq!(refused(endpoint.post(&call(1, "echo"))).await, (400, -32600));
    let mut forged = session.id.clone();
    forged.replace_range(..1, if forged.starts_with('A') { "B" } else { "A" });
    for id in [forged.as_str(), "", "0", "../mcp"] {
        let request = endpoint.post(&call(1, "echo")).header("mcp-session-id", id);
        assert_eq!(refused(request).await, (404, -32600), "{id}");
    }
}

#[tokio::test]
async fn a_stream_begins_with_an_event_id() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "progress").await;
    let priming = events.next().await.unwrap();
    assert_eq!((priming.data.as_deref(), priming.retry), (Some(""), Some(3000)));
    let mut ids = vec![priming.id.unwrap()];
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        ids.push(event.id.unwrap());
        let message: serde_json::Value = serde_json::from_str(&event.data.unwrap()).unwrap();
        seen.push(message["params"]["progress"].clone());
    }
    assert_eq!(seen, [json!(1), json!(2), json!(3), json!(null)], "the result is last");
    ids.dedup();
    assert_eq!(ids.len(), 5, "each has an id of its own");

    // Older clients take an event without a message for a broken one.
    let session = endpoint.session_of("2025-06-18").await;
    let first = session.call(1, "progress").await.next().await.unwrap();
    assert!(first.data.unwrap().contains("progress"));
}

#[tokio::test]
async fn a_call_outlives_its_connection_and_is_resumed() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let mut events = session.call(1, "wait").await;
    let priming = events.next().await.unwrap().id.unwrap();
    reaches(&endpoint.probe.waiting, 1).await;
    drop(events);
    endpoint.probe.release.notify_one();

    let resumed = session.get().header("last-event-id", &priming).send().await.unwrap();
    let messages = Events::new(resumed).rest().await;
    assert_eq!(messages, [json!({ "jsonrpc": "2.0", "id": 1, "result": { "released": true } })]);
    // And again, since whether it arrived nobody knows.
    let resumed = session.get().header("last-event-id", &priming).send().await.unwrap();
    assert_eq!(Events::new(resumed).rest().await, messages);
    assert_eq!(*endpoint.probe.cancelled.borrow(), 0);
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_ends_at_once() {
    let endpoint = Endpoint::start().await;
    let (session, other) = (endpoint.session().await, endpoint.session().await);
    let mut events = session.call(1, "echo").await;
    let first = events.next().await.unwrap().id.unwrap();
    for (session, id) in [(&other, first.as_str()), (&session, "9-9"), (&session, "nonsense")] {
        let resumed = session.get().header("last-event-id", id).send().await.unwrap();
        assert_eq!(resumed.status(), 200);
        assert_eq!(Events::new(resumed).rest().await, [json!(null); 0], "{id}");
    }
}

#[tokio::test]
async fn messages_without_a_request_go_to_the_get_stream() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let outlet = endpoint.probe.channel.lock().clone().unwrap();
    outlet.notify("notifications/message", Some(json!({ "data": "early" })));
    let mut events = Events::new(session.get().send().await.unwrap());
    assert_eq!(events.message().await["params"]["data"], "early", "kept until somebody listens");
    outlet.notify("notifications/message", Some(json!({ "data": "live" })));
    let live = events.next().await.unwrap();
    assert!(live.data.unwrap().contains("live"));

    // A second connection takes over; when it goes, the first goes on. Nothing comes twice.
    let mut second = Events::new(session.get().send().await.unwrap());
    outlet.notify("notifications/message", Some(json!({ "data": "to the second" })));
    assert_eq!(second.message().await["params"]["data"], "to the second");
    drop((events, second));
    outlet.notify("notifications/message", Some(json!({ "data": "missed" })));
    let resumed = session.get().header("last-event-id", live.id.unwrap()).send().await.unwrap();
    let mut resumed = Events::new(resumed);
    assert_eq!(resumed.message().await["params"]["data"], "to the second");
    assert_eq!(resumed.message().await["params"]["data"], "missed");
}

#[tokio::test]
async fn a_client_cancels_its_request() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let events = session.call(5, "wait").await;
    reaches(&endpoint.probe.waiting, 1).await;
    let params = json!({ "requestId": 5, "reason": "enough" });
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(status(session.post(&note)).await, StatusCode::ACCEPTED);
    assert_eq!(events.rest().await, [json!(null); 0], "there is no answer");
    assert_eq!(*endpoint.probe.cancelled.borrow(), 1);
    assert!(endpoint.probe.notifications.lock().is_empty());
}

#[tokio::test]
async fn the_end_of_a_session_cancels_its_requests() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let events = session.call(5, "wait").await;
    reaches(&endpoint.probe.waiting, 1).await;
    assert_eq!(status(session.delete()).await, StatusCode::NO_CONTENT);
    assert_eq!(events.rest().await, [json!(null); 0]);
    reaches(&endpoint.probe.cancelled, 1).await;
}

#[tokio::test]
async fn a_batch_is_answered_on_one_stream() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session_of("2025-03-26").await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let batch = json!([call(1, "echo"), note, call(2, "progress"), call(1, "missing")]);
    let messages = Events::new(session.post(&batch).send().await.unwrap()).rest().await;
    let mut answers: Vec<_> =
        messages.iter().filter_map(|message| message.get("id")).map(ToString::to_string).collect();
    answers.sort();
    assert_eq!(answers, ["1", "1", "2"]);
    assert_eq!(status(session.post(&json!([note]))).await, StatusCode::ACCEPTED);
    assert_eq!(refused(session.post(&json!([]))).await, (400, -32600));
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let session = endpoint.session_of(version).await;
        assert_eq!(refused(session.post(&json!([call(1, "echo")]))).await, (400, -32600));
        assert_eq!(refused(session.post(&json!([note]))).await, (400, -32600));
    }
    // A handshake is not in a batch either.
    let greeting = endpoint.post(&json!([initialize("2025-03-26")]));
    assert_eq!(refused(greeting).await, (400, -32600));
}

#[tokio::test]
async fn the_version_header_must_be_known_and_match() {
    let endpoint = Endpoint::start().await;
    let session = endpoint.session().await;
    let unknown = session.post(&call(1, "echo")).header("mcp-protocol-version", "2031-01-01");
    assert_eq!(refused(unknown).await, (400, -32022));
    let known = session.post(&call(1, "echo")).header("mcp-protocol-version", "2025-11-25");
    assert_eq!(status(known).await, 200);
    let other =
        endpoint.post(&initialize("2025-11-25")).header("mcp-protocol-version", "2025-06-18");
    assert_eq!(refused(other).await, (400, -32600));
    let newer = body(endpoint.post(&initialize("2026-07-28"))).await;
    assert_eq!(newer["result"]["protocolVersion"], "2025-11-25", "the handshake is of its era");
}

#[tokio::test]
async fn many_clients_at_once_get_their_own_responses() {
    let endpoint = Endpoint::start().await;
    let client = async |number: u64| {
        let session = endpoint.session().await;
        for round in 0..5 {
            let id = number * 10 + round;
            let messages = session.call(id, "echo").await.rest().await;
            let result = json!({ "echo": { "n": id } });
            assert_eq!(messages, [json!({ "jsonrpc": "2.0", "id": id, "result": result })]);
            let params = json!({ "name": "echo", "arguments": { "n": id } });
            let answer = body(endpoint.modern("tools/call", params)).await;
            assert_eq!(answer["result"], result);
        }
        assert_eq!(status(session.delete()).await, StatusCode::NO_CONTENT);
    };
    futures::future::join_all((0..100).map(client)).await;
    assert_eq!(endpoint.probe.opened.load(Ordering::SeqCst), 101);
}
