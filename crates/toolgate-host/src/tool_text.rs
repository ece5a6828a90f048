//! The text of a definition that search looks at.

use serde_json::Value;
use toolgate_search::{ParameterText, PreparedTools, ToolText};

/// A definition whose parts a [`ToolText`] can borrow.
#[derive(Debug)]
pub(crate) struct DefinitionText {
    definition: Value,
}

/// Changes with what this module reads of a definition. A test holds them against each other.
const TEXT_VERSION: u32 = 1;

/// Identifies the code that makes [`PreparedTools`] of definitions.
pub(crate) fn prepared_version() -> String {
    format!("{}-{TEXT_VERSION}", PreparedTools::VERSION)
}

const MAX_DEPTH: usize = 4;
const MAX_PARAMETERS: usize = 200;
/// Bounds the walk through schemas that refer to themselves.
const MAX_VISITS: usize = 2_000;

impl DefinitionText {
    pub(crate) fn new(definition: Value) -> Self {
        Self { definition }
    }

    pub(crate) fn text(&self) -> ToolText<'_> {
        let part = |name: &str| self.definition.get(name).and_then(Value::as_str);
        let annotated = self.definition.pointer("/annotations/title").and_then(Value::as_str);
        let mut parameters = Vec::new();
        if let Some(schema) = self.definition.get("inputSchema") {
            let mut visits = MAX_VISITS;
            collect(schema, schema, 0, &mut visits, &mut parameters);
        }
        ToolText {
            name: part("name").unwrap_or_default(),
            title: part("title").or(annotated),
            description: part("description").unwrap_or_default(),
            parameters,
        }
    }
}

/// Collects the properties of a schema and of the objects in it, outer ones first.
fn collect<'a>(
    schema: &'a Value,
    root: &'a Value,
    depth: usize,
    visits: &mut usize,
    into: &mut Vec<ParameterText<'a>>,
) {
    if depth > MAX_DEPTH || *visits == 0 || into.len() >= MAX_PARAMETERS {
        return;
    }
    *visits -= 1;
    let schema = resolve(schema, root);
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties {
            if into.len() >= MAX_PARAMETERS {
                return;
            }
            let property = resolve(property, root);
            into.push(ParameterText {
                name,
                description: property
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
                values: values(property),
            });
        }
        for property in properties.values() {
            collect(property, root, depth + 1, visits, into);
        }
    }
    if let Some(items) = schema.get("items") {
        collect(items, root, depth + 1, visits, into);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for option in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            collect(option, root, depth + 1, visits, into);
        }
    }
}

fn values(property: &Value) -> Vec<&str> {
    let of_items = property.get("items").and_then(|items| items.get("enum"));
    property
        .get("enum")
        .or(of_items)
        .and_then(Value::as_array)
        .map(|values| values.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
        .unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// If this fails, stored texts are old: change [`TEXT_VERSION`] too.
    #[test]
    fn nested_parameters_references_and_values_are_found() {
        assert_eq!(TEXT_VERSION, 1);
        let indexable = DefinitionText::new(json!({
            "name": "create", "description": "Creates.", "annotations": {"title": "Create it"},
            "inputSchema": {
                "properties": {
                    "address": {"$ref": "#/$defs/Address"},
                    "tags": {"type": "array", "items": {"enum": ["red", "blue"]}},
                    "size": {"enum": ["small", 3], "description": "How large"},
                },
                "$defs": {"Address": {"description": "Where", "properties": {"street": {}}}},
            },
        }));
        let text = indexable.text();
        assert_eq!(text.title, Some("Create it"));
        let found: Vec<_> =
            text.parameters.iter().map(|p| (p.name, p.description, p.values.clone())).collect();
        assert_eq!(
            found,
            [
                ("address", "Where", vec![]),
                ("tags", "", vec!["red", "blue"]),
                ("size", "How large", vec!["small"]),
                ("street", "", vec![]),
            ]
        );
    }

    #[test]
    fn a_schema_that_contains_itself_ends() {
        let node = json!({"properties": {"next": {"$ref": "#"}, "other": {"$ref": "#"}}});
        let indexable = DefinitionText::new(json!({"name": "walk", "inputSchema": node}));
        assert!(indexable.text().parameters.len() <= MAX_PARAMETERS);
        // Without a bound, this one would be visited more than a billion times.
        let wide = json!({"anyOf": vec![json!({"$ref": "#"}); 300]});
        let indexable = DefinitionText::new(json!({"name": "spin", "inputSchema": wide}));
        assert!(indexable.text().parameters.is_empty());
    }
}
