//! Findings about the definitions of all tools and entries, for `status` and `definitions`.

use std::collections::{BTreeSet, HashMap};

use toolgate_catalog::{ServerName, Tool, ToolId};
use toolgate_host::{JudgedEntry, ToolHost};
use toolgate_policy::definitions::{Likeness, scan, shadowing};

use super::held::{self, is_held};
use crate::table::grouped;

/// How many tools are suspicious, held back or denied, and what is suspicious.
pub(crate) struct Findings {
    /// One finding about each tool and entry that is used, and how many more there are; some of each server.
    pub(crate) listed: Vec<String>,
    /// All of them, with their servers, and the tools that they are about.
    pub(crate) found: Vec<(ServerName, Option<ToolId>, String)>,
    /// How many tools that is about.
    pub(crate) flagged: usize,
    /// How many instructions, prompts, resources and templates that is about.
    pub(crate) flagged_entries: usize,
    /// How many of these are held back until a person approves them.
    pub(crate) held_entries: usize,
    /// How many are held back until a person approves them.
    pub(crate) held: usize,
    /// How many nobody may call.
    pub(crate) denied: usize,
}

/// How many definitions of one server are listed.
const MOST_OF_A_SERVER: usize = 10;

/// The findings of one server: the first about each definition, so that one with many hides no other.
fn listed_of(server: &[(ServerName, Option<ToolId>, String)]) -> Vec<String> {
    // An entry is known by the beginning of its findings.
    let about = |(_, tool, text): &(ServerName, Option<ToolId>, String)| match tool {
        Some(tool) => tool.tool.to_string(),
        None => text.split("`: ").next().unwrap_or_default().to_owned(),
    };
    let (mut places, mut definitions) = (HashMap::new(), Vec::<(&str, usize)>::new());
    for finding in server {
        let place = *places.entry(about(finding)).or_insert(definitions.len());
        match definitions.get_mut(place) {
            Some((_, more)) => *more += 1,
            None => definitions.push((&finding.2, 0)),
        }
    }
    let mut listed: Vec<String> = definitions
        .iter()
        .take(MOST_OF_A_SERVER)
        .map(|(text, more)| match more {
            0 => (*text).to_owned(),
            1 => format!("{text}; and 1 more finding"),
            more => format!("{text}; and {more} more findings"),
        })
        .collect();
    let left = definitions.len().saturating_sub(MOST_OF_A_SERVER);
    if let (Some((name, ..)), true) = (server.first(), left > 0) {
        listed.push(format!("server `{name}`: {left} more definitions with findings"));
    }
    listed
}

impl Findings {
    /// Looks at everything that is known.
    pub(crate) fn of(host: &ToolHost, entries: &[JudgedEntry]) -> Self {
        let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        let names = held::tool_names(host);
        let mut found: Vec<(ToolId, String)> = Vec::new();
        for tool in &tools {
            let about_others = names.scan(&tool.id.server, &tool.definition.to_value());
            for finding in scan(&tool.definition).into_iter().chain(about_others) {
                found.push((tool.id.clone(), format!("`{}`: {finding}", tool.name)));
            }
        }
        // The same name on two servers is common, and its prefix distinguishes them.
        let shadows = shadowing(tools.iter().map(|tool| &tool.id)).into_iter();
        let alike = shadows.filter(|shadow| shadow.likeness != Likeness::Same);
        found.extend(alike.map(|shadow| (shadow.tool.clone(), shadow.to_string())));
        let flagged: BTreeSet<&ToolId> = found.iter().map(|(tool, _)| tool).collect();
        let flagged = flagged.len();
        let held = host.hidden_tools().iter().filter(|tool| is_held(tool)).count();
        let denied = host.hidden_tools().len() - held;
        let with_tool = |(tool, text): (ToolId, String)| (tool.server.clone(), Some(tool), text);
        let mut found: Vec<(ServerName, Option<ToolId>, String)> =
            found.into_iter().map(with_tool).collect();
        let mut flagged_entries = 0;
        for JudgedEntry { entry, .. } in entries.iter().filter(|judged| judged.held.is_none()) {
            let findings = held::entry_findings(entry, &names);
            flagged_entries += usize::from(!findings.is_empty());
            let texts = findings.iter().map(|finding| format!("`{entry}`: {finding}"));
            found.extend(texts.map(|text| (entry.server.clone(), None, text)));
        }
        let held_entries = entries.iter().filter(|judged| judged.held.is_some()).count();
        found.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        let servers = found.chunk_by(|(left, ..), (right, ..)| left == right);
        let listed = servers.flat_map(listed_of).collect();
        Self { listed, found, flagged, flagged_entries, held_entries, held, denied }
    }

    /// The numbers of instructions, prompts, resources and templates as one line; `None` if all are
    /// zero.
    pub(crate) fn entries_line(&self) -> Option<String> {
        let parts = [("flagged", self.flagged_entries), ("held back", self.held_entries)];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{} {what}", grouped(count as u64)))
            .collect();
        let hint = "`toolgate definitions` lists them";
        (!parts.is_empty())
            .then(|| format!("Instructions, prompts and resources: {}; {hint}.", parts.join(", ")))
    }

    /// The numbers as one line; `None` if all are zero.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { flagged, held, denied, .. } = self;
        let parts = [("flagged", flagged), ("held back", held), ("denied by the policy", denied)];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, count)| **count > 0)
            .map(|(what, count)| format!("{} {what}", grouped(*count as u64)))
            .collect();
        let hint = if flagged + held > 0 { "; `toolgate definitions` lists them" } else { "" };
        (!parts.is_empty()).then(|| format!("Tools: {}{hint}.", parts.join(", ")))
    }
}
