//! The names of prompts: the rule is that of tools.

use std::{collections::HashMap, sync::Arc};

use toolgate_catalog::{Catalog, CatalogServer, ExposedName, ServerName, ToolId, expose};

use super::{kind::Kind, listing::List};

/// The names of all prompts that are known.
#[derive(Debug, Default)]
pub(super) struct PromptNames {
    lists: Vec<(ServerName, Arc<List>)>,
    /// By server and place in its list, as in `lists`.
    names: Vec<Vec<ExposedName>>,
    by_name: HashMap<ExposedName, (usize, usize)>,
}

/// Whether a prompt of this name could be the server's.
pub(super) fn could_name(server: &CatalogServer, prompt: &str) -> bool {
    // What stands before a name shows in any name.
    let example = (ToolId::new(server.name.clone(), "x"), server.prefix.as_deref());
    expose([example])
        .first()
        .and_then(|name| name.as_str().strip_suffix('x'))
        .is_some_and(|before| prompt.starts_with(before))
}

impl PromptNames {
    /// The names of what these servers list, with the prefixes that the catalogue has for them.
    pub(super) fn new(lists: Vec<(ServerName, Arc<List>)>, catalog: &Catalog) -> Self {
        let wishes = lists.iter().flat_map(|(server, list)| {
            let prefix = catalog.server(server.as_str()).and_then(|entry| entry.prefix.as_deref());
            let prompts = (0..list.items.len()).map(|index| list.key(index, Kind::Prompts));
            prompts.map(move |prompt| (ToolId::new(server.clone(), prompt), prefix))
        });
        let mut given = expose(wishes).into_iter();
        let mut names = Vec::new();
        let mut by_name = HashMap::new();
        for (place, (_, list)) in lists.iter().enumerate() {
            let own: Vec<ExposedName> = given.by_ref().take(list.items.len()).collect();
            by_name.extend(own.iter().cloned().enumerate().map(|(i, name)| (name, (place, i))));
            names.push(own);
        }
        Self { lists, names, by_name }
    }

    /// Whether these are the names of these very lists.
    pub(super) fn are_of(&self, lists: &[(ServerName, Arc<List>)]) -> bool {
        self.lists.len() == lists.len()
            && self
                .lists
                .iter()
                .zip(lists)
                .all(|(old, new)| old.0 == new.0 && Arc::ptr_eq(&old.1, &new.1))
    }

    /// The name of one prompt of a server.
    pub(super) fn name(&self, server: &ServerName, index: usize) -> Option<&ExposedName> {
        let place = self.lists.iter().position(|(name, _)| name == server)?;
        self.names.get(place)?.get(index)
    }

    /// Whose prompt it is, and its own name.
    pub(super) fn resolve(&self, name: &str) -> Option<(ServerName, String)> {
        let (place, index) = *self.by_name.get(name)?;
        let (server, list) = self.lists.get(place)?;
        Some((server.clone(), list.key(index, Kind::Prompts).to_owned()))
    }
}
