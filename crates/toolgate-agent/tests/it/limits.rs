//! Limits, stops and compaction.

use serde_json::{Value, json};
use toolgate_agent::{
    AgentError, AgentEvent, AgentLimit, EndReason, TokenPrices, ToolDiscovery, WireApi,
};

use crate::{
    endpoint::Play,
    lab::{Lab, scenarios},
    scripts::{WIRES, anthropic_events, call, events, response_object, streamed, text},
};

scenarios!(
    requests_of_a_turn_are_limited,
    tokens_are_limited,
    the_cost_is_limited,
    long_results_are_cut,
    a_paused_turn_continues,
    a_refusal_is_not_kept,
    calls_of_a_reply_that_was_cut_short_are_not_made,
    an_answer_at_its_limit_ends_the_turn,
    a_full_window_is_compacted_before_the_next_request,
    a_window_that_is_exceeded_is_compacted_once,
    a_request_over_the_window_is_an_error,
);

async fn requests_of_a_turn_are_limited() {
    for api in WIRES {
        let plays = (0..3).map(|_| streamed(api, &call("c1", "time_now", json!({})))).collect();
        let direct = |model: &mut toolgate_agent::ModelSettings| {
            model.discovery = Some(ToolDiscovery::Direct);
        };
        let mut lab = Lab::with(api, plays, direct, |settings| settings.limits.requests = 2).await;
        let end = lab.answer("Loop").await;
        assert_eq!(
            (end.reason, end.requests),
            (EndReason::Limit(AgentLimit::Requests), 2),
            "{api:?}"
        );
        // The calls of the last reply have their answers, so the conversation can go on.
        assert_eq!(lab.tools.called().len(), 2);
        lab.endpoint.add(vec![streamed(api, &text("Done."))]);
        lab.conversation.resume().finish().await.unwrap();
    }
}

async fn tokens_are_limited() {
    let api = WireApi::Completions;
    let plays = vec![streamed(api, &text("One.")), streamed(api, &text("Two."))];
    let mut lab =
        Lab::with(api, plays, |_| {}, |settings| settings.limits.tokens = Some(122)).await;
    assert_eq!(lab.answer("1").await.reason, EndReason::Answered);
    assert_eq!(lab.answer("2").await.reason, EndReason::Limit(AgentLimit::Tokens));
    assert_eq!(lab.endpoint.received().len(), 1);
}

async fn the_cost_is_limited() {
    let api = WireApi::Responses;
    let prices = TokenPrices { input: 1e6, cached: 1e5, cache_written: 2e6, output: 1e6 };
    let mut lab = Lab::with(
        api,
        vec![streamed(api, &text("One.")), streamed(api, &text("Two."))],
        |_| {},
        |settings| {
            settings.prices = Some(prices);
            settings.limits.cost = Some(37.0);
        },
    )
    .await;
    let (events, _) = lab.ask("1").await;
    // 10 new, 100 cached, 5 written, 7 of output.
    let cost = events.iter().find_map(|event| match event {
        AgentEvent::Usage { cost, .. } => *cost,
        _ => None,
    });
    assert_eq!(cost, Some(37.0));
    assert_eq!(lab.answer("2").await.reason, EndReason::Limit(AgentLimit::Cost));
}

async fn long_results_are_cut() {
    let api = WireApi::Anthropic;
    let long = json!({"title": "x".repeat(5_000)});
    let plays = vec![streamed(api, &call("c1", "time_now", long)), streamed(api, &text("Done."))];
    let mut lab =
        Lab::with(api, plays, |_| {}, |settings| settings.limits.result_bytes = 100).await;
    lab.answer("Go").await;
    let text =
        lab.body(1)["messages"][2]["content"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.len() < 200 && text.contains("over the limit of 100]"), "{text}");
}

async fn a_paused_turn_continues() {
    let api = WireApi::Anthropic;
    let half = [
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}, "caller": {"type": "direct"}}),
    ];
    let plays = vec![
        Play::Events(anthropic_events(&half, "pause_turn", Value::Null)),
        streamed(api, &text("Done.")),
    ];
    let mut lab = Lab::new(api, plays).await;
    assert_eq!(lab.answer("Search").await.text, "Done.");
    let messages = lab.body(1)["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2);
    assert_eq!(messages[1], json!({"role": "assistant", "content": half}));
}

