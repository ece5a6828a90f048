//! Hides tools: denied ones, ones that differ from their pins, and suspicious ones.
//!
//! Hidden tools are removed before they reach the catalog, so that no search, list, script or
//! suggestion contains them.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use toolgate_catalog::{Definition, ServerName, Tool, ToolId};
use toolgate_policy::{
    FindingsMode, Policy,
    definitions::{Change, Lock, NewPins, ShadowIndex, ToolNames, compare, scan_value},
    is_reading,
};

use crate::{entry_filter::KnownInstructions, settings::HostSettings};

/// A tool that is shown to nobody.
#[derive(Debug, Clone)]
pub struct HiddenTool {
    /// The tool.
    pub id: ToolId,
    /// The exposed name that it would have.
    pub name: String,
    /// Replaces the name of its server in exposed names.
    pub prefix: Option<Arc<str>>,
    /// The definition from its server.
    pub definition: Arc<Definition>,
    /// Why it is hidden.
    pub why: HiddenReason,
}

/// Why a tool is hidden.
#[derive(Debug, Clone)]
pub enum HiddenReason {
    /// The policy denies every call of it, or it has the name of a method.
    Denied,
    /// It differs from its pin, or was never approved.
    Held(Change),
    /// Its definition is suspicious, and nobody has approved it anyway.
    Suspicious(Vec<String>),
}

/// Stores new definitions that were let in as approved.
#[derive(Clone)]
pub struct PinWriter(pub Arc<WritePins>);

/// Stores definitions of a server.
pub type WritePins = dyn Fn(&ServerName, &NewPins) + Send + Sync;

/// Decides which tools are hidden.
pub(crate) struct ToolFilter {
    pub(crate) policy: Policy,
    pub(crate) lock: Option<RwLock<Lock>>,
    pin: Option<PinWriter>,
    names: Mutex<Names>,
    /// Changes whenever another decision about an entry is possible.
    revision: AtomicU64,
    pub(crate) instructions: Mutex<KnownInstructions>,
}

/// Counts the revisions of all filters.
static REVISIONS: AtomicU64 = AtomicU64::new(0);

/// What the filter found.
#[derive(Debug, Default)]
pub(crate) struct FilterOutcome {
    /// The hidden tools.
    pub(crate) hidden: Vec<HiddenTool>,
    /// Other servers whose tools have to be filtered again, because they shadow these tools or no
    /// longer do.
    pub(crate) touched: BTreeSet<ServerName>,
}

/// The names of all tools, in the order of trust, which is the order of the configuration.
#[derive(Default)]
struct Names {
    ranks: HashMap<ServerName, usize>,
    index: ShadowIndex,
    /// To find instructions about the tools of other servers.
    tools: ToolNames,
}

/// How many findings are reported for one tool.
pub(crate) const MOST_FINDINGS: usize = 8;

impl HiddenTool {
    /// The tool, as the policy sees it.
    pub fn tool(&self) -> Tool {
        Tool::alone(&self.id.server, self.prefix.clone(), Arc::clone(&self.definition))
    }
}

impl ToolFilter {
    /// The filter of a host. The order of its servers is that of trust.
    pub(crate) fn of(settings: &HostSettings) -> Self {
        Self::new(
            Policy::new(settings.policy.clone()),
            settings.lock.clone(),
            settings.pin.clone(),
            settings.servers.iter().map(|setup| &setup.spec.name),
        )
    }

