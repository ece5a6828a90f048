//! Anthropic Messages.
//!
//! A message is `{"role", "content": [block, …]}`. A call is a block `tool_use`, and its answer a block `tool_result` in
//! the next user message. All tools are in every request; those with `defer_loading` cost nothing until a
//! `tool_reference` names them.

mod reply;
mod request;

use std::collections::BTreeSet;

use crate::{
    AgentCatalogue, AgentError, AgentTool, AnsweredCall, CatalogueChange, ModelSettings, Provider,
    ProviderError, ProviderReply, ReplyDecoder, RequestParts, ToolDiscovery, ToolOffer,
    WireEndpoint, WireMessage, WirePrefix, WireRequest,
    discovery::{for_later_tools, search_and_call},
};

/// The wire of Anthropic, and of endpoints that speak it.
#[derive(Debug)]
pub struct AnthropicMessages {
    endpoint: WireEndpoint,
}

const WIRE: &str = "Anthropic Messages";
const DISCOVERIES: [ToolDiscovery; 7] = [
    ToolDiscovery::Search,
    ToolDiscovery::Hosted,
    ToolDiscovery::HostedRegex,
    ToolDiscovery::RemoteServers,
    ToolDiscovery::Stable,
    ToolDiscovery::Code,
    ToolDiscovery::Direct,
];
/// Anthropic requires a limit.
const USUAL_MAX_TOKENS: u32 = 8_192;

impl AnthropicMessages {
    /// Creates the client. It does not connect yet.
    pub fn new(settings: ModelSettings) -> Result<Self, AgentError> {
        let endpoint = WireEndpoint::new((WIRE, &DISCOVERIES), settings, ("x-api-key", ""))?;
        Ok(Self { endpoint })
    }
}

impl Provider for AnthropicMessages {
    fn endpoint(&self) -> &WireEndpoint {
        &self.endpoint
    }

    fn max_output_tokens(&self) -> Option<u32> {
        Some(self.endpoint.settings.max_output_tokens.unwrap_or(USUAL_MAX_TOKENS))
    }

    fn prefix(&self, offer: &ToolOffer<'_>) -> Result<WirePrefix, AgentError> {
        Ok(self.write_prefix(offer))
    }

    fn request(&self, parts: &RequestParts<'_>) -> WireRequest {
        self.write_request(parts)
    }

    fn decoder(&self) -> Box<dyn ReplyDecoder> {
        Box::new(reply::Decoder::new())
    }

    fn read(&self, body: &str) -> Result<ProviderReply, ProviderError> {
        reply::read(body)
    }

    fn user_text(&self, text: &str) -> WireMessage {
        request::user_text(text)
    }

    fn results(&self, answered: &[AnsweredCall], _: &AgentCatalogue) -> Vec<WireMessage> {
        vec![self.write_results(answered)]
    }

    fn change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage> {
        self.write_change(change)
    }

    fn own_tools(&self, catalogue: &AgentCatalogue) -> Vec<AgentTool> {
        let mut own = match self.endpoint.discovery {
            ToolDiscovery::Search => search_and_call(),
            ToolDiscovery::Direct if !self.endpoint.settings.tool_changes => {
                for_later_tools(catalogue)
            }
            _ => Vec::new(),
        };
        if self.endpoint.settings.tool_changes {
            // The model is told of later tools.
            own.truncate(1);
        }
        own
    }

    fn can_unload(&self) -> bool {
        let is_told = self.endpoint.settings.tool_changes;
        match self.endpoint.discovery {
            ToolDiscovery::Search => true,
            ToolDiscovery::Hosted | ToolDiscovery::HostedRegex => is_told,
            _ => false,
        }
    }

    fn unload(&self, history: &mut Vec<WireMessage>, names: &BTreeSet<String>) {
        request::unload(history, names);
    }
}
