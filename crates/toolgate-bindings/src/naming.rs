//! Chooses the types that get a name, and their names.

use std::collections::HashMap;

use crate::{
    model::{Arena, DefinitionId, NameHint, Node, NodeId},
    module::{Module, ToolFunction},
    text::pascal_case,
};

/// Types with fewer characters than this are repeated instead of named.
const WORTH_A_NAME: usize = 48;

/// Which objects get a name although they are used only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    /// None: they are written inline.
    Inline,
    /// All with properties, because the language cannot write them inline.
    Named,
}

/// The names of a module's types.
#[derive(Debug)]
pub(crate) struct TypeNames {
    /// The declared types in the order of their first use.
    pub(crate) declared: Vec<(String, NodeId)>,
    nodes: HashMap<NodeId, String>,
    definitions: HashMap<DefinitionId, String>,
}

impl TypeNames {
    /// The name of a type, if it has one.
    pub(crate) fn of(&self, arena: &Arena, id: NodeId) -> Option<&str> {
        match arena.node(id) {
            Node::Recursive(definition) => self.definitions.get(definition).map(String::as_str),
            _ => self.nodes.get(&id).map(String::as_str),
        }
    }

    /// Chooses the names. No type gets one of the names in `reserved`.
    pub(crate) fn choose(module: &Module, objects: Objects, reserved: &[&str]) -> Self {
        let mut survey = Survey {
            arena: &module.arena,
            objects,
            uses: HashMap::new(),
            order: Vec::new(),
            bodies: Vec::new(),
            weights: HashMap::new(),
        };
        for function in &module.functions {
            survey.function(function);
        }
        survey.pending();
        let functions = module.functions.iter().map(|function| function.name.as_str());
        let mut taken = UsedNames::new(reserved.iter().copied().chain(functions));
        let mut names =
            Self { declared: Vec::new(), nodes: HashMap::new(), definitions: HashMap::new() };
        let order = std::mem::take(&mut survey.order);
        for id in &order {
            survey.weigh(*id);
        }
        for id in &order {
            if let Node::Recursive(definition) = module.arena.node(*id) {
                let hint = module.arena.definition_hint(*definition);
                let name = taken.free_name(module, Some(hint));
                let body = module.arena.body(*definition);
                names.nodes.insert(body, name.clone());
                names.definitions.insert(*definition, name.clone());
                names.declared.push((name, body));
            }
        }
        for id in order {
            if survey.needs_name(id) && !names.nodes.contains_key(&id) {
                let name = taken.free_name(module, module.arena.hint(id));
                names.nodes.insert(id, name.clone());
                names.declared.push((name, id));
            }
        }
        names
    }
}

struct Survey<'m> {
    arena: &'m Arena,
    objects: Objects,
    uses: HashMap<NodeId, usize>,
    /// Every type in the order of first use, containers before their contents.
    order: Vec<NodeId>,
    /// The bodies of recursive types that are still to be visited. They are visited one after the
    /// other, because their chains may be long.
    bodies: Vec<NodeId>,
    /// The approximate length of a type where it is used.
    weights: HashMap<NodeId, usize>,
}

