//! Tells a client when the list it was given is no longer true.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use toolgate_host::Session;

use crate::link::Link;

/// Servers that start together change the list many times in a moment. One announcement is enough.
const SETTLE: Duration = Duration::from_millis(50);

/// What the client was given last.
#[derive(Debug, Default)]
pub(crate) struct Given(Mutex<Option<u64>>);

/// What may change the list of a session.
#[derive(Debug)]
pub(crate) struct Changes {
    of_host: watch::Receiver<u64>,
    of_session: watch::Receiver<u64>,
}

impl Given {
    pub(crate) fn note(&self, tools: &[Value]) {
        *self.0.lock() = Some(digest(tools));
    }

    /// Whether the client has a list, and `tools` is another one.
    pub(crate) fn differs(&self, tools: &[Value]) -> bool {
        self.0.lock().is_some_and(|given| given != digest(tools))
    }
}

impl Changes {
    pub(crate) fn new(session: &Session) -> Self {
        Self { of_host: session.host().changes(), of_session: session.list_changes() }
    }

    /// Waits for changes to settle. False once there can be none.
    pub(crate) async fn next(&mut self) -> bool {
        let alive = tokio::select! {
            change = self.of_host.changed() => change.is_ok(),
            change = self.of_session.changed() => change.is_ok(),
        };
        if alive {
            tokio::time::sleep(SETTLE).await;
            self.of_host.mark_unchanged();
            self.of_session.mark_unchanged();
        }
        alive
    }
}

/// Watches until the session is gone.
pub(crate) async fn watch(session: Weak<Session>, given: Arc<Given>, outlet: Link) {
    let Some(mut changes) = session.upgrade().map(|session| Changes::new(&session)) else {
        return;
    };
    while changes.next().await {
        let Some(session) = session.upgrade() else { return };
        if given.differs(&session.list_tools().await) {
            outlet.notify("notifications/tools/list_changed", None);
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
