//! Routes messages of the server to the client and the request that they belong to.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_mcp::{ErrorObject, meta, methods};
use toolgate_upstream::{ConnectionHandler, InputRequest, RelatedRequest};

use crate::{
    channel::ClientChannel,
    era::{get_meta, remove_meta, set_meta},
    service::IncomingRequest,
};

/// Receives the messages of one connection, which several clients may share.
#[derive(Debug)]
pub(crate) struct MessageRouter {
    next_key: AtomicU64,
    routes: Mutex<HashMap<u64, MessageRoute>>,
    /// The channel to the only client, if that is a legacy client.
    channel: Option<ClientChannel>,
    /// Counts the changes of lists.
    pub(crate) list_changes: watch::Sender<u64>,
}

/// Where messages that belong to a request in progress go.
#[derive(Debug, Clone)]
pub(crate) enum MessageRoute {
    /// To the client that sent the request.
    Request {
        channel: ClientChannel,
        /// The id and the progress token that the client chose.
        id: Value,
        token: Option<Value>,
        wants_logs: bool,
        /// Whether it is a `subscriptions/listen`.
        listens: bool,
    },
    /// To a legacy client, on behalf of which we listen at a modern server.
    OwnSubscription { acknowledged: watch::Sender<bool> },
    /// To a modern client that listens at a legacy server.
    Listener { channel: ClientChannel, id: Value, filter: Value },
}

/// A registered route. Dropping it removes the route.
#[derive(Debug)]
pub(crate) struct RouteRegistration<'a> {
    pub(crate) key: u64,
    router: &'a MessageRouter,
}

/// The notifications about lists, and their names in the filter of `subscriptions/listen`.
pub(super) const LIST_NOTIFICATIONS: [(&str, &str, &str); 3] = [
    ("tools", methods::TOOLS_CHANGED, "toolsListChanged"),
    ("prompts", methods::PROMPTS_CHANGED, "promptsListChanged"),
    ("resources", methods::RESOURCES_CHANGED, "resourcesListChanged"),
];

impl MessageRouter {
    pub(crate) fn new(channel: Option<ClientChannel>) -> Self {
        Self {
            next_key: AtomicU64::new(1),
            routes: Mutex::default(),
            channel,
            list_changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn register(&self, route: MessageRoute) -> RouteRegistration<'_> {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        self.routes.lock().insert(key, route);
        RouteRegistration { key, router: self }
    }

    pub(crate) fn register_request(&self, request: &IncomingRequest) -> RouteRegistration<'_> {
        let params = request.params.as_ref();
        self.register(MessageRoute::Request {
            channel: request.channel.clone(),
            id: request.id.clone(),
            token: get_meta(params, meta::PROGRESS_TOKEN).cloned(),
            wants_logs: get_meta(params, meta::LOG_LEVEL).is_some(),
            listens: request.method == methods::LISTEN,
        })
    }

    /// Whether a client listens to this resource.
    pub(crate) fn has_listener(&self, uri: &Value) -> bool {
        self.routes.lock().values().any(|route| {
            matches!(route, MessageRoute::Listener { filter, .. } if has_resource(filter, uri))
        })
    }

    /// The route of a message. `about` is the key of the request that it came with.
    fn find(
        &self,
        about: Option<&Value>,
        method: &str,
        params: Option<&Value>,
    ) -> Option<MessageRoute> {
        let routes = self.routes.lock();
        if let Some(route) = about.and_then(Value::as_u64).and_then(|key| routes.get(&key)) {
            return Some(route.clone());
        }
        if self.channel.is_some() {
            return None;
        }
        if method == methods::PROGRESS {
            // The tokens of clients that share a connection were replaced by keys.
            let token = params.and_then(|params| params.get(meta::PROGRESS_TOKEN));
            return token.and_then(Value::as_u64).and_then(|key| routes.get(&key)).cloned();
        }
        // A message that names no request belongs to the only one there is, or is dropped.
        let is_request = |route: &&MessageRoute| matches!(route, MessageRoute::Request { .. });
        let mut requests = routes.values().filter(is_request);
        let only = requests.next().cloned();
        only.filter(|_| requests.next().is_none())
    }

