//! The tools that ask a client before 2026-07-28: by a request of the server's own, while the call waits.

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};

use super::handler::typed;
use super::plain::text;

/// Answers a call, if it is of such a tool.
pub(super) async fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResult>, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let said = match request.name.as_ref() {
        "test_sampling" => sample(context, &argument("prompt")).await?,
        "test_elicitation" => {
            let properties = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            elicit(
                context,
                "User response",
                &argument("message"),
                &properties,
                &["username", "email"],
            )
            .await?
        }
        "test_elicitation_sep1034_defaults" => {
            let message = "Please check these values.";
            elicit(context, "Elicitation completed", message, &defaults(), &[]).await?
        }
        "test_elicitation_sep1330_enums" => {
            elicit(context, "Elicitation completed", "Please choose.", &choices(), &[]).await?
        }
        _ => return Ok(None),
    };
    Ok(Some(CallToolResult::success(typed(json!([text(&said)]))?)))
}

async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<String, ErrorData> {
    let message = json!({ "role": "user", "content": text(prompt) });
    let params = typed(json!({ "messages": [message], "maxTokens": 100 }))?;
    let answer = context.peer.create_message(params).await.map_err(refused)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    Ok(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    saying: &str,
    message: &str,
    properties: &Value,
    required: &[&str],
) -> Result<String, ErrorData> {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let params = typed(json!({ "mode": "form", "message": message, "requestedSchema": schema }))?;
    let answer = context.peer.create_elicitation(params).await.map_err(refused)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(format!("{saying}: action={action}, content={}", answer["content"]))
}

fn refused(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        error => ErrorData::internal_error(error.to_string(), None),
    }
}

/// One property of each type, with a default.
fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

/// One property of each kind of choice.
fn choices() -> Value {
    let titled = |titles: [&str; 3]| {
        let values = ["value1", "value2", "value3"];
        let options = values
            .iter()
            .zip(titles)
            .map(|(value, title)| json!({ "const": value, "title": title }));
        options.collect::<Value>()
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": {
            "type": "array",
            "items": { "anyOf": titled(["First Choice", "Second Choice", "Third Choice"]) },
        },
    })
}
