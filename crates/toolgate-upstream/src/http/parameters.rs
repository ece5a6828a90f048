//! Arguments that a server wants in headers.
//!
//! From 2026-07-28 on, a schema can mark a property with `x-mcp-header`, and a call must then
//! repeat its value as `Mcp-Param-…`, for whatever routes requests without reading them. A tool whose
//! marks cannot be followed is left out, as the protocol wants it. rmcp would do this from its typed
//! tool lists; ours are raw.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolgate_mcp::versions;

use super::marks;

pub(super) const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const MAX_TOOLS: usize = 50_000;
const MAX_DEPTH: usize = 16;

/// Which arguments go into which headers, by tool.
#[derive(Debug, Clone, Default)]
pub(super) struct ParameterHeaders {
    tools: Arc<Mutex<HashMap<String, Vec<Marked>>>>,
}

/// A marked property: the way to it from the root, and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Marked {
    path: Vec<String>,
    header: HeaderName,
}

impl ParameterHeaders {
    /// Takes the marks of a page of tools, and takes those tools out whose marks are unsound.
    pub(super) fn admit(&self, page: Option<&mut Value>) {
        let tools = page.and_then(|page| page.get_mut("tools")).and_then(Value::as_array_mut);
        let Some(tools) = tools else { return };
        tools.retain(|tool| tool.get("inputSchema").is_none_or(marks::are_sound));
        let mut known = self.tools.lock();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let mut marked = Vec::new();
            let properties = tool.get("inputSchema").and_then(|schema| schema.get("properties"));
            collect(properties, &mut Vec::new(), &mut marked);
            if marked.is_empty() {
                known.remove(name);
            } else if known.len() < MAX_TOOLS {
                known.insert(name.to_owned(), marked);
            }
        }
    }

    /// The same for the text of a message.
    pub(super) fn admit_text(&self, text: String) -> String {
        // Most lists have none, and are read again elsewhere.
        if text.contains(ANNOTATION)
            && let Ok(mut message) = serde_json::from_str::<Value>(&text)
        {
            self.admit(message.get_mut("result"));
            return message.to_string();
        }
        text
    }

    /// Adds the headers of a call, if the protocol version has them.
    pub(super) fn add(&self, tool: &str, arguments: &Map<String, Value>, headers: &mut HeaderMap) {
        if !are_spoken(headers.get(VERSION_HEADER)) {
            return;
        }
        let Some(marked) = self.tools.lock().get(tool).cloned() else { return };
        for Marked { path, header } in marked {
            let value = value_at(arguments, &path).and_then(text_of);
            if let Some(value) = value.as_deref().and_then(header_value) {
                headers.insert(header, value);
            }
        }
    }
}

/// Whether the protocol version of a message has marked arguments.
pub(super) fn are_spoken(version: Option<&HeaderValue>) -> bool {
    version
        .and_then(|version| version.to_str().ok())
        .is_some_and(|version| version >= versions::MODERN)
}

fn collect(properties: Option<&Value>, path: &mut Vec<String>, marked: &mut Vec<Marked>) {
    let Some(Value::Object(properties)) = properties else { return };
    if path.len() >= MAX_DEPTH {
        return;
    }
    for (name, schema) in properties {
        path.push(name.clone());
        let header = schema.get(ANNOTATION).and_then(Value::as_str).filter(|text| !text.is_empty());
        let header = header.and_then(|text| format!("{PREFIX}{text}").parse().ok());
        if let Some(header) = header {
            marked.push(Marked { path: path.clone(), header });
        }
        collect(schema.get("properties"), path, marked);
        path.pop();
    }
}

fn value_at<'a>(arguments: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text as it can stand in a header; what cannot is encoded.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    let is_printable = text.chars().all(|character| matches!(character, ' '..='~'));
    let is_trimmed = text.trim_matches(' ') == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    let plain = is_printable && is_trimmed && !looks_encoded;
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers_of(arguments: &Value, version: &str) -> Vec<(String, String)> {
        let parameters = ParameterHeaders::default();
        parameters.admit(Some(&mut json!({ "tools": [
            { "name": "query", "inputSchema": { "type": "object", "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "limits": { "type": "object", "properties": {
                    "rows": { "type": "integer", "x-mcp-header": "Rows" },
                } },
                "plain": { "type": "string" },
            } } },
            "junk",
        ] })));
        let mut headers = HeaderMap::new();
        headers.insert(VERSION_HEADER, HeaderValue::from_str(version).unwrap());
        parameters.add("query", arguments.as_object().unwrap(), &mut headers);
        headers.remove(VERSION_HEADER);
        let mut list: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        list.sort();
        list
    }

    #[test]
    fn marked_arguments_become_headers() {
        let arguments = json!({ "region": "eu west", "limits": { "rows": 5 }, "plain": "x" });
        let expected = [("mcp-param-region", "eu west"), ("mcp-param-rows", "5")];
        assert_eq!(
            headers_of(&arguments, "2026-07-28"),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(headers_of(&arguments, "2025-11-25"), []);
    }

    #[test]
    fn a_tool_whose_marks_cannot_be_followed_is_left_out_alone() {
        let tool = |name: &str, mark: &str| {
            let marked = json!({ "type": "string", "x-mcp-header": mark });
            json!({ "name": name, "inputSchema": { "properties": { "region": marked } } })
        };
        let page = |tools: &[Value]| json!({ "result": { "tools": tools, "odd": 1.0 } });
        let (good, bad) = (tool("good", "Region"), tool("bad", "not a token"));
        let parameters = ParameterHeaders::default();
        let text = page(&[bad, good.clone(), json!("junk")]).to_string();
        let admitted: Value = serde_json::from_str(&parameters.admit_text(text)).unwrap();
        assert_eq!(admitted, page(&[good, json!("junk")]));
        // What has no marks is not touched, not even its spaces.
        let plain = r#"{ "result": { "tools": [] } }"#.to_owned();
        assert_eq!(parameters.admit_text(plain.clone()), plain);
    }

    #[test]
    fn what_a_header_cannot_hold_is_encoded() {
        let region = |text: &str| headers_of(&json!({ "region": text }), "2026-07-28")[0].1.clone();
        assert_eq!(region("Zürich"), "=?base64?WsO8cmljaA==?=");
        assert_eq!(region(" x"), "=?base64?IHg=?=");
        assert_eq!(region("a\r\nb: c"), "=?base64?YQ0KYjogYw==?=");
        assert_eq!(headers_of(&json!({ "region": null }), "2026-07-28"), []);
    }
}
