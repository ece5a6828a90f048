//! Turns that are stopped. The history stays valid.

use futures::StreamExt as _;
use serde_json::json;
use toolgate_agent::{AgentEvent, EndReason, ToolDiscovery, WireApi};
use toolgate_testkit::within;

use crate::{
    endpoint::Play,
    lab::{Lab, read, scenarios},
    scripts::{WIRES, call, events, streamed, text},
};

scenarios!(
    a_cancelled_turn_answers_its_calls,
    a_cancelled_reply_leaves_the_question,
    a_call_that_a_person_was_asked_about_was_not_made,
    a_dropped_turn_is_repaired
);

async fn waiting(api: WireApi) -> Lab {
    let mut said = call("c1", "logs_read", json!({}));
    said.calls.push(("c2", "wait", json!({})));
    let plays = vec![streamed(api, &said), streamed(api, &text("Done."))];
    Lab::with(api, plays, |model| model.discovery = Some(ToolDiscovery::Direct), |_| {}).await
}

async fn a_cancelled_turn_answers_its_calls() {
    for api in WIRES {
        let mut lab = waiting(api).await;
        let tools = std::sync::Arc::clone(&lab.tools);
        let turn = lab.conversation.ask("Go");
        let cancel = turn.canceller();
        let stop = async move {
            tools.waiting.acquire().await.unwrap().forget();
            cancel.cancel();
        };
        let ((events, end), ()) = tokio::join!(read(turn), stop);
        assert_eq!(end.unwrap().reason, EndReason::Cancelled, "{api:?}");
        let results =
            events.iter().filter(|event| matches!(event, AgentEvent::ToolResult { .. })).count();
        assert_eq!(results, 2, "{api:?}");
        lab.answer("And now?").await;
        let body = &lab.endpoint.received()[1].body;
        assert!(
            body.contains("the person cancelled the turn") && body.contains("\\\"ok\\\":true")
                || api == WireApi::Gemini,
            "{api:?}: {body}"
        );
        assert!(body.contains("And now?"));
    }
}

async fn a_call_that_a_person_was_asked_about_was_not_made() {
    let api = WireApi::Completions;
    let mut said = call("c1", "ask_and_wait", json!({}));
    said.calls.push(("c2", "wait", json!({})));
    let plays = vec![streamed(api, &said), streamed(api, &text("Done."))];
    let direct = |model: &mut toolgate_agent::ModelSettings| {
        model.discovery = Some(ToolDiscovery::Direct);
    };
    let mut lab = Lab::with(api, plays, direct, |_| {}).await;
    let tools = std::sync::Arc::clone(&lab.tools);
    let turn = lab.conversation.ask("Go");
    let cancel = turn.canceller();
    let stop = async move {
        tools.waiting.acquire_many(2).await.unwrap().forget();
        cancel.cancel();
    };
    let ((_, end), ()) = tokio::join!(read(turn), stop);
    assert_eq!(end.unwrap().reason, EndReason::Cancelled);
    lab.answer("And now?").await;
    let messages = lab.body(1)["messages"].clone();
    assert_eq!(
        messages[3]["content"],
        "Error: the person cancelled the turn while a person was asked about this call; it was not made"
    );
    assert_eq!(
        messages[4]["content"],
        "Error: the person cancelled the turn while this call ran; its outcome is not known"
    );
}

async fn a_cancelled_reply_leaves_the_question() {
    for api in WIRES {
        let whole = events(api, &text("Good morning."));
        let shown = whole.iter().position(|event| event.contains("Good")).unwrap() + 1;
        let plays = vec![Play::Silent(whole[..shown].to_vec()), streamed(api, &text("Hi."))];
        let mut lab = Lab::new(api, plays).await;
        let mut turn = lab.conversation.ask("Hello");
        let first = within("the first delta", turn.next()).await;
        assert!(matches!(first, Some(AgentEvent::TextDelta { .. })), "{first:?}");
        turn.canceller().cancel();
        assert_eq!(turn.finish().await.unwrap().reason, EndReason::Cancelled);
        assert_eq!(lab.conversation.history().len(), 1, "{api:?}");
        assert_eq!(lab.answer("Again").await.text, "Hi.", "{api:?}");
    }
}

async fn a_dropped_turn_is_repaired() {
    for api in WIRES {
        let mut lab = waiting(api).await;
        let mut turn = lab.conversation.ask("Go");
        loop {
            let event = within("the call that waits", turn.next()).await.unwrap();
            if matches!(&event, AgentEvent::ToolCallStarted { name, .. } if name == "wait") {
                break;
            }
        }
        drop(turn);
        lab.answer("And now?").await;
        let body = &lab.endpoint.received()[1].body;
        assert_eq!(
            body.matches("the turn was stopped while this call ran").count(),
            2,
            "{api:?}: {body}"
        );
    }
}
