//! Servers that are not there, so that nobody takes their tools for missing or for working.

use std::fmt::Write;

use toolgate_catalog::Catalog;
use toolgate_upstream::StateKind;

use super::one_line;
use crate::host::Host;

const SHOWN: usize = 5;
const REASON_CHARACTERS: usize = 160;

/// A sentence for the servers that are still starting and have no tools yet, and one for those that
/// are not connected.
pub(crate) fn notes(host: &Host, catalog: &Catalog) -> Vec<String> {
    let mut starting = Vec::new();
    let mut failed = Vec::new();
    for entry in catalog.servers() {
        let name = entry.name.as_str();
        match host.servers().state(name).map(|state| (state.kind, state.failure)) {
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
    notes
}

fn bounded_list(items: &[String]) -> String {
    let shown: Vec<&str> = items.iter().take(SHOWN).map(String::as_str).collect();
    let mut text = shown.join(", ");
    if items.len() > SHOWN {
        let _ = write!(text, " and {} more", items.len() - SHOWN);
    }
    text
}
