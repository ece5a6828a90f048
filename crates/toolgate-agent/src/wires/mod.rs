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
    AgentCatalogue, AgentTool, ModelSettings, RequestParts, ToolDiscovery, ToolOffer,
    UnreadableArguments, WirePrefix,
    discovery::{CALL_TOOL, for_later_tools},
    raw::RawObject,
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

/// The tools that a wire without deferred tools lists: all of them with those of the loop, or the meta-tools.
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
    let own = for_later_tools(offer.catalogue);
    own.iter().chain(offer.catalogue.tools()).map(write).collect()
}

/// The tools of the loop on a wire without deferred tools. A list that never grows needs them for later tools.
fn own_tools(catalogue: &AgentCatalogue, discovery: ToolDiscovery) -> Vec<AgentTool> {
    if discovery == ToolDiscovery::Direct { for_later_tools(catalogue) } else { Vec::new() }
}

/// What a search has found, in words: for wires on which it loads nothing.
fn found_text(found: &[(AgentTool, bool)]) -> String {
    if found.is_empty() {
        return NOTHING_FOUND.to_owned();
    }
    let lines = found.iter().map(|(tool, known)| {
        if *known { format!("`{}` is in your list of tools.", tool.name) } else { new_tool(tool) }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A tool whose definition the model does not have.
fn new_tool(AgentTool { name, description, input_schema, .. }: &AgentTool) -> String {
    format!(
        "{NEW_TOOL} `{name}`, to be called with {CALL_TOOL}: {description}\nArguments: {input_schema}"
    )
}

/// How [`new_tool`] begins.
const NEW_TOOL: &str = "New tool";
const NOTHING_FOUND: &str = "No tool fits. Search with other words.";
/// What stands in place of found tools that were unloaded.
const UNLOADED: &str =
    "The tools that this search has found were unloaded. Search again to use them.";

/// The arguments of a call, which some wires send as a text.
fn arguments(text: &str) -> Result<Value, UnreadableArguments> {
    // A tool without parameters is called with nothing by some models.
    let text = if text.trim().is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(UnreadableArguments(text.to_owned())),
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
