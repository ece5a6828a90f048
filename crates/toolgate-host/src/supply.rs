//! What can be had beside what is connected: servers that are not in use, and skills.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::{Mutex, RwLock};
use toolgate_catalog::ServerName;
use toolgate_registry::{Registry, RegistryEntry as Entry, Skill, Skills};
use toolgate_search::{Query, SearchIndex, ServerText, StrategyName, ToolKey, ToolText};

use crate::settings::ServerSetup;

/// What a host can offer beside its servers. Nothing, by default.
#[derive(Clone)]
pub struct Supply {
    /// Servers that are not configured.
    pub registry: Option<Arc<Registry>>,
    /// Skills.
    pub skills: Arc<Skills>,
    /// Whether an environment variable is set for the programs that are started.
    pub is_set: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Everything that can be had, ready to be searched.
pub(crate) struct Shelf {
    held: RwLock<Held>,
    /// What registries had last.
    listed: Mutex<Arc<Vec<Entry>>>,
}

struct Held {
    index: SearchIndex,
    items: HashMap<ToolKey, Item>,
}

/// One thing that can be had.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A server of the configuration, or one that a person has consented to.
    Server(ServerName),
    /// A server of a registry.
    Listed(Arc<Entry>),
    /// A skill.
    Skill(Arc<Skill>),
}

/// Which things are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Servers,
    Listed,
    Skills,
}

impl Kind {
    /// The group of the index. A group's own words count for all in it, so it has none.
    fn group(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Listed => "listed",
            Self::Skills => "skills",
        }
    }
}

impl Shelf {
    pub(crate) fn new(servers: &[ServerSetup], skills: &Skills) -> Self {
        let held =
            Held { index: SearchIndex::ranked_by(StrategyName::Hybrid), items: HashMap::new() };
        let shelf = Self { held: RwLock::new(held), listed: Mutex::default() };
        let servers = servers.iter().map(|setup| {
            let name = setup.spec.name.clone();
            let description = setup.entry.description.clone().unwrap_or_default();
            (name.to_string(), description, Item::Server(name))
        });
        shelf.replace(Kind::Servers, servers.collect());
        let skills = skills.skills.iter().map(|skill| {
            let item = Item::Skill(Arc::new(skill.clone()));
            (skill.name.clone(), skill.description.clone(), item)
        });
        shelf.replace(Kind::Skills, skills.collect());
        shelf
    }

    /// Takes in what registries have now, if it is something else than before. With a large one that
    /// takes a while.
    pub(crate) fn list(&self, entries: &Arc<Vec<Entry>>) {
        let mut listed = self.listed.lock();
        if Arc::ptr_eq(&listed, entries) {
            return;
        }
        *listed = Arc::clone(entries);
        let items = entries.iter().map(|entry| {
            let title = entry.title.as_deref().unwrap_or_default();
            let description = format!("{title} {}", entry.description);
            (entry.name.clone(), description, Item::Listed(Arc::new(entry.clone())))
        });
        self.replace(Kind::Listed, items.collect());
    }

    fn replace(&self, kind: Kind, items: Vec<(String, String, Item)>) {
        let keys: Vec<ToolKey> = items
            .iter()
            .map(|(name, ..)| ToolKey::new(format!("{}:{name}", kind.group())))
            .collect();
        let texts: Vec<(ToolKey, ToolText<'_>)> = keys
            .iter()
            .zip(&items)
            .map(|(key, (name, description, _))| {
                (key.clone(), ToolText { name, description, ..ToolText::default() })
            })
            .collect();
        let mut held = self.held.write();
        held.index.replace_server(kind.group(), ServerText::default(), &texts);
        drop(texts);
        let prefix = format!("{}:", kind.group());
        held.items.retain(|key, _| !key.as_str().starts_with(&prefix));
        held.items.extend(keys.into_iter().zip(items.into_iter().map(|(.., item)| item)));
    }

    /// The best of these kinds, best first.
    pub(crate) fn search(&self, query: &str, kinds: &[Kind], limit: usize) -> Vec<Item> {
        let groups: Vec<&str> = kinds.iter().map(|kind| kind.group()).collect();
        let held = self.held.read();
        let hits = held.index.search(&Query::new(query, limit).in_servers(&groups));
        let hits = hits.unwrap_or_default();
        hits.iter().filter_map(|hit| held.items.get(hit.key.as_str())).cloned().collect()
    }
}

impl Supply {
    /// Whether there is anything.
    pub fn is_empty(&self) -> bool {
        self.registry.is_none() && self.skills.skills.is_empty()
    }
}

impl Default for Supply {
    fn default() -> Self {
        Self { registry: None, skills: Arc::default(), is_set: Arc::new(|_| false) }
    }
}

impl fmt::Debug for Supply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Supply")
            .field("registry", &self.registry)
            .field("skills", &self.skills.skills.len())
            .finish_non_exhaustive()
    }
}
