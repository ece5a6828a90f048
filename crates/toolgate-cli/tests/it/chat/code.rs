//! Calls of code that the provider runs. They are judged as those of a script.

use serde_json::{Value, json};
use toolgate_agent::WireApi;
use toolgate_testkit::{Builtin, Fixture};

use super::{command, finish, says};
use crate::{
    endpoint::{Endpoint, Play},
    scripts::{anthropic_events, function_call_item, responses_events},
    support::{Workplace, entry, entry_with},
};

/// Servers whose tool `echo` may be called in different ways.
fn workplace() -> Workplace {
    let echo = |name: &str| Fixture::new(name).with_builtins([Builtin::Echo]);
    let ways = |ways: Value| json!({ "tools": { "echo": { "allowedCallers": ways } } });
    Workplace::new(&json!({
        "mcpServers": {
            "direct": entry_with(&echo("direct"), ways(json!(["direct"]))),
            "script": entry_with(&echo("script"), ways(json!(["script"]))),
            "ruled": entry(&echo("ruled")),
        },
        "policy": { "default": "allow", "rules": [
            // The arguments decide, so that the tool is offered to code.
            { "server": "ruled", "from": "script", "when": { "arguments": { "message": { "equals": "hello" } } }, "verdict": "deny" },
        ] },
    }))
}

const NAMES: [&str; 3] = ["direct_echo", "script_echo", "ruled_echo"];

/// What code got of each call, and what the model got of the same calls.
fn check(api: WireApi, by_code: &[String; 3], by_model: &[String; 3]) {
    let is_answered = |text: &str| text.contains("hello") && !text.contains("denies");
    assert!(by_code[0].contains("cannot be called by code"), "{api:?}: {by_code:?}");
    assert!(is_answered(&by_code[1]), "{api:?}: {by_code:?}");
    assert!(by_code[2].contains("the policy denies it"), "{api:?}: {by_code:?}");
    assert!(is_answered(&by_model[0]), "{api:?}: {by_model:?}");
    assert!(by_model[1].contains("can be called by code only"), "{api:?}: {by_model:?}");
    assert!(is_answered(&by_model[2]), "{api:?}: {by_model:?}");
}

async fn ask(endpoint: &Endpoint, model: &str) {
    let arguments = ["-p", "Go", "--programmatic", "--model", model, "--url", &endpoint.url];
    let outcome = finish(command(&workplace(), &arguments), "").await;
    assert_eq!(outcome.stdout, "Done.\n", "{outcome:?}");
}

#[tokio::test]
async fn calls_of_anthropics_code_are_judged_as_calls_of_a_script() {
    let by = |caller: Value| {
        NAMES.iter().enumerate().map(move |(place, name)| {
            json!({ "type": "tool_use", "id": format!("c{place}"), "name": name,
                "input": { "message": "hello" }, "caller": caller })
        })
    };
    let program = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": { "code": "…" }, "caller": { "type": "direct" } });
    let code = json!({ "type": "code_execution_20260120", "tool_id": "srvtoolu_1" });
    let blocks: Vec<Value> = [program].into_iter().chain(by(code)).collect();
    let direct: Vec<Value> = by(json!({ "type": "direct" })).collect();
    let endpoint = Endpoint::start(vec![
        Play::Events(anthropic_events(&blocks, "tool_use", Value::Null)),
        Play::Events(anthropic_events(&direct, "tool_use", Value::Null)),
        says(WireApi::Anthropic, "Done."),
    ])
    .await;
    ask(&endpoint, "anthropic/m").await;
    let results = |request: usize, message: usize| {
        let content = endpoint.body(request)["messages"][message]["content"].clone();
        [0, 1, 2].map(|place| content[place]["content"].to_string())
    };
    check(WireApi::Anthropic, &results(1, 2), &results(2, 4));
}

#[tokio::test]
async fn calls_of_openais_programs_are_judged_as_calls_of_a_script() {
    let by = |caller: Value| {
        NAMES.iter().enumerate().map(move |(place, name)| {
            let mut item =
                function_call_item(&format!("c{place}"), name, &json!({ "message": "hello" }));
            item["caller"] = caller.clone();
            item
        })
    };
    let program = json!({ "id": "prog_1", "type": "program", "call_id": "p1", "code": "…", "fingerprint": "x" });
    let code = json!({ "type": "program", "caller_id": "p1" });
    let items: Vec<Value> = [program].into_iter().chain(by(code)).collect();
    let direct: Vec<Value> = by(json!({ "type": "direct" })).collect();
    let endpoint = Endpoint::start(vec![
        Play::Events(responses_events(&items)),
        Play::Events(responses_events(&direct)),
        says(WireApi::Responses, "Done."),
    ])
    .await;
    ask(&endpoint, "openai/m").await;
    let results = |request: usize| {
        let input = endpoint.body(request)["input"].as_array().unwrap().clone();
        let outputs: Vec<String> = input
            .iter()
            .filter(|item| item["type"] == "function_call_output")
            .map(|item| item["output"].to_string())
            .collect();
        let last: Vec<String> = outputs[outputs.len() - 3..].to_vec();
        <[String; 3]>::try_from(last).unwrap()
    };
    check(WireApi::Responses, &results(1), &results(2));
}

/// A question is an event, and nobody waits where nobody can answer: neither for a call of the model, nor for one of its
/// code, whose container would expire.
#[tokio::test]
async fn a_question_is_an_event_and_nobody_waits_without_a_terminal() {
    let program = json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution",
        "input": { "code": "…" }, "caller": { "type": "direct" } });
    let by = |id: &str, caller: Value| json!({ "type": "tool_use", "id": id, "name": "kit_echo", "input": { "message": id }, "caller": caller });
    let code = json!({ "type": "code_execution_20260120", "tool_id": "srvtoolu_1" });
    let blocks = [program, by("c1", code), by("c2", json!({ "type": "direct" }))];
    let endpoint = Endpoint::start(vec![
        Play::Events(anthropic_events(&blocks[..2], "tool_use", Value::Null)),
        Play::Events(anthropic_events(&blocks[2..], "tool_use", Value::Null)),
        says(WireApi::Anthropic, "Done."),
    ])
    .await;
    let kit = Fixture::new("kit").with_builtins([Builtin::Echo]);
    let asks = json!({ "tools": { "echo": { "approval": "ask" } } });
    let place = Workplace::new(&json!({ "mcpServers": { "kit": entry_with(&kit, asks) } }));
    let model = ["--model", "anthropic/m", "--url", &endpoint.url];
    let arguments = [&["-p", "Go", "--programmatic", "--json"], &model[..]].concat();
    let outcome = finish(command(&place, &arguments), "").await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let events = super::events(&outcome);
    for id in ["c1", "c2"] {
        let of = |kind: &str| {
            events
                .iter()
                .position(|event| event["type"] == kind && event["id"] == id)
                .unwrap_or_else(|| panic!("{kind} of {id}: {outcome:?}"))
        };
        let (began, asked, ended) =
            (of("tool_call_started"), of("approval_needed"), of("tool_result"));
        assert!(began < asked && asked < ended, "{outcome:?}");
        let asked = &events[asked];
        assert_eq!(asked["name"], "kit_echo");
        let reference = asked["reference"].as_str().unwrap();
        assert!(reference.starts_with("q_"), "{asked}");
        assert!(events[ended]["preview"].as_str().unwrap().contains(reference), "{outcome:?}");
    }
}
