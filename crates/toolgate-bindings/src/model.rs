//! The types between schemas and declarations, independent of the language.
//!
//! Equal types are one node, whether they are equal by `$ref` or by structure. So types that are
//! used twice are found by counting, and nothing that a schema repeats is expanded twice.

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
    /// Any value, or a value about which nothing is known.
    Unknown,
    /// A type beyond the limits: any value, marked as left out.
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
        /// The number of required items.
        required: usize,
        /// The type of further items.
        rest: Option<NodeId>,
    },
    Object(Object),
    /// Flat, without duplicates, at least two, `null` last.
    Union(Vec<NodeId>),
    /// Types that could not be merged into one object.
    Intersection {
        parts: Vec<NodeId>,
        /// An object with all properties of the parts, for languages without intersections.
        outline: Option<NodeId>,
    },
    /// A reference of a type to itself.
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
    /// The type of other properties, if the schema allows some.
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

/// The documentation of a property.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Doc {
    /// Cleaned; may have several lines.
    pub(crate) text: String,
    /// Short notes on the values, such as `1..100`.
    pub(crate) notes: Vec<String>,
    /// The default as JSON, if it is short and `text` does not mention one.
    pub(crate) default: Option<String>,
}

/// A possible name for a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameHint {
    /// In `PascalCase`; may be empty.
    pub(crate) name: String,
    /// The position of the first tool that uses the type.
    pub(crate) tool: usize,
}

/// All types of a module.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// The depth of each type. Without a limit, references to known types could nest endlessly.
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

    /// Returns the node that equals `node`, and adds it if there is none.
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
        // The steps of all tools keep this far below 32 bits.
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

    /// Adds a type that is still being read and refers to itself.
    pub(crate) fn define(&mut self, hint: NameHint) -> DefinitionId {
        let id = DefinitionId(u32::try_from(self.definitions.len()).unwrap_or(u32::MAX));
        self.definitions.push((hint, None));
        id
    }

    /// Sets the body of a definition. Returns the node to use for it.
    pub(crate) fn close(&mut self, id: DefinitionId, body: NodeId) -> NodeId {
        // Many tools of one server often share the same recursive type.
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

    /// The body of a definition.
    pub(crate) fn body(&self, id: DefinitionId) -> NodeId {
        self.definitions.get(id.0 as usize).and_then(|(_, body)| *body).unwrap_or(Self::UNKNOWN)
    }

    pub(crate) fn definition_hint(&self, id: DefinitionId) -> &NameHint {
        &self.definitions[id.0 as usize].0
    }

    /// Suggests a name. Only the first suggestion counts.
    pub(crate) fn suggest(&mut self, id: NodeId, hint: NameHint) {
        self.hints.entry(id).or_insert(hint);
    }

    pub(crate) fn hint(&self, id: NodeId) -> Option<&NameHint> {
        self.hints.get(&id)
    }

    /// Sets the description of a type. Only the first one counts.
    pub(crate) fn describe(&mut self, id: NodeId, text: String) {
        if !text.is_empty() && matches!(self.node(id), Node::Object(_) | Node::Recursive(_)) {
            self.docs.entry(id).or_insert(text);
        }
    }

    pub(crate) fn description(&self, id: NodeId) -> &str {
        self.docs.get(&id).map_or("", String::as_str)
    }

    /// The direct parts of a type, without those behind a [`Node::Recursive`].
    pub(crate) fn children(&self, id: NodeId) -> Vec<NodeId> {
        children(self.node(id))
    }

    /// Whether a type was too deep or had too many alternatives since the last call.
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
