//! What comes back.

use std::collections::BTreeMap;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    ProviderError, ProviderReply, ReplyDecoder, ReplyDelta, ReplyStop, TokenUse, ToolCaller,
    UnreadableArguments, WireCall, WireCallKind, WireMessage,
    discovery::SEARCH_TOOL,
    http::{refused, unreadable},
    wires::{arguments, tokens},
};

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
    status: Option<String>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    incomplete_details: Value,
}

/// Reads a whole response.
pub(super) fn read(body: &str) -> Result<ProviderReply, ProviderError> {
    let whole: Whole<'_> = serde_json::from_str(body)
        .map_err(|_| unreadable("it is no response of the Responses API"))?;
    let items = whole.output.iter().filter_map(|item| WireMessage::parse(item.get())).collect();
    reply(items, &whole)
}

/// Collects the items of a stream. Each one is kept as it was when it was done.
pub(super) struct Decoder {
    items: BTreeMap<u64, WireMessage>,
    response: Option<String>,
    effect: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    output_index: u64,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    delta: Option<Value>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { items: BTreeMap::new(), response: None, effect: false }
    }
}

impl ReplyDecoder for Decoder {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ProviderError> {
        // Some endpoints end every stream in the way of Chat Completions.
        if data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let event: Event<'_> = serde_json::from_str(data)
            .map_err(|_| unreadable("an event is no JSON object with a type"))?;
        let text = || event.delta.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                vec![ReplyDelta::Text(text())]
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                vec![ReplyDelta::Thinking(text())]
            }
            "response.output_item.added" => {
                let item: Value = event
                    .item
                    .and_then(|item| serde_json::from_str(item.get()).ok())
                    .unwrap_or_default();
                let hosted = hosted(&item);
                self.effect |= hosted.is_some();
                hosted.map(ReplyDelta::Hosted).into_iter().collect()
            }
            "response.output_item.done" => {
                let item = event.item.and_then(|item| WireMessage::parse(item.get()));
                self.items.extend(item.map(|item| (event.output_index, item)));
                Vec::new()
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.response = event.response.map(|response| response.get().to_owned());
                Vec::new()
            }
            "error" => {
                let body: Value = serde_json::from_str(data).unwrap_or_default();
                return Err(failure(&body, self.effect));
            }
            // What comes later, and what the items repeat.
            _ => Vec::new(),
        })
    }

    fn is_complete(&self) -> bool {
        self.response.is_some()
    }

    fn had_effect(&self) -> bool {
        self.effect
    }

    fn finish(self: Box<Self>) -> Result<ProviderReply, ProviderError> {
        let response = self.response.unwrap_or_default();
        let whole: Whole<'_> = serde_json::from_str(&response)
            .map_err(|_| unreadable("its last event has no response"))?;
        let mut items: Vec<WireMessage> = self.items.into_values().collect();
        if items.is_empty() {
            items = whole.output.iter().filter_map(|item| WireMessage::parse(item.get())).collect();
        }
        match reply(items, &whole) {
            Err(error) if error.is_temporary() && self.effect => {
                Err(ProviderError::Cut { after_effect: true })
            }
            other => other,
        }
    }
}

/// An error without a status: its code decides whether it is temporary.
fn failure(error: &Value, effect: bool) -> ProviderError {
    let code = error.get("error").unwrap_or(error)["code"].as_str();
    let status = match code {
        Some("rate_limit_exceeded") => StatusCode::TOO_MANY_REQUESTS,
        Some("server_error" | "server_overloaded") => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    match refused(status, error, None) {
        ref error if error.is_temporary() && effect => ProviderError::Cut { after_effect: true },
        error => error,
    }
}

/// The provider's own tool that an item uses.
fn hosted(item: &Value) -> Option<String> {
    let kind = item["type"].as_str()?;
    let ours = matches!(
        kind,
        "message"
            | "reasoning"
            | "function_call"
            | "custom_tool_call"
            | "compaction"
            | "mcp_list_tools"
    );
    let ours = ours || (kind == "tool_search_call" && item["execution"] == "client");
    (!ours && !kind.ends_with("_output")).then(|| kind.trim_end_matches("_call").to_owned())
}

fn reply(items: Vec<WireMessage>, whole: &Whole<'_>) -> Result<ProviderReply, ProviderError> {
    if whole.status.as_deref() == Some("failed") {
        return Err(failure(&whole.error, false));
    }
    let views: Vec<Value> = items.iter().map(WireMessage::to_value).collect();
    let contents = views.iter().filter(|item| item["type"] == "message");
    let contents: Vec<&Value> =
        contents.filter_map(|item| item["content"].as_array()).flatten().collect();
    let refused = contents.iter().any(|content| content["type"] == "refusal");
    let text = contents
        .iter()
        .filter_map(|content| content["text"].as_str().or(content["refusal"].as_str()));
    let usage = &whole.usage;
    let (input, cached) =
        (tokens(usage, "/input_tokens"), tokens(usage, "/input_tokens_details/cached_tokens"));
    let written = tokens(usage, "/input_tokens_details/cache_write_tokens");
    let reason = whole.incomplete_details["reason"].as_str();
    Ok(ProviderReply {
        text: text.collect(),
        calls: views.iter().filter_map(call).collect(),
        searches: views.iter().filter_map(search).collect(),
        stop: match (whole.status.as_deref(), reason) {
            (Some("incomplete"), Some("max_output_tokens")) => ReplyStop::MaxTokens,
            (Some("incomplete"), Some("content_filter")) => ReplyStop::Refused,
            (Some("incomplete"), reason) => {
                ReplyStop::Other(reason.unwrap_or("incomplete").to_owned())
            }
            _ if refused => ReplyStop::Refused,
            _ => ReplyStop::End,
        },
        tokens: TokenUse {
            new: input.saturating_sub(cached).saturating_sub(written),
            cached,
            cache_written: written,
            output: tokens(usage, "/output_tokens"),
        },
        messages: items,
        container: None,
    })
}

/// A search of the provider that has loaded tools. Its output does not say what was asked.
fn search(item: &Value) -> Option<(String, Vec<String>)> {
    if item["type"] != "tool_search_output" || item["execution"] == "client" {
        return None;
    }
    let mut names = Vec::new();
    for entry in item["tools"].as_array()? {
        let inner = entry["tools"].as_array();
        let tools = inner.map_or(std::slice::from_ref(entry), Vec::as_slice);
        names.extend(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned));
    }
    Some((String::new(), names))
}

fn call(item: &Value) -> Option<WireCall> {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let caller = &item["caller"];
    let by_program = caller["type"] == "program";
    let program = || ToolCaller::Code {
        program: caller["caller_id"].as_str().unwrap_or_default().to_owned(),
    };
    let kind = match item["type"].as_str()? {
        "function_call" => WireCallKind::Tool,
        "tool_search_call" if item["execution"] == "client" => WireCallKind::Search,
        _ => return None,
    };
    let given = &item["arguments"];
    let arguments = match given {
        Value::String(text) => arguments(text),
        Value::Object(_) => Ok(given.clone()),
        other => Err(UnreadableArguments(other.to_string())),
    };
    Some(WireCall {
        id: item["call_id"].as_str().map_or_else(|| text("id"), str::to_owned),
        name: if item["type"] == "tool_search_call" {
            SEARCH_TOOL.to_owned()
        } else {
            text("name")
        },
        arguments,
        caller: if by_program { program() } else { ToolCaller::Direct },
        kind,
        echo: caller.clone(),
    })
}
