//! Servers that are not in use, and skills.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::{Mutex, RwLock};
use toolgate_catalog::ServerName;
use toolgate_registry::{Registry, RegistryEntry, Skill, Skills};
use toolgate_search::{Query, SearchIndex, ServerText, StrategyName, ToolKey, ToolText};

use crate::settings::ServerSetup;

/// Servers and skills that a session can find and enable. Empty by default.
#[derive(Clone)]
pub struct ServerDirectory {
    /// Servers that are not configured.
    pub registry: Option<Arc<Registry>>,
    /// The skills.
    pub skills: Arc<Skills>,
    /// Whether an environment variable is set for the servers that are started.
    pub is_set: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The search index over the directory.
pub(crate) struct DirectoryIndex {
    indexed: RwLock<IndexedEntries>,
    /// The latest entries of the registries.
    listed: Mutex<Arc<Vec<RegistryEntry>>>,
}

struct IndexedEntries {
    index: SearchIndex,
    items: HashMap<ToolKey, DirectoryEntry>,
}

/// An entry of the directory.
#[derive(Debug, Clone)]
pub(crate) enum DirectoryEntry {
    /// A server of the configuration, or one that a person has consented to.
    Server(ServerName),
    /// A server of a registry.
    Listed(Arc<RegistryEntry>),
    /// A skill.
    Skill(Arc<Skill>),
}

/// The kinds of entries to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryKind {
    Servers,
    Listed,
    Skills,
}

impl DirectoryKind {
    /// The group in the index. Groups have no text of their own, because it would count for each
    /// entry.
    fn group(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Listed => "listed",
            Self::Skills => "skills",
        }
    }
}

impl DirectoryIndex {
    pub(crate) fn new(servers: &[ServerSetup], skills: &Skills) -> Self {
        let indexed = IndexedEntries {
            index: SearchIndex::ranked_by(StrategyName::Hybrid),
            items: HashMap::new(),
        };
        let index = Self { indexed: RwLock::new(indexed), listed: Mutex::default() };
        index.reload(servers, skills);
        index
    }

    /// Replaces the configured servers and the skills.
    pub(crate) fn reload(&self, servers: &[ServerSetup], skills: &Skills) {
        let servers = servers.iter().map(|setup| {
            let name = setup.spec.name.clone();
            let description = setup.entry.description.clone().unwrap_or_default();
            (name.to_string(), description, DirectoryEntry::Server(name))
        });
        self.replace(DirectoryKind::Servers, servers.collect());
        let skills = skills.skills.iter().map(|skill| {
            let item = DirectoryEntry::Skill(Arc::new(skill.clone()));
            (skill.name.clone(), skill.description.clone(), item)
        });
        self.replace(DirectoryKind::Skills, skills.collect());
    }

    /// Updates the entries of the registries, if they have changed. Takes a while for a large
    /// registry.
    pub(crate) fn list(&self, entries: &Arc<Vec<RegistryEntry>>) {
        let mut listed = self.listed.lock();
        if Arc::ptr_eq(&listed, entries) {
            return;
        }
        *listed = Arc::clone(entries);
        let items = entries.iter().map(|entry| {
            let title = entry.title.as_deref().unwrap_or_default();
            let description = format!("{title} {}", entry.description);
            (entry.name.clone(), description, DirectoryEntry::Listed(Arc::new(entry.clone())))
        });
        self.replace(DirectoryKind::Listed, items.collect());
    }

    fn replace(&self, kind: DirectoryKind, items: Vec<(String, String, DirectoryEntry)>) {
        let keys: Vec<ToolKey> = items
            .iter()
            .map(|(name, ..)| ToolKey::new(format!("{}:{name}", kind.group())))
            .collect();
        let tool_text: Vec<(ToolKey, ToolText<'_>)> = keys
            .iter()
            .zip(&items)
            .map(|(key, (name, description, _))| {
                (key.clone(), ToolText { name, description, ..ToolText::default() })
            })
            .collect();
        let mut indexed = self.indexed.write();
        indexed.index.replace_server(kind.group(), ServerText::default(), &tool_text);
        drop(tool_text);
        let prefix = format!("{}:", kind.group());
        indexed.items.retain(|key, _| !key.as_str().starts_with(&prefix));
        indexed.items.extend(keys.into_iter().zip(items.into_iter().map(|(.., item)| item)));
    }

    /// The best matches of these kinds, best first.
    pub(crate) fn search(
        &self,
        query: &str,
        kinds: &[DirectoryKind],
        limit: usize,
    ) -> Vec<DirectoryEntry> {
        let groups: Vec<&str> = kinds.iter().map(|kind| kind.group()).collect();
        let indexed = self.indexed.read();
        let hits = indexed.index.search(&Query::new(query, limit).in_servers(&groups));
        let hits = hits.unwrap_or_default();
        hits.iter().filter_map(|hit| indexed.items.get(hit.key.as_str())).cloned().collect()
    }
}

impl ServerDirectory {
    /// Whether there is neither a registry nor a skill.
    pub fn is_empty(&self) -> bool {
        self.registry.is_none() && self.skills.skills.is_empty()
    }
}

impl Default for ServerDirectory {
    fn default() -> Self {
        Self { registry: None, skills: Arc::default(), is_set: Arc::new(|_| false) }
    }
}

impl fmt::Debug for ServerDirectory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Supply")
            .field("registry", &self.registry)
            .field("skills", &self.skills.skills.len())
            .finish_non_exhaustive()
    }
}
