//! Subscriptions to resources, and the notifications of servers on their way to sessions.
//!
//! A server gets one subscription for each resource, however many sessions want it. Servers of
//! 2026-07-28 only notify the ends of a `subscriptions/listen` request: one such stream a server.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Admitted, Broker, BrokerError, CallContext, Outgoing, SessionContext};
use toolgate_catalog::ServerName;
use toolgate_mcp::{Era, LogLevel, meta, methods};
use toolgate_upstream::{CallError, CallOptions};

use super::{ListKind, ResourceHub, held, lists::ListSource, requests, uris, uris::UriTarget};
use crate::{host::ToolHost, session::CallFailure};

/// Receives notifications and subscribes to resources: a session, or one stream of a session. Its
/// subscriptions end when it is dropped.
pub struct Subscriber {
    host: ToolHost,
    context: Arc<SessionContext>,
    id: SubscriberId,
    gone: CancellationToken,
}

/// The notifications for a [`Subscriber`].
#[derive(Debug)]
pub struct NotificationStream {
    feed: EventFeed,
    hub: Arc<ResourceHub>,
    id: SubscriberId,
    gone: CancellationToken,
}

/// A notification of a server, for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerNotification {
    /// The method.
    pub method: &'static str,
    /// The parameters, with a URI that the client can read.
    pub params: Option<Value>,
    /// The server that wrote a log message. Only those may read it who may use the server.
    pub logged_by: Option<ServerName>,
}

/// Identifies a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SubscriberId(u64);

/// All subscriptions. A server gets a message for the first subscriber of a resource and for the end
/// of the last one.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    subscribed: Mutex<HashMap<ServerName, HashMap<String, HashSet<SubscriberId>>>>,
    sessions: Mutex<HashMap<SubscriberId, Arc<SessionContext>>>,
    /// The subscribers that are other nodes, which have judged their subscriptions themselves.
    nodes: Mutex<HashSet<SubscriberId>>,
    /// Locked while a server is sent a message, so that changes reach it in order.
    sending: Mutex<HashMap<ServerName, Arc<tokio::sync::Mutex<()>>>>,
    next: AtomicU64,
}

/// A subscriber has reached the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManySubscriptions;

/// The open `subscriptions/listen` requests. They end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct ListenStreams {
    open: Mutex<HashMap<ServerName, DropGuard>>,
}

/// Something that happened at a server.
#[derive(Debug, Clone)]
pub(super) enum ResourceEvent {
    /// A list has changed.
    ListChanged(ListKind),
    /// A server has written a log message outside of calls.
    Logged(ServerName, Value),
    /// A resource has changed; the parameters are for these subscribers.
    Updated(Arc<HashSet<SubscriberId>>, Value),
}

/// Broadcasts events to all subscribers.
#[derive(Debug, Clone)]
pub(super) struct EventBus(broadcast::Sender<ResourceEvent>);

/// The events for one subscriber.
#[derive(Debug)]
pub(super) struct EventFeed {
    events: broadcast::Receiver<ResourceEvent>,
    subscriber: SubscriberId,
    /// Notifications in place of events that a slow reader has missed.
    pending: Vec<ServerNotification>,
}

/// How many subscriptions one subscriber may have.
const MAX_PER_SUBSCRIBER: usize = 1_000;
/// How many events wait for a slow reader.
const QUEUED_EVENTS: usize = 256;
/// Between the end of a listen request and the next one.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

impl Subscriber {
    pub(crate) fn new(host: ToolHost, context: Arc<SessionContext>) -> Self {
        let id = host.inner.resources.subscriptions.register(Arc::clone(&context));
        Self { host, context, id, gone: CancellationToken::new() }
    }

