//! Findings about the definitions of all tools, for `status` and `definitions`.

use std::collections::BTreeSet;

use toolgate_catalog::{Tool, ToolId};
use toolgate_host::{HiddenReason, HiddenTool, Host};
use toolgate_policy::definitions::{Likeness, scan, shadowing};

use crate::table::grouped;

/// How many tools are suspicious, held back or denied, and what is suspicious.
pub(crate) struct Findings {
    /// The findings about tools that are used.
    pub(crate) listed: Vec<String>,
    /// How many tools that is about.
    pub(crate) flagged: usize,
    /// How many are held back until a person approves them.
    pub(crate) held: usize,
    /// How many nobody may call.
    pub(crate) denied: usize,
}

/// How many findings of one server are listed.
const MOST_OF_A_SERVER: usize = 10;

impl Findings {
    /// Looks at everything that is known.
    pub(crate) fn of(host: &Host) -> Self {
        let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        let mut found: Vec<(ToolId, String)> = Vec::new();
        for tool in &tools {
            for finding in scan(&tool.definition) {
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
        found.sort_by(|(left, _), (right, _)| left.server.cmp(&right.server));
        let servers = found.chunk_by(|(left, _), (right, _)| left.server == right.server);
        let listed = servers.flat_map(|of_server| of_server.iter().take(MOST_OF_A_SERVER));
        Self { listed: listed.map(|(_, text)| text.clone()).collect(), flagged, held, denied }
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

/// Whether somebody can approve it.
pub(crate) fn is_held(tool: &HiddenTool) -> bool {
    !matches!(tool.why, HiddenReason::Denied)
}
