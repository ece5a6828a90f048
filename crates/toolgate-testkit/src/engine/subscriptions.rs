//! `subscriptions/listen`, and the delivery of notifications.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Engine, Request};
use crate::reply::Reply;

/// The notifications that a client can subscribe to, and their keys.
const KINDS: [(&str, &str); 5] = [
    ("notifications/tools/list_changed", "toolsListChanged"),
    ("notifications/prompts/list_changed", "promptsListChanged"),
    ("notifications/resources/list_changed", "resourcesListChanged"),
    ("notifications/resources/updated", "resourceSubscriptions"),
    // Of no protocol.
    ("notifications/fixture/subscribed", "org.example/fixture"),
];

impl Engine {
    /// Opens a subscription; it ends when the client cancels it.
    pub(super) async fn listen(&self, request: &Arc<Request>) -> Reply {
        let asked = request.params["notifications"].as_object().cloned().unwrap_or_default();
        let known = |key: &String| KINDS.iter().any(|(_, kind)| key == kind);
        let accepted: Value = asked.into_iter().filter(|(key, _)| known(key)).collect();
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": request.id });
        // Before the acknowledgement, so that the client misses nothing after it.
        self.state.lock().subscriptions.push(Arc::clone(request));
        request.outbox.initiate(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": accepted },
        }));
        std::future::pending().await
    }

    /// Notifies all subscribed clients that the tool list has changed.
    pub(crate) fn announce_tools(&self) {
        self.announce("notifications/tools/list_changed", None);
    }

    /// Notifies all legacy clients after this time, when the request that asked for it has its response.
    pub(super) fn announce_later(&self, method: &str, params: Option<&Value>, delay: Duration) {
        let peers = self.state.lock().peers.clone();
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            for peer in peers.iter().filter_map(Weak::upgrade) {
                peer.standing.initiate(&message);
            }
        });
    }

    /// Notifies all legacy clients, and the modern ones with a subscription.
    pub(super) fn announce(&self, method: &str, params: Option<&Value>) {
        let mut state = self.state.lock();
        state.peers.retain(|peer| peer.strong_count() > 0);
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if let Some(params) = params {
            message["params"] = params.clone();
        }
        for peer in state.peers.iter().filter_map(Weak::upgrade) {
            peer.standing.initiate(&message);
        }
        let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == method) else { return };
        let asked_for = |request: &&Arc<Request>| {
            let wanted = &request.params["notifications"][kind];
            *wanted == true || wanted.is_array() || wanted.is_object()
        };
        for subscription in state.subscriptions.iter().filter(asked_for) {
            let id = &subscription.id;
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = id.clone();
            subscription.outbox.initiate(&message);
        }
    }
}
