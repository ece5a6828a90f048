//! The index that the rest of the program holds.

use crate::{
    fusion::round_robin,
    query::{Hit, Query},
    strategy::{Strategy, StrategyName},
    text::{ServerText, ToolKey, ToolText},
};

/// How many of the queries of one call are looked at; the rest is ignored.
pub const MAX_QUERIES: usize = 16;

/// All tools of all servers, ready to be searched.
///
/// ```
/// use toolgate_search::{Query, SearchIndex, ServerText, ToolKey, ToolText};
///
/// let mut index = SearchIndex::new();
/// let tool = |name, description| ToolText { name, description, ..ToolText::default() };
/// index.replace_server(
///     "tracker",
///     ServerText { name: "tracker", description: "Bugs and milestones" },
///     &[
///         (ToolKey::from("tracker_create_issue"), tool("create_issue", "Open a new issue")),
///         (ToolKey::from("tracker_list_labels"), tool("list_labels", "List all labels")),
///     ],
/// );
///
/// let hits = index.search(&Query::new("please file an issue", 5));
/// assert_eq!(hits[0].key.as_str(), "tracker_create_issue");
/// ```
#[derive(Debug)]
pub struct SearchIndex {
    strategy: Box<dyn Strategy>,
}

impl SearchIndex {
    /// An empty index with the default strategy.
    pub fn new() -> Self {
        Self::with_strategy(StrategyName::default().build())
    }

    /// An index over a strategy of the caller's choice, with the tools it already holds.
    pub fn with_strategy(strategy: Box<dyn Strategy>) -> Self {
        Self { strategy }
    }

    /// Makes `tools` the tools of `server`, in place of those it had.
    pub fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        self.strategy.replace_server(server, text, tools);
    }

    /// Forgets `server` and its tools; does nothing where it is unknown.
    pub fn remove_server(&mut self, server: &str) {
        self.strategy.remove_server(server);
    }

    /// How many tools can be found.
    pub fn tool_count(&self) -> usize {
        self.strategy.tool_count()
    }

    /// The best hits, best first.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit> {
        self.strategy.search(query)
    }

    /// The hits of several queries in one list of at most `limit`: the best of each query in the
    /// order of the queries, then the second of each, and so on, every tool once.
    ///
    /// Scores of different queries cannot be compared, so each hit keeps the score of the query
    /// that brought it in, and the order of the list is the ranking. Queries past [`MAX_QUERIES`]
    /// are ignored.
    pub fn search_many(&self, queries: &[Query<'_>], limit: usize) -> Vec<Hit> {
        let lists = queries.iter().take(MAX_QUERIES).map(|query| self.search(query)).collect();
        round_robin(lists, limit)
    }
}

impl Default for SearchIndex {
    fn default() -> Self {
        Self::new()
    }
}
