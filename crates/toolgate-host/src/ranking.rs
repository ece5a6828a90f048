//! Ranks tools for queries.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use toolgate_catalog::Tool;
use toolgate_search::{
    ChoiceCandidate, ChoiceRequest, Hit, MAX_QUERIES, Query, SearchError, SearchIndex,
    StrategyName, is_weak, round_robin,
};

use crate::{
    deprecated::after_successors, host::ToolHost, live_catalog::LiveCatalog,
    settings::SubagentSettings,
};

/// The tools that each query found.
pub(crate) struct RankedTools {
    /// For each query its tools, best first.
    pub(crate) lists: Vec<RankedList>,
    /// A note for the model if the ranking is degraded.
    pub(crate) note: Option<String>,
}

/// The tools that one query found.
pub(crate) struct RankedList {
    pub(crate) query: String,
    pub(crate) hits: Vec<Hit>,
    /// Whether no tool fits the query well.
    pub(crate) is_weak: bool,
}

/// Ranks tools for each query, with the strategy that was chosen for it, or with the configured one. Tools that
/// were useful before come first.
pub(crate) async fn rank(
    host: &ToolHost,
    queries: &[Query<'_>],
    strategy: Option<StrategyName>,
    caller: &str,
) -> Result<RankedTools, SearchError> {
    let catalog = &host.inner.live_catalog;
    let settings = host.settings();
    let queries = &queries[..queries.len().min(MAX_QUERIES)];
    if let Some(strategy) = strategy.filter(|strategy| *strategy != settings.strategy) {
        let live_catalog = Arc::clone(catalog);
        // All texts are read if it has to be made.
        let made = tokio::task::spawn_blocking(move || live_catalog.other_index(strategy)).await;
        let index = made.unwrap_or_else(|_| Arc::new(SearchIndex::ranked_by(strategy)));
        // A vector is that of the tools in the configured index.
        let search = |query: &Query<'_>| index.search(&Query { vector: None, ..*query });
        return find(catalog, queries, search);
    }
    catalog.read_usage().await;
    let search = |query: &Query<'_>| catalog.search(query, caller);
    if settings.strategy != StrategyName::Subagent {
        return find(catalog, queries, search);
    }
    choose(catalog, queries, search, settings.subagent.as_ref()).await
}

fn find(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    search: impl Fn(&Query<'_>) -> Result<Vec<Hit>, SearchError>,
) -> Result<RankedTools, SearchError> {
    let ranked = |query: &Query<'_>| {
        let hits = search(query)?;
        let is_weak = is_weak(&hits);
        let hits = after_successors(hits, query.text, &live_catalog.catalog().read());
        Ok(RankedList { query: query.text.to_owned(), hits, is_weak })
    };
    let lists = queries.iter().map(ranked).collect::<Result<_, _>>()?;
    Ok(RankedTools { lists, note: None })
}

/// The same with a model that chooses from more candidates, those of all queries at once. If it fails, the order
/// stays, and the note says why.
async fn choose(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    search: impl Fn(&Query<'_>) -> Result<Vec<Hit>, SearchError>,
    subagent: Option<&SubagentSettings>,
) -> Result<RankedTools, SearchError> {
    let Some(subagent) = subagent else {
        let note = Some("No model is set up to rank tools: ranked by hybrid.".to_owned());
        return Ok(RankedTools { note, ..find(live_catalog, queries, search)? });
    };
    let limit = queries.iter().map(|query| query.limit).max().unwrap_or_default();
    let many = subagent.candidates.max(limit);
    let wider: Vec<Query<'_>> =
        queries.iter().map(|query| Query { limit: many, ..*query }).collect();
    let mut ranked = find(live_catalog, &wider, search)?;
    let lists = ranked.lists.iter().map(|list| list.hits.clone()).collect();
    let candidates = round_robin(lists, many);
    // A single tool needs no choice.
    if candidates.len() > 1 {
        let request = request(live_catalog, queries, &candidates, limit);
        match chosen(&request, subagent).await {
            Ok(order) => {
                let place = |hit: &Hit| {
                    let at = candidates.iter().position(|candidate| candidate.key == hit.key);
                    order.iter().position(|chosen| Some(*chosen) == at).unwrap_or(usize::MAX)
                };
                for list in &mut ranked.lists {
                    list.hits.sort_by_key(place);
                }
            }
            Err(error) => {
                ranked.note = Some(format!("The model that ranks {error}: ranked by hybrid."));
            }
        }
    }
    for (list, query) in ranked.lists.iter_mut().zip(queries) {
        list.hits.truncate(query.limit);
    }
    Ok(ranked)
}

/// Why the model that ranks gave no order.
#[derive(Debug, Error)]
enum ChooseError {
    #[error("did not answer in {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("failed ({0})")]
    Failed(String),
    #[error("named none of the candidates")]
    NoCandidate,
}

/// The order from the model.
async fn chosen(
    request: &ChoiceRequest,
    subagent: &SubagentSettings,
) -> Result<Vec<usize>, ChooseError> {
    let answer = tokio::time::timeout(subagent.timeout, subagent.chooser.choose(request)).await;
    match answer {
        Err(_) => Err(ChooseError::TimedOut(subagent.timeout)),
        Ok(Err(error)) => Err(ChooseError::Failed(error.to_string())),
        Ok(Ok(names)) => request.order(&names).ok_or(ChooseError::NoCandidate),
    }
}

fn request(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    hits: &[Hit],
    limit: usize,
) -> ChoiceRequest {
    let catalog = live_catalog.catalog().read();
    // A tool that is gone meanwhile keeps its number, because the model answers with numbers.
    let candidate = |hit: &Hit| {
        let tool: Option<&Tool> = catalog.resolve(hit.key.as_str());
        let definition = tool.map(|tool| Arc::clone(&tool.definition));
        ChoiceCandidate {
            name: hit.key.to_string(),
            description: definition.as_ref().map_or("", |it| it.description()).to_owned(),
            signature: definition.map_or_else(String::new, |definition| {
                toolgate_catalog::signature(hit.key.as_str(), &definition.input_schema())
            }),
        }
    };
    ChoiceRequest {
        queries: queries.iter().map(|query| query.text.to_owned()).collect(),
        candidates: hits.iter().map(candidate).collect(),
        limit,
    }
}
