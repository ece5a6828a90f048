//! Answers in the shapes of the four wires.

use serde_json::{Value, json};
use toolgate_agent::WireApi;

use crate::endpoint::Play;

pub(crate) const WIRES: [WireApi; 4] =
    [WireApi::Anthropic, WireApi::Responses, WireApi::Completions, WireApi::Gemini];

/// What a model says in one reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) text: &'static str,
    pub(crate) calls: Vec<(&'static str, &'static str, Value)>,
}

pub(crate) fn text(text: &'static str) -> Said {
    Said { text, ..Said::default() }
}

pub(crate) fn call(id: &'static str, name: &'static str, arguments: Value) -> Said {
    Said { calls: vec![(id, name, arguments)], ..Said::default() }
}

/// A streamed reply.
pub(crate) fn streamed(api: WireApi, said: &Said) -> Play {
    Play::Events(events(api, said))
}

pub(crate) fn events(api: WireApi, said: &Said) -> Vec<String> {
    match api {
        WireApi::Anthropic => {
            let blocks = said
                .text_or_none()
                .map(|text| json!({"type": "text", "text": text, "citations": null}));
            let calls = said.calls.iter().map(|(id, name, input)| {
                json!({"type": "tool_use", "id": id, "name": name, "input": input, "caller": {"type": "direct"}})
            });
            let stop = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
            anthropic_events(
                &blocks.into_iter().chain(calls).collect::<Vec<_>>(),
                stop,
                Value::Null,
            )
        }
        WireApi::Responses => {
            let message = said.text_or_none().map(message_item);
            let calls = said
                .calls
                .iter()
                .map(|(id, name, arguments)| function_call_item(id, name, arguments));
            responses_events(&message.into_iter().chain(calls).collect::<Vec<_>>())
        }
        WireApi::Completions => completions_events(said),
        WireApi::Gemini => gemini_events(said),
    }
}

impl Said {
    fn text_or_none(&self) -> Option<&'static str> {
        Some(self.text).filter(|text| !text.is_empty())
    }
}

pub(crate) fn anthropic_message(blocks: &[Value], stop: &str, container: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks,
        "stop_reason": stop, "stop_sequence": null, "container": container,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 7},
    })
}

/// The events of a message. Text and input of calls come in two pieces, and other blocks whole.
pub(crate) fn anthropic_events(blocks: &[Value], stop: &str, container: Value) -> Vec<String> {
    let mut start = anthropic_message(&[], stop, Value::Null);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events =
        vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
    for (index, block) in blocks.iter().enumerate() {
        let mut begun = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "text" => {
                begun["text"] = "".into();
                deltas = halves(block["text"].as_str().unwrap())
                    .map(|half| json!({"type": "text_delta", "text": half}))
                    .to_vec();
            }
            "tool_use" | "server_tool_use" => {
                begun["input"] = json!({});
                deltas = halves(&block["input"].to_string())
                    .map(|half| json!({"type": "input_json_delta", "partial_json": half}))
                    .to_vec();
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null, "container": container});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(Value::to_string).collect()
}

fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second]
}

pub(crate) fn message_item(text: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

pub(crate) fn function_call_item(id: &str, name: &str, arguments: &Value) -> Value {
    json!({
        "id": format!("fc_{id}"), "type": "function_call", "call_id": id, "name": name,
        "arguments": arguments.to_string(), "status": "completed",
    })
}

pub(crate) fn response_object(items: &[Value], status: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1.0, "model": "m", "status": status,
        "output": items, "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": {
            "input_tokens": 115, "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 5},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 122,
        },
    })
}

pub(crate) fn responses_events(items: &[Value]) -> Vec<String> {
    let begun = response_object(&[], "in_progress");
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in items.iter().enumerate() {
        let mut added = item.clone();
        if item["type"] == "message" {
            added["content"] = json!([]);
            added["status"] = "in_progress".into();
        }
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": added}),
        );
        if let Some(text) = item["content"][0]["text"].as_str() {
            events.extend(halves(text).map(|half| {
                json!({
                    "type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                    "content_index": 0, "delta": half, "logprobs": [],
                })
            }));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    events.push(
        json!({"type": "response.completed", "response": response_object(items, "completed")}),
    );
    numbered(events)
}

pub(crate) fn numbered(mut events: Vec<Value>) -> Vec<String> {
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events.iter().map(Value::to_string).collect()
}

fn completions_events(said: &Said) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    if !said.text.is_empty() {
        events.extend(halves(said.text).map(|half| chunk(json!({"content": half}), Value::Null)));
    }
    for (index, (id, name, arguments)) in said.calls.iter().enumerate() {
        let call = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        events.extend(halves(&arguments.to_string()).map(|half| {
            chunk(
                json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}),
                Value::Null,
            )
        }));
    }
    let finish = if said.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(chunk(json!({}), finish.into()));
    let mut usage = chunk(Value::Null, Value::Null);
    usage["choices"] = json!([]);
    usage["usage"] = json!({
        "prompt_tokens": 115, "completion_tokens": 7, "total_tokens": 122,
        "prompt_tokens_details": {"cached_tokens": 100},
    });
    events.push(usage);
    let done = "[DONE]".to_owned();
    events.iter().map(Value::to_string).chain([done]).collect()
}

fn gemini_events(said: &Said) -> Vec<String> {
    let chunk = |parts: Vec<Value>| {
        json!({
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 115, "cachedContentTokenCount": 100, "candidatesTokenCount": 4,
                "thoughtsTokenCount": 3, "totalTokenCount": 122},
            "modelVersion": "m", "responseId": "r1",
        })
    };
    let mut chunks = Vec::new();
    if !said.text.is_empty() {
        chunks.extend(halves(said.text).map(|half| chunk(vec![json!({"text": half})])));
    }
    if !said.calls.is_empty() {
        let calls = said.calls.iter().enumerate().map(|(place, (id, name, arguments))| {
            let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
            if place == 0 {
                part["thoughtSignature"] = "c2ln".into();
            }
            part
        });
        chunks.push(chunk(calls.collect()));
    }
    if let Some(last) = chunks.last_mut() {
        last["candidates"][0]["finishReason"] = "STOP".into();
    }
    chunks.iter().map(Value::to_string).collect()
}
