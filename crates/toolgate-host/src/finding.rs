//! Finds tools for a session.

use toolgate_catalog::{ExposedName, Tool, nearest};
use toolgate_policy::CallPath;
use toolgate_sandbox::Language;
use toolgate_search::{Hit, MAX_QUERIES, Query, SearchError, StrategyName, round_robin};

use crate::{
    encoding::EncodedQueries,
    host::ToolHost,
    meta,
    ranking::{self, RankedList},
    recent_searches::SearchedQuery,
    session::ToolSession,
};

/// What to search for.
#[derive(Debug, Clone, Default)]
pub struct ToolQuery {
    /// The queries, in words.
    pub queries: Vec<String>,
    /// The only server to search, or a hint if there is no such server. Without a query its tools are listed.
    pub server: Option<String>,
    /// How many tools to find; as configured if unset.
    pub limit: Option<usize>,
    /// How many of the best tools to leave out, because they are known.
    pub offset: usize,
    /// How to rank; as configured if unset.
    pub strategy: Option<StrategyName>,
    /// What the limit is for.
    pub budget: ResultBudget,
}

/// What the limit of a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultBudget {
    /// All queries together. Their results are merged.
    #[default]
    InAll,
    /// Each query. A single query that asks for several things gets results for each of them in addition.
    EachStep,
}

/// The tools that a session found.
#[derive(Debug)]
pub struct FoundTools {
    /// The tools, best first.
    pub tools: Vec<FoundTool>,
    /// Which of them each query found. A single query comes before its steps.
    pub steps: Vec<FoundStep>,
    /// The queries as they were searched, without their steps.
    pub(crate) queries: Vec<String>,
    /// How many tools there are in all, where that is known: of a list, or of those that match a pattern.
    pub(crate) total: Option<usize>,
    /// Whether there is no server of the name that was given.
    pub(crate) is_server_unknown: bool,
    /// The tools that were loaded because they were found.
    pub(crate) loaded: Vec<ExposedName>,
    /// Why the ranking is degraded.
    pub(crate) ranking_note: Option<String>,
    pub(crate) encoding_note: Option<String>,
}

/// What one query, or one step of it, found.
#[derive(Debug)]
pub struct FoundStep {
    /// The query, or the part of it.
    pub query: String,
    /// The places of its tools among all, best first.
    pub tools: Vec<usize>,
    /// Whether none of them fits well.
    pub is_weak: bool,
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
    /// Its score; `None` if it was not ranked.
    pub score: Option<f32>,
    /// How well it fits the query, from 0 to 1, as far as that is known.
    pub fit: Option<f32>,
}

impl FoundTool {
    fn unranked(tool: Tool, is_loaded: bool) -> Self {
        Self { tool, is_loaded, is_remembered: false, score: None, fit: None }
    }
}

