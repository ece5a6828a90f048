//! `search_tools`.

use std::fmt::Write;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolgate_catalog::{Catalog, Exposure, ExposureKind, Tool, nearest};
use toolgate_policy::CallPath;
use toolgate_upstream::StateKind;

use super::{Whole, notes, one_line, result};
use crate::{
    finding::{FoundTool, ToolQuery},
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
    server: Option<String>,
    limit: Option<Whole<1>>,
    detail: SearchDetail,
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
enum SearchDetail {
    Name,
    /// The name and the description.
    #[default]
    Description,
    /// The name, the description and the input schema.
    Schema,
}

/// How many skills of servers a search shows.
const SHOWN_SKILLS: usize = 3;
const DESCRIPTION_CHARACTERS: usize = 300;
const SERVER_CHARACTERS: usize = 120;
/// How many servers are named if nothing matched.
const LISTED_SERVERS: usize = 30;
/// How many characters of schemas are shown.
const SCHEMA_CHARACTERS: usize = 60_000;

/// The result of a search, while it is written.
struct SearchReport<'a> {
    session: &'a ToolSession,
    catalog: &'a Catalog,
    request: &'a SearchRequest,
    text: String,
    notes: Vec<String>,
}

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
    };
    let found = match session.find(&query).await {
        Ok(found) => found,
        Err(error) => return error_result(&capitalised(&error.to_string())),
    };
    let skills = skills::matching(session, &found.queries, SHOWN_SKILLS).await;
    let catalog = host.catalog().read();
    let mut report =
        SearchReport { session, catalog: &catalog, request, text: String::new(), notes: vec![] };
    let (tools, queries) = (&found.tools, &found.queries);
    if found.is_server_unknown {
        report.note_unknown_server();
    }
    let (groups, known) = if tools.is_empty() {
        (Vec::new(), report.nothing_found(queries))
    } else {
        (report.found(queries, tools, found.weak.len() == queries.len()), Vec::new())
    };
    if !found.weak.is_empty() && found.weak.len() < queries.len() {
        report.notes.push(format!("Nothing matches {} well.", quoted(&found.weak)));
    }
    report.notes.extend(found.ranking_note);
    report.closing_notes(exposure, tools.is_empty(), found.added);
    report.notes.extend(found.encoding_note);
    report.notes.extend(skills.iter().map(|skill| format!("Skill {}.", skill.line())));
    report.notes.extend(notes::absent_servers(host, &catalog));
    report.notes.extend(notes::other_servers(session, &catalog, queries));
    report.notes.extend(host.settings().notices.iter().cloned());
    let SearchReport { mut text, notes, .. } = report;
    for note in &notes {
        let _ = write!(text, "\n{note}");
    }
    // Scripts rely on one shape: each server has `tools`, and none is there without a hit.
    let mut data = json!({ "found": tools.len(), "servers": groups, "notes": notes });
    if !found.weak.is_empty() {
        data["weak"] = json!(found.weak);
    }
    if !known.is_empty() {
        data["knownServers"] = json!(known);
    }
    if !skills.is_empty() {
        data["skills"] = skills.iter().map(ServerSkill::row).collect();
    }
    result(&text, &data)
}

