//! Arguments that fit a schema, as far as a small program can tell.

use serde_json::{Map, Value, json};

const DEEPEST: usize = 8;

/// The smallest arguments that a tool should accept.
pub(super) fn arguments(schema: &Value) -> Value {
    let sampled = sample(schema, schema, 0);
    if sampled.is_object() { sampled } else { json!({}) }
}

fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or(Value::Null, |target| sample(target, root, depth + 1));
    }
    for key in ["const", "default"] {
        // A default of null often stands beside a type that does not allow it.
        if let Some(value) = schema.get(key).filter(|value| !value.is_null()) {
            return value.clone();
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if schema["type"] != "object" {
        for key in ["anyOf", "oneOf", "allOf"] {
            if let Some(first) = schema[key].as_array().and_then(|schemas| schemas.first()) {
                return sample(first, root, depth + 1);
            }
        }
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    match kind {
        Some("string") => string(schema),
        Some("integer") => integer(schema),
        Some("number") => json!(number(schema)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| sample(&schema["items"], root, depth + 1)).collect()
        }
        _ => object(schema, root, depth),
    }
}

fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| {
        let value = sample(&schema["properties"][name], root, depth + 1);
        (name.to_owned(), value)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn string(schema: &Value) -> Value {
    let text = match schema["format"].as_str() {
        Some("uri") => "https://example.com",
        Some("date") => "2026-01-02",
        Some("date-time") => "2026-01-02T03:04:05Z",
        Some("email") => "somebody@example.com",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "a",
    };
    let length = schema["minLength"].as_u64().unwrap_or(0).min(1_000);
    let missing = usize::try_from(length).unwrap_or(0).saturating_sub(text.len());
    json!(format!("{text}{}", "a".repeat(missing)))
}

#[expect(clippy::cast_possible_truncation, reason = "bounds of schemas are small")]
fn integer(schema: &Value) -> Value {
    json!(number(schema).ceil() as i64)
}

fn number(schema: &Value) -> f64 {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"].as_f64().map(|bound| bound + 1.0);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    least.or(above).unwrap_or(1.0).min(most)
}
