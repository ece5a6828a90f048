//! Past queries, and those of one tool.

use serde::{Deserialize, Serialize};

use crate::{
    bm25::query_terms::words,
    dense::{CommonMeaning, Meaning},
};

/// A query after which a tool was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredQuery", into = "StoredQuery")]
pub struct PastQuery {
    text: String,
    last_used: u64,
    said: QueryContent,
}

/// The stored form of a query, without what can be computed again.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredQuery {
    query: String,
    #[serde(default)]
    last_used: u64,
}

/// The parts of a query that are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct QueryContent {
    pub(super) meaning: Meaning,
    /// Distinct.
    pub(super) words: Vec<String>,
}

/// The queries that one tool was called for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PastQueries {
    queries: Vec<PastQuery>,
    meaning: CommonMeaning,
}

impl PastQuery {
    /// A query, unless there is no word in it.
    pub(super) fn new(text: &str, now: u64) -> Option<Self> {
        let said = QueryContent::of(text);
        let some = !said.words.is_empty();
        some.then(|| Self { text: text.to_owned(), last_used: now, said })
    }

    /// The query.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of its last use; a later use has a higher one.
    pub fn last_used(&self) -> u64 {
        self.last_used
    }

    pub(super) fn words(&self) -> &[String] {
        &self.said.words
    }
}

impl PastQueries {
    /// Whether the query was there already; then it is now the last one used.
    pub(super) fn use_again(&mut self, query: &PastQuery) -> bool {
        let known = self.queries.iter_mut().find(|known| known.text == query.text);
        known.map(|known| known.last_used = query.last_used).is_some()
    }

    pub(super) fn add(&mut self, query: PastQuery) {
        self.meaning.add(&query.said.meaning);
        self.queries.push(query);
    }

    /// Takes out the query that was of no use for longest.
    pub(super) fn remove_oldest(&mut self) -> Option<PastQuery> {
        let places = self.queries.iter().enumerate();
        let (oldest, _) = places.min_by_key(|(_, query)| query.last_used)?;
        let gone = self.queries.remove(oldest);
        self.meaning.remove(&gone.said.meaning);
        Some(gone)
    }

    /// When the oldest of its queries was last of use.
    pub(super) fn oldest_use(&self) -> Option<u64> {
        self.queries.iter().map(PastQuery::last_used).min()
    }

    pub(super) fn queries(&self) -> &[PastQuery] {
        &self.queries
    }

    /// The cosine of a query to what those of the past have in common.
    pub(super) fn nearness(&self, asked: &QueryContent) -> f32 {
        self.meaning.nearness(&asked.meaning)
    }
}

impl QueryContent {
    pub(super) fn of(text: &str) -> Self {
        Self { meaning: Meaning::of(text), words: words(text) }
    }
}

impl From<PastQuery> for StoredQuery {
    fn from(past: PastQuery) -> Self {
        Self { query: past.text, last_used: past.last_used }
    }
}

impl From<StoredQuery> for PastQuery {
    /// Computes nothing: the memory that this is read for does, for what it keeps.
    fn from(stored: StoredQuery) -> Self {
        Self { text: stored.query, last_used: stored.last_used, said: QueryContent::default() }
    }
}
