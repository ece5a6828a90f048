//! A conversation of a model with the tools of a session.

use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use toolgate_agent::{
    AgentCancel, AgentEvent, AgentLimit, Conversation, ConversationSettings, EndReason,
    ModelAddress, ModelSettings, TokenPrices,
};

use crate::{
    Session,
    session_tools::{SavedChat, SessionTools},
};

/// A model of a provider.
///
/// ```no_run
/// # use toolgate::Model;
/// let model = Model::new("anthropic/claude-sonnet-4-5")?.key(std::env::var("ANTHROPIC_API_KEY")?);
/// let local = Model::new("ollama/qwen3")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    settings: ModelSettings,
    conversation: ConversationSettings,
}

/// A model that answers questions with the tools of a session.
///
/// The loop sends the question, makes the calls that the model wants through the session, and sends their
/// results, until the model has answered. So every call is authorised like all others, and
/// [`on_approval`](crate::HostBuilder::on_approval) is asked in place.
pub struct Chat {
    model: Model,
    tools: SessionTools,
    state: ChatProgress,
    cancel: ChatCancel,
}

enum ChatProgress {
    New,
    Saved(Box<SavedChat>),
    Begun(Box<Conversation>),
}

/// Why a question has no answer. The conversation can go on.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// The settings are wrong, or the model did not answer.
    #[error("{0}")]
    Failed(String),
    /// [`ChatCancel::cancel`] stopped the question.
    #[error("the question was cancelled")]
    Cancelled,
    /// A limit of the [`Model`] was reached.
    #[error("{reason}")]
    Limit {
        /// Which limit, and what to do.
        reason: String,
        /// What the model had said by then.
        text: String,
    },
}

/// Stops the question that a [`Chat`] is answering. Clones stop the same chat.
#[derive(Debug, Clone, Default)]
pub struct ChatCancel(Arc<Mutex<Option<AgentCancel>>>);

/// What a million tokens of a model cost, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrices {
    /// New input tokens.
    pub input: f64,
    /// Input tokens that the provider reads from its cache.
    pub cached: f64,
    /// Input tokens that the provider writes to its cache.
    pub cache_written: f64,
    /// Output tokens.
    pub output: f64,
}

/// What a chat shows while a question is answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ChatEvent {
    /// The next piece of the answer.
    Text(String),
    /// The model calls a tool.
    Call {
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Value,
    },
    /// A call has ended.
    Result {
        /// The tool.
        tool: String,
        /// Whether it failed.
        is_error: bool,
    },
}

impl Model {
    /// The model `provider/name`. Providers are `anthropic`, `openai`, `gemini`, `openrouter`, `ollama`
    /// and others.
    pub fn new(address: &str) -> Result<Self, AskError> {
        let address = ModelAddress::parse(address).map_err(failed)?;
        Ok(Self { settings: address.settings(None), conversation: ConversationSettings::default() })
    }

    /// Sets the key of the provider. It is shown nowhere.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.settings.key = Some(key.into().into());
        self
    }

    /// Asks another endpoint with the same API.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        url.into().trim_end_matches('/').clone_into(&mut self.settings.url);
        self
    }

    /// Sets the instructions (system prompt).
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.conversation.instructions = text.into();
        self
    }

    /// Ends a question after this number of requests to the model. The default is 50.
    #[must_use]
    pub fn max_requests(mut self, requests: u32) -> Self {
        self.conversation.limits.requests = requests;
        self
    }

    /// Ends the conversation after this number of tokens, input and output of all requests.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.conversation.limits.tokens = Some(tokens);
        self
    }

    /// Ends the conversation after this number of US dollars, at these prices.
    #[must_use]
    pub fn max_cost(mut self, dollars: f64, prices: ModelPrices) -> Self {
        let ModelPrices { input, cached, cache_written, output } = prices;
        self.conversation.prices = Some(TokenPrices { input, cached, cache_written, output });
        self.conversation.limits.cost = Some(dollars);
        self
    }

    /// Lets code that the provider runs call tools: `code_execution` of Anthropic, `programmatic_tool_calling` of
    /// OpenAI. The policy judges these calls as those of a script.
    #[must_use]
    pub fn programmatic(mut self) -> Self {
        self.settings.programmatic = true;
        self
    }
}

impl ChatCancel {
    /// Stops the question. The answer is [`AskError::Cancelled`], calls that run are cancelled, and the conversation can
    /// go on. Without a question it does nothing.
    pub fn cancel(&self) {
        if let Some(turn) = &*self.0.lock() {
            turn.cancel();
        }
    }
}

