//! Which query led to which call, and what follows from it.

mod kept;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use self::kept::Likeness;
pub use self::kept::PastQuery;
use crate::{
    limits::{MAX_KEY_BYTES, MAX_PAST_QUERY_BYTES, cut},
    query::Hit,
    text::ToolKey,
};

/// Queries of the past and the tools that were called after them.
///
/// It is bounded: so many queries a tool and so many in all, of which those that were of no use for
/// longest go first. Its order of time is that of its own counting; it knows no clock. It is plain
/// serde, to be kept, looked at and erased by the caller.
///
/// ```
/// use toolgate_search::{Hit, ToolKey, UsageMemory};
///
/// let mut memory = UsageMemory::default();
/// memory.record("tell the team about the outage", &ToolKey::from("chat_post"));
/// let hit = |key, score| Hit { key: ToolKey::from(key), score };
/// let hits = vec![hit("mail_send", 0.7), hit("chat_post", 0.6)];
/// let lifted = memory.lift("tell everybody in the team about an outage", hits);
/// assert_eq!(lifted[0].key.as_str(), "chat_post");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct UsageMemory {
    tools: BTreeMap<ToolKey, Vec<PastQuery>>,
    /// How many queries have each word.
    words: HashMap<String, usize>,
    /// The number of the next use.
    next: u64,
    total: usize,
}

/// The form in which a memory is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    tools: BTreeMap<ToolKey, Vec<PastQuery>>,
}

/// How many queries are kept for one tool.
const MAX_FOR_TOOL: usize = 12;
/// How many queries are kept in all.
const MAX_TOTAL: usize = 4_096;

/// What queries just like this one add, where the best hit has 1. With more, tools that have a past
/// gain a little and those that have none lose a lot.
const LIFT: f32 = 2.0;
/// What meaning counts; common words count the rest.
const MEANING: f32 = 0.5;
/// Up to this cosine two queries have nothing to do with each other.
const UNLIKE: f32 = 0.4;
/// Up to this share of common words a query has nothing to do with a tool's past.
const UNHEARD: f32 = 0.1;
/// What the second most alike query of the past counts beside the first.
const SECOND: f32 = 0.5;
/// How soon a further mention of a word stops to matter.
const SATURATION: f32 = 0.3;
/// A hit with less than this of the best one's score does not get past it: the best is then one that
/// the query calls by name.
const FAR: f32 = 0.125;

impl UsageMemory {
    /// Remembers that `tool` was called for `query`. A query without a word is not remembered.
    pub fn record(&mut self, query: &str, tool: &ToolKey) {
        let text = cut(query.trim(), MAX_PAST_QUERY_BYTES);
        if tool.as_str().len() > MAX_KEY_BYTES {
            return;
        }
        let Some(past) = PastQuery::new(text, self.next) else { return };
        self.next += 1;
        let kept = self.tools.entry(tool.clone()).or_default();
        if let Some(known) = kept.iter_mut().find(|known| known.text() == past.text()) {
            known.use_again(past.last_used());
            return;
        }
        for word in past.likeness().words() {
            *self.words.entry(word.clone()).or_default() += 1;
        }
        kept.push(past);
        self.total += 1;
        if kept.len() > MAX_FOR_TOOL {
            let gone = remove_oldest(kept);
            self.uncount(gone.as_slice());
        } else if self.total > MAX_TOTAL {
            self.forget_oldest();
        }
    }

    /// Adds to the scores of hits what their past says, and puts them in order. The scores are then
    /// shares of the best that came in.
    ///
    /// Nothing is taken away from a tool without a past: it stands where it stood, behind those that
    /// were of use for such a query before.
    pub fn lift(&self, query: &str, hits: Vec<Hit>) -> Vec<Hit> {
        let asked = Likeness::of(cut(query.trim(), MAX_PAST_QUERY_BYTES));
        let rarities: Vec<f32> = asked.words().iter().map(|word| self.rarity(word)).collect();
        let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
        if best <= 0.0 {
            return hits;
        }
        let mut lifted: Vec<Hit> = hits
            .into_iter()
            .map(|hit| {
                let share = hit.score / best;
                let score = share + LIFT * self.usefulness(&asked, &rarities, &hit.key);
                let most = if share < FAR { 1.0 } else { f32::INFINITY };
                Hit { score: score.min(most), ..hit }
            })
            .collect();
        // A stable sort: among equals the ranking that came in decides.
        lifted.sort_by(|left, right| right.score.total_cmp(&left.score));
        lifted
    }

