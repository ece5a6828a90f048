//! The tools of an agent, as its embedder provides them.

use std::{collections::BTreeMap, fmt, fmt::Write as _, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::{AgentCancel, AgentEvent, MetaMode};

/// The tools of a conversation. A host implements it: names are exposed names, and every call goes through its broker.
#[async_trait]
pub trait ToolBox: Send + Sync {
    /// All tools now. It is read when a conversation begins, and after each change of [`ToolBox::generation`].
    fn catalogue(&self) -> AgentCatalogue;

    /// A number that is another one after each change of the catalogue. The loop reads it before each request.
    fn generation(&self) -> u64 {
        0
    }

    /// The meta-tools of a mode. They are called like other tools.
    fn meta_tools(&self, mode: MetaMode) -> Vec<AgentTool>;

    /// The exposed names of the tools that fit, the best first; at most `limit`.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, ToolOutput>;

    /// Makes a call. An error is an output too, because the model must read it. The loop has checked the allowed
    /// callers of the catalogue; the tool box still authorises the call. If the future is dropped, the turn was
    /// cancelled or a container would have expired.
    async fn call(&self, request: ToolRequest, scope: &CallScope) -> ToolOutput;
}

/// The tools and servers of a tool box.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentCatalogue {
    /// Tools that are listed in every mode but stable and code: those that are always loaded.
    pub listed: Vec<AgentTool>,
    /// Tools that a search finds.
    pub deferred: Vec<AgentTool>,
    /// The servers of the tools.
    pub servers: Vec<AgentServer>,
}

impl AgentCatalogue {
    /// All tools, first the listed ones.
    pub fn tools(&self) -> impl Iterator<Item = &AgentTool> {
        self.listed.iter().chain(&self.deferred)
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&AgentTool> {
        self.tools().find(|tool| tool.name == name)
    }

    /// What a server says about itself, or its name.
    pub(crate) fn describe<'a>(&'a self, server: &'a str) -> &'a str {
        let known = self.servers.iter().find(|known| known.name == server);
        let description = known.map(|known| known.description.as_str()).unwrap_or_default();
        if description.is_empty() { server } else { description }
    }
}

/// One tool, as a model is told about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentTool {
    /// The exposed name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// The name of its server, if it has one.
    pub server: Option<String>,
    /// Who may call it.
    pub callers: AllowedCallers,
    /// Examples of arguments.
    pub input_examples: Vec<Value>,
}

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedCallers {
    /// The model itself.
    pub direct: bool,
    /// Code that the model wrote and the provider runs.
    pub code: bool,
}

impl Default for AllowedCallers {
    fn default() -> Self {
        Self { direct: true, code: true }
    }
}

impl AllowedCallers {
    /// The model alone.
    pub const DIRECT: Self = Self { direct: true, code: false };
    /// Code alone.
    pub const CODE: Self = Self { direct: false, code: true };

    pub(crate) fn allow(self, caller: &ToolCaller) -> bool {
        match caller {
            ToolCaller::Direct => self.direct,
            ToolCaller::Code { .. } => self.code,
        }
    }
}

/// One server, as a model is told about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentServer {
    /// Its name.
    pub name: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// How the provider itself can reach it, for [`ToolDiscovery::RemoteServers`](crate::ToolDiscovery::RemoteServers).
    pub remote: Option<RemoteServer>,
}

/// A server that the provider connects to. Its values are spelt as the Messages API spells them.
#[derive(Clone, Default, PartialEq)]
pub struct RemoteServer {
    /// Its URL.
    pub url: String,
    /// The token that the provider sends to it.
    pub authorization_token: Option<String>,
    /// `default_config`: `enabled` and `defer_loading` of its tools.
    pub default_config: Option<Value>,
    /// `configs`: the same for single tools, by their own name.
    pub configs: BTreeMap<String, Value>,
}

/// Neither the token nor the URL, which may have a credential in it.
impl fmt::Debug for RemoteServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("RemoteServer");
        shown.field("default_config", &self.default_config).field("configs", &self.configs);
        shown.finish_non_exhaustive()
    }
}

