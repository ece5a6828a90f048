//! Arguments that a server requires in headers.
//!
//! From 2026-07-28 on, a schema can mark a property with `x-mcp-header`, and a call must then
//! repeat its value as `Mcp-Param-…`, for proxies that route requests without reading them. A tool
//! with invalid marks is left out, as the specification requires.
//!
//! A marked property has a type that fits on one line. Its header name is valid and unique. The
//! path to it consists of `properties` only: a property under a condition or in a list may be
//! missing, or occur more than once.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
const MAX_TOOLS: usize = 50_000;
const MAX_DEPTH: usize = 16;

/// Which arguments go into which headers, by tool.
#[derive(Debug, Clone, Default)]
pub(super) struct ParameterHeaders {
    tools: Arc<Mutex<HashMap<String, Vec<MarkedProperty>>>>,
}

/// A marked property: the path to it from the root, and its header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MarkedProperty {
    path: Vec<String>,
    header: HeaderName,
}

impl ParameterHeaders {
    /// Reads the marks of a page of tools, and removes the tools with invalid marks.
    pub(super) fn read(&self, page: Option<&mut Value>) {
        let tools = page.and_then(|page| page.get_mut("tools")).and_then(Value::as_array_mut);
        let Some(tools) = tools else { return };
        tools.retain(|tool| tool.get("inputSchema").is_none_or(are_sound));
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

    /// Adds the headers of a `tools/call`.
    pub(super) fn add(&self, params: &Value, headers: &mut HeaderMap) {
        let tool = params.get("name").and_then(Value::as_str);
        let arguments = params.get("arguments").and_then(Value::as_object);
        let Some((tool, arguments)) = tool.zip(arguments) else { return };
        let Some(marked) = self.tools.lock().get(tool).cloned() else { return };
        for MarkedProperty { path, header } in marked {
            let value = value_at(arguments, &path).and_then(text_of);
            if let Some(value) = value.as_deref().and_then(header_value) {
                headers.insert(header, value);
            }
        }
    }
}

fn collect(properties: Option<&Value>, path: &mut Vec<String>, marked: &mut Vec<MarkedProperty>) {
    let Some(Value::Object(properties)) = properties else { return };
    if path.len() >= MAX_DEPTH {
        return;
    }
    for (name, schema) in properties {
        path.push(name.clone());
        let header = schema.get(ANNOTATION).and_then(Value::as_str).filter(|text| !text.is_empty());
        let header = header.and_then(|text| format!("{PREFIX}{text}").parse().ok());
        if let Some(header) = header {
            marked.push(MarkedProperty { path: path.clone(), header });
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

/// A text as the value of a header. Other characters are encoded.
pub(super) fn header_value(text: &str) -> Option<HeaderValue> {
    let is_printable = text.chars().all(|character| matches!(character, ' '..='~'));
    let is_trimmed = text.trim_matches(' ') == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    let plain = is_printable && is_trimmed && !looks_encoded;
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

/// Whether all marks of a tool's schema are valid.
fn are_sound(schema: &Value) -> bool {
    match schema {
        Value::Object(schema) => walk(schema, SchemaPosition::Root, &mut HashSet::new()),
        _ => true,
    }
}

/// How a schema is reached from the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    /// The path consists of `properties` only.
    Property,
    Elsewhere,
}

fn walk(schema: &Map<String, Value>, position: SchemaPosition, seen: &mut HashSet<String>) -> bool {
    schema.iter().all(|(key, value)| match key.as_str() {
        ANNOTATION => {
            position == SchemaPosition::Property && is_sound(value, schema.get("type"), seen)
        }
        "properties" if position == SchemaPosition::Elsewhere => walk_each(value, position, seen),
        "properties" => walk_each(value, SchemaPosition::Property, seen),
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
            walk_each(value, SchemaPosition::Elsewhere, seen)
        }
        // These contain values, not schemas.
        "default" | "const" | "enum" | "examples" => true,
        _ => walk_below(value, seen),
    })
}

/// Walks through schemas by name.
fn walk_each(schemas: &Value, position: SchemaPosition, seen: &mut HashSet<String>) -> bool {
    let schemas = schemas.as_object().into_iter().flat_map(Map::values);
    schemas.filter_map(Value::as_object).all(|schema| walk(schema, position, seen))
}

fn walk_below(value: &Value, seen: &mut HashSet<String>) -> bool {
    match value {
        Value::Object(schema) => walk(schema, SchemaPosition::Elsewhere, seen),
        Value::Array(values) => values.iter().all(|value| walk_below(value, seen)),
        _ => true,
    }
}

fn is_sound(mark: &Value, kind: Option<&Value>, seen: &mut HashSet<String>) -> bool {
    let Some(name) = mark.as_str().filter(|name| !name.is_empty()) else { return false };
    let fits = matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean"));
    fits && name.bytes().all(is_of_token) && seen.insert(name.to_ascii_lowercase())
}

/// Whether a header's name may have this character (RFC 9110, section 5.6.2).
fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers_of(arguments: &Value) -> Vec<(String, String)> {
        let parameters = ParameterHeaders::default();
        parameters.read(Some(&mut json!({ "tools": [
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
        parameters.add(&json!({ "name": "query", "arguments": arguments }), &mut headers);
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
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers_of(&arguments), expected);
    }

    #[test]
    fn only_the_tool_with_invalid_header_marks_is_left_out() {
        let tool = |name: &str, mark: &str| {
            let marked = json!({ "type": "string", "x-mcp-header": mark });
            json!({ "name": name, "inputSchema": { "properties": { "region": marked } } })
        };
        let page = |tools: &[Value]| json!({ "tools": tools, "odd": 1.0 });
        let (good, bad) = (tool("good", "Region"), tool("bad", "not a token"));
        let mut read = page(&[bad, good.clone(), json!("junk")]);
        ParameterHeaders::default().read(Some(&mut read));
        assert_eq!(read, page(&[good, json!("junk")]));
    }

    #[test]
    fn values_that_a_header_cannot_contain_are_encoded() {
        let region = |text: &str| headers_of(&json!({ "region": text }))[0].1.clone();
        assert_eq!(region("Zürich"), "=?base64?WsO8cmljaA==?=");
        assert_eq!(region(" x"), "=?base64?IHg=?=");
        assert_eq!(region("a\r\nb: c"), "=?base64?YQ0KYjogYw==?=");
        assert_eq!(headers_of(&json!({ "region": null })), []);
    }

    fn marked(kind: &str, mark: &Value) -> Value {
        json!({ "type": kind, "x-mcp-header": mark })
    }

    #[test]
    fn valid_header_marks_are_names_of_plain_properties() {
        for kind in ["string", "integer", "boolean"] {
            let schema = json!({ "properties": { "a": marked(kind, &json!("A-1")), "b": {} } });
            assert!(are_sound(&schema), "{schema}");
        }
        let deep = json!({ "properties": { "a": { "properties": { "b": marked("string", &json!("B")) } } } });
        assert!(are_sound(&deep));
        let value = json!({ "properties": { "a": { "default": { "x-mcp-header": "" } } } });
        assert!(are_sound(&value));
        assert!(are_sound(&json!(true)));
    }

    #[test]
    fn header_marks_with_bad_names_or_types_are_invalid() {
        let marks = [json!(""), json!("a b"), json!("a:b"), json!("é"), json!("a\tb"), json!(1)];
        for mark in marks {
            assert!(!are_sound(&json!({ "properties": { "a": marked("string", &mark) } })));
        }
        for kind in ["number", "object", "array", "null"] {
            assert!(!are_sound(&json!({ "properties": { "a": marked(kind, &json!("A")) } })));
        }
        let twice = json!({ "properties": {
            "a": marked("string", &json!("Name")), "b": marked("string", &json!("name")),
        } });
        assert!(!are_sound(&twice));
    }

    #[test]
    fn a_header_mark_outside_of_plain_properties_is_invalid() {
        let mark = marked("string", &json!("A"));
        for schema in [
            mark.clone(),
            json!({ "properties": { "a": { "items": mark } } }),
            json!({ "anyOf": [{ "properties": { "a": mark } }] }),
            json!({ "$defs": { "a": mark } }),
        ] {
            assert!(!are_sound(&schema), "{schema}");
        }
    }
}
