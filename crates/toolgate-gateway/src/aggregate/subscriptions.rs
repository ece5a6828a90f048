//! Tells clients of changes to lists and resources.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use toolgate_host::{NotificationStream, ServerNotification, Subscriber, ToolSession};
use toolgate_mcp::{ErrorObject, JsonObject, LogLevel, meta, methods};
use toolgate_upstream::{CallOptions, SubscriptionEvent};

use super::tasks::{self, ClientTask, ClientTasks, TaskState};
use crate::{
    channel::ClientChannel,
    era::set_meta,
    service::{AuthenticatedClient, IncomingRequest},
};

/// Servers that start together change the list many times. One notification is sent for all changes
/// within this time.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// Resources that one `subscriptions/listen` may name. The acknowledgement does not list further ones.
const MAX_SUBSCRIPTIONS: usize = 1_000;
const CONCURRENT_SUBSCRIPTIONS: usize = 32;
/// What toolgate itself answers of the filter of a `subscriptions/listen`.
const ANSWERED_HERE: [&str; 5] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
    "taskIds",
];

/// A hash of the tool list that the client has. It is locked while a list is made: otherwise a list
/// from before a change could be noted after the change was compared with an older list, and the
/// client would never learn of the change.
#[derive(Debug, Default)]
pub(crate) struct SentList(Mutex<Option<u64>>);

impl SentList {
    /// Makes a list for the client, and notes it.
    pub(crate) async fn send(&self, listing: impl Future<Output = Vec<Value>>) -> Vec<Value> {
        let mut sent = self.0.lock().await;
        let tools = listing.await;
        *sent = Some(hash(&tools));
        tools
    }

    /// Whether the client has a list and the one now differs from it.
    async fn is_outdated(&self, listing: impl Future<Output = Vec<Value>>) -> bool {
        let sent = self.0.lock().await;
        match *sent {
            Some(sent) => sent != hash(&listing.await),
            // Nothing is listed for a client that has not asked.
            None => false,
        }
    }
}

fn hash(tools: &[Value]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in tools {
        tool.to_string().hash(&mut hasher);
    }
    hasher.finish()
}

/// Changes that may affect the tool list of a session.
#[derive(Debug)]
struct ListChanges {
    of_host: watch::Receiver<u64>,
    of_session: watch::Receiver<u64>,
}

impl ListChanges {
    fn new(session: &ToolSession) -> Self {
        Self { of_host: session.host().changes(), of_session: session.list_changes() }
    }

    /// Waits for a change, and until the changes settle. Returns false if there can be none.
    async fn next(&mut self) -> bool {
        let is_alive = tokio::select! {
            change = self.of_host.changed() => change.is_ok(),
            change = self.of_session.changed() => change.is_ok(),
        };
        if is_alive {
            tokio::time::sleep(SETTLE_TIME).await;
            self.of_host.mark_unchanged();
            self.of_session.mark_unchanged();
        }
        is_alive
    }
}

/// Notifies a legacy client until its session ends. Does not keep the session alive.
pub(crate) fn notify(
    session: &Arc<ToolSession>,
    sent_list: Arc<SentList>,
    log_level: Arc<parking_lot::Mutex<Option<LogLevel>>>,
    channel: ClientChannel,
) -> impl Future<Output = ()> + Send + use<> {
    let (mut changes, mut events) = (ListChanges::new(session), session.notifications());
    let mut of_extensions = session.extension_notifications();
    let (hearer, session) = (Arc::downgrade(session), Arc::downgrade(session));
    let (list_channel, extension_channel) = (channel.clone(), channel.clone());
    let list_changes = async move {
        while changes.next().await {
            let Some(session) = session.upgrade() else { return };
            if sent_list.is_outdated(session.listed_now()).await {
                list_channel.notify(methods::TOOLS_CHANGED, None);
            }
        }
    };
    let server_events = async move {
        while let Some(ServerNotification { method, params, logged_by }) = events.next().await {
            if let Some(server) = logged_by {
                let Some(session) = hearer.upgrade() else { return };
                let level = params.as_ref().and_then(|params| params.get("level")?.as_str());
                let level = level.and_then(LogLevel::named);
                let is_wanted = log_level.lock().is_none_or(|wanted| level >= Some(wanted));
                if !is_wanted || !session.hears(&server) {
                    continue;
                }
            }
            channel.notify(method, params);
        }
    };
    let extension_events = async move {
        while let Some((method, params)) = of_extensions.next().await {
            extension_channel.notify(&method, params);
        }
    };
    futures::future::join3(list_changes, server_events, extension_events).map(|_| ())
}

