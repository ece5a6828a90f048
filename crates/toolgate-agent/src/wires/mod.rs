//! The wires, one module each.

mod anthropic;
mod completions;
mod gemini;
mod responses;

use serde_json::Value;

pub use self::{
    anthropic::AnthropicMessages, completions::ChatCompletions, gemini::GeminiGenerate,
    responses::OpenAiResponses,
};
use crate::{
    AgentTool, ModelSettings, RequestParts, ToolDiscovery, ToolOffer, WirePrefix, raw::RawObject,
};

/// Begins the body of a request with its fixed fields.
fn body(parts: &RequestParts<'_>) -> RawObject {
    let fields = parts.prefix.fields.iter();
    fields.fold(RawObject::default(), |body, (name, json)| body.field(name, json.as_str()))
}

/// Adds the further fields of the settings, except those that the wire writes itself.
fn add_extra(prefix: &mut WirePrefix, settings: &ModelSettings) {
    for (name, value) in &settings.extra {
        if prefix.fields.iter().all(|(known, _)| known != name) {
            prefix.set(name, value.clone());
        }
    }
}

/// The tools that a wire without deferred tools lists: all of them, or the meta-tools.
fn listed(
    prefix: &mut WirePrefix,
    offer: &ToolOffer<'_>,
    discovery: ToolDiscovery,
    write: fn(&AgentTool) -> Value,
) -> Vec<Value> {
    if discovery != ToolDiscovery::Direct {
        return offer.meta.iter().map(write).collect();
    }
    prefix.tools = offer.catalogue.tools().map(|tool| tool.name.clone()).collect();
    offer.catalogue.tools().map(write).collect()
}

/// The arguments of a call, which some wires send as a text.
fn arguments(text: &str) -> Result<Value, String> {
    // A tool without parameters is called with nothing by some models.
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(text.to_owned()),
    }
}

/// A schema that every provider takes: an object.
fn schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) if fields.contains_key("type") => schema.clone(),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("type".to_owned(), "object".into());
            Value::Object(fields)
        }
        _ => serde_json::json!({ "type": "object", "properties": {} }),
    }
}

/// A number of tokens that may be missing.
fn tokens(usage: &Value, name: &str) -> u64 {
    usage.pointer(name).and_then(Value::as_u64).unwrap_or_default()
}
