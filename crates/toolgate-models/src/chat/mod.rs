//! Chat models.
//!
//! A [`ChatEndpoint`] asks a model one question and returns its answer. A [`ModelChooser`] lets a
//! model choose tools.

mod choose;
mod endpoint;

use std::{fmt, future::Future, pin::Pin};

use thiserror::Error;

pub use self::{
    choose::ModelChooser,
    endpoint::{ChatApi, ChatEndpoint, ChatSettings},
};

/// A model that answers in words.
pub trait ChatProvider: fmt::Debug + Send + Sync {
    /// Asks one question. The caller limits the time.
    fn ask<'a>(&'a self, question: &'a ChatQuestion) -> ChatFuture<'a>;
}

/// The pending answer of a [`ChatProvider`].
pub type ChatFuture<'a> = Pin<Box<dyn Future<Output = Result<String, ChatError>> + Send + 'a>>;

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatQuestion {
    /// The system prompt.
    pub instructions: String,
    /// The user's message.
    pub text: String,
    /// The most tokens of the answer, for APIs that require it.
    pub max_tokens: u32,
}

/// Why there is no answer. Nothing has changed; the next question may work. No variant holds a
/// credential or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChatError {
    /// The endpoint could not be reached, or the connection was lost.
    #[error("the endpoint of the model cannot be reached: {0}")]
    Unreachable(String),
    /// The endpoint does not accept the key.
    #[error("the endpoint of the model does not accept the key, HTTP {0}")]
    Unauthorized(u16),
    /// The endpoint answered with an error.
    #[error("the endpoint of the model answered with HTTP {0}")]
    Status(u16),
    /// The answer has more bytes than are read.
    #[error("the answer of the model is too large")]
    TooLarge,
    /// The response does not follow the API.
    #[error("the answer of the model cannot be read")]
    Unreadable,
    /// The settings cannot be used.
    #[error("the endpoint of the model cannot be used: {0}")]
    Unusable(String),
}
