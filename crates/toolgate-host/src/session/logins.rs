//! The session of a caller who has their own logins at servers.

use toolgate_broker::BrokerError;
use toolgate_catalog::{ServerName, Tool};
use toolgate_upstream::CallOptions;

use super::ToolSession;
use crate::host::FIRST_LISTS_TIMEOUT;

impl ToolSession {
    /// Connects the server of a tool as the caller, where each caller has their own login: what the caller is
    /// offered is not known before.
    pub(super) async fn log_in_for(
        &self,
        name: &str,
        tool: Option<&Tool>,
        options: &CallOptions,
    ) -> Result<(), BrokerError> {
        let (servers, caller) = (self.host.servers(), self.context.caller());
        let mut owners = servers.per_caller();
        let (broker, catalog) = (&self.host.inner.broker, self.host.catalog().read());
        let is_due = |server: &ServerName| {
            let Some(tool) = tool else {
                let entry = catalog.server(server.as_str());
                return self.sees(server) && entry.is_some_and(|entry| entry.may_own(name));
            };
            let is_known =
                broker.offers(tool, &self.context) || broker.is_closed(tool, &caller.facts);
            tool.id.server == *server && !is_known
        };
        owners.retain(is_due);
        drop(catalog);
        let options = CallOptions { caller: Some(caller.login_owner()), ..options.clone() };
        for server in &owners {
            let connected = servers.connect_for(server.as_str(), &options).await;
            connected.map_err(|error| BrokerError::Call(Box::new(error)))?;
        }
        Ok(())
    }

    /// Connects the servers at which the caller has logged in, and waits a short time for their lists.
    pub(super) async fn recall_logins(&self) {
        if self.host.servers().has_callers() {
            let owner = self.context.caller().login_owner();
            let recalling = self.host.servers().recall_caller(&owner);
            // A later list is announced.
            let _ = tokio::time::timeout(FIRST_LISTS_TIMEOUT, recalling).await;
        }
    }
}
