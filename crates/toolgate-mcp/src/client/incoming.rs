//! Reads the JSON of a server, also where it is not quite valid or very large: a call may have had an
//! effect, so its result should not be lost.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::meta;

/// A message, and what had to be done to read it.
#[derive(Debug)]
pub(super) struct IncomingJson {
    pub(super) message: Value,
    /// What a person should know of it.
    pub(super) note: Option<String>,
}

/// The most blocks of a large result that are no text.
const MAX_OTHER_BLOCKS: usize = 1_000;
const REPLACEMENT: char = '\u{fffd}';

/// Reads a message. Of a result with more than `limit` bytes, long data becomes text, so that it takes
/// no more memory than the message. `None` if a large message is not such a result.
pub(super) fn read(bytes: &[u8], limit: usize) -> Result<Option<IncomingJson>, serde_json::Error> {
    if bytes.len() <= limit
        && let Ok(message) = serde_json::from_slice(bytes)
    {
        return Ok(Some(IncomingJson { message, note: None }));
    }
    let (text, replaced) = repaired(bytes);
    let message = if bytes.len() <= limit {
        serde_json::from_str(&text).map(Some)?
    } else {
        reduced(&text, limit)
    };
    let Some(mut message) = message else { return Ok(None) };
    let mut notes = Vec::new();
    if replaced > 0 {
        add_replaced(&mut message, replaced);
        notes.push(format!("{replaced} characters were no Unicode and are {REPLACEMENT} now"));
    }
    if bytes.len() > limit {
        let size = bytes.len();
        notes.push(format!("of {size} bytes, more than `maxResultBytes`, the texts are kept"));
    }
    let note =
        (!notes.is_empty()).then(|| format!("(a message was changed: {})", notes.join("; ")));
    Ok(Some(IncomingJson { message, note }))
}

/// Notes in the result how many characters were replaced.
pub(super) fn add_replaced(message: &mut Value, replaced: u64) {
    let Some(Value::Object(result)) = message.get_mut("result") else { return };
    let noted = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(noted) = noted {
        let before = noted.get(meta::REPLACED).and_then(Value::as_u64).unwrap_or_default();
        noted.insert(meta::REPLACED.to_owned(), json!(before + replaced));
    }
}

/// The text with U+FFFD for invalid UTF-8 and for escapes of single surrogates, and how many there are.
fn repaired(bytes: &[u8]) -> (Cow<'_, str>, u64) {
    let mut replaced = 0;
    let text = if let Ok(text) = std::str::from_utf8(bytes) {
        Cow::Borrowed(text)
    } else {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                text.push(REPLACEMENT);
                replaced += 1;
            }
        }
        Cow::Owned(text)
    };
    match without_single_surrogates(&text) {
        Some((whole, more)) => (Cow::Owned(whole), replaced + more),
        None => (text, replaced),
    }
}

/// The JSON text with `\ufffd` for escapes of single surrogates; `None` if there are none.
pub fn without_single_surrogates(text: &str) -> Option<(String, u64)> {
    let bytes = text.as_bytes();
    let mut whole: Option<String> = None;
    let (mut copied, mut replaced, mut at) = (0, 0, 0);
    while let Some(next) = bytes.get(at..).and_then(|rest| rest.iter().position(|it| *it == b'\\'))
    {
        at += next;
        let Some(unit) = escaped_unit(bytes, at) else {
            at += 2;
            continue;
        };
        let is_pair = matches!(unit, 0xd800..=0xdbff)
            && escaped_unit(bytes, at + 6).is_some_and(|low| matches!(low, 0xdc00..=0xdfff));
        if is_pair {
            at += 12;
            continue;
        }
        if matches!(unit, 0xd800..=0xdfff) {
            let whole = whole.get_or_insert_with(|| String::with_capacity(text.len()));
            whole.push_str(&text[copied..at]);
            whole.push_str("\\ufffd");
            copied = at + 6;
            replaced += 1;
        }
        at += 6;
    }
    whole.map(|mut whole| {
        whole.push_str(&text[copied..]);
        (whole, replaced)
    })
}

/// The UTF-16 unit of an escape at this position.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

/// A content block, as far as it is text.
#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<TextResource<'a>>,
}

