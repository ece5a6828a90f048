//! What happens in a turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AgentError, AgentLimit, TokenUse, ToolCaller};

/// One event of a turn. As JSON it is an object with `type`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// The next piece of the answer.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// The next piece of the thinking that the provider shows.
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// The id of the call on the wire.
        id: String,
        /// The exposed name of the tool.
        name: String,
        /// The arguments.
        arguments: Value,
        /// Who calls: the model, or its code.
        caller: ToolCaller,
    },
    /// A tool call has ended.
    ToolResult {
        /// The id of the call on the wire.
        id: String,
        /// The exposed name of the tool.
        name: String,
        /// Whether the result is an error.
        is_error: bool,
        /// The text of the result, cut for display.
        preview: String,
    },
    /// The model searched for tools, with our search or with that of the provider.
    ToolsFound {
        /// What the model asked for.
        query: String,
        /// The names, the best first.
        names: Vec<String>,
    },
    /// The provider used a tool of its own, such as its search or its code execution.
    HostedToolUsed {
        /// The provider's name for it.
        name: String,
    },
    /// A person must decide. The embedder of the tool box takes the answer; the turn waits.
    ApprovalNeeded {
        /// The id of the call on the wire.
        id: String,
        /// The exposed name of the tool.
        name: String,
        /// The reference of the question.
        reference: String,
        /// The question.
        question: String,
    },
    /// The catalogue changed, and the model was told.
    ToolsChanged {
        /// Names of tools that came.
        added: Vec<String>,
        /// Names of tools that went.
        removed: Vec<String>,
    },
    /// Tools that searches had loaded were unloaded. A search finds them again.
    ToolsUnloaded {
        /// Their names.
        names: Vec<String>,
    },
    /// A request was answered.
    Usage {
        /// Its tokens.
        request: TokenUse,
        /// The tokens of the conversation.
        total: TokenUse,
        /// The cost of the conversation in US dollars, if prices are known.
        cost: Option<f64>,
        /// How much of the context window is used, from 0 to 1.
        window_used: f64,
    },
    /// A request failed and is sent again after a wait.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// The wait in milliseconds.
        #[serde(rename = "wait_ms", serialize_with = "milliseconds")]
        wait: Duration,
        /// What failed.
        reason: String,
        /// Whether deltas of the failed attempt were shown. They do not count any more.
        discards_text: bool,
    },
    /// The history was replaced by a summary, because the context window fills.
    Compacted {
        /// Tokens in the context before.
        tokens_before: u64,
        /// The summary.
        summary: String,
    },
    /// The turn has ended. It is the last event.
    Done(TurnEnd),
    /// The turn has failed. It is the last event.
    Failed {
        /// Why.
        error: AgentError,
    },
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// The text of the last reply.
    pub text: String,
    /// The tokens of this turn.
    pub tokens: TokenUse,
    /// How many requests were sent.
    pub requests: u32,
}

/// Why a turn ended. The history is valid after each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model has answered.
    Answered,
    /// The answer reached the limit of output tokens.
    MaxTokens,
    /// The model or its provider refused. The refused reply is not in the history.
    Refused,
    /// Somebody cancelled.
    Cancelled,
    /// A limit of the conversation was reached.
    Limit(AgentLimit),
    /// The context window is full, and a compaction did not help.
    Window,
    /// The provider gave a reason that this crate does not know.
    Other(String),
}

fn milliseconds<S: serde::Serializer>(wait: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}
