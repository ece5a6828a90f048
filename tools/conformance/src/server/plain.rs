//! The tools that only answer, or say something on the way.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::handler::{ConformanceServer, ListChange, typed};
use super::resources::PNG;

/// A sound without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The suite wants to see that messages come while a call is at work.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers a call.
pub(super) async fn call(
    server: &ConformanceServer,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let blocks = match request.name.as_ref() {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]),
        "test_embedded_resource" => json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_error_handling" => {
            let words = "This tool intentionally returns an error for testing";
            return Ok(CallToolResult::error(typed(json!([text(words)]))?));
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            for message in
                ["Tool execution started", "Tool processing data", "Tool execution completed"]
            {
                log(server, context, message).await;
            }
            json!([text("It was logged.")])
        }
        "test_tool_with_progress" => {
            report(context).await;
            json!([text("It was reported.")])
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE).await;
            json!([text("Here it is.")])
        }
        "test_trigger_tool_change" => {
            let _ = server.shared.changes.send(ListChange::Tools);
            json!([text("The tools have changed.")])
        }
        "test_trigger_prompt_change" => {
            let _ = server.shared.changes.send(ListChange::Prompts);
            json!([text("The prompts have changed.")])
        }
        name => json!([text(&format!("{name} was called."))]),
    };
    Ok(CallToolResult::success(typed(blocks)?))
}

/// A text as content of a result.
pub(super) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

async fn log(server: &ConformanceServer, context: &RequestContext<RoleServer>, message: &str) {
    if server.logs(context) {
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
        // A disconnected client gets nothing.
        let _ = context.peer.notify_logging_message(message).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn report(context: &RequestContext<RoleServer>) {
    for progress in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, progress).with_total(100.0);
            let _ = context.peer.notify_progress(progress).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
