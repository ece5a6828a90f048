//! Re-ranks hits by past use.

use std::collections::{HashMap, HashSet};

use super::{UsageMemory, past_queries::QueryContent};
use crate::{
    limits::{MAX_PAST_QUERY_BYTES, cut},
    query::Hit,
    text::ToolKey,
};

/// Which tool of an index is which tool of a memory.
///
/// `()` is for those who use the same keys for both; it brings nothing in.
pub trait KnownTools {
    /// The key under which a tool of the index is remembered.
    fn remembered(&self, found: &ToolKey) -> ToolKey;

    /// The key in the index of a tool that is remembered, unless it is gone or not wanted here.
    fn wanted(&self, remembered: &ToolKey) -> Option<ToolKey>;
}

impl KnownTools for () {
    fn remembered(&self, found: &ToolKey) -> ToolKey {
        found.clone()
    }

    fn wanted(&self, _: &ToolKey) -> Option<ToolKey> {
        None
    }
}

/// What the past counts, where the best hit has 1.
const LIFT: f32 = 2.0;
/// What common words count beside common meaning.
const WORDS: f32 = 1.5;
/// What the past of a tool would say that has none: this, and a share of what the ranking says. More
/// favours what is new, less what is known.
const EXPECTED: f32 = 0.2;
/// That share.
const EXPECTED_SHARE: f32 = 0.5;
/// How many past queries it takes for a tool to be held half as unfit as they say. One alone does
/// not tell what else a tool is good for.
const DOUBT: f32 = 1.0;
/// A memory of few queries does not tell which words are rare; it is held for one of this many more.
const YOUNG: f32 = 100.0;
/// How useful a tool has to have been to be brought in where the ranking does not have it.
const BROUGHT_IN: f32 = 0.45;

impl UsageMemory {
    /// Puts hits, best first, into the order that follows from them and from the past. The scores
    /// are new ones.
    ///
    /// A tool without a past gets what its place makes likely, so that it is neither pushed out by
    /// those that were of use for something else nor put before those that were of use for this. A
    /// tool that was of use for such a query is brought in even where the ranking did not find it.
    pub fn lift(&self, query: &str, mut hits: Vec<Hit>, tools: &dyn KnownTools) -> Vec<Hit> {
        let asked = QueryContent::of(cut(query.trim(), MAX_PAST_QUERY_BYTES));
        if self.is_empty() || asked.words.is_empty() {
            return hits;
        }
        let heard = self.heard(&asked);
        let useful = |tool: &ToolKey| -> Option<(f32, f32)> {
            let past = self.tools.get(tool)?;
            let words = heard.get(tool).copied().unwrap_or_default();
            let useful = past.nearness(&asked).max(0.0) + WORDS * words;
            Some((useful, count(past.queries().len())))
        };
        let best = hits.first().map_or(1.0, |hit| hit.score.max(f32::MIN_POSITIVE));
        for hit in &mut hits {
            let share = hit.score / best;
            hit.score = lifted(share, useful(&tools.remembered(&hit.key)));
        }
        let found: HashSet<ToolKey> = hits.iter().map(|hit| hit.key.clone()).collect();
        for tool in self.tools.keys() {
            if let Some(past) = useful(tool).filter(|(useful, _)| *useful >= BROUGHT_IN)
                && let Some(key) = tools.wanted(tool).filter(|key| !found.contains(key))
            {
                hits.push(Hit { key, score: lifted(0.0, Some(past)) });
            }
        }
        // A stable sort: among equals the ranking that came in decides.
        hits.sort_by(|left, right| right.score.total_cmp(&left.score));
        hits
    }

    /// How much of what is asked was heard before, by tool: the share of each word's past that is
    /// the tool's, rare words counting for more.
    fn heard(&self, asked: &QueryContent) -> HashMap<&ToolKey, f32> {
        let mut heard: HashMap<&ToolKey, f32> = HashMap::new();
        let mut all = 0.0;
        for word in &asked.words {
            let having = self.words.get(word);
            let mentions = count(having.map_or(0, |having| having.values().sum()));
            let rarity = ((count(self.total) + YOUNG) / (mentions + 0.5)).ln();
            all += rarity;
            for (tool, own) in having.into_iter().flatten() {
                *heard.entry(tool).or_default() += rarity * (count(*own) / (mentions + 0.5)).sqrt();
            }
        }
        for share in heard.values_mut() {
            *share /= all;
        }
        heard
    }
}

/// The score of a hit with this share of the best one's, and of whose past this is known: how useful
/// the tool was for such queries, and for how many it was of use at all.
fn lifted(share: f32, past: Option<(f32, f32)>) -> f32 {
    let expected = EXPECTED + EXPECTED_SHARE * share;
    let useful = past.map_or(expected, |(useful, queries)| {
        let more = useful - expected;
        expected + if more < 0.0 { more * queries / (queries + DOUBT) } else { more }
    });
    share + LIFT * useful
}

#[expect(clippy::cast_precision_loss, reason = "counts of queries are small")]
fn count(number: usize) -> f32 {
    number as f32
}
