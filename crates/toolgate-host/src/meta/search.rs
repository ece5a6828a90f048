//! `search_tools`.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolgate_search::StrategyName;

use super::{Whole, notes, result, search_report::SearchReport};
use crate::{
    finding::{ResultBudget, ToolQuery},
    resources::skills::{self, ServerSkill},
    session::{ToolSession, error_result},
};

/// The arguments of `search_tools`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SearchRequest {
    query: Option<String>,
    #[serde(deserialize_with = "one_or_several")]
    queries: Vec<String>,
    pub(super) server: Option<String>,
    limit: Option<Whole<1>>,
    offset: Option<Whole<0>>,
    strategy: Option<StrategyName>,
    pub(super) detail: SearchDetail,
    /// Unloads the tools found so far first, if that is possible.
    unload: bool,
}

/// Models send one query instead of a list, and `null` for none.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a list of queries")]
    enum Queries {
        Several(Vec<String>),
        One(String),
        None(()),
    }
    Ok(match Queries::deserialize(deserializer)? {
        Queries::Several(queries) => queries,
        Queries::One(query) => vec![query],
        Queries::None(()) => Vec::new(),
    })
}

/// How much of a found tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SearchDetail {
    Name,
    /// The name, the parameters and the description.
    #[default]
    Description,
    /// The name, the description and the schemas of the arguments and the result.
    Schema,
}

/// How many skills of servers a search shows.
const SHOWN_SKILLS: usize = 3;

pub(super) async fn search(session: &ToolSession, request: &SearchRequest) -> Value {
    let host = session.host();
    let exposure = session.exposure().await;
    if request.unload {
        session.unload_found();
    }
    let query = ToolQuery {
        queries: request.query.iter().chain(&request.queries).cloned().collect(),
        server: request.server.clone(),
        limit: request.limit.map(|Whole(limit)| limit),
        offset: request.offset.map_or(0, |Whole(offset)| offset),
        strategy: request.strategy,
        budget: ResultBudget::EachStep,
    };
    if query.strategy == Some(StrategyName::Subagent)
        && host.settings().strategy != StrategyName::Subagent
    {
        return error_result("`subagent` is not set up here: choose another strategy.");
    }
    let found = match session.find(&query).await {
        Ok(found) => found,
        Err(error) => return error_result(&capitalised(&error.to_string())),
    };
    let skills = skills::matching(session, &found.queries, SHOWN_SKILLS).await;
    let catalog = host.catalog().read();
    let mut report = SearchReport::new(session, &catalog, request, query.offset);
    if found.is_server_unknown {
        report.note_unknown_server();
    }
    let mut data = json!({ "found": found.tools.len(), "servers": [], "notes": [] });
    if found.tools.is_empty() {
        let known = report.nothing_found(&found);
        if !known.is_empty() {
            data["knownServers"] = json!(known);
        }
    } else {
        data["servers"] = json!(report.found(&found));
    }
    report.more(&found);
    report.notes.extend(found.ranking_note.clone());
    report.closing_notes(exposure, &found);
    report.notes.extend(found.encoding_note.clone());
    report.notes.extend(skills.iter().map(|skill| format!("Skill {}.", skill.line())));
    report.notes.extend(notes::absent_servers(session, &catalog));
    report.notes.extend(notes::other_servers(session, &catalog, &found.queries));
    report.notes.extend(host.settings().notices.iter().cloned());
    // Scripts rely on one shape: each server has `tools`, and none is there without a hit.
    data["notes"] = json!(report.notes);
    if let Some(total) = found.total {
        data["total"] = json!(total);
    }
    if found.steps.len() > 1 {
        let names = |places: &[usize]| -> Vec<&str> {
            places.iter().map(|place| found.tools[*place].tool.name.as_str()).collect()
        };
        let steps = found.steps.iter();
        data["steps"] =
            steps.map(|step| json!({ "query": step.query, "tools": names(&step.tools) })).collect();
    }
    let weak: Vec<&str> =
        found.steps.iter().filter(|step| step.is_weak).map(|step| step.query.as_str()).collect();
    if !weak.is_empty() {
        data["weak"] = json!(weak);
    }
    if !found.loaded.is_empty() {
        data["newlyLoaded"] = json!(found.loaded);
    }
    if !skills.is_empty() {
        data["skills"] = skills.iter().map(ServerSkill::row).collect();
    }
    result(&report.into_text(), &data)
}

/// The text as a sentence.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}
