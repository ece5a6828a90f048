//! What we send.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::{
    AgentTool, AnsweredCall, CallAnswer, CatalogueChange, Provider as _, RequestParts, ToolCaller,
    ToolContent, ToolDiscovery, ToolOffer, ToolOutput, WireMessage, WirePrefix, WireRequest,
    raw::raw_array, wires,
};

const VERSION: &str = "2023-06-01";
/// The tool in which the model's code runs, and the name by which tools allow it.
const CODE_EXECUTION: &str = "code_execution_20260120";
const BETA_MCP: &str = "mcp-client-2025-11-20";
const BETA_TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
const BETA_INLINE_TOOLS: &str = "inline-tools-2026-09-15";

impl AnthropicMessages {
    pub(super) fn write_prefix(&self, offer: &ToolOffer<'_>) -> WirePrefix {
        let mut prefix = WirePrefix::default();
        let (tools, names) = self.tools(offer);
        prefix.tools = names;
        prefix.set("model", self.endpoint.settings.model.as_str());
        prefix.set("max_tokens", self.max_output_tokens().unwrap_or_default());
        if !tools.is_empty() {
            prefix.set("tools", tools);
        }
        if !offer.instructions.is_empty() {
            let mut block = json!({ "type": "text", "text": offer.instructions });
            if self.endpoint.settings.cache {
                block["cache_control"] = json!({ "type": "ephemeral" });
            }
            prefix.set("system", json!([block]));
        }
        if self.endpoint.settings.cache {
            // The provider moves this mark to the last block, so no message of ours needs one that moves.
            prefix.set("cache_control", json!({ "type": "ephemeral" }));
        }
        wires::add_extra(&mut prefix, &self.endpoint.settings);
        prefix
    }

    /// The tools, and the names of those that can be loaded by name.
    fn tools(&self, offer: &ToolOffer<'_>) -> (Vec<Value>, Vec<String>) {
        let catalogue = offer.catalogue;
        let mut tools = Vec::new();
        match self.endpoint.discovery {
            ToolDiscovery::Hosted | ToolDiscovery::RemoteServers => {
                tools.push(json!({ "type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25" }));
            }
            ToolDiscovery::HostedRegex => {
                tools.push(json!({ "type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex" }));
            }
            _ => {}
        }
        let own = self.own_tools(catalogue);
        tools.extend(own.iter().map(|tool| self.definition(tool, false)));
        if self.endpoint.settings.programmatic {
            tools.push(json!({ "type": CODE_EXECUTION, "name": "code_execution" }));
        }
        if self.endpoint.discovery.meta_mode().is_some() {
            let meta = offer.meta.iter().map(|tool| self.definition(tool, false));
            tools.extend(meta);
            return (tools, Vec::new());
        }
        let remote = |tool: &AgentTool| self.is_remote(offer, tool);
        let defer = self.endpoint.discovery != ToolDiscovery::Direct;
        let listed = catalogue.listed.iter().filter(|tool| !remote(tool)).map(|tool| (tool, false));
        let deferred =
            catalogue.deferred.iter().filter(|tool| !remote(tool)).map(|tool| (tool, defer));
        let mut names = Vec::new();
        for (tool, deferred) in listed.chain(deferred) {
            tools.push(self.definition(tool, deferred));
            names.push(tool.name.clone());
        }
        tools.extend(self.toolsets(offer));
        (tools, names)
    }

    fn is_remote(&self, offer: &ToolOffer<'_>, tool: &AgentTool) -> bool {
        let of_tool = |server: &&crate::AgentServer| Some(&server.name) == tool.server.as_ref();
        self.endpoint.discovery == ToolDiscovery::RemoteServers
            && offer
                .catalogue
                .servers
                .iter()
                .find(of_tool)
                .is_some_and(|server| server.remote.is_some())
    }

    fn toolsets(&self, offer: &ToolOffer<'_>) -> Vec<Value> {
        if self.endpoint.discovery != ToolDiscovery::RemoteServers {
            return Vec::new();
        }
        let remote = offer
            .catalogue
            .servers
            .iter()
            .filter_map(|server| Some((server, server.remote.as_ref()?)));
        let toolsets = remote.map(|(server, remote)| {
            let usual = json!({ "defer_loading": true });
            let mut toolset = json!({
                "type": "mcp_toolset",
                "mcp_server_name": server.name,
                "default_config": remote.default_config.as_ref().unwrap_or(&usual),
            });
            if !remote.configs.is_empty() {
                toolset["configs"] = json!(remote.configs);
            }
            toolset
        });
        toolsets.collect()
    }

    fn definition(&self, tool: &AgentTool, deferred: bool) -> Value {
        let AgentTool { name, description, input_schema, .. } = tool;
        let schema = wires::schema(input_schema);
        let mut definition =
            json!({ "name": name, "description": description, "input_schema": schema });
        if deferred {
            definition["defer_loading"] = true.into();
        }
        if !tool.input_examples.is_empty() {
            definition["input_examples"] = tool.input_examples.clone().into();
        }
        if self.endpoint.settings.programmatic {
            let direct = tool.callers.direct.then_some("direct");
            let code = tool.callers.code.then_some(CODE_EXECUTION);
            definition["allowed_callers"] = direct.into_iter().chain(code).collect();
        }
        definition
    }

