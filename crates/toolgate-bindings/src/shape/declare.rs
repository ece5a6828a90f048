//! Converts a shape to a type.

use super::{ScalarKind, Shape, ShapeField, ShapeMembers};
use crate::{
    model::{Arena, Doc, NameHint, Node, NodeId, Object, Property},
    text::{is_identifier, pascal_case, singular},
};

/// An object is a map if it has this many keys that look like data.
const FEW: usize = 3;
/// An object is a map if it has this many keys with values of one shape, some of which are
/// optional.
const MANY: usize = 12;

impl Shape {
    /// The type of this shape. `hint` is a possible name for it, `tool` the tool that it belongs
    /// to.
    pub(crate) fn declare(&self, arena: &mut Arena, hint: &str, tool: usize) -> NodeId {
        if self.kinds.contains(&ScalarKind::Anything) {
            return Arena::UNKNOWN;
        }
        let mut options: Vec<NodeId> = Vec::new();
        if let Some(items) = &self.array {
            let item = items.declare(arena, &singular(hint), tool);
            // All arrays were empty.
            let item = if item == Arena::NEVER { Arena::UNKNOWN } else { item };
            options.push(arena.array(item));
        }
        if let Some(members) = &self.object {
            let node = members.declare(arena, hint, tool);
            arena.suggest(node, NameHint { name: pascal_case(hint), tool });
            options.push(node);
        }
        for kind in &self.kinds {
            options.push(arena.add(match kind {
                ScalarKind::Boolean => Node::Boolean,
                ScalarKind::Integer => Node::Integer,
                ScalarKind::Number => Node::Number,
                ScalarKind::String => Node::String,
                ScalarKind::Null => Node::Null,
                ScalarKind::Anything => Node::Unknown,
            }));
        }
        arena.union(options)
    }
}

impl ShapeMembers {
    fn declare(&self, arena: &mut Arena, hint: &str, tool: usize) -> NodeId {
        match self {
            Self::Fields(fields) if !fields.is_empty() && !self.is_map() => {
                let properties = fields
                    .iter()
                    .map(|(name, field)| Property {
                        name: name.clone(),
                        node: field.shape.declare(arena, name, tool),
                        required: !field.optional,
                        doc: Doc::default(),
                    })
                    .collect();
                arena.add(Node::Object(Object { properties, rest: None }))
            }
            members => {
                let value = members.clone().into_value().declare(arena, &singular(hint), tool);
                let value = if value == Arena::NEVER { Arena::UNKNOWN } else { value };
                arena.map(value)
            }
        }
    }

    /// Whether the names are data (ids, dates, paths) and not a structure.
    fn is_map(&self) -> bool {
        let Self::Fields(fields) = self else { return true };
        let looks_like_data = |name: &String| {
            !is_identifier(name) && name.chars().any(|character| !character.is_ascii_alphabetic())
                || name.chars().filter(char::is_ascii_digit).count() > 3
        };
        let alike = || {
            let mut shapes = fields.values().map(|field: &ShapeField| &field.shape);
            let first = shapes.next();
            shapes.all(|shape| Some(shape) == first)
        };
        (fields.len() >= FEW && fields.keys().all(looks_like_data))
            || (fields.len() >= MANY && fields.values().any(|field| field.optional) && alike())
    }
}
