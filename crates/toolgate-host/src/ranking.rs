//! Ranks tools for queries.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use toolgate_catalog::Tool;
use toolgate_search::{
    ChoiceCandidate, ChoiceRequest, Hit, MAX_QUERIES, Query, SearchError, StrategyName, is_weak,
    round_robin,
};

use crate::{
    host::ToolHost, live_catalog::LiveCatalog, recent_searches::SearchedQuery,
    settings::SubagentSettings,
};

/// The tools that a search found.
pub(crate) struct RankedTools {
    /// The tools, best first.
    pub(crate) hits: Vec<Hit>,
    /// Which query found which of them.
    pub(crate) searched: Vec<SearchedQuery>,
    /// The queries for which no tool fits well.
    pub(crate) weak: Vec<String>,
    /// A note for the model if the ranking is degraded.
    pub(crate) note: Option<String>,
}

/// Ranks tools for several queries, with the configured strategy.
pub(crate) async fn rank(
    host: &ToolHost,
    queries: &[Query<'_>],
    limit: usize,
    caller: &str,
) -> Result<RankedTools, SearchError> {
    let catalog = &host.inner.live_catalog;
    catalog.read_usage().await;
    let settings = host.settings();
    if settings.strategy != StrategyName::Subagent {
        return find(catalog, queries, limit, caller);
    }
    choose(catalog, queries, limit, caller, settings.subagent.as_ref()).await
}

/// Merges the results of all queries fairly. Tools that were useful before come first.
fn find(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    limit: usize,
    caller: &str,
) -> Result<RankedTools, SearchError> {
    let queries = &queries[..queries.len().min(MAX_QUERIES)];
    let lists: Vec<Vec<Hit>> =
        queries.iter().map(|query| live_catalog.search(query, caller)).collect::<Result<_, _>>()?;
    let hits = round_robin(lists.clone(), limit);
    let searched = searched(live_catalog, queries, &lists, &hits);
    Ok(RankedTools { hits, searched, weak: weak(queries, &lists), note: None })
}

/// The same with a model that chooses from more candidates. If it fails, the order stays, and the
/// note says why.
async fn choose(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    limit: usize,
    caller: &str,
    subagent: Option<&SubagentSettings>,
) -> Result<RankedTools, SearchError> {
    let Some(subagent) = subagent else {
        let note = Some("No model is set up to rank tools: ranked by hybrid.".to_owned());
        return Ok(RankedTools { note, ..find(live_catalog, queries, limit, caller)? });
    };
    let queries = &queries[..queries.len().min(MAX_QUERIES)];
    let many = subagent.candidates.max(limit);
    let lists: Vec<Vec<Hit>> = queries
        .iter()
        .map(|query| live_catalog.search(&Query { limit: many, ..*query }, caller))
        .collect::<Result<_, _>>()?;
    let mut hits = round_robin(lists.clone(), many);
    let mut note = None;
    // A single tool needs no choice.
    if hits.len() > 1 {
        let request = request(live_catalog, queries, &hits, limit);
        match chosen(&request, subagent).await {
            Ok(order) => {
                hits = order.into_iter().filter_map(|place| hits.get(place)).cloned().collect();
            }
            Err(error) => note = Some(format!("The model that ranks {error}: ranked by hybrid.")),
        }
    }
    hits.truncate(limit);
    let searched = searched(live_catalog, queries, &lists, &hits);
    Ok(RankedTools { hits, searched, weak: weak(queries, &lists), note })
}

fn weak(queries: &[Query<'_>], lists: &[Vec<Hit>]) -> Vec<String> {
    let weak = queries.iter().zip(lists).filter(|(_, hits)| is_weak(hits));
    weak.map(|(query, _)| query.text.to_owned()).collect()
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

/// Which query found which of the returned tools.
fn searched(
    live_catalog: &LiveCatalog,
    queries: &[Query<'_>],
    lists: &[Vec<Hit>],
    given: &[Hit],
) -> Vec<SearchedQuery> {
    let catalog = live_catalog.catalog().read();
    let searched = queries.iter().zip(lists).map(|(query, list)| {
        let found = list.iter().filter(|hit| given.iter().any(|given| given.key == hit.key));
        let tools = found.filter_map(|hit| catalog.resolve(hit.key.as_str()));
        SearchedQuery {
            query: query.text.to_owned(),
            found: tools.map(|tool| tool.id.clone()).collect(),
        }
    });
    searched.collect()
}
