//! The guard of one server that a client talks to as it is, without a host between them.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolgate_broker::{Admitted, BrokerError, CallContext, Gate, SessionContext};
use toolgate_catalog::{Definition, ServerName, Tool};
use toolgate_policy::{Flow, Policy, Verdict, request_as_tool};
use toolgate_upstream::CallOptions;

use crate::{
    guarding::{guard, open_journal},
    screen::Screen,
    settings::HostSettings,
};

/// Says of one server's tools, resources and prompts who may use them, and records it. What decides is
/// what decides for all servers together: the same gate, the same screen.
pub struct ServerGuard {
    gate: Arc<Gate>,
    screen: Screen,
    server: ServerName,
    prefix: Option<Arc<str>>,
    judges: bool,
}

impl ServerGuard {
    /// For the server of this name, under the settings of all. Touches the disk where there is a policy.
    pub fn new(settings: &HostSettings, server: &ServerName) -> Self {
        let judges = settings.lock.is_some() || !settings.policy.is_idle();
        let store = settings.store.as_ref().filter(|_| judges);
        let journal = store.map(open_journal);
        let setup = settings.servers.iter().find(|setup| setup.spec.name == *server);
        let prefix = setup.and_then(|setup| setup.entry.prefix.as_deref()).map(Into::into);
        let (lock, pin) = (settings.lock.clone(), settings.pin.clone());
        let screen = Screen::new(Policy::new(settings.policy.clone()), lock, pin, [server]);
        let gate = Arc::new(Gate::new(guard(settings, journal)));
        Self { gate, screen, server: server.clone(), prefix, judges }
    }

    /// Whether anything could be refused or held back. Otherwise requests are recorded, and no more.
    pub fn judges(&self) -> bool {
        self.judges
    }

    /// Takes out of definitions, all that the server lists or one that differs from before, what nobody
    /// is shown.
    pub fn sort(&self, definitions: &mut Vec<Definition>) {
        self.screen.sort(&self.server, self.prefix.as_deref(), definitions);
    }

    /// The tool that is defined so.
    pub fn tool(&self, definition: &Arc<Definition>) -> Tool {
        Tool::alone(&self.server, self.prefix.clone(), Arc::clone(definition))
    }

    /// A tool of which nothing is known but its name.
    pub fn unlisted(&self, name: &str) -> Option<Tool> {
        let definition = json!({ "name": name, "inputSchema": {} });
        let definition = Definition::from_value(&definition).ok()?;
        Some(self.tool(&Arc::new(definition)))
    }

    /// A request that is no call of a tool.
    pub fn request(&self, method: &str) -> Option<Tool> {
        request_as_tool(&self.server, self.prefix.clone(), method)
    }

    /// Whether a request with these parameters could be let through, so that what it is about may be
    /// listed. Without parameters: whether any could.
    pub fn shows(&self, method: &str, params: Option<&Value>) -> bool {
        let Some(tool) = self.request(method) else { return false };
        let policy = self.gate.policy_of(&tool);
        let denies = |params| policy.decide(params, &Flow::NONE).verdict == Verdict::Deny;
        !policy.is_hidden() && !params.is_some_and(denies)
    }

    /// Lets a request through, or says why not.
    pub async fn admit(
        &self,
        tool: &Tool,
        arguments: &Value,
        context: &CallContext,
        options: &CallOptions,
    ) -> Result<Admitted, BrokerError> {
        self.gate.admit(tool, arguments, context, options).await
    }

    /// Records a call of a tool that does not exist, or that nobody is shown.
    pub fn note_unknown(&self, name: &str, arguments: &Value, context: &CallContext) {
        self.gate.note_unknown(name, arguments, context);
    }

    /// Forgets what was granted for a session. Touches the disk.
    pub fn end_session(&self, session: &SessionContext) {
        self.gate.end_session(session);
    }

    /// Waits until everything so far is recorded.
    pub fn flush(&self) {
        self.gate.flush();
    }
}

impl fmt::Debug for ServerGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerGuard").field("server", &self.server).finish_non_exhaustive()
    }
}
