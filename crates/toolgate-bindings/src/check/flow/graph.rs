//! The constraint graph: which values each place of a script may hold.
//!
//! A node is a place: a variable at some point, a field of an object, the result of an expression.
//! It only ever gets more values. A use says where the values of a node go. Both are repeated until
//! nothing changes, or until a limit is reached.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Solver,
    ir::{FunctionId, Name, index, name},
};

pub(super) type Node = u32;
pub(super) type ObjectId = u32;
pub(super) type CallId = u32;
/// A call of a tool in the script.
pub(super) type SiteId = u32;

/// The largest number of nodes.
const MAX_NODES: usize = 300_000;
/// The largest number of steps to follow the data of a script. With more of them the flows are
/// unknown.
pub const MAX_FLOW_STEPS: usize = 1_500_000;

/// The node that never has a value.
pub(super) const NOTHING: Node = 0;

/// What a place may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// Data that was computed from the result of a tool.
    Data(SiteId),
    /// A value that was chosen by the result of a tool.
    Choice(SiteId),
    /// An object. Several objects of a run may be the same here.
    Object(ObjectId),
}

/// Where the values of a node go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Use {
    Copy(Node),
    /// The data in the values, at any depth.
    Deep(Node),
    /// The data in the values, which only chooses.
    Choose(Node),
    /// The data among the values, without that in objects: what chose an object.
    Labels(Node),
    /// The data that determines how many elements there are.
    Shape(Node),
    Load(Name, Node),
    LoadAny(Node),
    /// The elements in a loop.
    Items(Node),
    Keys(Node),
    /// The values of the other node become a field of the objects.
    Store(Name, Node),
    /// A key that is looked up, and that an object of the engine may add.
    LookUp(Node),
    /// All fields become fields of the object.
    Spread(ObjectId),
    /// All fields become fields of the object, as outcomes of promises.
    Settle(ObjectId),
    /// The objects get all fields of what is in the other node.
    SpreadFrom(Node),
    /// A field that an object inherits.
    Inherited {
        name: Name,
        to: Node,
        receiver: ObjectId,
    },
    Bind {
        to: Node,
        receiver: ObjectId,
    },
    Call(CallId),
    Method(CallId),
    /// The classes of the objects, in Python.
    ClassOf(Node),
    /// The positions of elements are no longer known.
    Blur,
    /// A regular expression with a state remembers what it was applied to.
    Remember(Node),
    /// The methods of the objects that compare get the values of the other node.
    Compare(Node),
    /// The values become an attribute of a class, which binds functions to the objects of the other
    /// node.
    Attribute {
        to: Node,
        this: Node,
    },
    /// Functions are named after the data of the other node.
    Rename(Node),
    /// What the objects become when they are awaited.
    Resolve(Node),
    /// A computed property of a function may be the constructor of functions.
    Reflect(Node),
    /// The script assigns to a part of the objects.
    Change,
    /// An attribute is looked up whose name is not known, in Python. Only a text can name an
    /// attribute of an attribute.
    Inside {
        is_text: bool,
    },
}

#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<NodeState>,
    pub(super) objects: Vec<Object>,
    pub(super) fields: FxHashMap<(ObjectId, Name), Node>,
    /// The values of each node, with the node that each value came from first.
    known: FxHashMap<(Node, Value), Node>,
    edges: FxHashSet<(Node, Use)>,
    work: VecDeque<(Node, Value)>,
    /// Uses that have not seen the values that were there before them.
    new_uses: VecDeque<(Node, Use)>,
    pub(super) steps: usize,
    /// Whether the limit was reached, or something happens that is not followed.
    pub(super) is_lost: bool,
}

#[derive(Default)]
pub(super) struct NodeState {
    pub(super) values: Vec<Value>,
    uses: Vec<Use>,
    pub(super) name: Name,
    /// The object that the node is a part of.
    pub(super) object: Option<ObjectId>,
}

