//! What a model reads of a search.

use std::fmt::Write;

use serde_json::{Value, json};
use toolgate_catalog::{Catalog, Exposure, ExposureKind, Tool, brief_signature, nearest};
use toolgate_policy::CallPath;
use toolgate_upstream::StateKind;

use super::{
    one_line,
    search::{SearchDetail, SearchRequest},
};
use crate::{
    finding::{FoundStep, FoundTool, FoundTools},
    session::ToolSession,
};

const DESCRIPTION_CHARACTERS: usize = 300;
/// How much of a signature is shown.
const SIGNATURE_CHARACTERS: usize = 200;
const SERVER_CHARACTERS: usize = 120;
/// How many servers are named if nothing matched.
const LISTED_SERVERS: usize = 30;
/// How many characters of schemas are shown.
const SCHEMA_CHARACTERS: usize = 60_000;

/// The result of a search, while it is written.
pub(super) struct SearchReport<'a> {
    session: &'a ToolSession,
    catalog: &'a Catalog,
    request: &'a SearchRequest,
    /// How many tools the model has seen before.
    offset: usize,
    text: String,
    pub(super) notes: Vec<String>,
}

/// A found tool as it is shown.
struct ToolRow {
    text: String,
    data: Value,
}

impl<'a> SearchReport<'a> {
    pub(super) fn new(
        session: &'a ToolSession,
        catalog: &'a Catalog,
        request: &'a SearchRequest,
        offset: usize,
    ) -> Self {
        Self { session, catalog, request, offset, text: String::new(), notes: vec![] }
    }

    pub(super) fn into_text(mut self) -> String {
        for note in &self.notes {
            let _ = write!(self.text, "\n{note}");
        }
        self.text
    }

    /// The tools of each query, grouped by server. The server of the best tool comes first.
    pub(super) fn found(&mut self, found: &FoundTools) -> Vec<Value> {
        self.headline(found);
        let mut left = SCHEMA_CHARACTERS;
        let rows: Vec<ToolRow> =
            found.tools.iter().map(|tool| self.tool_row(tool, &mut left)).collect();
        let all: Vec<usize> = (0..rows.len()).collect();
        // The headline quotes a single query, and each of several has a line of its own.
        let unnamed = usize::from(found.queries.len() == 1);
        if found.steps.len() > 1 {
            let mut shown: Vec<usize> = Vec::new();
            for (place, step) in found.steps.iter().enumerate() {
                self.step(step, place >= unnamed, &mut shown, found, &rows);
            }
        } else {
            self.rows(&all, found, &rows);
        }
        let groups = by_server(&all, found);
        let group = |(server, places): &(&str, Vec<usize>)| {
            let rows: Vec<&Value> = places.iter().map(|place| &rows[*place].data).collect();
            let mut group = json!({ "server": server, "tools": rows });
            if self.waits(server) {
                group["connected"] = json!(false);
            }
            group
        };
        groups.iter().map(group).collect()
    }

    fn headline(&mut self, found: &FoundTools) {
        let (count, total, first) = (found.tools.len(), self.total(), self.offset + 1);
        let last = self.offset + count;
        let queries = quoted(&found.queries);
        let own = &found.steps[..found.queries.len().min(found.steps.len())];
        let is_weak = !own.is_empty() && own.iter().all(|step| step.is_weak);
        let _ = match found.total {
            Some(all) if found.queries.is_empty() => {
                let server = one_line(self.request.server.as_deref().unwrap_or_default(), 64);
                writeln!(self.text, "Tools {first} to {last} of {all} of the server {server}:")
            }
            Some(all) => {
                writeln!(self.text, "Tools {first} to {last} of {all} that match {queries}:")
            }
            None if is_weak => writeln!(
                self.text,
                "Nothing matches {queries} well. The nearest {count} of {total} tools:"
            ),
            None if self.offset > 0 => {
                writeln!(self.text, "Tools {first} to {last} of {total} for {queries}:")
            }
            None => writeln!(self.text, "{count} of {total} tools for {queries}:"),
        };
    }

    /// What one query found. What another one has found before is only named.
    fn step(
        &mut self,
        step: &FoundStep,
        is_named: bool,
        shown: &mut Vec<usize>,
        found: &FoundTools,
        rows: &[ToolRow],
    ) {
        let (new, above): (Vec<usize>, Vec<usize>) =
            step.tools.iter().partition(|place| !shown.contains(place));
        if is_named {
            let query = one_line(&step.query, 80);
            let weak =
                if step.is_weak && !step.tools.is_empty() { " (nothing matches well)" } else { "" };
            let _ = write!(self.text, "\nFor \"{query}\"{weak}:");
            if step.tools.is_empty() {
                self.text.push_str(" nothing");
            }
            let names: Vec<&str> =
                above.iter().map(|place| found.tools[*place].tool.name.as_str()).collect();
            if !names.is_empty() {
                let _ = write!(self.text, " {} (above)", names.join(", "));
            }
            self.text.push('\n');
        }
        self.rows(&new, found, rows);
        shown.extend(new);
    }

