//! Ranking by words and by meaning at once.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{
    bm25::{Bm25Index, Bm25Parameters, apart},
    dense::{Span, Vectors},
    encoder::ServerVectors,
    prepared::{PreparedTools, PreparedVectors},
    query::{Hit, Query, ScoreParts},
    search_error::SearchError,
    strategy::Strategy,
    text::{ServerText, ToolKey, ToolText},
    top::{Candidate, Top},
};

/// Ranks tools by the sum of the scores of [`Bm25Index`](crate::Bm25Index) and
/// [`EmbeddingIndex`](crate::EmbeddingIndex), each scaled to about 0 to 1.
///
/// If one has no scores, the other decides: a query in another language has no common words, and an
/// unusual identifier has no vector. Tools that the query names come first.
#[derive(Debug, Default)]
pub struct HybridIndex {
    parameters: HybridParameters,
    words: Bm25Index,
    vectors: Vectors,
}

/// The parameters of the fusion. The defaults were chosen with the sets of `docs/search.md`; nearby
/// values give nearly the same results. Invalid numbers count as zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HybridParameters {
    /// The weight of meaning, from 0 to 1. Words have the rest.
    pub meaning: f32,
    /// How much of the best possible score of the query's words, rather than that of the best tool,
    /// is a full score: 0 to 1. With more of it, words that only few tools share with a long query
    /// count for less.
    pub coverage: f32,
    /// From how many words on a query's meaning loses weight, in proportion to their number: the
    /// mean of many words says little. It does not concern vectors of an encoder.
    pub long: f32,
}

impl Default for HybridParameters {
    fn default() -> Self {
        Self { meaning: 0.5, coverage: 0.25, long: 14.0 }
    }
}

/// More than words and meaning can give together.
const NAMED: f32 = 10.0;
/// The lowest score of a hit.
const LEAST: f32 = 1e-6;

/// The word scores and the vectors of one server's tools.
struct Joined<'n, 'i> {
    span: &'n Span<'i>,
    places: Range<usize>,
    /// The word score of the server.
    base: f32,
    /// The addition to the score of its tools.
    lift: f32,
}

impl HybridIndex {
    /// An empty index with other parameters than the defaults.
    pub fn with_parameters(words: Bm25Parameters, hybrid: HybridParameters) -> Self {
        let share = |number: f32| if number.is_finite() { number.clamp(0.0, 1.0) } else { 0.0 };
        let parameters = HybridParameters {
            meaning: share(hybrid.meaning),
            coverage: share(hybrid.coverage),
            long: if hybrid.long.is_finite() { hybrid.long.max(0.0) } else { 0.0 },
        };
        Self { parameters, words: Bm25Index::with_parameters(words), vectors: Vectors::default() }
    }

    /// How much of the weight of meaning a query of so many words has.
    #[expect(clippy::cast_precision_loss, reason = "a query has few words")]
    fn meaning_share(&self, query: &Query<'_>, words: usize) -> f32 {
        if query.vector.is_some() || words == 0 {
            return 1.0;
        }
        (self.parameters.long / words as f32).min(1.0)
    }
}

/// The impact of a word that a tool has in its name or its short description.
const TYPICAL_IMPACT: f32 = 1.5;

/// How well a tool fits a query. `covered` is the share of the query's words that it has, rare ones
/// counting more.
fn fit(covered: f32, nearness: f32) -> f32 {
    let covered = covered.clamp(0.0, 1.0);
    (0.5 * covered + 0.5 * nearness.max(0.0)).clamp(0.0, 1.0)
}

impl Strategy for HybridIndex {
    fn replace_server(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, ToolText<'_>)],
    ) {
        self.words.replace_server(server, text, tools);
        let (named, texts) = apart(tools);
        self.vectors.replace(server, text, &named, &PreparedVectors::of(&texts));
    }

    fn takes_prepared(&self) -> bool {
        self.words.takes_prepared()
    }

    fn replace_prepared(
        &mut self,
        server: &str,
        text: ServerText<'_>,
        tools: &[(ToolKey, &str)],
        prepared: &PreparedTools,
    ) {
        self.words.replace_prepared(server, text, tools, prepared);
        self.vectors.replace(server, text, tools, &prepared.vectors);
    }