impl SearchReport<'_> {
    /// Groups by server. The server of the best tool comes first.
    fn found(&mut self, queries: &[String], tools: &[FoundTool], weak: bool) -> Vec<Value> {
        let (count, total, quoted) = (tools.len(), self.total(), quoted(queries));
        let _ = if weak {
            writeln!(
                self.text,
                "Nothing matches {quoted} well. The nearest {count} of {total} tools:"
            )
        } else {
            writeln!(self.text, "{count} of {total} tools for {quoted}:")
        };
        let mut servers: Vec<&str> = Vec::new();
        for FoundTool { tool, .. } in tools {
            if !servers.contains(&tool.id.server.as_str()) {
                servers.push(tool.id.server.as_str());
            }
        }
        let mut groups = Vec::new();
        let mut left = SCHEMA_CHARACTERS;
        for server in servers {
            let _ = writeln!(self.text, "\n{}", self.server_line(server));
            let mut rows = Vec::new();
            for found in tools {
                if found.tool.id.server.as_str() == server {
                    rows.push(self.tool_row(found, &mut left));
                }
            }
            let mut group = json!({ "server": server, "tools": rows });
            if self.waits(server) {
                group["connected"] = json!(false);
            }
            groups.push(group);
        }
        groups
    }

    fn tool_row(&mut self, found: &FoundTool, left: &mut usize) -> Value {
        let FoundTool { tool, is_loaded: loaded, is_remembered } = found;
        let loaded = *loaded;
        let mut row = json!({ "name": tool.name });
        let mark = if loaded { " [loaded]" } else { "" };
        let _ = write!(self.text, "- {}{mark}", tool.name);
        if loaded {
            row["loaded"] = json!(true);
        }
        if *is_remembered {
            self.text.push_str(" [used before]");
            row["usedBefore"] = json!(true);
        }
        if let Some((word, way)) = self.only_way(tool) {
            let _ = write!(self.text, " [{word}]");
            row["allowedCallers"] = json!([way]);
        }
        if self.request.detail != SearchDetail::Name {
            let description = one_line(tool.definition.description(), DESCRIPTION_CHARACTERS);
            if !description.is_empty() {
                let _ = write!(self.text, ": {description}");
            }
            row["description"] = json!(description);
        }
        if self.request.detail == SearchDetail::Schema {
            let schema = tool.definition.input_schema();
            let text = schema.to_string();
            if text.len() <= *left {
                *left -= text.len();
                let _ = write!(self.text, "\n  {text}");
                row["inputSchema"] = schema;
            } else {
                let _ = write!(self.text, "\n  (its schema is too long here: get_tool_details)");
            }
        }
        self.text.push('\n');
        row
    }

    /// How many tools the caller can call.
    fn total(&self) -> usize {
        let servers = self.catalog.servers();
        servers.map(|entry| self.session.offered_of(self.catalog, entry.name.as_str())).sum()
    }

    /// The only way in which the caller can call a tool, where there are two.
    fn only_way(&self, tool: &Tool) -> Option<(&'static str, CallPath)> {
        let opens = |from| self.session.opens(tool, from);
        match (opens(CallPath::Direct), opens(CallPath::Script)) {
            (false, true) => Some(("in run_code only", CallPath::Script)),
            (true, false) if self.session.host().code().is_enabled() => {
                Some(("not in run_code", CallPath::Direct))
            }
            _ => None,
        }
    }

    /// A bounded list of servers and counts.
    fn nothing_found(&mut self, queries: &[String]) -> Vec<Value> {
        if queries.is_empty() {
            self.text.push_str("Say what to search for. The servers:\n");
        } else {
            let _ = writeln!(self.text, "No tool matches {}. The servers:", quoted(queries));
        }
        let mut groups = Vec::new();
        let mut left_out = 0;
        for entry in self.catalog.servers() {
            let name = entry.name.as_str();
            let count = self.session.offered_of(self.catalog, name);
            if groups.len() == LISTED_SERVERS {
                left_out += 1;
                continue;
            }
            let line = self.server_line(name);
            let _ = writeln!(self.text, "- {line}");
            groups.push(json!({ "server": name, "toolCount": count }));
        }
        if left_out > 0 {
            let _ = writeln!(self.text, "- … {left_out} more");
        }
        groups
    }

    fn server_line(&self, server: &str) -> String {
        let count = self.session.offered_of(self.catalog, server);
        let plural = if count == 1 { "" } else { "s" };
        let host = self.session.host();
        let tools = format!("{count} tool{plural}");
        let state = match (host.is_off(&server.into()), self.waits(server), count) {
            (true, ..) => "disabled".to_owned(),
            // The number of its tools is unknown.
            (false, true, 0) => "not connected".to_owned(),
            (false, true, _) => format!("{tools}; not connected, a call connects it"),
            (false, false, _) => tools,
        };
        let description = self
            .catalog
            .server(server)
            .and_then(|entry| entry.description.as_deref())
            .map(|text| format!(": {}", one_line(text, SERVER_CHARACTERS)))
            .unwrap_or_default();
        format!("{server} ({state}){description}")
    }

    /// Whether a lazy server is not connected.
    fn waits(&self, server: &str) -> bool {
        let host = self.session.host();
        let idle = host.servers().state(server).is_some_and(|state| state.kind == StateKind::Idle);
        idle && host.is_lazy(&server.into())
    }

    fn note_unknown_server(&mut self) {
        let wanted = self.request.server.as_deref().unwrap_or_default();
        let names = self.catalog.servers().map(|entry| entry.name.as_str());
        let nearest = nearest(wanted, names, 3);
        let wanted = one_line(wanted, 64);
        self.notes.push(if nearest.is_empty() {
            format!("There is no server `{wanted}`; all were searched.")
        } else {
            format!(
                "There is no server `{wanted}` (nearest: {}); all were searched.",
                nearest.join(", ")
            )
        });
    }

    fn closing_notes(&mut self, exposure: &Exposure, nothing: bool, added: usize) {
        let kind = exposure.kind;
        // Stops at the first deferred tool, so that only a small direct set is checked completely.
        let tells_apart = self.session.host().broker().policy().tells_callers_apart();
        let all_loaded = (exposure.loads_everything() && !tells_apart)
            || self
                .catalog
                .tools()
                .filter(|tool| self.session.sees(&tool.id.server) && self.session.offers(tool))
                .all(|tool| self.session.is_loaded(tool, self.catalog));
        if all_loaded && !self.catalog.is_empty() {
            let count = self.total();
            self.notes.push(format!(
                "Nothing is deferred: all {count} tools are loaded and can be called by name."
            ));
        } else if kind == ExposureKind::Dynamic && added > 0 {
            self.notes.push("The tools found are loaded now: call them by name.".to_owned());
        } else if !nothing && self.request.detail != SearchDetail::Schema {
            let way = match kind {
                ExposureKind::Code if self.session.host().code().is_enabled() => "run_code",
                _ => "call_tool",
            };
            self.notes.push(format!("Parameters: get_tool_details. To call: {way}."));
        }
    }
}

/// The text as a sentence.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

fn quoted(queries: &[String]) -> String {
    const QUOTED: usize = 4;
    let quoted = queries.iter().take(QUOTED).map(|query| format!("\"{}\"", one_line(query, 80)));
    let mut text = quoted.collect::<Vec<_>>().join(", ");
    if queries.len() > QUOTED {
        let _ = write!(text, " and {} more", queries.len() - QUOTED);
    }
    text
}
