//! The interface of the wires.

use std::{collections::BTreeSet, fmt, time::SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{
    AgentCatalogue, AgentServer, AgentTool, ModelSettings, ProviderError, TokenUse, ToolCaller,
    ToolDiscovery, ToolOutput, WireClient, WireMessage, error::AgentError,
};

/// One wire: how requests are written, and how replies are read. It has no state of a conversation.
pub trait Provider: fmt::Debug + Send + Sync {
    /// The model, and how it is asked.
    fn endpoint(&self) -> &WireEndpoint;

    /// The name of the wire, for messages.
    fn wire(&self) -> &'static str {
        self.endpoint().wire
    }

    /// The name of the model.
    fn model(&self) -> &str {
        &self.endpoint().settings.model
    }

    /// The discoveries that the wire knows. The first one is the default.
    fn discoveries(&self) -> &'static [ToolDiscovery] {
        self.endpoint().discoveries
    }

    /// The discovery of this provider.
    fn discovery(&self) -> ToolDiscovery {
        self.endpoint().discovery
    }

    /// The most tokens of an answer, if a limit is set.
    fn max_output_tokens(&self) -> Option<u32> {
        self.endpoint().settings.max_output_tokens
    }

    /// How requests are sent.
    fn client(&self) -> &WireClient {
        &self.endpoint().client
    }

    /// Writes what is the same in all requests of a conversation.
    fn prefix(&self, offer: &ToolOffer<'_>) -> Result<WirePrefix, AgentError>;

    /// Writes a request.
    fn request(&self, parts: &RequestParts<'_>) -> WireRequest;

    /// Reads a reply that is streamed.
    fn decoder(&self) -> Box<dyn ReplyDecoder>;

    /// Reads a reply that came in one piece.
    fn read(&self, body: &str) -> Result<ProviderReply, ProviderError>;

    /// A message of the person.
    fn user_text(&self, text: &str) -> WireMessage;

    /// The answers to all calls of one reply, in the order of the calls.
    fn results(&self, answered: &[AnsweredCall], catalogue: &AgentCatalogue) -> Vec<WireMessage>;

    /// Tells the model about a change of the catalogue without a change of the prefix. `None` if the wire cannot.
    fn change(&self, change: &CatalogueChange<'_>) -> Option<WireMessage>;

    /// Tools of the loop itself that the prefix lists: a search, and a call of tools that came later.
    fn own_tools(&self, _catalogue: &AgentCatalogue) -> Vec<AgentTool> {
        Vec::new()
    }

    /// Whether tools that a search has loaded can be unloaded in the middle of a conversation.
    fn can_unload(&self) -> bool {
        false
    }

    /// Takes the definitions of these tools out of our own messages, for wires on which [`Provider::change`] cannot
    /// take them away. Nothing that the provider wrote changes.
    fn unload(&self, _history: &mut Vec<WireMessage>, _names: &BTreeSet<String>) {}
}

/// What all wires have: a model with its settings, a discovery that the wire knows, and a client.
#[derive(Debug)]
pub struct WireEndpoint {
    wire: &'static str,
    discoveries: &'static [ToolDiscovery],
    pub(crate) settings: ModelSettings,
    pub(crate) discovery: ToolDiscovery,
    client: WireClient,
}

impl WireEndpoint {
    /// Creates the client. It does not connect yet. `authorize` is as in [`WireClient::new`].
    pub fn new(
        (wire, discoveries): (&'static str, &'static [ToolDiscovery]),
        settings: ModelSettings,
        authorize: (&'static str, &'static str),
    ) -> Result<Self, AgentError> {
        let discovery = settings.check(wire, discoveries)?;
        let client = WireClient::new(&settings, authorize)?;
        Ok(Self { wire, discoveries, settings, discovery, client })
    }
}

/// What a prefix is made of.
#[derive(Debug, Clone, Copy)]
pub struct ToolOffer<'a> {
    /// The instructions (system prompt).
    pub instructions: &'a str,
    /// The tools.
    pub catalogue: &'a AgentCatalogue,
    /// The meta-tools of the discovery.
    pub meta: &'a [AgentTool],
}

/// The fields of a request that stay the same, as JSON texts, in the order in which they are sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct WirePrefix {
    /// Names and JSON texts.
    pub fields: Vec<(String, WireMessage)>,
    /// The first messages, for wires whose instructions are a message.
    pub messages: Vec<WireMessage>,
    /// The names of the tools that the prefix defines. Only these can be loaded by name.
    pub tools: Vec<String>,
}

