//! Requests that fail, and are sent again or not.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_agent::{AgentError, AgentEvent, EndReason, ProviderError, WireApi};

use crate::{
    endpoint::Play,
    lab::{KEY, Lab, scenarios},
    scripts::{WIRES, anthropic_events, events, streamed, text},
};

scenarios!(
    temporary_statuses_are_tried_again,
    other_statuses_are_not_tried_again,
    attempts_end,
    a_retry_after_is_obeyed,
    cut_streams_are_tried_again_and_say_so,
    a_stream_that_ends_early_is_cut,
    a_reply_with_a_hosted_tool_is_not_asked_for_twice,
    errors_within_a_stream_are_read,
    a_silent_endpoint_is_left,
    a_key_in_an_error_is_hidden,
    a_redirect_is_not_followed,
);

fn refusal(status: u16) -> Play {
    Play::Status(
        status,
        Vec::new(),
        json!({"type": "error", "error": {"type": "some_error", "message": "Not now"}}),
    )
}

fn retries(events: &[AgentEvent]) -> Vec<(u32, bool)> {
    let retries = events.iter().filter_map(|event| match event {
        AgentEvent::Retry { attempt, discards_text, .. } => Some((*attempt, *discards_text)),
        _ => None,
    });
    retries.collect()
}

async fn temporary_statuses_are_tried_again() {
    for (api, status) in
        WIRES.into_iter().flat_map(|api| [429, 500, 502, 503, 529].map(|status| (api, status)))
    {
        let mut lab = Lab::new(api, vec![refusal(status), streamed(api, &text("Hi."))]).await;
        let (events, end) = lab.ask("Hello").await;
        assert_eq!(end.unwrap().text, "Hi.", "{api:?} {status}");
        assert_eq!(retries(&events), [(1, false)]);
        let received = lab.endpoint.received();
        assert_eq!(received[0].body, received[1].body, "the same request");
    }
}

async fn other_statuses_are_not_tried_again() {
    for status in [400, 401, 403, 404, 422] {
        let mut lab = Lab::new(
            WireApi::Anthropic,
            vec![refusal(status), streamed(WireApi::Anthropic, &text("Hi."))],
        )
        .await;
        let (events, end) = lab.ask("Hello").await;
        let error = end.unwrap_err();
        assert!(matches!(error, AgentError::Provider(ProviderError::Status { .. })), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("the provider refused the request ({status}, some_error): Not now")
        );
        assert_eq!((retries(&events), lab.endpoint.left()), (Vec::new(), 1));
        // The question is kept, and the conversation goes on.
        assert_eq!(lab.conversation.resume().finish().await.unwrap().text, "Hi.");
        assert_eq!(lab.body(1)["messages"].as_array().unwrap().len(), 1);
    }
}

async fn attempts_end() {
    let api = WireApi::Completions;
    let plays = (0..5).map(|_| refusal(500)).collect();
    let mut lab = Lab::new(api, plays).await;
    let (events, end) = lab.ask("Hello").await;
    assert!(end.is_err());
    assert_eq!(retries(&events).len(), 4);
    assert_eq!(lab.endpoint.received().len(), 5);
}

async fn a_retry_after_is_obeyed() {
    let api = WireApi::Anthropic;
    let later =
        |value: &str| Play::Status(429, vec![("retry-after", value.to_owned())], Value::Null);
    let mut lab = Lab::new(api, vec![later("0"), later("90")]).await;
    let mut turn = lab.conversation.ask("Hello");
    let mut waits = Vec::new();
    let cancel = turn.canceller();
    while let Some(event) =
        toolgate_testkit::within("an event", futures::StreamExt::next(&mut turn)).await
    {
        match event {
            AgentEvent::Retry { wait, .. } => {
                waits.push(wait);
                if waits.len() == 2 {
                    // The test does not wait; a cancel ends a wait too.
                    cancel.cancel();
                }
            }
            AgentEvent::Done(end) => assert_eq!(end.reason, EndReason::Cancelled),
            _ => {}
        }
    }
    drop(turn);
    assert_eq!(waits, [Duration::ZERO, Duration::from_secs(90)]);
    // What is too long is not waited for.
    let mut lab = Lab::new(api, vec![later("3600")]).await;
    assert!(lab.ask("Hello").await.1.is_err());
}

