//! Results arrive whole.

use serde_json::{Value, json};
use toolgate_testkit::{AnswerFault, Builtin, Faults, Fixture, FixtureEra, HttpOptions};
use toolgate_upstream::{CallError, CallOptions};

use crate::support::{Gate, Over, definition, millis, serve, stdio, with_limits};

fn odd_results() -> Vec<Value> {
    vec![
        json!({
            "content": [
                { "type": "text", "text": "x", "extra": { "deep": [1, 2.5, null] } },
                { "type": "hologram", "volume": 3.0 },
                { "type": "text", "text": "for the system", "annotations": { "audience": ["system"] } },
                { "type": "resource_link", "uri": "a://b", "name": "n", "size": 12.0 },
            ],
            "structuredContent": { "a": [1, "two"] },
            "isError": true,
            "_meta": { "vendor/trace": "abc" },
            "x-unknown": { "kept": true },
        }),
        json!({}),
        json!({ "content": "not a list", "isError": "maybe" }),
        json!({ "tools": [], "nextCursor": "n" }),
        json!({ "io.toolgate/raw": { "content": [] } }),
    ]
}

#[tokio::test]
async fn results_are_what_the_server_sent() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let mut fixture = Fixture::new("odd").with_era(era);
            for (number, result) in odd_results().into_iter().enumerate() {
                let name = format!("odd_{number}");
                fixture = fixture.with_tool(definition(&name)).with_answer(name, result);
            }
            let (spec, _running) = serve(fixture, over).await;
            let gate = Gate::ready(spec).await;
            for (number, mut sent) in odd_results().into_iter().enumerate() {
                if era == FixtureEra::Modern {
                    sent["resultType"] = json!("complete");
                }
                let result = gate.call(&format!("odd_{number}"), json!({})).await.unwrap();
                assert_eq!(result, sent, "{number} {era:?} over {over:?}");
            }
        }
    }
}

#[tokio::test]
async fn media_survives_every_transport_alike() {
    let mut results = Vec::new();
    for over in Over::ALL {
        let fixture = Fixture::new("media").with_builtins([Builtin::Media, Builtin::Fail]);
        let (spec, _running) = serve(fixture, over).await;
        let gate = Gate::ready(spec).await;
        results.push(gate.call("media", json!({})).await.unwrap());
        let failed = gate.call("fail", json!({ "message": "no" })).await.unwrap();
        assert_eq!(
            failed,
            json!({ "content": [{ "type": "text", "text": "no" }], "isError": true })
        );
    }
    assert_eq!(results[0]["content"][5]["type"], "hologram");
    assert_eq!(results[0]["_meta"], json!({ "fixture/result": true }));
    assert!(results.iter().all(|result| *result == results[0]));
}

#[tokio::test]
async fn the_callers_meta_reaches_the_server_except_connection_keys() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let fixture = Fixture::new("meta").with_builtins([Builtin::Echo]).with_era(era);
        let gate = Gate::ready(stdio(&fixture)).await;
        let meta = json!({
            "vendor/trace": { "id": 7 },
            "progressToken": "stolen",
            "io.modelcontextprotocol/protocolVersion": "1999-01-01",
        });
        let options = CallOptions { meta: meta.as_object().cloned(), ..CallOptions::default() };
        let result = gate.call_with("echo", json!({}), options).await.unwrap();
        let arrived = &result["_meta"]["fixture/requestMeta"];
        assert_eq!(arrived["vendor/trace"], json!({ "id": 7 }));
        assert_ne!(arrived["progressToken"], "stolen");
        assert_ne!(arrived["io.modelcontextprotocol/protocolVersion"], "1999-01-01");
    }
}

