//! The agent: the loop around a model, and the wires of the providers.
//!
//! A [`Conversation`] asks a model, makes the tool calls that the model wants, and asks again, until the model has
//! answered. It knows neither MCP nor a host: tools are behind the trait [`ToolBox`]. A [`Provider`] speaks one wire:
//!
//! | wire | type | default discovery |
//! |---|---|---|
//! | Anthropic Messages | [`AnthropicMessages`] | [`ToolDiscovery::Search`]: all tools deferred, our search answers with `tool_reference` |
//! | OpenAI Responses | [`OpenAiResponses`] | [`ToolDiscovery::Search`]: `tool_search` with `execution: "client"` |
//! | Chat Completions | [`ChatCompletions`] | [`ToolDiscovery::Stable`] |
//! | Gemini `generateContent` | [`GeminiGenerate`] | [`ToolDiscovery::Stable`] |
//!
//! | term | meaning |
//! |---|---|
//! | conversation | the messages between a person, a model and its tools, in the agent |
//! | turn | one question of a person in a conversation, with all requests and calls until the answer |
//! | wire | the JSON of one API of models: Anthropic Messages, OpenAI Responses, Chat Completions, Gemini |
//! | discovery | how a model finds tools over a wire: by the provider's search, by ours, by meta-tools, or by a list of all |
//! | prefix | the part of the requests of a conversation that never changes, so that the provider can cache it |
//! | compaction | the replacement of a conversation's messages by a summary |
//!
//! ```no_run
//! use std::sync::Arc;
//! use futures::StreamExt as _;
//! use toolgate_agent::{AgentEvent, Conversation, ConversationSettings, ModelAddress, ToolBox};
//!
//! async fn ask(tools: Arc<dyn ToolBox>) -> Result<(), toolgate_agent::AgentError> {
//!     let address = ModelAddress::parse("anthropic/claude-sonnet-4-5")?;
//!     let key = std::env::var(address.key_variable()).ok();
//!     let provider = address.settings(key.map(Into::into)).provider()?;
//!     let mut conversation = Conversation::new(provider, tools, ConversationSettings::default())?;
//!     let mut turn = conversation.ask("File a ticket for each error");
//!     while let Some(event) = turn.next().await {
//!         if let AgentEvent::TextDelta { text } = event {
//!             print!("{text}");
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Rules
//!
//! - **A message is the JSON that came.** The history holds [`WireMessage`]s: text, never a type. A block of a kind
//!   that this crate does not know goes back to the provider byte by byte. The loop reads only the few fields that it
//!   acts on.
//! - **The prefix never changes.** Tools and instructions are written once, when a conversation begins, and sent with
//!   the same bytes in each request. Later tools are appended to the messages, in the way of the wire.
//! - **Every tool call gets an answer.** After a cancel, a limit, an error or a dropped [`Turn`] the history is still
//!   one that the provider accepts.
//! - **A key is in no log, error or `Debug` output.**

mod address;
mod conversation;
mod discovery;
mod error;
mod event;
mod http;
mod limits;
mod provider;
mod raw;
mod tools;
mod usage;
mod wires;

pub use address::{ModelAddress, ModelKey, ModelSettings, WireApi};
pub use conversation::{
    AgentCancel, Conversation, ConversationSettings, SavedConversation, SavedConversationError,
    Turn,
};
pub use discovery::{MetaMode, ToolDiscovery};
pub use error::{AgentError, ProviderError};
pub use event::{AgentEvent, EndReason, TurnEnd};
pub use http::WireClient;
pub use limits::{AgentLimit, AgentLimits, RetryPolicy};
pub use provider::{
    AnsweredCall, CallAnswer, CatalogueChange, CodeContainer, Provider, ProviderReply,
    ReplyDecoder, ReplyDelta, ReplyStop, RequestParts, ToolOffer, UnreadableArguments, WireCall,
    WireCallKind, WireEndpoint, WirePrefix, WireRequest,
};
pub use raw::WireMessage;
pub use tools::{
    AgentCatalogue, AgentServer, AgentTool, AllowedCallers, CallScope, RemoteServer, ToolBox,
    ToolCaller, ToolContent, ToolOutput, ToolRequest,
};
pub use usage::{TokenPrices, TokenUse, known_window};
pub use wires::{AnthropicMessages, ChatCompletions, GeminiGenerate, OpenAiResponses};
