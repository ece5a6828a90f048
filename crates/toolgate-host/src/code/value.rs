//! What a tool's result is in a script.

use serde_json::Value;

use super::media::Media;

/// The most of an error that a script is shown.
const ERROR_CHARACTERS: usize = 4_000;

/// A result as a value: structured content where there is any; else text, parsed if it is JSON;
/// other or several blocks as a list of blocks. The error is what an exception says.
pub(super) fn of_result(mut result: Value, media: &Media) -> Result<Value, String> {
    let blocks = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        return Err(error_text(&blocks, result.get("structuredContent")));
    }
    match result.get_mut("structuredContent").map(Value::take) {
        Some(structured) if !structured.is_null() => return Ok(structured),
        _ => {}
    }
    Ok(of_blocks(blocks, media))
}

fn of_blocks(mut blocks: Vec<Value>, media: &Media) -> Value {
    if blocks.is_empty() {
        return Value::Null;
    }
    if let [block] = blocks.as_mut_slice()
        && block.get("type").and_then(Value::as_str) == Some("text")
        && let Some(Value::String(text)) = block.get_mut("text").map(Value::take)
    {
        return serde_json::from_str(text.trim()).unwrap_or(Value::String(text));
    }
    for block in &mut blocks {
        media.put_away(block);
    }
    Value::Array(blocks)
}

fn error_text(blocks: &[Value], structured: Option<&Value>) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .filter(|text| !text.trim().is_empty())
        .collect();
    let text = match (texts.is_empty(), structured) {
        (false, _) => texts.join("\n"),
        (true, Some(structured)) => structured.to_string(),
        (true, None) => "the tool failed without saying why".to_owned(),
    };
    if text.chars().nth(ERROR_CHARACTERS).is_none() {
        return text;
    }
    text.chars().take(ERROR_CHARACTERS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(result: Value) -> Result<Value, String> {
        of_result(result, &Media::default())
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
        assert_eq!(value(failed), Err("no such user".to_owned()));
        let silent = json!({"isError": true});
        assert_eq!(value(silent), Err("the tool failed without saying why".to_owned()));
        let long =
            json!({"isError": true, "content": [{"type": "text", "text": "x".repeat(9_999)}]});
        assert_eq!(value(long).unwrap_err().chars().count(), ERROR_CHARACTERS + 1);
    }
}