impl WirePrefix {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.push((name.to_owned(), WireMessage::new(&value.into())));
    }
}

/// Definitions are long.
impl fmt::Debug for WirePrefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.fields.iter().map(|(name, _)| name).collect();
        formatter.debug_struct("WirePrefix").field("fields", &fields).finish_non_exhaustive()
    }
}

/// What a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// The fixed part.
    pub prefix: &'a WirePrefix,
    /// The messages after those of the prefix.
    pub history: &'a [WireMessage],
    /// The container of the provider's code execution, if one is open.
    pub container: Option<&'a CodeContainer>,
    /// The servers, for wires whose provider connects to them.
    pub servers: &'a [AgentServer],
    /// Whether the model may call tools.
    pub tools_allowed: bool,
}

/// A request that can be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct WireRequest {
    /// What follows the base URL.
    pub path: String,
    /// Headers without the key, which the client adds.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON text of the body.
    pub body: String,
}

/// The text of a conversation is not for logs.
impl fmt::Debug for WireRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("WireRequest");
        shown.field("path", &self.path).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// The container of a provider's code execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeContainer {
    /// Its id.
    pub id: String,
    /// When it expires, if the provider said so.
    pub expires_at: Option<SystemTime>,
}

impl CodeContainer {
    pub(crate) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= SystemTime::now())
    }
}

/// Reads the events of a streamed reply.
pub trait ReplyDecoder: Send {
    /// Takes the data of one event.
    fn event(&mut self, data: &str) -> Result<Vec<ReplyDelta>, ProviderError>;

    /// Whether the reply is complete. A stream that ends before is cut.
    fn is_complete(&self) -> bool;

    /// Whether the stream may end here, for wires that do not mark the end of a reply.
    fn may_end(&self) -> bool {
        self.is_complete()
    }

    /// Whether a tool of the provider has begun.
    fn had_effect(&self) -> bool;

    /// The reply.
    fn finish(self: Box<Self>) -> Result<ProviderReply, ProviderError>;
}

/// What a piece of a reply shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyDelta {
    /// The next piece of the answer.
    Text(String),
    /// The next piece of the thinking.
    Thinking(String),
    /// The provider uses a tool of its own.
    Hosted(String),
}

/// A complete reply: what joins the history, and what the loop acts on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProviderReply {
    /// What joins the history, as it came.
    pub messages: Vec<WireMessage>,
    /// The text of the answer.
    pub text: String,
    /// The calls that we must answer.
    pub calls: Vec<WireCall>,
    /// What the provider's own search was asked, and the tools that it has loaded.
    pub searches: Vec<(String, Vec<String>)>,
    /// Why the reply ended.
    pub stop: ReplyStop,
    /// The tokens.
    pub tokens: TokenUse,
    /// The container of the provider's code execution.
    pub container: Option<CodeContainer>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReplyStop {
    /// The model is done, or waits for results.
    #[default]
    End,
    /// The provider paused a long turn: the same request continues it.
    Paused,
    /// The limit of output tokens.
    MaxTokens,
    /// A refusal.
    Refused,
    /// The context window is full.
    Window,
    /// Something else.
    Other(String),
}

/// Arguments of a call that are no JSON object, as the model sent them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("the arguments are not a JSON object: {}", .0.chars().take(200).collect::<String>())]
pub struct UnreadableArguments(pub String);

/// A call that we must answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireCall {
    /// Its id on the wire. Wires without ids get one from us.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, if they are a JSON object.
    pub arguments: Result<Value, UnreadableArguments>,
    /// Who calls.
    pub caller: ToolCaller,
    /// What to do.
    pub kind: WireCallKind,
    /// Fields that the answer repeats as they came.
    pub echo: Value,
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireCallKind {
    /// Calls a tool.
    Tool,
    /// Searches for tools, in the wire's own kind of call.
    Search,
}

/// A call with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredCall {
    /// The call.
    pub call: WireCall,
    /// Its answer.
    pub answer: CallAnswer,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallAnswer {
    /// The result of a tool.
    Output(ToolOutput),
    /// The tools that a search found. The flag says whether the provider has the definition already.
    Found(Vec<(AgentTool, bool)>),
}

/// A change of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueChange<'a> {
    /// Tools that came, or have another definition.
    pub added: &'a [&'a AgentTool],
    /// Names of tools that went.
    pub removed: &'a [&'a str],
    /// Names that were taken away before and are in the prefix: they come back by name.
    pub restored: &'a [&'a str],
    /// The catalogue now.
    pub catalogue: &'a AgentCatalogue,
}
