//! Which of a server's tools nobody is shown, and why.
//!
//! What the policy denies whatever the arguments, what is not as it was approved, and what is suspicious
//! where that is held back, is taken out before the catalogue sees it: no search, no list, no script and
//! no suggestion knows of it.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use toolgate_catalog::{Definition, ServerName, Tool, ToolId};
use toolgate_policy::{
    FindingsMode, Policy,
    definitions::{Change, Lock, ShadowIndex, compare, scan},
    is_reading,
};

/// A tool that nobody is shown.
#[derive(Debug, Clone)]
pub struct Withheld {
    /// The tool.
    pub id: ToolId,
    /// The name that it would have.
    pub name: String,
    /// Stands in for its server's name in the names that it could have.
    pub prefix: Option<Arc<str>>,
    /// What its server says of it.
    pub definition: Arc<Definition>,
    /// Why.
    pub why: Withholding,
}

/// Why a tool is shown to nobody.
#[derive(Debug, Clone)]
pub enum Withholding {
    /// The policy denies every call of it, or it has the name of a request that is no call.
    Denied,
    /// It is not as it was approved, or was never.
    Held(Change),
    /// Something in its definition is suspicious, in words, and nobody has approved it for all that.
    Suspicious(Vec<String>),
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
    names: Mutex<Names>,
}

/// What was sorted out.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// What nobody is shown.
    pub(crate) withheld: Vec<Withheld>,
    /// Other servers that have to be sorted again, since their tools shadow these, or no longer do.
    pub(crate) touched: BTreeSet<ServerName>,
}

/// The names of all tools, in the order of trust: that of the configuration.
#[derive(Default)]
struct Names {
    ranks: HashMap<ServerName, usize>,
    index: ShadowIndex,
}

/// How many findings are told of one tool.
const MOST_FINDINGS: usize = 8;

impl Withheld {
    /// The tool, as rules see it.
    pub fn tool(&self) -> Tool {
        Tool::alone(&self.id.server, self.prefix.clone(), Arc::clone(&self.definition))
    }
}

impl Screen {
    /// For these servers, in the order of trust.
    pub(crate) fn new<'s>(
        policy: Policy,
        lock: Option<Lock>,
        pin: Option<Pin>,
        servers: impl IntoIterator<Item = &'s ServerName>,
    ) -> Self {
        let ranks = servers.into_iter().cloned().enumerate().map(|(rank, name)| (name, rank));
        let names = Names { ranks: ranks.collect(), index: ShadowIndex::default() };
        Self { policy, lock: lock.map(RwLock::new), pin, names: Mutex::new(names) }
    }

    /// Whether what is suspicious is held back, so that a server may have to be sorted again.
    pub(crate) fn holds_findings(&self) -> bool {
        self.policy.findings() == FindingsMode::Hold
    }

    /// Takes out of `definitions` what nobody is shown. `prefix` is that of the server's names.
    pub(crate) fn sort(
        &self,
        server: &ServerName,
        prefix: Option<&str>,
        definitions: &mut Vec<Definition>,
    ) -> Sorted {
        let changes = self.changes(server, definitions);
        let prefix: Option<Arc<str>> = prefix.map(Into::into);
        let mut sorted = Sorted { touched: self.note(server, definitions), ..Sorted::default() };
        definitions.retain(|definition| {
            let definition = Arc::new(definition.clone());
            let tool = Tool::alone(server, prefix.clone(), Arc::clone(&definition));
            let held = changes.iter().find(|change| change.is_held() && change.tool == tool.id);
            let is_denied = is_reading(&tool.id.tool) || self.policy.of(&tool).is_hidden();
            let why = match held {
                _ if is_denied => Withholding::Denied,
                Some(change) => Withholding::Held(change.clone()),
                None => match self.suspicions(&tool) {
                    found if found.is_empty() => return true,
                    found => Withholding::Suspicious(found),
                },
            };
            let (id, name) = (tool.id, tool.name.to_string());
            let prefix = prefix.clone();
            sorted.withheld.push(Withheld { id, name, prefix, definition, why });
            false
        });
        self.pin(server, &changes, definitions);
        sorted
    }

    /// Forgets a server's tools; gives the servers that have to be sorted again.
    pub(crate) fn forget(&self, server: &ServerName) -> BTreeSet<ServerName> {
        self.note(server, &[])
    }

    /// Notes which names a server has.
    fn note(&self, server: &ServerName, definitions: &[Definition]) -> BTreeSet<ServerName> {
        if !self.holds_findings() {
            return BTreeSet::new();
        }
        let id = |definition: &Definition| ToolId::new(server.clone(), &**definition.name());
        let mut names = self.names.lock();
        let next = names.ranks.len();
        let rank = *names.ranks.entry(server.clone()).or_insert(next);
        names.index.replace(server, rank, definitions.iter().map(id).collect())
    }

    /// What a tool is held back for, unless a person has approved it for all that.
    fn suspicions(&self, tool: &Tool) -> Vec<String> {
        if !self.holds_findings() {
            return Vec::new();
        }
        let found = scan(&tool.definition).into_iter().map(|finding| finding.to_string());
        let shadow = self.names.lock().index.shadow(&tool.id).map(|shadow| shadow.to_string());
        let found: Vec<String> = found.chain(shadow).take(MOST_FINDINGS).collect();
        let (server, definition) = (&tool.id.server, &tool.definition);
        let reviewed = |lock: &RwLock<Lock>| lock.read().is_reviewed(server, definition);
        if found.is_empty() || self.lock.as_ref().is_some_and(reviewed) {
            return Vec::new();
        }
        found
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
