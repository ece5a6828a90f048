//! Types without parts: scalars, constants and enumerations.

use serde_json::{Map, Value};

use super::Reader;
use crate::{
    limits::{MAX_NAME, MAX_VALUES},
    model::{Arena, Literal, Node, NodeId},
};

impl Reader<'_, '_> {
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
