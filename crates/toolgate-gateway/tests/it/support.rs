//! A running endpoint, and the messages that tests send often.

use std::{net::SocketAddr, sync::Arc};

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{HttpSettings, ServiceFactory, serve_http};

use crate::probe::{Probe, ProbeFactory};

pub(crate) use toolgate_testkit::deadline;

/// A running endpoint.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) client: reqwest::Client,
    pub(crate) probe: Arc<Probe>,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

/// A legacy session.
pub(crate) struct Session<'a> {
    endpoint: &'a Endpoint,
    pub(crate) id: String,
}

/// The events of a response.
pub(crate) struct Events {
    response: Response,
    text: String,
}

/// One event.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: Option<String>,
}

impl Endpoint {
    /// Starts an endpoint with a probe service.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts an endpoint with changed settings.
    pub(crate) async fn with(change: impl FnOnce(&mut HttpSettings)) -> Self {
        let probe = Arc::new(Probe::default());
        let factory = Arc::new(ProbeFactory(Arc::clone(&probe)));
        Self::of(factory, probe, change).await
    }

    /// Starts an endpoint with another service.
    pub(crate) async fn of(
        factory: Arc<dyn ServiceFactory>,
        probe: Arc<Probe>,
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut settings = HttpSettings::new(factory);
        change(&mut settings);
        let stop = CancellationToken::new();
        let serving = Some(tokio::spawn(serve_http(listener, settings, stop.clone())));
        let client =
            toolgate_http::client_builder().no_proxy().timeout(deadline()).build().unwrap();
        Self { address, client, probe, stop, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A POST with the headers that all clients send.
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.post_text(body.to_string())
    }

    pub(crate) fn post_text(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.client
            .post(self.url())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body)
    }

    /// A modern request with the required headers.
    pub(crate) fn modern(&self, method: &str, params: Value) -> RequestBuilder {
        let params = modern(params);
        let name = params["name"].as_str().map(str::to_owned);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self
            .post(&body)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// Initializes a session.
    pub(crate) async fn session(&self) -> Session<'_> {
        self.session_of("2025-11-25").await
    }

    pub(crate) async fn session_of(&self, version: &str) -> Session<'_> {
        let response = self.post(&initialize(version)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        Session { endpoint: self, id }
    }

    /// Stops the endpoint and waits for it.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        let serving = self.serving.take().unwrap();
        tokio::time::timeout(deadline(), serving).await.unwrap().unwrap();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Session<'_> {
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.endpoint.post(body).header("mcp-session-id", &self.id)
    }

    pub(crate) fn get(&self) -> RequestBuilder {
        let request = self.endpoint.client.get(self.endpoint.url());
        request.header("accept", "text/event-stream").header("mcp-session-id", &self.id)
    }

    pub(crate) fn delete(&self) -> RequestBuilder {
        let request = self.endpoint.client.delete(self.endpoint.url());
        request.header("mcp-session-id", &self.id)
    }

    /// Begins a call; gives its events.
    pub(crate) async fn call(&self, id: u64, tool: &str) -> Events {
        let response = self.post(&call(id, tool)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Events::new(response)
    }
}

impl Events {
    pub(crate) fn new(response: Response) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next event, or nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event = read(&self.text[..end]);
                self.text.drain(..end + 2);
                if event != Event::default() {
                    return Some(event);
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the stream has ended");
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                return serde_json::from_str(&data).unwrap();
            }
        }
    }

    /// All messages to the end.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                all.push(serde_json::from_str(&data).unwrap());
            }
        }
        all
    }
}

fn read(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => event.id = Some(id.to_owned()),
            Some(("retry", retry)) => event.retry = retry.parse().ok(),
            Some(("data", data)) => event.data = Some(data.to_owned()),
            _ => assert!(line.starts_with(':'), "{line}"),
        }
    }
    event
}

/// The capabilities of test clients.
pub(crate) fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The first request of a client of the legacy era.
pub(crate) fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities(),
        "clientInfo": { "name": "test", "version": "1" },
    } })
}

pub(crate) fn call(id: u64, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": { "n": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// The parameters of a request of the modern era.
pub(crate) fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities();
    params
}

/// The status, and the code of the error in the body.
pub(crate) async fn refused(request: RequestBuilder) -> (u16, i64) {
    let response = request.send().await.unwrap();
    let status = response.status();
    assert!(!status.is_success(), "{status}");
    let body: Value = response.json().await.unwrap();
    (status.as_u16(), body["error"]["code"].as_i64().unwrap())
}

/// The status alone.
pub(crate) async fn status(request: RequestBuilder) -> StatusCode {
    request.send().await.unwrap().status()
}

/// The body of an answer that is not a stream.
pub(crate) async fn body(request: RequestBuilder) -> Value {
    request.send().await.unwrap().json().await.unwrap()
}

/// Waits until a counter reaches a value.
pub(crate) async fn reaches(counter: &watch::Sender<usize>, count: usize) {
    let mut counter = counter.subscribe();
    let waited = tokio::time::timeout(deadline(), counter.wait_for(|now| *now >= count)).await;
    waited.expect("the counter does not reach the value").unwrap();
}
