//! A query of the past, and how alike two queries are.

use serde::{Deserialize, Serialize};

use crate::{bm25::query_terms::words, dense::Meaning};

/// A query after which a tool was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct PastQuery {
    text: String,
    last_used: u64,
    likeness: Likeness,
}

/// The form in which a query is kept: what can be computed again is not.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    query: String,
    #[serde(default)]
    last_used: u64,
}

/// What is compared of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Likeness {
    meaning: Meaning,
    /// Sorted.
    words: Vec<String>,
}

impl PastQuery {
    /// A query, unless there is no word in it.
    pub(super) fn new(text: &str, now: u64) -> Option<Self> {
        let likeness = Likeness::of(text);
        let said = !likeness.words.is_empty();
        said.then(|| Self { text: text.to_owned(), last_used: now, likeness })
    }

    /// The query.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of its last use; a later use has a higher one.
    pub fn last_used(&self) -> u64 {
        self.last_used
    }

    pub(super) fn use_again(&mut self, now: u64) {
        self.last_used = now;
    }

    pub(super) fn likeness(&self) -> &Likeness {
        &self.likeness
    }
}

impl From<PastQuery> for Stored {
    fn from(past: PastQuery) -> Self {
        Self { query: past.text, last_used: past.last_used }
    }
}

impl From<Stored> for PastQuery {
    /// Computes nothing: the memory that this is read for does, for what it keeps.
    fn from(stored: Stored) -> Self {
        let likeness = Likeness::default();
        Self { text: stored.query, last_used: stored.last_used, likeness }
    }
}

impl Likeness {
    pub(super) fn of(text: &str) -> Self {
        let mut words = words(text);
        words.sort_unstable();
        Self { meaning: Meaning::of(text), words }
    }

    /// The words, sorted.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }

    /// Whether a word is among them.
    pub(super) fn has(&self, word: &String) -> bool {
        self.words.binary_search(word).is_ok()
    }

    /// The cosine of the two.
    pub(super) fn nearness(&self, other: &Self) -> f32 {
        self.meaning.nearness(&other.meaning)
    }
}
