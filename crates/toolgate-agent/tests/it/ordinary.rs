//! Ordinary turns, the same on all wires.

use serde_json::{Value, json};
use toolgate_agent::{AgentEvent, EndReason, TokenUse, ToolCaller, ToolDiscovery, WireApi};

use crate::{
    endpoint::Play,
    lab::{KEY, Lab, kinds, scenarios},
    scripts::{WIRES, anthropic_message, call, message_item, response_object, streamed, text},
};

scenarios!(
    a_question_is_answered,
    tools_are_called_and_their_results_go_back,
    parallel_calls_run_together_and_keep_their_order,
    errors_of_tools_go_to_the_model,
    arguments_that_are_no_object_are_an_error_for_the_model,
    replies_in_one_piece_are_read,
    the_key_is_in_its_header_alone,
    unknown_blocks_go_back_byte_by_byte,
    an_approval_is_an_event,
);

/// The texts of all results in a request, in order.
fn results(api: WireApi, body: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let list = match api {
        WireApi::Responses => &body["input"],
        WireApi::Gemini => &body["contents"],
        _ => &body["messages"],
    };
    for message in list.as_array().unwrap() {
        match api {
            WireApi::Anthropic => {
                let blocks = message["content"].as_array().unwrap().iter();
                let results = blocks.filter(|block| block["type"] == "tool_result");
                texts.extend(
                    results.map(|block| block["content"][0]["text"].as_str().unwrap().to_owned()),
                );
            }
            WireApi::Responses if message["type"] == "function_call_output" => {
                texts.push(message["output"].as_str().unwrap().to_owned());
            }
            WireApi::Completions if message["role"] == "tool" => {
                texts.push(message["content"].as_str().unwrap().to_owned());
            }
            WireApi::Gemini => {
                let parts = message["parts"].as_array().unwrap().iter();
                let results = parts.filter_map(|part| part.get("functionResponse"));
                texts.extend(results.map(|result| result["response"].to_string()));
            }
            _ => {}
        }
    }
    texts
}

async fn direct(api: WireApi, plays: Vec<Play>) -> Lab {
    Lab::with(api, plays, |model| model.discovery = Some(ToolDiscovery::Direct), |_| {}).await
}

async fn a_question_is_answered() {
    for api in WIRES {
        let mut lab = Lab::new(api, vec![streamed(api, &text("Good morning."))]).await;
        let (events, end) = lab.ask("Hello").await;
        let end = end.unwrap();
        assert_eq!(
            (end.reason, end.text.as_str()),
            (EndReason::Answered, "Good morning."),
            "{api:?}"
        );
        let shown = events.iter().filter_map(|event| match event {
            AgentEvent::TextDelta { text } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(shown.collect::<Vec<_>>().concat(), "Good morning.", "{api:?}");
        assert_eq!(kinds(&events), ["text_delta", "text_delta", "usage"], "{api:?}");
        let tokens = lab.conversation.tokens();
        assert_eq!((tokens.cached, tokens.output, tokens.input()), (100, 7, 115), "{api:?}");
        assert_eq!(end.tokens, tokens);
    }
}

async fn tools_are_called_and_their_results_go_back() {
    for api in WIRES {
        let plays = vec![
            streamed(api, &call("c1", "logs_read", json!({"title": "é\"\n"}))),
            streamed(api, &text("Done.")),
        ];
        let mut lab = direct(api, plays).await;
        let (events, end) = lab.ask("Read").await;
        assert_eq!(end.unwrap().text, "Done.", "{api:?}");
        assert_eq!(kinds(&events)[..3], ["usage", "tool_call_started", "tool_result"], "{api:?}");
        let calls = lab.tools.calls.lock().clone();
        assert_eq!(calls.len(), 1);
        assert_eq!(
            (calls[0].name.as_str(), &calls[0].arguments),
            ("logs_read", &json!({"title": "é\"\n"}))
        );
        assert_eq!(calls[0].caller, ToolCaller::Direct);
        let results = results(api, &lab.body(1));
        assert_eq!(results.len(), 1, "{api:?}");
        assert!(results[0].contains("\"ok\":true"), "{api:?}: {results:?}");
    }
}

async fn parallel_calls_run_together_and_keep_their_order() {
    for api in WIRES {
        let mut said = call("c1", "wait", json!({}));
        said.calls.push(("c2", "logs_read", json!({"title": "second"})));
        said.calls.push(("c3", "wait", json!({})));
        let mut lab = direct(api, vec![streamed(api, &said), streamed(api, &text("Done."))]).await;
        let tools = std::sync::Arc::clone(&lab.tools);
        let release = async move {
            // Both calls that wait have begun before either may end.
            tools.waiting.acquire_many(2).await.unwrap().forget();
            tools.may_go.add_permits(2);
        };
        let ((_, end), ()) = tokio::join!(lab.ask("All"), release);
        assert_eq!(end.unwrap().text, "Done.", "{api:?}");
        let results = results(api, &lab.body(1));
        assert!(
            results[0].contains("waited")
                && results[1].contains("second")
                && results[2].contains("waited"),
            "{results:?}"
        );
    }
}

async fn errors_of_tools_go_to_the_model() {
    for api in WIRES {
        let plays =
            vec![streamed(api, &call("c1", "fail", json!({}))), streamed(api, &text("Sorry."))];
        let mut lab = direct(api, plays).await;
        let (events, end) = lab.ask("Try").await;
        assert_eq!(end.unwrap().text, "Sorry.");
        let failed = events
            .iter()
            .any(|event| matches!(event, AgentEvent::ToolResult { is_error: true, .. }));
        assert!(failed, "{events:?}");
        assert!(results(api, &lab.body(1))[0].contains("it failed"), "{api:?}");
        if api == WireApi::Anthropic {
            assert_eq!(lab.body(1)["messages"][2]["content"][0]["is_error"], true);
        }
    }
}

async fn arguments_that_are_no_object_are_an_error_for_the_model() {
    let api = WireApi::Completions;
    let plays =
        vec![streamed(api, &call("c1", "logs_read", json!([1]))), streamed(api, &text("Sorry."))];
    let mut lab = direct(api, plays).await;
    lab.answer("Try").await;
    assert!(results(api, &lab.body(1))[0].contains("not a JSON object: [1]"));
    assert_eq!(lab.tools.called(), Vec::<String>::new());
}

async fn replies_in_one_piece_are_read() {
    let whole = |api: WireApi| match api {
        WireApi::Anthropic => anthropic_message(
            &[json!({"type": "text", "text": "Hi.", "citations": null})],
            "end_turn",
            Value::Null,
        ),
        WireApi::Responses => response_object(&[message_item("Hi.")], "completed"),
        WireApi::Completions => json!({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null, "message": {"role": "assistant", "content": "Hi.", "refusal": null}}],
            "usage": {"prompt_tokens": 115, "completion_tokens": 7, "total_tokens": 122, "prompt_tokens_details": {"cached_tokens": 100}},
        }),
        WireApi::Gemini => json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 115, "cachedContentTokenCount": 100, "candidatesTokenCount": 7},
        }),
    };
    for api in WIRES {
        let plays = vec![Play::Json(whole(api).to_string())];
        let mut lab = Lab::with(api, plays, |model| model.stream = false, |_| {}).await;
        let end = lab.answer("Hello").await;
        assert_eq!(end.text, "Hi.", "{api:?}");
        assert_eq!(
            end.tokens,
            TokenUse {
                new: end.tokens.new,
                cache_written: end.tokens.cache_written,
                cached: 100,
                output: 7
            }
        );
        assert_eq!(lab.conversation.history().len(), 2);
    }
}

