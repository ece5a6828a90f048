//! The `toolSearch` key: when tools are deferred, and how they are found.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};
use toolgate_catalog::{CostUnit, DeferredStyle, RequestedMode};
use toolgate_search::StrategyName;
use url::Url;

use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::section::{
    Choice as _, Definitions, Flag, Plain, Section, Setting, Word, Wrong, choices, custom, integer,
    number, seconds, section, text, text_schema, whole,
};
use crate::{ExposureMode, ProblemSeverity, Secret};

section! {
    /// When toolgate defers tools, and how search finds them: the `toolSearch` key.
    pub struct ToolSearchConfig as "ToolSearch" {
        /// What a session lists: every tool (`"direct"`), the meta-tools in a list that never changes
        /// (`"stable"`) or grows (`"dynamic"`), or the meta-tools without `call_tool` (`"code"`). `"auto"`
        /// is `direct` until a threshold is passed, then as `deferred` says. `false` means `direct`. `true`
        /// means that tools are deferred: beyond `tokenThreshold` or `toolThreshold` if there is one, else always.
        "enabled" => enabled: RequestedMode = RequestedMode::Auto, Enabled;
        /// How a session calls deferred tools. `"stable"`: through `call_tool`; the list of tools
        /// never changes. `"dynamic"`: by name; a search adds the tools that it finds to the list.
        "deferred" => deferred: DeferredStyle = DeferredStyle::Stable, Word::<DeferredStyle>(Wrong::Ignored);
        /// The context window of the model, in tokens. `thresholdPercent` is a share of it.
        "contextWindow" => context_window: u64 = 200_000, whole::<u64>(1_000, 100_000_000);
        /// toolgate defers tools if their definitions take more than this share of the context
        /// window, in percent.
        "thresholdPercent" => threshold_percent: f64 = 5.0, number(0.0, 100.0);
        /// toolgate defers tools if their names, descriptions and parameters (as JSON) together have more
        /// than this number of characters. The default is no limit.
        "tokenThreshold" => token_threshold: Option<u64> = None, whole::<u64>(0, 1_000_000_000);
        /// toolgate defers tools if there are this number of tools or more. The default is no limit.
        "toolThreshold" => tool_threshold: Option<u64> = None, whole::<u64>(0, 1_000_000);
        /// How many tools a search returns, if the query sets no other limit.
        "maxResults" => max_results: usize = 5, integer(1, 100);
        /// Whether a tool that a search found stays in the list for the rest of the session.
        "keepLoadedTools" => keep_loaded_tools: bool = true, Flag(Wrong::Ignored);
        /// How many tokens of the servers' own `instructions` the gateway quotes at the start of a
        /// session, for all servers together. It cuts longer texts.
        "instructionsBudget" => instructions_budget: usize = 1_000, integer(0, 100_000);
        /// How tools are ranked.
        "strategy" => strategy: StrategyName = StrategyName::Hybrid, Word::<StrategyName>(Wrong::Ignored);
        /// Whether toolgate remembers on this machine which query led to which call. Tools that
        /// were useful before then rank higher. `toolgate usage` shows and erases the entries.
        "usageMemory" => usage_memory: bool = true, Flag(Wrong::Becomes(false));
        /// Whether toolgate speaks the draft extension `io.modelcontextprotocol/groups`: it offers one group a server
        /// to clients that have the extension, and finds the tools that servers have in groups.
        "groups" => groups: bool = false, Flag(Wrong::Becomes(false));
        /// The unit in which toolgate counts the size of definitions.
        "tokenCounter" => token_counter: CostUnit = CostUnit::Tokens, Word::<CostUnit>(Wrong::Ignored);
        /// The model that chooses tools with the strategy `subagent`.
        "subagent" => subagent: Option<SubagentConfig> = None,
            custom(Definitions::reference::<SubagentConfig>, |scope, member| Some(read_subagent(scope, member)));
        /// The encoder for search by meaning. It replaces the word vectors in the program.
        "embeddings" => embeddings: Option<EmbeddingsConfig> = None,
            custom(Definitions::reference::<EmbeddingsConfig>, |scope, member| Some(read_embeddings(scope, member)));
    }
}

