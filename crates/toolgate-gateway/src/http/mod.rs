//! The Streamable HTTP transport: both eras at one endpoint.
//!
//! Connections are accepted here and not by `axum::serve`, which limits neither the size, number and
//! arrival time of headers nor the time that a client may read nothing.

mod error;
mod fleet;
mod framing;
mod headers;
mod legacy;
mod logins;
mod modern;
mod new_connections;
mod origin;
mod own_logins;
mod peer;
mod sessions;
mod settings;
mod streams;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request as HttpRequest, State},
    http::{Method, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
    routing::{any, get},
};
use futures::{Stream, StreamExt as _, future::join_all};
use hyper::body::Body as _;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolgate_mcp::{ErrorObject, JsonRpcInput, JsonRpcMessage, MalformedMessage, codes, nesting};
use toolgate_upstream::{CALLBACK, LOGIN_PATH, PendingLogins};
use url::Url;

use self::{
    fleet::{FleetState, PassedOn, SessionPlace},
    framing::CheckedStream,
    headers::SESSION_ID,
    modern::ModernClients,
    new_connections::NewConnections,
    origin::OriginPolicy,
    peer::PeerConnection,
    sessions::SessionTable,
};
use crate::{
    access::{AccessControl, AccessPass, WELL_KNOWN},
    era::Era,
    modern::ParkedRequests,
    service::{AuthenticatedClient, Owner, ServiceFactory},
};

pub use self::fleet::{FleetLink, FleetPeers, SERVERS_PATH};
pub use self::own_logins::OwnLogins;
pub use self::peer::BrowserPeer;
pub use self::settings::{HttpLimits, HttpSettings, NamespaceRoute, RouteTable};
pub(crate) use self::{error::HttpError, peer::RequestPeer};

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct HttpState {
    origin_policy: OriginPolicy,
    access: AccessControl,
    /// The logins of callers that wait for a browser.
    logins: PendingLogins,
    own_logins: Option<Arc<dyn OwnLogins>>,
    endpoints: RouteTable,
    limits: HttpLimits,
    new_connections: Arc<NewConnections>,
    sessions: Arc<SessionTable>,
    parked: ParkedRequests,
    pub(crate) fleet: Option<FleetState>,
    /// The modern requests in progress.
    responding: TaskTracker,
    /// How many POSTs have begun and have no response yet.
    handling: AtomicUsize,
    /// Whether POSTs that begin now are refused, because the server ends.
    is_closing: AtomicBool,
    stop: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct ServedEndpoint {
    path: Arc<str>,
    factory: Arc<dyn ServiceFactory>,
    clients: ModernClients,
}

impl ServedEndpoint {
    fn new(route: NamespaceRoute) -> Self {
        let NamespaceRoute { path, factory } = route;
        Self { path: path.into(), factory, clients: ModernClients::default() }
    }
}

/// The endpoint and the caller of an HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    server: Arc<HttpState>,
    endpoint: Arc<ServedEndpoint>,
    owner: Owner,
    pass: AccessPass,
    connection: Arc<PeerConnection>,
}

/// The caller of requests of other nodes to servers that run here for all nodes. No token has this identity.
const NODE: &str = "node";
/// A form has one token.
const MAX_FORM_BYTES: usize = 32 * 1024;
/// The interval at which expired sessions and requests are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(5);
/// How long connections may take to end when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The part of the time for requests in progress in which new ones are still accepted.
const NOTICE_PART: u32 = 5;
/// Between two looks whether requests are in progress.
const SETTLED_PAUSE: Duration = Duration::from_millis(20);

