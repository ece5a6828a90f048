//! Converts the result of a tool to a value of a script.

use serde_json::Value;
use thiserror::Error;
use toolgate_mcp::client::without_single_surrogates;

use super::media::Media;

/// Whether structured content wraps the value. Up to 2025-11-25 it has to be an object, so that
/// SDKs wrap a list or a text: `{"result": […]}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// The structured content is the value.
    None,
    /// The value is in `result`.
    Result,
}

/// A result that is an error. A script gets it as an exception.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub(super) struct ToolError {
    /// The text of the error.
    pub(super) message: String,
    /// Its content blocks as a JSON array, if they are more than the text.
    pub(super) content: Option<String>,
}

impl ToolError {
    /// An error whose content is its message.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), content: None }
    }

    /// The error of a result. Its blocks may have `most` bytes; above that only the text is left.
    fn of_blocks(
        mut blocks: Vec<Value>,
        structured: Option<&Value>,
        most: usize,
        media: &Media,
    ) -> Self {
        let message = error_text(&blocks, structured);
        let is_text = |block: &Value| {
            block.as_object().is_some_and(|fields| fields.len() == 2)
                && block.get("type").and_then(Value::as_str) == Some("text")
                && block.get("text").and_then(Value::as_str) == Some(message.as_str())
        };
        if matches!(blocks.as_slice(), [] | [_]) && blocks.iter().all(is_text) {
            return Self::new(message);
        }
        for block in &mut blocks {
            media.put_away(block);
        }
        let content = Value::Array(blocks).to_string();
        Self { message, content: (content.len() <= most).then_some(content) }
    }

    /// The text that the journal has of the error. JSON contains no NUL, so the last one separates
    /// the content.
    pub(super) fn stored(message: &str, content: Option<&str>) -> String {
        match content {
            None if !message.contains('\0') => message.to_owned(),
            content => format!("{message}\0{}", content.unwrap_or("null")),
        }
    }

    /// The error of the journal's text.
    pub(super) fn of_stored(text: String) -> Self {
        match text.rsplit_once('\0') {
            Some((message, "null")) => Self::new(message),
            Some((message, content)) if content.starts_with('[') => {
                Self { message: message.to_owned(), content: Some(content.to_owned()) }
            }
            _ => Self::new(text),
        }
    }
}

/// The most characters of an error that a script gets.
const ERROR_CHARACTERS: usize = 4_000;
/// The longest text of a direct call from which the shape of results is learned.
const MAX_LEARNED: usize = 16 * 1024 * 1024;

/// The value of a result: its structured content; or else its text, parsed if it is JSON; or else
/// its list of blocks. A result that is an error becomes an exception. A text of more than `most` bytes
/// is too large for the script, and is not parsed. What is no Unicode in it is replaced, and counted.
pub(super) fn of_result(
    mut result: Value,
    wrapping: Wrapping,
    most: usize,
    media: &Media,
    replaced: &mut u64,
) -> Result<Value, ToolError> {
    let blocks = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let structured = result.get("structuredContent");
        return Err(ToolError::of_blocks(blocks, structured, most, media));
    }
    match result.get_mut("structuredContent").map(Value::take) {
        Some(Value::Object(mut fields)) if wrapping == Wrapping::Result && fields.len() == 1 => {
            if let Some(held) = fields.get_mut("result").map(Value::take) {
                return Ok(held);
            }
            return Ok(Value::Object(fields));
        }
        Some(structured) if !structured.is_null() => return Ok(structured),
        _ => {}
    }
    Ok(of_blocks(blocks, most, media, replaced))
}

/// The value that a script would get, if the result is data and no error.
pub(super) fn data_of(result: &Value, declared: Option<Wrapping>) -> Option<Value> {
    let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
    if let (Some(structured), false) = (result.get("structuredContent"), is_error) {
        let held = structured.get("result").filter(|_| declared == Some(Wrapping::Result));
        return Some(held.unwrap_or(structured).clone());
    }
    let blocks = result.get("content").and_then(Value::as_array)?;
    match (blocks.as_slice(), is_error) {
        ([block], false) => {
            let text = block.get("text")?.as_str()?.trim();
            (text.len() <= MAX_LEARNED).then(|| parsed(text)).flatten().map(|(data, _)| data)
        }
        _ => None,
    }
}

/// The data of a JSON text, and how many escapes of single surrogates are replaced in it.
fn parsed(text: &str) -> Option<(Value, u64)> {
    if let Ok(data) = serde_json::from_str(text) {
        return Some((data, 0));
    }
    // Texts that are no JSON are common.
    if !text.starts_with(['{', '[', '"']) {
        return None;
    }
    let (text, replaced) = without_single_surrogates(text)?;
    Some((serde_json::from_str(&text).ok()?, replaced))
}

fn of_blocks(mut blocks: Vec<Value>, most: usize, media: &Media, replaced: &mut u64) -> Value {
    if blocks.is_empty() {
        return Value::Null;
    }
    if let [block] = blocks.as_mut_slice()
        && block.get("type").and_then(Value::as_str) == Some("text")
        && let Some(Value::String(text)) = block.get_mut("text").map(Value::take)
    {
        let data = if text.len() <= most { parsed(text.trim()) } else { None };
        let Some((data, more)) = data else { return Value::String(text) };
        *replaced += more;
        return data;
    }
    for block in &mut blocks {
        media.put_away(block);
    }
    Value::Array(blocks)
}

