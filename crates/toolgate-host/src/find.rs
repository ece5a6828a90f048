//! From queries to tools.

use std::sync::Arc;

use toolgate_catalog::Tool;
use toolgate_search::{
    ChoiceCandidate, ChoiceRequest, Hit, MAX_QUERIES, Query, SearchError, round_robin,
};

use crate::{knowledge::Knowledge, recent::Asked, settings::Subagent};

/// What a search gives.
pub(crate) struct Found {
    /// The tools, best first.
    pub(crate) hits: Vec<Hit>,
    /// Which query found which of them.
    pub(crate) asked: Vec<Asked>,
    /// A word about how they were ranked, where it is not as it should be.
    pub(crate) note: Option<String>,
}

/// Ranks tools for queries that are merged fairly, with those first that were of use before.
pub(crate) fn find(
    knowledge: &Knowledge,
    queries: &[Query<'_>],
    limit: usize,
) -> Result<Found, SearchError> {
    let queries = &queries[..queries.len().min(MAX_QUERIES)];
    let lists: Vec<Vec<Hit>> =
        queries.iter().map(|query| knowledge.search(query)).collect::<Result<_, _>>()?;
    let hits = round_robin(lists.clone(), limit);
    let asked = asked(knowledge, queries, &lists, &hits);
    Ok(Found { hits, asked, note: None })
}

/// The same with a model that chooses from more candidates. Where it does not, they stand as they
/// were found, and the note says why.
pub(crate) async fn choose(
    knowledge: &Knowledge,
    queries: &[Query<'_>],
    limit: usize,
    subagent: Option<&Subagent>,
) -> Result<Found, SearchError> {
    let Some(subagent) = subagent else {
        let note = Some("No model is set up to rank tools: ranked by hybrid.".to_owned());
        return Ok(Found { note, ..find(knowledge, queries, limit)? });
    };
    let queries = &queries[..queries.len().min(MAX_QUERIES)];
    let many = subagent.candidates.max(limit);
    let lists: Vec<Vec<Hit>> = queries
        .iter()
        .map(|query| knowledge.search(&Query { limit: many, ..*query }))
        .collect::<Result<_, _>>()?;
    let mut hits = round_robin(lists.clone(), many);
    let mut note = None;
    // There is nothing to choose from one.
    if hits.len() > 1 {
        let request = request(knowledge, queries, &hits, limit);
        match chosen(&request, subagent).await {
            Ok(order) => {
                hits = order.into_iter().filter_map(|place| hits.get(place)).cloned().collect();
            }
            Err(why) => note = Some(format!("The model that ranks {why}: ranked by hybrid.")),
        }
    }
    hits.truncate(limit);
    let asked = asked(knowledge, queries, &lists, &hits);
    Ok(Found { hits, asked, note })
}

/// The order that the model gives, or what it failed to do.
async fn chosen(request: &ChoiceRequest, subagent: &Subagent) -> Result<Vec<usize>, String> {
    let answer = tokio::time::timeout(subagent.timeout, subagent.chooser.choose(request)).await;
    match answer {
        Err(_) => Err(format!("did not answer in {} s", subagent.timeout.as_secs_f64())),
        Ok(Err(error)) => Err(format!("failed ({error})")),
        Ok(Ok(names)) => {
            request.order(&names).ok_or_else(|| "named none of the candidates".to_owned())
        }
    }
}

fn request(
    knowledge: &Knowledge,
    queries: &[Query<'_>],
    hits: &[Hit],
    limit: usize,
) -> ChoiceRequest {
    let catalog = knowledge.catalog().read();
    // Gone in the meantime, a tool keeps its place: places are what the answer is about.
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

/// Which query found which of the tools that are given.
fn asked(
    knowledge: &Knowledge,
    queries: &[Query<'_>],
    lists: &[Vec<Hit>],
    given: &[Hit],
) -> Vec<Asked> {
    let catalog = knowledge.catalog().read();
    let asked = queries.iter().zip(lists).map(|(query, list)| {
        let found = list.iter().filter(|hit| given.iter().any(|given| given.key == hit.key));
        let tools = found.filter_map(|hit| catalog.resolve(hit.key.as_str()));
        Asked { query: query.text.to_owned(), found: tools.map(|tool| tool.id.clone()).collect() }
    });
    asked.collect()
}
