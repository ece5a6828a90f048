//! The clients of a host, for what servers say and ask outside of calls: log messages and roots.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_broker::Broker;
use toolgate_catalog::ServerName;
use toolgate_mcp::{Era, ErrorObject, LogLevel, codes, methods};
use toolgate_upstream::{
    CallOptions, ClientKey, Handshake, InputHandler, InputRequest, StateKind, can_answer,
};

/// The clients that can be asked outside of calls. Only clients of the legacy era can.
#[derive(Debug, Default)]
pub(crate) struct ConnectedClients {
    next: AtomicU64,
    table: Mutex<BTreeMap<u64, ConnectedClient>>,
    /// What other nodes want to hear of servers that run here for all nodes.
    nodes: Mutex<BTreeMap<u64, (ServerName, LogLevel)>>,
    /// The least severe level that any client wants.
    wanted: watch::Sender<Option<LogLevel>>,
}

/// What another node wants to hear of a server. It ends on drop.
#[derive(Debug)]
pub(super) struct NodeLevel {
    clients: Arc<ConnectedClients>,
    broker: Weak<Broker>,
    id: u64,
}

#[derive(Debug)]
struct ConnectedClient {
    caller: Arc<str>,
    handler: Arc<dyn InputHandler>,
    /// What `logging/setLevel` said.
    level: Option<LogLevel>,
}

/// A client in the table. It is removed on drop.
#[derive(Debug)]
pub(crate) struct ClientEntry {
    clients: Arc<ConnectedClients>,
    broker: Weak<Broker>,
    id: u64,
    has_roots: bool,
}

/// How long clients may take to list their roots, and how long the others may take after the first one. A client that
/// is silent must not delay a server for long.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
const OTHER_ROOTS_TIMEOUT: Duration = Duration::from_secs(1);
/// The most roots that a server gets.
const MAX_ROOTS: usize = 1_000;
/// How long a server may take to set its level.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);

impl ConnectedClients {
    pub(crate) fn add(
        self: &Arc<Self>,
        caller: Arc<str>,
        handler: Arc<dyn InputHandler>,
        broker: &Arc<Broker>,
    ) -> ClientEntry {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let has_roots = can_answer(handler.capabilities(), &roots_request());
        self.table.lock().insert(id, ConnectedClient { caller, handler, level: None });
        let entry = ClientEntry {
            clients: Arc::clone(self),
            broker: Arc::downgrade(broker),
            id,
            has_roots,
        };
        entry.roots_changed();
        entry
    }

    /// The roots of all clients, for a server that asks outside of a call. A server serves all clients, so it
    /// gets the roots of all of them, if they have one caller. Nobody's folders are shown to the servers of
    /// another caller.
    pub(crate) fn roots(&self) -> BoxFuture<'static, Result<Value, ErrorObject>> {
        let request = roots_request();
        let asked: Vec<(Arc<str>, Arc<dyn InputHandler>)> = self
            .table
            .lock()
            .values()
            .filter(|client| can_answer(client.handler.capabilities(), &request))
            .map(|client| (Arc::clone(&client.caller), Arc::clone(&client.handler)))
            .collect();
        if asked.iter().any(|(caller, _)| *caller != asked[0].0) {
            let message = "clients of several callers are connected, so that it is not known whose \
                           roots are meant; ask during a call";
            let error = ErrorObject::new(codes::INVALID_REQUEST, message, None);
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(async move {
            let answers = asked.iter().enumerate().map(|(client, (_, handler))| {
                handler.answer(request.clone()).map(move |answer| (client, answer))
            });
            let mut open: FuturesUnordered<_> = answers.collect();
            let (mut answers, mut limit) = (BTreeMap::new(), ROOTS_TIMEOUT);
            while let Ok(Some((client, answer))) = tokio::time::timeout(limit, open.next()).await {
                answers.insert(client, answer);
                limit = OTHER_ROOTS_TIMEOUT;
            }
            let (mut roots, mut seen) = (Vec::new(), HashSet::new());
            for answer in answers.into_values().flatten() {
                for root in answer.get("roots").and_then(Value::as_array).into_iter().flatten() {
                    let uri = root.get("uri").and_then(Value::as_str).unwrap_or_default();
                    if roots.len() < MAX_ROOTS && seen.insert(uri.to_owned()) {
                        roots.push(root.clone());
                    }
                }
            }
            Ok(json!({ "roots": roots }))
        })
    }

