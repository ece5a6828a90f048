//! The encoder that is asked what texts mean.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::Secret;

/// The encoder that says what is near in meaning: the `embeddings` key of `toolSearch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// What makes the vectors.
    pub source: EmbeddingSource,
    /// What is put before a query.
    pub query_prefix: String,
    /// What is put before the text of a tool.
    pub document_prefix: String,
    /// How long a search waits for the vector of its query.
    pub timeout: Duration,
}

/// What makes vectors.
#[derive(Clone, PartialEq, Eq)]
pub enum EmbeddingSource {
    /// An endpoint of OpenAI's embeddings API.
    Endpoint {
        /// A valid `http` or `https` URL with a host, to which `/embeddings` is added.
        url: String,
        /// The model's name.
        model: String,
        /// What is sent as a bearer token.
        api_key: Option<Secret>,
        /// How many numbers a vector is to have.
        dimensions: Option<usize>,
    },
    /// A model in a folder.
    Folder {
        /// The folder, as it is written; a relative one is meant from the file's own folder.
        path: PathBuf,
    },
}

impl Embeddings {
    /// How long a search waits for the vector of its query, unless it is said.
    pub const TIMEOUT: Duration = Duration::from_secs(2);
}

impl std::fmt::Debug for EmbeddingSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The URL may have a credential in it, as that of a server.
            Self::Endpoint { model, api_key, dimensions, .. } => formatter
                .debug_struct("Endpoint")
                .field("model", model)
                .field("api_key", api_key)
                .field("dimensions", dimensions)
                .finish_non_exhaustive(),
            Self::Folder { path } => formatter.debug_struct("Folder").field("path", path).finish(),
        }
    }
}

/// Only what it is, and nothing that may be secret.
impl Serialize for Embeddings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match &self.source {
            EmbeddingSource::Endpoint { model, .. } => map.serialize_entry("model", model)?,
            EmbeddingSource::Folder { path } => map.serialize_entry("folder", path)?,
        }
        map.end()
    }
}
