//! Tells a client when the list it was given is no longer true.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::{RoleServer, service::Peer};
use serde_json::Value;
use toolgate_host::Session;

/// Servers that start together change the list many times in a moment. One announcement is enough.
const SETTLE: Duration = Duration::from_millis(50);

/// What the client was given last.
#[derive(Debug, Default)]
pub(crate) struct Given(Mutex<Option<u64>>);

impl Given {
    pub(crate) fn note(&self, tools: &[Value]) {
        *self.0.lock() = Some(digest(tools));
    }

    /// Whether the client has a list, and `tools` is another one.
    fn differs(&self, tools: &[Value]) -> bool {
        self.0.lock().is_some_and(|given| given != digest(tools))
    }
}

/// Watches until the session or the client is gone.
pub(crate) async fn watch(session: Weak<Session>, given: Arc<Given>, peer: Peer<RoleServer>) {
    let Some((mut host_changes, mut own_changes)) =
        session.upgrade().map(|session| (session.host().changes(), session.list_changes()))
    else {
        return;
    };
    loop {
        let alive = tokio::select! {
            change = host_changes.changed() => change.is_ok(),
            change = own_changes.changed() => change.is_ok(),
        };
        if !alive || peer.is_transport_closed() {
            return;
        }
        tokio::time::sleep(SETTLE).await;
        host_changes.mark_unchanged();
        own_changes.mark_unchanged();
        let Some(session) = session.upgrade() else { return };
        if !given.differs(&session.list_tools().await) {
            continue;
        }
        if let Err(error) = peer.notify_tool_list_changed().await {
            tracing::debug!(%error, "the client could not be told of a changed list");
            return;
        }
    }
}

fn digest(tools: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        tool.to_string().hash(&mut hasher);
    }
    hasher.finish()
}
