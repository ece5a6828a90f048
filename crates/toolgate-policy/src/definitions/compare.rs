//! What a server lists, against what was approved.

use std::collections::BTreeSet;

use serde::Serialize;
use toolgate_catalog::{Definition, ServerName, ToolId};

use super::difference::Differences;
use super::lock::{Lock, Locked};
use crate::NewTools;

/// What became of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The tool.
    pub tool: ToolId,
    /// What became of it.
    #[serde(flatten)]
    pub kind: ChangeKind,
}

/// What became of a tool since it was approved.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "change", content = "details")]
pub enum ChangeKind {
    /// It is as it was approved.
    Unchanged,
    /// It was never approved.
    New(Newness),
    /// It is not what was approved. It is held back until somebody approves it.
    Changed(Differences),
    /// The server no longer has it.
    Gone,
}

/// Why a tool was never approved, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Newness {
    /// Its whole server is new: it is used and pinned, as whoever configured the server wanted.
    WithItsServer,
    /// Its server is known, and new tools are let in: it is used and pinned.
    LetIn,
    /// Its server is known, and new tools are held back until somebody approves them.
    Held,
}

impl Change {
    /// Whether the tool must not be shown or called.
    pub fn is_held(&self) -> bool {
        matches!(self.kind, ChangeKind::Changed(_) | ChangeKind::New(Newness::Held))
    }

    /// Whether the tool is to be pinned as it is.
    pub fn is_to_be_pinned(&self) -> bool {
        matches!(self.kind, ChangeKind::New(Newness::WithItsServer | Newness::LetIn))
    }
}

/// Compares what a server lists with what was approved: its tools in the order of the list, then
/// those that are gone. Definitions that are JSON-equal, the order of keys aside, never differ.
pub fn compare<'d>(
    lock: &Lock,
    server: &ServerName,
    listing: impl IntoIterator<Item = &'d Definition>,
    new_tools: NewTools,
) -> Vec<Change> {
    let newness = match (lock.knows(server), new_tools) {
        (false, _) => Newness::WithItsServer,
        (true, NewTools::Allow) => Newness::LetIn,
        (true, NewTools::Hold) => Newness::Held,
    };
    let change = |tool: &str, kind| Change { tool: ToolId::new(server.clone(), tool), kind };
    let mut listed = BTreeSet::new();
    let mut changes = Vec::new();
    for definition in listing {
        let name: &str = definition.name();
        listed.insert(name);
        let kind = match lock.get(server, name) {
            None => ChangeKind::New(newness),
            Some(locked) => against(locked, definition),
        };
        changes.push(change(name, kind));
    }
    let gone = lock.tools(server).filter(|(name, _)| !listed.contains(name));
    changes.extend(gone.map(|(name, _)| change(name, ChangeKind::Gone)));
    changes
}

fn against(locked: &Locked, definition: &Definition) -> ChangeKind {
    let now = Locked::of(definition);
    let lock_edited = !locked.is_consistent(definition.name());
    if now.fingerprint() == locked.fingerprint() && !lock_edited {
        return ChangeKind::Unchanged;
    }
    let differences = Differences::between(locked.definition(), now.definition());
    ChangeKind::Changed(Differences { lock_edited, ..differences })
}
