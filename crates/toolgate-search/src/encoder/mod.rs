//! The interface between an encoder and an index.
//!
//! This crate defines the texts of tools and servers and accepts their vectors. The caller computes
//! and stores the vectors, and decides how long a query waits for one.

mod document;
mod unit_vector;

use std::{fmt, pin::Pin};

use thiserror::Error;

pub use self::{
    document::{MAX_DOCUMENT_BYTES, server_document, tool_document},
    unit_vector::{MAX_DIMENSIONS, UnitVector},
};
use crate::text::ToolKey;

/// Makes vectors of texts, so that texts of like meaning are near each other.
///
/// An encoder may be slow and may fail. An index ranks texts without a vector by its own table.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// The id of the encoder and of all settings that change its vectors. Only vectors with equal ids
    /// can be compared. The id contains no secret.
    fn id(&self) -> &str;

    /// The name for people: that of a model or of a folder.
    fn name(&self) -> &str;

    /// A vector for each text, in their order, all of one length.
    fn encode<'a>(&'a self, texts: &'a [&'a str], kind: TextKind) -> Encoding<'a>;
}

/// The future of [`Encoder::encode`].
pub type Encoding<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<UnitVector>, EncodeError>> + Send + 'a>>;

/// The role of a text. Some encoders treat the roles differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// A query.
    Query,
    /// A tool or a server.
    Document,
}

/// Why there are no vectors. Texts that were encoded before keep their vectors, and the table in the
/// program still ranks the others.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The encoder may work later: a connection, a limit, a time-out.
    #[error("{0}")]
    Passing(String),
    /// A person must change something first. The message says what.
    #[error("{0}")]
    Lasting(String),
}

/// The vectors of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// The vector of its text.
    pub text: UnitVector,
    /// The vector of its hint, if it has one.
    pub hint: Option<UnitVector>,
}

/// The known vectors of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerVectors {
    /// The vector of the server.
    pub server: Option<UnitVector>,
    /// The vectors of its tools.
    pub tools: Vec<(ToolKey, UnitVector)>,
}