async fn cut_streams_are_tried_again_and_say_so() {
    for api in WIRES {
        let whole = events(api, &text("Good morning."));
        // Before anything was shown, and after a piece was.
        let shown = whole.iter().position(|event| event.contains("Good")).unwrap() + 1;
        for (pieces, discards) in [(shown - 1, false), (shown, true)] {
            let cut = Play::Cut(whole[..pieces].to_vec());
            let mut lab = Lab::new(api, vec![cut, streamed(api, &text("Good morning."))]).await;
            let (events, end) = lab.ask("Hello").await;
            assert_eq!(end.unwrap().text, "Good morning.", "{api:?}");
            assert_eq!(retries(&events), [(1, discards)], "{api:?} after {pieces}");
            assert_eq!(lab.conversation.history().len(), 2, "{api:?}");
        }
    }
}

async fn a_stream_that_ends_early_is_cut() {
    for api in WIRES {
        let whole = events(api, &text("Good morning."));
        let early = match api {
            // The end of a reply is marked by `finish_reason`, which comes before the usage.
            WireApi::Completions => whole[..whole.len() - 3].to_vec(),
            _ => whole[..whole.len() - 1].to_vec(),
        };
        let mut lab =
            Lab::new(api, vec![Play::EndedEarly(early), streamed(api, &text("Good morning."))])
                .await;
        let (events, end) = lab.ask("Hello").await;
        assert_eq!(end.unwrap().text, "Good morning.", "{api:?}");
        assert_eq!(retries(&events), [(1, true)], "{api:?}");
    }
    // An endpoint that leaves out `[DONE]` is understood.
    let api = WireApi::Completions;
    let mut whole = events(api, &text("Hi."));
    whole.pop();
    let mut lab = Lab::new(api, vec![Play::Events(whole)]).await;
    assert_eq!(lab.answer("Hello").await.text, "Hi.");
}

async fn a_reply_with_a_hosted_tool_is_not_asked_for_twice() {
    let api = WireApi::Anthropic;
    let program = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}, "caller": {"type": "direct"}});
    let mut pieces = anthropic_events(&[program], "end_turn", Value::Null);
    pieces.truncate(pieces.len() - 2);
    let mut lab = Lab::new(api, vec![Play::Cut(pieces), streamed(api, &text("Hi."))]).await;
    let (events, end) = lab.ask("Hello").await;
    assert_eq!(end.unwrap_err(), AgentError::Provider(ProviderError::Cut { after_effect: true }));
    assert_eq!((retries(&events).len(), lab.endpoint.left()), (0, 1));
}

async fn errors_within_a_stream_are_read() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": null});
    let mut failed = crate::scripts::response_object(&[], "failed");
    failed["error"] = json!({"code": "server_error", "message": "Oh"});
    let failed = json!({"type": "response.failed", "response": failed, "sequence_number": 0});
    for (api, event) in [(WireApi::Anthropic, overloaded), (WireApi::Responses, failed)] {
        let plays = vec![Play::Events(vec![event.to_string()]), streamed(api, &text("Hi."))];
        let mut lab = Lab::new(api, plays).await;
        lab.endpoint.foreign();
        let (events, end) = lab.ask("Hello").await;
        assert_eq!(end.unwrap().text, "Hi.", "{api:?}");
        assert_eq!(retries(&events), [(1, false)], "{api:?}");
    }
}

async fn a_silent_endpoint_is_left() {
    let api = WireApi::Gemini;
    let plays = vec![Play::Silent(Vec::new()), streamed(api, &text("Hi."))];
    let mut lab =
        Lab::with(api, plays, |model| model.idle_timeout = Duration::from_millis(200), |_| {})
            .await;
    let (events, end) = lab.ask("Hello").await;
    // On a machine under load the second answer may come too late as well; what counts is that nobody waits for ever.
    assert!(!retries(&events).is_empty(), "{events:?} {end:?}");
}

async fn a_key_in_an_error_is_hidden() {
    for api in WIRES {
        let message = format!("Incorrect API key provided: {KEY}.");
        let play =
            Play::Status(401, Vec::new(), json!({"error": {"message": message, "type": KEY}}));
        let mut lab = Lab::new(api, vec![play]).await;
        let error = lab.ask("Hello").await.1.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY) && shown.contains("Incorrect API key"), "{shown}");
    }
}

async fn a_redirect_is_not_followed() {
    let api = WireApi::Responses;
    let other = crate::endpoint::Endpoint::start(vec![streamed(api, &text("Stolen."))]).await;
    let play =
        Play::Status(307, vec![("location", format!("{}/responses", other.url))], Value::Null);
    let mut lab = Lab::new(api, vec![play]).await;
    assert!(lab.ask("Hello").await.1.is_err());
    assert_eq!(other.received().len(), 0);
}