async fn the_key_is_in_its_header_alone() {
    for api in WIRES {
        let mut lab = Lab::new(api, vec![streamed(api, &text("Hi."))]).await;
        lab.answer("Hello").await;
        let request = &lab.endpoint.received()[0];
        let header = match api {
            WireApi::Anthropic => request.header("x-api-key"),
            WireApi::Gemini => request.header("x-goog-api-key"),
            _ => request.header("authorization").map(|value| value.trim_start_matches("Bearer ")),
        };
        assert_eq!(header, Some(KEY), "{api:?}");
        assert!(!request.body.contains(KEY) && !request.path.contains(KEY));
        let shown = format!("{:?} {:?}", lab.conversation, lab.conversation.save());
        assert!(!shown.contains(KEY), "{shown}");
    }
}

async fn unknown_blocks_go_back_byte_by_byte() {
    // Odd spaces, an escape, a float and a number of 30 digits: a parser would change each of them.
    let odd = r#"{"type":"new_kind", "n":1.50,"big":123456789012345678901234567890,  "u":"\u00e9","deep":{"b":[ ],"a":1e3}}"#;
    let part = r#"{"newPart":{"n":1.50,  "u":"\u00e9"},"thoughtSignature":"c2ln"}"#;
    let plays = |api: WireApi| {
        match api {
        WireApi::Anthropic => Play::Events(vec![
            json!({"type": "message_start", "message": anthropic_message(&[], "x", Value::Null)}).to_string(),
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{odd}}}"#),
            r#"{"type":"content_block_stop","index":0}"#.to_owned(),
            r#"{"type":"new_event","x":1}"#.to_owned(),
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":"","extra":7}}"#.to_owned(),
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#.to_owned(),
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"sig"}}"#.to_owned(),
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"new_delta","news":"a"}}"#.to_owned(),
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#.to_owned(),
            r#"{"type":"message_stop"}"#.to_owned(),
        ]),
        WireApi::Responses => Play::Events(vec![
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{odd}}}"#),
            json!({"type": "response.completed", "response": response_object(&[], "completed")}).to_string(),
        ]),
        WireApi::Completions => Play::Json(format!(
            r#"{{"choices":[{{"finish_reason":"stop","message":{{"role":"assistant",  "content":"Hi","odd":{odd}}}}}]}}"#
        )),
        WireApi::Gemini => Play::Events(vec![format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}},"finishReason":"STOP"}}]}}"#
        )]),
    }
    };
    for api in WIRES {
        let mut lab = Lab::new(api, vec![plays(api), streamed(api, &text("Yes."))]).await;
        lab.endpoint.foreign();
        lab.answer("One").await;
        lab.answer("Two").await;
        let second = &lab.endpoint.received()[1].body;
        let expected = if api == WireApi::Gemini { part } else { odd };
        assert!(second.contains(expected), "{api:?}: {second}");
        if api == WireApi::Anthropic {
            let thinking =
                r#"{"type":"thinking","thinking":"Hm","signature":"sig","extra":7,"news":"a"}"#;
            assert!(second.contains(thinking), "{second}");
        }
    }
}

async fn an_approval_is_an_event() {
    let api = WireApi::Anthropic;
    let plays = vec![streamed(api, &call("c1", "ask", json!({}))), streamed(api, &text("Done."))];
    let mut lab = direct(api, plays).await;
    let (events, end) = lab.ask("Go").await;
    end.unwrap();
    let asked =
        events.iter().find(|event| matches!(event, AgentEvent::ApprovalNeeded { .. })).unwrap();
    let shown = serde_json::to_value(asked).unwrap();
    assert_eq!(
        shown,
        json!({"type": "approval_needed", "id": "c1", "name": "ask", "reference": "q_1", "question": "May it?"})
    );
}
