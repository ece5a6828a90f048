//! `toolgate serve --http` as a process, and a client of 2026-07-28 that hides nothing.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use toolgate_testkit::within;

use crate::support::{Workplace, program, signal};

const VERSION: &str = "2026-07-28";

/// A running gateway. It ends with this.
#[derive(Debug)]
pub(crate) struct HttpGateway {
    child: Child,
    url: String,
    said: mpsc::UnboundedReceiver<String>,
}

/// A client of it, without a session.
#[derive(Debug)]
pub(crate) struct HttpClient {
    url: String,
    http: reqwest::Client,
    name: &'static str,
    capabilities: Value,
    headers: Vec<(String, String)>,
}

impl Workplace {
    /// Starts `toolgate serve --http` on a free port of the loopback device.
    pub(crate) async fn serve_http(&self, arguments: &[&str]) -> HttpGateway {
        let mut child = Command::new(program())
            .args(["serve", "--http", "127.0.0.1:0", "--config"])
            .arg(self.config())
            .args(arguments)
            .current_dir(self.path())
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let begin = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some((_, url)) = line.split_once("listens on ") {
                    return url.trim().to_owned();
                }
            }
            panic!("the gateway ended before it served");
        };
        let url = within("the address", begin).await;
        // Read on, because a gateway whose stderr is full stops.
        let (sender, said) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = sender.send(line);
            }
        });
        HttpGateway { child, url, said }
    }
}

impl HttpGateway {
    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Waits for a line on stderr with this text.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        let saying = async {
            while let Some(line) = self.said.recv().await {
                if line.contains(text) {
                    return line;
                }
            }
            panic!("the gateway ended before it said `{text}`");
        };
        within(text, saying).await
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn client(&self) -> HttpClient {
        HttpClient::new(self.url.clone())
    }

    /// A client of what is served under this name.
    pub(crate) fn client_of(&self, namespace: &str) -> HttpClient {
        HttpClient::new(format!("{}/{namespace}", self.url))
    }

    /// Asks it to end, and waits for a good end.
    pub(crate) async fn stop(self) {
        self.stop_by("TERM").await;
    }

    /// Kills it, as a power cut does.
    pub(crate) async fn stop_by_kill(mut self) {
        within("the end of the gateway", self.child.kill()).await.unwrap();
    }

    /// The same by another signal.
    pub(crate) async fn stop_by(mut self, name: &str) {
        signal(name, self.child.id().unwrap());
        let status = within("the end of the gateway", self.child.wait()).await;
        assert_eq!(status.unwrap().code(), Some(0));
    }
}

impl HttpClient {
    fn new(url: String) -> Self {
        Self {
            url,
            http: toolgate_http::client_builder().build().unwrap(),
            name: "test",
            capabilities: json!({}),
            headers: Vec::new(),
        }
    }

    /// The same client, which can be asked this.
    pub(crate) fn with_capabilities(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// The same client under another name: the gateway has a session for each.
    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Sends a header with every request from now on.
    pub(crate) fn send_header(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Sends a request; gives its result.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let mut message = self.send(method, params).await;
        assert!(message.get("error").is_none(), "{method}: {message}");
        message["result"].take()
    }

    /// Sends a request that is not to succeed; gives its error.
    pub(crate) async fn refused(&self, method: &str, params: Value) -> Value {
        let mut message = self.send(method, params).await;
        assert!(message.get("result").is_none(), "{method}: {message}");
        message["error"].take()
    }

    /// The whole answer, whether it is a result or an error.
    pub(crate) async fn answer(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await
    }

    async fn send(&self, method: &str, params: Value) -> Value {
        let answer = self.post(method, params).await.text().await.unwrap();
        // One JSON text, or a stream of events of which the last is the answer.
        let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = events.map(str::trim).rfind(|data| !data.is_empty()).unwrap_or(&answer);
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{method}: {error}: {answer}"))
    }

    /// Sends a request; gives the response as it begins.
    pub(crate) async fn post(&self, method: &str, params: Value) -> reqwest::Response {
        self.try_post(method, params).await.unwrap()
    }

    /// Sends a request to a gateway that may be gone.
    pub(crate) async fn try_post(
        &self,
        method: &str,
        mut params: Value,
    ) -> reqwest::Result<reqwest::Response> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": { "name": self.name, "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        let mut request = self
            .http
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", method);
        if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
            request = request.header("mcp-name", name);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        request.json(&body).send().await
    }

    pub(crate) async fn list(&self) -> Vec<Value> {
        let mut result = self.request("tools/list", json!({})).await;
        serde_json::from_value(result["tools"].take()).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}
