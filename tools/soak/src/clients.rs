//! The clients of a soak: each opens a session, makes calls, closes it, and starts again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Soak,
    call_log::{CallEnding, CallLog},
    servers::{TOOL, name},
};

/// All clients.
#[derive(Debug)]
pub(super) struct Clients {
    tasks: JoinSet<()>,
    sessions: Arc<AtomicU64>,
}

/// The time limit for a response, which includes the queue of a slow server.
const TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Debug, Clone)]
struct SoakClient {
    index: usize,
    http: reqwest::Client,
    url: String,
    servers: usize,
    calls_a_session: u64,
    pause: Duration,
    ends: Instant,
    call_log: Arc<CallLog>,
    sessions: Arc<AtomicU64>,
}

impl Clients {
    pub(super) fn start(soak: &Soak, url: &str, call_log: &Arc<CallLog>) -> Self {
        let http = toolgate_http::client_builder().no_proxy().timeout(TIMEOUT).build();
        let http = http.unwrap_or_default();
        let sessions = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for index in 0..soak.sessions {
            let client = SoakClient {
                index,
                http: http.clone(),
                url: url.to_owned(),
                servers: soak.servers,
                calls_a_session: soak.calls_a_session,
                pause: soak.pause,
                ends: Instant::now() + soak.duration,
                call_log: Arc::clone(call_log),
                sessions: Arc::clone(&sessions),
            };
            tasks.spawn(client.live());
        }
        Self { tasks, sessions }
    }

    /// Waits for all clients and returns the number of sessions.
    pub(super) async fn finish(mut self) -> u64 {
        while self.tasks.join_next().await.is_some() {}
        self.sessions.load(Ordering::Relaxed)
    }
}

impl SoakClient {
    async fn live(self) {
        // The clients do not start at the same moment.
        tokio::time::sleep(self.pause * u32::try_from(self.index % 16).unwrap_or_default() / 16)
            .await;
        let mut number = 0;
        while Instant::now() < self.ends {
            self.sessions.fetch_add(1, Ordering::Relaxed);
            if self.index.is_multiple_of(2) {
                self.session(&mut number).await;
            } else {
                self.calls(None, &mut number).await;
            }
        }
    }

    /// A session of 2025-11-25.
    async fn session(&self, number: &mut u64) {
        let greeting = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "soak", "version": "1" },
            },
        });
        let opened = self.post(&greeting).send().await;
        let session = opened.ok().and_then(|response| {
            let id = response.headers().get("mcp-session-id")?;
            id.to_str().ok().map(str::to_owned)
        });
        let Some(session) = session else {
            let id = format!("client{}-open{number}", self.index);
            self.call_log.record(id, CallEnding::Unanswered("no session".to_owned()));
            *number += 1;
            return tokio::time::sleep(self.pause).await;
        };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let _ = in_session(self.post(&ready), &session).send().await;
        self.calls(Some(&session), number).await;
        let leaving = in_session(self.http.delete(&self.url), &session);
        let _ = leaving.send().await;
    }

    /// The calls of one session.
    async fn calls(&self, session: Option<&str>, number: &mut u64) {
        for _ in 0..self.calls_a_session {
            if Instant::now() >= self.ends {
                return;
            }
            let id = format!("client{}-{number}", self.index);
            // Every client calls every server, each in its own order.
            let server =
                (self.index * 7 + usize::try_from(*number).unwrap_or_default() * 3) % self.servers;
            *number += 1;
            let ending = self.call(&id, &format!("{}_{TOOL}", name(server)), session).await;
            self.call_log.record(id, ending);
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn call(&self, id: &str, tool: &str, session: Option<&str>) -> CallEnding {
        let mut message = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": { "id": id } },
        });
        let request = if let Some(session) = session {
            in_session(self.post(&message), session)
        } else {
            message["params"]["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let request = self.post(&message).header("mcp-protocol-version", "2026-07-28");
            request.header("mcp-method", "tools/call").header("mcp-name", tool)
        };
        let answer = match request.send().await {
            Ok(response) => answer(response, id).await,
            Err(error) => Err(CallEnding::Unanswered(format!("{error:?}"))),
        };
        answer.map_or_else(|ending| ending, |answer| read(&answer, id))
    }

    fn post(&self, message: &Value) -> RequestBuilder {
        let request = self.http.post(&self.url).json(message);
        request.header("accept", "application/json, text/event-stream")
    }
}

fn in_session(request: RequestBuilder, session: &str) -> RequestBuilder {
    request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
}

/// The message with the response, from a body of either content type.
async fn answer(response: Response, id: &str) -> Result<Value, CallEnding> {
    let status = response.status();
    let unanswered = |reason: String| CallEnding::Unanswered(format!("{status}: {reason}"));
    let body = response.text().await.map_err(|error| unanswered(format!("{error:?}")))?;
    let messages = body
        .lines()
        .map(|line| line.strip_prefix("data:").unwrap_or(line).trim())
        .filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let mut answers = messages.filter(|message| message["id"] == id);
    answers.next().ok_or_else(|| unanswered(format!("{body:.200}")))
}

/// The ending that a response means.
fn read(answer: &Value, id: &str) -> CallEnding {
    let result = &answer["result"];
    if let Some(error) = answer.get("error") {
        return CallEnding::Failed(kind_of(error["message"].as_str().unwrap_or_default()));
    }
    if result["isError"] == true {
        return CallEnding::Failed(kind_of(
            result["content"][0]["text"].as_str().unwrap_or_default(),
        ));
    }
    match result["structuredContent"]["id"].as_str() {
        Some(own) if own == id => CallEnding::Answered,
        Some(other) => CallEnding::Mixed(other.to_owned()),
        None => CallEnding::Unanswered(format!("{answer:.200}")),
    }
}

/// An error message without the parts that differ between calls.
fn kind_of(words: &str) -> String {
    const SHOWN: usize = 100;
    words.chars().filter(|character| !character.is_ascii_digit()).take(SHOWN).collect()
}