#[derive(Deserialize)]
struct TextResource<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// The response with a large result of a tool or of `resources/read`: what has at most `limit` bytes is
/// exact, and the texts of the rest are one text.
fn reduced(text: &str, limit: usize) -> Option<Value> {
    let mut message: Fields<'_> = serde_json::from_str(text).ok()?;
    let mut result: Fields<'_> = serde_json::from_str(message.remove("result")?.get()).ok()?;
    let mut short = Map::new();
    for (name, value) in &message {
        short.insert(name.clone(), within(value, limit)?);
    }
    let mut kept = Map::new();
    if let Some(contents) = result.remove("contents") {
        let contents: Vec<&RawValue> = serde_json::from_str(contents.get()).ok()?;
        let contents = contents.into_iter().take(MAX_OTHER_BLOCKS).map(|content| {
            let fields: Fields<'_> = serde_json::from_str(content.get()).ok()?;
            let text = |name: &str| serde_json::from_str(fields.get(name)?.get()).ok();
            let names = ["uri", "mimeType", "text", "blob"].into_iter();
            let known =
                names.filter_map(|name| Some((name.to_owned(), Value::String(text(name)?))));
            Some(Value::Object(known.collect()))
        });
        kept.insert("contents".to_owned(), contents.collect::<Option<Vec<Value>>>()?.into());
    } else {
        let structured = result.remove("structuredContent").filter(|data| data.get() != "null");
        let content = result.remove("content");
        if structured.is_none() && content.is_none() {
            return None;
        }
        let mut blocks = match content {
            Some(content) => match within(content, limit) {
                Some(Value::Array(blocks)) => blocks,
                Some(_) => Vec::new(),
                None => joined(content)?,
            },
            None => Vec::new(),
        };
        if let Some(structured) = structured {
            match within(structured, limit) {
                Some(structured) => _ = kept.insert("structuredContent".to_owned(), structured),
                None if blocks.is_empty() => {
                    blocks.push(json!({ "type": "text", "text": structured.get() }));
                }
                // Servers repeat the data as text.
                None => {}
            }
        }
        kept.insert("content".to_owned(), Value::Array(blocks));
    }
    for (name, value) in result {
        if let Some(value) = within(value, limit) {
            kept.insert(name, value);
        }
    }
    short.insert("result".to_owned(), Value::Object(kept));
    Some(Value::Object(short))
}

/// The value, if it has at most `limit` bytes.
fn within(value: &RawValue, limit: usize) -> Option<Value> {
    (value.get().len() <= limit).then(|| serde_json::from_str(value.get()).ok()).flatten()
}

/// The texts of content blocks as one block, and the blocks that are no text.
fn joined(content: &RawValue) -> Option<Vec<Value>> {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let (mut text, mut others) = (String::new(), Vec::new());
    for block in blocks {
        let read: TextBlock<'_> = serde_json::from_str(block.get()).ok()?;
        let found = read.text.or_else(|| read.resource.and_then(|resource| resource.text));
        match found {
            Some(found) => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&found);
            }
            None if others.len() < MAX_OTHER_BLOCKS => {
                others.push(serde_json::from_str(block.get()).ok()?);
            }
            None => {}
        }
    }
    if !text.is_empty() {
        others.insert(0, json!({ "type": "text", "text": text }));
    }
    Some(others)
}

/// Makes a stream of bytes valid UTF-8. A character may be in two pieces.
#[derive(Debug, Default)]
pub(super) struct Utf8Repair {
    begun: Vec<u8>,
    /// How many characters were replaced since this was taken.
    pub(super) replaced: u64,
}

impl Utf8Repair {
    /// The valid text of a piece, with what was begun before it.
    pub(super) fn push<B: AsRef<[u8]> + From<Vec<u8>>>(&mut self, piece: B) -> B {
        if self.begun.is_empty() && std::str::from_utf8(piece.as_ref()).is_ok() {
            return piece;
        }
        self.repair(piece.as_ref()).into()
    }

