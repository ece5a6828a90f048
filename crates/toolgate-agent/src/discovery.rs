//! How a model finds tools.

use serde::{Deserialize, Serialize};

use crate::{AgentCatalogue, AgentTool, AllowedCallers};

/// How a model finds tools. Each wire has a default and a set of modes that it knows; see
/// [`Provider::discoveries`](crate::Provider::discoveries).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolDiscovery {
    /// The provider's own search with our ranking. Anthropic: all tools are sent with `defer_loading`, and our search
    /// tool answers with `tool_reference` blocks. OpenAI: `tool_search` with `execution: "client"`, answered with one
    /// `namespace` a server.
    Search,
    /// The provider searches: `tool_search` of OpenAI, `tool_search_tool_bm25` of Anthropic.
    Hosted,
    /// Anthropic's hosted search by regular expressions.
    HostedRegex,
    /// Anthropic alone: the provider connects to remote servers itself (`mcp_toolset`). It then calls their tools
    /// without toolgate: no policy, no approval, no audit log. Tools of other servers are deferred as with `Hosted`.
    RemoteServers,
    /// OpenAI alone: our search is a function, and what it finds is appended as `additional_tools`.
    Appended,
    /// The meta-tools of the tool box: search, details and call.
    Stable,
    /// The meta-tools of the tool box for scripts.
    Code,
    /// All tools are listed.
    Direct,
}

impl ToolDiscovery {
    /// Which meta-tools are listed.
    pub(crate) fn meta_mode(self) -> Option<MetaMode> {
        match self {
            Self::Stable => Some(MetaMode::Stable),
            Self::Code => Some(MetaMode::Code),
            _ => None,
        }
    }
}

/// Which meta-tools a tool box is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaMode {
    /// Search, details, call.
    Stable,
    /// What [`MetaMode::Stable`] has, for scripts: search, declarations, run.
    Code,
}

/// The name of our search tool, where the wire has no kind of its own for it.
pub(crate) const SEARCH_TOOL: &str = "search_tools";
/// The name of the tool that calls tools which came after the first request.
pub(crate) const CALL_TOOL: &str = "call_tool";
/// What the model reads about a search.
pub(crate) const SEARCH_DESCRIPTION: &str = "Finds tools by what they do. Most tools are not loaded: search before \
    you say that something cannot be done. Found tools can be called from then on.";
/// What the model reads about a search if it has all tools of the beginning.
const SEARCH_NEW_DESCRIPTION: &str = "Finds tools by what they do, also those that servers have added since the \
    beginning and that are not in your list.";
const CALL_DESCRIPTION: &str =
    "Calls a tool that a search described as new. Other tools are called by their own name.";
/// How many tools a search returns at most.
pub(crate) const MAX_FOUND: usize = 20;
/// How many tools a search returns unless the model says.
pub(crate) const USUAL_FOUND: usize = 5;

/// Our search, and our call of tools that came later, for a wire whose list of tools never grows.
pub(crate) fn search_and_call() -> Vec<AgentTool> {
    vec![
        own_tool(SEARCH_TOOL, SEARCH_DESCRIPTION, search_parameters()),
        own_tool(CALL_TOOL, CALL_DESCRIPTION, call_parameters()),
    ]
}

/// The same, if all tools of the beginning are listed. Without servers none can come.
pub(crate) fn for_later_tools(catalogue: &AgentCatalogue) -> Vec<AgentTool> {
    if catalogue.servers.is_empty() {
        return Vec::new();
    }
    let mut own = search_and_call();
    SEARCH_NEW_DESCRIPTION.clone_into(&mut own[0].description);
    own
}

/// A tool of the loop.
pub(crate) fn own_tool(
    name: &str,
    description: &str,
    input_schema: serde_json::Value,
) -> AgentTool {
    AgentTool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        callers: AllowedCallers::DIRECT,
        ..AgentTool::default()
    }
}

/// The parameters of a search.
pub(crate) fn search_parameters() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "What the tool must do, in a few words." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_FOUND, "description": "How many tools; 5 unless given." },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

/// The parameters of [`CALL_TOOL`].
fn call_parameters() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "The name of the tool." },
            "arguments": { "type": "object", "description": "The arguments of the tool." },
        },
        "required": ["name"],
        "additionalProperties": false,
    })
}
