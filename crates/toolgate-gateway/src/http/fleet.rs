//! The other nodes of a fleet: sessions and parked requests that they have, and requests that go to them.
//!
//! A session and a parked request live on one node. The shared store says on which. Another node that gets a request
//! for it passes the request on, as long as that node lives and begins requests. After that it opens the session again,
//! from what its client said at the handshake. What a parked request has done is not known then, so it is refused.

use std::{
    collections::HashMap,
    fmt, io,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderValue, Method, Request, Uri, request::Parts},
    response::{IntoResponse as _, Response},
};
use futures::StreamExt as _;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{ClientConfig, ServerConfig, pki_types::ServerName},
};
use tokio_util::task::TaskTracker;
use toolgate_mcp::{JsonRpcNotification, JsonRpcRequest, methods};
use toolgate_store::{SharedStore, StoreError, TimedKind, TimedValue};

use super::{
    HttpState, NamespaceRoute, PeerConnection, RequestContext, ServedEndpoint,
    error::{HttpError, NOT_BEGUN},
    sessions::HttpSession,
    streams::{GeneralSink, SessionStreams},
};
use crate::{
    forwarded::{ForwardedServer, NodeHosts},
    service::Owner,
    session::{LegacySession, SessionOptions},
};
use axum::http::StatusCode;

/// What the nodes of a fleet share.
#[derive(Debug)]
pub struct FleetLink {
    /// The shared store.
    pub store: Arc<dyn SharedStore>,
    /// How nodes reach each other, if they can.
    pub peers: Option<FleetPeers>,
    /// Whose servers the other nodes may use, if they run once in the fleet.
    pub hosts: Option<Arc<dyn NodeHosts>>,
}

/// How nodes reach each other.
pub struct FleetPeers {
    /// For the node that connects. It must authenticate both ends.
    pub client: Arc<ClientConfig>,
    /// For the node that is connected to. It must authenticate both ends.
    pub server: Arc<ServerConfig>,
    /// Where this node listens for the others.
    pub listener: TcpListener,
}

/// What this process knows of the fleet while it serves.
#[derive(Debug)]
pub(crate) struct FleetState {
    store: Arc<dyn SharedStore>,
    connector: Option<Connector>,
    /// At which nodes sessions were found: while the database is away, their requests still go there.
    places: Mutex<HashMap<String, (String, Instant)>>,
    /// Held while a session is opened again, so that two requests do not open it twice.
    reopening: tokio::sync::Mutex<()>,
    hosts: Option<Arc<dyn NodeHosts>>,
    /// The servers that other nodes use here, by their paths.
    servers: Mutex<HashMap<String, Arc<ServedEndpoint>>>,
}

struct Connector(TlsConnector);

/// Where a session is.
pub(crate) enum SessionPlace {
    /// On this node, or nowhere.
    Here,
    /// At this URL.
    Elsewhere(String),
}

/// What became of a request that was passed on.
pub(crate) enum PassedOn {
    Answered(Response),
    /// Nobody listens at the other node any more, or it stops and has refused the request.
    NotBegun,
}

/// Says to the node that gets a request whether a person may decide something through its client. Only nodes are
/// asked: other connections do not have it.
const MAY_DECIDE: &str = "toolgate-may-decide";
/// The path of the servers that run once in a fleet. Their scope follows. Only nodes reach it.
pub const SERVERS_PATH: &str = "/node/servers/";
/// How long a connection to another node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The most sessions of other nodes whose places are remembered, and for how long: as tokens and choices.
const MAX_PLACES: usize = 10_000;
const PLACE_TIME: Duration = Duration::from_mins(5);
/// A session is stored again after this part of the time that it is kept.
const STORED_EVERY: u32 = 4;

impl FleetState {
    pub(crate) fn new(link: FleetLink) -> (Self, Option<(TcpListener, TlsAcceptor)>) {
        let FleetLink { store, peers, hosts } = link;
        let (connector, listening) = match peers {
            Some(FleetPeers { client, server, listener }) => (
                Some(Connector(TlsConnector::from(client))),
                Some((listener, TlsAcceptor::from(server))),
            ),
            None => (None, None),
        };
        let (reopening, servers) = (tokio::sync::Mutex::default(), Mutex::default());
        let places = Mutex::default();
        (Self { store, connector, places, reopening, hosts, servers }, listening)
    }