    /// Subscribes to a resource. The server gets a request if nobody else has subscribed to it.
    pub async fn subscribe(&self, uri: &str, options: CallOptions) -> Result<Value, CallFailure> {
        let (server, theirs) = self.locate(uri, &options).await?;
        let kind = ListKind::Resources;
        if self.host.servers().is_per_caller(server.as_str()) {
            let why = "each caller has their own login there";
            let message = format!("server `{server}` has no subscriptions: {why}");
            return Err(requests::invalid(message));
        }
        let source = ListSource::new(self.host.broker(), &server, None);
        if requests::is_hidden(&self.host, &server, kind)
            || held::is_resource_held(&self.host, &source, &theirs).await
        {
            return Err(requests::not_found(uri));
        }
        // Connected before the subscription is noted, or the new connection would subscribe too.
        let era = era_of(&self.host, &server).await;
        let (context, params) = (CallContext::direct(&self.context), json!({ "uri": theirs }));
        let broker = self.host.broker();
        let admitted = broker
            .admit_request(&server, methods::RESOURCES_SUBSCRIBE, params, &context, &options)
            .await;
        let admitted = admitted.map_err(|error| requests::failure(&server, error))?;
        let (host, id) = (self.host.clone(), self.id);
        // In a task of its own, so that a caller who stops waiting leaves nothing half done.
        let subscribing = tokio::spawn(async move {
            let hub = &host.inner.resources;
            let _in_order = hub.subscriptions.lock(&server).await;
            let is_first =
                hub.subscriptions.add(&server, &theirs, id, MAX_PER_SUBSCRIBER).map_err(|_| {
                    let most = MAX_PER_SUBSCRIBER;
                    requests::invalid(format!("no more than {most} subscriptions at once"))
                })?;
            let sent = if !is_first {
                Ok(covered(admitted).await)
            } else if era == Some(Era::Modern) {
                hub.listen(host.broker(), &server);
                Ok(covered(admitted).await)
            } else {
                let mut admitted = admitted;
                admitted.send(Outgoing::Shared(options)).await
            };
            if sent.is_err() {
                hub.subscriptions.remove(&server, &theirs, id);
            }
            sent.map_err(|error| requests::failure(&server, error))
        });
        subscribing.await.unwrap_or(Err(CallFailure::Cancelled))
    }

    /// Ends a subscription. The server gets a request if it was the last one to the resource.
    pub async fn unsubscribe(&self, uri: &str, options: CallOptions) -> Result<Value, CallFailure> {
        let (server, theirs) = self.locate(uri, &options).await?;
        let (host, id) = (self.host.clone(), self.id);
        let ending =
            tokio::spawn(async move { unsubscribe(&host, id, &server, &theirs, options).await });
        ending.await.unwrap_or(Err(CallFailure::Cancelled))
    }

    /// The notifications from now on.
    pub fn notifications(&self) -> NotificationStream {
        let hub = Arc::clone(&self.host.inner.resources);
        for kind in ListKind::ALL {
            hub.list_given(kind);
        }
        let (feed, gone) = (hub.events.feed(self.id), self.gone.clone());
        NotificationStream { feed, hub, id: self.id, gone }
    }

    async fn locate(
        &self,
        uri: &str,
        options: &CallOptions,
    ) -> Result<(ServerName, String), CallFailure> {
        match requests::locate(&self.host, uri, options).await? {
            (server, UriTarget::Resource(theirs)) => Ok((server, theirs)),
            (_, UriTarget::Instructions) => Err(requests::not_found(uri)),
        }
    }
}

impl NotificationStream {
    /// Waits for the next notification; `None` when the subscriber is gone.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        let (subscriptions, id) = (&self.hub.subscriptions, self.id);
        tokio::select! {
            biased;
            () = self.gone.cancelled() => None,
            next = self.feed.next(|| subscriptions.client_uris_of(id)) => next,
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.gone.cancel();
        let subscriptions = &self.host.inner.resources.subscriptions;
        subscriptions.sessions.lock().remove(&self.id);
        end_all(&self.host, self.id);
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Subscriber").field("id", &self.id).finish_non_exhaustive()
    }
}

async fn unsubscribe(
    host: &ToolHost,
    id: SubscriberId,
    server: &ServerName,
    uri: &str,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    let hub = &host.inner.resources;
    let _in_order = hub.subscriptions.lock(server).await;
    if !hub.subscriptions.remove(server, uri, id) {
        return Ok(json!({}));
    }
    if era_of(host, server).await == Some(Era::Modern) {
        hub.listen(host.broker(), server);
        return Ok(json!({}));
    }
    let params = Some(json!({ "uri": uri }));
    let sent = host
        .broker()
        .request_unjudged(server, methods::RESOURCES_UNSUBSCRIBE, params, options)
        .await;
    sent.map_err(|error| requests::failure(server, error))
}