    /// Tells a client that what it was asked to do at a URL is done.
    pub(crate) fn elicitation_completed(&self, client: &ClientKey, params: Value) {
        let is_client = |handler: &dyn InputHandler| {
            handler.client().is_some_and(|connected| connected.key() == client)
        };
        let table = self.table.lock();
        let handler = table.values().map(|client| &client.handler).find(|it| is_client(&***it));
        let handler = handler.cloned();
        drop(table);
        if let Some(handler) = handler {
            handler.notify(methods::ELICITATION_COMPLETE, params);
        }
    }

    /// Sets the level of a server: the least severe that any client wants, because they share the server.
    pub(crate) async fn set_level(
        &self,
        broker: &Arc<Broker>,
        server: &ServerName,
        handshake: &Handshake,
    ) {
        let Some(level) = self.level_for(server) else { return };
        if handshake.era != Era::Legacy || !handshake.capabilities.contains_key("logging") {
            return;
        }
        let (params, options) = (json!({ "level": level.as_str() }), CallOptions::default());
        let method = methods::SET_LOG_LEVEL;
        let setting = broker.request_unjudged(server, method, Some(params), options);
        match tokio::time::timeout(SET_LEVEL_TIMEOUT, setting).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%server, %error, "the log level was not set"),
            Err(_) => tracing::debug!(%server, "the log level was not set in time"),
        }
    }
}

impl ConnectedClients {
    /// Sets the level of all connected servers.
    async fn set_levels(&self, broker: &Arc<Broker>) {
        let ready = broker.servers().states().into_iter().filter_map(|(server, state)| {
            let handshake = state.handshake.filter(|_| state.kind == StateKind::Ready)?;
            Some((server, handshake))
        });
        let ready: Vec<(ServerName, Handshake)> = ready.collect();
        let setting = ready.iter().map(|(server, said)| self.set_level(broker, server, said));
        join_all(setting).await;
    }

    /// The least severe level that any client wants.
    fn wanted_level(&self) -> Option<LogLevel> {
        self.table.lock().values().filter_map(|client| client.level).min()
    }

    /// The same, as it changes. What other nodes want does not count: they would want it because of each other.
    pub(super) fn wanted_levels(&self) -> watch::Receiver<Option<LogLevel>> {
        self.wanted.subscribe()
    }

    fn note_wanted_level(&self) {
        let level = self.wanted_level();
        self.wanted.send_if_modified(|wanted| std::mem::replace(wanted, level) != level);
    }

    /// The least severe level that any client of a server wants, at whichever node it is.
    fn level_for(&self, server: &ServerName) -> Option<LogLevel> {
        let nodes = self.nodes.lock();
        let elsewhere = nodes.values().filter(|(wanted, _)| wanted == server).map(|(_, it)| *it);
        elsewhere.chain(self.wanted_level()).min()
    }

    /// Notes what another node wants to hear of a server, and tells the server.
    pub(super) async fn add_node(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        server: &ServerName,
        level: LogLevel,
    ) -> NodeLevel {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.nodes.lock().insert(id, (server.clone(), level));
        let wanted = NodeLevel { clients: Arc::clone(self), broker: Arc::downgrade(broker), id };
        self.set_levels(broker).await;
        wanted
    }
}