    /// Passes a notification of an extension that names no request to all modern clients that listen: it is not known
    /// to what it belongs. Returns whether there are any.
    fn tell_all_that_listen(&self, method: &str, params: Option<&Value>) -> bool {
        let mut is_told = false;
        for route in self.routes.lock().values() {
            match route {
                MessageRoute::Request { channel, listens: true, .. } => {
                    channel.notify(method, params.cloned());
                    is_told = true;
                }
                // A legacy server knows no subscription.
                MessageRoute::Listener { channel, id, .. } => {
                    let params = params.filter(|params| params.is_object());
                    let mut params = params.cloned().unwrap_or_else(|| json!({}));
                    set_meta(&mut params, meta::SUBSCRIPTION_ID, id.clone());
                    channel.notify(method, Some(params));
                    is_told = true;
                }
                MessageRoute::Request { .. } | MessageRoute::OwnSubscription { .. } => {}
            }
        }
        is_told
    }

    /// Notifies the modern clients that listen for this notification.
    fn notify_listeners(&self, method: &str, params: Option<&Value>) {
        let is_wanted = |filter: &Value| {
            if let Some(name) = filter_name(method) {
                return filter.get(name) == Some(&json!(true));
            }
            let uri = params.and_then(|params| params.get("uri"));
            uri.is_some_and(|uri| has_resource(filter, uri))
        };
        for route in self.routes.lock().values() {
            if let MessageRoute::Listener { channel, id, filter } = route
                && is_wanted(filter)
            {
                let mut params = params.cloned().unwrap_or_else(|| json!({}));
                set_meta(&mut params, meta::SUBSCRIPTION_ID, id.clone());
                channel.notify(method, Some(params));
            }
        }
    }
}

/// The name of a list notification in the filter of `subscriptions/listen`.
fn filter_name(method: &str) -> Option<&'static str> {
    LIST_NOTIFICATIONS.iter().find(|(_, known, _)| *known == method).map(|(_, _, name)| *name)
}

fn has_resource(filter: &Value, uri: &Value) -> bool {
    let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
    uris.is_some_and(|uris| uris.contains(uri))
}

impl ConnectionHandler for MessageRouter {
    fn notification(&self, about: Option<&Value>, method: &str, mut params: Option<Value>) {
        let is_about_list = filter_name(method).is_some();
        let is_announcement = is_about_list || method == methods::RESOURCE_UPDATED;
        if is_about_list {
            self.list_changes.send_modify(|count| *count += 1);
        }
        if is_announcement {
            self.notify_listeners(method, params.as_ref());
        }
        if about.is_none()
            && methods::is_of_unknown_extension(method)
            && self.tell_all_that_listen(method, params.as_ref())
        {
            return;
        }
        match self.find(about, method, params.as_ref()) {
            Some(MessageRoute::Request { channel, id, token, wants_logs, .. }) => {
                let is_unwanted_log = method == methods::LOG_MESSAGE && !wants_logs;
                if about.is_none() && (is_announcement || is_unwanted_log) {
                    return;
                }
                if get_meta(params.as_ref(), meta::SUBSCRIPTION_ID).is_some()
                    && let Some(params) = &mut params
                {
                    set_meta(params, meta::SUBSCRIPTION_ID, id);
                }
                if method == methods::PROGRESS
                    && let (Some(params), Some(token)) = (&mut params, token)
                {
                    params[meta::PROGRESS_TOKEN] = token;
                }
                channel.notify(method, params);
            }
            Some(MessageRoute::OwnSubscription { acknowledged }) => {
                if method == methods::LISTEN_ACKNOWLEDGED {
                    acknowledged.send_replace(true);
                } else if let Some(channel) = &self.channel {
                    remove_meta(&mut params, &[meta::SUBSCRIPTION_ID]);
                    channel.notify(method, params);
                }
            }
            Some(MessageRoute::Listener { .. }) => {}
            None => {
                if let Some(channel) = &self.channel {
                    channel.notify(method, params);
                }
            }
        }
    }

    fn input_request(
        &self,
        about: Option<RelatedRequest>,
        request: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let about = about.map(|about| about.key);
        let channel = match self.find(about.as_ref(), &request.method, None) {
            Some(MessageRoute::Request { channel, .. }) => Some(channel),
            _ => self.channel.clone(),
        };
        match channel {
            Some(channel) => channel.request_input(request),
            None => Box::pin(std::future::ready(Err(ErrorObject::internal_error(
                "the input request belongs to no request of a client",
                None,
            )))),
        }
    }
}

impl Drop for RouteRegistration<'_> {
    fn drop(&mut self) {
        self.router.routes.lock().remove(&self.key);
    }
}
