//! A service with tools for tests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolgate_gateway::{
    ClientChannel, ClientInfo, Era, IncomingRequest, McpService, ServerInfo, ServiceFactory,
};
use toolgate_mcp::{ErrorObject, codes};
use toolgate_upstream::InputRequest;

/// Counters and controls for tests.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// Services that were created.
    pub(crate) opened: AtomicUsize,
    /// Services that were closed.
    pub(crate) closed: AtomicUsize,
    /// Calls of tools that were begun.
    pub(crate) calls: AtomicUsize,
    /// Calls of `wait` that were begun, and of those the ones that were cancelled.
    pub(crate) waiting: watch::Sender<usize>,
    pub(crate) cancelled: watch::Sender<usize>,
    /// Lets calls of `wait` come to their end.
    pub(crate) release: Notify,
    /// The channel to the newest legacy client, outside of requests.
    pub(crate) channel: parking_lot::Mutex<Option<ClientChannel>>,
    /// Notifications that came.
    pub(crate) notifications: parking_lot::Mutex<Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct ProbeFactory(pub(crate) Arc<Probe>);

#[derive(Debug)]
struct ProbeService(Arc<Probe>);

impl ServiceFactory for ProbeFactory {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        if client.channel.is_some() {
            *self.0.channel.lock() = client.channel;
        }
        let service = Arc::new(ProbeService(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(service as Arc<dyn McpService>)))
    }
}

impl McpService for ProbeService {
    fn server_info(&self, _era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
        let fields = json!({
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "probe", "version": "1", "futureField": 1 },
            "futureField": { "kept": true },
        });
        let fields = fields.as_object().unwrap().clone();
        Box::pin(std::future::ready(Ok(ServerInfo { era: Era::Legacy, fields })))
    }

    fn request(&self, request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(self.answer(request))
    }

    fn notification(&self, method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
        self.0.notifications.lock().push(method);
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

impl ProbeService {
    async fn answer(&self, request: IncomingRequest) -> Result<Value, ErrorObject> {
        let params = request.params.clone().unwrap_or_default();
        if request.method == "tools/call" {
            self.0.calls.fetch_add(1, Ordering::SeqCst);
        }
        match (request.method.as_str(), params["name"].as_str().unwrap_or_default()) {
            ("tools/list", _) => Ok(json!({ "tools": [], "futureField": [1.5] })),
            ("tools/call", "annotated" | "echo") => Ok(json!({ "echo": params["arguments"] })),
            ("tools/call", "progress") => {
                for step in 1..=3 {
                    let params = json!({ "progressToken": "t", "progress": step });
                    request.channel.notify("notifications/progress", Some(params));
                }
                Ok(json!({ "done": true }))
            }
            ("tools/call", "wait") => {
                self.0.waiting.send_modify(|count| *count += 1);
                tokio::select! {
                    () = self.0.release.notified() => Ok(json!({ "released": true })),
                    () = request.cancel.cancelled() => {
                        self.0.cancelled.send_modify(|count| *count += 1);
                        Err(ErrorObject::internal_error("cancelled", None))
                    }
                }
            }
            ("tools/call", "ask") => {
                let first = request.channel.request_input(question("first")).await?;
                let second = request.channel.request_input(question("second")).await?;
                Ok(json!({ "answers": [first, second] }))
            }
            ("tools/call", "ask_both") => {
                let (first, second) = tokio::join!(
                    request.channel.request_input(question("first")),
                    request.channel.request_input(question("second"))
                );
                Ok(json!({ "answers": [first?, second?] }))
            }
            ("tools/call", "ask_late") => {
                request
                    .channel
                    .notify("notifications/message", Some(json!({ "data": "thinking" })));
                Ok(json!({ "answers": [request.channel.request_input(question("only")).await?] }))
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