    /// What is remembered: each tool with the queries it was called for.
    pub fn tools(&self) -> impl Iterator<Item = (&ToolKey, &[PastQuery])> {
        self.tools.iter().map(|(key, past)| (key, past.as_slice()))
    }

    /// How many queries are remembered.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Forgets what is remembered of a tool; says whether there was anything.
    pub fn forget(&mut self, tool: &str) -> bool {
        let gone = self.tools.remove(tool);
        self.uncount(gone.as_deref().unwrap_or_default());
        gone.is_some()
    }

    /// How useful a tool was for queries like this one: 0 to a little more than 1.
    fn usefulness(&self, asked: &Likeness, rarities: &[f32], tool: &ToolKey) -> f32 {
        let Some(past) = self.tools.get(tool) else { return 0.0 };
        let (mut first, mut second) = (0.0_f32, 0.0_f32);
        for past in past {
            let near = above(UNLIKE, past.likeness().nearness(asked));
            if near > first {
                (first, second) = (near, first);
            } else {
                second = second.max(near);
            }
        }
        // Words are held against all of the past at once: one query has one of them, one another.
        let (mut heard, mut all) = (0.0, 0.0);
        for (word, rarity) in asked.words().iter().zip(rarities) {
            let mentions = count(past.iter().filter(|past| past.likeness().has(word)).count());
            heard += rarity * mentions / (mentions + SATURATION);
            all += rarity;
        }
        let heard = if all > 0.0 { above(UNHEARD, heard / all) } else { 0.0 };
        MEANING * (first + SECOND * second) + (1.0 - MEANING) * heard
    }

    /// How much it tells that two queries share this word.
    fn rarity(&self, word: &str) -> f32 {
        let having = self.words.get(word).copied().unwrap_or_default();
        ((count(self.total) + 1.0) / (count(having) + 0.5)).ln().max(0.0)
    }

    fn forget_oldest(&mut self) {
        let last_use = |past: &Vec<PastQuery>| past.iter().map(PastQuery::last_used).min();
        let oldest = self.tools.iter().min_by_key(|(_, past)| last_use(past));
        let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
        let Some(past) = self.tools.get_mut(&key) else { return };
        let gone = remove_oldest(past);
        if past.is_empty() {
            self.tools.remove(&key);
        }
        self.uncount(gone.as_slice());
    }

    /// Takes queries that are gone out of the counts.
    fn uncount(&mut self, gone: &[PastQuery]) {
        self.total -= gone.len();
        for word in gone.iter().flat_map(|past| past.likeness().words()) {
            if let Some(having) = self.words.get_mut(word) {
                *having -= 1;
                if *having == 0 {
                    self.words.remove(word);
                }
            }
        }
    }
}

fn remove_oldest(past: &mut Vec<PastQuery>) -> Option<PastQuery> {
    let places = past.iter().enumerate();
    let (oldest, _) = places.min_by_key(|(_, past)| past.last_used())?;
    Some(past.remove(oldest))
}

/// What a number is above a floor, so that 1 stays 1.
fn above(floor: f32, number: f32) -> f32 {
    ((number - floor) / (1.0 - floor)).clamp(0.0, 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
fn count(number: usize) -> f32 {
    number as f32
}

impl From<UsageMemory> for Stored {
    fn from(memory: UsageMemory) -> Self {
        Self { tools: memory.tools }
    }
}

/// What comes from a file may have been edited: the bounds hold all the same.
impl From<Stored> for UsageMemory {
    fn from(stored: Stored) -> Self {
        let mut uses: Vec<(ToolKey, PastQuery)> = Vec::new();
        for (key, past) in stored.tools {
            uses.extend(past.into_iter().map(|past| (key.clone(), past)));
        }
        uses.sort_by_key(|(_, past)| past.last_used());
        let mut memory = Self::default();
        // The newest are at the end; older ones would only be pushed out again.
        let skipped = uses.len().saturating_sub(MAX_TOTAL);
        for (key, past) in uses.into_iter().skip(skipped) {
            memory.record(past.text(), &key);
        }
        memory
    }
}

#[cfg(test)]
mod tests;
