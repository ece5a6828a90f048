//! Servers of 2026-07-28 tell of a resource only to who listens: one stream a server.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_upstream::{CallError, CallOptions, Upstream};

/// The streams that are open. They end with this.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Mutex<HashMap<ServerName, CancellationToken>>,
}

/// Between the end of a stream and the next try.
const PAUSE: Duration = Duration::from_secs(1);

impl Streams {
    /// Listens to these resources of a server, in the place of those before; to none, not at all.
    pub(super) fn listen(&self, upstream: &Arc<Upstream>, server: &ServerName, uris: Vec<String>) {
        let mut open = self.open.lock();
        let before = open.remove(server);
        if !uris.is_empty() {
            let end = CancellationToken::new();
            open.insert(server.clone(), end.clone());
            tokio::spawn(keep_listening(Arc::clone(upstream), server.clone(), uris, end));
        }
        drop(open);
        if let Some(before) = before {
            before.cancel();
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for end in self.open.lock().values() {
            end.cancel();
        }
    }
}

/// Opens the stream, and again when it ends: proxies end streams that are silent for long. What is
/// told comes by way of the observer.
async fn keep_listening(
    upstream: Arc<Upstream>,
    server: ServerName,
    uris: Vec<String>,
    end: CancellationToken,
) {
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    loop {
        let options = CallOptions { cancel: end.clone(), ..CallOptions::default() };
        let params = Some(params.clone());
        match upstream.request(&server, "subscriptions/listen", params, options).await {
            Err(CallError::Cancelled | CallError::UnknownServer(_)) => return,
            Err(CallError::NotConnected { .. }) => {
                // It is listened to anew when it is back.
                return;
            }
            Err(CallError::Refused { error, .. }) => {
                tracing::debug!(%server, %error.message, "the server takes no subscription");
                return;
            }
            _ => {}
        }
        tokio::select! {
            () = end.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
