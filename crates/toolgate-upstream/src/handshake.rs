//! From an open transport to a connection, in either era.

use std::{fmt, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleClient, Service,
    model::{
        ClientCapabilities, ClientResult, CustomRequest, CustomResult, Implementation,
        InitializeRequestParams, ProtocolVersion, ServerNotification, ServerRequest,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, InboundStreamOrigin, NotificationContext,
        RequestContext, RunningService, serve_client_with_lifecycle_and_ct,
    },
    transport::Transport,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{Era, JsonObject};

use crate::{
    input_handler::InputRequest,
    questions, raw,
    tap::{Heard, Tap, TapOptions},
};

/// What a server said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Handshake {
    /// The lifecycle it speaks.
    pub era: Era,
    /// The protocol version that was agreed on.
    pub protocol_version: String,
    /// How it calls itself.
    pub server_info: Value,
    /// Its words to the model.
    pub instructions: Option<String>,
    /// Whether it says that it announces changes of its tools.
    pub announces_changes: bool,
    /// What it can do: `resources`, `prompts`, `completions`, `logging` and so on, as it declared it.
    pub capabilities: JsonObject,
}

impl Handshake {
    /// The lists whose changes it says it announces.
    pub(crate) fn announced(&self) -> SubscriptionFilter {
        let announces = |list: &str| {
            let capability = self.capabilities.get(list);
            let flag = capability.and_then(|capability| capability.get("listChanged"));
            flag.and_then(Value::as_bool).filter(|announces| *announces)
        };
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = announces("tools");
        filter.prompts_list_changed = announces("prompts");
        filter.resources_list_changed = announces("resources");
        filter
    }
}

/// A server's words about itself are kept for as long as it is; longer ones are cut or left out.
const MAX_WORDS: usize = 256 * 1024;

/// Whether to ask which era a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approach {
    /// Ask, and go on with what it says.
    Probe,
    /// It is known.
    Known(Era),
}

impl fmt::Display for Approach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Probe => "to ask which handshake it wants",
            Self::Known(Era::Legacy) => "the older handshake",
            Self::Known(Era::Modern) => "the newer handshake",
        })
    }
}

pub(crate) type Running = RunningService<RoleClient, Client>;

/// How a transport takes a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Messages one after the other: what is not answered holds nothing up.
    Pipes,
    /// Each request waits for its response. Results come sealed.
    Http,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum GreetError {
    /// The probe was not answered, and the transport is stuck with it.
    Unanswered,
    Failed(Box<ClientInitializeError>),
}

/// Greets the server.
pub(crate) async fn greet<T>(
    transport: T,
    heard: Arc<Heard>,
    manner: Manner,
    approach: Approach,
    patience: Duration,
    cancel: CancellationToken,
) -> Result<(Running, Handshake), GreetError>
where
    T: Transport<RoleClient> + Send + 'static,
{
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match approach {
        Approach::Probe => ClientLifecycleMode::Auto {
            preferred_versions: modern,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Approach::Known(Era::Legacy) => ClientLifecycleMode::Initialize,
        Approach::Known(Era::Modern) => {
            ClientLifecycleMode::Discover { preferred_versions: modern }
        }
    };
    let probes = approach == Approach::Probe;
    let options = TapOptions {
        sealed: manner == Manner::Http,
        probe_patience: (probes && manner == Manner::Pipes).then_some(patience),
    };
    let stuck = async {
        tokio::time::sleep(patience).await;
        // An answered probe leaves the rest of the handshake its time.
        if heard.probe_is_answered() {
            std::future::pending::<()>().await;
        }
    };
    let client = Client { heard: Arc::clone(&heard) };
    let tap = Tap::new(transport, Arc::clone(&heard), options);
    let running = tokio::select! {
        biased;
        running = serve_client_with_lifecycle_and_ct(client, tap, lifecycle, cancel) => running,
        () = stuck, if probes && manner == Manner::Http => return Err(GreetError::Unanswered),
    };
    let running = running.map_err(|error| GreetError::Failed(Box::new(error)))?;
    let handshake = read_handshake(&running);
    Ok((running, handshake))
}

fn read_handshake(running: &Running) -> Handshake {
    let info = running.peer().peer_info();
    let version = info.as_ref().map(|info| info.protocol_version.as_str().to_owned());
    let version = version.unwrap_or_default();
    let era = if version.as_str() >= ProtocolVersion::NO_INITIALIZE.as_str() {
        Era::Modern
    } else {
        Era::Legacy
    };
    let server_info = info
        .as_ref()
        .and_then(|info| serde_json::to_value(&info.server_info).ok())
        .filter(|info| info.to_string().len() <= MAX_WORDS)
        .unwrap_or_default();
    let announces_changes = info
        .as_ref()
        .and_then(|info| info.capabilities.tools.as_ref())
        .and_then(|tools| tools.list_changed)
        .unwrap_or_default();
    let instructions = info.as_ref().and_then(|info| info.instructions.as_deref());
    let instructions =
        instructions.map(|text| text[..text.floor_char_boundary(MAX_WORDS)].to_owned());
    let capabilities = info
        .as_ref()
        .and_then(|info| serde_json::to_value(&info.capabilities).ok())
        .map(raw::capabilities)
        .filter(|capabilities| json!(capabilities).to_string().len() <= MAX_WORDS)
        .unwrap_or_default();
    Handshake {
        era,
        protocol_version: version,
        server_info,
        instructions,
        announces_changes,
        capabilities,
    }
}

/// What rmcp asks where a server speaks of its own accord.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    heard: Arc<Heard>,
}

impl Service<RoleClient> for Client {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let CustomRequest { method, params, .. } = match request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::CustomRequest(question) => question,
            // The raw path leaves no question in these types.
            _ => return Err(ErrorData::internal_error("unexpected form of a question", None)),
        };
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let question = InputRequest { method, params };
        let answer = questions::answer(&self.heard, question, origin, &context.ct).await;
        answer
            .map_err(raw::rmcp_error)
            .map(|answer| ClientResult::CustomResult(CustomResult(answer)))
    }

    async fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        // The tap has seen to those that matter.
        Ok(())
    }

    fn get_info(&self) -> InitializeRequestParams {
        // What may be asked is said with each call, or by the tap in the older handshake.
        let name = Implementation::new("toolgate", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
