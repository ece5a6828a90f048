//! Extensions of the protocol: what clients and servers declare, views of MCP Apps, and methods that toolgate does not
//! know.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream::FuturesOrdered};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    mpsc, oneshot,
};
use toolgate_broker::{BrokerError, CallContext};
use toolgate_catalog::{ServerName, Tool, ToolId};
use toolgate_mcp::{
    JsonObject,
    client::Backoff,
    codes::{INVALID_PARAMS, METHOD_NOT_FOUND},
    extensions, meta, methods,
};
use toolgate_policy::CallPath;
use toolgate_upstream::{CallError, CallOptions, SubscriptionEvent};

use crate::{
    host::ToolHost,
    resources,
    session::{CallFailure, ToolSession},
};

/// The extensions that the client of a session declares.
#[derive(Debug, Default)]
pub(crate) struct ClientExtensions {
    declared: JsonObject,
    /// Whether the client shows views.
    shows_views: bool,
}

/// The servers whose views the client may show: it has read one, or called a tool that has one.
#[derive(Debug, Default)]
pub(crate) struct OpenViews(Mutex<BTreeSet<ServerName>>);

/// A notification of an extension that toolgate does not know.
#[derive(Debug, Clone)]
pub(crate) struct ExtensionEvent {
    server: ServerName,
    method: Arc<str>,
    params: Option<Value>,
}

/// Notifications of extensions that toolgate does not know, of all servers.
#[derive(Debug, Clone)]
pub(crate) struct ExtensionEvents(broadcast::Sender<ExtensionEvent>);

/// Such notifications, for one session.
#[derive(Debug)]
pub struct ExtensionNotifications {
    events: broadcast::Receiver<ExtensionEvent>,
    host: ToolHost,
    declared: BTreeSet<String>,
}

/// How many notifications wait for a slow client. Further ones are lost.
const QUEUED_EVENTS: usize = 256;
/// Keys of `_meta` that belong to the connection, or that only toolgate writes.
const OF_CONNECTION: [&str; 5] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::CALLER,
    meta::SERVER,
];
const SHOWN_CHARACTERS: usize = 128;
/// How long a client waits for the servers that acknowledge what it listens to.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(5);

impl Default for ExtensionEvents {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUED_EVENTS))
    }
}

impl ExtensionEvents {
    /// Passes a notification on, if its method is of no extension that toolgate knows.
    pub(crate) fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        if methods::is_of_unknown_extension(method) {
            let (server, params) = (server.clone(), params.cloned());
            // Nobody may listen.
            let _ = self.0.send(ExtensionEvent { server, method: method.into(), params });
        }
    }
}

