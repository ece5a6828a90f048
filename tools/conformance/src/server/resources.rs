//! Resources and prompts.

use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, ReadResourceResult};
use serde_json::{Value, json};

use super::handler::typed;

/// A PNG of one red pixel.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The content of a resource.
pub(super) fn resource(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let content = match uri {
        "test://static-text" => json!({
            "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource.",
        }),
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched." })
        }
        _ => from_template(uri).ok_or_else(|| {
            ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))
        })?,
    };
    Ok(ReadResourceResult::new(typed(json!([content]))?))
}

/// The messages of a prompt.
pub(super) fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| {
        let value = request.arguments.as_ref().and_then(|arguments| arguments.get(name));
        value.map(|value| value.to_string().trim_matches('"').to_owned()).ok_or_else(|| {
            ErrorData::invalid_params(format!("the argument {name} is missing"), None)
        })
    };
    let text = |text: String| json!({ "type": "text", "text": text });
    let contents = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => vec![text(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1")?,
            argument("arg2")?
        ))],
        "test_prompt_with_embedded_resource" => {
            let resource = json!({
                "uri": argument("resourceUri")?,
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            });
            let embedded = json!({ "type": "resource", "resource": resource });
            vec![embedded, text("Please process the embedded resource above.".to_owned())]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
            vec![image, text("Please analyze the image above.".to_owned())]
        }
        name => return Err(ErrorData::invalid_params(format!("unknown prompt: {name}"), None)),
    };
    messages(contents)
}

/// A prompt's result with these contents, all said by the user.
pub(super) fn messages(contents: Vec<Value>) -> Result<GetPromptResult, ErrorData> {
    let messages =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content }));
    Ok(GetPromptResult::new(typed(messages.collect())?))
}

fn from_template(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Some(json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() }))
}
