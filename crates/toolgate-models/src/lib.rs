//! Clients of models.
//!
//! - [`chat`]: models that answer in words, behind an endpoint.
//! - [`embeddings`]: encoders that make vectors of texts, behind an endpoint or from a folder.

pub mod chat;
pub mod embeddings;