impl Drop for NodeLevel {
    fn drop(&mut self) {
        self.clients.nodes.lock().remove(&self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(broker) = self.broker.upgrade()
        {
            let clients = Arc::clone(&self.clients);
            runtime.spawn(async move { clients.set_levels(&broker).await });
        }
    }
}

impl ClientEntry {
    /// Notes the level that the client wants, and tells the connected servers.
    pub(crate) async fn set_level(&self, level: LogLevel) {
        if let Some(client) = self.clients.table.lock().get_mut(&self.id) {
            client.level = Some(level);
        }
        self.clients.note_wanted_level();
        if let Some(broker) = self.broker.upgrade() {
            self.clients.set_levels(&broker).await;
        }
    }

    /// Tells the servers that the roots of clients changed.
    pub(crate) fn roots_changed(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Some(broker) = self.broker.upgrade().filter(|_| self.has_roots) else { return };
        runtime.spawn(async move { broker.servers().roots_changed().await });
    }
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        let before = self.clients.wanted_level();
        self.clients.table.lock().remove(&self.id);
        self.clients.note_wanted_level();
        self.roots_changed();
        // What only this client wanted to hear is not sent any more.
        if self.clients.wanted_level() != before
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(broker) = self.broker.upgrade()
        {
            let clients = Arc::clone(&self.clients);
            runtime.spawn(async move { clients.set_levels(&broker).await });
        }
    }
}

fn roots_request() -> InputRequest {
    InputRequest { method: methods::ROOTS_LIST.to_owned(), params: None }
}

#[cfg(test)]
mod tests {
    use toolgate_mcp::JsonObject;

    use super::*;

    /// A client with these roots. It is silent if one of them says so.
    #[derive(Debug)]
    struct Folders(JsonObject, Vec<&'static str>);

    impl InputHandler for Folders {
        fn capabilities(&self) -> &JsonObject {
            &self.0
        }

        fn answer(&self, _: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            if self.1.contains(&"silent") {
                return Box::pin(std::future::pending());
            }
            let roots: Vec<Value> =
                self.1.iter().map(|uri| json!({ "uri": uri, "odd": 1 })).collect();
            Box::pin(std::future::ready(Ok(json!({ "roots": roots }))))
        }
    }

    fn clients(all: &[(&str, &[&'static str])]) -> ConnectedClients {
        let clients = ConnectedClients::default();
        for (id, (caller, roots)) in all.iter().enumerate() {
            let mut capabilities = JsonObject::new();
            if !roots.is_empty() {
                capabilities.insert("roots".to_owned(), json!({}));
            }
            let handler = Arc::new(Folders(capabilities, roots.to_vec()));
            let client = ConnectedClient { caller: (*caller).into(), handler, level: None };
            clients.table.lock().insert(id as u64, client);
        }
        clients
    }

    #[tokio::test]
    async fn a_server_gets_the_roots_of_all_clients_of_one_caller() {
        let all = [("ada", &["x:1", "x:2"][..]), ("ada", &["x:2", "x:3"]), ("bob", &[])];
        let known = clients(&all).roots().await.unwrap();
        let uris: Vec<&str> = known["roots"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|root| root["uri"].as_str())
            .collect();
        assert_eq!(uris, ["x:1", "x:2", "x:3"]);
        assert_eq!(known["roots"][0]["odd"], 1);
        assert_eq!(clients(&[]).roots().await.unwrap(), json!({ "roots": [] }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_delays_the_roots_of_others_a_second() {
        let started = tokio::time::Instant::now();
        let all = [("ada", &["silent"][..]), ("ada", &["x:1"]), ("ada", &["x:2"])];
        let known = clients(&all).roots().await.unwrap();
        assert_eq!(known["roots"].as_array().unwrap().len(), 2);
        assert_eq!(started.elapsed(), OTHER_ROOTS_TIMEOUT);
        assert_eq!(clients(&[("ada", &["silent"])]).roots().await.unwrap(), json!({ "roots": [] }));
    }

    #[tokio::test]
    async fn the_folders_of_one_caller_are_not_shown_for_another() {
        let error = clients(&[("ada", &["x:1"]), ("bob", &["x:2"])]).roots().await.unwrap_err();
        assert_eq!(error.code, codes::INVALID_REQUEST);
    }
}
