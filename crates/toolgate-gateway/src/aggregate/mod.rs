//! The service of a whole host: the tools, resources and prompts of all servers, as one server.

mod hearing;
mod instructions;
mod subscriptions;

pub use instructions::instructions_in;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{CallFailure, ToolHost, ToolSession};
use toolgate_mcp::{ErrorObject, JsonObject, extensions, meta, methods};
use toolgate_upstream::{CallOptions, ClientId, Progress};

use self::{hearing::OpenListens, subscriptions::SentList};
use crate::{
    channel::ClientChannel,
    era::{self, Era, ServerInfo},
    service::{ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

/// Creates a session of one host for every client.
#[derive(Debug, Clone)]
pub struct AggregateFactory(ToolHost);

/// Answers requests from one session of a host.
#[derive(Debug)]
struct AggregateService {
    session: Arc<ToolSession>,
    /// Identifies the client to servers that send input requests, whichever call they belong to.
    client: ClientId,
    sent_list: Arc<SentList>,
    listens: Arc<OpenListens>,
    /// Limits the notifications of extensions that are under way. Further ones are lost.
    notifications: Arc<Semaphore>,
    channel: Option<ClientChannel>,
    /// Notifies a legacy client of changes, from its `notifications/initialized` on.
    notifying: OnceLock<DropGuard>,
}

const MAX_NOTIFICATIONS: usize = 64;
/// Progress that waits for a slow client. Further reports are lost; the result never is.
const MAX_QUEUED_PROGRESS: usize = 256;

impl AggregateFactory {
    /// A factory for sessions of this host.
    pub fn new(host: ToolHost) -> Self {
        Self(host)
    }
}

impl ServiceFactory for AggregateFactory {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
        let mut session = self.0.session_of(SessionContext::new(caller_of(&client)));
        let listens = Arc::<OpenListens>::default();
        session.set_client_capabilities(&client.capabilities);
        session.set_hearing(hearing::of(&client, Arc::clone(&listens)));
        if client.era == Era::Modern {
            session.fix_list();
        }
        let service = AggregateService {
            session: Arc::new(session),
            client: ClientId::unique(),
            sent_list: Arc::default(),
            listens,
            notifications: Arc::new(Semaphore::new(MAX_NOTIFICATIONS)),
            channel: client.channel,
            notifying: OnceLock::new(),
        };
        Box::pin(std::future::ready(Ok(Arc::new(service) as Arc<dyn McpService>)))
    }

    fn uses_trace_headers(&self) -> bool {
        true
    }
}

impl McpService for AggregateService {
    fn server_info(&self, _era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
        });
        let mut extensions = self.session.host().server_extensions();
        if self.session.host().has_skills() {
            extensions.insert(extensions::SKILLS.to_owned(), json!({}));
        }
        if self.session.has_groups() {
            extensions.insert(extensions::GROUPS.to_owned(), json!({}));
        }
        if !extensions.is_empty() {
            capabilities[extensions::CAPABILITY] = Value::Object(extensions);
        }
        let fields = json!({
            "capabilities": capabilities,
            "serverInfo": { "name": "toolgate", "version": env!("CARGO_PKG_VERSION") },
            "instructions": instructions::instructions(&self.session),
        });
        let Value::Object(fields) = fields else { unreachable!("it is an object") };
        Box::pin(std::future::ready(Ok(ServerInfo { era: Era::Legacy, fields })))
    }

    fn request(&self, mut request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        let (era, method) = (request.era, request.method.clone());
        let mut params = match request.params.take() {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let answering = async move {
            match request.method.as_str() {
                methods::LISTEN if era == Era::Modern => {
                    let _listening = self.listens.open(&params);
                    return subscriptions::listen(&self.session, &params, request).await;
                }
                methods::TOOLS_LIST => {}
                methods::GROUPS_LIST | methods::GROUPS_GET if self.session.has_groups() => {
                    let answered = self.session.group_request(&request.method, &params).await;
                    return answered.map_err(error_of);
                }
                method
                    if !is_sent_to_servers(method, era)
                        && !self.session.has_extension_method(method) =>
                {
                    return Err(ErrorObject::method_not_found(method));
                }
                _ => {}
            }
            // Progress and input requests of the servers reach the client.
            let meta = match params.remove("_meta") {
                Some(Value::Object(meta)) if !meta.is_empty() => Some(meta),
                _ => None,
            };
            let token = meta.as_ref().and_then(|meta| meta.get(meta::PROGRESS_TOKEN)).cloned();
            let (sender, mut reports) = mpsc::channel(MAX_QUEUED_PROGRESS);
            let options = CallOptions {
                meta,
                progress: token.is_some().then_some(sender),
                cancel: request.cancel,
                input_handler: Some(Arc::new(request.channel.of_client(self.client))),
                send_check: None,
                hold: None,
            };
            let sending = async move {
                if request.method == methods::TOOLS_LIST {
                    let listing = self.session.list_tools_with(&options);
                    return Ok(json!({ "tools": self.sent_list.send(listing).await }));
                }
                let sent = if request.method == methods::TOOLS_CALL {
                    let (name, arguments) = call_params(params)?;
                    self.session.call(&name, arguments, options).await
                } else if is_sent_to_servers(&request.method, era) {
                    self.session.request(&request.method, params, options).await
                } else {
                    self.session.extension_request(&request.method, params, options).await
                };
                sent.map_err(error_of)
            };
            let forwarding = async {
                while let Some(report) = reports.recv().await {
                    let params = progress_params(token.as_ref(), report);
                    request.channel.notify(methods::PROGRESS, Some(params));
                }
            };
            // The call drops its sender when it ends, so no report comes after the result.
            let (outcome, ()) = tokio::join!(sending, forwarding);
            outcome
        };
        Box::pin(async move { era::adapt_outcome(era, &method, answering.await) })
    }

    fn notification(&self, method: String, params: Option<Value>) -> BoxFuture<'_, ()> {
        // In a task: a person may have to be asked, and the next message must not wait.
        if self.session.has_extension_method(&method)
            && let Ok(slot) = Arc::clone(&self.notifications).try_acquire_owned()
        {
            let session = Arc::clone(&self.session);
            tokio::spawn(async move {
                session.extension_notification(&method, params).await;
                drop(slot);
            });
            return Box::pin(std::future::ready(()));
        }
        if method == methods::INITIALIZED
            && let Some(channel) = self.channel.clone()
        {
            // Only the first of these notifications counts.
            self.notifying.get_or_init(|| {
                let notifying =
                    subscriptions::notify(&self.session, Arc::clone(&self.sent_list), channel);
                let stop = CancellationToken::new();
                tokio::spawn(stop.clone().run_until_cancelled_owned(notifying));
                stop.drop_guard()
            });
        }
        Box::pin(std::future::ready(()))
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        let catalog = self.session.host().catalog().read();
        let schema = catalog
            .resolve(tool)
            .filter(|tool| tool.definition.json().get().contains("x-mcp-header"))
            .map(|tool| tool.definition.input_schema());
        Box::pin(std::future::ready(schema))
    }
}

