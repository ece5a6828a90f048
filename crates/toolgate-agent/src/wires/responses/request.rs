//! What we send.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::OpenAiResponses;
use crate::{
    AgentCatalogue, AgentTool, AnsweredCall, CallAnswer, CatalogueChange, Provider as _,
    RequestParts, ToolCaller, ToolContent, ToolDiscovery, ToolOffer, ToolOutput, WireCallKind,
    WireMessage, WirePrefix, WireRequest,
    discovery::{SEARCH_DESCRIPTION, SEARCH_TOOL},
    raw::raw_array,
    wires,
};

/// How many servers the description of the search names.
const NAMED_SERVERS: usize = 50;

impl OpenAiResponses {
    pub(super) fn write_prefix(&self, offer: &ToolOffer<'_>) -> WirePrefix {
        let mut prefix = WirePrefix::default();
        prefix.set("model", self.endpoint.settings.model.as_str());
        if !offer.instructions.is_empty() {
            prefix.set("instructions", offer.instructions);
        }
        let tools = self.tools(offer);
        if !tools.is_empty() {
            prefix.set("tools", tools);
        }
        let sent = match self.endpoint.discovery {
            ToolDiscovery::Hosted | ToolDiscovery::Direct => offer.catalogue.tools().collect(),
            ToolDiscovery::Stable | ToolDiscovery::Code => Vec::new(),
            _ => offer.catalogue.listed.iter().collect::<Vec<_>>(),
        };
        prefix.tools = sent.into_iter().map(|tool| tool.name.clone()).collect();
        if let Some(limit) = self.endpoint.settings.max_output_tokens {
            prefix.set("max_output_tokens", limit);
        }
        prefix.set("store", false);
        // Without storage, reasoning can go back only in encrypted form.
        prefix.set("include", json!(["reasoning.encrypted_content"]));
        wires::add_extra(&mut prefix, &self.endpoint.settings);
        prefix
    }

    fn tools(&self, offer: &ToolOffer<'_>) -> Vec<Value> {
        let catalogue = offer.catalogue;
        let mut tools = Vec::new();
        let own = self.own_tools(catalogue);
        match self.endpoint.discovery {
            ToolDiscovery::Search => tools.extend(own.iter().map(|search| {
                json!({
                    "type": "tool_search",
                    "execution": "client",
                    "description": search.description,
                    "parameters": search.input_schema,
                })
            })),
            ToolDiscovery::Hosted => {
                tools.push(json!({ "type": "tool_search", "execution": "server" }));
            }
            _ => tools.extend(own.iter().map(|search| self.function(search, false))),
        }
        if self.endpoint.settings.programmatic {
            tools.push(json!({ "type": "programmatic_tool_calling" }));
        }
        match self.endpoint.discovery {
            ToolDiscovery::Stable | ToolDiscovery::Code => {
                tools.extend(offer.meta.iter().map(|tool| self.function(tool, false)));
            }
            ToolDiscovery::Direct => {
                tools.extend(catalogue.tools().map(|tool| self.function(tool, false)));
            }
            ToolDiscovery::Hosted => {
                tools.extend(catalogue.listed.iter().map(|tool| self.function(tool, false)));
                tools.extend(self.namespaces(catalogue.deferred.iter(), catalogue));
            }
            _ => tools.extend(catalogue.listed.iter().map(|tool| self.function(tool, false))),
        }
        tools
    }

