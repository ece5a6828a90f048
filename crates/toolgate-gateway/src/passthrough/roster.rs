//! Which tools of the one server may be seen and called.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use tokio::sync::{Mutex, watch};
use toolgate_catalog::{Definition, Fingerprint, read_list};
use toolgate_host::PassthroughGuard;

use super::{schemas, wire::Wire};

/// What is known of the server's tools: read once, and again after each change.
#[derive(Debug)]
pub(crate) struct Roster {
    known: Mutex<Option<Known>>,
    changes: parking_lot::Mutex<watch::Receiver<u64>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The tools that may be seen, by name.
    offered: HashMap<Arc<str>, Arc<Definition>>,
    /// Of each definition, whether it may be seen.
    judged: HashMap<Fingerprint, bool>,
}

/// Definitions that are remembered. A server that has more lists others each time.
const MOST_JUDGED: usize = 20_000;

impl Roster {
    pub(crate) fn new(changes: watch::Receiver<u64>) -> Self {
        Self { known: Mutex::default(), changes: parking_lot::Mutex::new(changes) }
    }

    /// The definition of a tool that may be seen.
    pub(crate) async fn find(
        &self,
        name: &str,
        guard: &PassthroughGuard,
        line: &Arc<dyn Wire>,
    ) -> Option<Arc<Definition>> {
        let mut known = self.known.lock().await;
        let known = self.current(&mut known, guard, line).await;
        known.offered.get(name).cloned()
    }

    /// Takes out of a list what may not be seen. Each entry is judged as it is: what a server lists now
    /// need not be what it listed before.
    pub(crate) async fn filter(
        &self,
        entries: &mut Vec<Value>,
        guard: &PassthroughGuard,
        line: &Arc<dyn Wire>,
    ) {
        let mut known = self.known.lock().await;
        let known = self.current(&mut known, guard, line).await;
        entries.retain(|entry| known.shows(entry, guard));
    }

    /// What is known now.
    async fn current<'k>(
        &self,
        known: &'k mut Option<Known>,
        guard: &PassthroughGuard,
        line: &Arc<dyn Wire>,
    ) -> &'k mut Known {
        let stale = {
            let mut changes = self.changes.lock();
            let stale = changes.has_changed().unwrap_or_default();
            changes.mark_unchanged();
            stale
        };
        if stale || known.as_ref().is_some_and(|known| known.judged.len() > MOST_JUDGED) {
            *known = None;
        }
        if known.is_none() {
            *known = Some(Known::read(guard, line).await);
        }
        known.get_or_insert_default()
    }
}

impl Known {
    /// All of the list at once: which tools are new of a known server can only be told so.
    async fn read(guard: &PassthroughGuard, line: &Arc<dyn Wire>) -> Self {
        let (mut definitions, _) = read_list(&schemas::list(line).await);
        let mut judged: HashMap<Fingerprint, bool> =
            definitions.iter().map(|definition| (definition.fingerprint(), false)).collect();
        guard.filter(&mut definitions);
        let mut offered = HashMap::new();
        for definition in definitions {
            judged.insert(definition.fingerprint(), true);
            offered.insert(Arc::clone(definition.name()), Arc::new(definition));
        }
        Self { offered, judged }
    }

    fn shows(&mut self, entry: &Value, guard: &PassthroughGuard) -> bool {
        // What cannot be read cannot be judged.
        let Ok(definition) = Definition::from_value(entry) else { return false };
        if let Some(shown) = self.judged.get(&definition.fingerprint()) {
            return *shown;
        }
        let (name, fingerprint) = (Arc::clone(definition.name()), definition.fingerprint());
        let mut only = vec![definition];
        guard.filter(&mut only);
        let shown = if let Some(definition) = only.pop() {
            self.offered.insert(name, Arc::new(definition));
            true
        } else {
            self.offered.remove(&name);
            false
        };
        self.judged.insert(fingerprint, shown);
        shown
    }
}
