//! When tools are deferred, and how they are found.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::choice::choice;
use crate::{
    Embeddings, Subagent,
    schema::{EmbeddingsFile, SubagentFile},
};

/// When tools are deferred and how they are found: the `toolSearch` key.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolSearch {
    /// Whether tools are deferred: `"auto"` defers once any threshold is passed, `true` always,
    /// `false` never. `"code"` defers all and offers `run_code` in place of `call_tool`.
    pub enabled: ToolSearchMode,
    /// What a session sees of deferred tools once they are found: `"stable"` keeps the list of
    /// tools fixed and routes through `call_tool`, `"dynamic"` adds found tools to the list.
    pub deferred: DeferredMode,
    /// The context window of the model in tokens, of which `thresholdPercent` is a share.
    #[schemars(range(min = 1_000, max = 100_000_000))]
    pub context_window: u64,
    /// Tools are deferred once their definitions take more than this share of the context window,
    /// in percent.
    #[schemars(range(min = 0, max = 100))]
    pub threshold_percent: f64,
    /// Tools are deferred once their definitions have more than this many characters. Off unless
    /// set.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub token_threshold: Option<u64>,
    /// Tools are deferred once there are more than this many. Off unless set.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub tool_threshold: Option<u64>,
    /// How many tools a search returns unless it asks for another number.
    #[schemars(range(min = 1, max = 100))]
    pub max_results: usize,
    /// Whether a tool that was found once stays found for the rest of the session.
    pub keep_loaded_tools: bool,
    /// How many tokens of the servers' own `instructions` a session is told at its start, over all
    /// servers. Longer ones are cut.
    #[schemars(range(min = 0, max = 100_000))]
    pub instructions_budget: usize,
    /// How tools are ranked.
    pub strategy: SearchStrategy,
    /// Whether it is kept, on this machine, which query led to which call, so that tools that were of
    /// use before are found first. `toolgate usage` shows and erases it.
    pub usage_memory: bool,
    /// How the cost of definitions is counted.
    pub token_counter: TokenCounter,
    /// The model that chooses tools with the strategy `subagent`.
    #[schemars(with = "Option<SubagentFile>")]
    pub subagent: Option<Subagent>,
    /// The encoder that says what is near in meaning, in place of the word vectors in the program.
    #[schemars(with = "Option<EmbeddingsFile>")]
    pub embeddings: Option<Embeddings>,
}

/// Whether tools are deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ToolSearchMode {
    /// Once any threshold is passed.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
    /// Scripts instead: search, details and `run_code`.
    Code,
}

/// What a session sees of deferred tools once they are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeferredMode {
    /// The list of tools never changes; found tools are called through `call_tool`.
    #[default]
    Stable,
    /// Found tools are added to the list, in the order found.
    Dynamic,
}

/// How tools are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SearchStrategy {
    /// By words and by meaning.
    #[default]
    Hybrid,
    /// By words, weighted by how rare they are.
    Bm25,
    /// By meaning, with the word vectors in the program.
    Embedding,
    /// By points for words contained in names, descriptions and parameter names.
    Keyword,
    /// The query is a regular expression over names and descriptions.
    Regex,
    /// A model chooses from what `hybrid` finds.
    Subagent,
}

/// How the cost of definitions is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TokenCounter {
    /// In tokens of the `o200k` vocabulary.
    #[default]
    O200k,
    /// In characters, at four to a token.
    Characters,
}

choice!(DeferredMode, "stable" => Stable, "dynamic" => Dynamic);
choice!(
    SearchStrategy,
    "hybrid" => Hybrid,
    "bm25" => Bm25,
    "embedding" => Embedding,
    "keyword" => Keyword,
    "regex" => Regex,
    "subagent" => Subagent,
);
choice!(TokenCounter, "o200k" => O200k, "characters" => Characters);

impl Default for ToolSearch {
    fn default() -> Self {
        Self {
            enabled: ToolSearchMode::default(),
            deferred: DeferredMode::default(),
            context_window: 200_000,
            threshold_percent: 5.0,
            token_threshold: None,
            tool_threshold: None,
            max_results: 5,
            keep_loaded_tools: true,
            instructions_budget: 1_000,
            strategy: SearchStrategy::default(),
            usage_memory: true,
            token_counter: TokenCounter::default(),
            subagent: None,
            embeddings: None,
        }
    }
}

impl Serialize for ToolSearchMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::On => serializer.serialize_bool(true),
            Self::Off => serializer.serialize_bool(false),
            Self::Code => serializer.serialize_str("code"),
        }
    }
}

impl JsonSchema for ToolSearchMode {
    fn schema_name() -> Cow<'static, str> {
        "ToolSearchMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["auto", true, false, "code"] })
    }

    fn inline_schema() -> bool {
        true
    }
}