    /// One namespace a server; a tool without a server stands alone. The order is that of the tools.
    fn namespaces<'a>(
        &self,
        tools: impl Iterator<Item = &'a AgentTool>,
        catalogue: &AgentCatalogue,
    ) -> Vec<Value> {
        let mut groups: Vec<(&str, Vec<Value>)> = Vec::new();
        let mut entries = Vec::new();
        for tool in tools {
            let function = self.function(tool, true);
            let Some(server) = tool.server.as_deref() else {
                entries.push(function);
                continue;
            };
            match groups.iter_mut().find(|(name, _)| *name == server) {
                Some((_, group)) => group.push(function),
                None => groups.push((server, vec![function])),
            }
        }
        entries.extend(groups.into_iter().map(|(server, tools)| {
            json!({
                "type": "namespace",
                "name": server,
                "description": catalogue.describe(server),
                "tools": tools,
            })
        }));
        entries
    }

    fn function(&self, tool: &AgentTool, deferred: bool) -> Value {
        let mut function = json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": wires::schema(&tool.input_schema),
            // Schemas of MCP servers seldom keep the rules of strict schemas.
            "strict": false,
        });
        if let Some(output) = &tool.output_schema {
            function["output_schema"] = output.clone();
        }
        if deferred {
            function["defer_loading"] = true.into();
        }
        if self.endpoint.settings.programmatic {
            let direct = tool.callers.direct.then_some("direct");
            let code = tool.callers.code.then_some("programmatic");
            function["allowed_callers"] = direct.into_iter().chain(code).collect();
        }
        function
    }

    pub(super) fn write_request(&self, parts: &RequestParts<'_>) -> WireRequest {
        let mut body = wires::body(parts);
        if !parts.tools_allowed {
            body = body.value("tool_choice", "none");
        }
        let items = parts.history.iter().map(WireMessage::as_str);
        body =
            body.field("input", &raw_array(items)).value("stream", self.endpoint.settings.stream);
        WireRequest { path: "/responses".to_owned(), headers: Vec::new(), body: body.finish() }
    }

    pub(super) fn write_results(
        &self,
        answered: &[AnsweredCall],
        catalogue: &AgentCatalogue,
    ) -> Vec<WireMessage> {
        let mut items = Vec::new();
        // Definitions come after all outputs, so that no item stands between calls and their outputs.
        let mut appended = Vec::new();
        for AnsweredCall { call, answer } in answered {
            let found: &[(AgentTool, bool)] = match answer {
                CallAnswer::Found(found) => found,
                CallAnswer::Output(_) => &[],
            };
            let tools = found.iter().map(|(tool, _)| tool);
            if call.kind == WireCallKind::Search && self.endpoint.discovery == ToolDiscovery::Search
            {
                items.push(json!({
                    "type": "tool_search_output",
                    "call_id": call.id,
                    "execution": "client",
                    "status": "completed",
                    "tools": self.namespaces(tools, catalogue),
                }));
                continue;
            }
            let output = match answer {
                CallAnswer::Output(output) => output_value(output, &call.caller),
                CallAnswer::Found(found) => {
                    let new = found.iter().filter(|(_, known)| !known).map(|(tool, _)| tool);
                    appended.extend(new.map(|tool| self.function(tool, false)));
                    found_text(found).into()
                }
            };
            let mut item =
                json!({ "type": "function_call_output", "call_id": call.id, "output": output });
            if !call.echo.is_null() {
                item["caller"] = call.echo.clone();
            }
            items.push(item);
        }
        if !appended.is_empty() {
            items.push(additional_tools(&appended));
        }
        items.iter().map(WireMessage::new).collect()
    }

    pub(super) fn write_change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage> {
        // A search finds later tools by itself, and a call of a tool that went is an error of the tool box.
        let tools: Vec<Value> = match self.endpoint.discovery {
            ToolDiscovery::Stable | ToolDiscovery::Code => return None,
            ToolDiscovery::Direct => {
                change.added.iter().map(|tool| self.function(tool, false)).collect()
            }
            ToolDiscovery::Hosted => {
                self.namespaces(change.added.iter().copied(), change.catalogue)
            }
            _ => {
                let listed = |tool: &&&AgentTool| {
                    change.catalogue.listed.iter().any(|listed| listed.name == tool.name)
                };
                change.added.iter().filter(listed).map(|tool| self.function(tool, false)).collect()
            }
        };
        (!tools.is_empty()).then(|| WireMessage::new(&additional_tools(&tools)))
    }
}

