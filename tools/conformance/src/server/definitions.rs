//! What the server lists. It is kept as JSON, as a server would send it.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Deserialize;

/// All lists of the server.
#[derive(Debug, Deserialize)]
pub(super) struct Definitions {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
}

impl Definitions {
    /// Reads them.
    pub(super) fn read() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("definitions.json"))
    }

    /// The tool of this name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