    fn repair(&mut self, piece: &[u8]) -> Vec<u8> {
        self.begun.extend_from_slice(piece);
        let mut valid = Vec::with_capacity(self.begun.len());
        let mut rest = self.begun.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (good, bad) = rest.split_at(error.valid_up_to());
            valid.extend_from_slice(good);
            rest = bad;
            let Some(length) = error.error_len() else {
                self.begun = rest.to_vec();
                return valid;
            };
            self.replaced += 1;
            valid.extend_from_slice(REPLACEMENT.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[length..];
        }
        valid.extend_from_slice(rest);
        self.begun.clear();
        valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1_000;

    fn message(bytes: &[u8]) -> IncomingJson {
        read(bytes, LIMIT).unwrap().unwrap()
    }

    #[test]
    fn valid_messages_are_exact() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d\ude00 \\ud800 \u00e9 ü"}}"#;
        let read = message(text.as_bytes());
        assert_eq!(read.message, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(read.note, None);
        assert!(
            super::read(b"{\"a\": \\", LIMIT).is_err() && super::read(b"hello", LIMIT).is_err()
        );
    }

    #[test]
    fn what_is_no_unicode_is_replaced_and_noted() {
        for (sent, shown, count) in [
            (&br#""a\ud800b""#[..], "a\u{fffd}b", 1),
            (br#""\udc00\ud83d\ude00\ud83d""#, "\u{fffd}\u{1f600}\u{fffd}", 2),
            (br#""\ud800\u0041 \\\udfff""#, "\u{fffd}A \\\u{fffd}", 2),
            (b"\"a\xffb\xc3\"", "a\u{fffd}b\u{fffd}", 2),
            (b"\"\xf0\x9f\x98 \\ud800\"", "\u{fffd} \u{fffd}", 2),
        ] {
            let line = [br#"{"id":1,"result":{"text":"#, sent, b"}}"].concat();
            let read = message(&line);
            let result = &read.message["result"];
            assert_eq!(result["text"], shown);
            assert_eq!(result["_meta"][meta::REPLACED], count, "{shown}");
            assert!(read.note.unwrap().contains("no Unicode"));
        }
    }

    #[test]
    fn a_large_result_keeps_its_texts_and_what_is_short() {
        let long = "line\n".repeat(1_000);
        let data = json!({ "rows": [1, 2] });
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "eA==" });
        let sent = json!({ "jsonrpc": "2.0", "id": 7, "result": {
            "content": [
                { "type": "text", "text": long }, image,
                { "type": "resource", "resource": { "uri": "a:b", "text": "last" } },
            ],
            "structuredContent": data, "isError": false, "_meta": { "x/y": 1 },
        } });
        let read = message(sent.to_string().as_bytes());
        assert_eq!(
            read.message,
            json!({ "jsonrpc": "2.0", "id": 7, "result": {
            "content": [{ "type": "text", "text": format!("{long}last") }, image],
            "structuredContent": data, "isError": false, "_meta": { "x/y": 1 },
        } })
        );
        assert!(read.note.unwrap().contains("the texts are kept"));
    }

    #[test]
    fn large_data_is_text() {
        let data = json!({ "rows": (0..1_000).collect::<Vec<_>>() });
        let result = |text: &Value| json!({ "id": 7, "result": text }).to_string();
        let alone = message(result(&json!({ "structuredContent": data })).as_bytes()).message;
        let text = alone["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data);
        assert!(alone["result"].get("structuredContent").is_none());

        let contents =
            json!([{ "uri": "a:b", "mimeType": "text/plain", "text": "x".repeat(2_000) }]);
        let read = message(result(&json!({ "contents": contents })).as_bytes()).message;
        assert_eq!(read["result"]["contents"], contents);

        let list = result(&json!({ "tools": ["x".repeat(2_000)] }));
        assert!(super::read(list.as_bytes(), LIMIT).unwrap().is_none(), "no result of a call");
    }

    #[test]
    fn a_stream_is_repaired_across_pieces() {
        let mut repair = Utf8Repair::default();
        let whole = "aä\u{1f600}z".as_bytes();
        for at in 0..whole.len() {
            let (one, two) = whole.split_at(at);
            assert_eq!([repair.push(one.to_vec()), repair.push(two.to_vec())].concat(), whole);
        }
        assert_eq!(repair.replaced, 0);
        let pieces = [&b"a\xff"[..], b"\xf0\x9f", b"b"];
        let read: Vec<u8> =
            pieces.into_iter().flat_map(|piece| repair.push(piece.to_vec())).collect();
        assert_eq!(String::from_utf8(read).unwrap(), "a\u{fffd}\u{fffd}b");
        assert_eq!(repair.replaced, 2);
    }
}
