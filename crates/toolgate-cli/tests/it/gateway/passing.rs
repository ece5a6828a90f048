//! What passes through while a call runs: metadata, progress, cancellation, deadlines.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, HttpAnswers, HttpOptions, RawClient, within};

use crate::{
    fixtures::kit,
    support::{Workplace, call, call_through, entry, entry_with, text, until},
};

fn workplace() -> Workplace {
    Workplace::deferred(&json!({ "kit": entry(&kit()) }))
}

/// `call_tool` with metadata of the request.
fn request(tool: &str, arguments: &Value, meta: &Value) -> Value {
    json!({ "name": "call_tool", "arguments": { "name": tool, "arguments": arguments }, "_meta": meta })
}

/// Waits for an answer and gives the progress that came before it.
async fn reports(client: &mut RawClient, id: u64, token: &Value) -> (Vec<Value>, Value) {
    let answer = client.answer(id).await.unwrap();
    let asides = std::mem::take(&mut client.asides);
    let progress = asides
        .into_iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|mut message| message["params"].take())
        .inspect(|params| assert_eq!(params["progressToken"], *token));
    (progress.collect(), answer)
}

#[tokio::test]
async fn progress_passes_in_order_and_before_the_result() {
    let events = HttpOptions { answers: HttpAnswers::Sse, ..HttpOptions::default() };
    let http = kit().with_http(events).serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let workplace =
        Workplace::deferred(&json!({ "kit": entry(&kit()), "web": { "url": http.url() } }));
    let mut client = workplace.connect(&[]).await;
    for (tool, token) in [
        ("kit_progress", json!("a token")),
        ("kit_progress", json!(7)),
        ("web_progress", json!("over HTTP")),
    ] {
        let params = request(tool, &json!({ "steps": 100 }), &json!({ "progressToken": token }));
        let id = client.begin("tools/call", params).await.unwrap();
        let (progress, answer) = reports(&mut client, id, &token).await;
        assert_eq!(text(&answer["result"]), "Took 100 steps.", "{tool}");
        let steps: Vec<f64> =
            progress.iter().map(|report| report["progress"].as_f64().unwrap()).collect();
        assert_eq!(steps, (1..=100).map(f64::from).collect::<Vec<_>>(), "{tool}");
        assert_eq!(progress[9]["total"].as_f64(), Some(100.0));
        assert_eq!(progress[9]["message"], "step 10");
    }
    // A client that does not request progress gets none.
    let id = client
        .begin("tools/call", request("kit_progress", &json!({ "steps": 3 }), &json!({})))
        .await;
    let answer = client.answer(id.unwrap()).await.unwrap();
    assert!(answer["result"].is_object());
    assert!(client.asides.is_empty(), "{:?}", client.asides);
}

#[tokio::test]
async fn progress_passes_as_it_was_sent_in_both_eras() {
    let server = |era| entry(&Fixture::new("s").with_era(era).with_builtins([Builtin::Progress]));
    let workplace = Workplace::deferred(&json!({
        "old": server(FixtureEra::Legacy), "new": server(FixtureEra::Modern),
    }));
    let mut old = workplace.connect(&[]).await;
    let mut new = workplace.serve(&[]);
    let with = json!({ "_meta": { "org.example/trace": { "n": 1.5 } }, "odd": [null], "total": 3 });
    let sent = json!({
        "progressToken": "t", "progress": 1, "total": 3, "message": "step 1",
        "_meta": { "org.example/trace": { "n": 1.5 } }, "odd": [null],
    });
    for tool in ["old_progress", "new_progress"] {
        let arguments = json!({ "steps": 1, "with": with });
        for (client, meta) in [
            (&mut old, json!({ "progressToken": "t" })),
            (
                &mut new,
                json!({
                    "progressToken": "t",
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "raw-client", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                }),
            ),
        ] {
            let params = request(tool, &arguments, &meta);
            let id = client.begin("tools/call", params).await.unwrap();
            let (progress, answer) = reports(client, id, &json!("t")).await;
            assert_eq!(progress, std::slice::from_ref(&sent), "{tool}: {answer}");
        }
    }
}

#[tokio::test]
async fn two_calls_at_once_keep_their_progress_apart() {
    let mut client = workplace().connect(&[]).await;
    let mut ids = Vec::new();
    for token in ["left", "right"] {
        let arguments = json!({ "steps": 20, "intervalMs": 1 });
        let params = request("kit_progress", &arguments, &json!({ "progressToken": token }));
        ids.push(client.begin("tools/call", params).await.unwrap());
    }
    // The answers may come in either order.
    let mut waiting = ids;
    let mut seen = [Vec::new(), Vec::new()];
    while !waiting.is_empty() {
        let message: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        if let Some(id) = message["id"].as_u64() {
            waiting.retain(|other| *other != id);
            continue;
        }
        let side = usize::from(message["params"]["progressToken"] == "right");
        seen[side].push(message["params"]["progress"].as_f64().unwrap());
    }
    for progress in seen {
        assert_eq!(progress, (1..=20).map(f64::from).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let mut client = workplace().connect(&[]).await;
    let mut waiting = std::collections::HashMap::new();
    for number in 0..200 {
        let arguments = json!({ "message": format!("call {number}") });
        let params = request("kit_echo", &arguments, &json!({}));
        waiting.insert(client.begin("tools/call", params).await.unwrap(), arguments);
    }
    while !waiting.is_empty() {
        let message: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        let arguments = waiting.remove(&message["id"].as_u64().unwrap()).unwrap();
        assert_eq!(message["result"]["structuredContent"], arguments, "{message}");
    }
}

#[tokio::test]
async fn ids_are_returned_unchanged_and_large_arguments_arrive_whole() {
    let mut client = workplace().connect(&[]).await;
    for id in [json!("a string"), json!(0), json!(9_007_199_254_740_991_u64)] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        client.send_line(&message.to_string()).await.unwrap();
        let answer: Value = serde_json::from_str(&client.line().await.unwrap()).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["result"]["tools"].is_array());
    }
    let message = "größer ".repeat(300_000);
    let code = "return (await kit_echo({ message: 'größer '.repeat(300000) })).message.length";
    let result = call(&mut client, "run_code", json!({ "code": code })).await;
    assert!(text(&result).starts_with(&message.chars().count().to_string()), "{result}");
    let result = call_through(&mut client, "kit_echo", json!({ "message": message })).await;
    assert_eq!(result.get("isError"), None);
    let bytes = json!({ "message": message }).to_string().len();
    let id = text(&result).split("id: \"").nth(1).unwrap().split('"').next().unwrap();
    let end = call(&mut client, "read_output", json!({ "id": id, "offset": bytes })).await;
    assert_eq!(text(&end), format!("[the end; {bytes} bytes in all]"));
}

