//! What the client does once it is connected.

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, JsonObject, ReadResourceRequestParams,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde_json::{Value, json};

use super::Scenario;
use super::answers::{AcceptingClient, filled};

/// Lists what there is, and uses it.
pub(super) async fn take(
    client: &RunningService<RoleClient, AcceptingClient>,
    scenario: &Scenario,
) -> Result<(), ServiceError> {
    let tools = client.list_all_tools().await?;
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
        client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
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
    Ok(())
}