/// The era of a server, which is connected for it.
async fn era_of(host: &ToolHost, server: &ServerName) -> Option<Era> {
    let era = || Some(host.servers().state(server.as_str())?.handshake?.era);
    if era().is_none() {
        host.connect(server.as_str()).await;
    }
    era()
}

/// Ends an admitted subscription that another message covers.
async fn covered(admitted: Admitted) -> Value {
    let result = json!({});
    admitted.end_unsent(Ok(&result)).await;
    result
}

/// Subscribes again at a server that has reconnected. Each subscription is judged again, because
/// grants and the policy may have changed; a refused one ends.
pub(super) async fn resubscribe(
    hub: &ResourceHub,
    broker: &Arc<Broker>,
    server: &ServerName,
    era: Era,
) {
    let _in_order = hub.subscriptions.lock(server).await;
    for (uri, subscribers) in hub.subscriptions.on(server) {
        let (mut admitted, mut is_for_node) = (Vec::new(), false);
        for id in subscribers {
            is_for_node |= hub.subscriptions.nodes.lock().contains(&id);
            let Some(session) = hub.subscriptions.session(id) else { continue };
            let (context, options) = (CallContext::direct(&session), CallOptions::default());
            let params = json!({ "uri": uri });
            match broker
                .admit_request(server, methods::RESOURCES_SUBSCRIBE, params, &context, &options)
                .await
            {
                Ok(request) => admitted.push(request),
                Err(error) => {
                    tracing::warn!(%server, "a subscription ended: {error}");
                    hub.subscriptions.remove(server, &uri, id);
                }
            }
        }
        let sent: Result<Value, BrokerError> = match admitted.pop() {
            Some(mut first) if era == Era::Legacy => {
                first.send(Outgoing::Shared(CallOptions::default())).await
            }
            Some(first) => Ok(covered(first).await),
            None if is_for_node && era == Era::Legacy => {
                if let Err(error) = subscribe_for_node(broker, server, &uri).await {
                    tracing::warn!(%server, "a subscription of another node ended: {error}");
                }
                continue;
            }
            None => continue,
        };
        for other in admitted {
            other.end_unsent(sent.as_ref()).await;
        }
    }
    if era == Era::Modern {
        hub.listen(broker, server);
    }
}

impl ResourceHub {
    /// Listens to what subscribers want of a server of the modern era, and to nothing else.
    fn listen(&self, broker: &Arc<Broker>, server: &ServerName) {
        let capabilities =
            broker.servers().state(server.as_str()).and_then(|state| state.handshake);
        let capabilities = capabilities.map(|handshake| handshake.capabilities);
        let logging = capabilities.as_ref().and_then(|declared| declared.get("logging"));
        let is_logged = logging.is_some_and(|logging| logging.get(meta::LISTENED_LOGS).is_some());
        let levels = is_logged.then(|| self.clients.wanted_levels());
        self.streams.listen(broker, server, self.subscriptions.uris_on(server), levels);
    }
}

/// Subscribes at a server of the legacy era for another node, which has judged it.
async fn subscribe_for_node(
    broker: &Arc<Broker>,
    server: &ServerName,
    uri: &str,
) -> Result<Value, BrokerError> {
    let params = serde_json::Map::from_iter([("uri".to_owned(), json!(uri))]);
    let method = methods::RESOURCES_SUBSCRIBE;
    broker.forward(server, method, params, CallOptions::default()).await
}

/// Subscribes to resources for another node. A server that refuses one has no updates of it.
pub(super) async fn add_node(
    host: &ToolHost,
    server: &ServerName,
    uris: &[String],
) -> SubscriberId {
    let hub = &host.inner.resources;
    let id = hub.subscriptions.register_node();
    let era = if uris.is_empty() { None } else { era_of(host, server).await };
    let _in_order = hub.subscriptions.lock(server).await;
    let mut is_changed = false;
    for uri in uris {
        let is_first = hub.subscriptions.add(server, uri, id, usize::MAX) == Ok(true);
        is_changed |= is_first;
        if is_first
            && era == Some(Era::Legacy)
            && let Err(error) = subscribe_for_node(host.broker(), server, uri).await
        {
            tracing::debug!(%server, "another node is not subscribed: {error}");
        }
    }
    if is_changed && era == Some(Era::Modern) {
        hub.listen(host.broker(), server);
    }
    id
}