const MAX_LIMIT: usize = 50;
/// How many tools of a server are listed at once.
const LISTED_TOOLS: usize = 25;
/// How many tools a step of a request gets at most, in addition to those of the whole request.
const STEP_TOOLS: usize = 3;
/// How many tools each of many queries gets at least.
const LEAST_EACH: usize = 2;
/// How far into a ranking a search looks.
const MAX_OFFSET: usize = 100_000;
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
            return Ok(FoundTool::unranked(tool.clone(), is_loaded));
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
        let known = query
            .server
            .as_deref()
            .map(|server| host.catalog().read().server(server).map(|entry| entry.name.to_string()));
        if let (Some(Some(server)), true) = (&known, queries.is_empty()) {
            return Ok(self.listed(server, query));
        }
        let strategy = query.strategy.unwrap_or(host.settings().strategy);
        let steps = match (&*queries, query.budget) {
            ([only], ResultBudget::EachStep) if strategy.reads_requests() && query.offset == 0 => {
                toolgate_search::steps(only)
            }
            _ => Vec::new(),
        };
        let texts: Vec<&str> =
            queries.iter().map(String::as_str).chain(steps.iter().copied()).collect();
        let limit = query.limit.unwrap_or(host.settings().max_results).clamp(1, MAX_LIMIT);
        let each = match query.budget {
            ResultBudget::InAll => limit,
            ResultBudget::EachStep => limit.min((MAX_LIMIT / queries.len().max(1)).max(LEAST_EACH)),
        };
        let offset = query.offset.min(MAX_OFFSET);
        // Tools of disabled servers cannot be called, so they are not searched.
        let on = match &known {
            Some(Some(name)) => Some(vec![name.clone()]),
            _ => servers_that_are_on(host),
        };
        // Tools that are closed to the caller are left out afterwards.
        let tells_apart = host.broker().policy().tells_callers_apart();
        let is_pattern = strategy == StrategyName::Regex;
        let ranked = match (is_pattern, tells_apart) {
            (true, _) => usize::MAX,
            (false, true) => offset + each + MORE_FOR_CLOSED,
            (false, false) => offset + each,
        };
        let filter: Option<Vec<&str>> =
            on.as_ref().map(|on| on.iter().map(String::as_str).collect());
        let is_server_unknown = matches!(known, Some(None));
        let hint = query.server.as_deref().filter(|_| is_server_unknown);
        let encoded = match &host.inner.encoding {
            Some(encoding) => {
                let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
                encoding.queries(&texts, hint).await
            }
            None => EncodedQueries::default(),
        };
        let asked: Vec<Query<'_>> = texts
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
        let found = ranking::rank(host, &asked, Some(strategy), self.remembered_as()).await?;
        let part = ResultPart { queries: queries.len(), each, limit, offset, is_pattern };
        let (tools, steps, total) = self.taken(found.lists, &part, query.budget);
        // A regular expression is no description that another query could be similar to.
        if !is_pattern {
            self.searches.searched(searched(&steps, &tools));
        }
        let loaded = self.note_found(&tools);
        Ok(FoundTools {
            tools,
            steps,
            queries,
            total,
            is_server_unknown,
            loaded,
            ranking_note: found.note,
            encoding_note: encoded.note,
        })
    }

    /// The part of the rankings that is shown: the tools, what each query found, and how many match a pattern.
    fn taken(
        &self,
        mut lists: Vec<RankedList>,
        part: &ResultPart,
        budget: ResultBudget,
    ) -> (Vec<FoundTool>, Vec<FoundStep>, Option<usize>) {
        let catalog = self.host().catalog().read();
        let is_open =
            |hit: &Hit| catalog.resolve(hit.key.as_str()).is_some_and(|tool| self.offers(tool));
        for list in &mut lists {
            list.hits.retain(is_open);
        }
        let total = match &*lists {
            [only] if part.is_pattern => Some(only.hits.len()),
            _ => None,
        };
        for (place, list) in lists.iter_mut().enumerate() {
            let few = if place < part.queries { part.each } else { part.each.min(STEP_TOOLS) };
            list.hits.drain(..part.offset.min(list.hits.len()));
            list.hits.truncate(few);
        }
        let all = match budget {
            ResultBudget::InAll => part.limit,
            ResultBudget::EachStep => usize::MAX,
        };
        // The whole request comes before its steps.
        let (whole, of_steps) = lists.split_at(part.queries.min(lists.len()));
        let merged = |lists: &[RankedList]| {
            round_robin(lists.iter().map(|list| list.hits.clone()).collect(), all)
        };
        let hits = with_others(merged(whole), merged(of_steps));
        // Taken before the tools are loaded, so that new ones are not marked.
        let tools: Vec<FoundTool> = hits
            .iter()
            .filter_map(|hit| Some((hit, catalog.resolve(hit.key.as_str())?)))
            .map(|(hit, tool)| FoundTool {
                tool: tool.clone(),
                is_loaded: self.is_loaded(tool, &catalog),
                is_remembered: hit.is_remembered,
                score: Some(hit.score),
                fit: hit.fit,
            })
            .collect();
        let place_of =
            |hit: &Hit| tools.iter().position(|it| it.tool.name.as_str() == hit.key.as_str());
        let steps = lists
            .iter()
            .map(|list| FoundStep {
                query: list.query.clone(),
                tools: list.hits.iter().filter_map(place_of).collect(),
                is_weak: list.is_weak,
            })
            .collect();
        (tools, steps, total)
    }

    /// The tools of a server, in its own order.
    fn listed(&self, server: &str, query: &ToolQuery) -> FoundTools {
        let limit = query.limit.unwrap_or(LISTED_TOOLS).clamp(1, MAX_LIMIT);
        let catalog = self.host().catalog().read();
        let is_on = !self.host().is_off(&server.into());
        let all: Vec<&Tool> =
            catalog.tools_of(server).iter().filter(|tool| is_on && self.offers(tool)).collect();
        let shown = all.iter().skip(query.offset).take(limit);
        let tools: Vec<FoundTool> = shown
            .map(|tool| FoundTool::unranked((*tool).clone(), self.is_loaded(tool, &catalog)))
            .collect();
        let total = Some(all.len());
        drop(catalog);
        let loaded = self.note_found(&tools);
        FoundTools {
            tools,
            steps: Vec::new(),
            queries: Vec::new(),
            total,
            is_server_unknown: false,
            loaded,
            ranking_note: None,
            encoding_note: None,
        }
    }

    /// Loads what was found, in the mode `dynamic`. Returns what is new.
    fn note_found(&self, tools: &[FoundTool]) -> Vec<ExposedName> {
        self.live(|live| live.found(tools.iter().map(|found| found.tool.name.to_string())));
        let direct = tools.iter().filter(|found| self.opens(&found.tool, CallPath::Direct));
        let mut loaded = self.load(direct.map(|found| &found.tool.name));
        let is_known =
            |name: &ExposedName| tools.iter().any(|it| it.is_loaded && it.tool.name == *name);
        loaded.retain(|name| !is_known(name));
        loaded
    }
}

/// Which part of rankings is shown.
struct ResultPart {
    /// How many queries there are. The other rankings are of steps.
    queries: usize,
    /// How many tools a query gets.
    each: usize,
    limit: usize,
    offset: usize,
    is_pattern: bool,
}

/// What comes first, and then what the others have besides.
fn with_others(first: Vec<Hit>, others: Vec<Hit>) -> Vec<Hit> {
    let mut all = first;
    for hit in others {
        if all.iter().all(|known| known.key != hit.key) {
            all.push(hit);
        }
    }
    all
}

/// Which query found which tools, for the usage memory.
fn searched(steps: &[FoundStep], tools: &[FoundTool]) -> Vec<SearchedQuery> {
    let of = |step: &FoundStep| SearchedQuery {
        query: step.query.clone(),
        found: step.tools.iter().map(|place| tools[*place].tool.id.clone()).collect(),
    };
    steps.iter().map(of).collect()
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