async fn a_refusal_is_not_kept() {
    let refused = |api: WireApi| match api {
        WireApi::Anthropic => anthropic_events(
            &[json!({"type": "text", "text": "I", "citations": null})],
            "refusal",
            Value::Null,
        ),
        WireApi::Responses => {
            let item = json!({"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "refusal", "refusal": "No."}]});
            crate::scripts::responses_events(&[item])
        }
        WireApi::Completions => {
            let whole = events(api, &text("I"));
            whole.into_iter().map(|event| event.replace("\"stop\"", "\"content_filter\"")).collect()
        }
        WireApi::Gemini => vec![json!({"promptFeedback": {"blockReason": "SAFETY"}}).to_string()],
    };
    for api in WIRES {
        let mut lab =
            Lab::new(api, vec![Play::Events(refused(api)), streamed(api, &text("Yes."))]).await;
        assert_eq!(lab.answer("Bad").await.reason, EndReason::Refused, "{api:?}");
        assert_eq!(lab.conversation.history().len(), 0, "{api:?}");
        lab.answer("Good").await;
        assert!(!lab.endpoint.received()[1].body.contains("Bad"), "{api:?}");
    }
}

async fn calls_of_a_reply_that_was_cut_short_are_not_made() {
    let api = WireApi::Anthropic;
    let call = json!({"type": "tool_use", "id": "c1", "name": "time_now", "input": {"title": "a long text"}, "caller": {"type": "direct"}});
    let mut pieces = anthropic_events(&[call], "max_tokens", Value::Null);
    // The second half of the input never came.
    pieces.remove(4);
    let plays = vec![Play::Events(pieces), streamed(api, &text("Shorter."))];
    let mut lab = Lab::new(api, plays).await;
    assert_eq!(lab.answer("Go").await.text, "Shorter.");
    assert_eq!(lab.tools.called(), Vec::<String>::new());
    let messages = lab.body(1)["messages"].clone();
    assert_eq!(messages[1]["content"][0]["input"], json!({}));
    let text = messages[2]["content"][0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("limit of tokens"), "{text}");
}

async fn an_answer_at_its_limit_ends_the_turn() {
    for api in WIRES {
        let whole = match api {
            WireApi::Anthropic => anthropic_events(
                &[json!({"type": "text", "text": "Long", "citations": null})],
                "max_tokens",
                Value::Null,
            ),
            WireApi::Responses => {
                let mut response =
                    response_object(&[crate::scripts::message_item("Long")], "incomplete");
                response["incomplete_details"] = json!({"reason": "max_output_tokens"});
                crate::scripts::numbered(vec![
                    json!({"type": "response.incomplete", "response": response}),
                ])
            }
            WireApi::Completions => events(api, &text("Long"))
                .into_iter()
                .map(|event| event.replace("\"stop\"", "\"length\""))
                .collect(),
            WireApi::Gemini => events(api, &text("Long"))
                .into_iter()
                .map(|event| event.replace("STOP", "MAX_TOKENS"))
                .collect(),
        };
        let mut lab = Lab::with(
            api,
            vec![Play::Events(whole)],
            |model| model.max_output_tokens = Some(10),
            |_| {},
        )
        .await;
        let end = lab.answer("Go").await;
        assert_eq!((end.reason, end.text.as_str()), (EndReason::MaxTokens, "Long"), "{api:?}");
        let body = lab.body(0);
        let limit = [
            &body["max_tokens"],
            &body["max_output_tokens"],
            &body["max_completion_tokens"],
            &body["generationConfig"]["maxOutputTokens"],
        ];
        assert_eq!(limit.into_iter().find(|limit| !limit.is_null()), Some(&json!(10)), "{api:?}");
    }
}

async fn a_full_window_is_compacted_before_the_next_request() {
    for api in WIRES {
        let plays = vec![
            streamed(api, &call("c1", "time_now", json!({}))),
            streamed(api, &text("SUMMARY of it")),
            streamed(api, &text("Done.")),
        ];
        // A reply uses 122 tokens.
        let direct = |model: &mut toolgate_agent::ModelSettings| {
            model.discovery = Some(ToolDiscovery::Direct);
        };
        let mut lab = Lab::with(api, plays, direct, |settings| settings.window = Some(150)).await;
        let (events, end) = lab.ask("What is the time in Rome?").await;
        assert_eq!(end.unwrap().text, "Done.", "{api:?}");
        let compacted = events.iter().find_map(|event| match event {
            AgentEvent::Compacted { tokens_before, summary } => {
                Some((*tokens_before, summary.clone()))
            }
            _ => None,
        });
        assert_eq!(compacted, Some((122, "SUMMARY of it".to_owned())), "{api:?}");
        let shown = events
            .iter()
            .any(|event| matches!(event, AgentEvent::TextDelta { text } if text.contains("SUM")));
        assert!(!shown, "a summary is no answer");
        let asked = &lab.endpoint.received()[1].body;
        assert!(
            asked.contains("Write a summary") && asked.to_lowercase().contains("none"),
            "{asked}"
        );
        let after = &lab.endpoint.received()[2].body;
        assert!(
            after.contains("SUMMARY of it") && after.contains("What is the time in Rome?"),
            "{after}"
        );
        assert!(!after.contains("c1"), "{after}");
        assert_eq!(lab.conversation.history().len(), 2, "{api:?}");
    }
}

async fn a_window_that_is_exceeded_is_compacted_once() {
    let api = WireApi::Anthropic;
    let exceeded = || {
        Play::Events(anthropic_events(
            &[json!({"type": "text", "text": "I", "citations": null})],
            "model_context_window_exceeded",
            Value::Null,
        ))
    };
    let plays = vec![exceeded(), streamed(api, &text("SUMMARY")), exceeded()];
    let mut lab = Lab::new(api, plays).await;
    assert_eq!(lab.answer("Go").await.reason, EndReason::Window);
    assert_eq!(lab.endpoint.received().len(), 3);
}

async fn a_request_over_the_window_is_an_error() {
    let message = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}});
    let mut lab = Lab::new(WireApi::Anthropic, vec![Play::Status(400, Vec::new(), message)]).await;
    assert_eq!(lab.ask("Go").await.1.unwrap_err(), AgentError::Window);
}