/// Ends the subscriptions of another node.
pub(super) fn remove_node(host: &ToolHost, id: SubscriberId) {
    let subscriptions = &host.inner.resources.subscriptions;
    subscriptions.nodes.lock().remove(&id);
    end_all(host, id);
}

/// Ends the subscriptions of a subscriber that is gone.
fn end_all(host: &ToolHost, id: SubscriberId) {
    let subscribed = host.inner.resources.subscriptions.of(id);
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    if subscribed.is_empty() {
        return;
    }
    let host = host.clone();
    runtime.spawn(async move {
        for (server, uri) in subscribed {
            // A server that is gone sends no notifications any more.
            let _ = unsubscribe(&host, id, &server, &uri, CallOptions::default()).await;
        }
    });
}

impl Subscriptions {
    fn register_node(&self) -> SubscriberId {
        let id = SubscriberId(self.next.fetch_add(1, Ordering::Relaxed));
        self.nodes.lock().insert(id);
        id
    }

    fn register(&self, session: Arc<SessionContext>) -> SubscriberId {
        let id = SubscriberId(self.next.fetch_add(1, Ordering::Relaxed));
        self.sessions.lock().insert(id, session);
        id
    }

    fn session(&self, id: SubscriberId) -> Option<Arc<SessionContext>> {
        self.sessions.lock().get(&id).cloned()
    }

    /// Waits until nobody else changes the subscriptions at a server.
    async fn lock(&self, server: &ServerName) -> tokio::sync::OwnedMutexGuard<()> {
        let sending = Arc::clone(self.sending.lock().entry(server.clone()).or_default());
        sending.lock_owned().await
    }

    /// Adds a subscription. Returns whether it is the first to this resource.
    fn add(
        &self,
        server: &ServerName,
        uri: &str,
        id: SubscriberId,
        most: usize,
    ) -> Result<bool, TooManySubscriptions> {
        let mut subscribed = self.subscribed.lock();
        let uris = subscribed.values().flatten();
        if uris.filter(|(_, ids)| ids.contains(&id)).count() >= most {
            return Err(TooManySubscriptions);
        }
        let ids = subscribed.entry(server.clone()).or_default().entry(uri.to_owned()).or_default();
        ids.insert(id);
        Ok(ids.len() == 1)
    }

    /// Removes a subscription. Returns whether it existed and was the last to this resource.
    fn remove(&self, server: &ServerName, uri: &str, id: SubscriberId) -> bool {
        let mut subscribed = self.subscribed.lock();
        let Some(uris) = subscribed.get_mut(server) else { return false };
        let Some(ids) = uris.get_mut(uri) else { return false };
        let last = ids.remove(&id) && ids.is_empty();
        if ids.is_empty() {
            uris.remove(uri);
        }
        if uris.is_empty() {
            subscribed.remove(server);
        }
        last
    }

    /// The subscriptions of one subscriber.
    fn of(&self, id: SubscriberId) -> Vec<(ServerName, String)> {
        let subscribed = self.subscribed.lock();
        let pairs = subscribed.iter().flat_map(|(server, uris)| {
            let own = uris.iter().filter(|(_, ids)| ids.contains(&id));
            own.map(|(uri, _)| (server.clone(), uri.clone()))
        });
        pairs.collect()
    }

    /// The same with the URIs that clients know.
    fn client_uris_of(&self, id: SubscriberId) -> Vec<String> {
        self.of(id).iter().map(|(server, uri)| uris::ours(server, uri)).collect()
    }

    /// All subscriptions at a server, by URI.
    fn on(&self, server: &ServerName) -> HashMap<String, HashSet<SubscriberId>> {
        self.subscribed.lock().get(server).cloned().unwrap_or_default()
    }

    fn uris_on(&self, server: &ServerName) -> Vec<String> {
        self.on(server).into_keys().collect()
    }

    /// The subscribers of a resource that has changed. A server may announce the change of a part of
    /// what was subscribed to.
    pub(super) fn subscribers(&self, server: &ServerName, changed: &str) -> HashSet<SubscriberId> {
        let subscribed = self.subscribed.lock();
        let uris = subscribed.get(server).into_iter().flatten();
        uris.filter(|(uri, _)| is_part_of(changed, uri)).flat_map(|(_, ids)| ids).copied().collect()
    }
}

/// Whether a resource is the other one, or below it.
pub(super) fn is_part_of(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole).is_some_and(|rest| {
        rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '#', '?'])
    })
}

