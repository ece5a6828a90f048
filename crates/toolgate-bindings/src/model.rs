//! Types as both languages understand them, between the schemas and the declarations.
//!
//! Equal types are one node, whether they were equal by `$ref` or by spelling. So a type that is
//! used twice is found by counting, and nothing that a schema repeats is expanded twice.

mod combine;

use std::collections::HashMap;

use serde_json::Number;

use crate::limits::MAX_HEIGHT;

/// A node of the [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

/// A type that contains itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DefinitionId(u32);

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// Anything, or nothing that could be said.
    Unknown,
    /// More than the limits allow: anything, and marked as left out.
    Cut,
    /// No value at all.
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Literal(Literal),
    Array(NodeId),
    Tuple {
        items: Vec<NodeId>,
        /// How many of the items must be there.
        required: usize,
        /// What may follow them.
        rest: Option<NodeId>,
    },
    Object(Object),
    /// Flat, without duplicates, at least two, `null` last.
    Union(Vec<NodeId>),
    /// What could not be merged into one object.
    Intersection {
        parts: Vec<NodeId>,
        /// One object that has all properties of the parts, for a language without intersections.
        outline: Option<NodeId>,
    },
    /// A type within itself.
    Recursive(DefinitionId),
}

/// One value as a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Literal {
    String(String),
    Number(Number),
    Boolean(bool),
}

/// An object's properties.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Object {
    /// In the order of the schema, no name twice.
    pub(crate) properties: Vec<Property>,
    /// The type of other properties, where the schema says that there may be some.
    pub(crate) rest: Option<NodeId>,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) node: NodeId,
    pub(crate) required: bool,
    pub(crate) doc: Doc,
}

/// What is said of a property besides its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Doc {
    /// Cleaned; may have several lines.
    pub(crate) text: String,
    /// Short remarks on the values, such as `1..100`.
    pub(crate) notes: Vec<String>,
    /// The default, where it is short and `text` does not speak of one.
    pub(crate) default: Option<Value>,
}

/// A short JSON value that can be hashed: its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Value(pub(crate) String);

/// What a type could be called, should it need a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameHint {
    /// In `PascalCase`; may be empty.
    pub(crate) name: String,
    /// The tool in which it was first seen, by position.
    pub(crate) tool: usize,
}

/// All types of a module.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// How many types are nested in each. References to what is known could nest without end.
    heights: Vec<usize>,
    overflowed: bool,
    ids: HashMap<Node, NodeId>,
    definitions: Vec<(NameHint, Option<NodeId>)>,
    docs: HashMap<NodeId, String>,
    hints: HashMap<NodeId, NameHint>,
}

impl Arena {
    pub(crate) const UNKNOWN: NodeId = NodeId(0);
    pub(crate) const NEVER: NodeId = NodeId(1);
    pub(crate) const NULL: NodeId = NodeId(2);
    pub(crate) const CUT: NodeId = NodeId(3);

    pub(crate) fn new() -> Self {
        let mut arena = Self {
            nodes: Vec::new(),
            heights: Vec::new(),
            overflowed: false,
            ids: HashMap::new(),
            definitions: Vec::new(),
            docs: HashMap::new(),
            hints: HashMap::new(),
        };
        for node in [Node::Unknown, Node::Never, Node::Null, Node::Cut] {
            arena.add(node);
        }
        arena
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The one node that is equal to `node`.
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let children = children(&node);
        let heights = children.iter().map(|child| self.heights[child.0 as usize]);
        let height = heights.max().map_or(0, |height| height + 1);
        if height > MAX_HEIGHT {
            self.overflowed = true;
            return Self::CUT;
        }
        // Bounded by the steps of all tools, far below 32 bits; saturating keeps it total.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node.clone());
        self.heights.push(height);
        self.ids.insert(node, id);
        id
    }

    /// An array of `item`.
    pub(crate) fn array(&mut self, item: NodeId) -> NodeId {
        self.add(Node::Array(item))
    }

    /// An object with any properties of one type.
    pub(crate) fn map(&mut self, value: NodeId) -> NodeId {
        self.add(Node::Object(Object { properties: Vec::new(), rest: Some(value) }))
    }

    /// A type that is still being read and was met within itself.
    pub(crate) fn define(&mut self, hint: NameHint) -> DefinitionId {
        let id = DefinitionId(u32::try_from(self.definitions.len()).unwrap_or(u32::MAX));
        self.definitions.push((hint, None));
        id
    }

    /// Says what a definition turned out to be. Gives the node to use for it.
    pub(crate) fn close(&mut self, id: DefinitionId, body: NodeId) -> NodeId {
        // A module of many tools of one server has the same recursive type again and again.
        const MAX_COMPARED: usize = 16;
        let same = (0..id.0)
            .map(DefinitionId)
            .filter(|earlier| self.definition_hint(*earlier).name == self.definition_hint(id).name)
            .take(MAX_COMPARED)
            .find(|earlier| {
                let mut steps = 1_000;
                self.equal(self.body(*earlier), body, &mut vec![(*earlier, id)], &mut steps)
            });
        if let Some((_, slot)) = self.definitions.get_mut(id.0 as usize) {
            *slot = Some(body);
        }
        self.add(Node::Recursive(same.unwrap_or(id)))
    }

    /// What the definition stands for.
    pub(crate) fn body(&self, id: DefinitionId) -> NodeId {
        self.definitions.get(id.0 as usize).and_then(|(_, body)| *body).unwrap_or(Self::UNKNOWN)
    }

    pub(crate) fn definition_hint(&self, id: DefinitionId) -> &NameHint {
        &self.definitions[id.0 as usize].0
    }

    /// Suggests a name; the first suggestion stays.
    pub(crate) fn suggest(&mut self, id: NodeId, hint: NameHint) {
        self.hints.entry(id).or_insert(hint);
    }

    pub(crate) fn hint(&self, id: NodeId) -> Option<&NameHint> {
        self.hints.get(&id)
    }

    /// Says what a type means; the first text stays.
    pub(crate) fn describe(&mut self, id: NodeId, text: String) {
        if !text.is_empty() && matches!(self.node(id), Node::Object(_) | Node::Recursive(_)) {
            self.docs.entry(id).or_insert(text);
        }
    }

    pub(crate) fn description(&self, id: NodeId) -> &str {
        self.docs.get(&id).map_or("", String::as_str)
    }

    /// The types that a type is made of, not those behind a [`Node::Recursive`].
    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        children(self.node(id))
    }

    /// Whether a type was too deep or had too many alternatives since the last time that this was asked.
    pub(crate) fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }

    /// The `T` of `T | null`.
    pub(crate) fn nullable(&self, id: NodeId) -> Option<NodeId> {
        match self.node(id) {
            Node::Union(parts) => match parts[..] {
                [inner, Self::NULL] => Some(inner),
                _ => None,
            },
            _ => None,
        }
    }
}

fn children(node: &Node) -> Vec<NodeId> {
    match node {
        Node::Array(item) => vec![*item],
        Node::Tuple { items, rest, .. } => items.iter().chain(rest).copied().collect(),
        Node::Object(object) => {
            object.properties.iter().map(|property| property.node).chain(object.rest).collect()
        }
        Node::Union(parts) => parts.clone(),
        Node::Intersection { parts, outline } => parts.iter().chain(outline).copied().collect(),
        _ => Vec::new(),
    }
}