#[tokio::test]
async fn metadata_of_a_request_reaches_the_server() {
    let mut client = workplace().connect(&[]).await;
    let meta = json!({ "example/trace": { "id": "0af7", "sampled": true } });
    let params = request("kit_echo", &json!({ "message": "hi" }), &meta);
    let answer = client.request("tools/call", params).await.unwrap();
    let seen = &answer["result"]["_meta"]["fixture/requestMeta"];
    assert_eq!(seen["example/trace"], meta["example/trace"], "{answer}");
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_and_the_call_ends() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let workplace = Workplace::deferred(&json!({ "kit": entry(&kit().with_call_log(&log)) }));
    let mut client = workplace.connect(&[]).await;
    let params = json!({ "name": "kit_sleep", "arguments": { "ms": 600_000 } });
    let id = client.begin("tools/call", json!({ "name": "call_tool", "arguments": params })).await;
    let id = id.unwrap();
    until("the call has arrived", async || log.exists().then_some(())).await;
    let cancel = json!({ "requestId": id, "reason": "Changed my mind" });
    client.notify("notifications/cancelled", cancel).await.unwrap();
    let cancelled = until("the server heard of it", async || {
        let result = call_through(&mut client, "kit_last_cancelled", json!({})).await;
        let cancelled = result["structuredContent"]["lastCancelled"].clone();
        (!cancelled.is_null()).then_some(cancelled)
    })
    .await;
    assert!(cancelled["requestId"].is_number() || cancelled["requestId"].is_string());
    let answered = client.asides.iter().any(|message| message["id"] == id);
    assert!(!answered, "nobody waits for an answer: {:?}", client.asides);
}

#[tokio::test]
async fn cancelling_an_ended_or_unknown_request_does_nothing() {
    let mut client = workplace().connect(&[]).await;
    call_through(&mut client, "kit_echo", json!({})).await;
    for id in [json!(2), json!(999), json!("never"), json!(null)] {
        client.notify("notifications/cancelled", json!({ "requestId": id })).await.unwrap();
    }
    let result = call_through(&mut client, "kit_last_cancelled", json!({})).await;
    assert_eq!(result["structuredContent"]["lastCancelled"], Value::Null);
}

/// The idle limit is short and the total one long, or the other way round.
fn limited(idle: f64, total: f64) -> Workplace {
    let limits = json!({ "callIdleTimeoutSeconds": idle, "callTotalTimeoutSeconds": total });
    let builtins = [Builtin::Sleep, Builtin::Progress, Builtin::LastCancelled];
    let fixture = Fixture::new("slow").with_builtins(builtins);
    Workplace::deferred(&json!({ "slow": entry_with(&fixture, limits) }))
}

#[tokio::test]
async fn a_call_without_progress_times_out_and_the_server_is_notified() {
    let mut client = limited(1.0, 60.0).connect(&[]).await;
    let result = call_through(&mut client, "slow_sleep", json!({ "ms": 600_000 })).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text(&result), @"server `slow` gave no answer to `sleep` within 1 s (without progress, `callIdleTimeoutSeconds`); it was asked to cancel, and whether the call took effect is unknown");
    let result = call_through(&mut client, "slow_last_cancelled", json!({})).await;
    assert!(!result["structuredContent"]["lastCancelled"].is_null(), "{result}");
}

#[tokio::test]
async fn progress_resets_the_deadline() {
    let mut client = limited(2.0, 60.0).connect(&[]).await;
    // Three seconds in all, and never one without a sign of life.
    let arguments = json!({ "steps": 12, "intervalMs": 250 });
    let params = request("slow_progress", &arguments, &json!({ "progressToken": 1 }));
    let answer = client.request("tools/call", params).await.unwrap();
    assert_eq!(text(&answer["result"]), "Took 12 steps.");
    // The client need not want the progress itself for that.
    let result = call_through(&mut client, "slow_progress", arguments).await;
    assert_eq!(text(&result), "Took 12 steps.");
}

#[tokio::test]
async fn a_call_that_never_ends_is_capped() {
    let mut client = limited(1.0, 2.0).connect(&[]).await;
    let arguments = json!({ "steps": 100_000, "intervalMs": 50 });
    let call = call_through(&mut client, "slow_progress", arguments);
    let result = within("the end of the call", call).await;
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(text(&result), @"server `slow` gave no answer to `progress` within 2 s (the limit for a whole call, `callTotalTimeoutSeconds`); it was asked to cancel, and whether the call took effect is unknown");
}
