//! The service of a whole host: the tools, resources and prompts of all servers, as one server.

mod hearing;
mod instructions;
mod shown;
mod subscriptions;
mod tasks;

pub use instructions::instructions_in;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{CallFailure, ToolHost, ToolSession};
use toolgate_mcp::{ErrorObject, JsonObject, LogLevel, extensions, meta, methods};
use toolgate_upstream::{CallOptions, ClientId, InputHandler, LogSink, Progress};

use self::{
    hearing::OpenListens,
    subscriptions::SentList,
    tasks::{ClientTasks, TaskInputs},
};
use crate::{
    channel::ClientChannel,
    era::{self, Era, ServerInfo},
    reports::with_reports,
    service::{AuthenticatedClient, ClientInfo, IncomingRequest, McpService, ServiceFactory},
};

/// Creates a session of one host for every client.
#[derive(Debug, Clone)]
pub struct AggregateFactory {
    host: ToolHost,
    tasks: Arc<ClientTasks>,
}

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
    /// Whose tasks the client may see.
    caller: AuthenticatedClient,
    tasks: Arc<ClientTasks>,
    /// The least severe log message that a legacy client wants, if it has said so.
    log_level: Arc<Mutex<Option<LogLevel>>>,
    /// Notifies a legacy client of changes, from its `notifications/initialized` on.
    notifying: OnceLock<DropGuard>,
}

const MAX_NOTIFICATIONS: usize = 64;
/// Progress that waits for a slow client. Further reports are lost; the result never is.
const MAX_QUEUED_PROGRESS: usize = 256;
/// The same for log messages.
const MAX_QUEUED_MESSAGES: usize = 256;

impl AggregateFactory {
    /// A factory for sessions of this host.
    pub fn new(host: ToolHost) -> Self {
        let mut tasks = ClientTasks::new(host.journal().cloned(), host.is_stopping());
        tasks.namespace.clone_from(&host.settings().namespace);
        let tasks = Arc::new(tasks);
        Self { host, tasks }
    }
}

impl ServiceFactory for AggregateFactory {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
        let id = ClientId::unique();
        let context = SessionContext::new(caller_of(&client)).of_client(id.key().clone());
        let mut session = self.host.session_of(context);
        let listens = Arc::<OpenListens>::default();
        session.set_client_capabilities(&client.capabilities);
        session.set_hearing(hearing::of(&client, Arc::clone(&listens)));
        if client.era == Era::Modern {
            session.fix_list();
        }
        if shown::shows_one(&client) {
            session.set_shows_one();
        }
        let service = AggregateService {
            session: Arc::new(session),
            client: id,
            sent_list: Arc::default(),
            listens,
            notifications: Arc::new(Semaphore::new(MAX_NOTIFICATIONS)),
            channel: client.channel,
            caller: client.caller,
            tasks: Arc::clone(&self.tasks),
            log_level: Arc::default(),
            notifying: OnceLock::new(),
        };
        Box::pin(std::future::ready(Ok(Arc::new(service) as Arc<dyn McpService>)))
    }

    fn uses_trace_headers(&self) -> bool {
        true
    }
}

impl McpService for AggregateService {
    fn server_info(&self, era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "logging": {},
        });
        let mut extensions = self.session.host().server_extensions();
        if era == Era::Modern {
            extensions.insert(extensions::TASKS.to_owned(), json!({}));
        }
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
        let params = match request.params.take() {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        Box::pin(
            async move { era::adapt_outcome(era, &method, self.answer(params, request).await) },
        )
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
                self.session.attach_client(Arc::new(channel.of_client(self.client.clone())));
                let (sent_list, level) = (Arc::clone(&self.sent_list), Arc::clone(&self.log_level));
                let notifying = subscriptions::notify(&self.session, sent_list, level, channel);
                let stop = CancellationToken::new();
                tokio::spawn(stop.clone().run_until_cancelled_owned(notifying));
                stop.drop_guard()
            });
        }
        if method == methods::ROOTS_CHANGED {
            self.session.roots_changed();
        }
        Box::pin(std::future::ready(()))
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        let catalog = self.session.host().catalog().read();
        let schema = catalog
            .resolve(tool)
            .filter(|tool| tool.definition.json().contains("x-mcp-header"))
            .map(|tool| tool.definition.input_schema());
        Box::pin(std::future::ready(schema))
    }
}

