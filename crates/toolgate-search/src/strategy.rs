//! The interface of ranking strategies.

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
    prepared::PreparedTools,
    query::{Hit, Query, ScoreParts},
    search_error::SearchError,
    text::{ServerText, ToolKey, ToolText},
};

/// An index that ranks tools.
///
/// The result depends on the tools in the index and not on the order in which they were added. The
/// cost of changing one server is proportional to that server. No input causes a panic.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// Replaces the tools of `server` by `tools`.
    ///
    /// If a key occurs twice in the list, the first one counts.
    fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    );

    /// Whether [`Self::replace_prepared`] does the same as [`Self::replace_server`]. The strategies
    /// that store texts, and those with other parameters than the defaults, need the texts.
    fn takes_prepared(&self) -> bool {
        false
    }

    /// Replaces the tools of `server` by tools with these keys and names, whose texts were prepared
    /// before, in the same order. Only for a strategy that takes them.
    fn replace_prepared(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        prepared: &PreparedTools,
    ) {
        let _ = (server, text, tools, prepared);
    }

    /// Removes `server` and its tools. An unknown server is ignored.
    fn remove_server(&mut self, server: &str);

    /// Replaces the vectors of the current texts of `server`. An unknown server is ignored, and so are
    /// vectors by a strategy that does not rank by meaning.
    ///
    /// The next [`Self::replace_server`] removes the vectors. A tool without a vector is ranked
    /// without it.
    fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        let _ = (server, vectors);
    }

    /// The number of tools.
    fn tool_count(&self) -> usize;

    /// The best hits, best first, at most as many as the query's limit.
    ///
    /// The list is empty if nothing was found. An error means that the query is invalid.
    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError>;

    /// What the scores of these tools are made of, in their order; `None` where there are no parts.
    fn parts(&self, query: &Query<'_>, keys: &[ToolKey]) -> Vec<Option<ScoreParts>> {
        let _ = query;
        vec![None; keys.len()]
    }

    /// The text of a query with its unknown words corrected; `None` if it stays as it is.
    fn corrected(&self, _text: &str) -> Option<String> {
        None
    }

    /// The tools that the query calls by name. They come before all others.
    fn called_by_name(&self, _query: &Query<'_>) -> Vec<&ToolKey> {
        Vec::new()
    }
}

/// The names of the strategies in a configuration.
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
    /// A model chooses among the candidates of [`HybridIndex`]; see [`Chooser`](crate::Chooser). The
    /// index itself ranks as `hybrid` does.
    Subagent,
}

impl StrategyName {
    /// All strategies, in the order of lists for people.
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

    /// Whether a query is a request in words, and not a text to search for.
    pub fn reads_requests(self) -> bool {
        matches!(self, Self::Hybrid | Self::Bm25 | Self::Embedding | Self::Subagent)
    }

    /// Whether the strategy uses the vectors of an encoder.
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

/// No strategy has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown search strategy `{name}`")]
pub struct UnknownStrategy {
    /// The unknown name, cut to 64 characters.
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
