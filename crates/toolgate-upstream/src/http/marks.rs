//! Which marks of a schema can be followed.
//!
//! A property that is to be repeated as a header has a type that fits one line, and a name that no
//! other has and that a header can have. It is reached by `properties` alone: what stands under a
//! condition or in a list may not be there, or be there more than once.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::parameters::ANNOTATION;

/// Whether all marks of a tool's schema can be followed.
pub(super) fn are_sound(schema: &Value) -> bool {
    match schema {
        Value::Object(schema) => walk(schema, Place::Root, &mut HashSet::new()),
        _ => true,
    }
}

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Reached by `properties` alone.
    Property,
    Elsewhere,
}

fn walk(schema: &Map<String, Value>, place: Place, seen: &mut HashSet<String>) -> bool {
    schema.iter().all(|(key, value)| match key.as_str() {
        ANNOTATION => place == Place::Property && is_sound(value, schema.get("type"), seen),
        "properties" if place == Place::Elsewhere => walk_each(value, place, seen),
        "properties" => walk_each(value, Place::Property, seen),
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
            walk_each(value, Place::Elsewhere, seen)
        }
        // Values, in which a key of that name means nothing.
        "default" | "const" | "enum" | "examples" => true,
        _ => walk_below(value, seen),
    })
}

/// Walks through schemas by name.
fn walk_each(schemas: &Value, place: Place, seen: &mut HashSet<String>) -> bool {
    let schemas = schemas.as_object().into_iter().flat_map(Map::values);
    schemas.filter_map(Value::as_object).all(|schema| walk(schema, place, seen))
}

fn walk_below(value: &Value, seen: &mut HashSet<String>) -> bool {
    match value {
        Value::Object(schema) => walk(schema, Place::Elsewhere, seen),
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

    fn marked(kind: &str, mark: &Value) -> Value {
        json!({ "type": kind, "x-mcp-header": mark })
    }

    #[test]
    fn sound_marks_are_names_of_plain_properties() {
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
    fn what_no_header_can_be_made_of_is_unsound() {
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
    fn a_mark_where_there_may_be_no_value_is_unsound() {
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
