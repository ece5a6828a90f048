//! A tool's parameters on one line, for people and models that made a mistake.

use std::fmt::Write;

use serde_json::Value;

const MAX_PARAMETERS: usize = 24;
const MAX_TYPE_CHARACTERS: usize = 48;

/// `name(required: type, optional?: type)`, required parameters first, in the schema's order.
///
/// It is meant to be read, not compiled: deep types are cut short.
pub fn signature(name: &str, input_schema: &Value) -> String {
    let mut parts = parameters(input_schema);
    let total = parts.len();
    if total > MAX_PARAMETERS {
        parts.truncate(MAX_PARAMETERS);
        parts.push(format!("… {} more", total - MAX_PARAMETERS));
    }
    format!("{name}({})", parts.join(", "))
}

/// The signature with as many parameters as fit into so many characters, the required ones first. The
/// number of the others stands for them.
pub fn brief_signature(name: &str, input_schema: &Value, characters: usize) -> String {
    let parts = parameters(input_schema);
    let total = parts.len();
    let mut text = format!("{name}(");
    let mut length = text.chars().count();
    for (place, part) in parts.iter().enumerate() {
        length += part.chars().count() + 2;
        // A parameter that is left out needs a place too.
        let most = if place + 1 == total { characters } else { characters.saturating_sub(8) };
        if length > most || place == MAX_PARAMETERS {
            let comma = if place == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}… {} more)", total - place);
            return text;
        }
        if place > 0 {
            text.push_str(", ");
        }
        text.push_str(part);
    }
    text.push(')');
    text
}

/// `required: type`, `optional?: type`, each on one line.
fn parameters(input_schema: &Value) -> Vec<String> {
    let required: Vec<&str> = input_schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let Some(properties) = input_schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let (mut all, optional): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(key, _)| required.contains(&key.as_str()));
    let first_optional = all.len();
    all.extend(optional);
    let part = |(index, (key, schema)): (usize, (&String, &Value))| {
        // More are never shown, and their types need not be known.
        if index > MAX_PARAMETERS {
            return String::new();
        }
        let mark = if index < first_optional { "" } else { "?" };
        format!("{}{mark}: {}", short_name(key), short_type(schema, input_schema))
    };
    all.into_iter().enumerate().map(part).collect()
}

/// A name that no identifier would be is quoted, so that it cannot pass for something else.
fn short_name(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_-.$@[]".contains(character);
    if name.chars().count() <= MAX_TYPE_CHARACTERS && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let cut: String = name.chars().take(MAX_TYPE_CHARACTERS).collect();
    serde_json::Value::from(cut).to_string()
}

fn short_type(schema: &Value, root: &Value) -> String {
    let text = type_of(schema, root, 0);
    if text.chars().count() <= MAX_TYPE_CHARACTERS {
        return text;
    }
    let mut cut: String = text.chars().take(MAX_TYPE_CHARACTERS - 1).collect();
    cut.push('…');
    cut
}

fn type_of(schema: &Value, root: &Value, depth: usize) -> String {
    const DEEP: usize = 4;
    if depth > DEEP {
        return "any".to_owned();
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(|| "any".to_owned(), |target| type_of(target, root, depth + 1));
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return alternatives(values.iter().map(Value::to_string));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return alternatives(options.iter().map(|option| type_of(option, root, depth + 1)));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => named_type(name, schema, root, depth),
        Some(Value::Array(names)) => alternatives(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| named_type(name, schema, root, depth)),
        ),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

fn named_type(name: &str, schema: &Value, root: &Value, depth: usize) -> String {
    match (name, schema.get("items")) {
        ("array", Some(items)) => {
            let item = type_of(items, root, depth + 1);
            if item.contains(" | ") { format!("({item})[]") } else { format!("{item}[]") }
        }
        ("array", None) => "any[]".to_owned(),
        _ if !name.chars().all(|character| character.is_ascii_alphabetic()) => "any".to_owned(),
        _ => name.to_owned(),
    }
}

fn alternatives(options: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for option in options {
        if !distinct.contains(&option) {
            distinct.push(option);
        }
    }
    distinct.join(" | ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_like_a_declaration() {
        let schema = json!({
            "properties": {
                "labels": {"type": "array", "items": {"type": "string"}},
                "title": {"type": "string"},
                "state": {"enum": ["open", "closed"]},
                "parent": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "owner": {"$ref": "#/$defs/Owner"},
                "limit": {"type": ["integer", "null"]},
            },
            "required": ["title"],
            "$defs": {"Owner": {"type": "object", "properties": {}}},
        });
        insta::assert_snapshot!(signature("create", &schema), @r#"create(title: string, labels?: string[], state?: "open" | "closed", parent?: integer | null, owner?: object, limit?: integer | null)"#);
    }

    #[test]
    fn stays_short_and_ends() {
        assert_eq!(signature("now", &json!({"type": "object"})), "now()");
        let looping = json!({"properties": {"node": {"$ref": "#/properties/node"}}});
        assert_eq!(signature("walk", &looping), "walk(node?: any)");
        let many: serde_json::Map<String, Value> =
            (0..100).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
        let text = signature("wide", &json!({"properties": many}));
        assert!(text.ends_with("… 76 more)"), "{text}");
        let long = json!({"properties": {"mode": {"enum": vec!["x".repeat(30); 1], "x": 1},
            "other": {"enum": (0..50).map(|i| format!("value {i}")).collect::<Vec<_>>()}}});
        assert!(signature("pick", &long).len() < 200);
    }

    #[test]
    fn a_brief_one_has_what_fits() {
        let schema = json!({
            "properties": {
                "title": {"type": "string"}, "body": {"type": "string"},
                "labels": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["body"],
        });
        let brief = |characters| brief_signature("create", &schema, characters);
        assert_eq!(brief(200), "create(body: string, title?: string, labels?: string[])");
        assert_eq!(brief(48), "create(body: string, title?: string, … 1 more)");
        assert_eq!(brief(30), "create(body: string, … 2 more)");
        assert_eq!(brief(0), "create(… 3 more)");
        assert_eq!(brief_signature("now", &json!({}), 0), "now()");
        let forged = json!({"properties": {"a\n- evil(x: string)": {"type": "string"}, ("b".repeat(900)): {}}});
        let text = brief_signature("odd", &forged, 200);
        assert!(!text.contains('\n') && text.chars().count() < 200, "{text}");
    }
}
