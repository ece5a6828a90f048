//! What comes back.

use std::{collections::BTreeMap, time::SystemTime};

use chrono::DateTime;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    CodeContainer, ProviderError, ProviderReply, ReplyDecoder, ReplyDelta, ReplyStop, TokenUse,
    ToolCaller, UnreadableArguments, WireCall, WireCallKind, WireMessage,
    http::{refused, unreadable},
    raw::{RawObject, merge, raw_array},
    wires::{arguments, tokens},
};

/// Reads a whole message.
pub(super) fn read(body: &str) -> Result<ProviderReply, ProviderError> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow, default)]
        content: Vec<&'a RawValue>,
        stop_reason: Option<String>,
        #[serde(default)]
        usage: Value,
        #[serde(default)]
        container: Value,
    }
    let whole: Whole<'_> = serde_json::from_str(body)
        .map_err(|_| unreadable("it is no message of Anthropic's API"))?;
    let blocks: Vec<String> =
        whole.content.into_iter().map(|block| block.get().to_owned()).collect();
    Ok(reply(&blocks, whole.stop_reason.as_deref(), &whole.usage, &whole.container))
}

/// Puts a streamed message together. A block without deltas keeps its bytes.
pub(super) struct Decoder {
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    usage: Value,
    container: Value,
    complete: bool,
    effect: bool,
}

struct Block {
    /// The block as it began.
    raw: String,
    /// The block with its deltas, if it had any.
    changed: Option<Value>,
    /// The text of `input`, which comes in pieces.
    input: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Value>,
    message: Option<Value>,
    usage: Option<Value>,
    error: Option<Value>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            stop: None,
            usage: Value::Object(serde_json::Map::new()),
            container: Value::Null,
            complete: false,
            effect: false,
        }
    }

    fn delta(&mut self, index: u64, mut delta: Value) -> Vec<ReplyDelta> {
        let Some(block) = self.blocks.get_mut(&index) else { return Vec::new() };
        let text = |name: &str| delta[name].as_str().unwrap_or_default().to_owned();
        let shown = match delta["type"].as_str() {
            Some("input_json_delta") => {
                block.input.push_str(delta["partial_json"].as_str().unwrap_or_default());
                return Vec::new();
            }
            Some("text_delta") => vec![ReplyDelta::Text(text("text"))],
            Some("thinking_delta") => vec![ReplyDelta::Thinking(text("thinking"))],
            Some("citations_delta") => {
                delta = serde_json::json!({ "citations": [delta["citation"].take()] });
                Vec::new()
            }
            _ => Vec::new(),
        };
        if let Some(fields) = delta.as_object_mut() {
            fields.shift_remove("type");
        }
        let whole = block
            .changed
            .get_or_insert_with(|| serde_json::from_str(&block.raw).unwrap_or_default());
        merge(whole, delta);
        shown
    }
}

impl Block {
    /// The id and the input of a call whose input is no JSON object.
    fn broken_input(&self) -> Option<(String, UnreadableArguments)> {
        let input = arguments(&self.input).err()?;
        let block: Value = serde_json::from_str(&self.raw).ok()?;
        Some((block["id"].as_str()?.to_owned(), input))
    }

    fn finish(self) -> String {
        let whole = self.changed.as_ref();
        if self.input.is_empty() {
            return whole.map_or(self.raw, Value::to_string);
        }
        // An input that was cut is no JSON; an empty one stands for it, and the call is refused.
        let input = if arguments(&self.input).is_ok() { self.input.as_str() } else { "{}" };
        let fields: Value =
            whole.cloned().unwrap_or_else(|| serde_json::from_str(&self.raw).unwrap_or_default());
        let fields = fields.as_object().cloned().unwrap_or_default();
        let object =
            fields.iter().fold(RawObject::default(), |object, (name, value)| match name.as_str() {
                "input" => object.field(name, input),
                _ => object.value(name, value.clone()),
            });
        object.finish()
    }
}

