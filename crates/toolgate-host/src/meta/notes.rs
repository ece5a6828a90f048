//! Notes about servers whose tools are missing from a result, so that a model does not take them for
//! missing or for working.

use std::fmt::Write;

use toolgate_catalog::Catalog;
use toolgate_store::SwitchedBy;
use toolgate_upstream::StateKind;

use super::one_line;
use crate::{
    directory::{DirectoryEntry, DirectoryKind},
    session::ToolSession,
};

const SHOWN_SERVERS: usize = 5;
const REASON_CHARACTERS: usize = 160;

/// A sentence for the servers that are still starting without tools, and one for those that are not
/// connected.
pub(super) fn absent_servers(session: &ToolSession, catalog: &Catalog) -> Vec<String> {
    let host = session.host();
    let caller = host.servers().has_callers().then(|| session.context().caller().login_owner());
    let mut starting = Vec::new();
    let mut failed = Vec::new();
    let mut logins = Vec::new();
    for entry in catalog.servers() {
        let name = entry.name.as_str();
        let state = match &caller {
            Some(caller) => host.servers().state_for(name, caller),
            None => host.servers().state(name),
        };
        match state.map(|state| (state.kind, state.failure)) {
            Some((StateKind::Failed, _)) if host.servers().is_per_caller(name) => {
                logins.push(name.to_owned());
            }
            Some((StateKind::Failed | StateKind::Connecting, Some(failure))) => {
                failed.push(format!("{name} ({})", one_line(&failure.reason, REASON_CHARACTERS)));
            }
            Some((StateKind::Connecting, None)) if catalog.tools_of(name).is_empty() => {
                starting.push(name.to_owned());
            }
            _ => {}
        }
    }
    let mut notes = Vec::new();
    if !starting.is_empty() {
        let names = bounded_list(&starting);
        notes.push(format!("Still starting, search again for their tools: {names}."));
    }
    if !failed.is_empty() {
        notes.push(format!("Not connected: {}.", bounded_list(&failed)));
    }
    if !logins.is_empty() {
        let names = bounded_list(&logins);
        notes.push(format!("The person has to log in: {names}. To begin: enable_server."));
    }
    notes
}

fn bounded_list(items: &[String]) -> String {
    let shown: Vec<&str> = items.iter().take(SHOWN_SERVERS).map(String::as_str).collect();
    let mut text = shown.join(", ");
    if items.len() > SHOWN_SERVERS {
        let _ = write!(text, " and {} more", items.len() - SHOWN_SERVERS);
    }
    text
}

const SHOWN_EACH: usize = 3;
const DESCRIPTION_CHARACTERS: usize = 80;

/// A line for the lazy servers that may have the tool, one for those that a person disabled, and one
/// for the skills.
pub(super) fn other_servers(
    session: &ToolSession,
    catalog: &Catalog,
    queries: &[String],
) -> Vec<String> {
    let (mut servers, mut refused, mut skills) = (Vec::new(), Vec::new(), Vec::new());
    let host = session.host();
    for query in queries {
        for item in host.inner.directory.search(
            query,
            &[DirectoryKind::Servers, DirectoryKind::Skills],
            2 * SHOWN_EACH,
        ) {
            let (name, description, list) = match &item {
                DirectoryEntry::Server(server) => {
                    let name = server.as_str();
                    let kind = host.servers().state(name).unwrap_or_default().kind;
                    let unknown = catalog.tools_of(name).is_empty() && kind == StateKind::Idle;
                    if kind != StateKind::Disabled && !(unknown && host.is_lazy(server)) {
                        continue;
                    }
                    let entry = catalog.server(name);
                    let description = entry.and_then(|entry| entry.description.as_deref());
                    let by = host.inner.enabled.switched_off_by(server);
                    let is_refused = by == Some(SwitchedBy::Person);
                    let list = if is_refused { &mut refused } else { &mut servers };
                    (name, description.unwrap_or_default(), list)
                }
                DirectoryEntry::Skill(skill) => {
                    (skill.name.as_str(), skill.description.as_str(), &mut skills)
                }
                DirectoryEntry::Listed(_) => continue,
            };
            let description = one_line(description, DESCRIPTION_CHARACTERS);
            let text = if description.is_empty() {
                name.to_owned()
            } else {
                format!("{name} ({description})")
            };
            if list.len() < SHOWN_EACH && !list.contains(&text) {
                list.push(text);
            }
        }
    }
    let mut notes = Vec::new();
    if !servers.is_empty() {
        let servers = servers.join(", ");
        notes
            .push(format!("Not connected, and may have it: {servers}. To connect: enable_server."));
    }
    if !refused.is_empty() {
        let servers = refused.join(", ");
        notes.push(format!(
            "Disabled by a person, and may have it: {servers}. They enable it: toolgate enable."
        ));
    }
    if !skills.is_empty() {
        notes.push(format!("Skills: {}. To use one: load_skill.", skills.join(", ")));
    }
    notes
}
