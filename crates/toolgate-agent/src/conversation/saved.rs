//! Conversations that are kept and resumed.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Conversation, ConversationSettings};
use crate::{
    AgentError, AgentTool, CodeContainer, Provider, TokenUse, ToolBox, ToolDiscovery, WireCall,
    WireMessage, WirePrefix,
};

/// A conversation as data. It holds what the person, the model and the tools said, and no credential.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedConversation {
    wire: String,
    model: String,
    discovery: ToolDiscovery,
    prefix: WirePrefix,
    history: Vec<WireMessage>,
    unanswered: Vec<WireCall>,
    code_waits: bool,
    container: Option<CodeContainer>,
    defined: BTreeSet<String>,
    withdrawn: BTreeSet<String>,
    loaded: BTreeSet<String>,
    #[serde(default)]
    unloading: BTreeSet<String>,
    tokens: TokenUse,
    context: u64,
    /// The definitions that the model knows, to tell what has changed since.
    known: Vec<(String, String)>,
}

/// Why a saved conversation cannot be resumed.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SavedConversationError {
    /// It was held over another wire: its messages are not of this one.
    #[error(
        "the conversation was held over {saved}, and the model is asked over {now}; choose a model of that provider"
    )]
    Wire {
        /// The wire of the conversation.
        saved: String,
        /// The wire of the provider.
        now: &'static str,
    },
    /// The tools cannot be offered.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl Conversation {
    /// The conversation as data.
    pub fn save(&self) -> SavedConversation {
        SavedConversation {
            wire: self.provider.wire().to_owned(),
            model: self.provider.model().to_owned(),
            discovery: self.provider.discovery(),
            prefix: self.prefix.clone(),
            history: self.history.clone(),
            unanswered: self.unanswered.clone(),
            code_waits: self.code_waits,
            container: self.container.clone(),
            defined: self.defined.clone(),
            withdrawn: self.withdrawn.clone(),
            loaded: self.loaded.clone(),
            unloading: self.unloading.clone(),
            tokens: self.tokens,
            context: self.context,
            known: self.catalogue.tools().map(|tool| (tool.name.clone(), print(tool))).collect(),
        }
    }

    /// Continues a saved conversation. With the same model and discovery the prefix keeps its bytes, and the model is
    /// told which tools have come or gone since.
    pub fn restore(
        saved: SavedConversation,
        provider: Arc<dyn Provider>,
        tools: Arc<dyn ToolBox>,
        settings: ConversationSettings,
    ) -> Result<Self, SavedConversationError> {
        if saved.wire != provider.wire() {
            return Err(SavedConversationError::Wire { saved: saved.wire, now: provider.wire() });
        }
        let same = saved.model == provider.model() && saved.discovery == provider.discovery();
        let fresh = Self::new(provider, tools, settings)?;
        let mut restored = Self {
            history: saved.history,
            unanswered: saved.unanswered,
            code_waits: saved.code_waits,
            container: saved.container,
            tokens: saved.tokens,
            context: saved.context,
            ..fresh
        };
        if same {
            restored.prefix = saved.prefix;
            restored.defined = saved.defined;
            restored.withdrawn = saved.withdrawn;
            restored.loaded = saved.loaded;
            restored.unloading = saved.unloading;
            restored.forget_changed(&saved.known);
        }
        Ok(restored)
    }

    /// Makes the known catalogue that of the saved conversation, so that the next turn tells what has changed.
    fn forget_changed(&mut self, known: &[(String, String)]) {
        let now: Vec<(String, String)> =
            self.catalogue.tools().map(|tool| (tool.name.clone(), print(tool))).collect();
        if now.iter().collect::<BTreeSet<_>>() == known.iter().collect::<BTreeSet<_>>() {
            return;
        }
        let is_known = |tool: &AgentTool| known.contains(&(tool.name.clone(), print(tool)));
        self.catalogue.listed.retain(is_known);
        self.catalogue.deferred.retain(is_known);
        for (name, _) in known {
            if self.catalogue.tool(name).is_none() {
                // Its old definition is not known any more; its name is enough to take it away.
                self.catalogue
                    .deferred
                    .push(AgentTool { name: name.clone(), ..AgentTool::default() });
            }
        }
        let mut first = self.catalogue.clone();
        first.listed.retain(|tool| self.prefix.tools.contains(&tool.name));
        first.deferred.retain(|tool| self.prefix.tools.contains(&tool.name));
        self.first = Arc::new(first);
        // The next look at the tool box finds another number.
        self.generation = self.generation.wrapping_sub(1);
    }
}

/// What tells two definitions apart.
fn print(tool: &AgentTool) -> String {
    let AgentTool {
        name,
        description,
        input_schema,
        output_schema,
        server,
        callers,
        input_examples,
    } = tool;
    let callers = (callers.direct, callers.code);
    let parts = serde_json::json!([
        name,
        description,
        input_schema,
        output_schema,
        server,
        callers,
        input_examples
    ]);
    blake3::hash(parts.to_string().as_bytes()).to_hex().to_string()
}
