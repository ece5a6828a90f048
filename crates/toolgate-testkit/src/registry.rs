//! A registry of servers that speaks the API of the official one.

use std::{net::Ipv4Addr, sync::Arc};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::TestkitError;

/// How a registry misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryFault {
    /// Each page names the one before as the next.
    Circle,
    /// There is always a next page.
    Endless,
    /// It answers with this status.
    Status(u16),
    /// A page is this large.
    Flood(usize),
    /// The response is not a list.
    Nonsense,
}

/// A registry on loopback. Dropping it stops it.
#[derive(Debug)]
pub struct RegistryEndpoint {
    url: String,
    site: Arc<RegistrySite>,
    server: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug)]
struct RegistrySite {
    servers: Mutex<Vec<Value>>,
    fault: Mutex<Option<RegistryFault>>,
    requests: Mutex<usize>,
}

/// How many servers are on a page, regardless of the request.
const PAGE: usize = 2;

impl RegistryEndpoint {
    /// Starts a registry of these `server.json`s; of several versions of one name the last is the
    /// latest.
    pub async fn start(servers: Vec<Value>) -> Result<Self, TestkitError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let site = Arc::new(RegistrySite {
            servers: Mutex::new(servers),
            fault: Mutex::default(),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .route("/v0.1/servers", get(list))
            .route("/v0.1/servers/{name}/versions/{version}", get(version))
            .with_state(Arc::clone(&site));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, site, server })
    }

    /// Its base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Has these servers from now on.
    pub fn replace(&self, servers: Vec<Value>) {
        *self.site.servers.lock() = servers;
    }

    /// Misbehaves from now on, or no longer.
    pub fn misbehave(&self, fault: Option<RegistryFault>) {
        *self.site.fault.lock() = fault;
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        *self.site.requests.lock()
    }
}

impl Drop for RegistryEndpoint {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn list(State(site): State<Arc<RegistrySite>>, RawQuery(asked): RawQuery) -> Response {
    *site.requests.lock() += 1;
    let asked = asked.unwrap_or_default();
    let cursor = asked.split('&').find_map(|pair| pair.strip_prefix("cursor="));
    let place: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
    let page = |servers: &[Value], next: Option<String>| {
        let servers: Vec<Value> = servers.iter().map(described).collect();
        let count = servers.len();
        let metadata = json!({ "count": count, "nextCursor": next });
        json!({ "servers": servers, "metadata": metadata }).to_string().into_response()
    };
    match *site.fault.lock() {
        Some(RegistryFault::Circle) => {
            let next = if place == 0 { "1" } else { "0" };
            return page(&[], Some(next.to_owned()));
        }
        Some(RegistryFault::Endless) => return page(&[], Some((place + 1).to_string())),
        Some(RegistryFault::Status(code)) => {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::IM_A_TEAPOT);
            return status.into_response();
        }
        Some(RegistryFault::Flood(bytes)) => return " ".repeat(bytes).into_response(),
        Some(RegistryFault::Nonsense) => return "{\"servers\": 3}".into_response(),
        None => {}
    }
    let servers = latest(&site.servers.lock());
    let end = (place + PAGE).min(servers.len());
    let shown = servers.get(place..end).unwrap_or_default();
    page(shown, (end < servers.len()).then(|| end.to_string()))
}

async fn version(
    State(site): State<Arc<RegistrySite>>,
    Path((name, version)): Path<(String, String)>,
) -> Response {
    *site.requests.lock() += 1;
    let servers = site.servers.lock();
    let fits = |server: &&Value| {
        server["name"] == name.as_str()
            && (version == "latest" || server["version"] == version.as_str())
    };
    match servers.iter().rfind(fits) {
        Some(server) => described(server).to_string().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn latest(servers: &[Value]) -> Vec<Value> {
    let mut latest: Vec<Value> = Vec::new();
    for server in servers {
        match latest.iter_mut().find(|known| known["name"] == server["name"]) {
            Some(known) => *known = server.clone(),
            None => latest.push(server.clone()),
        }
    }
    latest
}

fn described(server: &Value) -> Value {
    let official = json!({ "status": "active", "isLatest": true });
    json!({
        "server": server,
        "_meta": { "io.modelcontextprotocol.registry/official": official },
    })
}