impl ReplyDecoder for Decoder {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ProviderError> {
        let event: Event<'_> = serde_json::from_str(data)
            .map_err(|_| unreadable("an event is no JSON object with a type"))?;
        match event.kind.as_str() {
            "message_start" => {
                let message = event.message.unwrap_or_default();
                merge_usage(&mut self.usage, &message["usage"]);
                self.container = message["container"].clone();
            }
            "content_block_start" => {
                let raw = event.content_block.map_or("{}", RawValue::get).to_owned();
                let view: Value = serde_json::from_str(&raw).unwrap_or_default();
                let hosted = hosted(&view);
                self.effect |= hosted.is_some();
                self.blocks.insert(event.index, Block { raw, changed: None, input: String::new() });
                return Ok(hosted.map(ReplyDelta::Hosted).into_iter().collect());
            }
            "content_block_delta" => {
                return Ok(self.delta(event.index, event.delta.unwrap_or_default()));
            }
            "message_delta" => {
                let delta = event.delta.unwrap_or_default();
                if let Some(stop) = delta["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
                if delta["container"].is_object() {
                    self.container = delta["container"].clone();
                }
                merge_usage(&mut self.usage, &event.usage.unwrap_or_default());
            }
            "message_stop" => self.complete = true,
            "error" => {
                let error = event.error.unwrap_or_default();
                return Err(error_event(&error, self.effect));
            }
            // `ping`, and what comes later.
            _ => {}
        }
        Ok(Vec::new())
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn had_effect(&self) -> bool {
        self.effect
    }

    fn finish(self: Box<Self>) -> Result<ProviderReply, ProviderError> {
        let broken: Vec<(String, UnreadableArguments)> =
            self.blocks.values().filter_map(Block::broken_input).collect();
        let blocks: Vec<String> = self.blocks.into_values().map(Block::finish).collect();
        let mut reply = reply(&blocks, self.stop.as_deref(), &self.usage, &self.container);
        for (id, input) in broken {
            if let Some(call) = reply.calls.iter_mut().find(|call| call.id == id) {
                call.arguments = Err(input);
            }
        }
        Ok(reply)
    }
}

/// An error within a stream has a name in place of a status.
fn error_event(error: &Value, effect: bool) -> ProviderError {
    let status = match error["type"].as_str() {
        Some("overloaded_error") => 529,
        Some("rate_limit_error") => 429,
        Some("api_error") => 500,
        Some("timeout_error") => 504,
        _ => 400,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    match refused(status, error, None) {
        ref error if error.is_temporary() && effect => ProviderError::Cut { after_effect: true },
        error => error,
    }
}

fn merge_usage(usage: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        if !value.is_null() {
            usage[name] = value.clone();
        }
    }
}

/// The name of the provider's own tool that a block uses. Its search changes nothing.
fn hosted(block: &Value) -> Option<String> {
    let is_hosted = matches!(block["type"].as_str(), Some("server_tool_use" | "mcp_tool_use"));
    let name = block["name"].as_str().unwrap_or("a tool of the provider");
    is_hosted.then(|| name.to_owned())
}

fn reply(blocks: &[String], stop: Option<&str>, usage: &Value, container: &Value) -> ProviderReply {
    let views: Vec<Value> =
        blocks.iter().map(|block| serde_json::from_str(block).unwrap_or_default()).collect();
    let text = views.iter().filter(|block| block["type"] == "text");
    let calls = views.iter().filter(|block| block["type"] == "tool_use");
    let stop = match stop {
        None | Some("end_turn" | "tool_use" | "stop_sequence") => ReplyStop::End,
        Some("pause_turn") => ReplyStop::Paused,
        Some("max_tokens") => ReplyStop::MaxTokens,
        Some("refusal") => ReplyStop::Refused,
        Some("model_context_window_exceeded") => ReplyStop::Window,
        Some(other) => ReplyStop::Other(other.to_owned()),
    };
    let message = RawObject::default()
        .value("role", "assistant")
        .field("content", &raw_array(blocks.iter().map(String::as_str)))
        .finish();
    ProviderReply {
        // A message without content is refused.
        messages: if blocks.is_empty() {
            Vec::new()
        } else {
            vec![WireMessage::from_text(message)]
        },
        text: text.filter_map(|block| block["text"].as_str()).collect(),
        calls: calls.map(call).collect(),
        searches: searches(&views),
        stop,
        tokens: TokenUse {
            new: tokens(usage, "/input_tokens"),
            cached: tokens(usage, "/cache_read_input_tokens"),
            cache_written: tokens(usage, "/cache_creation_input_tokens"),
            output: tokens(usage, "/output_tokens"),
        },
        container: self::container(container),
    }
}

/// The searches of the provider that have loaded tools.
fn searches(blocks: &[Value]) -> Vec<(String, Vec<String>)> {
    let results = blocks.iter().filter(|block| block["type"] == "tool_search_tool_result");
    let searches = results.filter_map(|result| {
        let found = result["content"]["tool_references"].as_array()?;
        let names = found.iter().filter_map(|tool| tool["tool_name"].as_str()).map(str::to_owned);
        let asked = blocks.iter().find(|block| block["id"] == result["tool_use_id"]);
        let input = asked.map(|block| &block["input"]);
        let query = input.and_then(|input| input["query"].as_str().or(input["pattern"].as_str()));
        Some((query.unwrap_or_default().to_owned(), names.collect()))
    });
    searches.collect()
}

fn call(block: &Value) -> WireCall {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let caller = &block["caller"];
    let caller = match caller["type"].as_str() {
        None | Some("direct") => ToolCaller::Direct,
        Some(_) => {
            ToolCaller::Code { program: caller["tool_id"].as_str().unwrap_or_default().to_owned() }
        }
    };
    let input = &block["input"];
    WireCall {
        id: text("id"),
        kind: WireCallKind::Tool,
        name: text("name"),
        arguments: if input.is_object() {
            Ok(input.clone())
        } else {
            Err(UnreadableArguments(input.to_string()))
        },
        caller,
        echo: Value::Null,
    }
}

fn container(container: &Value) -> Option<CodeContainer> {
    let expires =
        container["expires_at"].as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    Some(CodeContainer {
        id: container["id"].as_str()?.to_owned(),
        expires_at: expires.map(SystemTime::from),
    })
}
