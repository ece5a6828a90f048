//! A subscription that we hold at a server of the modern era, for a client that knows none.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_mcp::ErrorObject;
use toolgate_upstream::RawRequest;

use super::{
    bridge,
    desk::{Desk, Ticket},
    wire::Wire,
};

/// What is listened to. Dropping it ends it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    resources: Mutex<BTreeSet<String>>,
    listening: tokio::sync::Mutex<Option<DropGuard>>,
}

/// Resources that a client may subscribe to.
const RESOURCES: usize = 1024;
/// How long a server may take to confirm.
const PATIENCE: Duration = Duration::from_secs(10);

impl Held {
    pub(crate) fn subscribe(&self, uri: &str) {
        let mut resources = self.resources.lock();
        if resources.len() < RESOURCES {
            resources.insert(uri.to_owned());
        }
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.resources.lock().remove(uri);
    }

    /// Listens to all that the server announces and the client has subscribed to. What was listened
    /// to before is let go once the server has confirmed, so that nothing is missed.
    pub(crate) async fn hold(
        &self,
        line: &Arc<dyn Wire>,
        desk: &Arc<Desk>,
        capabilities: Option<&Value>,
    ) -> Result<(), ErrorObject> {
        let mut listening = self.listening.lock().await;
        let mut filter = bridge::offered(capabilities);
        {
            let resources = self.resources.lock();
            if !resources.is_empty() {
                filter.insert("resourceSubscriptions".to_owned(), json!(*resources));
            }
        }
        if filter.is_empty() {
            *listening = None;
            return Ok(());
        }
        let (acknowledged, mut confirmed) = watch::channel(false);
        let cancel = CancellationToken::new();
        let (line, desk, cancelled) = (Arc::clone(line), Arc::clone(desk), cancel.clone());
        let mut listener = tokio::spawn(async move {
            let place = desk.enter(Ticket::Held { acknowledged });
            let request = RawRequest {
                key: json!(place.key),
                method: "subscriptions/listen".to_owned(),
                params: Some(json!({ "notifications": filter })),
                cancel: cancelled,
            };
            line.request(request).await
        });
        let guard = cancel.drop_guard();
        tokio::select! {
            _ = confirmed.wait_for(|confirmed| *confirmed) => {}
            ended = &mut listener => {
                let lost = || ErrorObject::internal_error("the subscription was lost", None);
                return Err(ended.map_or_else(|_| lost(), |ended| ended.err().unwrap_or_else(lost)));
            }
            () = tokio::time::sleep(PATIENCE) => {
                let message = "the server did not confirm the subscription in time";
                return Err(ErrorObject::internal_error(message, None));
            }
        }
        *listening = Some(guard);
        Ok(())
    }
}
