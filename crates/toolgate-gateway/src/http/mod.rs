//! Streamable HTTP: both eras on one endpoint.

mod admit;
mod events;
mod headers;
mod legacy;
mod modern;
mod refusal;
mod sessions;
mod settings;
mod sharing;
mod sse;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Body,
    extract::{Request as HttpRequest, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use futures::{Stream, StreamExt as _, future::join_all};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{admit::Guard, modern::Faces, sessions::Sessions, sse::Event};
use crate::{
    caller::Caller,
    door::{Admitted, Door, Pass},
    era::Era,
    face::Source,
    message::{Incoming, Message, Unreadable},
    running::Suspended,
};

pub(crate) use self::refusal::Refusal;
pub use self::settings::{HttpLimits, HttpSettings, Namespace};

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Server {
    guard: Guard,
    door: Door,
    /// The paths that are served, the default first.
    places: Vec<Arc<str>>,
    limits: HttpLimits,
    sessions: Arc<Sessions>,
    suspended: Suspended,
    /// What is being told on streams of the modern era.
    telling: TaskTracker,
    stop: CancellationToken,
}

/// A path that is served.
#[derive(Debug)]
pub(crate) struct Served {
    place: Arc<str>,
    source: Arc<dyn Source>,
    faces: Faces,
}

/// All of them.
type Namespaces = HashMap<String, Arc<Served>>;

/// Where a request has arrived, and from whom.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    server: Arc<Server>,
    namespace: Arc<Served>,
    caller: Caller,
    pass: Pass,
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
struct Peer(SocketAddr);

/// Where clients of OAuth look for who gives them tokens.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
const UNKNOWN_PATH: &str =
    "nothing is served at this path; the endpoint is /mcp, and /mcp/NAME that of a namespace";
/// How often is looked for what nobody has come back for.
const SWEEP: Duration = Duration::from_secs(5);
/// How long connections have to end by themselves when the server stops.
const PARTING: Duration = Duration::from_secs(2);

/// Serves clients on a listener until `stop` is cancelled. Then no more are accepted, what is under
/// way gets its last word, streams end, and sessions are closed in order.
pub async fn serve_http(listener: TcpListener, settings: HttpSettings, stop: CancellationToken) {
    let address = listener.local_addr().ok();
    let limits = settings.limits;
    let public_host = settings.door.public_host();
    let server = Arc::new(Server {
        guard: Guard {
            port: address.map_or(0, |address| address.port()),
            is_public: address.is_some_and(|address| !address.ip().is_loopback()),
            allowed_hosts: settings.allowed_hosts.into_iter().chain(public_host).collect(),
            allowed_origins: settings.allowed_origins,
        },
        door: settings.door,
        places: settings.namespaces.iter().map(|served| served.path.as_str().into()).collect(),
        sessions: Arc::new(Sessions::new(
            limits.sessions,
            limits.sessions_per_caller,
            limits.session_idle,
        )),
        suspended: Suspended::new(limits.suspended, limits.in_flight, limits.patience),
        telling: TaskTracker::new(),
        limits,
        stop,
    });
    let namespaces: Namespaces = settings
        .namespaces
        .into_iter()
        .map(|Namespace { path, source }| {
            let place = path.as_str().into();
            (path, Arc::new(Served { place, source, faces: Faces::default() }))
        })
        .collect();
    let namespaces = Arc::new(namespaces);
    let mut router =
        Router::new().fallback(handle).with_state((Arc::clone(&server), Arc::clone(&namespaces)));
    for path in [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}/{{*rest}}")] {
        router = router.route(&path, any(describe).with_state(Arc::clone(&server)));
    }
    let connections = TaskTracker::new();
    tokio::select! {
        () = accept(&server, &listener, router, &connections) => {}
        () = sweep(&server, &namespaces) => {}
        () = server.stop.cancelled() => {}
    }
    drop(listener);
    server.telling.close();
    tokio::join!(server.sessions.end(), async {
        let _ = tokio::time::timeout(PARTING, server.telling.wait()).await;
    });
    join_all(namespaces.values().map(|namespace| namespace.faces.end())).await;
    connections.close();
    let _ = tokio::time::timeout(PARTING, connections.wait()).await;
}