/// Answers `subscriptions/listen`: notifies a modern client until it cancels the request.
pub(crate) async fn listen(
    session: &Arc<ToolSession>,
    (tasks, caller): (&ClientTasks, &AuthenticatedClient),
    params: &JsonObject,
    request: IncomingRequest,
) -> Result<Value, ErrorObject> {
    let Some(filter) = params.get("notifications").and_then(Value::as_object) else {
        let message = "`notifications` is missing: it says what to listen to";
        return Err(ErrorObject::invalid_params(message, None));
    };
    let wants = |key: &str| filter.get(key) == Some(&json!(true));
    let (tools, prompts, resources) =
        (wants("toolsListChanged"), wants("promptsListChanged"), wants("resourcesListChanged"));
    if filter.contains_key("taskIds") && !tasks::knows_tasks(&request.channel) {
        return Err(tasks::not_declared());
    }
    let ids = texts(filter, "taskIds");
    let watched_tasks: Vec<_> = ids.filter_map(|id| Some((id, tasks.task(caller, id)?))).collect();
    let subscription_meta = json!({ meta::SUBSCRIPTION_ID: request.id });
    // The client may know the list as it is now.
    let (mut changes, sent_list) = (ListChanges::new(session), SentList::default());
    if tools {
        sent_list.send(session.listed_now()).await;
    }
    let watcher = session.new_subscriber();
    // Events are collected from before the first subscription on, so that none is missed.
    let mut events: NotificationStream = watcher.notifications();
    let mut of_extensions = session.extension_notifications();
    let uris = texts(filter, "resourceSubscriptions");
    let subscribed = subscribe_all(&watcher, uris, &request.cancel).await;
    let listening = request.cancel.child_token();
    let _ended_when_dropped = listening.clone().drop_guard();
    let options = CallOptions {
        meta: params.get("_meta").and_then(Value::as_object).cloned(),
        cancel: listening,
        // Servers learn from it what the client declares.
        input_handler: Some(Arc::new(request.channel.clone())),
        ..CallOptions::default()
    };
    let (mut accepted, mut of_servers) =
        session.listen_for_extensions(for_extensions(params), &options).await;
    for (key, is_accepted) in [
        ("toolsListChanged", tools),
        ("promptsListChanged", prompts),
        ("resourcesListChanged", resources),
    ] {
        if is_accepted {
            accepted.insert(key.to_owned(), json!(true));
        }
    }
    if !subscribed.is_empty() {
        accepted.insert("resourceSubscriptions".to_owned(), json!(subscribed));
    }
    if !watched_tasks.is_empty() {
        let ids: Vec<&str> = watched_tasks.iter().map(|(id, _)| *id).collect();
        accepted.insert("taskIds".to_owned(), json!(ids));
    }
    // Taken before the acknowledgement, so that the client misses no change after it.
    let states: Vec<_> = watched_tasks.into_iter().map(|(_, task)| (task.states(), task)).collect();
    let params = json!({ "_meta": subscription_meta, "notifications": accepted });
    request.channel.notify(methods::LISTEN_ACKNOWLEDGED, Some(params));
    let list_changes = async {
        if !tools {
            return std::future::pending().await;
        }
        while changes.next().await {
            if sent_list.is_outdated(session.listed_now()).await {
                sent_list.send(session.listed_now()).await;
                let params = json!({ "_meta": subscription_meta });
                request.channel.notify(methods::TOOLS_CHANGED, Some(params));
            }
        }
    };
    let server_events = async {
        while let Some(ServerNotification { method, params, .. }) = events.next().await {
            let is_wanted = match method {
                // Log messages belong to requests.
                methods::LOG_MESSAGE => false,
                methods::RESOURCES_CHANGED => resources,
                methods::PROMPTS_CHANGED => prompts,
                // Updates of resources come only to subscribers.
                _ => true,
            };
            if is_wanted {
                pass_on(&request, method, params);
            }
        }
    };
    let extension_events = async {
        while let Some((method, params)) = of_extensions.next().await {
            pass_on(&request, &method, params);
        }
    };
    let subscribed_events = async {
        while let Some(SubscriptionEvent { method, params }) = of_servers.recv().await {
            pass_on(&request, &method, params);
        }
        // No server listens for it.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = subscribed_events => {}
        () = notify_of_tasks(states, &request) => {}
        () = list_changes => {}
        () = server_events => {}
        () = extension_events => {}
        () = request.cancel.cancelled() => {}
    }
    Ok(json!({ "_meta": subscription_meta }))
}

