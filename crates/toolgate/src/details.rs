//! Tools as a program and a model see them.

use serde_json::Value;
use toolgate_catalog::{ExposureKind, Tool};
use toolgate_host::MetaTool;

/// Everything that is known of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDetails {
    /// The exposed name, which [`Session::call`](crate::Session::call) and scripts take.
    pub name: String,
    /// The server of the tool.
    pub server: String,
    /// What the tool does, in the words of its server.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured content, if it declares one.
    pub output_schema: Option<Value>,
    /// The whole definition, as the server sent it.
    pub definition: Value,
    /// The tokens that the definition costs in the context of a model.
    pub tokens: u32,
}

/// A tool that a session lists: give these to your model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoadedTool {
    /// The name. A model calls the tool by it, and [`Session::answer`](crate::Session::answer) takes it.
    pub name: String,
    /// What the tool does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The whole definition, in the form of MCP, under the exposed name.
    pub definition: Value,
    /// Whether it is one of toolgate's own tools, such as `search_tools`.
    pub is_meta_tool: bool,
}

/// Which tools a session lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionMode {
    /// All tools.
    Direct,
    /// The meta-tools, and the tools that are always loaded. The list does not change by itself.
    Stable,
    /// The same, and search adds what it finds.
    Dynamic,
    /// Search, details and scripts.
    Code,
}

/// The mode of a session, and why it has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeDecision {
    /// The mode.
    pub mode: SessionMode,
    /// Why, as a text for people.
    pub reason: String,
}

impl ToolDetails {
    pub(crate) fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.to_string(),
            server: tool.id.server.to_string(),
            description: tool.definition.description().to_owned(),
            input_schema: tool.definition.input_schema(),
            output_schema: tool.definition.output_schema(),
            definition: tool.definition.to_value(),
            tokens: tool.definition.tokens(),
        }
    }
}

impl LoadedTool {
    pub(crate) fn of(definition: Value) -> Self {
        let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
        let name = text("name");
        Self {
            is_meta_tool: MetaTool::named(&name).is_some(),
            description: text("description"),
            input_schema: definition["inputSchema"].clone(),
            name,
            definition,
        }
    }
}

impl From<ExposureKind> for SessionMode {
    fn from(kind: ExposureKind) -> Self {
        match kind {
            ExposureKind::Direct => Self::Direct,
            ExposureKind::Stable => Self::Stable,
            ExposureKind::Dynamic => Self::Dynamic,
            ExposureKind::Code => Self::Code,
        }
    }
}
