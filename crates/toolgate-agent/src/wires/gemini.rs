//! Gemini `generateContent`.
//!
//! The history is a list of contents with parts. A call is a part `functionCall`, and its answer a part
//! `functionResponse`. Parts are kept as they came, with their `thoughtSignature`. The wire has no deferred tools.

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    AgentCatalogue, AgentError, AgentTool, AnsweredCall, CallAnswer, CatalogueChange,
    ModelSettings, Provider, ProviderError, ProviderReply, ReplyDecoder, ReplyDelta, ReplyStop,
    RequestParts, TokenUse, ToolCaller, ToolDiscovery, ToolOffer, ToolOutput, UnreadableArguments,
    WireCall, WireCallKind, WireEndpoint, WireMessage, WirePrefix, WireRequest,
    http::{refused, unreadable},
    raw::{RawObject, raw_array},
    wires::{self, tokens},
};

/// The wire of Gemini.
#[derive(Debug)]
pub struct GeminiGenerate {
    endpoint: WireEndpoint,
}

const WIRE: &str = "Gemini";
const DISCOVERIES: [ToolDiscovery; 3] =
    [ToolDiscovery::Stable, ToolDiscovery::Code, ToolDiscovery::Direct];

impl GeminiGenerate {
    /// Creates the client. It does not connect yet.
    pub fn new(settings: ModelSettings) -> Result<Self, AgentError> {
        let name = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
        if !settings.model.chars().all(name) {
            let why = "the name of a Gemini model has letters, digits, `-`, `.` and `_` only";
            return Err(AgentError::Settings(why.to_owned()));
        }
        let endpoint = WireEndpoint::new((WIRE, &DISCOVERIES), settings, ("x-goog-api-key", ""))?;
        Ok(Self { endpoint })
    }
}

impl Provider for GeminiGenerate {
    fn endpoint(&self) -> &WireEndpoint {
        &self.endpoint
    }

    fn prefix(&self, offer: &ToolOffer<'_>) -> Result<WirePrefix, AgentError> {
        let mut prefix = WirePrefix::default();
        let declarations = wires::listed(&mut prefix, offer, self.endpoint.discovery, declaration);
        if !offer.instructions.is_empty() {
            prefix.set("systemInstruction", json!({ "parts": [{ "text": offer.instructions }] }));
        }
        if !declarations.is_empty() {
            prefix.set("tools", json!([{ "functionDeclarations": declarations }]));
        }
        if let Some(limit) = self.endpoint.settings.max_output_tokens {
            prefix.set("generationConfig", json!({ "maxOutputTokens": limit }));
        }
        wires::add_extra(&mut prefix, &self.endpoint.settings);
        Ok(prefix)
    }

    fn request(&self, parts: &RequestParts<'_>) -> WireRequest {
        let mut body = wires::body(parts);
        if !parts.tools_allowed {
            body = body.value("toolConfig", json!({ "functionCallingConfig": { "mode": "NONE" } }));
        }
        let contents = parts.history.iter().map(WireMessage::as_str);
        body = body.field("contents", &raw_array(contents));
        let method = if self.endpoint.settings.stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let path = format!("/v1beta/models/{}:{method}", self.endpoint.settings.model);
        WireRequest { path, headers: Vec::new(), body: body.finish() }
    }

    fn decoder(&self) -> Box<dyn ReplyDecoder> {
        Box::new(Decoder::default())
    }

    fn read(&self, body: &str) -> Result<ProviderReply, ProviderError> {
        let mut decoder = Decoder::default();
        decoder.event(body)?;
        Box::new(decoder).finish()
    }

    fn user_text(&self, text: &str) -> WireMessage {
        WireMessage::new(&json!({ "role": "user", "parts": [{ "text": text }] }))
    }

    fn results(&self, answered: &[AnsweredCall], _: &AgentCatalogue) -> Vec<WireMessage> {
        let parts: Vec<Value> = answered.iter().map(response).collect();
        vec![WireMessage::new(&json!({ "role": "user", "parts": parts }))]
    }

    fn change(&self, _: &CatalogueChange<'_>) -> Option<WireMessage> {
        None
    }

    fn own_tools(&self, catalogue: &AgentCatalogue) -> Vec<AgentTool> {
        wires::own_tools(catalogue, self.endpoint.discovery)
    }
}

fn declaration(tool: &AgentTool) -> Value {
    let mut declaration = json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": wires::schema(&tool.input_schema),
    });
    if let Some(schema) = &tool.output_schema {
        declaration["responseJsonSchema"] = schema.clone();
    }
    declaration
}