    fn rows(&mut self, places: &[usize], found: &FoundTools, rows: &[ToolRow]) {
        for (server, places) in by_server(places, found) {
            let _ = writeln!(self.text, "\n{}", self.server_line(server));
            for place in places {
                self.text.push_str(&rows[place].text);
            }
        }
    }

    fn tool_row(&self, found: &FoundTool, left: &mut usize) -> ToolRow {
        let FoundTool { tool, is_loaded, is_remembered, .. } = found;
        let name = tool.name.as_str();
        let mut data = json!({ "name": name });
        let mut text = String::from("- ");
        if self.request.detail == SearchDetail::Description {
            let signature =
                brief_signature(name, &tool.definition.input_schema(), SIGNATURE_CHARACTERS);
            let signature = one_line(&signature, SIGNATURE_CHARACTERS + 20);
            text.push_str(&signature);
            data["signature"] = json!(signature);
        } else {
            text.push_str(name);
        }
        if *is_loaded {
            text.push_str(" [loaded]");
            data["loaded"] = json!(true);
        }
        if *is_remembered {
            text.push_str(" [used before]");
            data["usedBefore"] = json!(true);
        }
        if let Some((word, way)) = self.only_way(tool) {
            let _ = write!(text, " [{word}]");
            data["allowedCallers"] = json!([way]);
        }
        if self.request.detail != SearchDetail::Name {
            let description = one_line(tool.definition.description(), DESCRIPTION_CHARACTERS);
            if !description.is_empty() {
                let _ = write!(text, ": {description}");
            }
            data["description"] = json!(description);
        }
        if self.request.detail == SearchDetail::Schema {
            let input = Some(tool.definition.input_schema());
            let schemas = [
                ("inputSchema", "", input),
                ("outputSchema", "returns ", tool.definition.output_schema()),
            ];
            for (key, lead, schema) in schemas {
                let Some(schema) = schema else { continue };
                let shown = schema.to_string();
                if shown.len() <= *left {
                    *left -= shown.len();
                    let _ = write!(text, "\n  {lead}{shown}");
                    data[key] = schema;
                } else {
                    let _ =
                        write!(text, "\n  ({lead}its schema is too long here: get_tool_details)");
                }
            }
        }
        text.push('\n');
        ToolRow { text, data }
    }

    /// How to get what was left out, where it is known that there is more.
    pub(super) fn more(&mut self, found: &FoundTools) {
        let next = self.offset + found.tools.len();
        if let Some(total) = found.total
            && next < total
            && !found.tools.is_empty()
        {
            self.notes.push(format!("{} more: the same search with offset {next}.", total - next));
        }
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

    /// A bounded list of servers and counts, or why a list is empty.
    pub(super) fn nothing_found(&mut self, found: &FoundTools) -> Vec<Value> {
        if found.queries.is_empty() && found.total.is_some() {
            let server = self.request.server.as_deref().unwrap_or_default();
            let line = self.server_line(server);
            let _ = writeln!(self.text, "No tool of the server {line}.");
            return Vec::new();
        }
        if let Some(total) = found.total.filter(|total| *total > 0) {
            let _ =
                writeln!(self.text, "{total} tools match, none from offset {} on.", self.offset);
            return Vec::new();
        }
        if found.queries.is_empty() {
            self.text.push_str("Say what to search for. The servers:\n");
        } else {
            let _ = writeln!(self.text, "No tool matches {}. The servers:", quoted(&found.queries));
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

    pub(super) fn note_unknown_server(&mut self) {
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

    pub(super) fn closing_notes(&mut self, exposure: &Exposure, found: &FoundTools) {
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
        } else if kind == ExposureKind::Dynamic && !found.loaded.is_empty() {
            self.notes.push("The tools found are loaded now: call them by name.".to_owned());
        } else if !found.tools.is_empty() && self.request.detail != SearchDetail::Schema {
            let way = match kind {
                ExposureKind::Code if self.session.host().code().is_enabled() => "run_code",
                _ => "call_tool",
            };
            self.notes.push(format!("To call: {way}. What parameters mean: get_tool_details."));
        }
    }
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

fn by_server<'f>(places: &[usize], found: &'f FoundTools) -> Vec<(&'f str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for place in places {
        let server = found.tools[*place].tool.id.server.as_str();
        match groups.iter_mut().find(|(known, _)| *known == server) {
            Some((_, places)) => places.push(*place),
            None => groups.push((server, vec![*place])),
        }
    }
    groups
}
