//! Results that are not objects, and are sent as one all the same.

use serde_json::Value;

/// Whether an output schema only wraps what the tool returns.
///
/// Up to protocol version 2025-11-25 structured content has to be an object, so that SDKs put a list
/// or a text into one: `{"result": […]}`. What a script gets, and what a declaration shows, is what
/// is inside.
pub fn wraps_result(output_schema: &Value) -> bool {
    let properties = output_schema.get("properties").and_then(Value::as_object);
    let required = output_schema.get("required").and_then(Value::as_array);
    properties.is_some_and(|properties| properties.len() == 1 && properties.contains_key("result"))
        && required.is_some_and(|names| names.iter().any(|name| name == "result"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Output, ToolApi, python, typescript};

    #[test]
    fn one_required_property_of_that_name() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert!(wraps_result(&json!({"properties": {"result": list}, "required": ["result"]})));
        assert!(!wraps_result(&json!({"properties": {"result": list}})));
        let more = json!({"properties": {"result": list, "total": {}}, "required": ["result"]});
        assert!(!wraps_result(&more));
        assert!(!wraps_result(&json!({"properties": {"items": list}, "required": ["items"]})));
        assert!(!wraps_result(&json!(true)));
    }

    #[test]
    fn a_declaration_shows_what_is_inside() {
        let output = json!({
            "type": "object", "required": ["result"],
            "properties": {"result": {"type": "array", "items": {"type": "string"}}},
        });
        let input = json!({"type": "object"});
        let tool = ToolApi {
            name: "names",
            description: None,
            input_schema: &input,
            output: Output::Declared(&output),
        };
        assert!(typescript(&[tool]).contains("Promise<string[]>"), "{}", typescript(&[tool]));
        assert!(python(&[tool]).contains("-> list[str]"), "{}", python(&[tool]));
    }
}
