//! The protocol: how a fixture handles each message, on any transport.

mod calls;
mod handshake;
mod listing;
mod raw_methods;
mod resources;
mod subscriptions;
mod tasks;

pub(crate) use handshake::VERSION_KEY;
pub use tasks::TaskPlan;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::faults::AnswerFault;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::reply::{Reply, code};
use crate::{Builtin, Fixture, FixtureEra};

/// A running fixture. One engine serves all the clients of a process.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The fixture that is served.
    pub(crate) fixture: Fixture,
    /// The state of the server.
    pub(crate) state: Mutex<State>,
    /// Fires when the process is to end.
    exit: CancellationToken,
    exit_code: AtomicI32,
    /// Whether a `server/discover` was received.
    probed: AtomicBool,
    /// Grows when all HTTP sessions are forgotten.
    session_generation: AtomicU64,
}

/// The state of a running fixture.
#[derive(Debug)]
pub(crate) struct State {
    /// The tool list as it is now.
    pub(crate) tools: Vec<Value>,
    /// How many `tools/call` were received.
    pub(crate) calls: u64,
    /// The value of the tool `counter`.
    pub(crate) counter: u64,
    /// What the tool `last_cancelled` reports.
    pub(crate) last_cancelled: Value,
    /// Legacy clients, which get notifications without a subscription.
    peers: Vec<Weak<Peer>>,
    /// The open `subscriptions/listen` requests.
    subscriptions: Vec<Arc<Request>>,
    /// The last notifications of clients: `{method, params}`.
    notifications: VecDeque<Value>,
    tasks: tasks::Tasks,
    /// The roots after the last change that a client announced.
    roots: Option<Value>,
    /// The level that was set last.
    log_level: Option<Value>,
}

/// The era of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Up to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// A client's request, and what its handler needs.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) generation: Generation,
    /// The stream for the response and for messages that belong to the request.
    pub(crate) outbox: Outbox,
    pub(crate) peer: Arc<Peer>,
    cancelled: CancellationToken,
}

impl Request {
    /// The client's information about itself.
    pub(crate) fn client(&self) -> Value {
        match self.generation {
            Generation::Legacy => self.peer.introduction(),
            Generation::Modern => self.params["_meta"].clone(),
        }
    }
}

impl Engine {
    /// An engine for `fixture` without clients.
    pub(crate) fn new(fixture: Fixture) -> Arc<Self> {
        let builtins = fixture.builtins.iter().copied().map(Builtin::definition);
        let tools = builtins.chain(fixture.tools.iter().cloned()).collect();
        Arc::new(Self {
            fixture,
            state: Mutex::new(State {
                tools,
                calls: 0,
                counter: 0,
                last_cancelled: Value::Null,
                peers: Vec::new(),
                subscriptions: Vec::new(),
                notifications: VecDeque::new(),
                tasks: tasks::Tasks::new(),
                roots: None,
                log_level: None,
            }),
            exit: CancellationToken::new(),
            exit_code: AtomicI32::new(0),
            probed: AtomicBool::new(false),
            session_generation: AtomicU64::new(0),
        })
    }

    /// Handles one message. Requests are answered over `outbox` by their own tasks. They count as
    /// running when this returns, so that a cancellation right after finds them.
    pub(crate) fn receive(self: &Arc<Self>, peer: &Arc<Peer>, outbox: &Outbox, message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        let id = message.get("id").cloned();
        match (method, id) {
            (Some(method), Some(id)) => {
                // Recorded here, because the tasks of two requests may run in either order.
                if method == "server/discover" {
                    self.probed.store(true, Ordering::SeqCst);
                }
                let params = message.get("params").cloned().unwrap_or(json!({}));
                let request = Request {
                    generation: self.generation_of(&params),
                    cancelled: peer.begin(&id),
                    outbox: outbox.clone(),
                    peer: Arc::clone(peer),
                    id,
                    method,
                    params,
                };
                tokio::spawn(Arc::clone(self).serve(Arc::new(request)));
            }
            (Some(method), None) => self.note(peer, &method, &message["params"]),
            (None, Some(_)) => peer.take_answer(message),
            (None, None) => {
                let reply = Reply::error(code::INVALID_REQUEST, "Neither a method nor an id");
                outbox.answer(reply.into_message(&Value::Null).unwrap_or_default().to_string());
            }
        }
    }

    /// Handles one message as text.
    pub(crate) fn receive_text(self: &Arc<Self>, peer: &Arc<Peer>, outbox: &Outbox, text: &str) {
        if let Ok(message) = serde_json::from_str(text) {
            self.receive(peer, outbox, message);
        } else {
            let reply = Reply::error(code::PARSE_ERROR, "Parse error");
            outbox.answer(reply.into_message(&Value::Null).unwrap_or_default().to_string());
        }
    }

    /// Asks the transport to end the process. The caller never responds.
    pub(crate) async fn die(&self, code: i32) -> Reply {
        self.stop(code);
        std::future::pending().await
    }

