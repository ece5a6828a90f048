//! `read_resource` and `read_output` in scripts. Both go through the broker, and what they return has
//! labels like the result of a tool.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use toolgate_broker::{BrokerError, CallContext};
use toolgate_catalog::{Definition, ServerName, Tool};
use toolgate_upstream::CallOptions;

use super::{media::Media, outputs::PageSize};
use crate::{
    meta::{self, MetaTool, ReadRequest},
    resources::{self, ReadFailure},
    session::{CallFailure, ToolSession},
};

/// The name of the function that reads a resource.
pub(crate) const READ_RESOURCE: &str = "read_resource";

/// Why there is nothing to return.
pub(super) enum ScriptReadError {
    /// What is wrong, for the script.
    Refused(String),
    Broker(BrokerError),
}

/// `read_output` as a tool, so that the policy can judge it.
static OUTPUT_TOOL: LazyLock<Option<Tool>> = LazyLock::new(|| {
    let definition = json!({
        "name": MetaTool::Read.name(),
        "description": "Reads an output that was too long to show.",
        "inputSchema": meta::input_schema(MetaTool::Read, false),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    let definition = Definition::from_value(&definition).ok()?;
    Some(Tool::of_method(&ServerName::from("toolgate"), None, Arc::new(definition)))
});

/// The schema of the arguments of `read_resource`.
pub(super) fn resource_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "uri": { "type": "string" } },
        "required": ["uri"],
        "additionalProperties": false,
    })
}

/// Reads a resource: its text, data if its type is JSON, or its contents as blocks.
pub(super) async fn resource(
    session: &ToolSession,
    arguments: Map<String, Value>,
    context: CallContext,
    options: CallOptions,
    media: &Media,
) -> Result<Value, ScriptReadError> {
    let context = context.by_function(READ_RESOURCE);
    let mut result = match resources::read_in(session, arguments, &context, options).await {
        Ok(result) => result,
        Err(ReadFailure::Broker(_, error)) if matches!(error, BrokerError::Waiting { .. }) => {
            return Err(ScriptReadError::Broker(error));
        }
        Err(failure) => {
            return Err(ScriptReadError::Refused(match failure.into() {
                CallFailure::Refused { message, .. } | CallFailure::UnknownTool(message) => message,
                CallFailure::Cancelled => "cancelled".to_owned(),
            }));
        }
    };
    let contents = match result.get_mut("contents").map(Value::take) {
        Some(Value::Array(contents)) => contents,
        _ => Vec::new(),
    };
    if let [content] = contents.as_slice()
        && let Some(text) = content.get("text").and_then(Value::as_str)
    {
        let mime = content.get("mimeType").and_then(Value::as_str).unwrap_or_default();
        let is_json = mime.contains("json");
        let data = if is_json { serde_json::from_str(text).ok() } else { None };
        return Ok(data.unwrap_or_else(|| json!(text)));
    }
    let blocks = contents.into_iter().map(|content| {
        let mut block = json!({ "type": "resource", "resource": content });
        media.put_away(&mut block);
        block
    });
    Ok(blocks.collect())
}

/// Reads a part of an output: as much as a script gets at once.
pub(super) async fn output(
    session: &ToolSession,
    arguments: Map<String, Value>,
    context: CallContext,
    options: &CallOptions,
    page_bytes: usize,
) -> Result<Value, ScriptReadError> {
    let refused = ScriptReadError::Refused;
    let given = Value::Object(arguments);
    let request: ReadRequest = serde_json::from_value(given.clone())
        .map_err(|error| refused(format!("the arguments do not fit: {error}")))?;
    let (id, offset) = (request.id.as_str(), request.offset());
    if resources::is_ours(id) {
        return Err(refused(format!("this is a resource: {READ_RESOURCE}(uri) reads it")));
    }
    let outputs = session.host().code().outputs(session.context());
    let context = context.returning(&outputs.read_before(id));
    let tool = OUTPUT_TOOL.as_ref().ok_or_else(|| refused("it cannot be read".to_owned()))?;
    let admitted = session.host().broker().admit(tool, given, &context, options).await;
    let admitted = admitted.map_err(ScriptReadError::Broker)?;
    let size = PageSize::Bytes(page_bytes);
    let page = match &request.pattern {
        Some(pattern) => outputs.matches(id, pattern, offset, size),
        None => outputs.page(id, offset, size),
    };
    match page {
        Ok(page) => {
            outputs.mark_read(id, &page.text);
            let value = json!({ "text": page.text, "next": page.next, "total": page.total });
            admitted.end_unsent(Ok(&value)).await;
            Ok(value)
        }
        Err(error) => {
            let why = error.for_model(id);
            let error = BrokerError::NoAnswer { tool: tool.name.to_string(), why: why.clone() };
            admitted.end_unsent(Err(&error)).await;
            Err(refused(why))
        }
    }
}