    /// Remembers where a session is.
    fn remember(&self, id: &str, owner: &Owner, url: &str) {
        let mut places = self.places.lock();
        if places.len() >= MAX_PLACES {
            places.retain(|_, (_, found)| found.elapsed() < PLACE_TIME);
            if places.len() >= MAX_PLACES {
                places.clear();
            }
        }
        places.insert(place_key(id, owner), (url.to_owned(), Instant::now()));
    }

    /// Where a session was a while ago.
    fn remembered(&self, id: &str, owner: &Owner) -> Option<String> {
        let places = self.places.lock();
        let (url, found) = places.get(&place_key(id, owner))?;
        (found.elapsed() < PLACE_TIME).then(|| url.clone())
    }

    /// The server that another node asks for: the path has its scope.
    pub(super) fn server_at(&self, path: &str) -> Option<Arc<ServedEndpoint>> {
        let scope = path.strip_prefix(SERVERS_PATH)?;
        let mut servers = self.servers.lock();
        if let Some(known) = servers.get(path) {
            return Some(Arc::clone(known));
        }
        let factory = Arc::new(ForwardedServer::find(self.hosts.as_ref()?, scope)?);
        let route = NamespaceRoute { path: path.to_owned(), factory };
        let endpoint = Arc::new(ServedEndpoint::new(route));
        servers.insert(path.to_owned(), Arc::clone(&endpoint));
        Some(endpoint)
    }

    /// Waits for the shared store on another thread.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn SharedStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, HttpError> {
        let store = Arc::clone(&self.store);
        let asked = tokio::task::spawn_blocking(move || work(&*store)).await;
        let failed = |why: String| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, why);
        asked.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }

    /// Stores where a session is, and what opens it again.
    async fn put(
        &self,
        kind: TimedKind,
        id: &str,
        owner: &Owner,
        params: Option<&Value>,
        keep: Duration,
    ) -> Result<(), HttpError> {
        let content = json!({ "node": self.store.node(), "params": params }).to_string();
        let value = TimedValue { owner: owner_key(owner), content, expires: until(keep) };
        let key = key(id);
        self.ask(move |store| store.timed_values().put(kind, &key, &value)).await
    }

    /// The node that has something, if it lives, and what else is stored of it.
    async fn find(
        &self,
        kind: TimedKind,
        id: &str,
        owner: &Owner,
    ) -> Result<Option<Found>, HttpError> {
        let (key, owner) = (key(id), owner_key(owner));
        self.ask(move |store| {
            let Some(content) = store.timed_values().get(kind, &key, &owner)? else {
                return Ok(None);
            };
            let content: Value = serde_json::from_str(&content).unwrap_or_default();
            let node = content.get("node").and_then(Value::as_str).unwrap_or_default();
            let is_own = node == store.node();
            let url = if is_own { None } else { store.node_url(node)? };
            Ok(Some(Found { url, is_own, params: content.get("params").cloned() }))
        })
        .await
    }

    /// Stores that a request waits here for its client.
    pub(crate) async fn parked(
        &self,
        state: &str,
        owner: &Owner,
        keep: Duration,
    ) -> Result<(), HttpError> {
        if self.connector.is_none() {
            return Ok(());
        }
        self.put(TimedKind::Parked, state, owner, None, keep).await
    }

    /// The URL of the living node where a request waits for its client.
    pub(crate) async fn parked_at(
        &self,
        state: &str,
        owner: &Owner,
    ) -> Result<Option<String>, HttpError> {
        if self.connector.is_none() {
            return Ok(None);
        }
        let found = self.find(TimedKind::Parked, state, owner).await?;
        Ok(found.and_then(|found| found.url).filter(|url| !url.is_empty()))
    }

    /// Stores a session that has begun.
    pub(crate) async fn session_began(
        &self,
        id: &str,
        owner: &Owner,
        params: Option<&Value>,
        keep: Duration,
    ) -> Result<(), HttpError> {
        self.put(TimedKind::Session, id, owner, params, keep).await
    }

    /// Forgets a session that its client has ended.
    pub(crate) async fn session_ended(&self, id: &str, owner: &Owner) {
        let (key, owner) = (key(id), owner_key(owner));
        // If this fails, it expires.
        let _ = self
            .ask(move |store| store.timed_values().remove(TimedKind::Session, &key, &owner))
            .await;
    }
}

struct Found {
    url: Option<String>,
    is_own: bool,
    params: Option<Value>,
}

