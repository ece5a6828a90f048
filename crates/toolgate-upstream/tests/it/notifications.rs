//! Notifications of servers.

use std::time::Instant;

use serde_json::json;
use tokio::sync::mpsc;
use toolgate_mcp::LogLevel;
use toolgate_testkit::{Builtin, Fixture, FixtureEra};
use toolgate_upstream::{CallError, CallOptions, LogSink};

use crate::support::{Gate, NAME, Over, millis, serve, with_limits, within};

#[tokio::test]
async fn log_messages_of_a_call_reach_its_caller_as_they_were_sent() {
    for over in [Over::Stdio, Over::HttpSse] {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let fixture = Fixture::new("talkative").with_era(era).with_builtins([Builtin::Log]);
            let (spec, _running) = serve(fixture, over).await;
            let gate = Gate::ready(spec).await;
            let data = json!({ "odd": [null, 1.5], "_meta": 1 });
            let arguments = json!({ "level": "warning", "data": data, "count": 2 });
            let (messages, mut told) = mpsc::channel(8);
            let log = Some(LogSink { level: Some(LogLevel::Debug), messages });
            let options = CallOptions { log, ..CallOptions::default() };
            gate.call_with("log", arguments, options).await.unwrap();
            for number in 1..=2 {
                let mut message = within("the log", told.recv()).await.unwrap();
                let logger = message["logger"].take();
                assert!(logger.as_str().unwrap().contains(NAME), "{logger}");
                let expected =
                    json!({ "level": "warning", "logger": null, "data": data, "number": number });
                assert_eq!(message, expected, "{era:?} {over:?}");
            }
        }
    }
}

#[tokio::test]
async fn changes_of_resources_and_prompts_are_notified_in_both_eras() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let fixture = Fixture::new("changing")
                .with_era(era)
                .with_capability("resources", json!({ "listChanged": true, "odd": 1 }))
                .with_capability("prompts", json!({ "listChanged": true }));
            let (spec, _running) = serve(fixture, over).await;
            let gate = Gate::ready(spec).await;
            let capabilities = gate.state(NAME).handshake.unwrap().capabilities;
            let declared = json!({
                "tools": { "listChanged": true },
                "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "odd": 1 },
            });
            assert_eq!(json!(capabilities), declared, "{era:?} {over:?}");
            for list in ["resources", "prompts"] {
                let method = format!("notifications/{list}/list_changed");
                let told = |gate: &Gate| {
                    let notifications = gate.told.notifications();
                    notifications.iter().any(|(told, params)| {
                        *told == method && params.as_ref().is_some_and(|params| params["odd"] == 7)
                    })
                };
                // A modern server tells only those whose subscription has come in.
                while !told(&gate) {
                    let params = json!({ "method": method, "params": { "odd": 7 }, "toAll": true });
                    let options = CallOptions::default();
                    let server = NAME.into();
                    let sent =
                        gate.upstream.request(&server, "fixture/notify", Some(params), options);
                    sent.await.unwrap();
                    let telling = gate.until("the notification", told);
                    let _ = tokio::time::timeout(crate::support::millis(2000), telling).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_subscription_lives_until_it_is_cancelled() {
    for over in Over::ALL {
        let (spec, _running) =
            serve(Fixture::new("changing").with_era(FixtureEra::Modern), over).await;
        let spec = with_limits(spec, |limits| {
            limits.idle = millis(300);
            limits.total = millis(300);
        });
        let gate = Gate::ready(spec).await;
        let server = NAME.into();
        let wanted = json!({ "notifications": { "resourceSubscriptions": ["x:y"] } });
        let options = CallOptions::default();
        let cancel = options.cancel.clone();
        let listening =
            gate.upstream.request(&server, "subscriptions/listen", Some(wanted), options);
        let updating = async {
            let method = "notifications/resources/updated";
            let update = json!({ "method": method, "params": { "uri": "x:y" }, "toAll": true });
            // Longer than the limits, and until the subscription has come in.
            let started = Instant::now();
            while started.elapsed() < millis(700) || gate.told.notifications().is_empty() {
                let options = CallOptions::default();
                let sent =
                    gate.upstream.request(&server, "fixture/notify", Some(update.clone()), options);
                sent.await.unwrap();
                tokio::time::sleep(millis(50)).await;
            }
            let (told, params) = gate.told.notifications().remove(0);
            assert_eq!((told.as_str(), &params.unwrap()["uri"]), (method, &json!("x:y")));
            cancel.cancel();
        };
        let (outcome, ()) = within("the end", async { tokio::join!(listening, updating) }).await;
        assert!(matches!(outcome, Err(CallError::Cancelled)), "{over:?}: {outcome:?}");
    }
}
