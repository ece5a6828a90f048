//! A face that does what a test wants to see.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolgate_gateway::{Asked, Client, Era, Face, Greeting, Link, Source};
use toolgate_mcp::{ErrorObject, codes};
use toolgate_upstream::InputRequest;

/// What tests look at, and pull at.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Faces that were made.
    pub(crate) opened: AtomicUsize,
    /// Faces that were closed.
    pub(crate) closed: AtomicUsize,
    /// Calls of tools that were begun.
    pub(crate) calls: AtomicUsize,
    /// Calls of `wait` that were begun, and of those the ones that were cancelled.
    pub(crate) waiting: watch::Sender<usize>,
    pub(crate) cancelled: watch::Sender<usize>,
    /// Lets calls of `wait` come to their end.
    pub(crate) release: Notify,
    /// The way to the newest client of the legacy era, outside of requests.
    pub(crate) outlet: parking_lot::Mutex<Option<Link>>,
    /// Notifications that came.
    pub(crate) heard: parking_lot::Mutex<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct ProbeSource(pub(crate) Arc<Probe>);

#[derive(Debug)]
struct ProbeFace(Arc<Probe>);

impl Source for ProbeSource {
    fn open(&self, client: Client) -> BoxFuture<'_, Result<Arc<dyn Face>, ErrorObject>> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        if client.outlet.is_some() {
            *self.0.outlet.lock() = client.outlet;
        }
        let face = Arc::new(ProbeFace(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(face as Arc<dyn Face>)))
    }
}

impl Face for ProbeFace {
    fn greeting(&self, _era: Era) -> BoxFuture<'_, Result<Greeting, ErrorObject>> {
        let fields = json!({
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "probe", "version": "1", "futureField": 1 },
            "futureField": { "kept": true },
        });
        let fields = fields.as_object().unwrap().clone();
        Box::pin(std::future::ready(Ok(Greeting { era: Era::Legacy, fields })))
    }

    fn request(&self, asked: Asked) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(self.answer(asked))
    }

    fn notification(&self, method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
        self.0.heard.lock().push(method);
        Box::pin(std::future::ready(()))
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": {
                "count": { "type": "integer", "x-mcp-header": "Count" },
            } },
        } });
        Box::pin(std::future::ready((tool == "annotated").then_some(schema)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

impl ProbeFace {
    async fn answer(&self, asked: Asked) -> Result<Value, ErrorObject> {
        let params = asked.params.clone().unwrap_or_default();
        if asked.method == "tools/call" {
            self.0.calls.fetch_add(1, Ordering::SeqCst);
        }
        match (asked.method.as_str(), params["name"].as_str().unwrap_or_default()) {
            ("tools/list", _) => Ok(json!({ "tools": [], "futureField": [1.5] })),
            ("tools/call", "annotated" | "echo") => Ok(json!({ "echo": params["arguments"] })),
            ("tools/call", "progress") => {
                for step in 1..=3 {
                    let params = json!({ "progressToken": "t", "progress": step });
                    asked.link.notify("notifications/progress", Some(params));
                }
                Ok(json!({ "done": true }))
            }
            ("tools/call", "wait") => {
                self.0.waiting.send_modify(|count| *count += 1);
                tokio::select! {
                    () = self.0.release.notified() => Ok(json!({ "released": true })),
                    () = asked.cancel.cancelled() => {
                        self.0.cancelled.send_modify(|count| *count += 1);
                        Err(ErrorObject::internal_error("cancelled", None))
                    }
                }
            }
            ("tools/call", "ask") => {
                let first = asked.link.ask(question("first")).await?;
                let second = asked.link.ask(question("second")).await?;
                Ok(json!({ "answers": [first, second] }))
            }
            ("tools/call", "ask_both") => {
                let (first, second) = tokio::join!(
                    asked.link.ask(question("first")),
                    asked.link.ask(question("second"))
                );
                Ok(json!({ "answers": [first?, second?] }))
            }
            ("tools/call", "ask_late") => {
                asked.link.notify("notifications/message", Some(json!({ "data": "thinking" })));
                Ok(json!({ "answers": [asked.link.ask(question("only")).await?] }))
            }
            ("tools/call", _) => Err(ErrorObject::invalid_params("no such tool", None)),
            (method, _) => Err(ErrorObject::new(
                codes::METHOD_NOT_FOUND,
                format!("there is no method `{method}`"),
                None,
            )),
        }
    }
}

fn question(message: &str) -> InputRequest {
    let params = json!({ "message": message, "requestedSchema": { "type": "object" } });
    InputRequest { method: "elicitation/create".to_owned(), params: Some(params) }
}
