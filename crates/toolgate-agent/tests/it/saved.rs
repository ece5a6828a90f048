//! Conversations that are kept and resumed.

use std::sync::Arc;

use serde_json::json;
use toolgate_agent::{Conversation, SavedConversation, WireApi};

use crate::{
    lab::{Lab, TestTools, model, scenarios, settings, tool},
    scripts::{WIRES, call, streamed, text},
};

scenarios!(
    a_restored_conversation_sends_the_same_bytes,
    changes_since_are_told,
    what_was_to_be_unloaded_is_unloaded_after_a_restart,
    another_wire_is_refused
);

fn restored(lab: &Lab, api: WireApi) -> Conversation {
    let text = serde_json::to_string(&lab.conversation.save()).unwrap();
    let saved: SavedConversation = serde_json::from_str(&text).unwrap();
    let mut model = model(api, &lab.endpoint);
    model.tool_changes = true;
    let tools = Arc::<TestTools>::clone(&lab.tools);
    Conversation::restore(saved, model.provider().unwrap(), tools, settings()).unwrap()
}

async fn a_restored_conversation_sends_the_same_bytes() {
    for api in WIRES {
        let plays = vec![
            streamed(api, &call("c1", "time_now", json!({}))),
            streamed(api, &text("One.")),
            streamed(api, &text("Two.")),
        ];
        let mut lab = Lab::with(api, plays, |model| model.tool_changes = true, |_| {}).await;
        lab.answer("1").await;
        lab.conversation = restored(&lab, api);
        assert_eq!(lab.conversation.tokens().output, 14);
        lab.answer("2").await;
        let bodies: Vec<String> =
            lab.endpoint.received().into_iter().map(|request| request.body).collect();
        // All of the last request before the answer is in the next one.
        let end = bodies[1].rfind(']').unwrap();
        let same = bodies[2].starts_with(bodies[1][..end].trim_end_matches(']'));
        assert!(same, "{api:?}:\n{}\n{}", bodies[1], bodies[2]);
    }
}

async fn changes_since_are_told() {
    let api = WireApi::Anthropic;
    let plays = vec![streamed(api, &text("One.")), streamed(api, &text("Two."))];
    let mut lab = Lab::with(api, plays, |model| model.tool_changes = true, |_| {}).await;
    lab.answer("1").await;
    lab.tools.change(|catalogue| {
        catalogue.deferred.retain(|tool| tool.name != "logs_read");
        catalogue.deferred.push(tool("jira_search", "jira"));
    });
    lab.conversation = restored(&lab, api);
    lab.answer("2").await;
    let told = lab.body(1)["messages"][3].clone();
    assert_eq!(told["content"][0]["tool"], json!({"type": "tool_reference", "name": "logs_read"}));
    assert_eq!(told["content"][1]["tool"]["definition"]["name"], "jira_search");
    assert_eq!(lab.body(0)["tools"], lab.body(1)["tools"]);
}

async fn what_was_to_be_unloaded_is_unloaded_after_a_restart() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &call("s1", "search_tools", json!({"query": "issue"}))),
        streamed(api, &text("One.")),
        streamed(api, &text("Two.")),
    ];
    let unload =
        |settings: &mut toolgate_agent::ConversationSettings| settings.keep_loaded_tools = false;
    let mut lab = Lab::with(api, plays, |model| model.tool_changes = true, unload).await;
    lab.answer("1").await;
    lab.conversation = restored(&lab, api);
    lab.answer("2").await;
    let told = lab.body(2)["messages"][5].clone();
    assert_eq!(told["content"][0]["type"], "tool_removal", "{told}");
}

async fn another_wire_is_refused() {
    let lab = Lab::new(WireApi::Anthropic, Vec::new()).await;
    let provider = model(WireApi::Gemini, &lab.endpoint).provider().unwrap();
    let tools = Arc::<TestTools>::clone(&lab.tools);
    let error =
        Conversation::restore(lab.conversation.save(), provider, tools, settings()).unwrap_err();
    assert!(error.to_string().contains("Anthropic Messages"), "{error}");
}
