//! One budget of tokens for all texts that a model gets together. What does not fit is stored.

use serde_json::{Map, Value, json};
use toolgate_mcp::{json_size, meta::REPLACED};

use super::{budget, outputs::SessionOutputs};

/// The tokens of the note about omitted text.
const NOTE_TOKENS: usize = 60;

/// Cuts the texts of content blocks to `tokens` together: the beginning and the end stay, and a note
/// says how to read the rest. Returns its id; `None` if everything fits. The first block always
/// stays. `ended` begins the note.
pub(super) fn cut_texts(
    blocks: &mut Vec<Value>,
    tokens: usize,
    ended: &str,
    outputs: SessionOutputs<'_>,
) -> Option<String> {
    let mut whole = String::new();
    let mut ranges = Vec::with_capacity(blocks.len());
    for block in &*blocks {
        let text = text_of(block);
        if text.is_some() && !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        let start = whole.len();
        whole.push_str(text.as_deref().unwrap_or_default());
        ranges.push(start..whole.len());
    }
    let gap = budget::left_out(&whole, tokens)
        .and_then(|_| budget::left_out(&whole, tokens.saturating_sub(NOTE_TOKENS)))?;
    let id = outputs.store(&whole);
    let note = format!(
        "\n[{ended}{} bytes left out: read_output(id: \"{id}\", offset: {})]\n",
        gap.len(),
        gap.start
    );
    let mut note = Some(note);
    let mut ranges = ranges.into_iter().enumerate();
    blocks.retain_mut(|block| {
        let Some((index, range)) = ranges.next() else { return true };
        if range.is_empty() || range.end <= gap.start || range.start >= gap.end {
            return true;
        }
        let head = &whole[range.start..gap.start.max(range.start)];
        let tail = &whole[gap.end.min(range.end)..range.end];
        let note = note.take().unwrap_or_default();
        let is_whole = text_field(block).is_none();
        if let Some(text) = text_field(block) {
            *text = Value::String(format!("{head}{note}{tail}"));
        } else {
            *block = text_block(note.trim());
        }
        index == 0 || !note.is_empty() || !(is_whole || head.is_empty() && tail.is_empty())
    });
    Some(id)
}

/// Whether [`cut_result`] changes nothing, found without looking at the texts: a token has at least one byte, and a text
/// is shorter than its JSON.
pub(super) fn surely_fits(result: &Value, tokens: usize) -> bool {
    json_size(result) <= tokens && replaced_in(result).is_none()
}

/// Cuts the texts of a tool's result. Media, `isError` and `_meta` stay as they are.
///
/// Structured content that costs more than `tokens` is text too: some clients show it to the model.
/// Where the client has a schema to check it with (`is_checked`), it stays.
pub(super) fn cut_result(
    result: &mut Map<String, Value>,
    tokens: usize,
    is_checked: bool,
    outputs: SessionOutputs<'_>,
) -> Option<String> {
    let mut blocks = match result.get_mut("content") {
        Some(Value::Array(blocks)) => std::mem::take(blocks),
        // Not as MCP has it.
        Some(_) => return None,
        None => Vec::new(),
    };
    let structured = result.get("structuredContent").filter(|data| !is_checked && !data.is_null());
    let long = structured.map(Value::to_string).filter(|text| !budget::fits(text, tokens));
    if let Some(text) = long {
        // Servers repeat the data as text.
        let structured = result.remove("structuredContent");
        let says = |block: &Value| {
            let text = block.get("text").and_then(Value::as_str);
            text.is_some_and(|text| serde_json::from_str(text).ok() == structured)
        };
        if !blocks.iter().any(says) {
            blocks.push(text_block(&text));
        }
    }
    let id = cut_texts(&mut blocks, tokens, "", outputs);
    let noted = result.get("_meta").and_then(|noted| noted.get(REPLACED));
    if let Some(count) = noted.and_then(Value::as_u64) {
        blocks.push(text_block(&replaced_note(count)));
    }
    match result.get_mut("content") {
        Some(content) => *content = Value::Array(blocks),
        None if blocks.is_empty() => {}
        None => _ = result.insert("content".to_owned(), Value::Array(blocks)),
    }
    id
}

/// How many bytes a model reads of a result.
pub(super) fn text_bytes(result: &Map<String, Value>) -> u64 {
    let blocks = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let text = |block: &Value| {
        let own = block.get("text").or_else(|| block.pointer("/resource/text"));
        own.and_then(Value::as_str).map_or(0, str::len) as u64
    };
    let data = result.get("structuredContent").map_or(0, |data| data.to_string().len() as u64);
    blocks.map(text).sum::<u64>() + data
}

/// How many characters of a result were replaced, because they were not valid Unicode.
pub(super) fn replaced_in(result: &Value) -> Option<u64> {
    result.get("_meta")?.get(REPLACED)?.as_u64()
}

/// The note about replaced characters.
pub(super) fn replaced_note(count: u64) -> String {
    format!("[{count} characters were not valid Unicode and are \u{fffd} here]")
}

pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// What a model reads of a block; `None` for media.
fn text_of(block: &Value) -> Option<std::borrow::Cow<'_, str>> {
    let text = match block.get("type").and_then(Value::as_str)? {
        "text" => block.get("text"),
        "resource" => block.pointer("/resource/text"),
        "resource_link" => return Some(block.to_string().into()),
        _ => None,
    };
    text.and_then(Value::as_str).map(Into::into)
}

/// Where the text of a block is, if a part of it can be left out.
fn text_field(block: &mut Value) -> Option<&mut Value> {
    match block.get("type").and_then(Value::as_str)? {
        "text" => block.get_mut("text"),
        "resource" => block.pointer_mut("/resource/text"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use toolgate_broker::{Caller, SessionContext};
    use toolgate_catalog::TokenCounter;

    use super::{
        super::outputs::{OutputStore, PageSize},
        *,
    };

    fn me() -> SessionContext {
        SessionContext::new(Caller::model("me"))
    }

    fn cost(value: &Value) -> usize {
        TokenCounter::shared().count(&value.to_string())
    }

    /// The result after the cut, and everything that `read_output` would read.
    fn cut(mut result: Value, is_checked: bool) -> (Value, Option<String>) {
        let (store, me) = (OutputStore::default(), me());
        let fields = result.as_object_mut().unwrap();
        let id = cut_result(fields, 300, is_checked, store.of(&me));
        let all =
            id.map(|id| store.of(&me).page(&id, 0, PageSize::Bytes(10_000_000)).unwrap().text);
        (result, all)
    }

    fn lines(from: usize, to: usize) -> String {
        (from..to).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat()
    }

    #[test]
    fn what_fits_is_exact() {
        let result = json!({
            "content": [{ "type": "text", "text": "short", "annotations": { "priority": 1 } }],
            "structuredContent": { "a": [1] }, "isError": false, "_meta": { "x/y": 1 }, "more": [2],
        });
        assert_eq!(cut(result.clone(), false), (result, None));
        for odd in [json!({ "content": [] }), json!({ "content": "x" }), json!({ "a": 1 })] {
            assert_eq!(cut(odd.clone(), false), (odd, None));
        }
    }

    #[test]
    fn head_and_tail_of_all_blocks_stay_with_everything_that_is_no_text() {
        let image =
            json!({ "type": "image", "mimeType": "image/png", "data": "eA==".repeat(9_000) });
        let resource =
            json!({ "uri": "file:///a", "mimeType": "text/plain", "text": lines(900, 999) });
        let result = json!({
            "content": [
                { "type": "text", "text": lines(0, 500) },
                image,
                { "type": "text", "text": lines(500, 900) },
                { "type": "resource", "resource": resource },
            ],
            "isError": true, "_meta": { "x/y": 1 },
        });
        let (shown, all) = cut(result, false);
        assert_eq!(all.unwrap(), lines(0, 999));
        assert_eq!((&shown["isError"], &shown["_meta"]), (&json!(true), &json!({ "x/y": 1 })));
        let blocks = shown["content"].as_array().unwrap();
        assert_eq!(blocks.len(), 3, "the second text is left out: {blocks:?}");
        let first = blocks[0]["text"].as_str().unwrap();
        assert!(first.starts_with("line 0\n") && first.contains("bytes left out: read_output(id:"));
        assert_eq!(blocks[1], image);
        let last = blocks[2]["resource"]["text"].as_str().unwrap();
        assert!(last.ends_with("line 998\n") && !last.contains("line 900\n"), "{last}");
        assert_eq!(blocks[2]["resource"]["uri"], "file:///a");
        let texts = json!([first, last]);
        assert!(cost(&texts) < 400, "{}", cost(&texts));
    }

    #[test]
    fn links_count_and_are_left_out_whole() {
        let links = (0..200).map(|number| {
            json!({ "type": "resource_link", "uri": format!("file:///{number}"), "name": "a" })
        });
        let links: Vec<Value> = links.collect();
        let (shown, all) = cut(json!({ "content": links }), false);
        let shown = shown["content"].as_array().unwrap();
        assert!(shown.len() < 30 && shown[0] == links[0] && shown.last() == links.last());
        let notes = shown.iter().filter(|block| block["type"] == "text");
        assert_eq!(notes.count(), 1, "{shown:?}");
        assert_eq!(all.unwrap().lines().count(), 200);
    }

    #[test]
    fn long_structured_content_becomes_text_unless_the_client_checks_it() {
        let data = json!({ "rows": (0..2_000).collect::<Vec<_>>() });
        let result = |text: &str| json!({ "content": [{ "type": "text", "text": text }], "structuredContent": data });
        // The text says the same.
        let said = serde_json::to_string_pretty(&data).unwrap();
        let (shown, all) = cut(result(&said), false);
        assert!(shown.get("structuredContent").is_none());
        assert_eq!((shown["content"].as_array().unwrap().len(), all), (1, Some(said.clone())));
        // The text says something else.
        let (shown, all) = cut(result("2000 rows"), false);
        assert!(shown.get("structuredContent").is_none() && cost(&shown) < 500);
        assert_eq!(all.unwrap(), format!("2000 rows\n{data}"));
        // The client has a schema for it.
        let (shown, all) = cut(result(&said), true);
        assert_eq!(shown["structuredContent"], data);
        assert!(cost(&shown["content"]) < 500 && all.is_some());
    }
}
