//! Encoders beside the table in the program, both a [`toolgate_search::encoder::Encoder`]:
//!
//! - [`EndpointEncoder`] asks an endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, vLLM
//!   and many others.
//! - [`FolderEncoder`] runs a model from a folder, on the processor: models of the BERT family and
//!   static tables of `Model2Vec`.

mod endpoint;
mod folder;

pub use endpoint::{ApiKey, EndpointEncoder, EndpointError, EndpointSettings};
pub use folder::{FolderEncoder, FolderError, SUPPORTED};
use toolgate_search::encoder::TextKind;

/// What is put before texts. Some models are trained with `query: ` and `passage: `, or with an
/// instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Prefixes {
    /// Before what is looked for.
    pub query: String,
    /// Before what can be found.
    pub document: String,
}

impl Prefixes {
    fn of(&self, kind: TextKind) -> &str {
        match kind {
            TextKind::Query => &self.query,
            TextKind::Document => &self.document,
        }
    }
}
