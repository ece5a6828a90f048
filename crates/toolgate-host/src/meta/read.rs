//! `read_output`.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_upstream::CallOptions;

use super::{Whole, one_line};
use crate::{
    code::PageSize,
    resources,
    session::{CallFailure, ToolSession, error_result},
};

/// The arguments of `read_output`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadRequest {
    pub(crate) id: String,
    #[serde(default)]
    offset: Whole<0>,
    #[serde(default)]
    pub(crate) pattern: Option<String>,
}

impl ReadRequest {
    /// Where to begin, in bytes.
    pub(crate) fn offset(&self) -> usize {
        self.offset.0
    }
}

const URI_CHARACTERS: usize = 200;
const TYPE_CHARACTERS: usize = 80;

/// Reads a part of an output, or of a resource.
pub(super) async fn read(
    session: &ToolSession,
    request: &ReadRequest,
    options: CallOptions,
) -> Value {
    let ReadRequest { id, offset: Whole(offset), pattern } = request;
    let (host, outputs) = (session.host(), session.host().code().outputs(session.context()));
    // A read from the beginning fetches the resource again. An offset refers to what was fetched
    // last.
    let is_kept = *offset > 0 && outputs.page(id, 0, PageSize::Bytes(0)).is_ok();
    if resources::is_ours(id) && !is_kept {
        match resource_text(session, id, options).await {
            Ok(text) => outputs.store_as(id, &text),
            Err(CallFailure::Refused { message, .. } | CallFailure::UnknownTool(message)) => {
                return error_result(&message);
            }
            Err(CallFailure::Cancelled) => return error_result("The call was cancelled."),
        }
    }
    let size = PageSize::Tokens(host.settings().max_output_tokens);
    let page = match pattern {
        Some(pattern) => outputs.matches(id, pattern, *offset, size),
        None => outputs.page(id, *offset, size),
    };
    let page = match page {
        Ok(page) => page,
        Err(error) => return error_result(&error.for_model(id)),
    };
    outputs.mark_read(id, &page.text);
    let total = page.total;
    let mut text = page.text;
    let note = match (page.next, pattern) {
        (Some(next), _) => format!("[{total} bytes in all; go on with offset: {next}]"),
        (None, Some(_)) if text.is_empty() => format!("[no line matches; {total} bytes in all]"),
        (None, _) => format!("[the end; {total} bytes in all]"),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&note);
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Reads a resource as text, so that a model can follow a link even if its client does not support
/// resources.
async fn resource_text(
    session: &ToolSession,
    uri: &str,
    options: CallOptions,
) -> Result<String, CallFailure> {
    let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
    let result = resources::read(session, params, options).await?;
    let contents = result.get("contents").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let field =
        |content: &Value, name: &str| content.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut text = String::new();
    for content in contents {
        if contents.len() > 1 {
            let name = field(content, "uri").unwrap_or_default();
            let _ = writeln!(text, "[{}]", one_line(&name, URI_CHARACTERS));
        }
        if let Some(instructions) = field(content, "text") {
            text.push_str(&instructions);
        } else if let Some(data) = field(content, "blob") {
            let kind = field(content, "mimeType").unwrap_or_else(|| "of no type".to_owned());
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            let _ = write!(text, "[no text: {}, {bytes} bytes]", one_line(&kind, TYPE_CHARACTERS));
        }
        if contents.len() > 1 && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}
