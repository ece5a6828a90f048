//! An embeddings endpoint that follows a script.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::TestkitError;

/// An endpoint of OpenAI's embeddings API on this machine, with faults on request. Dropping it stops
/// it.
///
/// The vector of a text is computed from its words, so that texts with common words are close.
/// [`EmbeddingsEndpoint::same`] gives a word the meaning of another one.
#[derive(Debug)]
pub struct EmbeddingsEndpoint {
    url: String,
    site: Arc<EmbeddingsSite>,
    server: JoinHandle<()>,
}

/// How the endpoint misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingsFault {
    /// Responds with this status and repeats the key that it received.
    Status(u16),
    /// Never responds.
    Silence,
    /// Returns vectors with one more number than before.
    Longer,
    /// Returns a value that is not a number.
    NotANumber,
    /// Returns a response without an end.
    Endless,
    /// Returns one vector too few.
    TooFew,
    /// Returns the vectors in base64.
    Base64,
    /// Refuses requests with a text of more than so many bytes.
    RefuseLonger(usize),
}

#[derive(Debug, Default)]
struct EmbeddingsSite {
    state: Mutex<EndpointState>,
}

#[derive(Debug, Default)]
struct EndpointState {
    /// The faults of the next requests, one each.
    next: VecDeque<EmbeddingsFault>,
    /// The fault of all other requests.
    always: Option<EmbeddingsFault>,
    texts: Vec<String>,
    requests: usize,
    keys: Vec<String>,
    same: Vec<(String, String)>,
}

/// The length of a vector.
const DIMENSIONS: usize = 256;

impl EmbeddingsEndpoint {
    /// Starts to listen on a port of this machine, in a task of the current runtime.
    pub async fn start() -> Result<Self, TestkitError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let site = Arc::new(EmbeddingsSite::default());
        let router =
            Router::new().route("/v1/embeddings", post(answer)).with_state(Arc::clone(&site));
        let server = tokio::spawn(async move {
            // It ends when the endpoint is dropped.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { url, site, server })
    }

    /// The URL to configure, such as `http://127.0.0.1:40123/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the faults of the next requests, one each.
    pub fn next(&self, faults: impl IntoIterator<Item = EmbeddingsFault>) {
        self.site.state.lock().next.extend(faults);
    }

    /// Sets the fault of all requests.
    pub fn always(&self, fault: Option<EmbeddingsFault>) {
        self.site.state.lock().always = fault;
    }

    /// Gives a word the meaning of another one.
    pub fn same(&self, word: &str, other: &str) {
        self.site.state.lock().same.push((word.to_owned(), other.to_owned()));
    }

    /// The number of requests.
    pub fn requests(&self) -> usize {
        self.site.state.lock().requests
    }

    /// The texts that arrived since the last call.
    pub fn take_texts(&self) -> Vec<String> {
        std::mem::take(&mut self.site.state.lock().texts)
    }

    /// The `Authorization` headers of all requests.
    pub fn keys(&self) -> Vec<String> {
        self.site.state.lock().keys.clone()
    }
}

impl Drop for EmbeddingsEndpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(
    State(site): State<Arc<EmbeddingsSite>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let texts: Vec<String> = request["input"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect();
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = key.unwrap_or_default().to_owned();
    let (fault, same) = {
        let mut told = site.state.lock();
        told.requests += 1;
        told.keys.push(key.clone());
        let fault = told.next.pop_front().or(told.always);
        if fault.is_none() {
            told.texts.extend(texts.iter().cloned());
        }
        (fault, told.same.clone())
    };
    let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| vector(text, &same)).collect();
    match fault {
        None => {}
        Some(EmbeddingsFault::Status(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
            let error = json!({ "error": { "message": format!("it is so; you sent {key}") } });
            return (status, error.to_string()).into_response();
        }
        Some(EmbeddingsFault::Silence) => std::future::pending::<()>().await,
        Some(EmbeddingsFault::Longer) => vectors.iter_mut().for_each(|vector| vector.push(0.5)),
        Some(EmbeddingsFault::TooFew) => drop(vectors.pop()),
        Some(EmbeddingsFault::NotANumber) => {
            return r#"{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}"#.into_response();
        }
        Some(EmbeddingsFault::Endless) => {
            let part = Bytes::from(vec![b' '; 1024 * 1024]);
            let parts = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(part.clone()));
            return axum::body::Body::from_stream(parts).into_response();
        }
        Some(EmbeddingsFault::RefuseLonger(most)) => {
            if texts.iter().any(|text| text.len() > most) {
                let error = json!({ "error": { "message": "a text is too long" } });
                return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
            }
            site.state.lock().texts.extend(texts);
        }
        Some(EmbeddingsFault::Base64) => {
            let data = vectors
                .iter()
                .enumerate()
                .map(|(index, vector)| json!({ "index": index, "embedding": base64(vector) }));
            return json!({ "data": data.collect::<Vec<_>>() }).to_string().into_response();
        }
    }
    let data = vectors.iter().enumerate().map(
        |(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector }),
    );
    json!({ "object": "list", "data": data.collect::<Vec<_>>() }).to_string().into_response()
}

/// The vector of a text: each word counts in a dimension that its letters determine.
fn vector(text: &str, same: &[(String, String)]) -> Vec<f32> {
    let mut vector = vec![0.001; DIMENSIONS];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty())
    {
        let word = same.iter().find(|(this, _)| this == word).map_or(word, |(_, other)| other);
        let hash = word
            .bytes()
            .fold(7_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        vector[hash % DIMENSIONS] += 1.0;
    }
    vector
}

/// Base64 written by hand, because nothing else in this crate needs it.
fn base64(vector: &[f32]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
