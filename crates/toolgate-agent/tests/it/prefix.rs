//! The bytes before the cache breakpoint never change within a session.

use serde_json::{json, value::RawValue};
use std::collections::BTreeMap;
use toolgate_agent::{ToolDiscovery, WireApi};

use crate::{
    endpoint::{Play, Received},
    lab::{Lab, scenarios, tool},
    scripts::{WIRES, call, responses_events, streamed, text},
};

scenarios!(no_byte_before_the_breakpoint_changes);

/// The fields of a request that a provider renders before the messages, and the messages, each as the bytes that were
/// sent.
fn parts(api: WireApi, request: &Received) -> (BTreeMap<String, String>, Vec<String>) {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&request.body).unwrap();
    let name = match api {
        WireApi::Responses => "input",
        WireApi::Gemini => "contents",
        _ => "messages",
    };
    let messages: Vec<Box<RawValue>> = serde_json::from_str(fields[name].get()).unwrap();
    let fixed = fields.iter().filter(|(field, _)| *field != name);
    let fixed = fixed.map(|(field, json)| (field.clone(), json.get().to_owned())).collect();
    (fixed, messages.iter().map(|message| message.get().to_owned()).collect())
}

async fn no_byte_before_the_breakpoint_changes() {
    for api in WIRES {
        let provider = crate::lab::model(api, &crate::endpoint::Endpoint::start(Vec::new()).await)
            .provider()
            .unwrap();
        let ways = [(false, true), (true, true), (false, false), (true, false)];
        for (&discovery, (tool_changes, keeps)) in
            provider.discoveries().iter().flat_map(|mode| ways.map(|way| (mode, way)))
        {
            let search = || match (api, discovery) {
                (WireApi::Responses, ToolDiscovery::Search) => {
                    Play::Events(responses_events(&[json!({
                        "id": "tsc_1", "type": "tool_search_call", "call_id": "s1", "execution": "client",
                        "arguments": {"query": "_"}, "status": "completed",
                    })]))
                }
                _ => streamed(api, &call("s1", "search_tools", json!({"query": "_"}))),
            };
            let plays = vec![
                search(),
                streamed(api, &call("c1", "logs_read", json!({"title": "a"}))),
                streamed(api, &text("One.")),
                search(),
                streamed(api, &text("Two.")),
                streamed(api, &text("Three.")),
            ];
            let of_model = |model: &mut toolgate_agent::ModelSettings| {
                model.discovery = Some(discovery);
                model.tool_changes = tool_changes;
                model.extra.insert("metadata".to_owned(), json!({}));
            };
            let of_conversation = |settings: &mut toolgate_agent::ConversationSettings| {
                settings.keep_loaded_tools = keeps;
            };
            let mut lab = Lab::with(api, plays, of_model, of_conversation).await;
            if api == WireApi::Gemini || api == WireApi::Completions {
                // `metadata` is a field of two wires only.
                lab.endpoint.foreign();
            }
            lab.answer("1").await;
            lab.tools.change(|catalogue| {
                catalogue.deferred.remove(0);
                catalogue.listed.push(tool("jira_search", "jira"));
                catalogue.deferred[1].description.push_str(" Changed.");
                catalogue.servers.reverse();
            });
            lab.answer("2").await;
            lab.tools.change(|catalogue| catalogue.deferred.clear());
            lab.answer("3").await;
            let requests = lab.endpoint.received();
            assert_eq!(requests.len(), 6, "{api:?} {discovery:?}");
            let mut before: Option<(BTreeMap<String, String>, Vec<String>)> = None;
            for (turn, request) in requests.iter().enumerate() {
                let (fixed, messages) = parts(api, request);
                if let Some((fixed_before, messages_before)) = before {
                    let what =
                        format!("{api:?} {discovery:?} {tool_changes} {keeps}, request {turn}");
                    assert_eq!(fixed, fixed_before, "{what}");
                    // Where the provider cannot be told, our own answers to searches are written anew between turns.
                    let is_told = api == WireApi::Anthropic && tool_changes;
                    let anew = !keeps && !is_told && lab.conversation.provider().can_unload();
                    let same =
                        if anew && [3, 5].contains(&turn) { 2 } else { messages_before.len() };
                    assert_eq!(messages[..same], messages_before[..same], "{what}");
                    assert!(anew || messages.len() > messages_before.len(), "{what}");
                }
                before = Some((fixed, messages));
            }
        }
    }
}
