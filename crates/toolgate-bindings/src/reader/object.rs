//! Reads objects: properties, maps and other properties.

use serde_json::{Map, Value};

use super::{Direction, SchemaReader};
use crate::{
    limits::{MAX_NAME, MAX_PROPERTIES, MAX_VALUES},
    model::{Arena, Literal, Node, NodeId, Object, Property},
};

impl<'a> SchemaReader<'a, '_> {
    pub(super) fn object(&mut self, keywords: &'a Map<String, Value>, hint: &str) -> NodeId {
        self.containers += 1;
        let required: Vec<&str> = match keywords.get("required") {
            Some(Value::Array(names)) => {
                names.iter().take(MAX_PROPERTIES).filter_map(Value::as_str).collect()
            }
            _ => Vec::new(),
        };
        let mut object = Object::default();
        for (name, schema) in
            keywords.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if object.properties.len() == MAX_PROPERTIES || !self.fits(name) {
                self.budget.exceed();
                object.rest = Some(Arena::CUT);
                break;
            }
            let node = self.schema(schema, name);
            object.properties.push(Property {
                name: name.clone(),
                node,
                // In draft 3 the property itself says it.
                required: required.contains(&name.as_str())
                    || schema.get("required") == Some(&Value::Bool(true)),
                doc: self.documentation(name, schema),
            });
        }
        if object.rest.is_none() {
            object.rest = self.rest(keywords, &mut object.properties, hint);
        }
        // A caller must pass a required property even if it is not declared.
        for name in required {
            let known = object.properties.iter().any(|property| property.name == name);
            if !known && !object.properties.is_empty() && self.fits(name) {
                object.properties.push(Property {
                    name: name.to_owned(),
                    node: object.rest.unwrap_or(Arena::UNKNOWN),
                    required: true,
                    doc: crate::model::Doc::default(),
                });
            }
        }
        self.containers -= 1;
        self.arena.add(Node::Object(object))
    }

    /// The type of properties without a schema of their own. If their names are listed, they become
    /// properties instead.
    fn rest(
        &mut self,
        keywords: &'a Map<String, Value>,
        properties: &mut Vec<Property>,
        hint: &str,
    ) -> Option<NodeId> {
        let one = crate::text::singular(hint);
        let mut others = Vec::new();
        if let Some(patterns) = keywords.get("patternProperties").and_then(Value::as_object) {
            others.extend(patterns.values().map(|schema| self.described(schema, &one)));
        }
        match keywords.get("additionalProperties") {
            Some(Value::Bool(true)) => others.push(Arena::UNKNOWN),
            Some(schema @ Value::Object(_)) => others.push(self.described(schema, &one)),
            _ => {}
        }
        if others.is_empty() {
            return None;
        }
        let value = self.arena.union(others);
        let names = keywords.get("propertyNames").and_then(|names| names.get("enum"));
        if let Some(names) = names.and_then(Value::as_array).filter(|_| properties.is_empty()) {
            for name in names.iter().filter_map(Value::as_str) {
                let known = properties.iter().any(|property| property.name == name);
                if known || properties.len() == MAX_PROPERTIES || !self.fits(name) {
                    continue;
                }
                properties.push(Property {
                    name: name.to_owned(),
                    node: value,
                    required: false,
                    doc: crate::model::Doc::default(),
                });
            }
            return None;
        }
        // A result may always have more properties than it declares.
        let is_declared = self.direction == Direction::Input || value != Arena::UNKNOWN;
        (is_declared || properties.is_empty()).then_some(value)
    }

    /// Whether the budget allows another property with this name.
    fn fits(&mut self, name: &str) -> bool {
        name.len() <= MAX_NAME && self.budget.step() && self.budget.text(name.len())
    }
}

impl SchemaReader<'_, '_> {
    /// The scalar type of this name, with the spellings that careless servers use.
    pub(super) fn scalar(&mut self, name: &str) -> NodeId {
        self.arena.add(match name {
            "string" | "str" => Node::String,
            "number" | "float" | "double" => Node::Number,
            "integer" | "int" => Node::Integer,
            "boolean" | "bool" => Node::Boolean,
            "null" | "none" => Node::Null,
            _ => Node::Unknown,
        })
    }

    /// The values that `const` or `enum` allow.
    pub(super) fn literals(&mut self, keywords: &Map<String, Value>) -> Option<NodeId> {
        if let Some(value) = keywords.get("const") {
            return Some(self.literal(value));
        }
        let values = keywords.get("enum")?.as_array().filter(|values| !values.is_empty())?;
        let mut options = Vec::new();
        for value in values.iter().take(MAX_VALUES - 2) {
            if !self.budget.step() {
                break;
            }
            options.push(self.literal(value));
        }
        if options.len() < values.len() {
            self.budget.exceed();
            options.push(Arena::CUT);
        }
        Some(self.arena.union(options))
    }

    fn literal(&mut self, value: &Value) -> NodeId {
        let node = match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Literal(Literal::Boolean(*value)),
            Value::Number(number) => Node::Literal(Literal::Number(number.clone())),
            Value::String(text) if text.len() <= MAX_NAME && self.budget.text(text.len()) => {
                Node::Literal(Literal::String(text.clone()))
            }
            Value::String(_) => Node::String,
            Value::Array(_) => return self.arena.array(Arena::UNKNOWN),
            Value::Object(_) => return self.arena.map(Arena::UNKNOWN),
        };
        self.arena.add(node)
    }
}
