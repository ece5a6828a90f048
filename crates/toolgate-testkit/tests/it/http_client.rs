//! A tiny HTTP client. It speaks HTTP/1.0, whose bodies simply end with the connection.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use toolgate_testkit::within;

/// Where to send requests, and the headers that each of them has.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    address: String,
    headers: Vec<(String, String)>,
}

/// A response whose body may still be under way.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: BufReader<TcpStream>,
}

impl HttpClient {
    pub(crate) fn new(url: &str) -> Self {
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        Self { address: address.to_owned(), headers: Vec::new() }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) async fn send(&self, verb: &str, body: &str) -> Response {
        self.try_send(verb, body).await.expect("a response")
    }

    /// Like [`send`](Self::send); nothing if the server hangs up instead of answering.
    pub(crate) async fn try_send(&self, verb: &str, body: &str) -> Option<Response> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut request = format!("{verb} /mcp HTTP/1.0\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in &self.headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        request.push_str(body);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut body = BufReader::new(stream);
        let status_line = line(&mut body).await;
        let status = status_line.split(' ').nth(1)?.parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let header = line(&mut body).await;
            let Some((name, value)) = header.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Some(Response { status, headers, body })
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Response {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send("POST", &message.to_string()).await
    }

    /// Shakes hands and returns a client that names the session.
    pub(crate) async fn initialize(self) -> Self {
        let response = self.request("initialize", json!({ "capabilities": {} })).await;
        assert_eq!(response.status, 200);
        let session = response.header("mcp-session-id").unwrap().to_owned();
        let client = self.with_header("mcp-session-id", &session);
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.send("POST", &message.to_string()).await.status, 202);
        client
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The whole body as JSON.
    pub(crate) async fn json(mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let mut bytes = Vec::new();
        let read = self.body.read_to_end(&mut bytes);
        within("the end of the body", read).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The next event's data, or nothing at the end of the stream.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        loop {
            let line = line(&mut self.body).await;
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            if line.is_empty() && self.body.buffer().is_empty() && self.ended().await {
                return None;
            }
        }
    }

    async fn ended(&mut self) -> bool {
        within("an event", self.body.fill_buf()).await.unwrap().is_empty()
    }
}

/// The next line; empty at the end, which a broken connection is too.
async fn line(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = reader.read_line(&mut line);
    let _ = within("a line", read).await;
    line.trim_end().to_owned()
}
