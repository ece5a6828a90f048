//! The interface between the transports and what answers requests, at the level of JSON.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_policy::CallerFacts;

use crate::{
    channel::ClientChannel,
    era::{DeclaredMeta, Era, ServerInfo},
};

/// Answers the requests of one client. The transport does the handshake, framing, ids, sessions and eras;
/// a service gets everything else.
pub trait McpService: fmt::Debug + Send + Sync + 'static {
    /// The result of the handshake, for a client of this era.
    fn server_info(&self, era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>>;

    /// Answers a request.
    fn request(&self, request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    /// Receives a notification.
    fn notification(&self, method: String, params: Option<Value>) -> BoxFuture<'_, ()>;

    /// The input schema of a tool that wants arguments repeated as HTTP headers.
    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>>;

    /// Whether a `requestState` that the transport does not know may belong to a server behind the
    /// service.
    fn has_request_states(&self) -> bool {
        false
    }

    /// Releases what the service holds.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Completes when the service can no longer answer. Its clients must start a new session.
    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Creates services: one for each legacy session, and one for each modern client.
pub trait ServiceFactory: fmt::Debug + Send + Sync + 'static {
    /// Creates a service for a client.
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>>;

    /// Whether modern clients with different capabilities need different services.
    fn depends_on_capabilities(&self) -> bool {
        false
    }

    /// Changes if modern clients need another service than before.
    fn generation(&self) -> u64 {
        0
    }

    /// Whether the HTTP headers `traceparent` and `tracestate` are copied into the request. A factory
    /// that passes requests on unchanged does not want this.
    fn uses_trace_headers(&self) -> bool {
        false
    }
}

/// A request, and the channel back to its client.
#[derive(Debug)]
pub struct IncomingRequest {
    /// The client's id, as it was sent.
    pub id: Value,
    /// The method.
    pub method: String,
    /// The parameters as they were sent, including `_meta`.
    pub params: Option<Value>,
    /// The era of the client.
    pub era: Era,
    /// For notifications and input requests that belong to this request.
    pub channel: ClientChannel,
    /// Cancelled when the client no longer waits for the response.
    pub cancel: CancellationToken,
}

/// The client of a service.
#[derive(Debug)]
pub struct ClientInfo {
    /// The identity that the transport established.
    pub caller: AuthenticatedClient,
    /// The era of the client.
    pub era: Era,
    /// The client's `clientInfo`, as it was sent.
    pub info: Value,
    /// The client's capabilities.
    pub capabilities: JsonObject,
    /// The protocol version that a legacy client requested.
    pub requested_version: Option<String>,
    /// For messages that belong to no request. Modern clients have no such channel.
    pub channel: Option<ClientChannel>,
}

impl ClientInfo {
    /// The client of a modern request.
    pub(crate) fn modern(caller: AuthenticatedClient, declared: DeclaredMeta<'_>) -> Self {
        Self {
            caller,
            era: Era::Modern,
            info: declared.client_info().cloned().unwrap_or_else(|| json!({})),
            capabilities: declared.capabilities().cloned().unwrap_or_default(),
            requested_version: None,
            channel: None,
        }
    }

    /// The name and version that the client claims. They prove nothing.
    pub fn claimed_name(&self) -> String {
        claimed_name(&self.info)
    }
}

/// The name and version in a `clientInfo`.
pub(crate) fn claimed_name(info: &Value) -> String {
    let field = |key: &str| {
        let text = info.get(key).and_then(Value::as_str).unwrap_or_default();
        text.chars().take(MAX_NAME_CHARACTERS).collect::<String>()
    };
    format!("{} {}", field("name"), field("version"))
}

const MAX_NAME_CHARACTERS: usize = 64;

/// An identity that the transport established.
///
/// Two clients with one identity and different rights, such as the scopes of a token, are two.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AuthenticatedClient {
    identity: Arc<str>,
    facts: Arc<CallerFacts>,
}

/// The identities of tokens never have this form.
const LOCAL: &str = "local";

impl AuthenticatedClient {
    /// The user of this machine: anybody who reaches a loopback address or stdin.
    pub fn local() -> Self {
        Self::named(LOCAL)
    }

    /// Whether this is [`AuthenticatedClient::local`].
    pub fn is_local(&self) -> bool {
        &*self.identity == LOCAL
    }

    /// A client with this identity. The identity is not a secret.
    pub fn named(identity: &str) -> Self {
        Self { identity: identity.into(), facts: Arc::default() }
    }

    /// The same client, with what its credential says of it.
    #[must_use]
    pub fn with_facts(self, facts: CallerFacts) -> Self {
        Self { facts: Arc::new(facts), ..self }
    }

    /// What its credential says of it.
    pub fn facts(&self) -> &CallerFacts {
        &self.facts
    }

    /// The identity.
    pub fn as_str(&self) -> &str {
        &self.identity
    }
}

impl fmt::Debug for AuthenticatedClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthenticatedClient({})", self.identity)
    }
}

/// The owner of a session or a parked request. Only the same caller may continue it, and only at the
/// same endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) caller: AuthenticatedClient,
    pub(crate) path: Arc<str>,
}