async fn accept(
    server: &Arc<Server>,
    listener: &TcpListener,
    router: Router,
    connections: &TaskTracker,
) {
    let room = Arc::new(Semaphore::new(server.limits.connections));
    loop {
        // Whoever comes when there is no room waits in the queue of the system.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (server, router) = (Arc::clone(server), router.clone());
                connections.spawn(async move {
                    connect(&server, stream, peer, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely; others may be given back.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connect(server: &Server, stream: TcpStream, peer: SocketAddr, router: Router) {
    let _ = stream.set_nodelay(true);
    let router = router.layer(axum::Extension(Peer(peer)));
    let limits = &server.limits;
    let mut stream = TimeoutStream::new(stream);
    // Whoever does not read what they asked for must not keep the place of others.
    stream.set_write_timeout(Some(limits.arrival));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.arrival)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = server.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn sweep(server: &Server, namespaces: &Namespaces) {
    let limits = &server.limits;
    let mut ticks = tokio::time::interval(SWEEP.min(limits.session_idle).min(limits.patience));
    loop {
        ticks.tick().await;
        server.sessions.sweep();
        server.suspended.sweep();
        for namespace in namespaces.values() {
            namespace.faces.sweep(limits.session_idle);
        }
    }
}

async fn handle(
    State((server, namespaces)): State<(Arc<Server>, Arc<Namespaces>)>,
    axum::Extension(Peer(peer)): axum::Extension<Peer>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(refusal) = server.guard.check(&parts) {
        return refusal.into_response();
    }
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let answered = async {
        if let Some(permission) = sharing::permission(&parts) {
            return Ok(permission);
        }
        let Some(namespace) = namespaces.get(parts.uri.path()).cloned() else {
            return Err(Refusal::new(StatusCode::NOT_FOUND, UNKNOWN_PATH));
        };
        let admitted = server.door.admit(&parts.headers, &namespace.place, peer.ip()).await;
        let Admitted { caller, pass } = match admitted {
            Ok(admitted) => admitted,
            Err(denial) => return Ok(denial.into_response()),
        };
        let here = Here { server, namespace, caller, pass };
        match parts.method {
            Method::POST => here.post(&parts.headers, body).await,
            Method::GET => {
                headers::check_stream(&parts.headers)?;
                match headers::era(&parts.headers)? {
                    Era::Legacy => legacy::get(&here, &parts.headers),
                    Era::Modern => Ok(not_allowed("POST")),
                }
            }
            Method::DELETE => match headers::era(&parts.headers)? {
                Era::Legacy => legacy::delete(&here, &parts.headers),
                Era::Modern => Ok(not_allowed("POST")),
            },
            _ => Ok(not_allowed("GET, POST, DELETE")),
        }
    };
    sharing::shared(origin, answered.await.unwrap_or_else(IntoResponse::into_response))
}

/// Says where tokens for what is served here come from.
async fn describe(State(server): State<Arc<Server>>, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(refusal) = server.guard.check(&parts) {
        return refusal.into_response();
    }
    let places: Vec<&str> = server.places.iter().map(|place| &**place).collect();
    let response = match (parts.method.clone(), server.door.metadata(parts.uri.path(), &places)) {
        (_, None) => StatusCode::NOT_FOUND.into_response(),
        (Method::GET | Method::HEAD, Some(document)) => Json(document).into_response(),
        _ => sharing::permission(&parts).unwrap_or_else(|| not_allowed("GET")),
    };
    sharing::shared(parts.headers.get(header::ORIGIN).cloned(), response)
}

impl Here {
    async fn post(&self, headers: &header::HeaderMap, body: Body) -> Result<Response, Refusal> {
        headers::check_media(headers)?;
        let limits = &self.server.limits;
        let reading = axum::body::to_bytes(body, limits.body_bytes);
        let Ok(read) = tokio::time::timeout(limits.arrival, reading).await else {
            let message = "the request's body took too long to arrive";
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message));
        };
        let bytes = read.map_err(|_| {
            // The other cause, a lost connection, has nobody to tell.
            let message = format!(
                "a request has at most {} bytes; send less, or set `gateway.maxBodyBytes`",
                limits.body_bytes
            );
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        })?;
        let refuse = |unreadable: Box<Unreadable>| {
            let Unreadable { id, error } = *unreadable;
            let refusal = Refusal::bad_request(error);
            id.iter().fold(refusal, Refusal::about)
        };
        let incoming = Incoming::read(&bytes).map_err(refuse)?;
        drop(bytes);
        match incoming {
            Incoming::One(mut message) => {
                let era = headers::era_of(headers, &message).map_err(|refusal| match &message {
                    Message::Request(request) => refusal.about(&request.id),
                    _ => refusal,
                })?;
                if let Message::Request(request) = &mut message
                    && self.namespace.source.takes_trace_headers()
                {
                    headers::take_trace(headers, request);
                }
                match era {
                    Era::Legacy => legacy::post(self, headers, vec![message]).await,
                    Era::Modern => modern::post(self, headers, message).await,
                }
            }
            Incoming::Batch(entries) => match headers::era(headers)? {
                Era::Legacy => {
                    // A body that is read in part is no good request: nothing of it is done.
                    let messages: Result<_, _> = entries.into_iter().collect();
                    legacy::post(self, headers, messages.map_err(refuse)?).await
                }
                Era::Modern => {
                    let message = "this version of the protocol has no batches";
                    Err(Refusal::new(StatusCode::BAD_REQUEST, message))
                }
            },
        }
    }
}

impl Here {
    /// A stream of events, which shows that it lives, and ends with what the caller came in by.
    fn events(&self, events: impl Stream<Item = Event> + Send + 'static) -> Response {
        let (server, pass) = (Arc::clone(&self.server), self.pass);
        let events = events.take_until(async move { server.door.closed_for(pass).await });
        sse::response(events, self.server.limits.keep_alive)
    }
}

fn not_allowed(allowed: &'static str) -> Response {
    let message = format!("use {allowed} here");
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message);
    ([(header::ALLOW, allowed)], refusal).into_response()
}