fn error_text(blocks: &[Value], structured: Option<&Value>) -> String {
    let tool_text: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .filter(|text| !text.trim().is_empty())
        .collect();
    let text = match (tool_text.is_empty(), structured) {
        (false, _) => tool_text.join("\n"),
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "the tool failed without saying why".to_owned(),
    };
    let count = text.chars().count();
    let Some(left_out) = count.checked_sub(ERROR_CHARACTERS).filter(|more| *more > 0) else {
        return text;
    };
    // The end often says what went wrong.
    let head: String = text.chars().take(ERROR_CHARACTERS / 3 * 2).collect();
    let tail: String = text.chars().skip(head.chars().count() + left_out).collect();
    format!("{head} [… {left_out} characters left out …] {tail}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(result: Value) -> Result<Value, ToolError> {
        of_result(result, Wrapping::None, usize::MAX, &Media::default(), &mut 0)
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn structured_content_comes_first_then_json_then_text() {
        let both =
            json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}});
        assert_eq!(value(both), Ok(json!({"a": 1})));
        assert_eq!(value(text(" {\"b\": [1, 2]}\n")), Ok(json!({"b": [1, 2]})));
        assert_eq!(value(text("12")), Ok(json!(12)));
        assert_eq!(value(text("hello {")), Ok(json!("hello {")));
        assert_eq!(value(text("")), Ok(json!("")));
        assert_eq!(value(json!({"content": []})), Ok(Value::Null));
        assert_eq!(value(json!({})), Ok(Value::Null));
    }

    #[test]
    fn json_with_single_surrogates_is_data_and_they_are_counted() {
        let mut replaced = 0;
        let result = text(r#"{"inner":"q\ud800z","pair":"\ud83d\ude00","n":1}"#);
        let media = Media::default();
        let data = of_result(result, Wrapping::None, usize::MAX, &media, &mut replaced);
        assert_eq!(data, Ok(json!({"inner": "q\u{fffd}z", "pair": "😀", "n": 1})));
        assert_eq!(replaced, 1);
        let prose = r"a path: C:\ud800";
        assert_eq!(value(text(prose)), Ok(json!(prose)));
    }

    #[test]
    fn shapes_are_learned_from_structured_content_too() {
        let structured = json!({"structuredContent": {"result": [1]}, "content": []});
        assert_eq!(data_of(&structured, Some(Wrapping::Result)), Some(json!([1])));
        assert_eq!(data_of(&structured, Some(Wrapping::None)), Some(json!({"result": [1]})));
        assert_eq!(data_of(&text(r#"{"a": 1}"#), None), Some(json!({"a": 1})));
        let failed = json!({"structuredContent": {"a": 1}, "isError": true, "content": []});
        assert_eq!(data_of(&failed, None), None);
    }

    #[test]
    fn a_text_that_is_too_large_is_not_parsed() {
        let value = of_result(text("[1, 2]"), Wrapping::None, 5, &Media::default(), &mut 0);
        assert_eq!(value, Ok(json!("[1, 2]")));
    }

    #[test]
    fn a_wrapped_result_is_unwrapped() {
        let unwrap = |structured: Value| {
            let result = json!({ "structuredContent": structured });
            of_result(result, Wrapping::Result, usize::MAX, &Media::default(), &mut 0).unwrap()
        };
        assert_eq!(unwrap(json!({"result": [1, 2]})), json!([1, 2]));
        assert_eq!(unwrap(json!({"result": 1, "more": 2})), json!({"result": 1, "more": 2}));
        assert_eq!(unwrap(json!({"other": 1})), json!({"other": 1}));
        let kept = value(json!({"structuredContent": {"result": [1]}}));
        assert_eq!(kept, Ok(json!({"result": [1]})));
    }

    #[test]
    fn other_and_several_blocks_are_a_list() {
        let two = json!([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]);
        assert_eq!(value(json!({"content": two})), Ok(two.clone()));
        let link = json!([{"type": "resource_link", "uri": "file:///a"}]);
        assert_eq!(value(json!({"content": link})), Ok(link.clone()));
    }

    #[test]
    fn an_error_says_what_the_tool_said() {
        let mut failed = text("no such user");
        failed["isError"] = json!(true);
        assert_eq!(value(failed), Err(ToolError::new("no such user")));
        let silent = json!({"isError": true});
        assert_eq!(value(silent), Err(ToolError::new("the tool failed without saying why")));
        let long = format!("begin{}end", "x".repeat(9_992));
        let long = json!({"isError": true, "content": [{"type": "text", "text": long}]});
        let told = value(long).unwrap_err().message;
        assert!(told.starts_with("begin") && told.ends_with("end"), "{told}");
        assert!(told.contains("x [… 6000 characters left out …] x"), "{told}");
        assert!(told.chars().count() < ERROR_CHARACTERS + 50);
    }

    #[test]
    fn an_error_keeps_its_blocks() {
        let blocks = json!([
            {"type": "text", "text": "no"},
            {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
            {"type": "text", "text": "why", "annotations": {"audience": ["user"]}},
        ]);
        let failed = json!({"isError": true, "content": blocks});
        let error = value(failed.clone()).unwrap_err();
        assert_eq!(error.message, "no\nwhy");
        let mut shown = blocks;
        shown[1]["data"] = json!("toolgate-media:1");
        shown[1]["bytes"] = json!(6);
        let content: Value = serde_json::from_str(error.content.as_deref().unwrap()).unwrap();
        assert_eq!(content, shown);

        let small = of_result(failed, Wrapping::None, 20, &Media::default(), &mut 0).unwrap_err();
        assert_eq!(small, ToolError::new("no\nwhy"), "more than the limit");
    }

    #[test]
    fn the_journal_keeps_an_error_as_it_is() {
        for error in [
            ToolError::new("no"),
            ToolError::new("a\0[1]"),
            ToolError { message: "a\0b".to_owned(), content: Some("[1]".to_owned()) },
        ] {
            let text = ToolError::stored(&error.message, error.content.as_deref());
            assert_eq!(ToolError::of_stored(text), error);
        }
    }
}
