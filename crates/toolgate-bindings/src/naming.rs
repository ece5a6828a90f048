//! Chooses the types that get a name, and their names.

use std::collections::{HashMap, HashSet};

use crate::{
    model::{Arena, DefinitionId, NameHint, Node, NodeId},
    module::{Module, ToolFunction},
    text::pascal_case,
};

/// Types with fewer characters than this are repeated instead of named.
const WORTH_A_NAME: usize = 48;

/// How a language writes objects. A type has the same name in all languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    /// A short object is written where it is used. So are the arguments of a function, and its result
    /// if nothing else uses it.
    Inline,
    /// Every object with properties is declared, because the language cannot write it inline.
    Declared,
}

/// Types of the languages, and names that declarations use. No type gets one of them.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    // TypeScript
    "Array", "ArrayBuffer", "AsyncFunction", "AsyncGenerator", "AsyncIterable", "AsyncIterator", "Atomics", "Awaited",
    "BigInt", "Boolean", "Capitalize", "ConstructorParameters", "DataView", "Date", "Disposable", "Error",
    "EvalError", "Exclude", "Extract", "FinalizationRegistry", "Function", "Generator", "InstanceType", "Intl",
    "Iterable", "Iterator", "JSON", "Lowercase", "Map", "Math", "NoInfer", "NonNullable",
    "Number", "Object", "Omit", "Parameters", "Partial", "Pick", "Promise", "PromiseLike",
    "Proxy", "RangeError", "Readonly", "Record", "ReferenceError", "Reflect", "RegExp", "Required",
    "ReturnType", "Set", "SharedArrayBuffer", "String", "Symbol", "SyntaxError", "Temporal", "TypeError",
    "URIError", "Uncapitalize", "Uppercase", "WeakMap", "WeakRef", "WeakSet",
    // Python
    "Any", "False", "Literal", "Never", "None", "NotRequired", "True", "TypeAlias", "TypeVar", "TypedDict",
];

/// The names of types that are declared already, in declarations that are shown together.
#[derive(Debug, Default)]
pub struct DeclaredNames(HashSet<String>);

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

    /// Chooses the names. No type gets one of `used`, which then has the declared ones too.
    pub(crate) fn choose(module: &Module, objects: Objects, used: &mut DeclaredNames) -> Self {
        let mut survey = Survey {
            arena: &module.arena,
            objects,
            uses: HashMap::new(),
            order: Vec::new(),
            bodies: Vec::new(),
            weights: HashMap::new(),
            results: HashSet::new(),
        };
        for function in &module.functions {
            survey.function(function);
        }
        survey.pending();
        let functions = module.functions.iter().map(|function| function.name.as_str());
        let others = used.0.iter().map(String::as_str);
        let mut taken = UsedNames::new(RESERVED.iter().copied().chain(functions).chain(others));
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
            if survey.has_name(id) && !names.nodes.contains_key(&id) {
                // One that is not declared here keeps its name, for the other language.
                let name = taken.free_name(module, module.arena.hint(id));
                if survey.is_declared(id) {
                    names.nodes.insert(id, name.clone());
                    names.declared.push((name, id));
                }
            }
        }
        used.0.extend(names.declared.iter().map(|(name, _)| name.clone()));
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
    /// The results of functions.
    results: HashSet<NodeId>,
}

impl Survey<'_> {
    fn function(&mut self, function: &ToolFunction) {
        match (self.objects, self.arena.node(function.input)) {
            // The arguments are part of the function; only types inside them can get a name.
            (Objects::Inline, Node::Object(_)) => self.inside(function.input),
            (Objects::Inline, _) => self.visit(function.input),
            (Objects::Declared, _) => {
                for property in &function.parameters.properties {
                    self.visit(property.node);
                }
            }
        }
        self.visit(function.output);
        self.results.insert(function.output);
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
            (Node::Intersection { outline: Some(outline), .. }, Objects::Declared) => {
                vec![*outline]
            }
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

    /// Whether a type gets a name.
    fn has_name(&self, id: NodeId) -> bool {
        match self.arena.node(id) {
            Node::Object(object) if !object.properties.is_empty() => true,
            Node::Object(_) | Node::Union(_) | Node::Intersection { .. } | Node::Tuple { .. } => {
                let is_shared = self.uses.get(&id).is_some_and(|uses| *uses > 1);
                !self.is_transparent(id) && is_shared && self.is_long(id)
            }
            _ => false,
        }
    }

    /// Whether a type with a name is declared, and not written where it is used.
    fn is_declared(&self, id: NodeId) -> bool {
        let is_written = || {
            let is_only_result = self.results.contains(&id) && self.uses.get(&id) == Some(&1);
            !self.is_long(id) || is_only_result
        };
        self.has_name(id) && (self.objects == Objects::Declared || !is_written())
    }

    fn is_long(&self, id: NodeId) -> bool {
        self.weights.get(&id).is_some_and(|weight| *weight > WORTH_A_NAME)
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
        let named = matches!(self.arena.node(id), Node::Recursive(_)) || self.is_declared(id);
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