impl RequestContext {
    /// Finds the session of a request: on this node, or on another that lives. A session whose node is dead is opened
    /// again here.
    pub(crate) async fn place_of_session(
        &self,
        fleet: &FleetState,
        id: &str,
    ) -> Result<SessionPlace, HttpError> {
        let sessions = &self.server.sessions;
        if let Ok(session) = sessions.get(id, &self.owner) {
            self.store_again(&session, id);
            return Ok(SessionPlace::Here);
        }
        let can_pass_on = fleet.connector.is_some() && !self.connection.is_node();
        let elsewhere = |found: &Found| {
            let url = found.url.clone().filter(|url| !url.is_empty());
            url.filter(|_| can_pass_on && !found.is_own)
        };
        let found = match fleet.find(TimedKind::Session, id, &self.owner).await {
            Ok(found) => found,
            Err(away) => {
                let known = fleet.remembered(id, &self.owner).filter(|_| can_pass_on);
                return known.map(SessionPlace::Elsewhere).ok_or(away);
            }
        };
        let Some(found) = found else {
            // The answer says that there is none.
            return Ok(SessionPlace::Here);
        };
        if let Some(url) = elsewhere(&found) {
            fleet.remember(id, &self.owner, &url);
            return Ok(SessionPlace::Elsewhere(url));
        }
        let _reopening = fleet.reopening.lock().await;
        if sessions.get(id, &self.owner).is_err() {
            self.reopen(fleet, id, found.params).await?;
        }
        Ok(SessionPlace::Here)
    }

    /// Opens a session here whose node does not begin requests any more.
    pub(crate) async fn take_over(&self, fleet: &FleetState, id: &str) -> Result<(), HttpError> {
        let _reopening = fleet.reopening.lock().await;
        if self.server.sessions.get(id, &self.owner).is_ok() {
            return Ok(());
        }
        match fleet.find(TimedKind::Session, id, &self.owner).await? {
            Some(found) => self.reopen(fleet, id, found.params).await,
            // The answer says that there is none.
            None => Ok(()),
        }
    }

    /// Opens a session again that another node had.
    async fn reopen(
        &self,
        fleet: &FleetState,
        id: &str,
        params: Option<Value>,
    ) -> Result<(), HttpError> {
        let (sessions, limits) = (&self.server.sessions, &self.server.limits);
        let reservation = sessions.reserve(&self.owner.caller)?;
        let streams = SessionStreams::new();
        let options = SessionOptions {
            caller: self.owner.caller.clone(),
            sink: Arc::new(GeneralSink(Arc::downgrade(&streams.general))),
            input_timeout: limits.input_timeout,
            max_in_flight: limits.in_flight,
        };
        let request = JsonRpcRequest {
            id: Value::Null,
            method: methods::INITIALIZE.to_owned(),
            params: params.clone(),
        };
        let opened = LegacySession::initialize(&*self.endpoint.factory, &request, options).await;
        let (session, _) =
            opened.map_err(|error| HttpError::with(StatusCode::BAD_GATEWAY, error))?;
        let initialized =
            JsonRpcNotification { method: methods::INITIALIZED.to_owned(), params: None };
        session.notification(initialized).await;
        fleet.session_began(id, &self.owner, params.as_ref(), limits.session_idle).await?;
        let session = HttpSession::new(self.owner.clone(), session, streams).opened_with(params);
        sessions.insert_as(id.to_owned(), session, reservation);
        Ok(())
    }

    /// Stores a session again now and then, so that it does not expire while it is used.
    fn store_again(&self, session: &Arc<HttpSession>, id: &str) {
        let keep = self.server.limits.session_idle;
        if !session.is_due(keep / STORED_EVERY) {
            return;
        }
        let (server, owner, id) = (Arc::clone(&self.server), self.owner.clone(), id.to_owned());
        let session = Arc::clone(session);
        tokio::spawn(async move {
            if let Some(fleet) = &server.fleet {
                // It is tried again later.
                let _ = fleet.session_began(&id, &owner, session.params.as_ref(), keep).await;
            }
        });
    }

