//! The policy of one server that a client talks to directly, without a host in between.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolgate_broker::{Broker, SharedCatalog};
use toolgate_catalog::{Catalog, Definition, ServerName, Tool};
use toolgate_policy::{CallPath, CallerFacts, Flow, Policy, Verdict};

use crate::{
    settings::{HostSettings, open_journal},
    tool_filter::ToolFilter,
};

/// Decides which tools, resources and prompts of one server a client may see and use. It uses the
/// broker and the filter that a host uses.
pub struct PassthroughGuard {
    broker: Arc<Broker>,
    filter: ToolFilter,
    server: ServerName,
    judges: bool,
}

impl PassthroughGuard {
    /// A guard for one server, with the settings of all servers. Touches the disk if there is a
    /// policy. Must be called inside a tokio runtime.
    pub fn new(settings: &HostSettings, server: &ServerName) -> Self {
        let judges = settings.lock.is_some() || !settings.policy.is_idle();
        let journal = settings.store.as_ref().filter(|_| judges).map(open_journal);
        let entry = settings.servers.iter().find(|setup| setup.spec.name == *server);
        let catalog = Catalog::new(entry.map(|setup| setup.entry.clone()));
        let (lock, pin) = (settings.lock.clone(), settings.pin.clone());
        let filter = ToolFilter::new(Policy::new(settings.policy.clone()), lock, pin, [server]);
        let settings = settings.broker_settings(SharedCatalog::new(catalog), journal);
        let broker = Broker::without_servers(settings);
        Self { broker, filter, server: server.clone(), judges }
    }

    /// The broker, which admits requests.
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whether any request could be refused, or any tool hidden. Otherwise requests are only
    /// recorded.
    pub fn judges(&self) -> bool {
        self.judges
    }

    /// Removes hidden tools from definitions: from a whole list, or from a single definition that has
    /// changed.
    pub fn filter(&self, definitions: &mut Vec<Definition>) {
        let prefix = self.broker.prefix(&self.server);
        self.filter.filter(&self.server, prefix.as_deref(), definitions);
    }

    /// The tool with this definition.
    pub fn tool(&self, definition: &Arc<Definition>) -> Tool {
        self.broker.tool(&self.server, definition)
    }

    /// Whether a caller can call the tool of a list with some arguments.
    pub fn is_open(&self, entry: &Value, caller: &CallerFacts) -> bool {
        let definition = Definition::from_value(entry).map(Arc::new);
        let tool = definition.map(|definition| self.tool(&definition));
        tool.is_ok_and(|tool| self.broker.is_open(&tool, caller, CallPath::Direct))
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
        let Some(policy) = self.broker.policy_of_request(&self.server, method) else {
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
