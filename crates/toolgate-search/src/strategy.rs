//! The seam behind which ranking methods are exchanged.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    bm25::Bm25Index,
    dense::EmbeddingIndex,
    encoder::ServerVectors,
    hybrid::HybridIndex,
    keyword::KeywordIndex,
    pattern::RegexIndex,
    query::{Hit, Query},
    search_error::SearchError,
    text::{ServerText, ToolKey, ToolText},
};

/// A way to rank tools, with whatever it keeps in memory to do so.
///
/// An implementation keeps three promises: the answer depends on the tools present and not on the
/// order in which they came; a change of one server costs in proportion to that server; no input
/// makes it panic.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// Makes `tools` the tools of `server`, in place of those it had.
    ///
    /// Where a key comes twice in the list, the first one counts.
    fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    );

    /// Forgets `server` and its tools; does nothing where it is unknown.
    fn remove_server(&mut self, server: &str);

    /// Takes the vectors that an encoder made of the texts that `server` was last given with, in
    /// place of those it took before; does nothing where the server is unknown. A strategy that does
    /// not rank by meaning has no use for them.
    ///
    /// They are forgotten with the next [`Self::replace_server`]. A tool that is not among them is
    /// ranked without.
    fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        let _ = (server, vectors);
    }

    /// How many tools can be found.
    fn tool_count(&self) -> usize;

    /// The best hits, best first, at most as many as the query's limit.
    ///
    /// Nothing found is an empty list. An error says what is wrong with the query itself.
    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError>;

    /// The tools that the query calls by their names, which belong before all others. None where the
    /// strategy does not look for them.
    fn called_by_name(&self, _query: &Query<'_>) -> Vec<&ToolKey> {
        Vec::new()
    }
}

/// The strategies that can be chosen by name, in a configuration for example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StrategyName {
    /// Words and meaning together: [`HybridIndex`].
    #[default]
    Hybrid,
    /// Weighted words: [`Bm25Index`].
    Bm25,
    /// By meaning, with the table of word vectors in the program: [`EmbeddingIndex`].
    Embedding,
    /// Points for words contained in names, descriptions and parameter names: [`KeywordIndex`].
    Keyword,
    /// The query is a regular expression: [`RegexIndex`].
    Regex,
    /// A model chooses among the candidates of [`HybridIndex`], where one is asked: see
    /// [`Chooser`](crate::Chooser). The index itself ranks as `hybrid` does.
    Subagent,
}

impl StrategyName {
    /// Every strategy, in the order in which they are listed to people.
    pub const ALL: &[Self] =
        &[Self::Hybrid, Self::Bm25, Self::Embedding, Self::Keyword, Self::Regex, Self::Subagent];

    /// The name as it is written in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Bm25 => "bm25",
            Self::Embedding => "embedding",
            Self::Keyword => "keyword",
            Self::Regex => "regex",
            Self::Subagent => "subagent",
        }
    }

    /// Whether a query is read as a request in words, rather than as text that is looked for as it
    /// stands.
    pub(crate) fn reads_requests(self) -> bool {
        matches!(self, Self::Hybrid | Self::Bm25 | Self::Embedding | Self::Subagent)
    }

    /// Whether it has a use for an encoder's vectors.
    pub fn ranks_by_meaning(self) -> bool {
        matches!(self, Self::Hybrid | Self::Embedding | Self::Subagent)
    }

    /// An empty index of this strategy.
    pub fn build(self) -> Box<dyn Strategy> {
        match self {
            Self::Hybrid | Self::Subagent => Box::new(HybridIndex::default()),
            Self::Bm25 => Box::new(Bm25Index::default()),
            Self::Embedding => Box::new(EmbeddingIndex::default()),
            Self::Keyword => Box::new(KeywordIndex::default()),
            Self::Regex => Box::new(RegexIndex::default()),
        }
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for StrategyName {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.iter().find(|strategy| strategy.as_str().eq_ignore_ascii_case(name));
        known.copied().ok_or_else(|| UnknownStrategy { name: name.chars().take(64).collect() })
    }
}

/// No strategy has this name. Nothing was changed; [`StrategyName::default`] always works.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown search strategy `{name}`")]
pub struct UnknownStrategy {
    /// The name that was asked for, cut to 64 characters.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for strategy in StrategyName::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(*strategy));
            let json = serde_json::to_string(strategy).unwrap();
            assert_eq!(json, format!("\"{strategy}\""));
        }
        assert_eq!("BM25".parse(), Ok(StrategyName::Bm25));
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_it() {
        let error = "oracle".parse::<StrategyName>().unwrap_err();
        assert_eq!(error.to_string(), "unknown search strategy `oracle`");
        let long = "x".repeat(1_000_000).parse::<StrategyName>().unwrap_err();
        assert_eq!(long.name.len(), 64);
    }
}
