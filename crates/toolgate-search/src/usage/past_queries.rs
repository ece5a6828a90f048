//! Past queries, and those of one tool.

use serde::{Deserialize, Serialize};

use crate::{bm25::query_terms::words, dense::Meaning};

/// A query after which a caller called a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredQuery", into = "StoredQuery")]
pub struct PastQuery {
    text: String,
    caller: String,
    good: u64,
    against: u64,
    last_used: u64,
    pub(super) said: QueryContent,
}

/// The stored form of a query, without what can be computed again.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredQuery {
    query: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    caller: String,
    #[serde(default = "one")]
    good: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    against: u64,
    #[serde(default)]
    last_used: u64,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is known of one or more calls of a tool for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastCalls<'a> {
    /// The query.
    pub query: &'a str,
    /// Who asked. Callers who are not told apart have the same text, for example none.
    pub caller: &'a str,
    /// How many calls were of use.
    pub good: u64,
    /// How many calls failed, or were followed by a call of another tool for the same query.
    pub against: u64,
}

impl<'a> PastCalls<'a> {
    /// One call that was of use.
    pub fn good(query: &'a str) -> Self {
        Self { query, caller: "", good: 1, against: 0 }
    }

    /// One call that was of no use.
    pub fn against(query: &'a str) -> Self {
        Self { query, caller: "", good: 0, against: 1 }
    }

    /// The same by this caller.
    #[must_use]
    pub fn by(self, caller: &'a str) -> Self {
        Self { caller, ..self }
    }
}

/// The parts of a query that are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct QueryContent {
    pub(super) meaning: Meaning,
    /// Distinct.
    pub(super) words: Vec<String>,
}

/// The weight of a query with so few words that say what it is about.
const VAGUE: [f32; 2] = [0.1, 0.5];

/// Words that say nothing of what a tool is for, as stems. Sorted.
#[rustfmt::skip]
const GENERAL: &[&str] = &[
    "action", "all", "anyth", "ask", "call", "check", "data", "do", "everyth", "execut", "fetch", "find", "function",
    "get", "give", "info", "inform", "item", "list", "lookup", "make", "new", "one", "perform", "queri", "read",
    "retriev", "return", "run", "search", "see", "show", "some", "someth", "stuff", "task", "test", "thing", "tool",
    "tri", "use", "work",
];

impl PastQuery {
    /// A query without calls; `None` if there is no word in it.
    pub(super) fn new(text: &str, caller: &str) -> Option<Self> {
        let said = QueryContent::of(text);
        let (text, caller) = (text.to_owned(), caller.to_owned());
        let some = !said.words.is_empty();
        some.then_some(Self { text, caller, good: 0, against: 0, last_used: 0, said })
    }

    /// The query.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Who asked.
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// How many calls were of use.
    pub fn good(&self) -> u64 {
        self.good
    }

    /// How many calls failed, or were followed by a call of another tool.
    pub fn against(&self) -> u64 {
        self.against
    }

    /// The number of its last use; a later use has a higher one.
    pub fn last_used(&self) -> u64 {
        self.last_used
    }

    pub(super) fn add(&mut self, good: u64, against: u64, now: u64) {
        self.good = self.good.saturating_add(good);
        self.against = self.against.saturating_add(against);
        self.last_used = now;
    }

    /// How many more calls were of use than not.
    pub(super) fn net(&self) -> u64 {
        self.good.saturating_sub(self.against)
    }

    /// How much it says about the tool, from 0 to 1: little if it is vague, nothing if as many calls
    /// were of no use as of use.
    #[expect(clippy::cast_precision_loss, reason = "a weight does not need the last digits")]
    pub(super) fn weight(&self) -> f32 {
        let all = self.good.saturating_add(self.against).max(1);
        self.said.specificity() * self.net() as f32 / all as f32
    }
}

impl QueryContent {
    pub(super) fn of(text: &str) -> Self {
        Self { meaning: Meaning::of(text), words: words(text) }
    }

    /// From 0 to 1: how far the query says what it is about.
    pub(super) fn specificity(&self) -> f32 {
        let general = |word: &&String| GENERAL.binary_search(&word.as_str()).is_ok();
        let specific = self.words.iter().filter(|word| !general(word)).count();
        VAGUE.get(specific).copied().unwrap_or(1.0)
    }
}

impl From<PastQuery> for StoredQuery {
    fn from(past: PastQuery) -> Self {
        let PastQuery { text: query, caller, good, against, last_used, .. } = past;
        Self { query, caller, good, against, last_used }
    }
}

impl From<StoredQuery> for PastQuery {
    /// Computes nothing: the memory that this is read for does, for what it keeps.
    fn from(stored: StoredQuery) -> Self {
        let StoredQuery { query: text, caller, good, against, last_used } = stored;
        Self { text, caller, good, against, last_used, said: QueryContent::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_words_are_sorted_stems() {
        assert!(GENERAL.is_sorted_by(|left, right| left < right));
        for word in GENERAL {
            assert_eq!(words(word), [*word]);
        }
    }

    #[test]
    fn vague_queries_say_little() {
        let specificity = |text| QueryContent::of(text).specificity();
        assert!(specificity("search") < 0.2 && specificity("find some data") < 0.2);
        assert!((specificity("search mail") - 0.5).abs() < 1e-6);
        assert!((specificity("search mail of Ada") - 1.0).abs() < 1e-6);
    }
}