    pub(super) fn write_request(&self, parts: &RequestParts<'_>) -> WireRequest {
        let mut body = wires::body(parts);
        let remote =
            parts.servers.iter().filter_map(|server| Some((server, server.remote.as_ref()?)));
        let connects = self.endpoint.discovery == ToolDiscovery::RemoteServers;
        // Not in the prefix: it holds tokens, and a prefix is stored.
        let servers: Vec<Value> = remote
            .filter(|_| connects)
            .map(|(server, remote)| {
                let mut entry = json!({ "type": "url", "name": server.name, "url": remote.url });
                if let Some(token) = &remote.authorization_token {
                    entry["authorization_token"] = token.as_str().into();
                }
                entry
            })
            .collect();
        let mut betas = Vec::new();
        if !servers.is_empty() {
            body = body.value("mcp_servers", servers);
            betas.push(BETA_MCP);
        }
        if self.endpoint.settings.tool_changes {
            betas.extend([BETA_TOOL_CHANGES, BETA_INLINE_TOOLS]);
        }
        if !parts.tools_allowed {
            body = body.value("tool_choice", json!({ "type": "none" }));
        }
        let messages = parts.history.iter().map(WireMessage::as_str);
        body = body
            .field("messages", &raw_array(messages))
            .value("stream", self.endpoint.settings.stream);
        // It comes and goes, so it stands after what is cached.
        if let Some(container) = parts.container {
            body = body.value("container", container.id.as_str());
        }
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        if !betas.is_empty() {
            headers.push(("anthropic-beta", betas.join(",")));
        }
        WireRequest { path: "/v1/messages".to_owned(), headers, body: body.finish() }
    }

    pub(super) fn write_change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage> {
        if !self.endpoint.settings.tool_changes || self.endpoint.discovery.meta_mode().is_some() {
            return None;
        }
        let removed = change.removed.iter().map(|name| {
            json!({ "type": "tool_removal", "tool": { "type": "tool_reference", "name": name } })
        });
        let restored = change.restored.iter().map(|name| {
            json!({ "type": "tool_addition", "tool": { "type": "tool_reference", "name": name } })
        });
        let defer = self.endpoint.discovery != ToolDiscovery::Direct;
        let added = change.added.iter().map(|tool| {
            let listed = change.catalogue.listed.iter().any(|listed| listed.name == tool.name);
            let definition = self.definition(tool, defer && !listed);
            json!({ "type": "tool_addition", "tool": { "type": "tool_definition", "definition": definition } })
        });
        let content: Vec<Value> = removed.chain(restored).chain(added).collect();
        Some(WireMessage::new(&json!({ "role": "system", "content": content })))
    }

    /// One user message with nothing but results: calls of code are not accepted with anything else beside them.
    pub(super) fn write_results(&self, answered: &[AnsweredCall]) -> WireMessage {
        // Only deferred tools can be named by a reference.
        let defers = self.endpoint.discovery != ToolDiscovery::Direct;
        let blocks = answered.iter().map(|answered| result(answered, defers));
        WireMessage::new(&json!({ "role": "user", "content": blocks.collect::<Vec<_>>() }))
    }
}

/// Takes the definitions of these tools out of the answers to our searches.
pub(super) fn unload(history: &mut [WireMessage], names: &BTreeSet<String>) {
    let is_unloaded = |block: &Value| {
        let new = |name: &String| format!("{} `{name}`", wires::NEW_TOOL);
        match block["type"].as_str() {
            Some("tool_reference") => {
                block["tool_name"].as_str().is_some_and(|name| names.contains(name))
            }
            Some("text") => block["text"]
                .as_str()
                .is_some_and(|text| names.iter().any(|name| text.starts_with(&new(name)))),
            _ => false,
        }
    };
    for message in history {
        let mut value = message.to_value();
        if value["role"] != "user" {
            continue;
        }
        let mut changed = false;
        let results = value["content"].as_array_mut().into_iter().flatten();
        for result in results.filter(|block| block["type"] == "tool_result") {
            let Some(blocks) = result["content"].as_array_mut() else { continue };
            let before = blocks.len();
            blocks.retain(|block| !is_unloaded(block));
            if blocks.len() == before {
                continue;
            }
            changed = true;
            if blocks.is_empty() {
                blocks.push(json!({ "type": "text", "text": wires::UNLOADED }));
            }
        }
        if changed {
            *message = WireMessage::new(&value);
        }
    }
}

pub(super) fn user_text(text: &str) -> WireMessage {
    WireMessage::new(&json!({ "role": "user", "content": [{ "type": "text", "text": text }] }))
}

fn result(answered: &AnsweredCall, defers: bool) -> Value {
    let (content, is_error) = match &answered.answer {
        CallAnswer::Output(output) => {
            (output_blocks(output, &answered.call.caller), output.is_error)
        }
        CallAnswer::Found(found) if defers => (found_blocks(found), false),
        CallAnswer::Found(found) => {
            (vec![json!({ "type": "text", "text": wires::found_text(found) })], false)
        }
    };
    let mut block =
        json!({ "type": "tool_result", "tool_use_id": answered.call.id, "content": content });
    if is_error {
        block["is_error"] = true.into();
    }
    block
}

fn output_blocks(output: &ToolOutput, caller: &ToolCaller) -> Vec<Value> {
    if matches!(caller, ToolCaller::Code { .. }) {
        return vec![json!({ "type": "text", "text": output.for_code() })];
    }
    let blocks = output.content.iter().map(|piece| match piece {
        ToolContent::Text(text) => json!({ "type": "text", "text": text }),
        ToolContent::Image { media_type, data } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": data },
        }),
    });
    // An empty text block is refused.
    blocks.filter(|block| block["text"] != "").collect()
}

fn found_blocks(found: &[(AgentTool, bool)]) -> Vec<Value> {
    if found.is_empty() {
        return vec![json!({ "type": "text", "text": wires::NOTHING_FOUND })];
    }
    let blocks = found.iter().map(|(tool, known)| {
        if *known {
            json!({ "type": "tool_reference", "tool_name": tool.name })
        } else {
            json!({ "type": "text", "text": wires::new_tool(tool) })
        }
    });
    blocks.collect()
}