pub(super) struct Object {
    pub(super) kind: ObjectKind,
    pub(super) fields: Vec<(Name, Node)>,
    pub(super) any: Option<Node>,
    pub(super) taint: Option<Node>,
    /// Where inherited fields come from.
    pub(super) parents: Vec<Node>,
    pub(super) spreads: Vec<Use>,
    /// The fields that a spread does not set, because something else does.
    pub(super) excluded: Vec<Name>,
    pub(super) name: Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ObjectKind {
    /// An object literal of JavaScript, which has no methods of its own.
    Plain,
    /// A list, a tuple, a set, a generator.
    Array,
    /// A dictionary or a map. A loop over it gets keys.
    Dict,
    Map,
    /// An object of a class of the script.
    Instance,
    /// An object of the engine, with everything that is reached through it.
    Opaque,
    /// The result of a tool, with everything that is reached through it.
    Result(SiteId),
    Function {
        function: FunctionId,
        environment: u32,
    },
    Bound {
        function: ObjectId,
        this: Node,
    },
    Class(u32),
    Tool(Name),
    AnyTool,
    /// The object with all tools.
    Tools,
    /// A function or an object of the engine, by its path.
    Builtin(Name),
    /// A function that puts its arguments into the node.
    Collector(Node),
    /// A method of a collection that was loaded and not called.
    Method {
        receiver: ObjectId,
        name: Name,
    },
    /// A function with some of its arguments, which the call gave it.
    Partial(CallId),
    /// The arguments of a call of a tool.
    Sent(SiteId),
}

impl Object {
    pub(super) fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            fields: Vec::new(),
            any: None,
            taint: None,
            parents: Vec::new(),
            spreads: Vec::new(),
            excluded: Vec::new(),
            name: name::NONE,
        }
    }
}

