//! A conversation with a model.

mod calls;
mod changes;
mod compact;
mod drive;
mod saved;
mod turn;

use std::{collections::BTreeSet, sync::Arc};

pub use self::{
    saved::{SavedConversation, SavedConversationError},
    turn::{AgentCancel, Turn},
};
use crate::{
    AgentCatalogue, AgentError, AgentLimits, AgentTool, CodeContainer, Provider, RetryPolicy,
    TokenPrices, TokenUse, ToolBox, ToolOffer, WireCall, WireMessage, WirePrefix, known_window,
};

/// How a conversation runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationSettings {
    /// The instructions (system prompt).
    pub instructions: String,
    /// What ends a turn early.
    pub limits: AgentLimits,
    /// When a request is sent again.
    pub retry: RetryPolicy,
    /// The prices, for the cost and its limit.
    pub prices: Option<TokenPrices>,
    /// The context window of the model in tokens; known by name without it.
    pub window: Option<u64>,
    /// From which part of the window on the history is replaced by a summary. More than 1 turns compaction off.
    pub compact_at: f64,
    /// Whether tools that a search loaded stay loaded after the turn. Without it they are unloaded, where
    /// [`Provider::can_unload`] says so.
    pub keep_loaded_tools: bool,
}

impl Default for ConversationSettings {
    fn default() -> Self {
        Self {
            instructions: String::new(),
            limits: AgentLimits::default(),
            retry: RetryPolicy::default(),
            prices: None,
            window: None,
            compact_at: 0.8,
            keep_loaded_tools: true,
        }
    }
}

/// A conversation: a provider, tools, and the messages so far. It does one turn at a time.
pub struct Conversation {
    provider: Arc<dyn Provider>,
    tools: Arc<dyn ToolBox>,
    settings: ConversationSettings,
    prefix: WirePrefix,
    meta: Vec<AgentTool>,
    /// Names of the loop's own tools, which the prefix lists.
    own: BTreeSet<String>,
    catalogue: AgentCatalogue,
    /// The catalogue that the prefix was written from.
    first: Arc<AgentCatalogue>,
    generation: u64,
    /// Names of tools that the provider has the definition of, in the prefix or appended.
    defined: BTreeSet<String>,
    /// Names of defined tools that were taken away again.
    withdrawn: BTreeSet<String>,
    /// Names of tools that searches loaded.
    loaded: BTreeSet<String>,
    /// Names of loaded tools that are taken away with the next question.
    unloading: BTreeSet<String>,
    history: Vec<WireMessage>,
    /// Calls of the last reply without an answer: a turn was dropped while they ran.
    unanswered: Vec<WireCall>,
    /// Whether the last results go to code that runs at the provider. Then nothing else may be sent with them.
    code_waits: bool,
    container: Option<CodeContainer>,
    tokens: TokenUse,
    /// The tokens in the context after the last reply.
    context: u64,
}

impl Conversation {
    /// Starts a conversation. It reads the catalogue, and writes the part of requests that will never change.
    pub fn new(
        provider: Arc<dyn Provider>,
        tools: Arc<dyn ToolBox>,
        settings: ConversationSettings,
    ) -> Result<Self, AgentError> {
        let generation = tools.generation();
        let catalogue = tools.catalogue();
        let meta =
            provider.discovery().meta_mode().map(|mode| tools.meta_tools(mode)).unwrap_or_default();
        let offer =
            ToolOffer { instructions: &settings.instructions, catalogue: &catalogue, meta: &meta };
        let prefix = provider.prefix(&offer)?;
        let defined = prefix.tools.iter().cloned().collect();
        let own = provider.own_tools(&catalogue).into_iter().map(|tool| tool.name).collect();
        Ok(Self {
            provider,
            tools,
            settings,
            prefix,
            meta,
            own,
            first: Arc::new(catalogue.clone()),
            catalogue,
            generation,
            defined,
            withdrawn: BTreeSet::new(),
            loaded: BTreeSet::new(),
            unloading: BTreeSet::new(),
            history: Vec::new(),
            unanswered: Vec::new(),
            code_waits: false,
            container: None,
            tokens: TokenUse::default(),
            context: 0,
        })
    }

    /// Asks. The turn runs while its events are read; dropping it stops it.
    pub fn ask(&mut self, text: &str) -> Turn<'_> {
        Turn::start(self, Some(text.to_owned()))
    }

    /// Continues without a new question: after an error, a limit or a cancel.
    pub fn resume(&mut self) -> Turn<'_> {
        Turn::start(self, None)
    }

    /// The messages so far, in the JSON of the wire.
    pub fn history(&self) -> &[WireMessage] {
        &self.history
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.provider
    }

    /// The names of the tools that searches loaded.
    pub fn loaded_tools(&self) -> impl Iterator<Item = &str> {
        self.loaded.iter().map(String::as_str)
    }

    /// The tools of the loop itself that the model has: a search, and a call of tools that came later.
    pub fn own_tools(&self) -> Vec<AgentTool> {
        self.provider.own_tools(&self.first)
    }

    /// The tokens of all requests.
    pub fn tokens(&self) -> TokenUse {
        self.tokens
    }

    /// The cost of all requests in US dollars, if prices are known.
    pub fn cost(&self) -> Option<f64> {
        self.settings.prices.map(|prices| prices.cost(&self.tokens))
    }

    /// The context window of the model, in tokens.
    pub fn window(&self) -> u64 {
        self.settings.window.unwrap_or_else(|| known_window(self.provider.model())).max(1)
    }

    /// How much of the window was used by the last request and its reply, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a window has fewer than 2^53 tokens")]
    pub fn window_used(&self) -> f64 {
        self.context as f64 / self.window() as f64
    }

    /// Forgets all messages and loaded tools, and begins anew with the tools of now. Tokens and cost stay counted.
    pub fn reset(&mut self) -> Result<(), AgentError> {
        let (provider, tools) = (Arc::clone(&self.provider), Arc::clone(&self.tools));
        let fresh = Self::new(provider, tools, self.settings.clone())?;
        let tokens = self.tokens;
        *self = Self { tokens, ..fresh };
        Ok(())
    }
}

/// Neither messages nor definitions.
impl std::fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Conversation")
            .field("provider", &self.provider)
            .field("messages", &self.history.len())
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}
