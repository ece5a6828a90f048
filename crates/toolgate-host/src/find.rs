//! From queries to tools.

use toolgate_catalog::ToolId;
use toolgate_search::{Hit, MAX_QUERIES, Query, SearchError, round_robin};

use crate::{knowledge::Knowledge, recent::Asked};

/// What a search gives.
pub(crate) struct Found {
    /// The tools, best first.
    pub(crate) hits: Vec<Hit>,
    /// Which query found which of them.
    pub(crate) asked: Vec<Asked>,
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
    let catalog = knowledge.catalog().read();
    let asked = queries.iter().zip(lists).map(|(query, list)| {
        let given = list.iter().filter(|hit| hits.iter().any(|given| given.key == hit.key));
        let tools = given.filter_map(|hit| catalog.resolve(hit.key.as_str()));
        Asked {
            query: query.text.to_owned(),
            found: tools.map(|tool| tool.id.clone()).collect::<Vec<ToolId>>(),
        }
    });
    let asked = asked.collect();
    drop(catalog);
    Ok(Found { hits, asked })
}