    fn remove_server(&mut self, server: &str) {
        self.words.remove_server(server);
        self.vectors.remove(server);
    }

    fn set_vectors(&mut self, server: &str, vectors: &ServerVectors) {
        self.vectors.set_external(server, vectors);
    }

    fn tool_count(&self) -> usize {
        self.words.tool_count()
    }

    fn search(&self, query: &Query<'_>) -> Result<Vec<Hit>, SearchError> {
        let mut top = Top::new(query.limit);
        self.each(query, |tool| {
            if top.may_enter(tool.score) && tool.is_found {
                let Scored { score, key, server, .. } = tool;
                top.offer(Candidate { score, key, server, fit: Some(tool.fit()) });
            }
        });
        Ok(top.into_hits())
    }

    fn parts(&self, query: &Query<'_>, keys: &[ToolKey]) -> Vec<Option<ScoreParts>> {
        let mut parts = vec![None; keys.len()];
        self.each(query, |tool| {
            if let Some(place) = keys.iter().position(|key| key == tool.key) {
                parts[place] = Some(tool.parts);
            }
        });
        parts
    }

    fn corrected(&self, text: &str) -> Option<String> {
        self.words.corrected(text)
    }

    fn called_by_name(&self, query: &Query<'_>) -> Vec<&ToolKey> {
        self.words.called_by_name(query)
    }
}

/// A tool with its score for a query.
struct Scored<'i> {
    key: &'i ToolKey,
    server: &'i str,
    score: f32,
    parts: ScoreParts,
    /// Whether the query has anything to do with it.
    is_found: bool,
    /// The share of the query's words that it has.
    covered: f32,
    nearness: f32,
}

impl Scored<'_> {
    fn fit(&self) -> f32 {
        if self.parts.named > 0.0 { 1.0 } else { fit(self.covered, self.nearness) }
    }
}

impl HybridIndex {
    /// Scores all tools.
    fn each<'i>(&'i self, query: &Query<'_>, mut seen: impl FnMut(Scored<'i>)) {
        let said = self.words.word_scores(query);
        let near = self.vectors.nearness(query);
        let mut tiers = vec![0_u8; said.scores.len()];
        self.words.for_each_named(&said.names, &mut |place, tier| {
            tiers[place] = tiers[place].max(tier);
        });

        // Both indexes have the same tools, and each server's tools in the same order.
        let joined: Vec<Joined<'_, 'i>> = near
            .spans
            .iter()
            .filter_map(|span| {
                let (places, own) = self.words.places_of(span.server)?;
                let (base, lift) = (said.servers.own[own], said.servers.lift[own]);
                Some(Joined { span, places, base, lift })
            })
            .collect();
        let mut highest = 0.0_f32;
        for Joined { places, base, lift, .. } in &joined {
            let best = said.scores[places.clone()].iter().copied().fold(0.0, f32::max) + base;
            highest = highest.max(if best > 0.0 { best + lift } else { *lift });
        }
        let HybridParameters { meaning, coverage, .. } = self.parameters;
        let full = highest.powf(1.0 - coverage) * said.ceiling.powf(coverage);
        let words_factor = if highest > 0.0 { (1.0 - meaning) / full } else { 0.0 };
        let spread = near.highest - near.mean;
        let meaning = meaning * self.meaning_share(query, said.words);
        let meaning_factor = if spread > 0.0 { meaning / spread } else { 0.0 };

        let wanted = said.wanted.max(f32::MIN_POSITIVE) * TYPICAL_IMPACT;
        for Joined { span, places, base, lift } in joined {
            let tools = said.scores[places.clone()]
                .iter()
                .zip(&tiers[places])
                .zip(&near.scores[span.range.clone()])
                .zip(span.keys);
            for (((own, tier), nearness), key) in tools {
                let words = own + base;
                let parts = ScoreParts {
                    words: (words + lift) * words_factor,
                    meaning: ((nearness - near.mean) * meaning_factor).max(-1.0),
                    named: f32::from(*tier) * NAMED,
                };
                seen(Scored {
                    key,
                    server: span.server,
                    score: (parts.words + parts.meaning + parts.named).max(LEAST),
                    parts,
                    is_found: words > 0.0 || *tier > 0 || *nearness >= span.least,
                    covered: words / wanted,
                    nearness: *nearness,
                });
            }
        }
    }
}
