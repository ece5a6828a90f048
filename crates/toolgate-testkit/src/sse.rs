//! Serving over HTTP+SSE, the transport of protocol version 2024-11-05.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    http::StatusCode,
    response::{
        IntoResponse as _, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;

use crate::{
    AuthorizationServer, Fixture, RunningHttp, TestkitError, engine::Engine, outbox::Outbox,
    peer::Peer,
};

/// How a fixture says where to post messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PostAddress {
    /// By a path, as most do.
    #[default]
    Path,
    /// At another origin, which clients must refuse.
    Elsewhere(String),
    /// Not at all.
    Missing,
}

/// What the handlers share.
#[derive(Debug)]
struct SseSite {
    engine: Arc<Engine>,
    post: PostAddress,
    peers: Mutex<HashMap<String, Arc<Peer>>>,
    opened: AtomicU64,
}

impl Fixture {
    /// Serves over HTTP+SSE at `address`, in tasks of the current runtime. `/sse` is the stream,
    /// and accepts no POST. `authorization` protects it, if there is one.
    pub async fn serve_sse(
        self,
        address: SocketAddr,
        post_address: PostAddress,
        authorization: Option<&AuthorizationServer>,
    ) -> Result<RunningHttp, TestkitError> {
        let engine = Engine::new(self);
        let site = Arc::new(SseSite {
            engine: Arc::clone(&engine),
            post: post_address,
            peers: Mutex::default(),
            opened: AtomicU64::default(),
        });
        let router = Router::new()
            .route("/sse", get(open))
            .route("/messages", post(receive))
            .with_state(site);
        RunningHttp::serve(engine, router, address, "/sse", authorization).await
    }
}

async fn open(State(site): State<Arc<SseSite>>) -> Response {
    let (outbox, frames) = Outbox::new();
    let id = site.opened.fetch_add(1, Ordering::Relaxed).to_string();
    site.peers.lock().insert(id.clone(), Arc::new(Peer::new(outbox)));
    let address = match &site.post {
        PostAddress::Path => Some(format!("/messages?session={id}")),
        PostAddress::Elsewhere(url) => Some(url.clone()),
        PostAddress::Missing => None,
    };
    let first = address.map(|address| Ok(Event::default().event("endpoint").data(address)));
    let engine = Arc::clone(&site.engine);
    let messages = stream::unfold(Some((frames, engine)), |state| async move {
        let (mut frames, engine) = state?;
        tokio::select! {
            frame = frames.recv() => {
                let event = Event::default().event("message").data(frame?.text);
                Some((Ok(event), Some((frames, engine))))
            }
            _ = engine.died() => Some((Err(std::io::Error::other("the fixture has ended")), None)),
        }
    });
    Sse::new(stream::iter(first).chain(messages)).into_response()
}

async fn receive(
    State(site): State<Arc<SseSite>>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let id = query.as_deref().and_then(|query| query.strip_prefix("session="));
    let peer = id.and_then(|id| site.peers.lock().get(id).cloned());
    let (Some(peer), Ok(message)) = (peer, serde_json::from_slice(&body)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    site.engine.receive(&peer, &peer.standing, message);
    (StatusCode::ACCEPTED, "Accepted").into_response()
}
