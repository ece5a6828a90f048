//! The memory of queries and the calls that followed them.

mod lift;
mod past_queries;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use self::past_queries::PastQueries;
pub use self::{lift::KnownTools, past_queries::PastQuery};
use crate::{
    limits::{MAX_KEY_BYTES, MAX_PAST_QUERY_BYTES, cut},
    text::ToolKey,
};

/// Queries of the past and the tools that were called after them.
///
/// It is bounded: so many queries a tool and so many in all, of which those that were of no use for
/// longest go first. Its order of time is that of its own counting; it knows no clock. It is plain
/// serde, to be kept, looked at and erased by the caller.
///
/// Tools are remembered under keys of the caller's choice, which outlive what an index calls them;
/// [`KnownTools`] says which is which.
///
/// ```
/// use toolgate_search::{Hit, ToolKey, UsageMemory};
///
/// let mut memory = UsageMemory::default();
/// memory.record("tell the team about the outage", &ToolKey::from("chat_post"));
/// let hit = |key, score| Hit { key: ToolKey::from(key), score };
/// let hits = vec![hit("mail_send", 0.7), hit("chat_post", 0.6)];
/// let lifted = memory.lift("tell everybody in the team about an outage", hits, &());
/// assert_eq!(lifted[0].key.as_str(), "chat_post");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredMemory", into = "StoredMemory")]
pub struct UsageMemory {
    tools: BTreeMap<ToolKey, PastQueries>,
    /// How many queries of which tools have each word.
    words: HashMap<String, BTreeMap<ToolKey, usize>>,
    /// The number of the next use.
    next: u64,
    total: usize,
}

/// The stored form of a memory.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct StoredMemory {
    #[serde(default)]
    tools: BTreeMap<ToolKey, Vec<PastQuery>>,
}

impl UsageMemory {
    /// The largest number of queries of one tool.
    pub const MAX_FOR_TOOL: usize = 12;
    /// The largest number of queries.
    pub const MAX_TOTAL: usize = 4_096;

    /// Remembers that `tool` was called for `query`. A query without a word is not remembered.
    pub fn record(&mut self, query: &str, tool: &ToolKey) {
        let text = cut(query.trim(), MAX_PAST_QUERY_BYTES);
        if tool.as_str().len() > MAX_KEY_BYTES {
            return;
        }
        let Some(query) = PastQuery::new(text, self.next) else { return };
        self.next += 1;
        let past = self.tools.entry(tool.clone()).or_default();
        if past.use_again(&query) {
            return;
        }
        for word in query.words() {
            let having = self.words.entry(word.clone()).or_default();
            *having.entry(tool.clone()).or_default() += 1;
        }
        past.add(query);
        self.total += 1;
        if past.queries().len() > Self::MAX_FOR_TOOL {
            let gone = past.remove_oldest();
            self.uncount(tool, gone.as_slice());
        } else if self.total > Self::MAX_TOTAL {
            self.forget_oldest();
        }
    }

    /// What is remembered: each tool with the queries it was called for.
    pub fn tools(&self) -> impl Iterator<Item = (&ToolKey, &[PastQuery])> {
        self.tools.iter().map(|(key, past)| (key, past.queries()))
    }

    /// How many queries are remembered.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Removes the queries of a tool. Returns whether there were any.
    pub fn forget(&mut self, tool: &str) -> bool {
        let Some((key, gone)) = self.tools.remove_entry(tool) else { return false };
        self.uncount(&key, gone.queries());
        true
    }

    fn forget_oldest(&mut self) {
        let oldest = self.tools.iter().min_by_key(|(_, past)| past.oldest_use());
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
        let Some(past) = self.tools.get_mut(&key) else { return };
        let gone = past.remove_oldest();
        if past.queries().is_empty() {
            self.tools.remove(&key);
        }
        self.uncount(&key, gone.as_slice());
    }

    /// Removes deleted queries from the counts.
    fn uncount(&mut self, tool: &ToolKey, gone: &[PastQuery]) {
        self.total -= gone.len();
        for word in gone.iter().flat_map(PastQuery::words) {
            let Some(having) = self.words.get_mut(word) else { continue };
            if let Some(count) = having.get_mut(tool) {
                *count -= 1;
                if *count == 0 {
                    having.remove(tool);
                }
            }
            if having.is_empty() {
                self.words.remove(word);
            }
        }
    }
}

impl From<UsageMemory> for StoredMemory {
    fn from(memory: UsageMemory) -> Self {
        let tools = memory.tools.into_iter();
        Self { tools: tools.map(|(key, past)| (key, past.queries().to_vec())).collect() }
    }
}

/// A stored memory may have been edited, so the limits are applied again.
impl From<StoredMemory> for UsageMemory {
    fn from(stored: StoredMemory) -> Self {
        let mut uses: Vec<(ToolKey, PastQuery)> = Vec::new();
        for (key, past) in stored.tools {
            uses.extend(past.into_iter().map(|past| (key.clone(), past)));
        }
        uses.sort_by_key(|(_, past)| past.last_used());
        let mut memory = Self::default();
        // The newest are at the end; older ones would only be pushed out again.
        let skipped = uses.len().saturating_sub(Self::MAX_TOTAL);
        for (key, past) in uses.into_iter().skip(skipped) {
            memory.record(past.text(), &key);
        }
        memory
    }
}

#[cfg(test)]
mod tests;
