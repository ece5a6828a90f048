//! The memory of queries and the calls that followed them.

mod lift;
mod past_queries;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

pub use self::{
    lift::{KnownTools, Recall},
    past_queries::{PastCalls, PastQuery},
};
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
/// use toolgate_search::{Hit, Recall, ToolKey, UsageMemory};
///
/// let mut memory = UsageMemory::default();
/// memory.record("tell the team about the outage", &ToolKey::from("chat_post"));
/// memory.record("tell the whole team about an outage", &ToolKey::from("chat_post"));
/// let hit = |key, score| Hit::new(ToolKey::from(key), score);
/// let hits = vec![hit("mail_send", 0.7), hit("chat_post", 0.6)];
/// let recall = Recall { memory: &memory, tools: &(), caller: "" };
/// let lifted = recall.lift("tell everybody in the team about an outage", hits);
/// assert_eq!(lifted[0].key.as_str(), "chat_post");
/// assert!(lifted[0].is_remembered);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredMemory", into = "StoredMemory")]
pub struct UsageMemory {
    tools: BTreeMap<ToolKey, Vec<PastQuery>>,
    /// The number of the next use.
    next: u64,
    total: usize,
    /// How many queries of each caller there are.
    callers: HashMap<String, usize>,
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

    /// Remembers one call of `tool` for `query` that was of use.
    pub fn record(&mut self, query: &str, tool: &ToolKey) {
        self.record_calls(&PastCalls::good(query), tool);
    }

    /// Remembers calls of `tool`. A query without a word is not remembered.
    ///
    /// If there are too many queries, the oldest one goes of the caller who has the most of them. So
    /// no caller can push out what others did.
    pub fn record_calls(&mut self, calls: &PastCalls<'_>, tool: &ToolKey) {
        let text = cut(calls.query.trim(), MAX_PAST_QUERY_BYTES);
        let caller = cut(calls.caller, MAX_KEY_BYTES);
        if tool.as_str().len() > MAX_KEY_BYTES {
            return;
        }
        let now = self.next;
        let queries = self.tools.get_mut(tool);
        let mut known = queries.into_iter().flatten();
        if let Some(known) = known.find(|past| past.text() == text && past.caller() == caller) {
            self.next += 1;
            known.add(calls.good, calls.against, now);
            return;
        }
        let Some(mut query) = PastQuery::new(text, caller) else { return };
        self.next += 1;
        query.add(calls.good, calls.against, now);
        *self.callers.entry(caller.to_owned()).or_default() += 1;
        self.total += 1;
        let queries = self.tools.entry(tool.clone()).or_default();
        queries.push(query);
        if queries.len() > Self::MAX_FOR_TOOL {
            let mut of_callers: HashMap<&str, usize> = HashMap::new();
            for query in queries.iter() {
                *of_callers.entry(query.caller()).or_default() += 1;
            }
            let place = oldest(queries.iter().enumerate(), |query| of_callers[query.caller()]);
            self.remove(&tool.clone(), place);
        } else if self.total > Self::MAX_TOTAL {
            self.forget_oldest();
        }
    }

    /// What is remembered: each tool with the queries it was called for.
    pub fn tools(&self) -> impl Iterator<Item = (&ToolKey, &[PastQuery])> {
        self.tools.iter().map(|(key, queries)| (key, queries.as_slice()))
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
        let Some(gone) = self.tools.remove(tool) else { return false };
        for query in &gone {
            self.uncount(query);
        }
        true
    }

    fn forget_oldest(&mut self) {
        let all = self.tools.iter().flat_map(|(key, queries)| {
            queries.iter().enumerate().map(move |(place, query)| ((key, place), query))
        });
        let of_caller =
            |query: &PastQuery| self.callers.get(query.caller()).copied().unwrap_or_default();
        if let Some((key, place)) = oldest(all, of_caller).map(|(key, place)| (key.clone(), place))
        {
            self.remove(&key, Some(place));
        }
    }

    fn remove(&mut self, tool: &ToolKey, place: Option<usize>) {
        let Some((queries, place)) = self.tools.get_mut(tool).zip(place) else { return };
        let gone = queries.remove(place);
        if queries.is_empty() {
            self.tools.remove(tool);
        }
        self.uncount(&gone);
    }

    /// Removes a deleted query from the counts.
    fn uncount(&mut self, gone: &PastQuery) {
        self.total -= 1;
        if let Some(count) = self.callers.get_mut(gone.caller()) {
            *count -= 1;
            if *count == 0 {
                self.callers.remove(gone.caller());
            }
        }
    }
}

/// The place of the query that was of no use for longest, of the caller who has the most.
fn oldest<'q, P>(
    queries: impl Iterator<Item = (P, &'q PastQuery)>,
    of_caller: impl Fn(&PastQuery) -> usize,
) -> Option<P> {
    let age = |query: &PastQuery| (std::cmp::Reverse(of_caller(query)), query.last_used());
    queries.min_by_key(|(_, query)| age(query)).map(|(place, _)| place)
}

impl From<UsageMemory> for StoredMemory {
    fn from(memory: UsageMemory) -> Self {
        Self { tools: memory.tools }
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
        for (key, past) in uses {
            let (good, against) = (past.good(), past.against());
            let calls = PastCalls { query: past.text(), caller: past.caller(), good, against };
            memory.record_calls(&calls, &key);
        }
        memory
    }
}

#[cfg(test)]
mod tests;
