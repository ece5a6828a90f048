//! A conversation of a model with the tools of a session.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use thiserror::Error;
use toolgate_agent::{
    AgentCatalogue, AgentEvent, AgentServer, AgentTool, AllowedCallers, CallScope, Conversation,
    ConversationSettings, MetaMode, ModelAddress, ModelSettings, ToolBox, ToolContent, ToolOutput,
    ToolRequest,
};
use toolgate_catalog::ExposureKind;
use toolgate_host::ToolQuery;

use crate::{Session, ToolResult};

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
    tools: Arc<SessionTools>,
    conversation: Option<Conversation>,
}

/// Why a question has no answer. The conversation can go on.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct AskError(String);

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
}

impl Chat {
    /// A conversation that begins with the first question.
    pub fn new(model: Model, session: Session) -> Self {
        Self { model, tools: Arc::new(SessionTools { session }), conversation: None }
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
        let conversation = match &mut self.conversation {
            Some(conversation) => conversation,
            unset => {
                // Decides the mode, and waits for the servers.
                self.tools.session.mode().await;
                let provider = self.model.settings.clone().provider().map_err(failed)?;
                let tools = Arc::clone(&self.tools) as Arc<dyn ToolBox>;
                let settings = self.model.conversation.clone();
                unset.insert(Conversation::new(provider, tools, settings).map_err(failed)?)
            }
        };
        let mut turn = conversation.ask(question);
        while let Some(event) = turn.next().await {
            match event {
                AgentEvent::TextDelta { text } => watch(ChatEvent::Text(text)),
                AgentEvent::ToolCallStarted { name, arguments, .. } => {
                    watch(ChatEvent::Call { tool: name, arguments });
                }
                AgentEvent::ToolResult { name, is_error, .. } => {
                    watch(ChatEvent::Result { tool: name, is_error });
                }
                AgentEvent::Done(end) => return Ok(end.text),
                AgentEvent::Failed { error } => return Err(failed(error)),
                _ => {}
            }
        }
        Err(AskError("the turn ended without an answer; ask again".to_owned()))
    }

    /// The session of the chat.
    pub fn session(&self) -> &Session {
        &self.tools.session
    }
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chat").field("model", &self.model).finish_non_exhaustive()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: toolgate_agent::AgentError) -> AskError {
    AskError(error.to_string())
}

/// The tools of a session, as the loop sees them.
struct SessionTools {
    session: Session,
}

#[async_trait]
impl ToolBox for SessionTools {
    fn catalogue(&self) -> AgentCatalogue {
        let host = self.session.inner.host();
        let (catalog, exposure) = (host.catalog().read(), host.exposure());
        let mut known = AgentCatalogue::default();
        for server in catalog.servers() {
            known.servers.push(AgentServer {
                name: server.name.to_string(),
                description: server.description.clone().unwrap_or_default(),
                remote: None,
            });
            for tool in catalog.tools_of(server.name.as_str()) {
                let (direct, code) = self.session.inner.ways_of(tool);
                if !direct && !code {
                    continue;
                }
                let described = AgentTool {
                    name: tool.name.to_string(),
                    description: tool.definition.description().to_owned(),
                    input_schema: tool.definition.input_schema(),
                    output_schema: tool.definition.output_schema(),
                    server: Some(server.name.to_string()),
                    callers: AllowedCallers { direct, code },
                    input_examples: Vec::new(),
                };
                let is_listed = exposure.loads(tool, server);
                let list = if is_listed { &mut known.listed } else { &mut known.deferred };
                list.push(described);
            }
        }
        known
    }

    fn generation(&self) -> u64 {
        *self.session.inner.host().changes().borrow()
    }

    fn meta_tools(&self, mode: MetaMode) -> Vec<AgentTool> {
        let kind = match mode {
            MetaMode::Stable => ExposureKind::Stable,
            MetaMode::Code => ExposureKind::Code,
        };
        let definitions = self.session.inner.meta_tools(kind).into_iter();
        let tools = definitions.map(|definition| AgentTool {
            name: definition["name"].as_str().unwrap_or_default().to_owned(),
            description: definition["description"].as_str().unwrap_or_default().to_owned(),
            input_schema: definition["inputSchema"].clone(),
            ..AgentTool::default()
        });
        tools.collect()
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<String>, ToolOutput> {
        let query = ToolQuery {
            queries: vec![query.to_owned()],
            limit: Some(limit),
            ..ToolQuery::default()
        };
        let found = self.session.inner.find(&query).await;
        let found = found.map_err(|error| ToolOutput::error(error.to_string()))?;
        Ok(found.tools.iter().map(|found| found.tool.name.to_string()).collect())
    }

    async fn call(&self, request: ToolRequest, _scope: &CallScope) -> ToolOutput {
        output(&self.session.answer(&request.name, request.arguments).await)
    }
}

/// A result for the loop.
fn output(result: &ToolResult) -> ToolOutput {
    let content = result.content().iter().map(|block| {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => ToolContent::Text(text("text")),
            Some("image") => {
                ToolContent::Image { media_type: text("mimeType"), data: text("data") }
            }
            _ => ToolContent::Text(json!(block).to_string()),
        }
    });
    ToolOutput {
        content: content.collect(),
        structured: result.raw().get("structuredContent").cloned(),
        is_error: result.is_error(),
    }
}