/// Takes the definitions of these tools out of the answers to our searches.
pub(super) fn unload(history: &mut Vec<WireMessage>, names: &BTreeSet<String>) {
    let values: Vec<Value> = history.iter().map(WireMessage::to_value).collect();
    let is_search = |item: &&Value| item["type"] == "function_call" && item["name"] == SEARCH_TOOL;
    let searches: Vec<&Value> =
        values.iter().filter(is_search).map(|item| &item["call_id"]).collect();
    let mut places = values.iter();
    history.retain_mut(|message| {
        let Some(item) = places.next() else { return true };
        let changed = match item["type"].as_str() {
            Some("tool_search_output") if item["execution"] == "client" => without(item, names),
            Some("additional_tools") => without(item, names),
            Some("function_call_output") if searches.contains(&&item["call_id"]) => {
                let mut item = item.clone();
                item["output"] = wires::UNLOADED.into();
                Some(item)
            }
            _ => None,
        };
        let Some(item) = changed else { return true };
        let is_empty = item["type"] == "additional_tools" && item["tools"] == json!([]);
        *message = WireMessage::new(&item);
        !is_empty
    });
}

/// An item without the definitions of these tools; `None` if it has none of them.
fn without(item: &Value, names: &BTreeSet<String>) -> Option<Value> {
    let is_kept = |tool: &Value| tool["name"].as_str().is_none_or(|name| !names.contains(name));
    let mut changed = item.clone();
    let tools = changed["tools"].as_array_mut()?;
    for namespace in tools.iter_mut() {
        if let Some(inner) = namespace.get_mut("tools").and_then(Value::as_array_mut) {
            inner.retain(is_kept);
        }
    }
    // A namespace may have the name of a tool.
    tools.retain(|entry| match &entry["tools"] {
        Value::Array(inner) => !inner.is_empty(),
        _ => is_kept(entry),
    });
    (changed != *item).then_some(changed)
}

pub(super) fn user_text(text: &str) -> WireMessage {
    let content = json!([{ "type": "input_text", "text": text }]);
    WireMessage::new(&json!({ "type": "message", "role": "user", "content": content }))
}

fn output_value(output: &ToolOutput, caller: &ToolCaller) -> Value {
    let error = if output.is_error { "Error: " } else { "" };
    if matches!(caller, ToolCaller::Code { .. }) || !output.has_images() {
        // A tool with an output schema promises the JSON of it.
        let text = if output.structured.is_some() { output.for_code() } else { output.flat() };
        return format!("{error}{text}").into();
    }
    let pieces = output.content.iter().map(|piece| match piece {
        ToolContent::Text(text) => json!({ "type": "input_text", "text": text }),
        ToolContent::Image { media_type, data } => json!({
            "type": "input_image",
            "detail": "auto",
            "image_url": format!("data:{media_type};base64,{data}"),
        }),
    });
    pieces.collect()
}

fn additional_tools(tools: &[Value]) -> Value {
    json!({ "type": "additional_tools", "role": "developer", "tools": tools })
}

fn found_text(found: &[(AgentTool, bool)]) -> String {
    if found.is_empty() {
        return wires::NOTHING_FOUND.to_owned();
    }
    let names: Vec<&str> = found.iter().map(|(tool, _)| tool.name.as_str()).collect();
    format!("Found, and loaded: {}", names.join(", "))
}

/// The model does not see deferred namespaces, so the description of the search names the servers.
pub(super) fn describe_search(catalogue: &AgentCatalogue) -> String {
    let mut text = SEARCH_DESCRIPTION.to_owned();
    let servers = catalogue.servers.iter().take(NAMED_SERVERS);
    let lines: Vec<String> = servers
        .map(|server| {
            let description: String =
                server.description.chars().filter(|c| !c.is_control()).take(100).collect();
            if description.is_empty() {
                server.name.clone()
            } else {
                format!("{}: {description}", server.name)
            }
        })
        .collect();
    if !lines.is_empty() {
        text.push_str(" Servers:\n- ");
        text.push_str(&lines.join("\n- "));
    }
    text
}
