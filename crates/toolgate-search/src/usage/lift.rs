//! Re-ranks hits by past use.

use std::collections::{BTreeMap, HashSet};

use super::{PastQuery, UsageMemory, past_queries::QueryContent};
use crate::{
    dense::CommonMeaning,
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

/// A memory, for one caller.
#[derive(Clone, Copy)]
pub struct Recall<'a> {
    /// The memory.
    pub memory: &'a UsageMemory,
    /// Which of its tools are which of the index.
    pub tools: &'a dyn KnownTools,
    /// Who asks.
    pub caller: &'a str,
}

impl std::fmt::Debug for Recall<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recall").field("memory", &self.memory).finish_non_exhaustive()
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
/// A past query with this cosine to a query is like it.
const ALIKE: f32 = 0.6;
/// How many good calls for queries like this one a tool needs to become the first.
const NEEDED_FOR_FIRST: u64 = 2;
/// The number of good calls for queries like this one at which half of a positive effect applies.
const FEW: f32 = 0.5;
/// How many other callers must have called a tool before their calls count for a caller. So one
/// client of a shared gateway cannot decide what others find.
const OTHERS: usize = 2;

/// What the past says of a tool for a query.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    /// How useful it was for similar queries.
    useful: f32,
    /// The weights of its past queries.
    queries: f32,
    /// How many more calls for similar queries were good than not.
    good: f32,
    /// Those for queries that are nearly the same.
    alike: u64,
}

impl Recall<'_> {
    /// Orders hits (best first) by their scores and by past use. The scores change.
    ///
    /// A tool without past queries gets an average usefulness for its rank. So it does not fall
    /// behind tools that were useful for other queries. Tools with a past fall behind only where
    /// most of the hits have one. A tool that was useful for a similar query is added even if the
    /// ranking did not find it. It becomes the first only after more than one good call.
    pub fn lift(&self, query: &str, mut hits: Vec<Hit>) -> Vec<Hit> {
        let asked = QueryContent::of(cut(query.trim(), MAX_PAST_QUERY_BYTES));
        if self.memory.is_empty() || asked.words.is_empty() {
            return hits;
        }
        let past = self.past(&asked);
        let of = |tool: &ToolKey| past.get(tool).copied();
        let remembered: Vec<Option<Past>> =
            hits.iter().map(|hit| of(&self.tools.remembered(&hit.key))).collect();
        let with_past = remembered.iter().flatten().count();
        // From nothing, if half of the hits have a past, to all of it, if all have.
        let penalty = (2.0 * ratio(with_past, hits.len()) - 1.0).max(0.0);
        let best = hits.first().map_or(1.0, |hit| hit.score.max(f32::MIN_POSITIVE));
        let ranked_first = hits.first().map(|hit| hit.key.clone());
        let mut alike: BTreeMap<ToolKey, u64> = BTreeMap::new();
        for (hit, past) in hits.iter_mut().zip(remembered) {
            let share = hit.score / best;
            (hit.score, hit.is_remembered) = lifted(share, past, penalty);
            alike.insert(hit.key.clone(), past.unwrap_or_default().alike);
        }
        let found: HashSet<ToolKey> = hits.iter().map(|hit| hit.key.clone()).collect();
        for (tool, past) in &past {
            if past.useful >= BROUGHT_IN
                && past.alike > 0
                && let Some(key) = self.tools.wanted(tool).filter(|key| !found.contains(key))
            {
                let (score, is_remembered) = lifted(0.0, Some(*past), penalty);
                alike.insert(key.clone(), past.alike);
                hits.push(Hit { is_remembered, ..Hit::new(key, score) });
            }
        }
        // A stable sort: equal scores keep the order of the ranking.
        hits.sort_by(|left, right| right.score.total_cmp(&left.score));
        keep_first(&mut hits, |key| {
            let has_earned_it = alike.get(key).is_some_and(|alike| *alike >= NEEDED_FOR_FIRST);
            has_earned_it || ranked_first.as_ref() == Some(key)
        });
        hits
    }

    /// What the past says of each remembered tool.
    fn past(&self, asked: &QueryContent) -> BTreeMap<&ToolKey, Past> {
        let visible: Vec<(&ToolKey, Vec<&PastQuery>)> = self
            .memory
            .tools()
            .map(|(tool, queries)| (tool, self.visible(queries)))
            .filter(|(_, queries)| !queries.is_empty())
            .collect();
        let shares = word_shares(asked, &visible);
        let specificity = asked.specificity();
        let tools = visible.into_iter().zip(shares).map(|((tool, queries), words)| {
            let mut common = CommonMeaning::default();
            let mut past = Past::default();
            for query in queries {
                let weight = query.weight();
                common.add(&query.said.meaning, weight);
                past.queries += weight;
                let nearness = query.said.meaning.nearness(&asked.meaning);
                past.good += weight * nearness.max(0.0) * number(query.net());
                let is_same = query.said.words == asked.words;
                if (nearness >= ALIKE || is_same) && weight >= ALIKE_WEIGHT {
                    past.alike = past.alike.saturating_add(query.net());
                }
            }
            past.useful = common.nearness(&asked.meaning).max(0.0) + WORDS * words;
            past.good *= specificity;
            (tool, past)
        });
        tools.collect()
    }

    /// The queries of a tool that count for the caller: the caller's own, and those of others if
    /// they are several.
    fn visible<'q>(&self, queries: &'q [PastQuery]) -> Vec<&'q PastQuery> {
        let of_use = || queries.iter().filter(|query| query.weight() > 0.0);
        let others: HashSet<&str> =
            of_use().map(PastQuery::caller).filter(|caller| *caller != self.caller).collect();
        let all = others.len() >= OTHERS;
        of_use().filter(|query| all || query.caller() == self.caller).collect()
    }
}

