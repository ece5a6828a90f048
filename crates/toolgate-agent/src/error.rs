//! Errors.

use std::time::Duration;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::ToolDiscovery;

/// Why a turn failed. The conversation can be used further: its history is valid, and
/// [`Conversation::resume`](crate::Conversation::resume) tries again.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The provider did not answer, or refused the request.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The settings cannot be used. Nothing was sent.
    #[error("the settings of the model cannot be used: {0}")]
    Settings(String),
    /// The wire does not have this discovery. Nothing was sent.
    #[error("{wire} does not know the discovery {discovery:?}; choose one of {known:?}")]
    Discovery {
        /// The wire.
        wire: &'static str,
        /// What was chosen.
        discovery: ToolDiscovery,
        /// What the wire knows.
        known: &'static [ToolDiscovery],
    },
    /// The conversation does not fit into the context window of the model, not even after a compaction.
    #[error("the conversation does not fit into the context window of the model; start a new one")]
    Window,
}

/// What is wrong between us and the provider. No variant holds a key or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The endpoint cannot be reached.
    #[error("the endpoint of the model cannot be reached: {0}; check its address and the network")]
    Unreachable(String),
    /// The stream ended before the reply did.
    #[error("the connection to the model ended in the middle of a reply")]
    Cut {
        /// Whether a tool of the provider had begun, so that asking again could repeat an effect.
        after_effect: bool,
    },
    /// The endpoint sent nothing for too long.
    #[error("the model sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The provider refused the request.
    #[error("the provider refused the request ({status}{}): {message}", kind.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default())]
    Status {
        /// The HTTP status, or the status that an error within the stream stands for.
        status: u16,
        /// The provider's name for the error.
        kind: Option<String>,
        /// The provider's words, cut, without our key.
        message: String,
        /// How long to wait, if the provider said so.
        retry_after: Option<Duration>,
    },
    /// The request is longer than the context window of the model.
    #[error("the request does not fit into the context window of the model: {0}")]
    Window(String),
    /// The reply is not of this wire.
    #[error("the reply of the model cannot be read: {0}; check that the endpoint speaks this API")]
    Unreadable(String),
    /// The reply is over the limit.
    #[error("the reply of the model is longer than {0} bytes")]
    TooLarge(usize),
}

impl ProviderError {
    /// Whether the same request may succeed later, and repeats nothing.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Silent(_) => true,
            Self::Cut { after_effect } => !after_effect,
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502..=504 | 529),
            Self::Window(_) | Self::Unreadable(_) | Self::TooLarge(_) => false,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// An error in an event is its message.
impl Serialize for AgentError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
