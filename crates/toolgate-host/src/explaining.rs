//! Why a search ranks tools as it does.

use std::sync::Arc;

use serde::Serialize;
use toolgate_search::{Hit, Query, ScoreParts, SearchError, SearchIndex, StrategyName, ToolKey};

use crate::{
    finding::{FoundTools, ToolQuery},
    session::ToolSession,
};

/// A search as a model makes it, with what each place is made of.
#[derive(Debug)]
pub struct ExplainedSearch {
    /// What was found.
    pub found: FoundTools,
    /// The query as it was searched for, if words in it were corrected.
    pub corrected: Option<String>,
    /// The strategies that were asked besides, in the order of the places.
    pub strategies: Vec<StrategyName>,
    /// The tools that were found, in their order.
    pub tools: Vec<ExplainedTool>,
}

/// Why a tool stands where it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedTool {
    /// The exposed name.
    pub name: String,
    /// The score; higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// How well it fits the query, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<f32>,
    /// What words and meaning say, before past use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<ScoreParts>,
    /// Whether past use has raised it.
    pub is_remembered: bool,
    /// Its place without past use, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_past_use: Option<usize>,
    /// Its place and score by each strategy; `None` if it is not among the best.
    pub places: Vec<Option<StrategyPlace>>,
}

/// The place of a tool in the ranking of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StrategyPlace {
    /// From 1.
    pub rank: usize,
    /// The score. Scores of different strategies cannot be compared.
    pub score: f32,
}

/// The strategies that rank words and need no model.
const ASKED: [StrategyName; 4] =
    [StrategyName::Hybrid, StrategyName::Bm25, StrategyName::Embedding, StrategyName::Keyword];
/// How far into the ranking of a strategy is looked.
const LOOKED_AT: usize = 200;

impl ToolSession {
    /// Finds tools as [`Self::find`] does, and says why they are ranked so. The explanation is that of the first query.
    pub async fn explain_search(&self, query: &ToolQuery) -> Result<ExplainedSearch, SearchError> {
        let found = self.find(query).await?;
        let keys: Vec<ToolKey> =
            found.tools.iter().map(|it| ToolKey::new(it.tool.name.to_arc())).collect();
        let text = found.queries.first().cloned().unwrap_or_default();
        let settings = self.host().settings();
        let strategy = query.strategy.unwrap_or(settings.strategy);
        let live_catalog = Arc::clone(&self.host().inner.live_catalog);
        // Indexes of other strategies may have to be made.
        let asked = tokio::task::spawn_blocking(move || {
            let indexes = ASKED.map(|it| live_catalog.other_index(it));
            let own = live_catalog.other_index(strategy);
            Reasons::of(&text, &keys, &own, &indexes)
        });
        let Reasons { corrected, parts, base, lists } = asked.await.unwrap_or_default();
        let tools = found.tools.iter().enumerate().map(|(index, it)| {
            let place = |hits: &Vec<Hit>| {
                let rank = hits.iter().position(|hit| hit.key.as_str() == it.tool.name.as_str())?;
                Some(StrategyPlace { rank: rank + 1, score: hits[rank].score })
            };
            ExplainedTool {
                name: it.tool.name.to_string(),
                score: it.score,
                fit: it.fit,
                parts: parts.get(index).copied().flatten(),
                is_remembered: it.is_remembered,
                without_past_use: place(&base).map(|place| place.rank),
                places: lists.iter().map(place).collect(),
            }
        });
        let tools = tools.collect();
        Ok(ExplainedSearch { found, corrected, strategies: ASKED.to_vec(), tools })
    }
}

/// What the indexes say.
#[derive(Default)]
struct Reasons {
    corrected: Option<String>,
    parts: Vec<Option<ScoreParts>>,
    /// The ranking of the strategy without past use.
    base: Vec<Hit>,
    lists: Vec<Vec<Hit>>,
}

impl Reasons {
    fn of(text: &str, keys: &[ToolKey], own: &SearchIndex, all: &[Arc<SearchIndex>]) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let query = Query::new(text, LOOKED_AT);
        // A text that is no query of a strategy is found nowhere by it.
        let ranked = |index: &SearchIndex| index.search(&query).unwrap_or_default();
        Self {
            corrected: own.corrected(text),
            parts: own.parts(&query, keys),
            base: ranked(own),
            lists: all.iter().map(|index| ranked(index)).collect(),
        }
    }
}
