//! `toolgate chat -p`.

use serde_json::{Value, json};
use toolgate_agent::WireApi;

use super::{Lab, calls, command, events, finish, kinds, says};
use crate::{
    endpoint::Play,
    scripts::{WIRES, responses_events},
    support::Workplace,
};

#[tokio::test]
async fn one_question_uses_a_tool_over_each_wire() {
    for api in WIRES {
        let plays = vec![
            calls(api, "kit_echo", json!({ "message": "from the model" })),
            says(api, "It said: from the model."),
        ];
        let lab = Lab::new(plays).await;
        let outcome = lab.run(api, &["-p", "Echo something"]).await;
        assert_eq!(outcome.code, Some(0), "{api:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "It said: from the model.\n", "{api:?}");
        assert!(
            outcome.stderr.contains("→ kit_echo {\"message\":\"from the model\"}"),
            "{outcome:?}"
        );
        assert_eq!(lab.called(), ["echo"], "{api:?}");
        // The model got the result of the server.
        let results = lab.endpoint.body(1).to_string();
        assert!(results.matches("from the model").count() > 1, "{api:?}: {results}");
    }
}

/// With many tools, each wire has its own way to find them.
#[tokio::test]
async fn deferred_tools_are_found_in_the_way_of_the_provider() {
    let deferred = || json!({ "toolSearch": { "enabled": true } });
    let arguments = || json!({ "message": "found" });
    for api in WIRES {
        let plays = match api {
            WireApi::Anthropic => vec![
                calls(api, "search_tools", json!({ "query": "echo a message" })),
                calls(api, "kit_echo", arguments()),
            ],
            WireApi::Responses => {
                let search = json!({"id": "tsc_1", "type": "tool_search_call", "call_id": "s1", "execution": "client",
                    "arguments": {"query": "echo a message"}, "status": "completed"});
                let mut call = crate::scripts::function_call_item("c1", "kit_echo", &arguments());
                call["namespace"] = "kit".into();
                vec![
                    Play::Events(responses_events(&[search])),
                    Play::Events(responses_events(&[call])),
                ]
            }
            WireApi::Completions | WireApi::Gemini => vec![
                calls(api, "search_tools", json!({ "query": "echo a message" })),
                calls(api, "call_tool", json!({ "name": "kit_echo", "arguments": arguments() })),
            ],
        };
        let plays = plays.into_iter().chain([says(api, "Done.")]).collect();
        let lab = Lab::with(plays, json!({}), deferred()).await;
        let outcome = lab.run(api, &["-p", "Echo something"]).await;
        assert_eq!(outcome.stdout, "Done.\n", "{api:?}: {outcome:?}");
        assert!(outcome.stderr.contains("→ kit_echo {\"message\":\"found\"}"), "{outcome:?}");
        assert_eq!(lab.called(), ["echo"], "{api:?}");
    }
}

#[tokio::test]
async fn json_has_one_event_a_line() {
    let api = WireApi::Anthropic;
    let plays = vec![calls(api, "kit_echo", json!({ "message": "x" })), says(api, "Said.")];
    let lab = Lab::new(plays).await;
    let outcome = lab.run(api, &["-p", "Echo", "--json"]).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let events = events(&outcome);
    assert_eq!(
        kinds(&events),
        [
            "chat",
            "usage",
            "tool_call_started",
            "tool_result",
            "text_delta",
            "text_delta",
            "usage",
            "savings",
            "done"
        ]
    );
    assert_eq!(events[0]["model"], "anthropic/m");
    assert_eq!(events[0]["mode"], "direct");
    assert_eq!(events[2]["arguments"], json!({ "message": "x" }));
    assert_eq!(events[2]["caller"], json!({ "type": "direct" }));
    let done = events.last().unwrap();
    assert_eq!((&done["text"], &done["reason"]), (&json!("Said."), &json!("answered")));
    assert_eq!(
        done["tokens"],
        json!({ "new": 20, "cached": 200, "cache_written": 10, "output": 14 })
    );
}

#[tokio::test]
async fn what_is_not_listed_is_saved() {
    let api = WireApi::Anthropic;
    let lab =
        Lab::with(vec![says(api, "Hi.")], json!({}), json!({ "toolSearch": { "enabled": true } }))
            .await;
    let outcome = lab.run(api, &["-p", "Hello", "--json"]).await;
    let events = events(&outcome);
    let savings = &events[events.len() - 2];
    let number = |key: &str| savings[key].as_u64().unwrap();
    // Only the search itself, and the call of tools that come later.
    let (all, context) = (number("all_definitions"), number("definitions_in_context"));
    assert!(all > 100 && context > 100, "{savings}");
    assert_eq!(number("saved"), all.saturating_sub(context), "one request");
}

#[tokio::test]
async fn a_question_comes_from_stdin() {
    let api = WireApi::Gemini;
    let lab = Lab::new(vec![says(api, "Read.")]).await;
    let outcome = finish(lab.command(api, &["-p", "-"]), "a long question\nin two lines").await;
    assert_eq!(outcome.stdout, "Read.\n", "{outcome:?}");
    assert!(lab.endpoint.body(0).to_string().contains("a long question\\nin two lines"));
}

#[tokio::test]
async fn limits_end_a_turn() {
    let api = WireApi::Completions;
    let again = || calls(api, "kit_echo", json!({ "message": "x" }));
    let lab = Lab::new(vec![again(), again(), again()]).await;
    let outcome = lab.run(api, &["-p", "Echo", "--max-requests", "2"]).await;
    assert_eq!((outcome.code, lab.endpoint.left()), (Some(1), 1), "{outcome:?}");
    assert!(
        outcome.stderr.contains("the limit of requests; --max-requests raises it"),
        "{outcome:?}"
    );

    let lab = Lab::new(vec![again(), again(), again()]).await;
    let outcome = lab.run(api, &["-p", "Echo", "--max-tokens", "200"]).await;
    assert_eq!((outcome.code, lab.endpoint.left()), (Some(1), 1), "{outcome:?}");
    assert!(outcome.stderr.contains("the limit of tokens"), "{outcome:?}");

    // 15 new and 100 cached tokens in, 7 out.
    let prices = json!({ "chat": { "maxCost": 0.001, "prices": { "input": 10, "output": 100 } } });
    let lab = Lab::with(vec![again(), again(), again()], json!({}), prices).await;
    let outcome = lab.run(api, &["-p", "Echo"]).await;
    assert_eq!((outcome.code, lab.endpoint.left()), (Some(1), 2), "{outcome:?}");
    assert!(outcome.stderr.contains("the limit of its cost"), "{outcome:?}");

    let lab = Lab::new(vec![]).await;
    let outcome = lab.run(api, &["-p", "Echo", "--max-cost", "1"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("prices of the model are unknown"), "{outcome:?}");
}

#[tokio::test]
async fn a_limit_that_cannot_be_read_is_not_left_out() {
    let api = WireApi::Completions;
    let lab = Lab::with(vec![], json!({}), json!({ "chat": { "maxTokens": "many" } })).await;
    let outcome = lab.run(api, &["-p", "Hi"]).await;
    assert_eq!((outcome.code, lab.endpoint.received().len()), (Some(2), 0), "{outcome:?}");
    assert!(outcome.stderr.contains("`chat` section"), "{outcome:?}");
}

#[tokio::test]
async fn no_mcp_starts_no_server() {
    let api = WireApi::Anthropic;
    for by_variable in [false, true] {
        let lab = Lab::new(vec![says(api, "Alone.")]).await;
        let more: &[&str] = if by_variable { &[] } else { &["--no-mcp"] };
        let mut command = lab.command(api, &[&["-p", "Hi"], more].concat());
        if by_variable {
            command.env("TOOLGATE_NO_MCP", "true");
        }
        let outcome = finish(command, "").await;
        assert_eq!(outcome.stdout, "Alone.\n", "{outcome:?}");
        let tools = lab.endpoint.body(0)["tools"].clone();
        assert!(!tools.to_string().contains("kit_"), "{tools}");
    }
    // It needs no configuration either.
    let lab = Lab::new(vec![says(api, "Alone.")]).await;
    let empty = Workplace::empty();
    let arguments = ["-p", "Hi", "--no-mcp", "--model", "anthropic/m", "--url", &lab.endpoint.url];
    let outcome = finish(command(&empty, &arguments), "").await;
    assert_eq!(outcome.stdout, "Alone.\n", "{outcome:?}");
}

#[tokio::test]
async fn other_commands_start_without_servers_too() {
    let lab = Lab::new(vec![]).await;
    let status = lab.place.run(&["status", "--no-mcp", "--json"]).await.json();
    assert_eq!(status["servers"], json!([]));
    let mut client = lab.place.connect(&["--no-mcp", "--mode", "direct"]).await;
    let tools = crate::support::list(&mut client).await;
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert!(!json!(names).to_string().contains("kit_"), "{names:?}");
}

#[tokio::test]
async fn a_word_that_is_neither_yes_nor_no_starts_nothing() {
    let lab = Lab::new(vec![says(WireApi::Anthropic, "Alone.")]).await;
    let mut command = lab.command(WireApi::Anthropic, &["-p", "Hi"]);
    command.env("TOOLGATE_NO_MCP", "maybe");
    let outcome = finish(command, "").await;
    assert_eq!((outcome.code, lab.endpoint.received().len()), (Some(2), 0), "{outcome:?}");
    assert!(outcome.stderr.contains("TOOLGATE_NO_MCP is neither 1 nor 0"), "{outcome:?}");
}

#[tokio::test]
async fn options_that_an_api_does_not_have_are_refused() {
    for (api, option) in [
        (WireApi::Gemini, "--programmatic"),
        (WireApi::Completions, "--programmatic"),
        (WireApi::Responses, "--tool-changes"),
    ] {
        let lab = Lab::new(vec![says(api, "Hi.")]).await;
        let outcome = lab.run(api, &["-p", "Hi", option]).await;
        assert_eq!((outcome.code, lab.endpoint.received().len()), (Some(2), 0), "{outcome:?}");
        assert!(outcome.stderr.contains(option), "{outcome:?}");
    }
}

/// The window that `chat.contextWindow` sets decides when a summary replaces the conversation.
#[tokio::test]
async fn a_summary_replaces_a_conversation_that_fills_the_window() {
    for api in crate::scripts::WIRES {
        let fill = |play: Play| match play {
            Play::Events(events) => Play::Events(
                // 900 tokens of input in place of 10 new ones, or of 115.
                events
                    .into_iter()
                    .map(|event| {
                        event
                            .replace("\"input_tokens\":10,", "\"input_tokens\":900,")
                            .replace("\"input_tokens\":115", "\"input_tokens\":900")
                            .replace("\"prompt_tokens\":115", "\"prompt_tokens\":900")
                            .replace("\"promptTokenCount\":115", "\"promptTokenCount\":900")
                    })
                    .collect(),
            ),
            other => other,
        };
        let plays = vec![
            fill(says(api, "A long answer.")),
            says(api, "They greeted, and want 4711."),
            says(api, "It is 4711."),
        ];
        let lab = Lab::with(plays, json!({}), json!({ "chat": { "contextWindow": 1000 } })).await;
        lab.run(api, &["-p", "Remember 4711"]).await;
        let outcome = lab.run(api, &["-p", "What was it?", "--continue", "--json"]).await;
        let events = events(&outcome);
        let compacted = events.iter().find(|event| event["type"] == "compacted");
        let compacted = compacted.unwrap_or_else(|| panic!("{api:?}: {outcome:?}"));
        assert!(compacted["tokens_before"].as_u64() >= Some(900), "{compacted}");
        assert_eq!(compacted["summary"], "They greeted, and want 4711.");
        let last = lab.endpoint.body(2);
        let text = last.to_string();
        assert!(text.contains("They greeted, and want 4711.") && text.contains("What was it?"));
        assert!(!text.contains("A long answer."), "{api:?}: {text}");
        assert_eq!(last["tools"], lab.endpoint.body(0)["tools"], "{api:?}");
        assert_eq!(events.last().unwrap()["text"], "It is 4711.", "{api:?}");
    }
}