impl Solver<'_> {
    pub(super) fn node(&mut self) -> Node {
        self.named(name::NONE)
    }

    pub(super) fn named(&mut self, name: Name) -> Node {
        if self.graph.nodes.len() >= MAX_NODES {
            self.graph.is_lost = true;
            return 0;
        }
        self.graph.nodes.push(NodeState { name, ..NodeState::default() });
        index(self.graph.nodes.len() - 1)
    }

    pub(super) fn part_of(&mut self, object: ObjectId) -> Node {
        let node = self.node();
        if let Some(state) = self.graph.nodes.get_mut(node as usize) {
            state.object = Some(object);
        }
        node
    }

    pub(super) fn object(&mut self, kind: ObjectKind) -> ObjectId {
        self.graph.objects.push(Object::new(kind));
        let object = index(self.graph.objects.len() - 1);
        if matches!(kind, ObjectKind::Opaque | ObjectKind::Result(_)) {
            self.taint(object);
        }
        object
    }

    /// A node that holds a new object.
    pub(super) fn holding(&mut self, kind: ObjectKind) -> (Node, ObjectId) {
        let object = self.object(kind);
        let node = self.node();
        self.add(node, Value::Object(object), node);
        (node, object)
    }

    pub(super) fn kind(&self, object: ObjectId) -> ObjectKind {
        self.graph.objects.get(object as usize).map_or(ObjectKind::Opaque, |object| object.kind)
    }

    pub(super) fn holds(&self, node: Node, value: Value) -> bool {
        self.graph.known.contains_key(&(node, value))
    }

    /// The node from which a value came to a node first.
    pub(super) fn origin(&self, node: Node, value: Value) -> Option<Node> {
        self.graph.known.get(&(node, value)).copied()
    }

    pub(super) fn add(&mut self, node: Node, value: Value, from: Node) {
        if node == NOTHING {
            return;
        }
        self.graph.steps += 1;
        if self.graph.steps > MAX_FLOW_STEPS {
            self.graph.is_lost = true;
            return;
        }
        if self.graph.known.contains_key(&(node, value)) {
            return;
        }
        self.graph.known.insert((node, value), from);
        let Some(state) = self.graph.nodes.get_mut(node as usize) else { return };
        state.values.push(value);
        let name = state.name;
        if let Value::Object(object) = value
            && name != name::NONE
            && let Some(object) = self.graph.objects.get_mut(object as usize)
            && object.name == name::NONE
        {
            object.name = name;
        }
        self.graph.work.push_back((node, value));
    }

    pub(super) fn flow(&mut self, node: Node, to: Use) {
        if node == NOTHING || to == Use::Copy(node) {
            return;
        }
        self.graph.steps += 1;
        if self.graph.steps > MAX_FLOW_STEPS || !self.graph.edges.insert((node, to)) {
            self.graph.is_lost |= self.graph.steps > MAX_FLOW_STEPS;
            return;
        }
        let Some(state) = self.graph.nodes.get_mut(node as usize) else { return };
        state.uses.push(to);
        if !state.values.is_empty() {
            self.graph.new_uses.push_back((node, to));
        }
    }

    pub(super) fn copy(&mut self, from: Node, to: Node) {
        self.flow(from, Use::Copy(to));
    }

    pub(super) fn deep(&mut self, from: Node, to: Node) {
        self.flow(from, Use::Deep(to));
    }

    /// Propagates until nothing changes.
    pub(super) fn propagate(&mut self) {
        loop {
            if self.graph.is_lost {
                return;
            }
            let mut at = 0;
            if let Some((node, to)) = self.graph.new_uses.pop_front() {
                let value = |this: &Self, at: usize| {
                    this.graph.nodes.get(node as usize)?.values.get(at).copied()
                };
                while let Some(value) = value(self, at) {
                    self.graph.steps += 1;
                    self.apply(node, value, to);
                    at += 1;
                }
                continue;
            }
            let Some((node, value)) = self.graph.work.pop_front() else { return };
            while let Some(to) = self.graph.nodes.get(node as usize).and_then(|n| n.uses.get(at)) {
                self.graph.steps += 1;
                self.apply(node, value, *to);
                at += 1;
            }
        }
    }

    pub(super) fn apply(&mut self, node: Node, value: Value, to: Use) {
        let object = match value {
            Value::Object(object) => object,
            Value::Data(site) | Value::Choice(site) => {
                return self.apply_data(node, value, site, to);
            }
        };
        match to {
            Use::Copy(other) => self.add(other, value, node),
            Use::Deep(_) | Use::Choose(_) => {
                let taint = self.taint(object);
                self.flow(taint, if let Use::Deep(other) = to { Use::Copy(other) } else { to });
            }
            Use::Shape(other) => match self.kind(object) {
                ObjectKind::Opaque | ObjectKind::Result(_) => {
                    let taint = self.taint(object);
                    self.copy(taint, other);
                }
                _ => {
                    let shape = self.field(object, name::SHAPE);
                    self.copy(shape, other);
                }
            },
            Use::Load(field, other) => self.load(node, object, field, other),
            Use::LoadAny(other) => self.load_any(node, object, other),
            Use::Items(other) => self.items(node, object, other),
            Use::Keys(other) => {
                let keys = self.field(object, name::KEYS);
                self.deep(keys, other);
                if let ObjectKind::Opaque | ObjectKind::Result(_) = self.kind(object) {
                    let taint = self.taint(object);
                    self.copy(taint, other);
                }
            }
            Use::Store(field, from) => self.store(object, field, from),
            Use::LookUp(key) => {
                let kind = self.kind(object);
                let is_used =
                    self.has_accessors && matches!(kind, ObjectKind::Plain | ObjectKind::Instance);
                if is_used || kind == ObjectKind::Opaque || self.growing.contains(&object) {
                    let keys = self.field(object, name::KEYS);
                    self.copy(key, keys);
                }
            }
            Use::Spread(target) | Use::Settle(target) => {
                if target == object {
                    return;
                }
                if let ObjectKind::Opaque | ObjectKind::Result(_) = self.kind(object) {
                    let any = self.field(target, name::ANY);
                    self.add(any, value, node);
                }
                let mut at = 0;
                while let Some((field, place)) = self.field_at(object, at) {
                    self.spread_field(field, place, to);
                    at += 1;
                }
                if let Some(object) = self.graph.objects.get_mut(object as usize) {
                    object.spreads.push(to);
                }
            }
            Use::SpreadFrom(from) => {
                self.change_builtin(object);
                self.flow(from, Use::Spread(object));
            }
            Use::Inherited { name, to, receiver } => {
                // A method of a base class of the engine.
                if let ObjectKind::Builtin(_) = self.kind(object) {
                    let any = self.field(receiver, name::ANY);
                    let collector = self.object_of(ObjectKind::Collector(any));
                    self.add(to, Value::Object(collector), node);
                }
                let place = self.field(object, name);
                self.flow(place, Use::Bind { to, receiver });
                self.inherit(object, name, to, receiver);
            }
            Use::Bind { to, receiver } => self.bind(node, object, to, receiver),
            Use::Call(call) => self.call_object(call, object),
            Use::Method(call) => self.call_method(call, node, Some(object)),
            _ => self.apply_rare(node, object, to),
        }
    }

    /// Where data goes, which is no object.
    fn apply_data(&mut self, node: Node, value: Value, site: SiteId, to: Use) {
        match to {
            Use::Copy(other)
            | Use::Deep(other)
            | Use::Labels(other)
            | Use::Shape(other)
            | Use::Load(_, other)
            | Use::LoadAny(other)
            | Use::Items(other)
            | Use::Keys(other)
            | Use::ClassOf(other)
            | Use::Attribute { to: other, .. }
            | Use::Bind { to: other, .. } => self.add(other, value, node),
            Use::Choose(other) => self.add(other, Value::Choice(site), node),
            Use::Spread(target) | Use::Settle(target) => {
                let any = self.field(target, name::ANY);
                self.add(any, value, node);
            }
            Use::Method(call) => self.call_method(call, node, None),
            Use::Call(call) => self.call_data(call, value),
            Use::Store(..)
            | Use::LookUp(_)
            | Use::SpreadFrom(_)
            | Use::Inherited { .. }
            | Use::Blur
            | Use::Remember(_)
            | Use::Compare(_)
            | Use::Rename(_)
            | Use::Resolve(_)
            | Use::Reflect(_)
            | Use::Change
            | Use::Inside { .. } => {}
        }
    }
}
