//! `OpenAI` Responses.
//!
//! The history is a list of items. A call is an item `function_call`, and its answer an item `function_call_output`. A
//! search is an item `tool_search_call`, and its answer an item `tool_search_output` with the definitions of the found
//! tools, one `namespace` a server. The provider stores nothing (`store: false`).

mod reply;
mod request;

use std::collections::BTreeSet;

use crate::{
    AgentCatalogue, AgentError, AgentTool, AnsweredCall, CatalogueChange, ModelSettings, Provider,
    ProviderError, ProviderReply, ReplyDecoder, RequestParts, ToolDiscovery, ToolOffer,
    WireEndpoint, WireMessage, WirePrefix, WireRequest,
    discovery::{SEARCH_TOOL, own_tool, search_parameters},
};

/// The wire of `OpenAI`, and of endpoints that speak it.
#[derive(Debug)]
pub struct OpenAiResponses {
    endpoint: WireEndpoint,
}

const WIRE: &str = "OpenAI Responses";
const DISCOVERIES: [ToolDiscovery; 6] = [
    ToolDiscovery::Search,
    ToolDiscovery::Hosted,
    ToolDiscovery::Appended,
    ToolDiscovery::Stable,
    ToolDiscovery::Code,
    ToolDiscovery::Direct,
];

impl OpenAiResponses {
    /// Creates the client. It does not connect yet.
    pub fn new(settings: ModelSettings) -> Result<Self, AgentError> {
        let endpoint =
            WireEndpoint::new((WIRE, &DISCOVERIES), settings, ("authorization", "Bearer "))?;
        Ok(Self { endpoint })
    }
}

impl Provider for OpenAiResponses {
    fn endpoint(&self) -> &WireEndpoint {
        &self.endpoint
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

    fn results(&self, answered: &[AnsweredCall], catalogue: &AgentCatalogue) -> Vec<WireMessage> {
        self.write_results(answered, catalogue)
    }

    fn change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage> {
        self.write_change(change)
    }

    fn own_tools(&self, catalogue: &AgentCatalogue) -> Vec<AgentTool> {
        match self.endpoint.discovery {
            ToolDiscovery::Search | ToolDiscovery::Appended => {
                vec![own_tool(
                    SEARCH_TOOL,
                    &request::describe_search(catalogue),
                    search_parameters(),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn can_unload(&self) -> bool {
        matches!(self.endpoint.discovery, ToolDiscovery::Search | ToolDiscovery::Appended)
    }

    fn unload(&self, history: &mut Vec<WireMessage>, names: &BTreeSet<String>) {
        request::unload(history, names);
    }
}
