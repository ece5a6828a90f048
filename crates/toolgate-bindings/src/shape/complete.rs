//! Adds what results had to what a server declares about them.

use serde_json::{Value, json};

use super::{Shape, ShapeMembers};
use crate::wraps_result;

/// Keywords of an object that already say which other names there are.
const OTHERS: &[&str] = &["additionalProperties", "patternProperties", "unevaluatedProperties"];

impl Shape {
    /// Adds the fields that results had to those that a schema declares, where the schema does not say
    /// that these are all. What they contain is not declared.
    pub fn complete(&self, schema: &mut Value) {
        let start = if wraps_result(schema) { "/properties/result" } else { "" };
        self.complete_at(schema, start);
    }

    fn complete_at(&self, root: &mut Value, pointer: &str) {
        let Some(Value::Object(keywords)) = root.pointer_mut(pointer) else { return };
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            // What refers to itself is nested in results as often as in the shape.
            let target = target.strip_prefix('#').map(str::to_owned);
            if let Some(target) = target.filter(|target| target != pointer) {
                self.complete_parts(root, &target);
            }
            return;
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = match root.pointer(pointer).and_then(|schema| schema.get(keyword)) {
                Some(Value::Array(branches)) => branches.len(),
                _ => continue,
            };
            for number in 0..branches {
                self.complete_parts(root, &format!("{pointer}/{keyword}/{number}"));
            }
            return;
        }
        self.complete_parts(root, pointer);
    }

    fn complete_parts(&self, root: &mut Value, pointer: &str) {
        let Some(Value::Object(keywords)) = root.pointer_mut(pointer) else { return };
        if let (Some(items), true) = (&self.array, keywords.contains_key("items")) {
            items.complete_at(root, &format!("{pointer}/items"));
        }
        let Some(members) = &self.object else { return };
        let Some(Value::Object(keywords)) = root.pointer_mut(pointer) else { return };
        let is_open = !OTHERS.iter().any(|keyword| keywords.contains_key(*keyword));
        let Some(Value::Object(properties)) = keywords.get_mut("properties") else { return };
        let fields = match members {
            ShapeMembers::Fields(fields) => fields,
            ShapeMembers::Map(_) => {
                if is_open {
                    keywords.insert("additionalProperties".to_owned(), json!(true));
                }
                return;
            }
        };
        let mut declared = Vec::new();
        for (name, field) in fields {
            if properties.contains_key(name) {
                declared.push((name, &field.shape));
            } else if is_open {
                properties.insert(name.clone(), json!({}));
            }
        }
        for (name, shape) in declared {
            let name = name.replace('~', "~0").replace('/', "~1");
            shape.complete_at(root, &format!("{pointer}/properties/{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(mut schema: Value, results: &[Value]) -> Value {
        let mut shape = Shape::default();
        for result in results {
            shape.observe(result);
        }
        shape.complete(&mut schema);
        schema
    }

    #[test]
    fn fields_that_results_had_are_added_to_open_objects() {
        let item = json!({ "type": "object", "properties": { "id": {} } });
        let schema = json!({ "type": "object", "properties": {
            "open": { "type": "array", "items": item },
            "closed": { "properties": { "a": {} }, "additionalProperties": false },
            "either": { "anyOf": [{ "type": "null" }, item] },
            "named": { "$ref": "#/$defs/Item" },
        }, "$defs": { "Item": item } });
        let part = json!({ "id": 1, "extra": { "b": 1 } });
        let result =
            json!({ "open": [part], "closed": part, "either": part, "named": part, "hidden": 1 });
        let found = completed(schema, &[result]);
        let names = |pointer: &str| -> Vec<String> {
            let properties = found.pointer(pointer).and_then(Value::as_object);
            properties.map(|all| all.keys().cloned().collect()).unwrap_or_default()
        };
        for pointer in [
            "/properties/open/items/properties",
            "/properties/either/anyOf/1/properties",
            "/$defs/Item/properties",
        ] {
            assert_eq!(names(pointer), ["id", "extra"], "{pointer}");
        }
        assert_eq!(names("/properties/closed/properties"), ["a"]);
        assert!(names("/properties").contains(&"hidden".to_owned()));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#" });
        assert_eq!(completed(schema.clone(), &[json!({ "a": 1 })]), schema);
        let node = json!({ "properties": { "next": { "$ref": "#/$defs/Node" } } });
        let schema = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": node } });
        let found = completed(schema, &[json!({ "next": { "next": { "more": 1 } } })]);
        assert_eq!(found.pointer("/$defs/Node/properties/more"), Some(&json!({})));
    }

    #[test]
    fn a_wrapped_result_is_completed_inside() {
        let list = json!({ "type": "array", "items": { "properties": { "a": {} } } });
        let schema = json!({ "type": "object", "properties": { "result": list }, "required": ["result"], "x-fastmcp-wrap-result": true });
        let found = completed(schema, &[json!([{ "a": 1, "b": 2 }])]);
        let added = found.pointer("/properties/result/items/properties/b");
        assert_eq!(added, Some(&json!({})));
    }
}
