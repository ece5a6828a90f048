//! Subscriptions between a client and a server of different eras.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Admitted, RawChannel};
use toolgate_host::PassthroughGuard;
use toolgate_mcp::{ErrorObject, JsonObject, meta, methods};
use toolgate_upstream::RawRequest;

use super::{
    connection,
    router::{LIST_NOTIFICATIONS, MessageRoute, MessageRouter},
};
use crate::service::IncomingRequest;

/// The `subscriptions/listen` request that stays open at a modern server for a legacy client.
#[derive(Debug, Default)]
pub(crate) struct OwnSubscription {
    resources: Mutex<BTreeSet<String>>,
    /// Dropping the guard cancels the request.
    request: tokio::sync::Mutex<Option<DropGuard>>,
}

/// Resources that a legacy client may subscribe to.
const MAX_RESOURCES: usize = 1024;
/// Resources that a modern client may listen to with one request.
const MAX_LISTENED_RESOURCES: usize = 256;
/// How long a server may take to acknowledge.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);

impl OwnSubscription {
    pub(crate) fn add(&self, uri: &str) {
        let mut resources = self.resources.lock();
        if resources.len() < MAX_RESOURCES {
            resources.insert(uri.to_owned());
        }
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.resources.lock().remove(uri);
    }

    /// Listens to all lists that the server announces and all resources that the client subscribed to.
    /// The previous request is cancelled after the server acknowledged the new one, so that no
    /// notification is missed.
    pub(crate) async fn renew(
        &self,
        connection: &Arc<dyn RawChannel>,
        router: &Arc<MessageRouter>,
        guard: &Arc<PassthroughGuard>,
    ) -> Result<(), ErrorObject> {
        let mut current = self.request.lock().await;
        let mut filter = announced_lists(&**connection);
        {
            let resources = self.resources.lock();
            if !resources.is_empty() {
                filter.insert("resourceSubscriptions".to_owned(), json!(*resources));
            }
        }
        if filter.is_empty() {
            *current = None;
            return Ok(());
        }
        let (acknowledged, mut acknowledgement) = watch::channel(false);
        let cancel = CancellationToken::new();
        let (channel, router) = (Arc::clone(connection), Arc::clone(router));
        let (guard, cancelled) = (Arc::clone(guard), cancel.clone());
        let mut listening = tokio::spawn(async move {
            let route = router.register(MessageRoute::OwnSubscription { acknowledged });
            let request = RawRequest {
                key: json!(route.key),
                method: methods::LISTEN.to_owned(),
                params: Some(json!({ "notifications": filter })),
                cancel: cancelled,
                hold: None,
            };
            connection::send_unjudged(&guard, &*channel, request).await
        });
        let guard = cancel.drop_guard();
        tokio::select! {
            _ = acknowledgement.wait_for(|acknowledged| *acknowledged) => {}
            ended = &mut listening => {
                let ended = ended.ok().and_then(Result::err);
                let lost = || ErrorObject::internal_error("the subscription ended", None);
                return Err(ended.unwrap_or_else(lost));
            }
            () = tokio::time::sleep(ACKNOWLEDGE_TIMEOUT) => {
                let message = "the server did not acknowledge the subscription in time";
                return Err(ErrorObject::internal_error(message, None));
            }
        }
        *current = Some(guard);
        Ok(())
    }
}

/// Answers `subscriptions/listen` of a modern client at a legacy server, until the client cancels it.
/// `admitted` are the resources that the client may subscribe to.
pub(crate) async fn listen(
    channel: &dyn RawChannel,
    router: &MessageRouter,
    guard: &PassthroughGuard,
    request: IncomingRequest,
    admitted: Vec<(Value, Admitted)>,
) -> Result<Value, ErrorObject> {
    let wanted = request.params.as_ref().and_then(|params| params.get("notifications"));
    let Some(wanted) = wanted.and_then(Value::as_object) else {
        let message = "`notifications` is missing: it says what to listen to";
        return Err(ErrorObject::invalid_params(message, None));
    };
    let mut accepted: JsonObject = announced_lists(channel)
        .into_iter()
        .filter(|(name, _)| wanted.get(name) == Some(&json!(true)))
        .collect();
    let mut subscribed = Vec::new();
    for (uri, mut admitted) in admitted.into_iter().take(MAX_LISTENED_RESOURCES) {
        if !capability(channel, "resources", "subscribe") {
            admitted.end_unsent(Ok(&Value::Null)).await;
            continue;
        }
        let subscribe = uri_request(methods::RESOURCES_SUBSCRIBE, &uri, request.cancel.clone());
        if connection::send(&mut admitted, channel, subscribe).await.is_ok() {
            subscribed.push(uri);
        }
    }
    if !subscribed.is_empty() {
        accepted.insert("resourceSubscriptions".to_owned(), json!(subscribed));
    }
    let filter = Value::Object(accepted);
    let route = router.register(MessageRoute::Listener {
        channel: request.channel.clone(),
        id: request.id.clone(),
        filter: filter.clone(),
    });
    let params = json!({ "_meta": { meta::SUBSCRIPTION_ID: request.id }, "notifications": filter });
    request.channel.notify(methods::LISTEN_ACKNOWLEDGED, Some(params));
    tokio::select! {
        () = request.cancel.cancelled() => {}
        () = channel.closed() => {}
    }
    drop(route);
    for uri in subscribed {
        if !router.has_listener(&uri) {
            let cancel = CancellationToken::new();
            let request = uri_request(methods::RESOURCES_UNSUBSCRIBE, &uri, cancel);
            let _ = connection::send_unjudged(guard, channel, request).await;
        }
    }
    Ok(ended_subscription(&request.id))
}

/// The result of a subscription that has ended.
pub(crate) fn ended_subscription(id: &Value) -> Value {
    json!({ "resultType": "complete", "_meta": { meta::SUBSCRIPTION_ID: id } })
}

/// A filter with all lists whose changes the server announces.
fn announced_lists(connection: &dyn RawChannel) -> JsonObject {
    LIST_NOTIFICATIONS
        .iter()
        .filter(|(list, ..)| capability(connection, list, "listChanged"))
        .map(|(_, _, name)| ((*name).to_owned(), json!(true)))
        .collect()
}

fn capability(connection: &dyn RawChannel, group: &str, name: &str) -> bool {
    connection.server_info().pointer(&format!("/capabilities/{group}/{name}")) == Some(&json!(true))
}

fn uri_request(method: &str, uri: &Value, cancel: CancellationToken) -> RawRequest {
    let (method, params) = (method.to_owned(), Some(json!({ "uri": uri })));
    RawRequest { key: Value::Null, method, params, cancel, hold: None }
}
