//! Tool definitions that are broken or unusual like those of real servers.
//!
//! Each function returns one definition for [`Fixture::with_tool`](crate::Fixture::with_tool).
//! Those with a usable name can be called, and behave like [`Builtin::Echo`](crate::Builtin::Echo).

use serde_json::{Value, json};

/// A definition without a name.
pub fn without_name() -> Value {
    json!({ "description": "Nameless.", "inputSchema": { "type": "object" } })
}

/// A definition whose name is a number.
pub fn numeric_name() -> Value {
    json!({ "name": 7, "description": "Seven.", "inputSchema": { "type": "object" } })
}

/// An entry that is a string instead of an object.
pub fn not_an_object() -> Value {
    json!("not a definition")
}

/// A definition without an input schema.
pub fn without_schema(name: &str) -> Value {
    json!({ "name": name, "description": "Takes who knows what." })
}

/// An input schema without `type: object`.
pub fn schema_without_type(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "properties": { "value": { "type": "string" } } } })
}

/// An input schema that is `true`, which is valid JSON Schema but no object.
pub fn boolean_schema(name: &str) -> Value {
    json!({ "name": name, "inputSchema": true })
}

/// An input schema that does not compile: its pattern is an invalid regular expression.
pub fn invalid_pattern(name: &str) -> Value {
    json!({
        "name": name,
        "inputSchema": {
            "type": "object",
            "properties": { "value": { "type": "string", "pattern": "([unclosed" } },
        },
    })
}

/// An input schema that does not compile: its `$ref` points nowhere.
pub fn dangling_reference(name: &str) -> Value {
    json!({
        "name": name,
        "inputSchema": {
            "type": "object",
            "properties": { "value": { "$ref": "#/$defs/absent" } },
        },
    })
}

/// A sound definition with fields that SDKs do not know and must not lose.
pub fn unknown_fields(name: &str) -> Value {
    json!({
        "name": name,
        "title": "Unknown fields",
        "description": "Has more to say than the protocol asks for.",
        "inputSchema": { "type": "object", "properties": {}, "x-order": ["b", "a"] },
        "annotations": { "readOnlyHint": true, "custom": { "cost": 1.50 } },
        "execution": { "taskSupport": "optional", "priority": 3 },
        "x-vendor": { "tier": "gold", "since": null },
        "_meta": { "fixture/origin": "malformed" },
    })
}

/// One of each, with the names `no_schema`, `no_type`, `boolean_schema`, `invalid_pattern`,
/// `dangling_reference` and `unknown_fields` where there is a name.
pub fn all() -> Vec<Value> {
    vec![
        without_name(),
        numeric_name(),
        not_an_object(),
        without_schema("no_schema"),
        schema_without_type("no_type"),
        boolean_schema("boolean_schema"),
        invalid_pattern("invalid_pattern"),
        dangling_reference("dangling_reference"),
        unknown_fields("unknown_fields"),
    ]
}