impl ExtensionNotifications {
    /// Waits for the next notification for the session: its method and parameters. Returns `None` if there will be
    /// no more.
    pub async fn next(&mut self) -> Option<(Arc<str>, Option<Value>)> {
        loop {
            match self.events.recv().await {
                Ok(event) => {
                    let of_server = self.host.extensions_of(&event.server);
                    let is_shared =
                        extensions::unknown(&of_server).any(|name| self.declared.contains(name));
                    if is_shared && !self.host.is_off(&event.server) {
                        return Some((event.method, event.params));
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl OpenViews {
    /// Notes that the client may show a view of a server.
    pub(crate) fn opened(&self, server: &ServerName) {
        let mut servers = self.0.lock();
        if !servers.contains(server) {
            servers.insert(server.clone());
        }
    }
}

impl ToolHost {
    /// The extensions that a server declares: over its connection, or as the cache remembers them.
    pub(crate) fn extensions_of(&self, server: &ServerName) -> Arc<JsonObject> {
        self.inner.live_catalog.extensions(server)
    }

    /// Whether there are skills, of folders or of servers.
    pub fn has_skills(&self) -> bool {
        !self.settings().directory.skills.skills.is_empty() || self.has_server_skills()
    }

    /// Whether some server has skills.
    pub(crate) fn has_server_skills(&self) -> bool {
        self.inner.live_catalog.has_extension(extensions::SKILLS)
    }

    /// The extensions that some server declares, without those that end at toolgate. If several servers declare one,
    /// its settings are those of all of them; for a setting that several have, the first server counts.
    pub fn server_extensions(&self) -> JsonObject {
        let servers: Vec<ServerName> = self.names();
        let mut all = JsonObject::new();
        for server in servers.iter().filter(|server| !self.is_off(server)) {
            extensions::merge(&mut all, &self.extensions_of(server));
        }
        all.retain(|name, _| !extensions::is_ended_here(name));
        all
    }

    fn names(&self) -> Vec<ServerName> {
        self.catalog().read().servers().map(|entry| entry.name.clone()).collect()
    }
}

impl ToolSession {
    /// Sets the extensions that the client declares in its capabilities. Servers that connect later learn of them.
    pub fn set_client_capabilities(&mut self, capabilities: &JsonObject) {
        let declared = extensions::declared(capabilities);
        let views = declared.get(extensions::UI);
        let shows_views = views.is_some_and(|settings| {
            let types = settings.get("mimeTypes").and_then(Value::as_array);
            types.is_none_or(|types| types.contains(&json!(extensions::UI_MIME_TYPE)))
        });
        let mut passed = declared.clone();
        passed.retain(|name, _| !extensions::is_ended_here(name));
        self.host().servers().declare_extensions(&passed);
        self.extensions = ClientExtensions { declared, shows_views };
    }

    /// Whether the client declares an extension.
    pub fn declares_extension(&self, name: &str) -> bool {
        self.extensions.declared.contains_key(name)
    }

    /// Whether the client shows views.
    pub(crate) fn shows_views(&self) -> bool {
        self.extensions.shows_views
    }

    /// Whether a tool with a view is listed in every mode: `call_tool` would hide the view.
    pub(crate) fn lists_for_view(&self, tool: &Tool) -> bool {
        let view = tool.definition.view();
        self.shows_views()
            && (view.has_view || view.only_for_views)
            && self.sees(&tool.id.server)
            && self.opens(tool, CallPath::Direct)
    }

    /// The tool that a view calls by its server's own name: the view knows no other. Views of several servers may have
    /// such a tool.
    pub(crate) fn tool_of_view(&self, name: &str) -> Result<Option<Tool>, String> {
        if !self.shows_views() {
            return Ok(None);
        }
        let servers: Vec<ServerName> = self.views.0.lock().iter().cloned().collect();
        let catalog = self.host().catalog().read();
        let ids = servers.into_iter().map(|server| ToolId { server, tool: name.into() });
        let tools: Vec<Tool> = ids.filter_map(|id| catalog.by_id(&id).cloned()).collect();
        match tools.as_slice() {
            [] => Ok(None),
            [tool] => Ok(Some(tool.clone())),
            several => {
                let names: Vec<&str> = several.iter().map(|tool| tool.name.as_str()).collect();
                Err(format!(
                    "the views of several servers have this tool: call {}",
                    names.join(" or ")
                ))
            }
        }
    }

    /// The notifications for the client of extensions that toolgate does not know, from now on.
    pub fn extension_notifications(&self) -> ExtensionNotifications {
        ExtensionNotifications {
            events: self.host().inner.extension_events.0.subscribe(),
            host: self.host().clone(),
            declared: self.extensions.declared.keys().cloned().collect(),
        }
    }

    /// Answers a request of a method that toolgate does not know: by the server that declares its extension.
    /// `toolgate/server` in `_meta` names one of several.
    pub async fn extension_request(
        &self,
        method: &str,
        params: Map<String, Value>,
        mut options: CallOptions,
    ) -> Result<Value, CallFailure> {
        self.begin().await;
        self.host().recalled().await;
        let named = options.meta.as_mut().and_then(|all| all.remove(meta::SERVER));
        let (owners, is_certain) = self.extension_owners(method);
        let refuse = |code, message| CallFailure::Refused { code, message, data: None };
        let server = match (named.as_ref().and_then(Value::as_str), owners.as_slice()) {
            (_, []) => {
                let message =
                    format!("{} is not supported", crate::one_line(method, SHOWN_CHARACTERS));
                return Err(refuse(METHOD_NOT_FOUND, message));
            }
            (Some(name), owners) => owners.iter().find(|owner| owner.as_str() == name),
            (None, [server]) => Some(server),
            (None, _) => None,
        };
        let Some(server) = server else {
            let owners: Vec<&str> = owners.iter().map(ServerName::as_str).collect();
            let key = meta::SERVER;
            let message = format!(
                "several servers may answer this: set `{key}` in `_meta` to one of {}",
                owners.join(", ")
            );
            let code = if is_certain { INVALID_PARAMS } else { METHOD_NOT_FOUND };
            return Err(refuse(code, message));
        };
        let context = CallContext::direct(self.context());
        let sent = self
            .host()
            .broker()
            .request(server, method, Value::Object(params), &context, options)
            .await;
        sent.map_err(|error| resources::failure(server, error))
    }

    /// Listens for what only extensions know, at the modern servers that have an extension which the client declares and
    /// toolgate does not know. `params` are those of the client without what toolgate answers itself. Returns what the
    /// servers have accepted. `options` are those of each request. Ends when their `cancel` does.
    pub async fn listen_for_extensions(
        self: &Arc<Self>,
        params: JsonObject,
        options: &CallOptions,
    ) -> (JsonObject, mpsc::Receiver<SubscriptionEvent>) {
        let (notifications, passed_on) = mpsc::channel(QUEUED_EVENTS);
        let mut accepted = JsonObject::new();
        if params.is_empty() {
            return (accepted, passed_on);
        }
        self.begin().await;
        self.host().recalled().await;
        let servers = self.servers_with_shared_extensions().into_iter().map(|(server, _)| server);
        let mut acknowledging: FuturesOrdered<_> = servers
            .map(|server| {
                let (acknowledged, acknowledgement) = oneshot::channel();
                let listening = Arc::clone(self).listen_at(
                    server,
                    params.clone(),
                    options.clone(),
                    (acknowledged, notifications.clone()),
                );
                tokio::spawn(options.cancel.clone().run_until_cancelled_owned(listening));
                tokio::time::timeout(ACKNOWLEDGE_TIMEOUT, acknowledgement)
            })
            .collect();
        while let Some(acknowledged) = acknowledging.next().await {
            if let Ok(Ok(of_server)) = acknowledged {
                extensions::merge(&mut accepted, &of_server);
            }
        }
        (accepted, passed_on)
    }

    /// Listens at one server, again after each connection that ended.
    async fn listen_at(
        self: Arc<Self>,
        server: ServerName,
        params: JsonObject,
        mut options: CallOptions,
        (acknowledged, notifications): (
            oneshot::Sender<JsonObject>,
            mpsc::Sender<SubscriptionEvent>,
        ),
    ) {
        let mut acknowledged = Some(acknowledged);
        let mut backoff = Backoff::default();
        loop {
            backoff.connected(Instant::now());
            let (subscription, mut events) = mpsc::channel(QUEUED_EVENTS);
            options.subscription = Some(subscription);
            let context = CallContext::direct(self.context());
            let broker = self.host().broker();
            let params = Value::Object(params.clone());
            let listening =
                broker.request(&server, methods::LISTEN, params, &context, options.clone());
            options.subscription = None;
            let passing_on = async {
                while let Some(event) = events.recv().await {
                    if event.method != methods::LISTEN_ACKNOWLEDGED {
                        // A slow client loses notifications.
                        let _ = notifications.try_send(event);
                    } else if let Some(acknowledged) = acknowledged.take() {
                        let accepted = event.params.and_then(|mut params| {
                            Some(params.get_mut("notifications")?.as_object_mut()?.clone())
                        });
                        let _ = acknowledged.send(accepted.unwrap_or_default());
                    }
                }
            };
            let (ended, ()) = tokio::join!(listening, passing_on);
            if let Err(error) = ended
                && !is_lost(&error)
            {
                tracing::debug!(%server, %error, "the server is not listened to");
                return;
            }
            tokio::time::sleep(backoff.next(Instant::now())).await;
        }
    }

    /// Whether a server may understand a method that toolgate does not know.
    pub fn has_extension_method(&self, method: &str) -> bool {
        !self.extension_owners(method).0.is_empty()
    }

    /// Passes a notification of the client on to the servers that declare its extension, if the policy allows it.
    pub async fn extension_notification(&self, method: &str, params: Option<Value>) {
        self.begin().await;
        let mut params = params;
        if let Some(Value::Object(all)) = params.as_mut().and_then(|params| params.get_mut("_meta"))
        {
            all.retain(|key, _| !OF_CONNECTION.contains(&key.as_str()));
        }
        for server in self.extension_owners(method).0 {
            let context = CallContext::direct(self.context());
            let sent = self.host().broker().notify(&server, method, params.clone(), &context).await;
            if let Err(error) = sent {
                tracing::debug!(%server, %error, "a notification was not passed on");
            }
        }
    }

    /// The servers that may understand a method: those that declare an extension which toolgate does not know and the
    /// client declares, and of these the ones whose extension is named like the method, if there are any. Only then is it
    /// certain that the method exists.
    fn extension_owners(&self, method: &str) -> (Vec<ServerName>, bool) {
        if !methods::is_of_unknown_extension(method) {
            return (Vec::new(), false);
        }
        let mut owners = Vec::new();
        let mut named = Vec::new();
        for (server, shared) in self.servers_with_shared_extensions() {
            if shared.iter().any(|name| is_named_like(name, method)) {
                named.push(server.clone());
            }
            owners.push(server);
        }
        if named.is_empty() { (owners, false) } else { (named, true) }
    }

    /// The servers that declare extensions which toolgate does not know and the client declares, with these extensions.
    fn servers_with_shared_extensions(&self) -> Vec<(ServerName, Vec<String>)> {
        let host = self.host();
        let servers = host.names().into_iter();
        let servers = servers.filter(|server| self.sees(server) && !host.is_off(server));
        let shared = servers.map(|server| {
            let declared = host.extensions_of(&server);
            let shared = extensions::unknown(&declared);
            let shared = shared.filter(|name| self.declares_extension(name)).cloned().collect();
            (server, shared)
        });
        shared.filter(|(_, shared): &(_, Vec<String>)| !shared.is_empty()).collect()
    }
}

/// Whether the connection to the server ended.
fn is_lost(error: &BrokerError) -> bool {
    let BrokerError::Call(error) = error else { return false };
    matches!(**error, CallError::Stopped { .. } | CallError::Transport { .. })
}

/// Whether an extension, such as `org.example/events`, is named like a method, such as `events/list`.
fn is_named_like(extension: &str, method: &str) -> bool {
    let name = extension.rsplit('/').next().unwrap_or_default();
    name == methods::first_part(method) || method.starts_with(&format!("{extension}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_named_like_their_methods() {
        assert!(is_named_like("io.modelcontextprotocol/events", "events/list"));
        assert!(is_named_like("org.example/events", "notifications/events/occurred"));
        assert!(!is_named_like("org.example/events", "other/list"));
    }
}