impl Chat {
    /// A conversation that begins with the first question.
    pub fn new(model: Model, session: Session) -> Self {
        Self::begin(model, session, ChatProgress::New)
    }

    /// Continues a conversation that [`save`](Self::save) has returned, with a model of the same provider. What it
    /// has read stays known to the policy.
    pub fn restore(model: Model, session: Session, saved: &str) -> Result<Self, AskError> {
        let saved = serde_json::from_str(saved).map_err(|error| {
            AskError::Failed(format!("this is not a saved conversation: {error}"))
        })?;
        Ok(Self::begin(model, session, ChatProgress::Saved(Box::new(saved))))
    }

    fn begin(model: Model, session: Session, state: ChatProgress) -> Self {
        let tools = SessionTools::new(session);
        Self { model, tools, state, cancel: ChatCancel::default() }
    }

    /// The conversation as JSON: what you, the model and the tools said, and no key. `None` before the first question.
    pub fn save(&self) -> Option<String> {
        match &self.state {
            ChatProgress::New => None,
            ChatProgress::Saved(saved) => serde_json::to_string(saved).ok(),
            ChatProgress::Begun(conversation) => {
                serde_json::to_string(&self.tools.save(conversation)).ok()
            }
        }
    }

    /// What stops a question while it is answered.
    pub fn canceller(&self) -> ChatCancel {
        self.cancel.clone()
    }

    /// Asks, and returns the answer.
    pub async fn ask(&mut self, question: &str) -> Result<String, AskError> {
        self.ask_watching(question, |_| {}).await
    }

    /// Asks, shows what happens meanwhile, and returns the answer.
    pub async fn ask_watching(
        &mut self,
        question: &str,
        mut watch: impl FnMut(ChatEvent) + Send,
    ) -> Result<String, AskError> {
        let cancel = self.cancel.clone();
        let conversation = self.conversation().await?;
        let mut turn = conversation.ask(question);
        *cancel.0.lock() = Some(turn.canceller());
        while let Some(event) = turn.next().await {
            match event {
                AgentEvent::TextDelta { text } => watch(ChatEvent::Text(text)),
                AgentEvent::ToolCallStarted { name, arguments, .. } => {
                    watch(ChatEvent::Call { tool: name, arguments });
                }
                AgentEvent::ToolResult { name, is_error, .. } => {
                    watch(ChatEvent::Result { tool: name, is_error });
                }
                AgentEvent::Done(end) => {
                    return match end.reason {
                        EndReason::Cancelled => Err(AskError::Cancelled),
                        EndReason::Limit(limit) => {
                            Err(AskError::Limit { reason: reached(limit), text: end.text })
                        }
                        _ => Ok(end.text),
                    };
                }
                AgentEvent::Failed { error } => return Err(failed(error)),
                _ => {}
            }
        }
        Err(AskError::Failed("the turn ended without an answer; ask again".to_owned()))
    }

    /// The conversation, which begins now if it has not.
    async fn conversation(&mut self) -> Result<&mut Conversation, AskError> {
        if !matches!(self.state, ChatProgress::Begun(_)) {
            // Decides the mode, and waits for the servers.
            self.tools.session().mode().await;
            let provider = self.model.settings.clone().provider().map_err(failed)?;
            let settings = self.model.conversation.clone();
            let begun = match &self.state {
                ChatProgress::Saved(saved) => {
                    let restored = self.tools.restore(SavedChat::clone(saved), provider, settings);
                    restored.map_err(|error| AskError::Failed(error.to_string()))?
                }
                _ => self.tools.begin(provider, settings).map_err(failed)?,
            };
            self.state = ChatProgress::Begun(Box::new(begun));
        }
        match &mut self.state {
            ChatProgress::Begun(conversation) => Ok(conversation),
            _ => Err(AskError::Failed("the conversation did not begin".to_owned())),
        }
    }

    /// The session of the chat.
    pub fn session(&self) -> &Session {
        self.tools.session()
    }
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chat").field("model", &self.model).finish_non_exhaustive()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: toolgate_agent::AgentError) -> AskError {
    AskError::Failed(error.to_string())
}

fn reached(limit: AgentLimit) -> String {
    let (what, instead) = match limit {
        AgentLimit::Requests => ("requests of one question", "ask again to continue"),
        AgentLimit::Tokens => ("tokens of the conversation", "begin a new one"),
        AgentLimit::Cost => ("cost of the conversation", "begin a new one"),
    };
    format!("the limit of the {what} is reached; raise it, or {instead}")
}