impl Survey<'_> {
    fn function(&mut self, function: &ToolFunction) {
        match (self.objects, self.arena.node(function.input)) {
            // The arguments are part of the function; only types inside them can get a name.
            (Objects::Inline, Node::Object(_)) => self.inside(function.input),
            (Objects::Inline, _) => self.visit(function.input),
            (Objects::Named, _) => {
                for property in &function.parameters.properties {
                    self.visit(property.node);
                }
            }
        }
        self.visit(function.output);
    }

    fn pending(&mut self) {
        while let Some(body) = self.bodies.pop() {
            self.visit(body);
        }
    }

    fn visit(&mut self, id: NodeId) {
        let uses = self.uses.entry(id).or_insert(0);
        *uses += 1;
        if *uses == 1 {
            self.order.push(id);
            self.inside(id);
        } else if self.is_transparent(id) {
            // `T[]` and `T | null` get no name, but count as uses of T.
            for child in self.arena.children(id) {
                if *self.uses.get(&child).unwrap_or(&0) < 2 {
                    self.visit(child);
                }
            }
        }
    }

    fn inside(&mut self, id: NodeId) {
        if let Node::Recursive(definition) = self.arena.node(id) {
            self.bodies.push(self.arena.body(*definition));
            return;
        }
        // Each language shows one side of an intersection.
        let shown = match (self.arena.node(id), self.objects) {
            (Node::Intersection { outline: Some(outline), .. }, Objects::Named) => vec![*outline],
            (Node::Intersection { parts, .. }, _) => parts.clone(),
            _ => self.arena.children(id),
        };
        for child in shown {
            self.visit(child);
        }
    }

    fn is_transparent(&self, id: NodeId) -> bool {
        matches!(self.arena.node(id), Node::Array(_)) || self.arena.nullable(id).is_some()
    }

    fn needs_name(&self, id: NodeId) -> bool {
        match self.arena.node(id) {
            Node::Object(object) if self.objects == Objects::Named => !object.properties.is_empty(),
            Node::Object(_) | Node::Union(_) | Node::Intersection { .. } | Node::Tuple { .. } => {
                let is_shared = self.uses.get(&id).is_some_and(|uses| *uses > 1);
                let is_object = matches!(self.arena.node(id), Node::Object(object) if !object.properties.is_empty());
                !self.is_transparent(id)
                    && (is_shared || is_object && self.arena.is_defined(id))
                    && self.weights.get(&id).is_some_and(|weight| *weight > WORTH_A_NAME)
            }
            _ => false,
        }
    }

    /// The length of a type where it is used, which is that of its name if it has one.
    fn weigh(&mut self, id: NodeId) -> usize {
        const NAME: usize = 12;
        let own = if let Some(known) = self.weights.get(&id) {
            *known
        } else {
            // Types contain themselves only through recursive types, so this terminates.
            let children = self.arena.children(id);
            let inner = children
                .iter()
                .fold(0_usize, |sum, child| sum.saturating_add(self.weigh(*child) + 3));
            let own = inner.saturating_add(self.own_weight(id));
            self.weights.insert(id, own);
            own
        };
        let named = matches!(self.arena.node(id), Node::Recursive(_)) || self.needs_name(id);
        if named { NAME } else { own }
    }

    fn own_weight(&self, id: NodeId) -> usize {
        match self.arena.node(id) {
            Node::Literal(crate::model::Literal::String(text)) => text.len() + 2,
            Node::Object(object) => object
                .properties
                .iter()
                .map(|property| property.name.len() + property.doc.text.len() + 4)
                .sum::<usize>(),
            _ => 6,
        }
    }
}

/// The names that are in use.
struct UsedNames {
    /// The names, with the tool that the type belongs to, if it does.
    names: HashMap<String, Option<usize>>,
    /// The last number that was appended to a name.
    numbers: HashMap<String, usize>,
}

impl UsedNames {
    fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self { names: names.map(|name| (name.to_owned(), None)).collect(), numbers: HashMap::new() }
    }

    /// A free name: the hint, then the hint with the name of the tool before it if a type of
    /// another tool has that name, then one with a number.
    fn free_name(&mut self, module: &Module, hint: Option<&NameHint>) -> String {
        let tool = hint.map(|hint| hint.tool);
        let own = hint.map_or("", |hint| hint.name.as_str());
        let own = if own.is_empty() { "Type" } else { own };
        if self.take(own, tool) {
            return own.to_owned();
        }
        if self.names.get(own) != Some(&tool) {
            let function = tool.and_then(|tool| module.functions.get(tool));
            let prefix = function.map(|function| pascal_case(&function.name)).unwrap_or_default();
            let longer = format!("{prefix}{own}");
            if self.take(&longer, tool) {
                return longer;
            }
        }
        loop {
            let number = self.numbers.entry(own.to_owned()).or_insert(1);
            *number += 1;
            let name = format!("{own}{number}");
            if self.take(&name, tool) {
                return name;
            }
        }
    }

    fn take(&mut self, name: &str, tool: Option<usize>) -> bool {
        let is_free = !self.names.contains_key(name);
        if is_free {
            self.names.insert(name.to_owned(), tool);
        }
        is_free
    }
}