section! {
    /// The model that chooses tools with the strategy `subagent`.
    ///
    /// `${NAME}` and `${NAME:-default}` in `endpoint`, `model` and `apiKey` stand for environment
    /// variables.
    pub struct SubagentConfig as "Subagent" {
        /// The API of the endpoint. Most endpoints support `openai`.
        "provider" => provider: ChatProviderName = ChatProviderName::OpenAi, Word::<ChatProviderName>(Wrong::Refused);
        /// The base URL. toolgate adds `/chat/completions` or, for `anthropic`, `/v1/messages`. The
        /// default is the URL of the provider.
        "endpoint" => endpoint: Option<Secret> = None, custom(text_schema, base_url);
        /// The name of the model: a small, fast one.
        "model" => model: String = String::new(), text();
        /// The API key of the endpoint, preferably as `${NAME}`.
        "apiKey" => api_key: Option<Secret> = None, custom(text_schema, api_key);
        /// How many tools the model gets.
        "candidates" => candidates: usize = 24, integer(2, 100);
        /// How many seconds a search waits for the model.
        "timeoutSeconds" => timeout: Duration = Duration::from_secs(3), seconds(0.1, 60.0);
    }
}

section! {
    /// The encoder, which turns texts into vectors: an `endpoint` and its `model`, or the `folder`
    /// of a model.
    ///
    /// `${NAME}` and `${NAME:-default}` in `endpoint`, `model`, `apiKey` and `folder` stand for
    /// environment variables.
    pub struct EmbeddingsConfig as "Embeddings" {
        /// The base URL of an OpenAI-compatible API, such as `http://localhost:11434/v1`.
        "endpoint" => endpoint: Option<Secret> = None, custom(text_schema, base_url);
        /// The name of the endpoint's model.
        "model" => model: String = String::new(), text();
        /// The API key of the endpoint, preferably as `${NAME}`.
        "apiKey" => api_key: Option<Secret> = None, custom(text_schema, api_key);
        /// How many numbers a vector has, for models that support several sizes.
        "dimensions" => dimensions: Option<usize> = None, integer(8, 8_192);
        /// The folder of a model: config.json, tokenizer.json and model.safetensors, of the BERT family
        /// or of `Model2Vec`. A relative path starts at the folder of this file.
        "folder" => folder: Option<PathBuf> = None,
            custom(text_schema, |scope, member| scope.text(member).map(PathBuf::from));
        /// A text before each query, such as `query: ` for models of the E5 family.
        "queryPrefix" => query_prefix: String = String::new(), PREFIX;
        /// A text before the text of each tool, such as `passage: `.
        "documentPrefix" => document_prefix: String = String::new(), PREFIX;
        /// How many seconds a search waits for the vector of its query.
        "timeoutSeconds" => timeout: Duration = Duration::from_secs(2), seconds(0.1, 60.0);
    }
}

/// Which requests an endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatProviderName {
    /// Those of OpenAI's chat completions, which many others understand too.
    OpenAi,
    /// Those of Anthropic's messages.
    Anthropic,
}

choices! {
    DeferredStyle: "stable" => Stable, "dynamic" => Dynamic;
    StrategyName: "hybrid" => Hybrid, "bm25" => Bm25, "embedding" => Embedding,
        "keyword" => Keyword, "regex" => Regex, "subagent" => Subagent;
    CostUnit: "o200k" => Tokens, "characters" => Characters;
    ChatProviderName: "openai" => OpenAi, "anthropic" => Anthropic;
}

const SUBAGENT_HINT: &str = "write `\"subagent\": { \"endpoint\": \"http://localhost:11434/v1\", \
                             \"model\": \"…\" }` in `toolSearch`, or choose another strategy";

pub(crate) const MODEL_HINT: &str = "add `\"model\": \"…\"`, as the endpoint calls it";

/// A prefix as it is written: a blank at its end belongs to it.
const PREFIX: Plain = Plain {
    longest: 1_000,
    fits: |_| true,
    expected: "a string of at most 1,000 characters",
    pattern: None,
};

impl SubagentConfig {
    /// The base URL: the configured one, or that of the provider.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_ref().map_or(self.provider.endpoint(), Secret::expose)
    }
}

impl ChatProviderName {
    /// The base URL of the provider.
    pub(crate) fn endpoint(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// The `enabled` key, which takes booleans and words.
struct Enabled;

impl Setting for Enabled {
    type Value = RequestedMode;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<RequestedMode> {
        match &member.node.value {
            Value::Boolean(true) => Some(RequestedMode::Deferred),
            Value::Boolean(false) => Some(RequestedMode::Direct),
            value => {
                let Some(mode) = ExposureMode::from_value(value) else {
                    let expected = format!("{}, true or false", ExposureMode::names());
                    scope.unfit(ProblemSeverity::Warning, &scope.at.value(member), &expected, "");
                    return None;
                };
                mode.hint_of_old_word(scope, member);
                let mut read = ToolSearchConfig::default();
                mode.apply(&mut read);
                Some(read.enabled)
            }
        }
    }

    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "enum": ["auto", "direct", "stable", "dynamic", "code", true, false] })
    }

    fn written(&self, value: &RequestedMode) -> Json {
        match value {
            RequestedMode::Auto => "auto".into(),
            RequestedMode::Code => "code".into(),
            RequestedMode::Deferred => true.into(),
            RequestedMode::Direct => false.into(),
        }
    }
}

