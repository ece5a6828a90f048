//! Serving over Streamable HTTP.

mod answer;
mod check;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;

use crate::engine::{Engine, Generation};
use crate::outbox::{Frame, Outbox};
use crate::peer::Peer;
use crate::reply::code;
use crate::{AuthorizationServer, Fixture, TestkitError};

/// The header that names a legacy session.
const SESSION_HEADER: &str = "mcp-session-id";

/// A fixture that is being served over HTTP by this process. Dropping it stops it.
#[derive(Debug)]
pub struct RunningHttp {
    url: String,
    engine: Arc<Engine>,
    server: Option<JoinHandle<std::io::Result<()>>>,
}

impl RunningHttp {
    /// Serves `router`, whose endpoint is at `path`.
    pub(crate) async fn serve(
        engine: Arc<Engine>,
        router: Router,
        address: SocketAddr,
        path: &str,
        authorization: Option<&AuthorizationServer>,
    ) -> Result<Self, TestkitError> {
        let listener = TcpListener::bind(address).await?;
        let url = format!("http://{}{path}", listener.local_addr()?);
        let router = match authorization {
            Some(authorization) => authorization.guard(router, &url),
            None => router,
        };
        let stopped = Arc::clone(&engine);
        let server = tokio::spawn(async move {
            axum::serve(listener, router)
                .with_graceful_shutdown(async move {
                    stopped.died().await;
                })
                .await
        });
        Ok(Self { url, engine, server: Some(server) })
    }

    /// Where it listens, such as `http://127.0.0.1:40123/mcp`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Forgets all sessions, as a server does that was started again: requests that name one get
    /// a 404 from now on.
    pub fn forget_sessions(&self) {
        self.engine.forget_sessions();
    }

    /// How many `tools/call` requests were received.
    pub fn calls(&self) -> u64 {
        self.engine.state.lock().calls
    }

    /// Waits until the server ends by itself, through the tool `crash` or a fault. Returns the exit
    /// code that a process would have.
    pub async fn ended(&self) -> i32 {
        self.engine.died().await
    }

    /// Stops listening and breaks the connections that are open.
    pub async fn shutdown(mut self) {
        self.engine.stop(0);
        if let Some(server) = self.server.take() {
            // Its result no longer matters.
            let _ = server.await;
        }
    }
}

impl Drop for RunningHttp {
    fn drop(&mut self) {
        self.engine.stop(0);
    }
}

impl Fixture {
    /// Serves over Streamable HTTP at `address`, in tasks of the current runtime. Use port 0 and
    /// look at [`RunningHttp::url`].
    ///
    /// A crash, which would end a process, here ends the server and breaks its connections.
    pub async fn serve_http(self, address: SocketAddr) -> Result<RunningHttp, TestkitError> {
        self.serve_streamable(address, None).await
    }

    /// Like [`Self::serve_http`] behind an authorization server: requests without one of its tokens
    /// get a 401.
    pub async fn serve_http_for(
        self,
        address: SocketAddr,
        authorization: &AuthorizationServer,
    ) -> Result<RunningHttp, TestkitError> {
        self.serve_streamable(address, Some(authorization)).await
    }

    async fn serve_streamable(
        self,
        address: SocketAddr,
        authorization: Option<&AuthorizationServer>,
    ) -> Result<RunningHttp, TestkitError> {
        if let Some(code) = self.prepare().await? {
            return Err(TestkitError::Exited { code });
        }
        let engine = Engine::new(self);
        let site = Arc::new(HttpSite { engine: Arc::clone(&engine), sessions: Mutex::default() });
        let handlers = post(on_post).get(on_get).delete(on_delete);
        let router = Router::new().route("/mcp", handlers).with_state(site);
        RunningHttp::serve(engine, router, address, "/mcp", authorization).await
    }
}

/// What the handlers share.
#[derive(Debug)]
struct HttpSite {
    engine: Arc<Engine>,
    sessions: Mutex<HashMap<String, SiteSession>>,
}

/// A legacy session.
#[derive(Debug, Clone)]
struct SiteSession {
    peer: Arc<Peer>,
    /// The messages for the GET stream; queued while no such stream is open.
    standing: Arc<AsyncMutex<mpsc::UnboundedReceiver<Frame>>>,
    generation: u64,
}

impl HttpSite {
    /// Opens a session and returns its id.
    fn open_session(&self) -> (String, Arc<Peer>) {
        let (outbox, frames) = Outbox::new();
        let peer = Arc::new(Peer::new(outbox));
        // Random, so that a session of an earlier process is unknown to this one.
        let id = format!("session-{:016x}", RandomState::new().build_hasher().finish());
        let session = SiteSession {
            peer: Arc::clone(&peer),
            standing: Arc::new(AsyncMutex::new(frames)),
            generation: self.engine.session_generation(),
        };
        self.sessions.lock().insert(id.clone(), session);
        (id, peer)
    }

