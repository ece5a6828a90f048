//! Which of a server's tools nobody is shown, and why.
//!
//! What the policy denies whatever the arguments, and what is not as it was approved, is taken out before
//! the catalogue sees it: no search, no list, no script and no suggestion knows of it.

use std::{fmt, sync::Arc};

use parking_lot::RwLock;
use toolgate_catalog::{Definition, ServerName, ToolId, wished_name};
use toolgate_policy::{
    Annotations, Policy,
    definitions::{Change, Lock, compare},
};

/// A tool that nobody is shown.
#[derive(Debug, Clone)]
pub struct Withheld {
    /// The tool.
    pub id: ToolId,
    /// The name that it would have.
    pub name: String,
    /// What its server says of it.
    pub definition: Definition,
    /// Why.
    pub why: Withholding,
}

/// Why a tool is shown to nobody.
#[derive(Debug, Clone)]
pub enum Withholding {
    /// The policy denies every call of it.
    Denied,
    /// It is not as it was approved, or was never.
    Held(Change),
}

/// Is told which definitions of a server are new and let in, to keep them as approved.
#[derive(Clone)]
pub struct Pin(pub Arc<PinDefinitions>);

/// Keeps definitions of a server.
pub type PinDefinitions = dyn Fn(&ServerName, &[Definition]) + Send + Sync;

/// Sorts out the tools of a server.
pub(crate) struct Screen {
    policy: Policy,
    lock: Option<RwLock<Lock>>,
    pin: Option<Pin>,
}

impl Screen {
    pub(crate) fn new(policy: Policy, lock: Option<Lock>, pin: Option<Pin>) -> Self {
        Self { policy, lock: lock.map(RwLock::new), pin }
    }

    /// Takes out of `definitions` what nobody is shown. `prefix` is that of the server's names.
    pub(crate) fn sort(
        &self,
        server: &ServerName,
        prefix: Option<&str>,
        definitions: &mut Vec<Definition>,
    ) -> Vec<Withheld> {
        let changes = self.changes(server, definitions);
        let mut withheld = Vec::new();
        definitions.retain(|definition| {
            let id = ToolId::new(server.clone(), Arc::clone(definition.name()));
            let name = wished_name(&id, prefix);
            let held = changes.iter().find(|change| change.is_held() && change.tool == id);
            let policy = self.policy.tool(&id, &name, Annotations::of(definition));
            let why = match held {
                _ if policy.is_hidden() => Withholding::Denied,
                Some(change) => Withholding::Held(change.clone()),
                None => return true,
            };
            withheld.push(Withheld { id, name, definition: definition.clone(), why });
            false
        });
        self.pin(server, &changes, definitions);
        withheld
    }

    fn changes(&self, server: &ServerName, definitions: &[Definition]) -> Vec<Change> {
        self.lock.as_ref().map_or_else(Vec::new, |lock| {
            compare(&lock.read(), server, definitions, self.policy.new_tools())
        })
    }

    /// Pins what is new and let in, so that it cannot change unnoticed from now on.
    fn pin(&self, server: &ServerName, changes: &[Change], offered: &[Definition]) {
        let Some(lock) = &self.lock else { return };
        let is_new = |definition: &&Definition| {
            changes
                .iter()
                .any(|change| change.is_to_be_pinned() && *change.tool.tool == **definition.name())
        };
        let new: Vec<Definition> = offered.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        {
            let mut lock = lock.write();
            for definition in &new {
                lock.approve(server, definition);
            }
        }
        if let Some(pin) = &self.pin {
            (pin.0)(server, &new);
        }
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pin")
    }
}
