//! Anthropic Messages.
//!
//! A message is `{"role", "content": [block, …]}`. A call is a block `tool_use`, and its answer a block `tool_result` in
//! the next user message. All tools are in every request; those with `defer_loading` cost nothing until a
//! `tool_reference` names them.

mod reply;
mod request;

use crate::{
    AgentCatalogue, AgentError, AnsweredCall, CatalogueChange, ModelSettings, Provider,
    ProviderError, ProviderReply, ReplyDecoder, RequestParts, ToolDiscovery, ToolOffer,
    WireEndpoint, WireMessage, WirePrefix, WireRequest,
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
        Box::new(reply::Decoder::new(self.endpoint.discovery))
    }

    fn read(&self, body: &str) -> Result<ProviderReply, ProviderError> {
        reply::read(body, self.endpoint.discovery)
    }

    fn user_text(&self, text: &str) -> WireMessage {
        request::user_text(text)
    }

    fn results(&self, answered: &[AnsweredCall], _: &AgentCatalogue) -> Vec<WireMessage> {
        vec![request::results(answered)]
    }

    fn change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage> {
        self.write_change(change)
    }
}
