//! Finds tools for a session.

use toolgate_catalog::{Tool, nearest};
use toolgate_policy::CallPath;
use toolgate_sandbox::Language;
use toolgate_search::{MAX_QUERIES, Query, SearchError};

use crate::{encoding::EncodedQueries, host::ToolHost, meta, ranking, session::ToolSession};

/// What to search for.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// The queries, in words. The results of several are merged.
    pub queries: Vec<String>,
    /// The only server to search, or a hint if there is no such server.
    pub server: Option<String>,
    /// How many tools to find; as configured if unset.
    pub limit: Option<usize>,
}

/// The tools that a session found.
#[derive(Debug)]
pub struct FoundTools {
    /// The tools, best first.
    pub tools: Vec<FoundTool>,
    /// The queries as they were searched.
    pub(crate) queries: Vec<String>,
    /// The queries for which no tool fits well.
    pub(crate) weak: Vec<String>,
    /// Whether there is no server of the name that was given.
    pub(crate) is_server_unknown: bool,
    /// How many tools were loaded because they were found.
    pub(crate) added: usize,
    /// Why the ranking is degraded.
    pub(crate) ranking_note: Option<String>,
    pub(crate) encoding_note: Option<String>,
}

/// A tool that a session found.
#[derive(Debug)]
pub struct FoundTool {
    /// The tool.
    pub tool: Tool,
    /// Whether the session listed it before the search.
    pub is_loaded: bool,
    /// Whether it ranks higher because it was useful for similar queries.
    pub is_remembered: bool,
}

const MAX_LIMIT: usize = 50;
const SUGGESTIONS: usize = 3;
/// How many more tools are ranked where some may be closed to the caller.
const MORE_FOR_CLOSED: usize = 50;
const MAX_QUERY_CHARACTERS: usize = 1_000;

impl FoundTools {
    /// Why the ranking is not the configured one.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.ranking_note.iter().chain(&self.encoding_note).map(String::as_str)
    }
}

impl ToolSession {
    /// A tool that the caller can call, by its exposed name, or the nearest names. Connects a lazy server
    /// that the tool may belong to.
    pub async fn tool(&self, name: &str) -> Result<FoundTool, Vec<String>> {
        self.exposure().await;
        self.host().connect_owners(name).await;
        let catalog = self.host().catalog().read();
        let offered = |tool: &&Tool| self.offers(tool);
        if let Some(tool) = catalog.resolve(name).filter(offered) {
            let is_loaded = self.is_loaded(tool, &catalog);
            return Ok(FoundTool { tool: tool.clone(), is_loaded, is_remembered: false });
        }
        let known = catalog.tools().filter(offered).map(|tool| tool.name.as_str());
        let nearest = nearest(name, known, SUGGESTIONS);
        Err(nearest.into_iter().map(str::to_owned).collect())
    }

    /// A tool as a function of a script language.
    pub fn declaration(&self, tool: &Tool, language: Language) -> String {
        meta::declaration(self, tool, language)
    }

    /// Finds tools that the caller can call. In the mode `dynamic` the session lists them afterwards.
    pub async fn find(&self, query: &ToolQuery) -> Result<FoundTools, SearchError> {
        let host = self.host();
        self.exposure().await;
        host.first_lists().await;
        let queries: Vec<String> = query
            .queries
            .iter()
            .map(|query| query.chars().take(MAX_QUERY_CHARACTERS).collect::<String>())
            .filter(|query: &String| !query.trim().is_empty())
            .take(MAX_QUERIES)
            .collect();
        let limit = query.limit.unwrap_or(host.settings().max_results).clamp(1, MAX_LIMIT);
        let known = query
            .server
            .as_deref()
            .map(|server| host.catalog().read().server(server).map(|entry| entry.name.to_string()));
        // Tools of disabled servers cannot be called, so they are not searched.
        let on = match &known {
            Some(Some(name)) => Some(vec![name.clone()]),
            _ => servers_that_are_on(host),
        };
        // Tools that are closed to the caller are left out afterwards.
        let tells_apart = host.broker().policy().tells_callers_apart();
        let ranked = if tells_apart { limit + MORE_FOR_CLOSED } else { limit };
        let filter: Option<Vec<&str>> =
            on.as_ref().map(|on| on.iter().map(String::as_str).collect());
        let is_server_unknown = matches!(known, Some(None));
        let hint = query.server.as_deref().filter(|_| is_server_unknown);
        let encoded = match &host.inner.encoding {
            Some(encoding) => encoding.queries(&queries, hint).await,
            None => EncodedQueries::default(),
        };
        let asked: Vec<Query<'_>> = queries
            .iter()
            .enumerate()
            .map(|(place, text)| {
                let mut query = Query::new(text, ranked);
                query.vector = encoded.vectors.get(place);
                if let Some(servers) = &filter {
                    query = query.in_servers(servers);
                }
                if let Some(hint) = hint {
                    query = query.with_hint(hint);
                }
                query
            })
            .collect();
        let found = ranking::rank(host, &asked, ranked, self.remembered_as()).await?;
        self.searches.searched(found.searched);
        let catalog = host.catalog().read();
        let tools =
            found.hits.iter().filter_map(|hit| Some((hit, catalog.resolve(hit.key.as_str())?)));
        let tools = tools.filter(|(_, tool)| self.offers(tool)).take(limit);
        // Taken before the tools are loaded, so that new ones are not marked.
        let tools: Vec<FoundTool> = tools
            .map(|(hit, tool)| FoundTool {
                tool: tool.clone(),
                is_loaded: self.is_loaded(tool, &catalog),
                is_remembered: hit.is_remembered,
            })
            .collect();
        self.live(|live| live.found(tools.iter().map(|found| found.tool.name.to_string())));
        let direct = tools.iter().filter(|found| self.opens(&found.tool, CallPath::Direct));
        let added = self.load(direct.map(|found| &found.tool.name));
        Ok(FoundTools {
            tools,
            queries,
            weak: found.weak,
            is_server_unknown,
            added,
            ranking_note: found.note,
            encoding_note: encoded.note,
        })
    }
}

/// The enabled servers; `None` if all are.
fn servers_that_are_on(host: &ToolHost) -> Option<Vec<String>> {
    let off = host.inner.enabled.off();
    if off.is_empty() {
        return None;
    }
    let catalog = host.catalog().read();
    let names = catalog.servers().map(|entry| &entry.name).filter(|name| !off.contains(*name));
    Some(names.map(ToString::to_string).collect())
}
