//! A running server: its definitions and its state.

use serde_json::Value;

use crate::action;
use crate::error::DemoError;
use crate::spec::Spec;
use crate::store::Store;

/// A demo server with its own state, without a process and without a protocol.
///
/// ```
/// use serde_json::json;
/// use toolgate_demo::Instance;
///
/// let mut ticketing = Instance::open("ticketing")?;
/// let issue = ticketing.call("createIssue", json!({ "title": "Checkout times out" }))?;
/// let found = ticketing.call("getIssue", json!({ "issueId": issue["id"] }))?;
/// assert_eq!(found["status"], "open");
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
#[derive(Debug)]
pub struct Instance {
    pub(crate) spec: &'static Spec,
    store: Store,
}

impl Instance {
    /// The server of this name, with the state that every server starts with.
    pub fn open(server: &str) -> Result<Self, DemoError> {
        let spec = Spec::named(server)?;
        Ok(Self { spec, store: Store::open(&spec.tables) })
    }

    /// Calls a tool. The value is what its text says: a list is a list here, see the crate's page.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, DemoError> {
        let tool = self.spec.tool(tool)?;
        Ok(action::run(tool, &self.spec.tables, &mut self.store, arguments)?)
    }
}

/// Calls a tool of a server in its first state; what the call changes is forgotten.
///
/// ```
/// use serde_json::json;
///
/// let budget = toolgate_demo::call("team", "get_budget_by_level", json!({ "level": "senior" }))?;
/// assert_eq!(budget["travel_limit"], 8000);
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
pub fn call(server: &str, tool: &str, arguments: Value) -> Result<Value, DemoError> {
    Instance::open(server)?.call(tool, arguments)
}
