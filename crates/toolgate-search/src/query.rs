//! Queries and hits.

use serde::{Deserialize, Serialize};

use crate::{encoder::QueryVector, text::ToolKey};

/// A query to an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query<'a> {
    /// The text to search for, or the name of a tool.
    pub text: &'a str,
    /// Words about the kind of server wanted, for example `version control`.
    ///
    /// The hint is compared with the texts of servers only, and raises the tools of a matching
    /// server. It never adds or removes a tool.
    pub hint: Option<&'a str>,
    /// Only tools of these servers, by the identity they were added under; `None` is all of them.
    pub servers: Option<&'a [&'a str]>,
    /// The largest number of hits.
    pub limit: usize,
    /// The vector from the encoder of the tools' vectors. Without it, the table in the program is
    /// used.
    pub vector: Option<&'a QueryVector>,
}

impl<'a> Query<'a> {
    /// A query over all servers, without a hint.
    pub fn new(text: &'a str, limit: usize) -> Self {
        Self { text, hint: None, servers: None, limit, vector: None }
    }

    /// The same query with words about the kind of server wanted.
    #[must_use]
    pub fn with_hint(self, hint: &'a str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// The same query over the tools of these servers alone.
    #[must_use]
    pub fn in_servers(self, servers: &'a [&'a str]) -> Self {
        Self { servers: Some(servers), ..self }
    }
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The tool.
    pub key: ToolKey,
    /// The score; higher is better. Scores of two queries cannot be compared.
    pub score: f32,
    /// How well the tool fits the query, from 0 to 1, as far as the strategy can tell. Unlike scores,
    /// this can be compared between queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<f32>,
    /// Whether past use has raised it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_remembered: bool,
}

/// What the score of a tool is made of, where a strategy has parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScoreParts {
    /// For common words.
    pub words: f32,
    /// For similar meaning; below zero if it is further from the query than most tools.
    pub meaning: f32,
    /// For being named in the query.
    pub named: f32,
}

impl Hit {
    /// A tool with its score.
    pub fn new(key: ToolKey, score: f32) -> Self {
        Self { key, score, fit: None, is_remembered: false }
    }
}

/// Below this fit a tool is hardly what is wanted. At most three of a hundred right answers of most
/// labelled sets are below it; `docs/search.md` has the figures.
const WEAK: f32 = 0.25;

/// Whether no hit fits its query well. An answer says so then, because the nearest tool of a
/// catalogue without the right one looks like the right one.
pub fn is_weak(hits: &[Hit]) -> bool {
    let fits = |hit: &Hit| hit.is_remembered || hit.fit.is_none_or(|fit| fit >= WEAK);
    !hits.is_empty() && !hits.iter().any(fits)
}
