//! The model that chooses tools.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::Secret;
use crate::choice::choice;

/// The model that is asked which tools fit: the `subagent` key of `toolSearch`.
#[derive(Clone, PartialEq, Eq)]
pub struct Subagent {
    /// Which requests the endpoint understands.
    pub provider: ChatProviderName,
    /// A valid `http` or `https` URL with a host.
    pub endpoint: String,
    /// The model's name.
    pub model: String,
    /// What the endpoint is told to let us in.
    pub api_key: Option<Secret>,
    /// How many candidates the model is shown.
    pub candidates: usize,
    /// How long a search waits for it.
    pub timeout: Duration,
}

/// Which requests an endpoint understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChatProviderName {
    /// Those of OpenAI's chat completions, which many others understand too.
    #[default]
    OpenAi,
    /// Those of Anthropic's messages.
    Anthropic,
}

choice!(ChatProviderName, "openai" => OpenAi, "anthropic" => Anthropic);

impl Subagent {
    /// How many candidates the model is shown, unless it is said.
    pub const CANDIDATES: usize = 24;
    /// How long a search waits for the model, unless it is said.
    pub const TIMEOUT: Duration = Duration::from_secs(3);
}

impl ChatProviderName {
    /// Where the provider's own endpoint is.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// Without the endpoint, which may have a credential in it, as that of a server.
impl fmt::Debug for Subagent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Subagent")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_key", &self.api_key)
            .field("candidates", &self.candidates)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Only what it is, and nothing that may be secret.
impl Serialize for Subagent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("provider", &self.provider)?;
        map.serialize_entry("model", &self.model)?;
        map.end()
    }
}
