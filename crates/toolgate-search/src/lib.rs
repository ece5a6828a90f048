//! Which of many thousand tools does a request mean?
//!
//! [`SearchIndex`] holds the words of every tool of every server and ranks them for a [`Query`]. It
//! is pure: no files, no network, no clock, no randomness that shows. The ranking behind it is a
//! [`Strategy`], chosen by [`StrategyName`].
//!
//! Architecture invariants:
//! - The answer depends on the tools present, never on the order in which they came or on what was
//!   there before.
//! - A change of one server costs in proportion to that server.
//! - A query looks up the words it has; it does not walk through the texts of the catalogue. The
//!   exceptions are [`KeywordIndex`] and [`RegexIndex`], which find parts of words: nothing but the
//!   text itself can answer them, so they keep it.
//! - Texts and queries are hostile: how much of them is read is bounded (see [`limits`]).

#![forbid(unsafe_code)]

mod analysis;
mod asides;
mod bm25;
mod choosing;
mod dense;
pub mod encoder;
pub mod evaluation;
mod fusion;
mod hybrid;
mod keyword;
pub mod limits;
pub mod metrics;
mod pattern;
mod query;
mod search_error;
mod search_index;
mod strategy;
mod text;
mod text_blocks;
mod top;
mod usage;

pub use bm25::{Bm25Index, Bm25Parameters, FieldWeights};
pub use choosing::{ChoiceCandidate, ChoiceError, ChoiceRequest, Chooser, Choosing};
pub use dense::EmbeddingIndex;
pub use fusion::round_robin;
pub use hybrid::{HybridIndex, HybridParameters};
pub use keyword::KeywordIndex;
pub use pattern::RegexIndex;
pub use query::{Hit, Query};
pub use search_error::{PatternFault, SearchError};
pub use search_index::{MAX_QUERIES, SearchIndex};
pub use strategy::{Strategy, StrategyName, UnknownStrategy};
pub use text::{ParameterText, ServerText, ToolKey, ToolText};
pub use usage::{KnownTools, PastQuery, UsageMemory};