/// Who makes a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolCaller {
    /// The model.
    Direct,
    /// Code that the model wrote and the provider runs.
    Code {
        /// The provider's id of the program.
        program: String,
    },
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// The id of the call on the wire.
    pub id: String,
    /// The exposed name of the tool, or the name of a meta-tool.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
    /// Who calls.
    pub caller: ToolCaller,
}

/// What a tool box may use during a call.
#[derive(Debug, Clone)]
pub struct CallScope {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) cancel: AgentCancel,
    pub(crate) events: UnboundedSender<AgentEvent>,
    pub(crate) phase: Arc<Mutex<CallPhase>>,
}

/// How far a call has come. It decides what is said about a call that was stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CallPhase {
    /// It has not begun.
    #[default]
    Waits,
    /// A person is asked about it.
    Asks,
    Runs,
}

impl CallScope {
    /// Is cancelled when the turn is.
    pub fn cancel(&self) -> &AgentCancel {
        &self.cancel
    }

    /// Shows that a person must decide. The tool box waits for the answer itself, and then says so with
    /// [`CallScope::approval_answered`].
    pub fn approval_needed(&self, reference: impl Into<String>, question: impl Into<String>) {
        *self.phase.lock() = CallPhase::Asks;
        // Nobody listens to a turn that was dropped.
        let _ = self.events.send(AgentEvent::ApprovalNeeded {
            id: self.id.clone(),
            name: self.name.clone(),
            reference: reference.into(),
            question: question.into(),
        });
    }

    /// The person has decided. If the turn is stopped from now on, the call may have been made.
    pub fn approval_answered(&self) {
        *self.phase.lock() = CallPhase::Runs;
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<ToolContent>,
    /// The structured result. Code gets it in place of the texts.
    pub structured: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// One piece of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its media type.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ToolContent::Text(text.into())], ..Self::default() }
    }

    /// A structured result, with the same as text.
    pub fn structured(value: Value) -> Self {
        let content = vec![ToolContent::Text(value.to_string())];
        Self { content, structured: Some(value), is_error: false }
    }

    /// An error that the model reads.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// All texts; a line says where an image was.
    pub(crate) fn flat(&self) -> String {
        let texts = self.content.iter().map(|piece| match piece {
            ToolContent::Text(text) => text.clone(),
            ToolContent::Image { media_type, .. } => {
                format!("[an image ({media_type}) that cannot be shown here]")
            }
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn has_images(&self) -> bool {
        self.content.iter().any(|piece| matches!(piece, ToolContent::Image { .. }))
    }

    /// What code reads: the structured result as JSON, else the texts.
    pub(crate) fn for_code(&self) -> String {
        match &self.structured {
            Some(value) if !self.is_error => value.to_string(),
            _ => self.flat(),
        }
    }

    /// Cuts what is over `limit` bytes.
    pub(crate) fn bounded(mut self, limit: usize) -> Self {
        let mut left = limit;
        for piece in &mut self.content {
            match piece {
                ToolContent::Text(text) if text.len() > left => {
                    let whole = text.len();
                    let end = text.floor_char_boundary(left);
                    text.truncate(end);
                    let _ = write!(text, "\n[cut: {whole} bytes are over the limit of {limit}]");
                    left = 0;
                }
                ToolContent::Image { data, media_type } if data.len() > left => {
                    let note = format!("[an image ({media_type}) over the limit of {limit} bytes]");
                    *piece = ToolContent::Text(note);
                }
                ToolContent::Text(text) => left -= text.len(),
                ToolContent::Image { data, .. } => left -= data.len(),
            }
        }
        if self.structured.as_ref().is_some_and(|value| value.to_string().len() > limit) {
            self.structured = None;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let cut = ToolOutput::text("é".repeat(100)).bounded(11).flat();
        assert_eq!(cut, "ééééé\n[cut: 200 bytes are over the limit of 11]");
        let structured = ToolOutput::structured(Value::from("x".repeat(50))).bounded(10);
        assert_eq!(structured.structured, None);
    }

    #[test]
    fn a_token_is_not_in_debug() {
        let remote = RemoteServer {
            url: "https://user:pass@x".into(),
            authorization_token: Some("tok-123".into()),
            ..RemoteServer::default()
        };
        let shown = format!("{remote:?}");
        assert!(!shown.contains("tok-123") && !shown.contains("pass"), "{shown}");
    }
}
