//! What servers tell of resources and prompts, on its way to a client.

use std::sync::Arc;

use futures::{
    FutureExt as _, StreamExt as _,
    future::{self, BoxFuture},
    stream,
};
use serde_json::{Map, Value, json};
use toolgate_host::{NotificationStream, ServerNotification, Session, Subscriber};
use toolgate_upstream::CallOptions;

use crate::{era::META_SUBSCRIPTION, face::Asked, link::Link};

/// What a client of the modern era listens to, beside its tools.
#[derive(Debug)]
pub(crate) struct Listening {
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    news: NotificationStream,
    /// What it subscribed to ends with it.
    _watcher: Subscriber,
}

/// Resources that one stream can be about; what is more is left out, and the client told so.
const MOST_SUBSCRIPTIONS: usize = 1_000;
const AT_ONCE: usize = 32;
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

/// Tells a client of the legacy era until its session is gone.
pub(crate) async fn forward(mut news: NotificationStream, outlet: Link) {
    while let Some(ServerNotification { method, params }) = news.next().await {
        outlet.notify(method, params);
    }
}

impl Listening {
    /// Begins to listen to what is wanted. Resources that cannot be subscribed to are left out.
    pub(crate) async fn begin(
        session: &Arc<Session>,
        wanted: &Map<String, Value>,
        asked: &Asked,
    ) -> Self {
        let wants = |key: &str| wanted.get(key) == Some(&json!(true));
        let watcher = session.new_subscriber();
        // From before the first subscription, so that nothing is missed.
        let news = watcher.notifications();
        let asked_for = wanted.get("resourceSubscriptions").and_then(Value::as_array);
        let asked_for = asked_for.into_iter().flatten().filter_map(Value::as_str);
        let subscribing: Vec<BoxFuture<'_, Option<String>>> = asked_for
            .take(MOST_SUBSCRIPTIONS)
            .map(|uri| {
                let cancel = asked.cancel.clone();
                let subscribed =
                    watcher.subscribe(uri, CallOptions { cancel, ..CallOptions::default() });
                async move { subscribed.await.is_ok().then(|| uri.to_owned()) }.boxed()
            })
            .collect();
        // Many at once: one server that is slow hardly holds up the others.
        let subscribed = stream::iter(subscribing).buffered(AT_ONCE);
        let uris = subscribed.filter_map(future::ready).collect().await;
        let (prompts, resources) = (wants("promptsListChanged"), wants("resourcesListChanged"));
        Self { prompts, resources, uris, news, _watcher: watcher }
    }

    /// Says what of it was accepted.
    pub(crate) fn accepted(&self, accepted: &mut Map<String, Value>) {
        if self.prompts {
            accepted.insert("promptsListChanged".to_owned(), json!(true));
        }
        if self.resources {
            accepted.insert("resourcesListChanged".to_owned(), json!(true));
        }
        if !self.uris.is_empty() {
            accepted.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
    }

    /// Tells the client until there is no more to tell.
    pub(crate) async fn tell(mut self, asked: &Asked) {
        while let Some(ServerNotification { method, params }) = self.news.next().await {
            let wanted = match method {
                RESOURCES_CHANGED => self.resources,
                PROMPTS_CHANGED => self.prompts,
                // Those of resources come only to who subscribed.
                _ => true,
            };
            if wanted {
                asked.link.notify(method, Some(marked(params, &asked.id)));
            }
        }
    }
}

/// The parameters with the id of the subscription that they belong to. They are a server's, so that
/// anything may stand in them.
fn marked(params: Option<Value>, id: &Value) -> Value {
    let mut params = match params {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let mut meta = match params.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    meta.insert(META_SUBSCRIPTION.to_owned(), id.clone());
    params.insert("_meta".to_owned(), Value::Object(meta));
    Value::Object(params)
}
