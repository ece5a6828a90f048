//! Finds the tools that a request needs among many thousand.
//!
//! A [`SearchIndex`] contains the words of all tools and ranks the tools for a [`Query`]. It uses no
//! files, no network and no clock, and its results are deterministic. The ranking is done by a
//! [`Strategy`], chosen by [`StrategyName`].
//!
//! Architecture invariants:
//! - The result depends on the tools in the index, never on the order in which they were added or on
//!   earlier tools.
//! - The cost of changing one server is proportional to that server.
//! - A query looks up its words and does not scan the texts of the catalogue. The exceptions are
//!   [`KeywordIndex`] and [`RegexIndex`], which find parts of words and therefore store the texts.
//! - Texts and queries are hostile, so the amount that is read is limited (see [`limits`]).

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
mod paraphrases;
mod pattern;
mod prepared;
mod query;
mod search_error;
mod search_index;
mod spelling;
mod steps;
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
pub use prepared::PreparedTools;
pub use query::{Hit, Query, ScoreParts, is_weak};
pub use search_error::{PatternFault, SearchError};
pub use search_index::{MAX_QUERIES, SearchIndex};
pub use steps::steps;
pub use strategy::{Strategy, StrategyName, UnknownStrategy};
pub use text::{ParameterText, ServerText, ToolKey, ToolText};
pub use usage::{KnownTools, PastCalls, PastQuery, Recall, UsageMemory};
