//! Encoders beside the table in the program: what one is, and what passes between it and an index.
//!
//! This crate stays pure: it says which texts stand for tools and servers, and takes the vectors
//! that somebody else made of them. Who makes them, where they are kept and how long a query may
//! wait for one is the caller's business.

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
/// It may take its time and may fail: an index ranks without it what it has no vector of.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// Which encoder this is, with all settings that change its vectors. Vectors of equal ids can be
    /// compared and kept for each other. It has no secret in it.
    fn id(&self) -> &str;

    /// What people call it: the name of a model or of a folder.
    fn name(&self) -> &str;

    /// A vector for each text, in their order, all of one length.
    fn encode<'a>(&'a self, texts: &'a [&'a str], kind: TextKind) -> Encoding<'a>;
}

/// What [`Encoder::encode`] is to become.
pub type Encoding<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<UnitVector>, EncodeError>> + Send + 'a>>;

/// What a text is. Some encoders are made to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// Something that is looked for.
    Query,
    /// Something that can be found: a tool, or a server.
    Document,
}

/// Why there are no vectors. Texts that were encoded before keep theirs, and everything can still be
/// found by the table in the program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// It may work later: a connection, a limit, a time-out.
    #[error("{0}")]
    Passing(String),
    /// It will not work before a person changes something; the sentence says what.
    #[error("{0}")]
    Lasting(String),
}

/// The vectors of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    /// Of its text.
    pub text: UnitVector,
    /// Of its hint, where it has one.
    pub hint: Option<UnitVector>,
}

/// The vectors of one server, as far as they are there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerVectors {
    /// Of what the server says of itself.
    pub server: Option<UnitVector>,
    /// Of its tools.
    pub tools: Vec<(ToolKey, UnitVector)>,
}
