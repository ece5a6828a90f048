//! Holds back entries of servers that differ from their pins, and suspicious ones: instructions,
//! prompts, resources and templates.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use toolgate_catalog::ServerName;
use toolgate_policy::definitions::{
    ChangeKind, EntryKind, Lock, NewPins, ServerEntry, compare_entries,
};

use crate::tool_filter::ToolFilter;

/// Why an entry is held back.
#[derive(Debug, Clone, PartialEq)]
pub enum HeldReason {
    /// It differs from its pin, or was never approved.
    Changed(ChangeKind),
    /// It is suspicious, and nobody has approved it anyway.
    Suspicious(Vec<String>),
}

/// The entries of one list that are held back, by name or URI.
pub(crate) type HeldEntries = HashMap<Arc<str>, HeldReason>;

/// The decisions about the instructions of servers: the revision of the filter, the instructions, and
/// why they are held back.
pub(crate) type KnownInstructions = HashMap<ServerName, (u64, String, Option<HeldReason>)>;

impl ToolFilter {
    /// Whether an entry could be held back.
    pub(crate) fn judges_entries(&self) -> bool {
        self.lock.is_some() || self.holds_findings()
    }

    /// The entries of a server that are held back. New ones that are used are pinned, except
    /// resources: these come and go, and a person pins them. If these are all of the kind that the
    /// server has (`is_whole`), later ones are new.
    pub(crate) fn hold_entries(
        &self,
        server: &ServerName,
        kind: EntryKind,
        entries: &[ServerEntry],
        is_whole: bool,
    ) -> HeldEntries {
        let mut held = HeldEntries::new();
        let changes = self
            .lock
            .as_ref()
            .map(|lock| compare_entries(&lock.read(), entries, self.policy.new_tools()));
        let mut new = NewPins::default();
        for (index, entry) in entries.iter().enumerate() {
            let change = changes.as_ref().and_then(|changes| changes.get(index));
            if let Some(change) = change.filter(|change| change.is_held()) {
                held.insert(Arc::clone(&entry.key), HeldReason::Changed(change.clone()));
                continue;
            }
            let found = self.entry_suspicions(entry);
            if !found.is_empty() {
                held.insert(Arc::clone(&entry.key), HeldReason::Suspicious(found));
            } else if change.is_some_and(ChangeKind::is_to_be_pinned) {
                new.entries.push(entry.clone());
            }
        }
        if let Some(lock) = &self.lock
            && kind != EntryKind::Resource
        {
            let is_new = |kind: &EntryKind| is_whole && !lock.read().covers(server, *kind);
            new.covered = Some(kind).filter(is_new);
            if !new.entries.is_empty() || new.covered.is_some() {
                self.write_pins(server, lock, &new);
            }
        }
        held
    }

    /// Why a single entry is held back. It is not pinned: the whole list is not known.
    pub(crate) fn hold_entry(&self, entry: &ServerEntry) -> Option<HeldReason> {
        let compare = |lock: &Lock| compare_entries(lock, [entry], self.policy.new_tools());
        let change = self.lock.as_ref().and_then(|lock| compare(&lock.read()).pop());
        if let Some(change) = change.filter(ChangeKind::is_held) {
            return Some(HeldReason::Changed(change));
        }
        let found = self.entry_suspicions(entry);
        (!found.is_empty()).then_some(HeldReason::Suspicious(found))
    }

    /// Why the instructions of a server are held back; the text is empty if it has none.
    pub(crate) fn hold_instructions(&self, server: &ServerName, text: &str) -> Option<HeldReason> {
        if !self.judges_entries() {
            return None;
        }
        let revision = self.revision();
        if let Some((at, known, why)) = self.instructions.lock().get(server)
            && (*at, known.as_str()) == (revision, text)
        {
            return why.clone();
        }
        let entry = Some(text).filter(|text| !text.is_empty());
        let entry = entry.map(|text| ServerEntry::instructions(server, text));
        let kind = EntryKind::Instructions;
        let mut held = self.hold_entries(server, kind, entry.as_slice(), true);
        let why = held.drain().next().map(|(_, why)| why);
        let known = (revision, text.to_owned(), why.clone());
        self.instructions.lock().insert(server.clone(), known);
        why
    }

    /// Why an entry is suspicious, unless a person has approved it anyway.
    fn entry_suspicions(&self, entry: &ServerEntry) -> Vec<String> {
        if !self.holds_findings() {
            return Vec::new();
        }
        let found = self.found(&entry.server, &entry.value);
        let reviewed = |lock: &RwLock<Lock>| lock.read().is_entry_reviewed(entry);
        if found.is_empty() || self.lock.as_ref().is_some_and(reviewed) {
            return Vec::new();
        }
        found
    }
}
