//! What servers tell of resources and prompts, on its way to a client.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, Value, json};
use toolgate_host::{News, Notification, Session, Watcher};
use toolgate_upstream::CallOptions;

use crate::{era::META_SUBSCRIPTION, face::Asked, link::Link};

/// What a client of the modern era listens to, beside its tools.
#[derive(Debug)]
pub(crate) struct Listening {
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    news: News,
    /// What it subscribed to ends with it.
    _watcher: Watcher,
}

const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";

/// Tells a client of the legacy era until its session is gone.
pub(crate) async fn forward(mut news: News, outlet: Link) {
    while let Some(Notification { method, params }) = news.next().await {
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
        let watcher = session.new_watcher();
        // From before the first subscription, so that nothing is missed.
        let news = watcher.news();
        let asked_for = wanted.get("resourceSubscriptions").and_then(Value::as_array);
        let subscribing = asked_for.into_iter().flatten().filter_map(Value::as_str).map(|uri| {
            let options = CallOptions { cancel: asked.cancel.clone(), ..CallOptions::default() };
            let subscribed = watcher.subscribe(uri, options);
            async move { subscribed.await.is_ok().then(|| uri.to_owned()) }
        });
        // All at once: one server that is slow holds up nobody but itself.
        let uris = join_all(subscribing).await.into_iter().flatten().collect();
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
        while let Some(Notification { method, params }) = self.news.next().await {
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
