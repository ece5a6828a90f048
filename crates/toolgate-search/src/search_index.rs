//! The index of all tools.

use crate::{
    asides::{SplitRequest, join},
    encoder::ServerVectors,
    fusion::round_robin,
    query::{Hit, Query},
    search_error::SearchError,
    strategy::{Strategy, StrategyName},
    text::{ServerText, ToolKey, ToolText},
    usage::{KnownTools, UsageMemory},
};

/// The most queries of one call. Further ones are ignored.
pub const MAX_QUERIES: usize = 16;

/// How many hits the usage memory can move up. Hits below them are too far from the query.
const MEMORY_POOL: usize = 100;

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
/// let hits = index.search(&Query::new("please file an issue", 5))?;
/// assert_eq!(hits[0].key.as_str(), "tracker_create_issue");
/// # Ok::<(), toolgate_search::SearchError>(())
/// ```
#[derive(Debug)]
pub struct SearchIndex {
    /// The first one ranks queries without a strategy.
    strategies: Vec<(StrategyName, Box<dyn Strategy>)>,
}

impl SearchIndex {
    /// An empty index with the default strategy.
    pub fn new() -> Self {
        Self::ranked_by(StrategyName::default())
    }

    /// An empty index with this strategy.
    pub fn ranked_by(strategy: StrategyName) -> Self {
        Self::with_strategy(strategy, strategy.build())
    }

    /// An index with the caller's own strategy, which may already contain tools.
    pub fn with_strategy(name: StrategyName, strategy: Box<dyn Strategy>) -> Self {
        Self { strategies: vec![(name, strategy)] }
    }

    /// Adds a strategy that queries can select. Must be called before the first server is added.
    /// Each strategy takes its own memory.
    #[must_use]
    pub fn or_ranked_by(mut self, strategy: StrategyName) -> Self {
        if self.strategies.iter().all(|(held, _)| *held != strategy) {
            self.strategies.push((strategy, strategy.build()));
        }
        self
    }

    /// Replaces the tools of `server` by `tools`.
    pub fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        for (_, strategy) in &mut self.strategies {
            strategy.replace_server(server, text, tools);
        }
    }

    /// Sets the vectors that an encoder made of the current texts of `server`:
    /// [`tool_document`](crate::encoder::tool_document) and
    /// [`server_document`](crate::encoder::server_document). The cost is proportional to the
    /// server.
    pub fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        for (_, strategy) in &mut self.strategies {
            strategy.set_vectors(server, vectors);
        }
    }

    /// Removes `server` and its tools. An unknown server is ignored.
    pub fn remove_server(&mut self, server: &str) {
        for (_, strategy) in &mut self.strategies {
            strategy.remove_server(server);
        }
    }

    /// The number of tools.
    pub fn tool_count(&self) -> usize {
        self.strategies.first().map_or(0, |(_, strategy)| strategy.tool_count())
    }

    /// The best hits, best first.
    pub fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        match (self.chosen(query), query.strategy) {
            (Some((name, strategy)), _) if name.reads_requests() => {
                search_with_asides(strategy.as_ref(), query)
            }
            (Some((_, strategy)), _) => strategy.search(query),
            (None, Some(wanted)) => Err(SearchError::NotHeld { wanted }),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The best hits, best first. Tools that were useful for similar queries move up. Tools that
    /// the query names stay first. A regular expression has no usage memory.
    pub fn search_remembering(
        &self,
        query: &Query<'_>,
        memory: &UsageMemory,
        tools: &dyn KnownTools,
    ) -> Result<Vec<Hit>, SearchError> {
        let strategy = match self.chosen(query) {
            Some((name, strategy)) if *name != StrategyName::Regex && !memory.is_empty() => {
                strategy
            }
            _ => return self.search(query),
        };
        let hits = self.search(&Query { limit: query.limit.max(MEMORY_POOL), ..*query })?;
        let called = strategy.called_by_name(query);
        let (mut named, rest): (Vec<Hit>, Vec<Hit>) =
            hits.into_iter().partition(|hit| called.contains(&&hit.key));
        let lifted = memory.lift(query.text, rest, tools).into_iter();
        // A tool from the usage memory may be among the named ones.
        let new: Vec<Hit> =
            lifted.filter(|hit| named.iter().all(|named| named.key != hit.key)).collect();
        named.extend(new);
        named.truncate(query.limit);
        Ok(named)
    }

    /// The hits of several queries in one list of at most `limit`: the best of each query in the
    /// order of the queries, then the second of each, and so on, every tool once.
    ///
    /// Scores of different queries cannot be compared, so each hit keeps the score of the query
    /// that brought it in, and the order of the list is the ranking. Queries past [`MAX_QUERIES`]
    /// are ignored. One query that is an error makes the call one.
    pub fn search_many(
        &self,
        queries: &[Query<'_>],
        limit: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let lists: Result<_, _> =
            queries.iter().take(MAX_QUERIES).map(|query| self.search(query)).collect();
        Ok(round_robin(lists?, limit))
    }

    /// The strategy that answers a query.
    fn chosen(&self, query: &Query<'_>) -> Option<&(StrategyName, Box<dyn Strategy>)> {
        match query.strategy {
            Some(wanted) => self.strategies.iter().find(|(name, _)| *name == wanted),
            None => self.strategies.first(),
        }
    }
}

fn search_with_asides(strategy: &dyn Strategy, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
    let Some(request) = SplitRequest::read(query.text) else {
        return strategy.search(query);
    };
    let hits = strategy.search(&Query { text: &request.matter, ..*query })?;
    let mut asides = Vec::new();
    for text in request.asides {
        // The vector is that of the whole query.
        asides.extend(strategy.search(&Query { text, limit: 1, vector: None, ..*query })?);
    }
    Ok(join(hits, asides, query.limit))
}

impl Default for SearchIndex {
    fn default() -> Self {
        Self::new()
    }
}
