//! The model that `extract` asks: the configured one, or the client's own.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_broker::SessionContext;
use toolgate_mcp::methods;
use toolgate_upstream::{InputRequest, can_answer};

use super::{ChatError, ChatQuestion, ExtractModel, ExtractSettings, InputHandler};

/// The model of one call.
pub(super) enum Model<'a> {
    Configured(&'a ExtractModel),
    /// The client asks its model, with the identity of the caller.
    Sampling(&'a dyn InputHandler, &'a str),
}

/// The longest answer of a client.
const MAX_ANSWER_BYTES: usize = 256 * 1024;

impl<'a> Model<'a> {
    /// The configured model, or that of a client that offers sampling.
    pub(super) fn choose(
        settings: &'a ExtractSettings,
        handler: Option<&'a Arc<dyn InputHandler>>,
        session: &'a SessionContext,
    ) -> Option<Self> {
        if let Some(model) = &settings.model {
            return Some(Self::Configured(model));
        }
        let handler = &**handler?;
        let can = can_answer(handler.capabilities(), &sampling(json!({})));
        can.then_some(Self::Sampling(handler, &session.caller().identity))
    }

    /// What tells the answers of this model from those of others. No caller gets an answer that the
    /// client of another caller gave.
    pub(super) fn identity(&self) -> Value {
        match self {
            Self::Configured(model) => json!({ "model": model.identity }),
            Self::Sampling(_, caller) => json!({ "caller": caller }),
        }
    }

    pub(super) async fn ask(&self, question: &ChatQuestion) -> Result<String, ChatError> {
        let handler = match self {
            Self::Configured(model) => return model.provider.ask(question).await,
            Self::Sampling(handler, _) => handler,
        };
        let ChatQuestion { instructions, text, max_tokens } = question;
        let request = sampling(json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
            "systemPrompt": instructions,
            "maxTokens": max_tokens,
            "temperature": 0,
            "includeContext": "none",
            "modelPreferences": { "costPriority": 0.8, "speedPriority": 0.8, "intelligencePriority": 0.2 },
        }));
        let answer = handler.answer(request).await.map_err(|error| {
            let message: String = error.message.chars().take(200).collect();
            ChatError::Unusable(format!("the client refused to ask its model: {message}"))
        })?;
        let text = text_of(&answer).ok_or(ChatError::Unreadable)?;
        if text.len() > MAX_ANSWER_BYTES { Err(ChatError::TooLarge) } else { Ok(text) }
    }
}

fn sampling(params: Value) -> InputRequest {
    InputRequest { method: methods::SAMPLING_CREATE.to_owned(), params: Some(params) }
}

/// The text of a sampled message, whose content is a block or a list of blocks.
fn text_of(answer: &Value) -> Option<String> {
    let content = answer.get("content")?;
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    let texts: Vec<&str> = blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.concat())
}
