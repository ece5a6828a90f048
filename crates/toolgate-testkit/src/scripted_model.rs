//! An endpoint that plays whole answers of a model in turn, on any path.

use std::{collections::VecDeque, net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::TestkitError;

/// A model on loopback that says what its script says. Dropping it stops it.
#[derive(Debug)]
pub struct ScriptedModel {
    url: String,
    site: Arc<ScriptedSite>,
    server: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug, Default)]
struct ScriptedSite {
    answers: Mutex<VecDeque<Value>>,
    requests: Mutex<Vec<Value>>,
}

impl ScriptedModel {
    /// Starts it, without answers.
    pub async fn start() -> Result<Self, TestkitError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let site = Arc::<ScriptedSite>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&site));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, site, server })
    }

    /// The base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the answers, each for one request. After the last one, requests fail.
    pub fn script(&self, answers: Vec<Value>) {
        *self.site.answers.lock() = answers.into();
    }

    /// The bodies of all requests.
    pub fn requests(&self) -> Vec<Value> {
        self.site.requests.lock().clone()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(site): State<Arc<ScriptedSite>>, body: Bytes) -> Response {
    site.requests.lock().push(serde_json::from_slice(&body).unwrap_or_default());
    match site.answers.lock().pop_front() {
        Some(answer) => {
            ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
        }
        None => StatusCode::IM_A_TEAPOT.into_response(),
    }
}
