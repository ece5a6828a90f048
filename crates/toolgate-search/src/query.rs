//! What is asked of an index and what it answers.

use serde::{Deserialize, Serialize};

use crate::{encoder::QueryVector, strategy::StrategyName, text::ToolKey};

/// One question to an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query<'a> {
    /// What is looked for, in words or as a tool's name.
    pub text: &'a str,
    /// Words about the kind of server wanted, for example `version control`.
    ///
    /// They are held against the texts of servers alone, and move the tools of a matching server
    /// up. A hint never brings in a tool by itself and never leaves one out.
    pub hint: Option<&'a str>,
    /// Only tools of these servers, by the identity they were added under; `None` is all of them.
    pub servers: Option<&'a [&'a str]>,
    /// How many hits are wanted at most.
    pub limit: usize,
    /// How to rank; `None` is the way of the index. Only a [`SearchIndex`](crate::SearchIndex) looks
    /// at it, and only what it was built with can be chosen.
    pub strategy: Option<StrategyName>,
    /// What the encoder made of it whose vectors the tools have. Without it, the table in the
    /// program says what is near in meaning.
    pub vector: Option<&'a QueryVector>,
}

impl<'a> Query<'a> {
    /// A query over all servers, without a hint.
    pub fn new(text: &'a str, limit: usize) -> Self {
        Self { text, hint: None, servers: None, limit, strategy: None, vector: None }
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

    /// The same query with what an encoder made of it.
    #[must_use]
    pub fn with_vector(self, vector: &'a QueryVector) -> Self {
        Self { vector: Some(vector), ..self }
    }

    /// The same query, ranked in this way.
    #[must_use]
    pub fn ranked_by(self, strategy: StrategyName) -> Self {
        Self { strategy: Some(strategy), ..self }
    }
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Which tool.
    pub key: ToolKey,
    /// How well it fits; more is better, and nothing follows from comparing two queries' scores.
    pub score: f32,
}
