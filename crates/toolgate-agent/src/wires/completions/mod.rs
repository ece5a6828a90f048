//! Chat Completions, as `OpenAI`, Ollama, vLLM, llama.cpp, `OpenRouter` and many others have it.
//!
//! A call is in `tool_calls` of an assistant message, and its answer a message with the role `tool`. The wire has no
//! deferred tools: a model gets the meta-tools, or all tools. So the request never changes but by its messages.

mod reply;

use serde_json::{Value, json};

use crate::{
    AgentCatalogue, AgentError, AgentTool, AnsweredCall, CallAnswer, CatalogueChange,
    ModelSettings, Provider, ProviderError, ProviderReply, ReplyDecoder, RequestParts,
    ToolDiscovery, ToolOffer, WireEndpoint, WireMessage, WirePrefix, WireRequest, raw::raw_array,
    wires,
};

/// The wire that most endpoints speak.
#[derive(Debug)]
pub struct ChatCompletions {
    endpoint: WireEndpoint,
}

const WIRE: &str = "Chat Completions";
const DISCOVERIES: [ToolDiscovery; 3] =
    [ToolDiscovery::Stable, ToolDiscovery::Code, ToolDiscovery::Direct];

impl ChatCompletions {
    /// Creates the client. It does not connect yet.
    pub fn new(settings: ModelSettings) -> Result<Self, AgentError> {
        let endpoint =
            WireEndpoint::new((WIRE, &DISCOVERIES), settings, ("authorization", "Bearer "))?;
        Ok(Self { endpoint })
    }
}

impl Provider for ChatCompletions {
    fn endpoint(&self) -> &WireEndpoint {
        &self.endpoint
    }

    fn prefix(&self, offer: &ToolOffer<'_>) -> Result<WirePrefix, AgentError> {
        let mut prefix = WirePrefix::default();
        prefix.set("model", self.endpoint.settings.model.as_str());
        let tools = wires::listed(&mut prefix, offer, self.endpoint.discovery, function);
        if !tools.is_empty() {
            prefix.set("tools", tools);
        }
        if !offer.instructions.is_empty() {
            let system = json!({ "role": "system", "content": offer.instructions });
            prefix.messages.push(WireMessage::new(&system));
        }
        if let Some(limit) = self.endpoint.settings.max_output_tokens {
            prefix.set("max_completion_tokens", limit);
        }
        wires::add_extra(&mut prefix, &self.endpoint.settings);
        Ok(prefix)
    }

    fn request(&self, parts: &RequestParts<'_>) -> WireRequest {
        let mut body = wires::body(parts);
        let has_tools = parts.prefix.fields.iter().any(|(name, _)| name == "tools");
        if !parts.tools_allowed && has_tools {
            body = body.value("tool_choice", "none");
        }
        let messages = parts.prefix.messages.iter().chain(parts.history).map(WireMessage::as_str);
        body = body
            .field("messages", &raw_array(messages))
            .value("stream", self.endpoint.settings.stream);
        if self.endpoint.settings.stream {
            body = body.value("stream_options", json!({ "include_usage": true }));
        }
        WireRequest {
            path: "/chat/completions".to_owned(),
            headers: Vec::new(),
            body: body.finish(),
        }
    }

    fn decoder(&self) -> Box<dyn ReplyDecoder> {
        Box::new(reply::Decoder::default())
    }

    fn read(&self, body: &str) -> Result<ProviderReply, ProviderError> {
        reply::read(body)
    }

    fn user_text(&self, text: &str) -> WireMessage {
        WireMessage::new(&json!({ "role": "user", "content": text }))
    }

    fn results(&self, answered: &[AnsweredCall], _: &AgentCatalogue) -> Vec<WireMessage> {
        let messages = answered.iter().map(|AnsweredCall { call, answer }| {
            let content = match answer {
                CallAnswer::Output(output) if output.is_error => {
                    format!("Error: {}", output.flat())
                }
                CallAnswer::Output(output) => output.flat(),
                CallAnswer::Found(found) => wires::found_text(found),
            };
            WireMessage::new(
                &json!({ "role": "tool", "tool_call_id": call.id, "content": content }),
            )
        });
        messages.collect()
    }

    fn change(&self, _: &CatalogueChange<'_>) -> Option<WireMessage> {
        None
    }

    fn own_tools(&self, catalogue: &AgentCatalogue) -> Vec<AgentTool> {
        wires::own_tools(catalogue, self.endpoint.discovery)
    }
}

fn function(tool: &AgentTool) -> Value {
    let AgentTool { name, description, input_schema, .. } = tool;
    let parameters = wires::schema(input_schema);
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    json!({ "type": "function", "function": function })
}
