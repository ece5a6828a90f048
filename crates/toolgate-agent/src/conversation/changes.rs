//! Changes of the catalogue during a conversation. The prefix stays as it is.

use std::collections::BTreeSet;

use super::{Conversation, drive::TurnState};
use crate::{AgentEvent, AgentTool, CatalogueChange};

impl Conversation {
    /// Tells the model about tools that came and went, if the wire can.
    pub(super) fn tell_changes(&mut self, turn: &TurnState) {
        self.tell_unloaded(turn);
        let generation = self.tools.generation();
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        let old = std::mem::replace(&mut self.catalogue, self.tools.catalogue());
        let new = &self.catalogue;
        let is_new = |tool: &&AgentTool| old.tool(&tool.name) != Some(*tool);
        let came: Vec<&AgentTool> = new.tools().filter(is_new).collect();
        let went: Vec<&str> = old
            .tools()
            .map(|tool| tool.name.as_str())
            .filter(|name| new.tool(name).is_none())
            .collect();
        if came.is_empty() && went.is_empty() {
            return;
        }
        // A name cannot be defined twice, so an old definition goes before the new one comes.
        let replaced =
            came.iter().map(|tool| tool.name.as_str()).filter(|name| old.tool(name).is_some());
        let removed: Vec<&str> = went
            .iter()
            .copied()
            .chain(replaced)
            .filter(|name| self.defined.contains(*name))
            .collect();
        let change =
            CatalogueChange { added: &came, removed: &removed, restored: &[], catalogue: new };
        if let Some(message) = self.provider.change(&change) {
            self.history.push(message);
            for name in &went {
                self.withdrawn.insert((*name).to_owned());
            }
            for tool in &came {
                self.withdrawn.remove(&tool.name);
                self.defined.insert(tool.name.clone());
            }
        } else {
            // The provider still has the old definition, which a search must not load.
            self.withdrawn.extend(removed.iter().map(|name| (*name).to_owned()));
        }
        for name in &went {
            self.loaded.remove(*name);
        }
        turn.emit(AgentEvent::ToolsChanged {
            added: came.iter().map(|tool| tool.name.clone()).collect(),
            removed: went.iter().map(|name| (*name).to_owned()).collect(),
        });
    }

    /// Takes away what searches loaded, at the end of a turn, if the settings say so.
    pub(super) fn unload_if_asked(&mut self) {
        if !self.settings.keep_loaded_tools {
            self.unload_tools();
        }
    }

    /// Takes away the tools that searches loaded, from the next question on. They can be found again. Returns whether
    /// the wire can do that: otherwise the tools stay in the context.
    pub fn unload_tools(&mut self) -> bool {
        let can_unload = self.provider.can_unload();
        if can_unload {
            self.unloading.append(&mut self.loaded);
        }
        can_unload
    }

    /// Takes the definitions that searches loaded out of the context: the provider is told, or our own messages that
    /// hold them are written anew.
    fn tell_unloaded(&mut self, turn: &TurnState) {
        let unloaded = std::mem::take(&mut self.unloading);
        if unloaded.is_empty() {
            return;
        }
        let present = |name: &&str| self.catalogue.tool(name).is_some();
        let names: Vec<&str> = unloaded.iter().map(String::as_str).filter(present).collect();
        let names: Vec<&str> =
            names.into_iter().filter(|name| self.defined.contains(*name)).collect();
        // Taken away and offered again: the definition is deferred, so it is not loaded any more.
        let change = CatalogueChange {
            added: &[],
            removed: &names,
            restored: &names,
            catalogue: &self.catalogue,
        };
        let told = if names.is_empty() { None } else { self.provider.change(&change) };
        if let Some(message) = told {
            self.history.push(message);
        } else {
            self.provider.unload(&mut self.history, &unloaded);
            let first: BTreeSet<&String> = self.prefix.tools.iter().collect();
            // What was appended is not there any more.
            self.defined.retain(|name| first.contains(name) || !unloaded.contains(name));
        }
        turn.emit(AgentEvent::ToolsUnloaded { names: unloaded.into_iter().collect() });
    }

    /// After a summary the provider knows only the tools of the prefix.
    pub(super) fn forget_appended_tools(&mut self) {
        self.loaded.clear();
        self.unloading.clear();
        self.withdrawn.clear();
        self.defined = self.prefix.tools.iter().cloned().collect();
        if self.catalogue != *self.first {
            self.catalogue = (*self.first).clone();
            // The next look at the tool box finds another number, and so tells all changes again.
            self.generation = self.generation.wrapping_sub(1);
        }
    }
}