fn response(AnsweredCall { call, answer }: &AnsweredCall) -> Value {
    let response = match answer {
        CallAnswer::Output(ToolOutput {
            is_error: false,
            structured: Some(object @ Value::Object(_)),
            ..
        }) => object.clone(),
        CallAnswer::Output(output) if output.is_error => json!({ "error": output.flat() }),
        CallAnswer::Output(output) => json!({ "output": output.flat() }),
        CallAnswer::Found(found) => json!({ "output": wires::found_text(found) }),
    };
    let mut part = json!({ "name": call.name, "response": response });
    // Only models that gave an id expect one.
    if !call.echo.is_null() {
        part["id"] = call.echo.clone();
    }
    json!({ "functionResponse": part })
}

/// Collects the parts of a reply. Each one keeps its bytes.
#[derive(Default)]
struct Decoder {
    parts: Vec<String>,
    finish: Option<String>,
    usage: Value,
    /// Whether the provider ran code of the model.
    effect: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Vec<Candidate<'a>>,
    usage_metadata: Value,
    prompt_feedback: Value,
    error: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

impl ReplyDecoder for Decoder {
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ProviderError> {
        let chunk: Chunk<'_> = serde_json::from_str(data)
            .map_err(|_| unreadable("an event is no response of Gemini's API"))?;
        if !chunk.error.is_null() {
            let code = chunk.error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            let status = code.and_then(|code| StatusCode::from_u16(code).ok());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Err(refused(status, &chunk.error, None));
        }
        if chunk.usage_metadata.is_object() {
            self.usage = chunk.usage_metadata;
        }
        if let Some(reason) = chunk.prompt_feedback["blockReason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let Some(candidate) = chunk.candidates.into_iter().next() else { return Ok(Vec::new()) };
        if candidate.finish_reason.is_some() {
            self.finish = candidate.finish_reason;
        }
        let mut shown = Vec::new();
        for part in candidate.content.unwrap_or_default().parts {
            let view: Value = serde_json::from_str(part.get()).unwrap_or_default();
            if let Some(text) = view["text"].as_str().filter(|text| !text.is_empty()) {
                let thought = view["thought"].as_bool().unwrap_or_default();
                let kind = if thought { ReplyDelta::Thinking } else { ReplyDelta::Text };
                shown.push(kind(text.to_owned()));
            }
            if view.get("executableCode").is_some() {
                self.effect = true;
                shown.push(ReplyDelta::Hosted("code execution".to_owned()));
            }
            self.parts.push(part.get().to_owned());
        }
        Ok(shown)
    }

    /// A stream of this wire has no mark at its end.
    fn is_complete(&self) -> bool {
        false
    }

    fn may_end(&self) -> bool {
        self.finish.is_some()
    }

    fn had_effect(&self) -> bool {
        self.effect
    }

    fn finish(self: Box<Self>) -> Result<ProviderReply, ProviderError> {
        let views = self.parts.iter().map(|part| serde_json::from_str(part).unwrap_or_default());
        let views: Vec<Value> = views.collect();
        let answer = views.iter().filter(|part| part["thought"] != true);
        let calls = views.iter().map(|part| &part["functionCall"]).filter(|call| call.is_object());
        let content = RawObject::default()
            .value("role", "model")
            .field("parts", &raw_array(self.parts.iter().map(String::as_str)))
            .finish();
        let usage = &self.usage;
        let prompt = tokens(usage, "/promptTokenCount") + tokens(usage, "/toolUsePromptTokenCount");
        let cached = tokens(usage, "/cachedContentTokenCount");
        Ok(ProviderReply {
            searches: Vec::new(),
            text: answer.filter_map(|part| part["text"].as_str()).collect(),
            calls: calls.enumerate().map(|(place, call)| self::call(place, call)).collect(),
            stop: match self.finish.as_deref() {
                None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => ReplyStop::End,
                Some("MAX_TOKENS") => ReplyStop::MaxTokens,
                Some(
                    "SAFETY" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "RECITATION"
                    | "IMAGE_SAFETY",
                ) => ReplyStop::Refused,
                Some(other) => ReplyStop::Other(other.to_owned()),
            },
            tokens: TokenUse {
                new: prompt.saturating_sub(cached),
                cached,
                cache_written: 0,
                output: tokens(usage, "/candidatesTokenCount")
                    + tokens(usage, "/thoughtsTokenCount"),
            },
            messages: if views.is_empty() {
                Vec::new()
            } else {
                vec![WireMessage::from_text(content)]
            },
            container: None,
        })
    }
}

fn call(place: usize, call: &Value) -> WireCall {
    let id = call["id"].as_str().filter(|id| !id.is_empty());
    WireCall {
        id: id.map_or_else(|| format!("call_{place}"), str::to_owned),
        name: call["name"].as_str().unwrap_or_default().to_owned(),
        arguments: match &call["args"] {
            Value::Null => Ok(Value::Object(Map::new())),
            Value::Object(fields) => Ok(Value::Object(fields.clone())),
            other => Err(UnreadableArguments(other.to_string())),
        },
        caller: ToolCaller::Direct,
        kind: WireCallKind::Tool,
        echo: id.map_or(Value::Null, Value::from),
    }
}
