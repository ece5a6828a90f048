//! What comes back.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    ProviderError, ProviderReply, ReplyDecoder, ReplyDelta, ReplyStop, TokenUse, ToolCaller,
    UnreadableArguments, WireCall, WireCallKind, WireMessage,
    http::{refused, unreadable},
    raw::merge,
    wires::{arguments, tokens},
};

/// Reads a whole completion. Its message keeps its bytes.
pub(super) fn read(body: &str) -> Result<ProviderReply, ProviderError> {
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
        finish_reason: Option<String>,
    }
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        choices: Vec<Choice<'a>>,
        #[serde(default)]
        usage: Value,
    }
    let wrong = || unreadable("it is no completion with a choice");
    let whole: Whole<'_> = serde_json::from_str(body).map_err(|_| wrong())?;
    let choice = whole.choices.first().ok_or_else(wrong)?;
    let message = WireMessage::parse(choice.message.get()).ok_or_else(wrong)?;
    Ok(reply(message, choice.finish_reason.as_deref(), &whole.usage))
}

/// Puts a streamed message together from its deltas.
#[derive(Default)]
pub(super) struct Decoder {
    message: Map<String, Value>,
    calls: Vec<Value>,
    finish: Option<String>,
    usage: Value,
    done: bool,
}

impl Decoder {
    fn delta(&mut self, delta: &mut Value) -> Vec<ReplyDelta> {
        let Some(fields) = delta.as_object_mut() else { return Vec::new() };
        let calls = fields.shift_remove("tool_calls");
        let mut shown = Vec::new();
        let text = |fields: &Map<String, Value>, name: &str| {
            fields
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        shown.extend(text(fields, "content").map(ReplyDelta::Text));
        shown.extend(text(fields, "refusal").map(ReplyDelta::Text));
        let thinking = text(fields, "reasoning_content").or_else(|| text(fields, "reasoning"));
        shown.extend(thinking.map(ReplyDelta::Thinking));
        let mut message = Value::Object(std::mem::take(&mut self.message));
        merge(&mut message, Value::Object(std::mem::take(fields)));
        if let Value::Object(message) = message {
            self.message = message;
        }
        for call in calls.as_ref().and_then(Value::as_array).into_iter().flatten() {
            self.call(call.clone());
        }
        shown
    }

    /// Pieces of a call belong together by `index`. Endpoints without it send a call in one piece.
    fn call(&mut self, mut piece: Value) {
        let index = piece["index"].as_u64();
        let same = |known: &&mut Value| index.is_some() && known["index"].as_u64() == index;
        if let Some(known) = self.calls.iter_mut().find(same) {
            merge(known, piece);
            return;
        }
        if !piece.is_object() {
            return;
        }
        if piece["id"].as_str().is_none_or(str::is_empty) {
            piece["id"] = format!("call_{}", self.calls.len()).into();
        }
        if piece["type"].is_null() {
            piece["type"] = "function".into();
        }
        self.calls.push(piece);
    }
}

impl ReplyDecoder for Decoder {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ProviderError> {
        if data.trim() == "[DONE]" {
            self.done = self.finish.is_some();
            return if self.done {
                Ok(Vec::new())
            } else {
                Err(ProviderError::Cut { after_effect: false })
            };
        }
        let mut chunk: Value = serde_json::from_str(data)
            .map_err(|_| unreadable("an event of the stream is no JSON"))?;
        if !chunk["error"].is_null() {
            let code = chunk.pointer("/error/code").and_then(Value::as_u64);
            let status = code.and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
            return Err(refused(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &chunk, None));
        }
        if chunk["usage"].is_object() {
            self.usage = chunk["usage"].take();
        }
        let Some(choice) = chunk.pointer_mut("/choices/0") else { return Ok(Vec::new()) };
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        Ok(self.delta(&mut choice["delta"]))
    }

    fn is_complete(&self) -> bool {
        self.done
    }

    /// Some endpoints leave out `[DONE]`.
    fn may_end(&self) -> bool {
        self.finish.is_some()
    }

    fn had_effect(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>) -> Result<ProviderReply, ProviderError> {
        let mut message = self.message;
        message.entry("role").or_insert_with(|| "assistant".into());
        message.entry("content").or_insert(Value::Null);
        let calls = self.calls.into_iter().map(|mut call| {
            if let Some(fields) = call.as_object_mut() {
                fields.shift_remove("index");
            }
            call
        });
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        let message = WireMessage::new(&Value::Object(message));
        Ok(reply(message, self.finish.as_deref(), &self.usage))
    }
}

fn reply(message: WireMessage, finish: Option<&str>, usage: &Value) -> ProviderReply {
    let view = message.to_value();
    let refusal = view["refusal"].as_str().filter(|text| !text.is_empty());
    let calls: Vec<WireCall> =
        view["tool_calls"].as_array().into_iter().flatten().map(call).collect();
    let text = view["content"].as_str().or(refusal).unwrap_or_default().to_owned();
    let (input, cached) =
        (tokens(usage, "/prompt_tokens"), tokens(usage, "/prompt_tokens_details/cached_tokens"));
    let is_empty = text.is_empty() && calls.is_empty();
    ProviderReply {
        searches: Vec::new(),
        messages: if is_empty { Vec::new() } else { vec![message] },
        text,
        calls,
        stop: match finish {
            _ if refusal.is_some() => ReplyStop::Refused,
            None | Some("stop" | "tool_calls" | "function_call") => ReplyStop::End,
            Some("length") => ReplyStop::MaxTokens,
            Some("content_filter") => ReplyStop::Refused,
            Some(other) => ReplyStop::Other(other.to_owned()),
        },
        tokens: TokenUse {
            new: input.saturating_sub(cached),
            cached,
            cache_written: 0,
            output: tokens(usage, "/completion_tokens"),
        },
        container: None,
    }
}

fn call(call: &Value) -> WireCall {
    let given = &call["function"]["arguments"];
    WireCall {
        id: call["id"].as_str().unwrap_or_default().to_owned(),
        name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
        arguments: match given {
            Value::String(text) => arguments(text),
            Value::Null => Ok(Value::Object(Map::new())),
            Value::Object(_) => Ok(given.clone()),
            other => Err(UnreadableArguments(other.to_string())),
        },
        caller: ToolCaller::Direct,
        kind: WireCallKind::Tool,
        echo: Value::Null,
    }
}