#[tokio::test]
async fn an_error_is_passed_on_with_its_code() {
    for over in Over::ALL {
        let fixture = Fixture::new("refusing").with_builtins([Builtin::RpcError]);
        let (spec, _running) = serve(fixture, over).await;
        let gate = Gate::ready(spec).await;
        let error = gate.call("rpc_error", json!({ "code": -32099, "message": "not today" })).await;
        let Err(CallError::Refused { error, .. }) = error else { panic!("{over:?}: {error:?}") };
        assert_eq!((error.code, error.message.as_str()), (-32099, "not today"));
        let error = gate.call("missing", json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), "server `fixture` refused `missing`: Unknown tool: missing");
    }
}

#[tokio::test]
async fn an_unreadable_response_ends_only_its_call() {
    for over in Over::ALL {
        for fault in [
            AnswerFault::Garbage,
            AnswerFault::Truncated,
            AnswerFault::WrongId,
            AnswerFault::Hollow,
            AnswerFault::Silence,
        ] {
            let fixture = Fixture::new("broken")
                .with_builtins([Builtin::Add])
                .with_faults(Faults::broken_answer("tools/call", fault));
            let (spec, _running) = serve(fixture, over).await;
            let spec = with_limits(spec, |limits| limits.idle = millis(700));
            let gate = Gate::ready(spec).await;
            let error = gate.call("add", json!({ "a": 1, "b": 1 })).await.unwrap_err();
            // Where nothing says what an answer belongs to, the call ends by its time.
            let unknowable = match over {
                Over::Stdio => !matches!(fault, AnswerFault::Truncated | AnswerFault::Hollow),
                Over::HttpJson | Over::HttpSse => fault == AnswerFault::Silence,
            };
            let timed_out = matches!(error, CallError::TimedOut { .. });
            assert_eq!(timed_out, unknowable, "{fault:?} over {over:?}: {error}");
            assert_eq!(gate.state("fixture").attempts, 1, "it is still connected");
        }
    }
}

#[tokio::test]
async fn half_of_a_surrogate_pair_is_replaced_and_noted() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let said = json!({ "content": [{ "type": "text", "text": "a\u{fffd}b \u{1f600}" }] });
            let fixture = Fixture::new("broken")
                .with_tool(json!({ "name": "say", "inputSchema": { "type": "object" } }))
                .with_answer("say", said.clone())
                .with_era(era)
                .with_faults(Faults::broken_answer("tools/call", AnswerFault::LoneSurrogate));
            let (spec, _running) = serve(fixture, over).await;
            let gate = Gate::ready(spec).await;
            let result = gate.call("say", json!({})).await.unwrap();
            assert_eq!(result["content"], said["content"], "{era:?} over {over:?}");
            assert_eq!(result["_meta"]["toolgate/replaced"], 1, "{era:?} over {over:?}");
        }
    }
}

#[tokio::test]
async fn many_calls_at_once_get_their_own_answers() {
    for over in Over::ALL {
        let fixture = Fixture::new("busy").with_builtins([Builtin::Echo]);
        let (spec, _running) = serve(fixture, over).await;
        let gate = Gate::ready(spec).await;
        let calls = (0..100).map(|number| gate.structured("echo", json!({ "message": number })));
        for (number, answer) in futures::future::join_all(calls).await.into_iter().enumerate() {
            assert_eq!(answer, json!({ "message": number }), "{over:?}");
        }
    }
}

#[tokio::test]
async fn a_lost_session_is_opened_again_and_the_list_is_fetched_again() {
    for over in Over::HTTP {
        let faults = Faults { sessions_lost_after_calls: Some(1), ..Faults::default() };
        let http = HttpOptions { notification_stream: false, ..HttpOptions::default() };
        let fixture =
            Fixture::new("forgetful").with_builtins([Builtin::Counter]).with_faults(faults);
        let (spec, running) = serve(fixture.with_http(http), over).await;
        let gate = Gate::ready(spec).await;
        assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 1 }));
        assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 2 }));
        assert_eq!(running.as_ref().unwrap().calls(), 2);
        gate.until("another list", |gate| gate.told.listings_of("fixture") >= 2).await;
        assert_eq!(gate.state("fixture").attempts, 1);
    }
}