/// Vague queries make no tool the first.
const ALIKE_WEIGHT: f32 = 0.3;

/// For each tool, the weighted share of the query's words that occur in its past queries. Rare
/// words count more.
fn word_shares(asked: &QueryContent, tools: &[(&ToolKey, Vec<&PastQuery>)]) -> Vec<f32> {
    let total: f32 = tools.iter().flat_map(|(_, queries)| queries).map(|it| it.weight()).sum();
    let mut shares = vec![0.0; tools.len()];
    let mut all = 0.0;
    for word in &asked.words {
        let has = |query: &&&PastQuery| query.said.words.contains(word);
        let own: Vec<f32> = tools
            .iter()
            .map(|(_, queries)| queries.iter().filter(has).map(|query| query.weight()).sum())
            .collect();
        let mentions: f32 = own.iter().sum();
        let rarity = ((total + YOUNG) / (mentions + 0.5)).ln();
        all += rarity;
        for (share, own) in shares.iter_mut().zip(own) {
            *share += rarity * (own / (mentions + 0.5)).sqrt();
        }
    }
    for share in &mut shares {
        *share /= all;
    }
    shares
}

/// The score of a hit, and whether past use has raised it. `share` is its share of the best score.
fn lifted(share: f32, past: Option<Past>, penalty: f32) -> (f32, bool) {
    let expected = EXPECTED + EXPECTED_SHARE * share;
    let more = past.map_or(0.0, |past| match past.useful - expected {
        less if less < 0.0 => less * penalty * past.queries / (past.queries + DOUBT),
        more => more * past.good / (past.good + FEW),
    });
    (share + LIFT * (expected + more), more > 0.0)
}

/// Moves the best hit to the front that may be there.
fn keep_first(hits: &mut [Hit], may_be_first: impl Fn(&ToolKey) -> bool) {
    if let Some(place) = hits.iter().position(|hit| may_be_first(&hit.key)) {
        // Scores stay in their order.
        hits[place].score = hits[0].score;
        hits[..=place].rotate_right(1);
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn ratio(part: usize, whole: usize) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

#[expect(clippy::cast_precision_loss, reason = "a weight does not need the last digits")]
fn number(count: u64) -> f32 {
    count.min(MOST) as f32
}

/// More calls for one query say no more.
const MOST: u64 = 4;
