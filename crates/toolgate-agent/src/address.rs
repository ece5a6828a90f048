//! Which model, where, and how.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use crate::{
    AgentError, AnthropicMessages, ChatCompletions, GeminiGenerate, OpenAiResponses, Provider,
    ToolDiscovery,
};

/// The API that an endpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireApi {
    /// Anthropic Messages: `POST {url}/v1/messages`.
    Anthropic,
    /// OpenAI Responses: `POST {url}/responses`.
    Responses,
    /// Chat Completions: `POST {url}/chat/completions`.
    Completions,
    /// Gemini: `POST {url}/v1beta/models/{model}:streamGenerateContent`.
    Gemini,
}

/// A credential. It is in no `Debug` output, and cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelKey(String);

impl ModelKey {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for ModelKey {
    fn from(key: String) -> Self {
        Self(key.trim().to_owned())
    }
}

impl fmt::Debug for ModelKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ModelKey(…)")
    }
}

/// What a person writes: `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAddress {
    provider: &'static str,
    api: WireApi,
    url: &'static str,
    key_variable: &'static str,
    model: String,
}

/// Name, API, base URL, and the variable of the key.
const PROVIDERS: [(&str, WireApi, &str, &str); 8] = [
    ("anthropic", WireApi::Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("openai", WireApi::Responses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("openai-chat", WireApi::Completions, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("gemini", WireApi::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ("google", WireApi::Gemini, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ("openrouter", WireApi::Completions, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("ollama", WireApi::Completions, "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"),
    ("vllm", WireApi::Completions, "http://127.0.0.1:8000/v1", "VLLM_API_KEY"),
];

impl ModelAddress {
    /// Reads `provider/model`, such as `anthropic/claude-sonnet-4-5` or `ollama/qwen3`.
    pub fn parse(text: &str) -> Result<Self, AgentError> {
        let known = || PROVIDERS.map(|(name, ..)| name).join(", ");
        let wrong = |why: String| AgentError::Settings(format!("`{text}` is not a model: {why}"));
        let (name, model) = text
            .split_once('/')
            .filter(|(_, model)| !model.is_empty())
            .ok_or_else(|| wrong(format!("write provider/name; providers are {}", known())))?;
        let provider = PROVIDERS.iter().find(|(known, ..)| *known == name);
        let &(provider, api, url, key_variable) =
            provider.ok_or_else(|| wrong(format!("the provider is not one of {}", known())))?;
        Ok(Self { provider, api, url, key_variable, model: model.to_owned() })
    }

    /// The name of the provider.
    pub fn provider(&self) -> &'static str {
        self.provider
    }

    /// Whether the provider refuses requests without a key. Servers on this machine do not.
    pub fn needs_key(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// The API of the provider.
    pub fn api(&self) -> WireApi {
        self.api
    }

    /// The environment variable that usually holds the key.
    pub fn key_variable(&self) -> &'static str {
        self.key_variable
    }

    /// Settings for this model.
    pub fn settings(&self, key: Option<ModelKey>) -> ModelSettings {
        ModelSettings { key, ..ModelSettings::new(self.api, self.url, &self.model) }
    }
}

/// How a model is asked.
#[derive(Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct ModelSettings {
    /// The API of the endpoint.
    pub api: WireApi,
    /// The base URL.
    pub url: String,
    /// The model's name.
    pub model: String,
    /// The credential, if the endpoint requires one.
    pub key: Option<ModelKey>,
    /// The most tokens of an answer. Anthropic requires a limit: without one it is 8,192.
    pub max_output_tokens: Option<u32>,
    /// How the model finds tools; the default of the wire without it.
    pub discovery: Option<ToolDiscovery>,
    /// Whether the provider's own code may call tools: `code_execution` of Anthropic, `programmatic_tool_calling` of
    /// OpenAI.
    pub programmatic: bool,
    /// Anthropic: whether changes of the catalogue are sent as `tool_addition` and `tool_removal` (two betas).
    pub tool_changes: bool,
    /// Whether the provider caches prompts only where it is asked to (Anthropic).
    pub cache: bool,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Further headers, such as those of a proxy. Their values are not shown.
    pub headers: Vec<(String, String)>,
    /// Further fields of each request, such as `thinking`, `reasoning` or `temperature`.
    pub extra: Map<String, Value>,
    /// The longest time without a byte of a reply.
    pub idle_timeout: Duration,
}

impl ModelSettings {
    /// Settings for an endpoint, without a key.
    pub fn new(api: WireApi, url: &str, model: &str) -> Self {
        Self {
            api,
            url: url.trim_end_matches('/').to_owned(),
            model: model.to_owned(),
            key: None,
            max_output_tokens: None,
            discovery: None,
            programmatic: false,
            tool_changes: false,
            cache: true,
            stream: true,
            headers: Vec::new(),
            extra: Map::new(),
            idle_timeout: Duration::from_mins(5),
        }
    }

    /// The provider of the settings' API.
    pub fn provider(self) -> Result<Arc<dyn Provider>, AgentError> {
        Ok(match self.api {
            WireApi::Anthropic => Arc::new(AnthropicMessages::new(self)?),
            WireApi::Responses => Arc::new(OpenAiResponses::new(self)?),
            WireApi::Completions => Arc::new(ChatCompletions::new(self)?),
            WireApi::Gemini => Arc::new(GeminiGenerate::new(self)?),
        })
    }

    /// The discovery, if the wire knows it.
    pub(crate) fn check(
        &self,
        wire: &'static str,
        known: &'static [ToolDiscovery],
    ) -> Result<ToolDiscovery, AgentError> {
        let discovery = self.discovery.or(known.first().copied()).unwrap_or(ToolDiscovery::Direct);
        if known.contains(&discovery) {
            Ok(discovery)
        } else {
            Err(AgentError::Discovery { wire, discovery, known })
        }
    }
}

/// Neither the key, nor the URL and the headers, which may have a credential in them.
impl fmt::Debug for ModelSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelSettings")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("discovery", &self.discovery)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_provider_and_a_model() {
        let address = ModelAddress::parse("openrouter/anthropic/claude-x").unwrap();
        assert_eq!(
            (address.api(), address.model.as_str()),
            (WireApi::Completions, "anthropic/claude-x")
        );
        assert_eq!(ModelAddress::parse("anthropic/c").unwrap().key_variable(), "ANTHROPIC_API_KEY");
        for wrong in ["claude", "anthropic/", "nobody/x"] {
            let error = ModelAddress::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("openrouter"), "{error}");
        }
    }

    #[test]
    fn a_key_is_not_in_debug() {
        let mut settings = ModelSettings::new(WireApi::Gemini, "https://u:sk-url@h", "m");
        settings.key = Some("sk-key".to_owned().into());
        settings.headers.push(("x-proxy".into(), "sk-header".into()));
        let provider = settings.clone().provider().unwrap();
        let shown = format!("{settings:?} {:?} {provider:?}", settings.key);
        assert!(!shown.contains("sk-"), "{shown}");
    }

    #[test]
    fn a_wire_refuses_a_discovery_that_it_does_not_know() {
        let mut settings = ModelSettings::new(WireApi::Gemini, "http://127.0.0.1:1", "m");
        settings.discovery = Some(ToolDiscovery::Search);
        let error = settings.provider().unwrap_err().to_string();
        assert!(error.contains("does not know") && error.contains("Stable"), "{error}");
    }
}
