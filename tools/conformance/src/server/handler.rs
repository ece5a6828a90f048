//! The server as rmcp sees it: which request is answered where.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use serde_json::Value;
use tokio::sync::broadcast;

use super::definitions::Definitions;
use super::{inputs, plain, questions, resources, tasks};
use crate::Failure;

/// What has changed, for those who listen.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListChange {
    Tools,
    Prompts,
}

/// What all clients share: a client of 2026-07-28 has no session.
pub(super) struct Shared {
    pub(super) definitions: Definitions,
    pub(super) tasks: TaskManager,
    pub(super) changes: broadcast::Sender<ListChange>,
    /// The request states that were given out, and the round that each stands for.
    pub(super) states: Mutex<HashMap<String, u32>>,
}

/// The server of one session.
pub(super) struct ConformanceServer {
    pub(super) shared: Arc<Shared>,
    level: Mutex<LoggingLevel>,
}

impl Shared {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            definitions: Definitions::read()?,
            tasks: TaskManager::new(),
            changes: broadcast::channel(16).0,
            states: Mutex::default(),
        })
    }
}

impl ConformanceServer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, level: Mutex::new(LoggingLevel::Debug) }
    }

    /// Whether the client wants log messages of level info, for this request.
    pub(super) fn logs(&self, context: &RequestContext<RoleServer>) -> bool {
        let modern = context.meta.protocol_version().is_some();
        let level = if modern { context.meta.log_level() } else { Some(*self.level.lock()) };
        level.is_some_and(|level| matches!(level, LoggingLevel::Debug | LoggingLevel::Info))
    }
}

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(
            "toolgate-conformance",
            env!("CARGO_PKG_VERSION"),
        ))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.definitions.tool(name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.definitions.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.shared.definitions.tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("unknown tool: {}", request.name), None));
        }
        if let Some(answer) = tasks::call(self, &request, &context).await? {
            return Ok(answer);
        }
        if let Some(answer) = inputs::call(self, &request, &context)? {
            return Ok(answer);
        }
        if let Some(answer) = questions::call(&request, &context).await? {
            return Ok(answer.into());
        }
        Ok(plain::call(self, &request, &context).await?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.shared.definitions.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return inputs::prompt(&request, &context);
        }
        Ok(resources::prompt(&request)?.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.shared.definitions.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(self.shared.definitions.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::resource(&request.uri)?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = request.argument.value;
        let values = ["paris", "park", "party", "test"]
            .into_iter()
            .filter(|value| value.starts_with(&begun));
        let info = CompletionInfo::with_all_values(values.map(str::to_owned).collect())
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock() = request.level;
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // A filtered or closed stream refuses a notification, which is fine.
            let _ = match change {
                Ok(ListChange::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(ListChange::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }
}

/// JSON as one of rmcp's types.
pub(super) fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
