//! Searches for tools.

use std::{fmt, ops::Deref, pin::Pin};

use thiserror::Error;
use toolgate_host::{FoundTool, ToolQuery};

use crate::Session;

/// A search that has not begun. Await it.
///
/// ```no_run
/// # async fn example(session: toolgate::Session) -> Result<(), Box<dyn std::error::Error>> {
/// let hits = session.search("create an issue").limit(3).await?;
/// for hit in &hits {
///     println!("{}: {}", hit.name, hit.description);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a search begins when it is awaited"]
pub struct Search<'a> {
    session: &'a Session,
    query: ToolQuery,
}

/// The tools that a search found, best first. It is a slice of [`SearchHit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResults {
    hits: Vec<SearchHit>,
    notes: Vec<String>,
}

/// A tool that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchHit {
    /// The exposed name, which [`Session::call`] and scripts take.
    pub name: String,
    /// The server of the tool.
    pub server: String,
    /// What the tool does, in the words of its server.
    pub description: String,
    /// Whether the session listed it before the search.
    pub is_loaded: bool,
}

/// Why a search found nothing. Another query may find something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SearchFailed(String);

impl<'a> Search<'a> {
    pub(crate) fn new(session: &'a Session, query: String) -> Self {
        Self { session, query: ToolQuery { queries: vec![query], ..ToolQuery::default() } }
    }

    /// Adds another query. The results of all queries are merged.
    pub fn or(mut self, query: impl Into<String>) -> Self {
        self.query.queries.push(query.into());
        self
    }

    /// Finds at most so many tools, and never more than 50. Without it the configuration decides.
    pub fn limit(mut self, tools: usize) -> Self {
        self.query.limit = Some(tools);
        self
    }

    /// Searches one server only. If there is no such server, its name helps to rank all tools.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.query.server = Some(name.into());
        self
    }
}

impl<'a> IntoFuture for Search<'a> {
    type Output = Result<SearchResults, SearchFailed>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let found = self.session.inner.find(&self.query).await;
            let found = found.map_err(|error| SearchFailed(error.to_string()))?;
            let notes = found.notes().map(str::to_owned).collect();
            Ok(SearchResults { hits: found.tools.into_iter().map(hit).collect(), notes })
        })
    }
}

fn hit(FoundTool { tool, is_loaded, .. }: FoundTool) -> SearchHit {
    SearchHit {
        name: tool.name.to_string(),
        server: tool.id.server.to_string(),
        description: tool.definition.description().to_owned(),
        is_loaded,
    }
}

impl SearchResults {
    /// Why the ranking is not the configured one, such as an encoder that did not answer.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Deref for SearchResults {
    type Target = [SearchHit];

    fn deref(&self) -> &[SearchHit] {
        &self.hits
    }
}

impl IntoIterator for SearchResults {
    type Item = SearchHit;
    type IntoIter = std::vec::IntoIter<SearchHit>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.into_iter()
    }
}

impl<'a> IntoIterator for &'a SearchResults {
    type Item = &'a SearchHit;
    type IntoIter = std::slice::Iter<'a, SearchHit>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.iter()
    }
}

impl fmt::Debug for Search<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Search").field("query", &self.query).finish_non_exhaustive()
    }
}
