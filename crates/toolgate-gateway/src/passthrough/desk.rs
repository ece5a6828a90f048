//! Which request of which client a server speaks about.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::{ConnectionHandler, InputRequest, RelatedRequest};

use super::bridge;
use crate::{
    era::{META_LOG_LEVEL, META_SUBSCRIPTION},
    link::Link,
};

/// Stands between a connection and the clients that share it.
#[derive(Debug)]
pub(crate) struct Desk {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Ticket>>,
    /// The way to the one client of the legacy era, outside of requests.
    outlet: Option<Link>,
    /// Told of lists that changed.
    pub(crate) changes: watch::Sender<u64>,
}

/// Who waits for what.
#[derive(Debug, Clone)]
pub(crate) enum Ticket {
    /// A request of a client.
    Request {
        link: Link,
        /// The client's own id and progress token for it.
        id: Value,
        token: Option<Value>,
        /// Whether it wants to be told what the server logs.
        logs: bool,
    },
    /// A subscription that is ours, for a client that knows none.
    Held { acknowledged: watch::Sender<bool> },
    /// A subscription of a client, at a server that knows none.
    Listener { link: Link, id: Value, filter: Value },
}

/// A place at the desk, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) key: u64,
    desk: &'a Desk,
}

impl Desk {
    pub(crate) fn new(outlet: Option<Link>) -> Self {
        Self {
            next: AtomicU64::new(1),
            open: Mutex::default(),
            outlet,
            changes: watch::Sender::new(0),
        }
    }

    pub(crate) fn enter(&self, ticket: Ticket) -> Place<'_> {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(key, ticket);
        Place { key, desk: self }
    }

    /// A ticket for a request.
    pub(crate) fn ticket(link: &Link, id: &Value, params: Option<&Value>) -> Ticket {
        Ticket::Request {
            link: link.clone(),
            id: id.clone(),
            token: bridge::meta(params, "progressToken").cloned(),
            logs: bridge::meta(params, META_LOG_LEVEL).is_some(),
        }
    }

    /// Whether a client listens to this resource.
    pub(crate) fn is_listened_to(&self, uri: &Value) -> bool {
        self.open.lock().values().any(
            |ticket| matches!(ticket, Ticket::Listener { filter, .. } if subscribes(filter, uri)),
        )
    }

    fn find(&self, about: Option<&Value>, method: &str, params: Option<&Value>) -> Option<Ticket> {
        let open = self.open.lock();
        if let Some(ticket) = about.and_then(Value::as_u64).and_then(|key| open.get(&key)) {
            return Some(ticket.clone());
        }
        if self.outlet.is_some() {
            return None;
        }
        // Clients that share a connection had their tokens replaced by keys.
        let token = params.and_then(|params| params.get("progressToken")).and_then(Value::as_u64);
        if method == "notifications/progress" {
            return token.and_then(|key| open.get(&key)).cloned();
        }
        // What is about no request goes to the only one there is that it can be about.
        let mut requests = open.values().filter(|ticket| matches!(ticket, Ticket::Request { .. }));
        let only = requests.next().cloned();
        only.filter(|_| requests.next().is_none())
    }

    /// Tells those who listen to it.
    fn announce(&self, method: &str, params: Option<&Value>) {
        let wanted = |filter: &Value| {
            if let Some(name) = bridge::filter_name(method) {
                return filter.get(name) == Some(&json!(true));
            }
            let uri = params.and_then(|params| params.get("uri"));
            uri.is_some_and(|uri| subscribes(filter, uri))
        };
        for ticket in self.open.lock().values() {
            if let Ticket::Listener { link, id, filter } = ticket
                && wanted(filter)
            {
                let mut params = params.cloned().unwrap_or_else(|| json!({}));
                bridge::set_meta(&mut params, META_SUBSCRIPTION, id.clone());
                link.notify(method, Some(params));
            }
        }
    }
}

/// Whether what a client listens to has this resource in it.
fn subscribes(filter: &Value, uri: &Value) -> bool {
    let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
    uris.is_some_and(|uris| uris.contains(uri))
}

impl ConnectionHandler for Desk {
    fn notification(&self, about: Option<&Value>, method: &str, mut params: Option<Value>) {
        let announced =
            bridge::filter_name(method).is_some() || method == "notifications/resources/updated";
        if bridge::filter_name(method).is_some() {
            self.changes.send_modify(|count| *count += 1);
        }
        if announced {
            self.announce(method, params.as_ref());
        }
        match self.find(about, method, params.as_ref()) {
            Some(Ticket::Request { link, id, token, logs }) => {
                let of_another = announced && about.is_none();
                let unwanted = method == "notifications/message" && about.is_none() && !logs;
                if of_another || unwanted {
                    return;
                }
                if bridge::meta(params.as_ref(), META_SUBSCRIPTION).is_some()
                    && let Some(params) = &mut params
                {
                    bridge::set_meta(params, META_SUBSCRIPTION, id);
                }
                if method == "notifications/progress"
                    && let (Some(params), Some(token)) = (&mut params, token)
                {
                    params["progressToken"] = token;
                }
                link.notify(method, params);
            }
            Some(Ticket::Held { acknowledged }) => {
                if method == "notifications/subscriptions/acknowledged" {
                    acknowledged.send_replace(true);
                } else if let Some(outlet) = &self.outlet {
                    bridge::without_subscription(&mut params);
                    outlet.notify(method, params);
                }
            }
            Some(Ticket::Listener { .. }) => {}
            None => {
                if let Some(outlet) = &self.outlet {
                    outlet.notify(method, params);
                }
            }
        }
    }

    fn input_request(
        &self,
        about: Option<RelatedRequest>,
        question: InputRequest,
    ) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let about = about.map(|about| about.key);
        let link = match self.find(about.as_ref(), &question.method, None) {
            Some(Ticket::Request { link, .. }) => Some(link),
            _ => self.outlet.clone(),
        };
        match link {
            Some(link) => link.ask(question),
            None => Box::pin(std::future::ready(Err(ErrorObject::internal_error(
                "no client is there that could be asked: the question belongs to no request",
                None,
            )))),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.desk.open.lock().remove(&self.key);
    }
}
