//! The index of all tools.

use crate::{
    asides::{SplitRequest, join},
    encoder::ServerVectors,
    prepared::PreparedTools,
    query::{Hit, Query, ScoreParts},
    search_error::SearchError,
    strategy::{Strategy, StrategyName},
    text::{ServerText, ToolKey, ToolText},
    usage::Recall,
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
    name: StrategyName,
    strategy: Box<dyn Strategy>,
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
        Self { name, strategy }
    }

    /// Replaces the tools of `server` by `tools`.
    pub fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        self.strategy.replace_server(server, text, tools);
    }

    /// Whether [`Self::replace_prepared`] can be used.
    pub fn takes_prepared(&self) -> bool {
        self.strategy.takes_prepared()
    }

    /// Does what [`Self::replace_server`] does, in a fraction of the time: for tools with these keys
    /// and names, whose texts were prepared before, in the same order.
    pub fn replace_prepared(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        prepared: &PreparedTools,
    ) {
        self.strategy.replace_prepared(server, text, tools, prepared);
    }

    /// Sets the vectors that an encoder made of the current texts of `server`:
    /// [`tool_document`](crate::encoder::tool_document) and
    /// [`server_document`](crate::encoder::server_document). The cost is proportional to the
    /// server.
    pub fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        self.strategy.set_vectors(server, vectors);
    }

    /// Removes `server` and its tools. An unknown server is ignored.
    pub fn remove_server(&mut self, server: &str) {
        self.strategy.remove_server(server);
    }

    /// The number of tools.
    pub fn tool_count(&self) -> usize {
        self.strategy.tool_count()
    }

    /// The text of a query as it is searched for, if words that nobody knows are corrected in it.
    pub fn corrected(&self, text: &str) -> Option<String> {
        if self.name.reads_requests() { self.strategy.corrected(text) } else { None }
    }

    /// The best hits, best first.
    pub fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        let corrected = self.corrected(query.text);
        self.search_as_it_is(&Query { text: corrected.as_deref().unwrap_or(query.text), ..*query })
    }

    fn search_as_it_is(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        if self.name.reads_requests() {
            search_with_asides(self.strategy.as_ref(), query)
        } else {
            self.strategy.search(query)
        }
    }

    /// What the scores of these tools are made of, in their order, before past use changes the ranking; `None` where the
    /// strategy has no parts.
    pub fn parts(&self, query: &Query<'_>, keys: &[ToolKey]) -> Vec<Option<ScoreParts>> {
        let corrected = self.corrected(query.text);
        let text = corrected.as_deref().unwrap_or(query.text);
        let request = if self.name.reads_requests() { SplitRequest::read(text) } else { None };
        let text = request.as_ref().map_or(text, |request| &request.matter);
        self.strategy.parts(&Query { text, ..*query }, keys)
    }

    /// The best hits, best first. Tools that were useful for similar queries move up. Tools that
    /// the query names stay first. A regular expression has no usage memory.
    pub fn search_remembering(
        &self,
        query: &Query<'_>,
        recall: &Recall<'_>,
    ) -> Result<Vec<Hit>, SearchError> {
        if self.name == StrategyName::Regex || recall.memory.is_empty() {
            return self.search(query);
        }
        let corrected = self.corrected(query.text);
        let query = &Query { text: corrected.as_deref().unwrap_or(query.text), ..*query };
        let limit = query.limit.max(MEMORY_POOL);
        let hits = self.search_as_it_is(&Query { limit, ..*query })?;
        let called = self.strategy.called_by_name(query);
        let (mut named, rest): (Vec<Hit>, Vec<Hit>) =
            hits.into_iter().partition(|hit| called.contains(&&hit.key));
        let lifted = recall.lift(query.text, rest).into_iter();
        // A tool from the usage memory may be among the named ones.
        let new: Vec<Hit> =
            lifted.filter(|hit| named.iter().all(|named| named.key != hit.key)).collect();
        named.extend(new);
        named.truncate(query.limit);
        Ok(named)
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
