//! The policy of one server that a client talks to directly, without a host in between.

use std::{collections::HashSet, fmt, sync::Arc};

use parking_lot::RwLock;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_broker::{Broker, KeepTime, SharedCatalog};
use toolgate_catalog::{Catalog, Definition, ServerName, Tool};
use toolgate_policy::{
    CallPath, CallerFacts, Flow, Policy, Verdict,
    definitions::{EntryKind, ServerEntry},
};

use crate::{
    settings::{HostSettings, open_journal},
    tool_filter::ToolFilter,
};

/// Decides which tools, resources and prompts of one server a client may see and use. It uses the
/// broker and the filter that a host uses.
pub struct PassthroughGuard {
    server: ServerName,
    /// Replaced as a whole by a reload.
    in_force: RwLock<Arc<GuardInForce>>,
    reloads: watch::Sender<u64>,
    /// Each reload makes another broker. They share the time, so that it also holds for the sessions of
    /// the old ones.
    remember: KeepTime,
}

/// What decides now.
struct GuardInForce {
    broker: Arc<Broker>,
    filter: ToolFilter,
    judges: bool,
}

impl GuardInForce {
    fn new(settings: &HostSettings, server: &ServerName, remember: &KeepTime) -> Self {
        let judges = settings.lock.is_some() || !settings.policy.is_idle();
        let journal = settings.store.as_ref().filter(|_| judges).map(open_journal);
        let entry = settings.servers.iter().find(|setup| setup.spec.name == *server);
        let catalog = Catalog::new(entry.map(|setup| setup.entry.clone()));
        let (lock, pin) = (settings.lock.clone(), settings.pin.clone());
        let filter = ToolFilter::new(Policy::new(settings.policy.clone()), lock, pin, [server]);
        let mut settings = settings.broker_settings(SharedCatalog::new(catalog), journal);
        settings.remember = remember.clone();
        Self { broker: Broker::without_servers(settings), filter, judges }
    }
}

impl PassthroughGuard {
    /// A guard for one server, with the settings of all servers. Touches the disk if there is a
    /// policy. Must be called inside a tokio runtime.
    pub fn new(settings: &HostSettings, server: &ServerName) -> Self {
        let remember = KeepTime::default();
        let in_force = GuardInForce::new(settings, server, &remember);
        let in_force = RwLock::new(Arc::new(in_force));
        Self { server: server.clone(), in_force, reloads: watch::Sender::new(0), remember }
    }

    /// Replaces the policy. Sessions stay. Touches the disk.
    pub fn reload(&self, settings: &HostSettings) {
        let new = Arc::new(GuardInForce::new(settings, &self.server, &self.remember));
        let before = std::mem::replace(&mut *self.in_force.write(), new);
        self.reloads.send_modify(|count| *count += 1);
        before.broker.flush();
    }

    /// Changes with each reload.
    pub fn reloads(&self) -> watch::Receiver<u64> {
        self.reloads.subscribe()
    }

    /// The broker, which admits requests.
    pub fn broker(&self) -> Arc<Broker> {
        Arc::clone(&self.in_force().broker)
    }

    fn in_force(&self) -> Arc<GuardInForce> {
        Arc::clone(&self.in_force.read())
    }

    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whether any request could be refused, or any tool hidden. Otherwise requests are only
    /// recorded.
    pub fn judges(&self) -> bool {
        self.in_force().judges
    }

    /// Removes hidden tools from definitions: from a whole list, or from a single definition that has
    /// changed.
    pub fn filter(&self, definitions: &mut Vec<Definition>) {
        let now = self.in_force();
        let prefix = now.broker.prefix(&self.server);
        now.filter.filter(&self.server, prefix.as_deref(), definitions);
    }

    /// Whether a prompt, a resource or a template could be held back.
    pub fn judges_entries(&self) -> bool {
        self.in_force().filter.judges_entries()
    }

    /// The names or URIs of the entries of a list that are held back. If it is the whole list, later
    /// entries are new.
    pub fn held_entries(
        &self,
        kind: EntryKind,
        list: &[Value],
        is_whole: bool,
    ) -> HashSet<Arc<str>> {
        let entries = list.iter().cloned();
        let entries = entries.filter_map(|value| ServerEntry::new(&self.server, kind, value));
        let entries: Vec<ServerEntry> = entries.collect();
        let held = self.in_force().filter.hold_entries(&self.server, kind, &entries, is_whole);
        held.into_keys().collect()
    }

    /// Whether an entry of a list is held back. One that nothing identifies is not judged.
    pub fn is_entry_held(&self, kind: EntryKind, value: &Value) -> bool {
        let entry = ServerEntry::new(&self.server, kind, value.clone());
        entry.is_some_and(|entry| self.in_force().filter.hold_entry(&entry).is_some())
    }

    /// Whether the instructions of the server are held back; the text is empty if it has none.
    pub fn are_instructions_held(&self, text: &str) -> bool {
        self.in_force().filter.hold_instructions(&self.server, text).is_some()
    }

    /// The tool with this definition.
    pub fn tool(&self, definition: &Arc<Definition>) -> Tool {
        self.broker().tool(&self.server, definition)
    }

    /// Whether a caller can call the tool of a list with some arguments.
    pub fn is_open(&self, entry: &Value, caller: &CallerFacts) -> bool {
        let definition = Definition::from_value(entry).map(Arc::new);
        let tool = definition.map(|definition| self.tool(&definition));
        tool.is_ok_and(|tool| self.broker().is_open(&tool, caller, CallPath::Direct))
    }

    /// A tool of which only the name is known.
    pub fn unlisted(&self, name: &str) -> Option<Tool> {
        let definition = json!({ "name": name, "inputSchema": {} });
        let definition = Definition::from_value(&definition).ok()?;
        Some(self.tool(&Arc::new(definition)))
    }

    /// Whether a request with these parameters could be allowed, so that its subject may be listed.
    /// Without parameters: whether any request of the method could.
    pub fn shows(&self, method: &str, params: Option<&Value>, caller: &CallerFacts) -> bool {
        let Some(policy) = self.broker().policy_of_request(&self.server, method) else {
            return false;
        };
        let direct = CallPath::Direct;
        let decide = |params| policy.decide_for(caller, direct, params, &Flow::NONE);
        let denies = |params| decide(params).verdict == Verdict::Deny;
        !policy.is_closed_to(caller, direct) && !params.is_some_and(denies)
    }
}

impl fmt::Debug for PassthroughGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("PassthroughGuard");
        debug.field("server", &self.server).finish_non_exhaustive()
    }
}