/// Serves clients on a listener until `stop` is cancelled. Then requests in progress get a response,
/// streams end and sessions are closed.
pub async fn serve_http(
    listener: TcpListener,
    settings: HttpSettings,
    mut stop: CancellationToken,
) {
    let address = listener.local_addr().ok();
    let HttpSettings {
        namespaces, limits, access, logins, fleet, drain, pages, own_logins, ..
    } = settings;
    let HttpSettings { mut allowed_hosts, mut allowed_origins, .. } = settings;
    let (fleet, nodes) = fleet.map(FleetState::new).unzip();
    // Requests in progress end later than the acceptance of new ones.
    let asked_to_stop = std::mem::replace(&mut stop, CancellationToken::new());
    allowed_hosts.extend(access.public_host().map(str::to_owned));
    if let Some(pages) = logins.pages() {
        allowed_hosts.extend(authority(&pages));
        allowed_origins.push(pages.origin().ascii_serialization());
    }
    let server = Arc::new(HttpState {
        origin_policy: OriginPolicy {
            port: address.map_or(0, |address| address.port()),
            is_public: address.is_some_and(|address| !address.ip().is_loopback()),
            allowed_hosts,
            allowed_origins,
        },
        access,
        logins,
        own_logins,
        endpoints: namespaces,
        new_connections: NewConnections::new(limits.new_connections, limits.new_connection_timeout),
        sessions: SessionTable::new(
            limits.sessions,
            limits.sessions_per_caller,
            limits.session_idle,
        ),
        parked: ParkedRequests::new(limits.parked, limits.in_flight, limits.input_timeout),
        fleet,
        responding: TaskTracker::new(),
        handling: AtomicUsize::new(0),
        is_closing: AtomicBool::new(false),
        limits,
        stop,
    });
    let router = pages.map_or_else(Router::new, |pages| pages.with_state(()));
    let router = router
        .route("/health", any(health))
        .route(WELL_KNOWN, any(describe_resource))
        .route(&format!("{WELL_KNOWN}/{{*rest}}"), any(describe_resource))
        .route(&format!("{LOGIN_PATH}/{CALLBACK}"), any(logins::callback))
        .route(
            LOGIN_PATH,
            get(own_logins::open)
                .post(own_logins::change)
                .layer(DefaultBodyLimit::max(MAX_FORM_BYTES)),
        )
        .route(
            &format!("{LOGIN_PATH}/{{id}}"),
            any(logins::open).post(logins::show).layer(DefaultBodyLimit::max(MAX_FORM_BYTES)),
        )
        .fallback(handle)
        .layer(middleware::from_fn_with_state(Arc::clone(&server), check))
        .with_state(Arc::clone(&server));
    let connections = TaskTracker::new();
    let serving_nodes = tokio::spawn({
        let (server, router, connections) =
            (Arc::clone(&server), router.clone(), connections.clone());
        async move {
            if let Some(nodes) = nodes.flatten() {
                fleet::serve_nodes(server, nodes, router, connections).await;
            }
        }
    });
    let stopping = async {
        asked_to_stop.cancelled().await;
        // From now on the health check says so. A balancer still sends requests until it has asked.
        server.responding.close();
        tokio::time::sleep(drain / NOTICE_PART).await;
    };
    tokio::select! {
        () = accept(&server, &listener, router, &connections) => {}
        () = clean_up(&server) => {}
        () = stopping => {}
    }
    drop(listener);
    // Other nodes still pass requests on. One that begins now is refused, and one that began before is waited for: none
    // is cancelled in between. Answers to questions of requests in progress are accepted.
    server.is_closing.store(true, Ordering::SeqCst);
    let _ = tokio::time::timeout(drain, server.settled()).await;
    serving_nodes.abort();
    server.stop.cancel();
    tokio::join!(server.sessions.end(), async {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, server.responding.wait()).await;
    });
    join_all(server.endpoints.all().iter().map(|endpoint| endpoint.clients.end())).await;
    connections.close();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.wait()).await;
}

