//! The prompts and resources of the server that are held back.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;
use tokio::sync::{Mutex, watch};
use toolgate_broker::RawChannel;
use toolgate_host::PassthroughGuard;
use toolgate_mcp::methods;
use toolgate_policy::definitions::{EntryKind, is_only_named_by};

use super::{changes::ListChanges, tools::read_pages};

/// Which entries are held back. Each list is read when it is first needed, and again after each
/// change.
#[derive(Debug)]
pub(crate) struct EntryLists {
    connection: Arc<dyn RawChannel>,
    guard: Arc<PassthroughGuard>,
    judged: Mutex<HashMap<EntryKind, Arc<JudgedList>>>,
    changes: ListChanges,
}

/// The names or URIs of a list.
#[derive(Debug, Default)]
struct JudgedList {
    held: HashSet<Arc<str>>,
    others: HashSet<String>,
}

impl EntryLists {
    pub(crate) fn new(
        connection: Arc<dyn RawChannel>,
        guard: Arc<PassthroughGuard>,
        changes: watch::Receiver<u64>,
    ) -> Self {
        let changes = ListChanges::new(&guard, changes);
        Self { connection, guard, judged: Mutex::default(), changes }
    }

    /// Whether a request is about an entry that is held back, or about a resource that is not listed
    /// and only named by templates that are.
    pub(crate) async fn holds(&self, method: &str, params: Option<&Value>) -> bool {
        let Some((kind, key)) = subject(method, params) else { return false };
        let Some(list) = self.judged(kind).await else { return false };
        if list.held.contains(key) {
            return true;
        }
        if kind != EntryKind::Resource || list.others.contains(key) {
            return false;
        }
        let Some(templates) = self.judged(EntryKind::Template).await else { return false };
        let held = templates.held.iter().map(|template| &**template);
        is_only_named_by(held, templates.others.iter().map(String::as_str), key)
    }

    /// Removes entries that are held back from a list. Each is judged as it is, because a server may
    /// list other definitions than before.
    pub(crate) async fn filter(&self, kind: EntryKind, entries: &mut Vec<Value>) {
        if self.judged(kind).await.is_some() {
            entries.retain(|entry| !self.guard.is_entry_held(kind, entry));
        }
    }

    /// What of a list is held back; `None` if nothing ever is.
    async fn judged(&self, kind: EntryKind) -> Option<Arc<JudgedList>> {
        if !self.guard.judges_entries() {
            return None;
        }
        let mut judged = self.judged.lock().await;
        if self.changes.take() {
            judged.clear();
        }
        if let Some(list) = judged.get(&kind) {
            return Some(Arc::clone(list));
        }
        let (method, field) = list_of(kind);
        let (list, is_whole) = read_pages(&self.guard, &*self.connection, method, field).await;
        let guard = Arc::clone(&self.guard);
        let judging = move || {
            let held = guard.held_entries(kind, &list, is_whole);
            let keys = list.iter().filter_map(|entry| entry.get(kind.key_field())?.as_str());
            let others = keys.filter(|key| !held.contains(*key)).map(str::to_owned).collect();
            JudgedList { held, others }
        };
        let list = Arc::new(tokio::task::spawn_blocking(judging).await.unwrap_or_default());
        judged.insert(kind, Arc::clone(&list));
        Some(list)
    }
}

/// The kind and the name or URI of the entry that a request is about.
fn subject<'p>(method: &str, params: Option<&'p Value>) -> Option<(EntryKind, &'p str)> {
    let params = params?;
    let (kind, entry) = match method {
        methods::PROMPTS_GET => (EntryKind::Prompt, params),
        methods::RESOURCES_READ | methods::RESOURCES_SUBSCRIBE => (EntryKind::Resource, params),
        "completion/complete" => {
            let reference = params.get("ref")?;
            match reference.get("type")?.as_str()? {
                "ref/prompt" => (EntryKind::Prompt, reference),
                "ref/resource" => {
                    return Some((EntryKind::Template, reference.get("uri")?.as_str()?));
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((kind, entry.get(kind.key_field())?.as_str()?))
}

fn list_of(kind: EntryKind) -> (&'static str, &'static str) {
    match kind {
        EntryKind::Resource => (methods::RESOURCES_LIST, "resources"),
        EntryKind::Template => (methods::RESOURCE_TEMPLATES_LIST, "resourceTemplates"),
        EntryKind::Prompt | EntryKind::Instructions => (methods::PROMPTS_LIST, "prompts"),
        EntryKind::Skill => (methods::SKILLS_LIST, "skills"),
    }
}