    /// The session that the headers name, or the refusal.
    fn session(&self, headers: &HeaderMap) -> Result<SiteSession, HttpRefusal> {
        let Some(id) = headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok()) else {
            return Err(HttpRefusal::error(
                StatusCode::BAD_REQUEST,
                code::SESSION_PROBLEM,
                "Bad Request: the Mcp-Session-Id header is required",
            ));
        };
        let known = self.engine.session_generation();
        let session = self.sessions.lock().get(id).filter(|s| s.generation == known).cloned();
        session.ok_or_else(|| {
            HttpRefusal::error(StatusCode::NOT_FOUND, code::SESSION_UNKNOWN, "Session not found")
        })
    }

    /// The client behind a POST, and the id of its session if it has just been opened.
    fn peer(
        &self,
        headers: &HeaderMap,
        message: &Value,
    ) -> Result<(Arc<Peer>, Option<String>), HttpRefusal> {
        let method = message["method"].as_str().unwrap_or_default();
        let generation = self.engine.generation_of(&message["params"]);
        match (method, generation) {
            (_, Generation::Modern) => {
                check::modern_headers(headers, message)?;
                Ok((stranger(), None))
            }
            ("initialize", Generation::Legacy) => {
                let (id, peer) = self.open_session();
                Ok((peer, Some(id)))
            }
            // A probe has no session. The engine refuses it.
            ("server/discover", Generation::Legacy) => Ok((stranger(), None)),
            _ => Ok((self.session(headers)?.peer, None)),
        }
    }
}

/// A client without a session.
fn stranger() -> Arc<Peer> {
    Arc::new(Peer::new(Outbox::new().0))
}

/// A request that is refused before the engine gets it: the response to send.
#[derive(Debug)]
struct HttpRefusal(Box<Response>);

impl HttpRefusal {
    /// A JSON-RPC error that belongs to no request.
    fn error(status: StatusCode, code: i64, message: &str) -> Self {
        let message = crate::reply::Reply::error(code, message).into_message(&Value::Null);
        let text = message.unwrap_or_default().to_string();
        Self(Box::new(answer::json(status, text)))
    }
}

async fn on_post(State(site): State<Arc<HttpSite>>, headers: HeaderMap, body: Bytes) -> Response {
    post_message(&site, &headers, &body).await.unwrap_or_else(|refusal| *refusal.0)
}

async fn post_message(
    site: &Arc<HttpSite>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, HttpRefusal> {
    check::bearer(site.engine.fixture.http.bearer.as_deref(), headers)?;
    let message: Value = serde_json::from_slice(body).map_err(|_| {
        HttpRefusal::error(StatusCode::BAD_REQUEST, code::PARSE_ERROR, "Parse error")
    })?;
    let (peer, session) = site.peer(headers, &message)?;
    let is_request = message["method"].is_string() && message.get("id").is_some();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let (outbox, frames) = Outbox::new();
    site.engine.receive(&peer, &outbox, message);
    drop(outbox);
    if !is_request {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let mut response = answer::request(&site.engine, &peer, &method, frames).await;
    if let Some(id) = session.and_then(|id| HeaderValue::try_from(id).ok()) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    Ok(response)
}

async fn on_get(State(site): State<Arc<HttpSite>>, headers: HeaderMap) -> Response {
    open_stream(&site, &headers).unwrap_or_else(|refusal| *refusal.0)
}

fn open_stream(site: &Arc<HttpSite>, headers: &HeaderMap) -> Result<Response, HttpRefusal> {
    let options = &site.engine.fixture.http;
    check::bearer(options.bearer.as_deref(), headers)?;
    if !options.notification_stream {
        return Err(HttpRefusal(Box::new(StatusCode::METHOD_NOT_ALLOWED.into_response())));
    }
    let session = site.session(headers)?;
    match session.standing.try_lock_owned() {
        Ok(frames) => Ok(answer::stream(&site.engine, frames)),
        Err(_) => Err(HttpRefusal(Box::new(StatusCode::CONFLICT.into_response()))),
    }
}

async fn on_delete(State(site): State<Arc<HttpSite>>, headers: HeaderMap) -> Response {
    let closed = check::bearer(site.engine.fixture.http.bearer.as_deref(), &headers)
        .and_then(|()| site.session(&headers))
        .map(|session| {
            session.peer.cancel_all();
            site.sessions.lock().retain(|_, other| !Arc::ptr_eq(&other.peer, &session.peer));
        });
    closed.map_or_else(|refusal| *refusal.0, |()| StatusCode::NO_CONTENT.into_response())
}
