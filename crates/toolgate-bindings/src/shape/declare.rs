//! A shape as a type.

use super::{ScalarKind, Shape, ShapeField, ShapeMembers};
use crate::{
    model::{Arena, Doc, NameHint, Node, NodeId, Object, Property},
    text::{is_identifier, pascal_case, singular},
};

/// This many keys that look like data are a map.
const FEW: usize = 3;
/// This many keys with values of one shape, not all of which are always there, are a map.
const MANY: usize = 12;

impl Shape {
    /// The type that this shape says; `hint` is what it could be called, `tool` whose it is.
    pub(crate) fn declare(&self, arena: &mut Arena, hint: &str, tool: usize) -> NodeId {
        if self.kinds.contains(&ScalarKind::Anything) {
            return Arena::UNKNOWN;
        }
        let mut options: Vec<NodeId> = Vec::new();
        if let Some(items) = &self.array {
            let item = items.declare(arena, &singular(hint), tool);
            // Only empty arrays were seen.
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

    /// Whether the names are data rather than a structure: identities, dates, paths.
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