impl ListenStreams {
    /// Listens to these resources of a server instead of those before, and to its log messages outside of calls if
    /// `levels` is given; ends listening if there is nothing to listen to.
    fn listen(
        &self,
        broker: &Arc<Broker>,
        server: &ServerName,
        uris: Vec<String>,
        levels: Option<watch::Receiver<Option<LogLevel>>>,
    ) {
        let mut open = self.open.lock();
        let before = open.remove(server);
        if !uris.is_empty() || levels.is_some() {
            let end = CancellationToken::new();
            open.insert(server.clone(), end.clone().drop_guard());
            tokio::spawn(keep_listening(Arc::clone(broker), server.clone(), uris, levels, end));
        }
        drop(open);
        drop(before);
    }
}

/// Sends the listen request, and again when it ends, because proxies end streams that are silent for long, or when
/// clients want other log messages. The notifications come by way of the observer.
async fn keep_listening(
    broker: Arc<Broker>,
    server: ServerName,
    uris: Vec<String>,
    mut levels: Option<watch::Receiver<Option<LogLevel>>>,
    end: CancellationToken,
) {
    loop {
        let mut filter = json!({});
        if !uris.is_empty() {
            filter["resourceSubscriptions"] = json!(uris);
        }
        if let Some(levels) = &mut levels {
            let level = *levels.borrow_and_update();
            filter[meta::LISTENED_LOGS] =
                level.map_or(Value::Bool(true), |level| json!(level.as_str()));
        }
        let other_level = async {
            let changed = match &mut levels {
                Some(levels) => levels.changed().await.is_ok(),
                None => false,
            };
            if !changed {
                std::future::pending::<()>().await;
            }
        };
        let params = Some(json!({ "notifications": filter }));
        let options = CallOptions { cancel: end.child_token(), ..CallOptions::default() };
        let ended = tokio::select! {
            ended = broker.request_unjudged(&server, methods::LISTEN, params, options) => ended,
            () = other_level => continue,
        };
        if let Err(BrokerError::Call(error)) = ended {
            match *error {
                // The next connection listens again.
                CallError::Cancelled
                | CallError::UnknownServer(_)
                | CallError::NotConnected { .. } => return,
                CallError::Refused { error, .. } => {
                    tracing::debug!(%server, %error.message, "the server refused to listen");
                    return;
                }
                _ => {}
            }
        }
        tokio::select! {
            () = end.cancelled() => return,
            () = tokio::time::sleep(LISTEN_PAUSE) => {}
        }
    }
}

impl EventBus {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(QUEUED_EVENTS))
    }

    pub(super) fn send(&self, event: ResourceEvent) {
        // There may be no subscriber.
        let _ = self.0.send(event);
    }

    /// The events from now on, for one subscriber.
    fn feed(&self, subscriber: SubscriberId) -> EventFeed {
        EventFeed { events: self.0.subscribe(), subscriber, pending: Vec::new() }
    }
}

