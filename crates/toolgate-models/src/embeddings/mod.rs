//! Encoders that replace the embedding table of the program, both a [`toolgate_search::encoder::Encoder`]:
//!
//! - [`EndpointEncoder`] asks an endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, vLLM
//!   and many others.
//! - [`open_folder`] runs a model from a folder, on the processor: models of the BERT family and
//!   static tables of `Model2Vec`. It needs the cargo feature `folder-encoder`.

mod endpoint;
#[cfg(feature = "folder-encoder")]
mod folder;
mod folder_error;

use std::{path::PathBuf, sync::Arc};

pub use endpoint::{ApiKey, EndpointEncoder, EndpointError, EndpointSettings};
#[cfg(feature = "folder-encoder")]
pub use folder::FolderEncoder;
pub use folder_error::{FolderError, SUPPORTED};
use toolgate_search::encoder::{Encoder, TextKind};

/// The texts that go before each query and each document. Some models are trained with `query: ` and `passage: `, or
/// with an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Prefixes {
    /// The prefix of queries.
    pub query: String,
    /// The prefix of tools' descriptions.
    pub document: String,
}

/// Opens the model in a folder. Without the feature `folder-encoder` this is an error that says how to build with it.
pub fn open_folder(path: PathBuf, prefixes: Prefixes) -> Result<Arc<dyn Encoder>, FolderError> {
    #[cfg(feature = "folder-encoder")]
    return Ok(Arc::new(FolderEncoder::open(path, prefixes)?));
    #[cfg(not(feature = "folder-encoder"))]
    {
        drop(prefixes);
        Err(FolderError::NotBuilt { folder: path })
    }
}

impl Prefixes {
    fn of(&self, kind: TextKind) -> &str {
        match kind {
            TextKind::Query => &self.query,
            TextKind::Document => &self.document,
        }
    }
}
