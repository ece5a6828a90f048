//! The arguments of `toolgate chat`.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use toolgate_agent::ToolDiscovery;

use super::Output;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Chat {
    /// Ask this, print the answer and end; `-` reads the question from stdin
    #[arg(long = "prompt", short, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Ask this model, as provider/name
    ///
    /// Providers are anthropic, openai, openai-chat (Chat Completions), gemini, openrouter, ollama and vllm. The default
    /// is `TOOLGATE_MODEL`, or `chat.model` of the configuration. A stored chat continues with its own model.
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Send the requests of the provider to this URL
    ///
    /// For example, `--model openai-chat/qwen3 --url http://localhost:8080/v1` asks llama.cpp. The only key that
    /// toolgate sends there is `TOOLGATE_MODEL_KEY`, or one that --save-key has stored for this URL.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Choose how the model finds tools
    ///
    /// By default all tools are listed if they are few. If not, the provider's API decides.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ChatMode>,
    /// Let code that the provider runs call tools (Anthropic, OpenAI)
    ///
    /// The policy judges these calls as those of a script.
    #[arg(long)]
    pub(crate) programmatic: bool,
    /// Tell the model of new and removed tools during a chat (Anthropic, beta)
    #[arg(long)]
    pub(crate) tool_changes: bool,
    /// Continue a stored chat
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,
    /// Continue the latest chat
    #[arg(long = "continue")]
    pub(crate) continue_last: bool,
    /// List the stored chats
    #[arg(long, conflicts_with_all = ["prompt", "resume", "continue_last"])]
    pub(crate) list: bool,
    /// End a turn after this number of requests to the model
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<u32>,
    /// End the chat after this number of tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// End the chat after this number of US dollars; `chat.prices` of the configuration has the prices
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<f64>,
    /// Limit each answer to this number of tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u32>,
    /// Store the key of the provider, or of --url, encrypted, and end; the key is read from stdin
    #[arg(long, conflicts_with_all = ["prompt", "list", "resume", "continue_last"])]
    pub(crate) save_key: bool,
    /// Remove the stored key of the provider, or of --url, and end
    #[arg(long, conflicts_with_all = ["save_key", "prompt", "list", "resume", "continue_last"])]
    pub(crate) forget_key: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How a model finds tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChatMode {
    /// The provider's tool search with our ranking (Anthropic, OpenAI)
    Search,
    /// The provider's own search (Anthropic, OpenAI)
    Hosted,
    /// The provider's own search by regular expressions (Anthropic)
    HostedRegex,
    /// Found tools are appended to the conversation (OpenAI)
    Appended,
    /// Meta-tools that search, inspect and call
    Stable,
    /// Meta-tools that search and run scripts
    Code,
    /// All tools are listed
    Direct,
}

impl ChatMode {
    pub(crate) fn discovery(self) -> ToolDiscovery {
        match self {
            Self::Search => ToolDiscovery::Search,
            Self::Hosted => ToolDiscovery::Hosted,
            Self::HostedRegex => ToolDiscovery::HostedRegex,
            Self::Appended => ToolDiscovery::Appended,
            Self::Stable => ToolDiscovery::Stable,
            Self::Code => ToolDiscovery::Code,
            Self::Direct => ToolDiscovery::Direct,
        }
    }

    /// The mode of a discovery. One has none: it would pass the policy by.
    pub(crate) fn of(discovery: ToolDiscovery) -> Option<Self> {
        Self::value_variants().iter().copied().find(|mode| mode.discovery() == discovery)
    }

    /// The mode of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|mode| mode.name() == name)
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