impl EventFeed {
    /// Waits for the next notification; `None` when there will be no more. `subscribed` are the URIs
    /// of the subscriber: a reader that fell behind gets a notification for each of them, which is
    /// true for some and harmless for the others.
    async fn next(&mut self, subscribed: impl Fn() -> Vec<String>) -> Option<ServerNotification> {
        loop {
            if let Some(notification) = self.pending.pop() {
                return Some(notification);
            }
            match self.events.recv().await {
                Ok(ResourceEvent::ListChanged(kind)) => return Some(list_changed(kind)),
                Ok(ResourceEvent::Updated(ids, params)) if ids.contains(&self.subscriber) => {
                    return Some(ServerNotification {
                        method: methods::RESOURCE_UPDATED,
                        params: Some(params),
                        logged_by: None,
                    });
                }
                Ok(ResourceEvent::Updated(..)) => {}
                Ok(ResourceEvent::Logged(server, params)) => {
                    return Some(ServerNotification {
                        method: methods::LOG_MESSAGE,
                        params: Some(params),
                        logged_by: Some(server),
                    });
                }
                Err(RecvError::Lagged(_)) => {
                    self.pending =
                        [ListKind::Prompts, ListKind::Resources].map(list_changed).into();
                    self.pending.extend(subscribed().into_iter().map(|uri| ServerNotification {
                        method: methods::RESOURCE_UPDATED,
                        params: Some(json!({ "uri": uri })),
                        logged_by: None,
                    }));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

fn list_changed(kind: ListKind) -> ServerNotification {
    let method = match kind {
        ListKind::Resources | ListKind::Templates | ListKind::Skills => methods::RESOURCES_CHANGED,
        ListKind::Prompts => methods::PROMPTS_CHANGED,
    };
    ServerNotification { method, params: None, logged_by: None }
}

#[cfg(test)]
mod tests {
    use toolgate_broker::Caller;

    use super::*;

    fn subscriber(all: &Subscriptions) -> SubscriberId {
        all.register(Arc::new(SessionContext::new(Caller::model("local"))))
    }

    #[test]
    fn only_the_first_and_the_last_subscriber_reach_the_server() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let (one, two) = (subscriber(&all), subscriber(&all));
        assert_eq!(all.add(&server, "x:1", one, MAX_PER_SUBSCRIBER), Ok(true));
        assert_eq!(all.add(&server, "x:1", two, MAX_PER_SUBSCRIBER), Ok(false));
        assert!(!all.remove(&server, "x:1", one));
        assert!(!all.remove(&server, "x:1", one), "twice is once");
        assert!(all.remove(&server, "x:1", two));
        assert!(all.on(&server).is_empty());
    }

    #[test]
    fn updates_below_a_uri_reach_its_subscribers() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let (one, two) = (subscriber(&all), subscriber(&all));
        all.add(&server, "file:///a", one, MAX_PER_SUBSCRIBER).unwrap();
        all.add(&server, "file:///a/b", two, MAX_PER_SUBSCRIBER).unwrap();
        assert_eq!(all.subscribers(&server, "file:///a/b"), HashSet::from([one, two]));
        assert_eq!(all.subscribers(&server, "file:///a"), HashSet::from([one]));
        assert!(all.subscribers(&server, "file:///ab").is_empty());
        assert!(all.subscribers(&"other".into(), "file:///a").is_empty());
        assert_eq!(all.client_uris_of(two), ["toolgate://s/file:///a/b"]);
    }

    #[test]
    fn subscriptions_are_limited() {
        let (all, server) = (Subscriptions::default(), ServerName::from("s"));
        let greedy = subscriber(&all);
        for number in 0..MAX_PER_SUBSCRIBER {
            all.add(&server, &format!("x:{number}"), greedy, MAX_PER_SUBSCRIBER).unwrap();
        }
        assert_eq!(
            all.add(&server, "x:more", greedy, MAX_PER_SUBSCRIBER),
            Err(TooManySubscriptions)
        );
        assert_eq!(all.add(&server, "x:more", subscriber(&all), MAX_PER_SUBSCRIBER), Ok(true));
    }

    fn updated(id: SubscriberId, uri: &str) -> ResourceEvent {
        ResourceEvent::Updated(Arc::new(HashSet::from([id])), json!({ "uri": uri }))
    }

    #[tokio::test]
    async fn a_subscriber_gets_only_its_updates() {
        let events = EventBus::new();
        let mut feed = events.feed(SubscriberId(1));
        events.send(updated(SubscriberId(2), "other"));
        events.send(updated(SubscriberId(1), "mine"));
        events.send(ResourceEvent::ListChanged(ListKind::Prompts));
        let first = feed.next(Vec::new).await.unwrap();
        assert_eq!(
            (first.method, first.params),
            (methods::RESOURCE_UPDATED, Some(json!({ "uri": "mine" })))
        );
        assert_eq!(feed.next(Vec::new).await.unwrap().method, methods::PROMPTS_CHANGED);
        drop(events);
        assert_eq!(feed.next(Vec::new).await, None);
    }

    #[tokio::test]
    async fn a_slow_subscriber_learns_that_everything_may_have_changed() {
        let events = EventBus::new();
        let mut feed = events.feed(SubscriberId(1));
        for _ in 0..=QUEUED_EVENTS {
            events.send(updated(SubscriberId(2), "other"));
        }
        let mut methods = Vec::new();
        for _ in 0..3 {
            methods.push(feed.next(|| vec!["mine".to_owned()]).await.unwrap().method);
        }
        assert_eq!(
            methods,
            [methods::RESOURCE_UPDATED, methods::RESOURCES_CHANGED, methods::PROMPTS_CHANGED]
        );
    }
}
