//! Re-ranks hits by past use.

use std::collections::{HashMap, HashSet};

use super::{UsageMemory, past_queries::QueryContent};
use crate::{
    limits::{MAX_PAST_QUERY_BYTES, cut},
    query::Hit,
    text::ToolKey,
};

/// Maps tools of an index to tools of a usage memory.
///
/// `()` uses the same keys for both, and adds no tools.
pub trait KnownTools {
    /// The key under which a tool of the index is remembered.
    fn remembered(&self, found: &ToolKey) -> ToolKey;

    /// The index key of a remembered tool, if the tool exists and is wanted.
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

/// The weight of past use, if the best hit has the score 1.
const LIFT: f32 = 2.0;
/// The weight of common words, relative to meaning.
const WORDS: f32 = 1.5;
/// The assumed usefulness of a tool without past queries: this plus a share of its score. A higher
/// value favours new tools.
const EXPECTED: f32 = 0.2;
/// That share.
const EXPECTED_SHARE: f32 = 0.5;
/// The number of past queries at which half of a negative effect applies. A single past query says
/// little about other uses of a tool.
const DOUBT: f32 = 1.0;
/// Added to the number of queries, because a small memory does not show which words are rare.
const YOUNG: f32 = 100.0;
/// The lowest usefulness at which a tool is added that the ranking did not find.
const BROUGHT_IN: f32 = 0.45;

impl UsageMemory {
    /// Orders hits (best first) by their scores and by past use. The scores change.
    ///
    /// A tool without past queries gets an average usefulness for its rank. So it does not fall
    /// behind tools that were useful for other queries, and does not come before tools that were
    /// useful for this one. A tool that was useful for a similar query is added even if the ranking
    /// did not find it.
    pub fn lift(&self, query: &str, mut hits: Vec<Hit>, tools: &dyn KnownTools) -> Vec<Hit> {
        let asked = QueryContent::of(cut(query.trim(), MAX_PAST_QUERY_BYTES));
        if self.is_empty() || asked.words.is_empty() {
            return hits;
        }
        let word_shares = self.word_shares(&asked);
        let useful = |tool: &ToolKey| -> Option<(f32, f32)> {
            let past = self.tools.get(tool)?;
            let words = word_shares.get(tool).copied().unwrap_or_default();
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
        // A stable sort: equal scores keep the order of the ranking.
        hits.sort_by(|left, right| right.score.total_cmp(&left.score));
        hits
    }

    /// For each tool, the weighted share of the query's words that occur in its past queries. Rare
    /// words count more.
    fn word_shares(&self, asked: &QueryContent) -> HashMap<&ToolKey, f32> {
        let mut word_shares: HashMap<&ToolKey, f32> = HashMap::new();
        let mut all = 0.0;
        for word in &asked.words {
            let having = self.words.get(word);
            let mentions = count(having.map_or(0, |having| having.values().sum()));
            let rarity = ((count(self.total) + YOUNG) / (mentions + 0.5)).ln();
            all += rarity;
            for (tool, own) in having.into_iter().flatten() {
                *word_shares.entry(tool).or_default() +=
                    rarity * (count(*own) / (mentions + 0.5)).sqrt();
            }
        }
        for share in word_shares.values_mut() {
            *share /= all;
        }
        word_shares
    }
}

/// The score of a hit. `share` is its share of the best score. `past` is how useful the tool was
/// for similar queries, and the number of its past queries.
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