impl AggregateService {
    async fn answer(
        &self,
        params: JsonObject,
        request: IncomingRequest,
    ) -> Result<Value, ErrorObject> {
        let era = request.era;
        match request.method.as_str() {
            methods::LISTEN if era == Era::Modern => {
                let _listening = self.listens.open(&params);
                let tasks = (&*self.tasks, &self.caller);
                let listening = subscriptions::listen(&self.session, tasks, &params, request);
                // Boxed, as all but calls, so that the future of a call stays small.
                return Box::pin(listening).await;
            }
            methods::SET_LOG_LEVEL if era == Era::Legacy => {
                return Box::pin(self.set_log_level(&params)).await;
            }
            methods::TASKS_GET | methods::TASKS_UPDATE | methods::TASKS_CANCEL
                if era == Era::Modern =>
            {
                if !tasks::knows_tasks(&request.channel) {
                    return Err(tasks::not_declared());
                }
                return self.tasks.answer(&self.caller, &request.method, &params);
            }
            // The list has one page, so there is no cursor of it.
            methods::TOOLS_LIST if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) => {
                let message = "the cursor is unknown or no longer valid";
                return Err(ErrorObject::invalid_params(message, None));
            }
            methods::TOOLS_LIST => {}
            methods::GROUPS_LIST | methods::GROUPS_GET if self.session.has_groups() => {
                let answered = Box::pin(self.session.group_request(&request.method, &params)).await;
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
        self.send(params, request).await
    }

    /// Sends a request to the servers that it concerns. Their progress, log messages and input requests reach
    /// the client.
    async fn send(
        &self,
        mut params: JsonObject,
        request: IncomingRequest,
    ) -> Result<Value, ErrorObject> {
        let IncomingRequest { method, era, channel, cancel, .. } = request;
        let meta = match params.remove("_meta") {
            Some(Value::Object(meta)) if !meta.is_empty() => Some(meta),
            _ => None,
        };
        let field = |key: &str| meta.as_ref().and_then(|meta| meta.get(key)).cloned();
        let token = field(meta::PROGRESS_TOKEN);
        let level = match era {
            Era::Legacy => *self.log_level.lock(),
            Era::Modern => {
                field(meta::LOG_LEVEL).and_then(|level| LogLevel::named(level.as_str()?))
            }
        };
        // A legacy client that has set no level gets what servers send by themselves, as from the servers.
        let log = (era == Era::Legacy || level.is_some()).then(|| {
            let (messages, logged) = mpsc::channel(MAX_QUEUED_MESSAGES);
            (LogSink { level, messages }, logged)
        });
        let (log, logged) = log.unzip();
        let channel = channel.of_client(self.client.clone());
        let report = |report: Progress| {
            if let Some(token) = &token {
                channel.notify(methods::PROGRESS, Some(report.into_params(token)));
            }
        };
        let is_call = method == methods::TOOLS_CALL;
        let task = (is_call && era == Era::Modern && tasks::knows_tasks(&channel))
            .then(|| self.tasks.prepare(&self.caller))
            .flatten();
        let has_progress = token.is_some() || task.is_some();
        let (progress, reports) = has_progress.then(|| mpsc::channel(MAX_QUEUED_PROGRESS)).unzip();
        let input_handler: Arc<dyn InputHandler> = match &task {
            Some(task) => Arc::new(TaskInputs { channel: channel.clone(), task: Arc::clone(task) }),
            None => Arc::new(channel.clone()),
        };
        let options = CallOptions {
            meta,
            progress,
            cancel: task.as_ref().map_or(&cancel, |task| &task.cancel).clone(),
            input_handler: Some(input_handler),
            log,
            became_task: task.as_ref().map(|task| Arc::clone(&task.made)),
            ..CallOptions::default()
        };
        let (session, sent_list) = (Arc::clone(&self.session), Arc::clone(&self.sent_list));
        // On the heap at once: the future of a call is large, and moving it takes time.
        let mut sending = Box::pin(async move {
            if method == methods::TOOLS_LIST {
                let tools = Box::pin(sent_list.send(session.list_tools_with(&options))).await;
                return Ok(json!({ "tools": tools }));
            }
            let sent = if is_call {
                let (name, arguments) = call_params(params)?;
                session.call(&name, arguments, options).await
            } else if is_sent_to_servers(&method, era) {
                Box::pin(session.request(&method, params, options)).await
            } else {
                Box::pin(session.extension_request(&method, params, options)).await
            };
            sent.map_err(error_of)
        });
        let pass_on = |message: Value| channel.notify(methods::LOG_MESSAGE, Some(message));
        let reports = match (task, reports) {
            (Some(task), Some(reports)) => {
                let logging = async {
                    let Some(mut logged) = logged else { return };
                    while let Some(message) = logged.recv().await {
                        pass_on(message);
                    }
                };
                let calling = tokio::spawn(sending);
                let mut outcome =
                    std::pin::pin!(self.tasks.outcome(task, calling, reports, &cancel, report));
                let mut logging = std::pin::pin!(logging);
                // The log messages of a task reach nobody: the protocol has no way for them.
                return tokio::select! {
                    biased;
                    () = &mut logging => outcome.await,
                    outcome = &mut outcome => outcome,
                };
            }
            (_, reports) => reports,
        };
        with_reports(sending.as_mut(), (reports, report), (logged, pass_on)).await
    }

    async fn set_log_level(&self, params: &JsonObject) -> Result<Value, ErrorObject> {
        let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::named);
        let level = level.ok_or_else(|| {
            ErrorObject::invalid_params("`level` is missing or no level of RFC 5424", None)
        })?;
        *self.log_level.lock() = Some(level);
        self.session.set_log_level(level).await;
        Ok(json!({}))
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
        methods::RESOURCES_SUBSCRIBE | methods::RESOURCES_UNSUBSCRIBE => era == Era::Legacy,
        _ => false,
    }
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
            let client = ClientInfo {
                caller,
                era,
                info,
                capabilities,
                requested_version: None,
                channel: None,
            };
            caller_of(&client).location
        };
        assert_eq!(seat(AuthenticatedClient::local()), CallerLocation::Local);
        assert_eq!(seat(AuthenticatedClient::named("token local 0a1b")), CallerLocation::Remote);
    }
}