/// The broker's view of a client. A client that had to authenticate is not at this machine.
fn caller_of(client: &ClientInfo) -> Caller {
    let caller = Caller::model(client.caller.as_str()).with_facts(client.caller.facts().clone());
    let caller = caller.calling_itself(&client.claimed_name());
    if client.caller.is_local() { caller } else { caller.remote() }
}

/// The name and the arguments of a `tools/call`.
fn call_params(mut params: JsonObject) -> Result<(String, JsonObject), ErrorObject> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(ErrorObject::invalid_params("a call needs a `name`", None));
    };
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok((name, Map::new())),
        Some(Value::Object(arguments)) => Ok((name, arguments)),
        Some(_) => {
            let message = "the `arguments` of a call must be an object";
            Err(ErrorObject::invalid_params(message, None))
        }
    }
}

/// Whether servers take part in answering a method.
fn is_sent_to_servers(method: &str, era: Era) -> bool {
    match method {
        methods::TOOLS_CALL
        | methods::RESOURCES_LIST
        | methods::RESOURCE_TEMPLATES_LIST
        | methods::RESOURCES_READ
        | methods::PROMPTS_LIST
        | methods::PROMPTS_GET
        | methods::SKILLS_LIST
        | methods::SKILLS_GET
        | methods::COMPLETE => true,
        methods::RESOURCES_SUBSCRIBE | methods::RESOURCES_UNSUBSCRIBE | methods::SET_LOG_LEVEL => {
            era == Era::Legacy
        }
        _ => false,
    }
}

fn progress_params(token: Option<&Value>, report: Progress) -> Value {
    let mut params = json!({ "progressToken": token, "progress": report.progress });
    if let Some(total) = report.total {
        params["total"] = json!(total);
    }
    if let Some(message) = report.message {
        params["message"] = json!(message);
    }
    params
}

fn error_of(failure: CallFailure) -> ErrorObject {
    match failure {
        CallFailure::UnknownTool(message) => ErrorObject::invalid_params(message, None),
        CallFailure::Refused { code, message, data } => ErrorObject::new(code, message, data),
        CallFailure::Cancelled => ErrorObject::internal_error("the call was cancelled", None),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_broker::CallerLocation;

    use super::*;
    use crate::service::AuthenticatedClient;

    #[test]
    fn a_client_with_a_token_is_remote() {
        let seat = |caller: AuthenticatedClient| {
            let (era, info, capabilities) = (Era::Modern, json!({}), JsonObject::new());
            caller_of(&ClientInfo { caller, era, info, capabilities, channel: None }).location
        };
        assert_eq!(seat(AuthenticatedClient::local()), CallerLocation::Local);
        assert_eq!(seat(AuthenticatedClient::named("token local 0a1b")), CallerLocation::Remote);
    }
}
