//! A model behind HTTP.

use std::fmt;

use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::{Value, json};

use super::{ChatError, ChatFuture, ChatProvider, ChatQuestion};

/// Which requests an endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChatApi {
    /// `POST {endpoint}/chat/completions`, as `OpenAI`, Ollama, vLLM and many others have it.
    #[default]
    OpenAi,
    /// `POST {endpoint}/v1/messages`, as Anthropic has it.
    Anthropic,
}

/// Which model to ask, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatSettings {
    /// Which requests the endpoint understands.
    pub api: ChatApi,
    /// The base URL.
    pub endpoint: String,
    /// The model's name.
    pub model: String,
    /// The API key, if the endpoint requires one.
    pub api_key: Option<String>,
}

/// A model behind an endpoint. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct ChatEndpoint {
    client: Client,
    url: Url,
    settings: ChatSettings,
}

/// No answer of a few names is longer.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
const ANTHROPIC_VERSION: &str = "2023-06-01";

impl ChatEndpoint {
    /// Creates the client. It does not connect yet.
    pub fn new(settings: ChatSettings) -> Result<Self, ChatError> {
        let unusable = |why: &str| ChatError::Unusable(why.to_owned());
        let path = match settings.api {
            ChatApi::OpenAi => "chat/completions",
            ChatApi::Anthropic => "v1/messages",
        };
        let base = settings.endpoint.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/{path}")).map_err(|_| unusable("it is no URL"))?;
        let mut builder = toolgate_http::client_builder()
            // A redirect could carry the key and the question to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        if toolgate_http::is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|_| unusable("no client can be made for it"))?;
        Ok(Self { client, url, settings })
    }

    fn request(&self, question: &ChatQuestion) -> RequestBuilder {
        let ChatQuestion { instructions, text, max_tokens } = question;
        let (request, key) = (self.client.post(self.url.clone()), &self.settings.api_key);
        match self.settings.api {
            ChatApi::OpenAi => {
                // Neither a temperature nor a length: each is refused by some models.
                let body = json!({
                    "model": self.settings.model,
                    "messages": [
                        { "role": "system", "content": instructions },
                        { "role": "user", "content": text },
                    ],
                });
                key.iter().fold(request.json(&body), RequestBuilder::bearer_auth)
            }
            ChatApi::Anthropic => {
                let body = json!({
                    "model": self.settings.model,
                    "max_tokens": max_tokens,
                    "system": instructions,
                    "messages": [{ "role": "user", "content": text }],
                });
                let request = request.header("anthropic-version", ANTHROPIC_VERSION).json(&body);
                key.iter().fold(request, |request, key| request.header("x-api-key", key))
            }
        }
    }

    async fn answer(&self, question: &ChatQuestion) -> Result<String, ChatError> {
        let response = self.request(question).send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(ChatError::Unauthorized(status.as_u16()));
        }
        if !status.is_success() {
            return Err(ChatError::Status(status.as_u16()));
        }
        let body = toolgate_http::bounded_body(response, MAX_ANSWER_BYTES).await;
        let body = body.map_err(|error| unreachable(&error))?.ok_or(ChatError::TooLarge)?;
        let body: Value = serde_json::from_slice(&body).map_err(|_| ChatError::Unreadable)?;
        self.text_of(&body).ok_or(ChatError::Unreadable)
    }

    fn text_of(&self, body: &Value) -> Option<String> {
        match self.settings.api {
            ChatApi::OpenAi => {
                Some(body.pointer("/choices/0/message/content")?.as_str()?.to_owned())
            }
            ChatApi::Anthropic => {
                let blocks = body.get("content")?.as_array()?;
                let texts = blocks.iter().filter(|block| block["type"] == "text");
                Some(texts.filter_map(|block| block["text"].as_str()).collect())
            }
        }
    }
}

impl ChatProvider for ChatEndpoint {
    fn ask<'a>(&'a self, question: &'a ChatQuestion) -> ChatFuture<'a> {
        Box::pin(self.answer(question))
    }
}

/// Neither the key nor the URL, which may have a credential in it.
impl fmt::Debug for ChatSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChatSettings")
            .field("api", &self.api)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

fn unreachable(error: &reqwest::Error) -> ChatError {
    ChatError::Unreachable(toolgate_http::unreachable_reason(error).to_owned())
}