    /// Asks the transport to end the process. The first exit code counts.
    pub(crate) fn stop(&self, code: i32) {
        if !self.exit.is_cancelled() {
            self.exit_code.store(code, Ordering::SeqCst);
            self.exit.cancel();
        }
    }

    /// Resolves with the exit code when the process is to end.
    pub(crate) async fn died(&self) -> i32 {
        self.exit.cancelled().await;
        self.exit_code.load(Ordering::SeqCst)
    }

    /// The current generation of HTTP sessions. Sessions of earlier ones are unknown.
    pub(crate) fn session_generation(&self) -> u64 {
        self.session_generation.load(Ordering::SeqCst)
    }

    /// Forgets all HTTP sessions.
    pub(crate) fn forget_sessions(&self) {
        self.session_generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Drops every client, at the end of the only connection.
    pub(crate) fn disconnect(&self) {
        self.state.lock().subscriptions.clear();
    }

    /// The era of a request with these parameters.
    pub(crate) fn generation_of(&self, params: &Value) -> Generation {
        match self.fixture.era {
            FixtureEra::Modern => Generation::Modern,
            FixtureEra::Both if params["_meta"].get(VERSION_KEY).is_some() => Generation::Modern,
            _ => Generation::Legacy,
        }
    }

    /// Handles a notification.
    fn note(self: &Arc<Self>, peer: &Arc<Peer>, method: &str, params: &Value) {
        self.record_notification(method, params);
        match method {
            "notifications/initialized" if self.fixture.faults.asks_after_handshake => {
                // The responses do not matter. The test is whether the client handles the requests.
                drop(peer.ask(&peer.standing, "roots/list", None));
                drop(peer.ask(&peer.standing, "ping", None));
            }
            "notifications/roots/list_changed" => {
                let (engine, answer) =
                    (Arc::clone(self), peer.ask(&peer.standing, "roots/list", None));
                tokio::spawn(async move {
                    let answer = answer.await.unwrap_or_default();
                    engine.state.lock().roots = Some(answer);
                });
            }
            "notifications/cancelled" => {
                // The record is made first, because a test may look for it once the token fires.
                let mut state = self.state.lock();
                if peer.cancel(&params["requestId"]) {
                    state.last_cancelled = json!({
                        "requestId": params["requestId"],
                        "reason": params["reason"],
                    });
                }
            }
            _ => {}
        }
    }

    async fn serve(self: Arc<Self>, request: Arc<Request>) {
        let reply = tokio::select! {
            reply = self.reply(&request) => reply,
            () = request.cancelled.cancelled() => Reply::Nothing,
            // Over HTTP, a modern client cancels a request by closing its stream.
            () = request.outbox.closed(), if request.generation == Generation::Modern => {
                let record = json!({ "requestId": request.id, "reason": "disconnected" });
                self.state.lock().last_cancelled = record;
                Reply::Nothing
            }
        };
        self.state.lock().subscriptions.retain(|open| !Arc::ptr_eq(open, &request));
        self.send(&request, reply).await;
        request.peer.finish(&request.id);
    }

    async fn reply(self: &Arc<Self>, request: &Arc<Request>) -> Reply {
        match request.method.as_str() {
            "server/discover" => return self.discover(request).await,
            "initialize" => return self.initialize(request).await,
            _ => {}
        }
        if let Err(refusal) = self.admit(request) {
            return refusal;
        }
        match (request.method.as_str(), request.generation) {
            ("ping", Generation::Legacy) => Reply::Result(json!({})),
            ("tools/list", _) => self.list_tools(request),
            ("tools/call", _) => self.call_tool(request).await,
            ("tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result", _)
                if !self.fixture.tasks.is_empty() =>
            {
                self.task_method(request)
            }
            ("subscriptions/listen", Generation::Modern) => self.listen(request).await,
            _ => self.raw_method(request).await,
        }
    }

    /// Sends a reply, as its fault changes it.
    async fn send(&self, request: &Request, mut reply: Reply) {
        if let (Reply::Result(Value::Object(result)), Generation::Modern) =
            (&mut reply, request.generation)
        {
            result.entry("resultType").or_insert_with(|| json!("complete"));
        }
        let Some(mut message) = reply.into_message(&request.id) else { return };
        let text = match self.fixture.faults.of_answers_to(&request.method) {
            None => message.to_string(),
            // Waiting instead of returning keeps an HTTP response open.
            Some(AnswerFault::Silence) => return request.cancelled.cancelled().await,
            Some(AnswerFault::Garbage) => "<html><body>502 Bad Gateway</body></html>".to_owned(),
            Some(AnswerFault::Truncated) => {
                let text = message.to_string();
                text.chars().take(text.chars().count() / 2).collect()
            }
            Some(AnswerFault::WrongId) => {
                message["id"] = json!("nobody-asked");
                message.to_string()
            }
            Some(AnswerFault::LoneSurrogate) => message.to_string().replace('\u{fffd}', "\\ud800"),
            Some(AnswerFault::Hollow) => json!({ "jsonrpc": "2.0", "id": request.id }).to_string(),
        };
        request.outbox.answer(text);
    }
}