/// Reads the section; what is missing or wrong stays as in `settings`, the latter with a warning.
pub(crate) fn read(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    mut settings: ToolSearchConfig,
) -> ToolSearchConfig {
    let hint = "to always defer tools, write `\"toolSearch\": { \"enabled\": true }`";
    scope.section(member, ProblemSeverity::Warning, "; it is ignored", hint, |scope| {
        settings.read_keys(scope);
        settings.read_mode(scope);
        if settings.strategy == StrategyName::Subagent
            && settings.subagent.is_none()
            && scope.object.get("subagent").is_none()
            && let Some(chosen) = scope.object.get("strategy")
        {
            scope.error(chosen, "is `subagent`, but there is no model to ask", SUBAGENT_HINT);
        }
        scope.report_unknown::<ToolSearchConfig>();
    });
    settings
}

impl ToolSearchConfig {
    /// The parts of `enabled` that depend on other keys.
    fn read_mode(&mut self, scope: &Scope<'_, '_>) {
        let Some(enabled) = scope.object.get("enabled") else { return };
        match &enabled.node.value {
            // As other clients mean it: a threshold decides, and nothing else does.
            Value::Boolean(true) if self.token_threshold.or(self.tool_threshold).is_some() => {
                self.enabled = RequestedMode::Auto;
                if scope.object.get("thresholdPercent").is_none() {
                    self.threshold_percent = 100.0;
                }
            }
            value => {
                if let Some(mode @ (ExposureMode::Stable | ExposureMode::Dynamic)) =
                    ExposureMode::from_value(value)
                {
                    mode.apply(self);
                }
            }
        }
    }
}

/// Reads the model. A mistake costs the model, with an error: search goes on without it.
fn read_subagent(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<SubagentConfig> {
    scope.sound_section(member, SUBAGENT_HINT, |scope| scope.require("model", MODEL_HINT))
}

/// Reads the encoder. A mistake costs the encoder, with an error: search goes on without it.
fn read_embeddings(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<EmbeddingsConfig> {
    let hint = "write `{ \"endpoint\": \"http://localhost:11434/v1\", \"model\": \"…\" }` or \
                `{ \"folder\": \"…\" }`";
    scope.sound_section(member, hint, |scope| {
        let (error, at) = (ProblemSeverity::Error, scope.at.clone());
        match (scope.object.get("endpoint"), scope.object.get("folder")) {
            (Some(_), None) => scope.require("model", MODEL_HINT),
            (Some(_), Some(_)) => {
                let hint = "keep the one that makes the vectors";
                scope.complain(error, &at, "has both an `endpoint` and a `folder`", hint);
            }
            (None, None) => {
                let hint = "add `\"endpoint\": \"http://localhost:11434/v1\"` and a `model`, or \
                            the `folder` of a model";
                scope.complain(error, &at, "has neither an `endpoint` nor a `folder`", hint);
            }
            (None, Some(_)) => {
                let of_endpoint = ["model", "apiKey", "dimensions"];
                for member in of_endpoint.iter().filter_map(|key| scope.object.get(key)) {
                    let predicate = "belongs to an `endpoint`; it is ignored";
                    scope.complain(ProblemSeverity::Warning, &at.key(member), predicate, "");
                }
            }
        }
    })
}

/// The base URL of a model, which may have a credential in it.
pub(crate) fn base_url(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Secret> {
    let hint = "write the base URL, such as `http://localhost:11434/v1`";
    web_url(scope, member, hint).map(Secret::new)
}

/// A URL of the web; `hint` says how one is written here.
pub(crate) fn web_url(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    hint: &str,
) -> Option<String> {
    let text = scope.text(member)?;
    let url = Url::parse(text.trim()).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if url.is_none() {
        scope.error(member, "is not a URL that begins with `http://` or `https://`", hint);
    }
    url.map(Into::into)
}

pub(crate) fn api_key(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Secret> {
    let key = scope.text(member)?;
    if key.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Some(Secret::new(key));
    }
    let predicate = "has a line break or another character that no header can carry in its value";
    scope.error(member, predicate, "look at the variables that it uses");
    None
}
