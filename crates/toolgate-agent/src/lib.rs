//! Models that toolgate asks.
//!
//! - [`chat`]: models that answer in words, behind an endpoint.

pub mod chat;
