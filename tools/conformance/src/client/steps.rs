//! What the client does once it is connected.

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ErrorCode, GetPromptRequestParams, JsonObject,
    ReadResourceRequestParams,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde_json::{Value, json};

use super::Scenario;
use super::answers::{AcceptingClient, filled};

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    calls: usize,
    failed_calls: usize,
}

impl Taken {
    /// Whether there was a call, and none failed.
    pub(super) fn succeeded(&self) -> bool {
        self.calls > 0 && self.failed_calls == 0
    }
}

/// toolgate's own tools, which are no part of a scenario.
const OWN_TOOLS: [&str; 3] = ["read_output", "run_code", "resume_run"];

/// How often the tools are listed again for one call.
const MAX_LISTS: usize = 5;

/// Calls a tool. If the server misses a header, the client lists the tools again, as the specification says. rmcp 3.8
/// forgets which headers a list asks for if the stream of the list ends before its last message is handled.
async fn call_listed(
    client: &RunningService<RoleClient, AcceptingClient>,
    call: CallToolRequestParams,
) -> Result<CallToolResult, ServiceError> {
    for _ in 0..MAX_LISTS {
        match client.call_tool(call.clone()).await {
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::HEADER_MISMATCH => {
                client.list_all_tools().await?;
            }
            outcome => return outcome,
        }
    }
    client.call_tool(call).await
}

/// Lists what there is, and uses it.
pub(super) async fn take(
    client: &RunningService<RoleClient, AcceptingClient>,
    scenario: &Scenario,
) -> Result<Taken, ServiceError> {
    let mut taken = Taken::default();
    let mut tools = client.list_all_tools().await?;
    tools.retain(|tool| !OWN_TOOLS.contains(&tool.name.as_ref()));
    let planned = scenario.context["toolCalls"].as_array();
    let calls: Vec<Value> = planned.cloned().unwrap_or_else(|| {
        let call = |tool: &rmcp::model::Tool| {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            json!({ "name": tool.name, "arguments": filled(&schema) })
        };
        tools.iter().map(call).collect()
    });
    // One scenario wants to see a schema again, as it reached the client.
    let rich = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    for mut call in calls {
        if let (Some(rich), true) = (rich, call["name"] == "json_schema_echo") {
            call["arguments"] = json!({ "schema": rich.input_schema });
        }
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        let arguments: JsonObject = call["arguments"].as_object().cloned().unwrap_or_default();
        let call = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = call_listed(client, call).await?;
        taken.calls += 1;
        taken.failed_calls += usize::from(result.is_error == Some(true));
    }
    let info = client.peer_info();
    let capabilities = info.as_ref().map(|info| &info.capabilities);
    if capabilities.is_some_and(|capabilities| capabilities.resources.is_some()) {
        for resource in client.list_all_resources().await? {
            client.read_resource(ReadResourceRequestParams::new(resource.uri.clone())).await?;
        }
    }
    if capabilities.is_some_and(|capabilities| capabilities.prompts.is_some()) {
        // One will do, because a later one may want something that only a newer client has.
        if let Some(prompt) = client.list_all_prompts().await?.into_iter().next() {
            client.get_prompt(GetPromptRequestParams::new(prompt.name)).await?;
        }
    }
    Ok(taken)
}