async fn accept(
    server: &Arc<HttpState>,
    listener: &TcpListener,
    router: Router,
    connections: &TaskTracker,
) {
    let capacity = Arc::new(Semaphore::new(server.limits.connections));
    loop {
        // At the limit, further connections wait in the queue of the operating system.
        let Ok(permit) = Arc::clone(&capacity).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (server, router) = (Arc::clone(server), router.clone());
                connections.spawn(async move {
                    serve_connection(&server, stream, peer, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Usually the process has too many open files, and some are closed soon.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(server: &HttpState, stream: TcpStream, peer: SocketAddr, router: Router) {
    let _ = stream.set_nodelay(true);
    let acceptance = server.new_connections.add(peer.ip());
    let peer = PeerConnection::new(peer, stream.local_addr().ok(), acceptance);
    serve_stream(server, stream, peer, router).await;
}

/// Answers the requests of a connection.
async fn serve_stream(
    server: &HttpState,
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    peer: Arc<PeerConnection>,
    router: Router,
) {
    let router = router.layer(axum::Extension(Arc::clone(&peer)));
    let limits = &server.limits;
    let mut stream = TimeoutStream::new(stream);
    // A client that does not read its response must not hold a connection for ever.
    stream.set_write_timeout(Some(limits.io_timeout));
    let stream =
        CheckedStream::new(Box::pin(stream), limits.body_bytes, Arc::clone(&peer.has_large_chunk));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.io_timeout)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        // What has arrived is read first.
        biased;
        outcome = connection.as_mut() => outcome,
        () = peer.acceptance.overdue() => return,
        () = server.stop.cancelled() => {
            // A connection on which nothing was read yet would be closed. Another node opens one for each request and cannot
            // tell whether the request was read, so that it is answered.
            if !peer.is_node() {
                connection.as_mut().graceful_shutdown();
            }
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn clean_up(server: &HttpState) {
    let limits = &server.limits;
    let interval = CLEANUP_INTERVAL.min(limits.session_idle).min(limits.input_timeout);
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        server.sessions.remove_idle();
        server.parked.remove_expired();
        for endpoint in server.endpoints.all() {
            endpoint.clients.remove_idle(limits.session_idle);
        }
    }
}

/// Checks the head of every request, and notes when the request begins and ends.
async fn check(
    State(server): State<Arc<HttpState>>,
    axum::Extension(connection): axum::Extension<Arc<PeerConnection>>,
    request: HttpRequest,
    next: Next,
) -> Response {
    connection.acceptance.request_begins();
    let (mut parts, body) = request.into_parts();
    let checked = headers::check_size(&parts, server.limits.header_bytes)
        .and_then(|()| headers::check_encoding(&parts.headers))
        // The node that passes a request on has checked this, at its own address.
        .and_then(
            |()| if connection.is_node() { Ok(()) } else { server.origin_policy.check(&parts) },
        );
    // A node that passes a request on passes none for a page.
    if !connection.is_node() {
        parts.extensions.insert(BrowserPeer::new(&connection));
    }
    let response = match checked {
        Ok(()) => next.run(HttpRequest::from_parts(parts, body)).await,
        Err(error) => error.into_response(),
    };
    connection.acceptance.request_ends();
    response
}

/// Counts a POST until it has a response.
struct Handled(Arc<HttpState>);

impl Handled {
    fn begin(server: &Arc<HttpState>) -> Self {
        server.handling.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(server))
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        self.0.handling.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Answers every HTTP request except those for OAuth metadata.
async fn handle(
    State(server): State<Arc<HttpState>>,
    axum::Extension(connection): axum::Extension<Arc<PeerConnection>>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let answering = async {
        if let Some(response) = origin::preflight(&parts) {
            return Ok(response);
        }
        let is_post = parts.method == Method::POST;
        let _handled = is_post.then(|| Handled::begin(&server));
        if connection.is_node()
            && let Some(fleet) = &server.fleet
            && let Some(endpoint) = fleet.server_at(parts.uri.path())
        {
            connection.acceptance.accept();
            let caller = AuthenticatedClient::named(NODE);
            let owner = Owner { caller, path: Arc::clone(&endpoint.path) };
            let pass = AccessPass::Unlimited;
            let context = RequestContext { server, endpoint, owner, pass, connection };
            return match parts.method {
                Method::POST => context.post(&parts, body).await,
                _ => Ok(method_not_allowed("POST")),
            };
        }
        let Some(endpoint) = server.endpoints.get(parts.uri.path()) else {
            let message = "nothing is served at this path; the endpoint is /mcp, or /mcp/NAME for a \
                           namespace";
            return Err(HttpError::new(StatusCode::NOT_FOUND, message));
        };
        let headers = &parts.headers;
        let peer = connection.address().ip();
        let access = server.access.authenticate(headers, &endpoint.path, peer).await?;
        connection.acceptance.accept();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if text(nesting::VIA).is_some_and(nesting::is_own_request)
            || text(nesting::CONFIGURATIONS).is_some_and(nesting::is_of_same_configuration)
        {
            let message = "this request comes from this gateway itself, or from a toolgate with the same \
                           configuration: one of its servers has its URL, or that of a gateway in front of it";
            let error = ErrorObject::new(codes::NESTED, message, None);
            return Err(HttpError::with(StatusCode::LOOP_DETECTED, error));
        }
        let owner = Owner { caller: access.caller, path: Arc::clone(&endpoint.path) };
        let context = RequestContext { server, endpoint, owner, pass: access.pass, connection };
        context.believe_node(&parts);
        let mut body = body;
        if let Some(fleet) = &context.server.fleet
            && let Some(id) = text(SESSION_ID)
            && let SessionPlace::Elsewhere(url) = context.place_of_session(fleet, id).await?
        {
            // Kept for the case that the other node does not begin the request.
            let sent = if is_post { Bytes::from(context.read(body).await?) } else { Bytes::new() };
            match context.pass_on(fleet, &url, &parts, sent.clone()).await? {
                PassedOn::Answered(response) => return Ok(response),
                PassedOn::NotBegun => {
                    context.take_over(fleet, id).await?;
                    body = Body::from(sent);
                }
            }
        }
        match parts.method {
            Method::POST => context.post(&parts, body).await,
            Method::GET => {
                headers::check_accepts_stream(headers)?;
                match headers::declared_era(headers)? {
                    Era::Legacy => legacy::get(&context, headers),
                    Era::Modern => Ok(method_not_allowed("POST")),
                }
            }
            Method::DELETE => match headers::declared_era(headers)? {
                Era::Legacy => legacy::delete(&context, headers).await,
                Era::Modern => Ok(method_not_allowed("POST")),
            },
            _ => Ok(method_not_allowed("GET, POST, DELETE")),
        }
    };
    origin::with_cors(origin, answering.await.unwrap_or_else(IntoResponse::into_response))
}

/// Says that the gateway serves. It says nothing that a stranger should not know.
async fn health(State(server): State<Arc<HttpState>>, method: Method) -> Response {
    match method {
        Method::GET | Method::HEAD if server.responding.is_closed() => {
            let status = Json(serde_json::json!({ "status": "stopping" }));
            (StatusCode::SERVICE_UNAVAILABLE, status).into_response()
        }
        Method::GET | Method::HEAD => Json(serde_json::json!({ "status": "ok" })).into_response(),
        _ => method_not_allowed("GET, HEAD"),
    }
}

/// Answers requests for the OAuth protected resource metadata.
async fn describe_resource(State(server): State<Arc<HttpState>>, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    let metadata = server.access.resource_metadata(parts.uri.path(), &server.endpoints.paths());
    let response = match (parts.method.clone(), metadata) {
        (_, None) => StatusCode::NOT_FOUND.into_response(),
        (Method::GET | Method::HEAD, Some(document)) => Json(document).into_response(),
        _ => origin::preflight(&parts).unwrap_or_else(|| method_not_allowed("GET")),
    };
    origin::with_cors(parts.headers.get(header::ORIGIN).cloned(), response)
}

impl HttpState {
    /// Waits until no request is in progress.
    async fn settled(&self) {
        let is_busy = || {
            // In this order: a request begins in the first and goes on in the others.
            self.handling.load(Ordering::SeqCst) > 0
                || !self.responding.is_empty()
                || self.sessions.is_busy()
        };
        while is_busy() {
            tokio::time::sleep(SETTLED_PAUSE).await;
        }
    }
}

impl RequestContext {
    /// Stores that a request waits here, for the nodes that its client may come back to.
    async fn store_parked(&self, waiting: &Result<Value, ErrorObject>) {
        // A node comes back to the node that it has asked.
        let fleet = self.server.fleet.as_ref().filter(|_| self.owner.caller.as_str() != NODE);
        let (Some(fleet), Ok(waiting)) = (fleet, waiting) else { return };
        let Some(state) = waiting.get("requestState").and_then(Value::as_str) else { return };
        // If this fails, the client has to come back to this node.
        let _ = fleet.parked(state, &self.owner, self.server.limits.input_timeout).await;
    }

    /// The sender of the request.
    fn peer(&self) -> RequestPeer {
        let has_token = !self.owner.caller.is_local();
        RequestPeer { connection: Arc::clone(&self.connection), has_token }
    }

    async fn post(&self, parts: &Parts, body: Body) -> Result<Response, HttpError> {
        let headers = &parts.headers;
        headers::check_media_types(headers)?;
        let bytes = self.read(body).await?;
        let refuse = |malformed: Box<MalformedMessage>| {
            HttpError::bad_request(malformed.error).for_request(malformed.id.as_ref())
        };
        let input = JsonRpcInput::read(&bytes).map_err(refuse)?;
        self.check_open(&input)?;
        if let Some(fleet) = &self.server.fleet
            && let Some(state) = state_of(&input)
            && !self.server.parked.has(state)
            && !self.connection.is_node()
            && let Some(url) = fleet.parked_at(state, &self.owner).await?
        {
            return match self.pass_on(fleet, &url, parts, bytes.into()).await? {
                PassedOn::Answered(response) => Ok(response),
                PassedOn::NotBegun => Err(fleet::unreachable()),
            };
        }
        drop(bytes);
        match input {
            JsonRpcInput::One(mut message) => {
                let id = match &message {
                    JsonRpcMessage::Request(request) => Some(request.id.clone()),
                    _ => None,
                };
                let answering = async {
                    let era = headers::era_of(headers, &message)?;
                    if let JsonRpcMessage::Request(request) = &mut message
                        && self.endpoint.factory.uses_trace_headers()
                    {
                        headers::copy_trace(headers, request);
                    }
                    match era {
                        Era::Legacy => legacy::post_one(self, headers, message).await,
                        Era::Modern => modern::post(self, headers, message).await,
                    }
                };
                answering.await.map_err(|error| error.for_request(id.as_ref()))
            }
            JsonRpcInput::Batch(entries) => match headers::declared_era(headers)? {
                Era::Legacy => {
                    // Nothing of a batch with a malformed message is done.
                    let messages: Result<_, _> = entries.into_iter().collect();
                    legacy::post_batch(self, headers, messages.map_err(refuse)?).await
                }
                Era::Modern => Err(legacy::no_batches()),
            },
        }
    }

    /// Refuses what begins while the gateway stops: nothing of it is done. The POST was counted before, so that either
    /// the gateway waits for it or it is refused.
    fn check_open(&self, input: &JsonRpcInput) -> Result<(), HttpError> {
        let begins = match input {
            JsonRpcInput::One(message) => matches!(message, JsonRpcMessage::Request(_)),
            JsonRpcInput::Batch(_) => true,
        };
        if begins && self.server.is_closing.load(Ordering::SeqCst) {
            let message = "this gateway is stopping, and the request was not begun; try again";
            // A node that sends calls to a server of this one tells its client about the server, not about this gateway.
            let data = self.connection.is_node().then(toolgate_upstream::not_begun);
            let error = ErrorObject::invalid_request(message, data);
            return Err(HttpError::with(StatusCode::SERVICE_UNAVAILABLE, error).not_begun());
        }
        Ok(())
    }

    /// The body of a request, within the limits.
    async fn read(&self, body: Body) -> Result<Vec<u8>, HttpError> {
        let limits = &self.server.limits;
        let reading = read_body(body, limits.body_bytes, &self.connection);
        tokio::time::timeout(limits.io_timeout, reading).await.unwrap_or_else(|_| {
            let message = "the body of the request did not arrive in time";
            Err(HttpError::new(StatusCode::REQUEST_TIMEOUT, message))
        })
    }

    /// A response with a stream of events. It ends when the caller's access expires.
    fn event_stream(&self, events: impl Stream<Item = Event> + Send + 'static) -> Response {
        let (server, pass) = (Arc::clone(&self.server), self.pass);
        let events = events
            .take_until(Box::pin(async move { server.access.expired(pass).await }))
            .map(Ok::<_, Infallible>);
        let keep_alive = KeepAlive::new().interval(self.server.limits.keep_alive);
        // Proxies such as nginx would buffer the events.
        ([("x-accel-buffering", "no")], Sse::new(events).keep_alive(keep_alive)).into_response()
    }
}

/// The `requestState` of a request.
fn state_of(input: &JsonRpcInput) -> Option<&str> {
    let JsonRpcInput::One(JsonRpcMessage::Request(request)) = input else { return None };
    request.fields()?.get("requestState")?.as_str()
}

/// Reads a body of at most `limit` bytes. A body that announces more is not read at all.
async fn read_body(
    body: Body,
    limit: usize,
    connection: &PeerConnection,
) -> Result<Vec<u8>, HttpError> {
    let too_large = || {
        let message = format!(
            "a request has at most {limit} bytes; send less, or set `gateway.maxBodyBytes`"
        );
        HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let (mut bytes, mut pieces) = (Vec::new(), body.into_data_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            if connection.has_large_chunk.load(Ordering::Relaxed) {
                return too_large();
            }
            let message = format!("the body of the request cannot be read: {error}");
            HttpError::new(StatusCode::BAD_REQUEST, message)
        })?;
        if bytes.len() + piece.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// The host of a URL, with its port.
fn authority(url: &Url) -> Option<String> {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    url.host_str().map(|host| format!("{host}{port}"))
}

fn method_not_allowed(allowed: &'static str) -> Response {
    let error = HttpError::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed} here"));
    ([(header::ALLOW, allowed)], error).into_response()
}
