//! What a server says outside of calls that runs here once for all nodes of a fleet, for the other nodes.

use std::{collections::VecDeque, fmt, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use toolgate_catalog::ServerName;
use toolgate_mcp::{LogLevel, meta, methods};

use super::{
    clients::NodeLevel,
    subscriptions::{self, SubscriberId, is_part_of},
};
use crate::host::ToolHost;

/// What another node wants to hear of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFilter {
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the lists of resources and templates.
    pub resources: bool,
    /// Changes of these resources, by the URIs of the server.
    pub uris: Vec<String>,
    /// Log messages outside of calls.
    pub logs: bool,
    /// The least severe log message that its clients want, if they have said so.
    pub level: Option<LogLevel>,
}

/// The notifications of a server for another node. Its subscriptions end when it is dropped.
pub struct NodeListener {
    host: ToolHost,
    server: ServerName,
    filter: NodeFilter,
    received: broadcast::Receiver<Arc<RawNotification>>,
    /// Notifications in place of those that a slow node has missed.
    pending: VecDeque<(&'static str, Option<Value>)>,
    id: SubscriberId,
    _level: Option<NodeLevel>,
}

/// The notifications of all servers, as they came.
#[derive(Debug)]
pub(super) struct NodeNotifications(broadcast::Sender<Arc<RawNotification>>);

#[derive(Debug)]
struct RawNotification {
    server: ServerName,
    method: &'static str,
    params: Option<Value>,
}

/// How many notifications wait for a slow node.
const QUEUED: usize = 256;
/// What nodes can listen to.
const PASSED_ON: [&str; 4] = [
    methods::PROMPTS_CHANGED,
    methods::RESOURCES_CHANGED,
    methods::RESOURCE_UPDATED,
    methods::LOG_MESSAGE,
];

impl NodeFilter {
    /// Reads the filter of a `subscriptions/listen`.
    pub fn read(filter: &Value) -> Self {
        let is_wanted = |key: &str| filter.get(key) == Some(&Value::Bool(true));
        let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
        let uris = uris.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let logs = filter.get(meta::LISTENED_LOGS);
        Self {
            prompts: is_wanted("promptsListChanged"),
            resources: is_wanted("resourcesListChanged"),
            uris: uris.collect(),
            logs: logs.is_some(),
            level: logs.and_then(Value::as_str).and_then(LogLevel::named),
        }
    }

    fn wants(&self, method: &str, params: Option<&Value>) -> bool {
        match method {
            methods::PROMPTS_CHANGED => self.prompts,
            methods::RESOURCES_CHANGED => self.resources,
            methods::LOG_MESSAGE => self.logs,
            _ => {
                let changed = params.and_then(|params| params.get("uri")?.as_str());
                changed.is_some_and(|changed| self.uris.iter().any(|uri| is_part_of(changed, uri)))
            }
        }
    }

    /// Everything that may have been missed. Log messages are lost.
    fn all(&self) -> VecDeque<(&'static str, Option<Value>)> {
        let lists = [
            (self.prompts, methods::PROMPTS_CHANGED),
            (self.resources, methods::RESOURCES_CHANGED),
        ];
        let lists = lists.into_iter().filter(|(is_wanted, _)| *is_wanted);
        let updated =
            self.uris.iter().map(|uri| (methods::RESOURCE_UPDATED, Some(json!({ "uri": uri }))));
        lists.map(|(_, method)| (method, None)).chain(updated).collect()
    }
}

impl NodeListener {
    /// Listens to a server that runs here. The other node has judged its subscriptions.
    pub async fn open(host: &ToolHost, server: &ServerName, filter: NodeFilter) -> Self {
        let hub = &host.inner.resources;
        // Before the subscriptions, so that nothing is missed.
        let received = hub.nodes.0.subscribe();
        let level = match filter.level {
            Some(level) => Some(hub.clients.add_node(host.broker(), server, level).await),
            None => None,
        };
        let id = subscriptions::add_node(host, server, &filter.uris).await;
        Self {
            host: host.clone(),
            server: server.clone(),
            filter,
            received,
            pending: VecDeque::new(),
            id,
            _level: level,
        }
    }

    /// Waits for the next notification: its method and its parameters. `None` when there will be no more.
    pub async fn next(&mut self) -> Option<(&'static str, Option<Value>)> {
        loop {
            if let Some(missed) = self.pending.pop_front() {
                return Some(missed);
            }
            match self.received.recv().await {
                Ok(said) => {
                    let RawNotification { server, method, params } = &*said;
                    if *server == self.server && self.filter.wants(method, params.as_ref()) {
                        return Some((method, params.clone()));
                    }
                }
                Err(RecvError::Lagged(_)) => self.pending = self.filter.all(),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for NodeListener {
    fn drop(&mut self) {
        subscriptions::remove_node(&self.host, self.id);
    }
}

impl fmt::Debug for NodeListener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NodeListener").field("server", &self.server).finish_non_exhaustive()
    }
}

impl NodeNotifications {
    pub(super) fn send(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        let Some(method) = PASSED_ON.into_iter().find(|known| *known == method) else { return };
        if self.0.receiver_count() > 0 {
            let (server, params) = (server.clone(), params.cloned());
            // The last receiver may be gone meanwhile.
            let _ = self.0.send(Arc::new(RawNotification { server, method, params }));
        }
    }
}

impl Default for NodeNotifications {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_hears_what_it_asked_for() {
        let filter = NodeFilter::read(&json!({
            "promptsListChanged": true, "resourceSubscriptions": ["x:/a"], meta::LISTENED_LOGS: "info",
        }));
        assert_eq!(
            (filter.resources, filter.logs, filter.level),
            (false, true, Some(LogLevel::Info))
        );
        assert!(filter.wants(methods::PROMPTS_CHANGED, None));
        assert!(!filter.wants(methods::RESOURCES_CHANGED, None));
        let is_updated =
            |uri: &str| filter.wants(methods::RESOURCE_UPDATED, Some(&json!({ "uri": uri })));
        assert!(is_updated("x:/a") && is_updated("x:/a/b") && !is_updated("x:/b"));
        let missed: Vec<&str> = filter.all().into_iter().map(|(method, _)| method).collect();
        assert_eq!(missed, [methods::PROMPTS_CHANGED, methods::RESOURCE_UPDATED]);
    }
}