    /// A filter for these servers, in the order of trust.
    pub(crate) fn new<'s>(
        policy: Policy,
        lock: Option<Lock>,
        pin: Option<PinWriter>,
        servers: impl IntoIterator<Item = &'s ServerName>,
    ) -> Self {
        let ranks = servers.into_iter().cloned().enumerate().map(|(rank, name)| (name, rank));
        let names = Names { ranks: ranks.collect(), ..Names::default() };
        let lock = lock.map(RwLock::new);
        let revision = AtomicU64::new(next_revision());
        let instructions = Mutex::default();
        Self { policy, lock, pin, names: Mutex::new(names), revision, instructions }
    }

    /// Whether suspicious tools are held back, so that a server may have to be filtered again.
    pub(crate) fn holds_findings(&self) -> bool {
        self.policy.findings() == FindingsMode::Hold
    }

    /// Removes hidden tools from `definitions`.
    pub(crate) fn filter(
        &self,
        server: &ServerName,
        prefix: Option<&str>,
        definitions: &mut Vec<Definition>,
    ) -> FilterOutcome {
        let changes = self.changes(server, definitions);
        let prefix: Option<Arc<str>> = prefix.map(Into::into);
        let mut outcome = FilterOutcome {
            touched: self.note(server, prefix.as_deref(), definitions),
            ..FilterOutcome::default()
        };
        let may_hide = self.policy.may_hide() || self.holds_findings() || !changes.is_empty();
        definitions.retain(|definition| {
            if !may_hide && !is_reading(definition.name()) {
                return true;
            }
            let definition = Arc::new(definition.clone());
            let tool = Tool::alone(server, prefix.clone(), Arc::clone(&definition));
            let held = changes.iter().find(|change| change.is_held() && change.tool == tool.id);
            let is_denied = is_reading(&tool.id.tool) || self.policy.of(&tool).is_hidden();
            let why = match held {
                _ if is_denied => HiddenReason::Denied,
                Some(change) => HiddenReason::Held(change.clone()),
                None => match self.suspicions(&tool) {
                    found if found.is_empty() => return true,
                    found => HiddenReason::Suspicious(found),
                },
            };
            let (id, name) = (tool.id, tool.name.to_string());
            let prefix = prefix.clone();
            outcome.hidden.push(HiddenTool { id, name, prefix, definition, why });
            false
        });
        self.pin(server, &changes, definitions);
        outcome
    }

    /// Removes the tools of a server; returns the servers that have to be filtered again.
    pub(crate) fn forget(&self, server: &ServerName) -> BTreeSet<ServerName> {
        self.note(server, None, &[])
    }

    /// Another number than before if a decision about an entry can be another one.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Notes the names of a server's tools.
    pub(crate) fn note(
        &self,
        server: &ServerName,
        prefix: Option<&str>,
        definitions: &[Definition],
    ) -> BTreeSet<ServerName> {
        if !self.holds_findings() {
            return BTreeSet::new();
        }
        let id = |definition: &Definition| ToolId::new(server.clone(), &**definition.name());
        let mut names = self.names.lock();
        let next = names.ranks.len();
        let rank = *names.ranks.entry(server.clone()).or_insert(next);
        let mut touched = names.index.replace(server, rank, definitions.iter().map(id).collect());
        touched.extend(names.tools.replace(server, prefix, definitions));
        self.revision.store(next_revision(), Ordering::Release);
        touched
    }

    /// The findings in what a server sent.
    pub(crate) fn found(&self, server: &ServerName, value: &Value) -> Vec<String> {
        let found = scan_value(value);
        let about_others = self.names.lock().tools.scan(server, value);
        found.iter().chain(&about_others).take(MOST_FINDINGS).map(ToString::to_string).collect()
    }

    /// Why a tool is suspicious, unless a person has approved it anyway.
    fn suspicions(&self, tool: &Tool) -> Vec<String> {
        if !self.holds_findings() {
            return Vec::new();
        }
        let mut found = self.found(&tool.id.server, &tool.definition.to_value());
        let shadow = self.names.lock().index.shadow(&tool.id).map(|shadow| shadow.to_string());
        found.extend(shadow);
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

    /// Pins new definitions that were let in, so that later changes are noticed.
    fn pin(&self, server: &ServerName, changes: &[Change], offered: &[Definition]) {
        let Some(lock) = &self.lock else { return };
        let is_new = |definition: &&Definition| {
            changes
                .iter()
                .any(|change| change.is_to_be_pinned() && *change.tool.tool == **definition.name())
        };
        let tools: Vec<Definition> = offered.iter().filter(is_new).cloned().collect();
        if !tools.is_empty() {
            self.write_pins(server, lock, &NewPins { tools, ..NewPins::default() });
        }
    }

    pub(crate) fn write_pins(&self, server: &ServerName, lock: &RwLock<Lock>, new: &NewPins) {
        lock.write().pin(server, new);
        if let Some(pin) = &self.pin {
            (pin.0)(server, new);
        }
    }
}

fn next_revision() -> u64 {
    REVISIONS.fetch_add(1, Ordering::Relaxed) + 1
}

impl fmt::Debug for PinWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pin")
    }
}