    /// Passes a request on to another node, and its response back.
    pub(crate) async fn pass_on(
        &self,
        fleet: &FleetState,
        url: &str,
        parts: &Parts,
        body: Bytes,
    ) -> Result<PassedOn, HttpError> {
        let unreachable = |why: &dyn fmt::Display| {
            tracing::warn!("{url}, another node of the fleet, cannot be reached: {why}");
            unreachable()
        };
        let Some(connector) = &fleet.connector else {
            return Err(unreachable(&"it has no address"));
        };
        let may_decide = self.peer().may_decide().await;
        let connecting = connector.connect(url);
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if is_gone(&error) => return Ok(PassedOn::NotBegun),
            Ok(Err(error)) => return Err(unreachable(&error)),
            Err(late) => return Err(unreachable(&late)),
        };
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| unreachable(&error))?;
        tokio::spawn(async move {
            // Its end is seen at the response.
            let _ = connection.await;
        });
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder().method(parts.method.clone()).uri(path);
        if let Some(headers) = request.headers_mut() {
            *headers = parts.headers.clone();
            headers.remove(axum::http::header::CONTENT_LENGTH);
            headers.remove(axum::http::header::TRANSFER_ENCODING);
            headers
                .insert(MAY_DECIDE, HeaderValue::from_static(if may_decide { "1" } else { "0" }));
        }
        let request = request.body(Body::from(body)).map_err(|error| unreachable(&error))?;
        // From here on the other node may have begun.
        let response = sender.send_request(request).await.map_err(|error| {
            tracing::warn!("{url}, another node of the fleet, did not answer: {error}");
            let message = "the node that has this session ended during the request: whether the request had an \
                           effect is not known";
            HttpError::new(StatusCode::BAD_GATEWAY, message)
        })?;
        if response.headers().contains_key(NOT_BEGUN) {
            return Ok(PassedOn::NotBegun);
        }
        let response = response.map(Body::new);
        if parts.method != Method::POST {
            return Ok(PassedOn::Answered(response.into_response()));
        }
        // This node does not end before the client has all of it.
        let responding = self.server.responding.token();
        Ok(PassedOn::Answered(response.map(|body| {
            let chunks = body.into_data_stream();
            Body::from_stream(chunks.inspect(move |_| {
                let _ = &responding;
            }))
        })))
    }

    /// Takes the word of another node for the client of a request.
    pub(crate) fn believe_node(&self, parts: &Parts) {
        if self.connection.is_node() {
            let may_decide = parts.headers.get(MAY_DECIDE).is_some_and(|value| value == "1");
            self.connection.is_for_client(may_decide);
        }
    }
}

/// Whether a connection failed because the process at the other end has ended, or ends, whatever its lease says: nobody
/// listens, or nobody takes what the system has accepted.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof,
    };
    let kinds = [ConnectionRefused, ConnectionReset, ConnectionAborted, BrokenPipe, UnexpectedEof];
    kinds.contains(&error.kind())
}

/// The error for a request whose node does not answer, although it may live.
pub(super) fn unreachable() -> HttpError {
    let message = "the node that has this session cannot be reached; try again";
    HttpError::new(StatusCode::BAD_GATEWAY, message)
}

impl Connector {
    async fn connect(&self, url: &str) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let uri: Uri = url.parse().map_err(io::Error::other)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(443))).await?;
        let _ = stream.set_nodelay(true);
        // The key says who it is, not the name.
        let name = ServerName::try_from("toolgate").map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

/// Serves the other nodes, until the gateway stops.
pub(crate) async fn serve_nodes(
    server: Arc<HttpState>,
    (listener, acceptor): (TcpListener, TlsAcceptor),
    router: Router,
    connections: TaskTracker,
) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (server, acceptor, router) = (Arc::clone(&server), acceptor.clone(), router.clone());
        connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            let own = stream.local_addr().ok();
            match tokio::time::timeout(CONNECT_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let acceptance = server.new_connections.add(peer.ip());
                    let peer = PeerConnection::of_node(peer, own, acceptance);
                    super::serve_stream(&server, stream, peer, router).await;
                }
                // A node that looks whether this one is there says nothing.
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Ok(Err(error)) => tracing::warn!("{peer} is no node of this fleet: {error}"),
                Err(_) => {}
            }
        });
    }
}

/// Identifies the owner, with the rights of its credential.
fn owner_key(owner: &Owner) -> String {
    let text = format!("{}\n{}\n{:?}", owner.caller.as_str(), owner.path, owner.caller.facts());
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// A session of an owner: another one must not reach it.
fn place_key(id: &str, owner: &Owner) -> String {
    format!("{} {}", key(id), owner_key(owner))
}

/// Ids are secrets, so their hashes are stored.
fn key(id: &str) -> String {
    blake3::hash(id.as_bytes()).to_hex().to_string()
}

fn until(keep: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from((now + keep).as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connector")
    }
}

impl fmt::Debug for FleetPeers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FleetPeers")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}
