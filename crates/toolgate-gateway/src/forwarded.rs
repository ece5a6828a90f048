//! A server that runs once in a fleet, for the other nodes.
//!
//! The node that sends a request has judged it, and records it. So nothing is judged here: what arrives goes to the
//! server, and its progress, log messages and input requests go back. Only nodes get here.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast::error::RecvError, mpsc};
use toolgate_broker::BrokerError;
use toolgate_catalog::ServerName;
use toolgate_host::{HostEvent, NodeFilter, NodeListener, ToolHost};
use toolgate_mcp::{ErrorObject, JsonObject, LogLevel, extensions, meta, methods};
use toolgate_upstream::{
    CallError, CallOptions, ConnectFailure, InputHandler, LogSink, Progress, ServerPlacement,
    StateKind, forwarded_error,
};

use crate::{
    era::{self, Era, ServerInfo},
    reports::with_reports,
    service::{ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

/// The hosts of this process.
pub trait NodeHosts: fmt::Debug + Send + Sync {
    /// All hosts, those of namespaces too.
    fn hosts(&self) -> Vec<ToolHost>;
}

/// Answers the requests of other nodes to the server of one scope.
#[derive(Debug, Clone)]
pub(crate) struct ForwardedServer {
    hosts: Arc<dyn NodeHosts>,
    scope: Arc<str>,
}

/// Reports and messages that wait for a slow node. Further ones are lost; the result never is.
const MAX_QUEUED: usize = 256;

impl ForwardedServer {
    /// The server of a scope; `None` if no host of this process has it.
    pub(crate) fn find(hosts: &Arc<dyn NodeHosts>, scope: &str) -> Option<Self> {
        let server = Self { hosts: Arc::clone(hosts), scope: scope.into() };
        server.known().map(|_| server)
    }

    fn known(&self) -> Option<(ToolHost, ServerName, Arc<dyn ServerPlacement>)> {
        self.hosts.hosts().into_iter().find_map(|host| {
            let (name, placement) = host.servers().placed(&self.scope)?;
            Some((host, name, placement))
        })
    }

    /// The server, if this node runs it. If it does not, nothing is sent.
    async fn server(&self) -> Result<(ToolHost, ServerName), ErrorObject> {
        let Some((host, name, placement)) = self.known() else {
            let unknown = CallError::UnknownServer("of another node".into());
            return Err(forwarded_error(&unknown));
        };
        if placement.is_here() {
            return Ok((host, name));
        }
        let refused =
            |failure| forwarded_error(&CallError::NotConnected { server: name.clone(), failure });
        match placement.place().await {
            Ok(placed) if placed.elsewhere.is_none() => Ok((host, name)),
            Ok(_) => Err(refused(ConnectFailure::new("another node runs it now", "try again"))),
            Err(failure) => Err(refused(failure)),
        }
    }

    /// Passes a request on to the server.
    async fn send(
        &self,
        mut params: JsonObject,
        request: IncomingRequest,
    ) -> Result<Value, ErrorObject> {
        let (host, server) = self.server().await?;
        let IncomingRequest { method, channel, cancel, .. } = request;
        let meta = match params.shift_remove("_meta") {
            Some(Value::Object(meta)) if !meta.is_empty() => Some(meta),
            _ => None,
        };
        let field = |key: &str| meta.as_ref().and_then(|meta| meta.get(key)).cloned();
        let token = field(meta::PROGRESS_TOKEN);
        let level = field(meta::LOG_LEVEL).and_then(|level| LogLevel::named(level.as_str()?));
        let (progress, reports) = mpsc::channel(MAX_QUEUED);
        let (messages, logged) = mpsc::channel(MAX_QUEUED);
        let options = CallOptions {
            meta,
            progress: token.is_some().then_some(progress),
            cancel,
            input_handler: Some(Arc::new(channel.clone()) as Arc<dyn InputHandler>),
            log: level.map(|level| LogSink { level: Some(level), messages }),
            ..CallOptions::default()
        };
        let sending = async {
            let sent = host.broker().forward(&server, &method, params, options).await;
            sent.map_err(|error| match error {
                BrokerError::Call(error) => forwarded_error(&error),
                error => ErrorObject::internal_error(error.to_string(), None),
            })
        };
        let report = |report: Progress| {
            if let Some(token) = &token {
                channel.notify(methods::PROGRESS, Some(report.into_params(token)));
            }
        };
        let pass_on = |message| channel.notify(methods::LOG_MESSAGE, Some(message));
        let sending = std::pin::pin!(sending);
        with_reports(sending, (Some(reports), report), (Some(logged), pass_on)).await
    }

    /// Passes on what the server says outside of calls and the other node has asked for, until that node no longer
    /// listens.
    async fn listen(
        &self,
        params: &JsonObject,
        request: IncomingRequest,
    ) -> Result<Value, ErrorObject> {
        let (host, server) = self.server().await?;
        let mut events = host.events().subscribe();
        let wanted = params.get("notifications").cloned().unwrap_or_else(|| json!({}));
        let has_tools = wanted.get("toolsListChanged") == Some(&Value::Bool(true));
        let (filter, place) = (NodeFilter::read(&wanted), (host.clone(), server.clone()));
        // In a task of its own, so that a node that leaves meanwhile leaves no subscription half done.
        let opening =
            tokio::spawn(async move { NodeListener::open(&place.0, &place.1, filter).await });
        let mut said =
            opening.await.map_err(|error| ErrorObject::internal_error(error.to_string(), None))?;
        let subscription = json!({ meta::SUBSCRIPTION_ID: request.id });
        let accepted = json!({ "_meta": subscription, "notifications": wanted });
        request.channel.notify(methods::LISTEN_ACKNOWLEDGED, Some(accepted));
        let listening = async {
            loop {
                let (method, params) = tokio::select! {
                    event = events.recv() => match event {
                        Ok(HostEvent::ToolsListed { server: listed })
                            if has_tools && listed == server => (methods::TOOLS_CHANGED, None),
                        // It may have been among those that were lost.
                        Err(RecvError::Lagged(_)) if has_tools => (methods::TOOLS_CHANGED, None),
                        Err(RecvError::Closed) => return,
                        _ => continue,
                    },
                    next = said.next() => match next {
                        Some(next) => next,
                        None => return,
                    },
                };
                let mut params = match params {
                    Some(Value::Object(params)) => params,
                    _ => Map::new(),
                };
                if method != methods::LOG_MESSAGE {
                    // The id that a server may have written there is that of a request of this node.
                    let own = params.entry("_meta").or_insert_with(|| json!({}));
                    if let Value::Object(own) = own {
                        own.insert(meta::SUBSCRIPTION_ID.to_owned(), request.id.clone());
                    }
                }
                request.channel.notify(method, Some(Value::Object(params)));
            }
        };
        tokio::select! {
            () = listening => {}
            () = request.cancel.cancelled() => {}
        }
        Ok(json!({ "_meta": subscription }))
    }

    /// What the server says of itself, without what is not passed on.
    async fn described(&self) -> Result<ServerInfo, ErrorObject> {
        let (host, server) = self.server().await?;
        host.servers().retry(server.as_str());
        host.servers().settled(server.as_str()).await;
        let state = host.servers().state(server.as_str()).unwrap_or_default();
        let (StateKind::Ready, Some(handshake)) = (state.kind, state.handshake) else {
            let unknown = || ConnectFailure::new("it does not start", "try again");
            let failure = state.failure.unwrap_or_else(unknown);
            return Err(forwarded_error(&CallError::NotConnected { server, failure }));
        };
        let mut capabilities = handshake.capabilities;
        // This node waits for tasks itself.
        capabilities.shift_remove("tasks");
        if let Some(Value::Object(declared)) = capabilities.get_mut(extensions::CAPABILITY) {
            declared.shift_remove(extensions::TASKS);
        }
        if let Some(Value::Object(logging)) = capabilities.get_mut("logging") {
            logging.insert(meta::LISTENED_LOGS.to_owned(), Value::Bool(true));
        }
        let mut fields = Map::new();
        fields.insert("capabilities".to_owned(), Value::Object(capabilities));
        fields.insert("serverInfo".to_owned(), handshake.server_info);
        fields.extend(handshake.instructions.map(|text| ("instructions".to_owned(), text.into())));
        Ok(ServerInfo { era: Era::Legacy, fields })
    }
}

impl McpService for ForwardedServer {
    fn server_info(&self, _era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
        Box::pin(self.described())
    }

    fn request(&self, mut request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            let (era, method) = (request.era, request.method.clone());
            let params = match request.params.take() {
                Some(Value::Object(params)) => params,
                _ => Map::new(),
            };
            let outcome = match method.as_str() {
                methods::LISTEN => return self.listen(&params, request).await,
                _ => self.send(params, request).await,
            };
            era::adapt_outcome(era, &method, outcome)
        })
    }

    fn notification(&self, _method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn header_schema<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(std::future::ready(None))
    }
}

impl ServiceFactory for ForwardedServer {
    fn open(&self, _client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
        Box::pin(std::future::ready(Ok(Arc::new(self.clone()) as Arc<dyn McpService>)))
    }
}