/// The texts of a list in a filter.
fn texts<'a>(filter: &'a JsonObject, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let texts = filter.get(key).and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).take(MAX_SUBSCRIPTIONS)
}

/// Passes a notification on as one of the subscription of a request.
fn pass_on(request: &IncomingRequest, method: &str, params: Option<Value>) {
    let mut params = params.filter(Value::is_object).unwrap_or_else(|| json!({}));
    set_meta(&mut params, meta::SUBSCRIPTION_ID, request.id.clone());
    request.channel.notify(method, Some(params));
}

/// The parameters of a `subscriptions/listen` without what toolgate answers itself. Empty if there is nothing else.
fn for_extensions(params: &JsonObject) -> JsonObject {
    let mut left = params.clone();
    left.retain(|key, _| key != "_meta");
    if let Some(Value::Object(filter)) = left.get_mut("notifications") {
        filter.retain(|key, _| !ANSWERED_HERE.contains(&key.as_str()));
    }
    let has_filter = left.get("notifications") != Some(&json!({}));
    if has_filter || left.len() > 1 { left } else { JsonObject::new() }
}

/// Subscribes to resources. Returns those that their servers have accepted.
async fn subscribe_all<'a>(
    watcher: &Subscriber,
    uris: impl Iterator<Item = &'a str>,
    cancel: &CancellationToken,
) -> Vec<String> {
    let subscribing: Vec<_> = uris
        .map(|uri| {
            let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
            let subscribed = watcher.subscribe(uri, options);
            async move { subscribed.await.is_ok().then(|| uri.to_owned()) }.boxed()
        })
        .collect();
    // Concurrently, so that one slow server hardly delays the others.
    stream::iter(subscribing)
        .buffered(CONCURRENT_SUBSCRIPTIONS)
        .filter_map(std::future::ready)
        .collect()
        .await
}

/// Sends the states of tasks to the client that listens to them. Does not end.
async fn notify_of_tasks(
    watched: Vec<(watch::Receiver<TaskState>, Arc<ClientTask>)>,
    request: &IncomingRequest,
) {
    let watching = watched.into_iter().map(async |(mut states, task)| {
        while states.changed().await.is_ok() {
            let is_end = states.borrow_and_update().status().is_end();
            let mut params = task.detail();
            set_meta(&mut params, meta::SUBSCRIPTION_ID, request.id.clone());
            request.channel.notify(methods::TASK_CHANGED, Some(params));
            if is_end {
                return;
            }
        }
    });
    futures::future::join_all(watching).await;
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_change_during_a_list_is_announced() {
        let (sent_list, changed, listed) = (SentList::default(), Notify::new(), Notify::new());
        let client_list = sent_list.send(async {
            let old = vec![json!({ "name": "old" })];
            changed.notify_one();
            listed.notified().await;
            old
        });
        let comparison = async {
            changed.notified().await;
            // The list that the client gets is made, and not noted yet.
            let outdated = sent_list.is_outdated(async { vec![json!({ "name": "new" })] });
            let (outdated, ()) = tokio::join!(outdated, async {
                tokio::task::yield_now().await;
                listed.notify_one();
            });
            outdated
        };
        let (_, is_outdated) = tokio::join!(client_list, comparison);
        assert!(is_outdated, "the client has the old list");
    }
}
