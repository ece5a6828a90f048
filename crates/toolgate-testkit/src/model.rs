//! A scripted model endpoint.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::TestkitError;

/// How the model responds to every question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelScript {
    /// Responds with this text, in the form of the API.
    Say(String),
    /// Responds with these texts, one after the other; the last one stays.
    SayInTurn(Vec<String>),
    /// Responds with this body.
    Body(String),
    /// Answers with this status.
    Status(u16),
    /// Redirects the client.
    Redirect(String),
    /// Never responds.
    Never,
    /// Sends this many bytes.
    Flood(usize),
}

/// An endpoint on loopback for OpenAI's and Anthropic's chat APIs. Dropping it stops it.
#[derive(Debug)]
pub struct ModelEndpoint {
    url: String,
    site: Arc<ModelSite>,
    server: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug)]
struct ModelSite {
    script: Mutex<ModelScript>,
    key: Option<String>,
    questions: Mutex<Vec<Value>>,
}

impl ModelEndpoint {
    /// Starts it. With a `key`, requests without it get a 401.
    pub async fn start(script: ModelScript, key: Option<&str>) -> Result<Self, TestkitError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (script, key) = (Mutex::new(script), key.map(str::to_owned));
        let site = Arc::new(ModelSite { script, key, questions: Mutex::default() });
        let router = Router::new()
            .route("/chat/completions", post(completions))
            .route("/v1/messages", post(messages))
            .with_state(Arc::clone(&site));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, site, server })
    }

    /// The base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Changes the script.
    pub fn script(&self, script: ModelScript) {
        *self.site.script.lock() = script;
    }

    /// The bodies of the requests with the right key.
    pub fn questions(&self) -> Vec<Value> {
        self.site.questions.lock().clone()
    }
}

impl Drop for ModelEndpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn completions(
    State(site): State<Arc<ModelSite>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let right = site.key.as_ref().is_none_or(|key| given == Some(&format!("Bearer {key}")));
    let form = |text: &str| json!({ "choices": [{ "message": { "content": text } }] });
    answer(&site, right, &body, form).await
}

async fn messages(State(site): State<Arc<ModelSite>>, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    let right = site.key.as_deref().is_none_or(|key| given == Some(key));
    let form = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    answer(&site, right && headers.contains_key("anthropic-version"), &body, form).await
}

async fn answer(
    site: &ModelSite,
    right: bool,
    body: &[u8],
    form: impl Fn(&str) -> Value,
) -> Response {
    if !right {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    site.questions.lock().push(serde_json::from_slice(body).unwrap_or_default());
    let script = site.script.lock().clone();
    match script {
        ModelScript::Say(text) => form(&text).to_string().into_response(),
        ModelScript::SayInTurn(texts) => {
            let mut left = texts.into_iter();
            let text = left.next().unwrap_or_default();
            let left: Vec<String> = left.collect();
            if !left.is_empty() {
                *site.script.lock() = ModelScript::SayInTurn(left);
            }
            form(&text).to_string().into_response()
        }
        ModelScript::Body(body) => body.into_response(),
        ModelScript::Status(code) => {
            StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT).into_response()
        }
        ModelScript::Redirect(to) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
        ModelScript::Never => std::future::pending().await,
        ModelScript::Flood(bytes) => Body::from(vec![b' '; bytes]).into_response(),
    }
}
