//! A scripted endpoint: it records requests, and plays answers in turn.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// One answer of the endpoint.
#[derive(Debug, Clone)]
pub(crate) enum Play {
    /// A whole body.
    Json(String),
    /// A stream of events, by their data.
    Events(Vec<String>),
    /// The beginning of a stream, after which the connection is lost.
    Cut(Vec<String>),
    /// A stream that ends in order, but too early.
    EndedEarly(Vec<String>),
    /// A status with headers and a body.
    Status(u16, Vec<(&'static str, String)>, Value),
    /// The beginning of a stream, and then nothing.
    Silent(Vec<String>),
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The endpoint. Dropping it stops it.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    site: Arc<Site>,
    server: JoinHandle<()>,
}

/// All requests and answers of this process, for the judge.
pub(crate) static EXCHANGES: Mutex<Vec<Value>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Site {
    plays: Mutex<VecDeque<Play>>,
    /// Whether the script has shapes that no SDK knows, on purpose.
    foreign: AtomicBool,
    received: Mutex<Vec<Received>>,
}

impl Endpoint {
    pub(crate) async fn start(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let site = Arc::new(Site { plays: Mutex::new(plays.into()), ..Site::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&site));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, site, server }
    }

    /// Says that the script has shapes that no SDK knows, on purpose.
    pub(crate) fn foreign(&self) {
        self.site.foreign.store(true, Ordering::SeqCst);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.site.received.lock().clone()
    }

    /// The body of request number `place`.
    pub(crate) fn body(&self, place: usize) -> Value {
        self.received()[place].json()
    }

    pub(crate) fn add(&self, plays: Vec<Play>) {
        self.site.plays.lock().extend(plays);
    }

    pub(crate) fn left(&self) -> usize {
        self.site.plays.lock().len()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Site {
    fn record(&self, play: Option<&Play>) {
        let received = self.received.lock().last().cloned().unwrap();
        let answers = match play {
            Some(Play::Json(body)) => vec![body.clone()],
            Some(
                Play::Events(list) | Play::Cut(list) | Play::EndedEarly(list) | Play::Silent(list),
            ) => list.clone(),
            _ => Vec::new(),
        };
        EXCHANGES.lock().push(json!({
            "path": received.path,
            "beta": received.header("anthropic-beta"),
            "request": received.body,
            "streamed": !matches!(play, Some(Play::Json(_))),
            "answers": answers,
            "foreign": self.foreign.load(Ordering::SeqCst),
        }));
    }
}

async fn answer(
    State(site): State<Arc<Site>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    site.received.lock().push(Received { path: uri.to_string(), headers, body });
    let play = site.plays.lock().pop_front();
    site.record(play.as_ref());
    let events = |events: Vec<String>| -> Vec<String> {
        events.into_iter().map(|data| format!("data: {data}\n\n")).collect()
    };
    let stream_of =
        |body: Body| ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
    match play {
        Some(Play::Json(body)) => {
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Some(Play::Events(list) | Play::EndedEarly(list)) => {
            // In pieces that do not respect the borders of events.
            let whole = events(list).concat().into_bytes();
            let sent: Vec<_> =
                whole.chunks(97).map(|bytes| Ok::<_, Infallible>(bytes.to_vec())).collect();
            stream_of(Body::from_stream(stream::iter(sent)))
        }
        Some(Play::Cut(list)) => {
            let sent = stream::iter(events(list).into_iter().map(Ok));
            let end = stream::once(async {
                // The server writes what it has when the body makes it wait, and before the error.
                tokio::task::yield_now().await;
                Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
            });
            stream_of(Body::from_stream(sent.chain(end)))
        }
        Some(Play::Silent(list)) => {
            let pieces = stream::iter(events(list).into_iter().map(Ok::<_, Infallible>));
            stream_of(Body::from_stream(pieces.chain(stream::pending())))
        }
        Some(Play::Status(status, more, body)) => {
            let mut response =
                (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response();
            for (name, value) in more {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        None => {
            let body = json!({"error": {"message": "the script has ended", "type": "script"}});
            (StatusCode::IM_A_TEAPOT, body.to_string()).into_response()
        }
    }
}
