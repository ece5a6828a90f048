//! Classes: their members, and what their objects inherit.

use super::{
    Solver,
    builtins::QUIET_BASES,
    calls::{ArgumentKind, CallState},
    graph::{CallId, Node, ObjectId, ObjectKind, Use, Value},
    ir::{Binding, Class, Expression, FunctionId, Key, MemberKind, Name, index, name},
    statements::Frame,
};

/// A class in a context.
pub(super) struct ClassState {
    /// The object that instances inherit from.
    pub(super) prototype: Node,
    pub(super) constructor: Option<FunctionId>,
    pub(super) environment: u32,
    pub(super) instances: Node,
    pub(super) bases: Vec<Node>,
    /// Whether a base class of the engine calls its methods.
    pub(super) is_called: bool,
    pub(super) fields: Vec<Name>,
    /// The functions that make the fields of each new object.
    pub(super) initialisers: Vec<(Name, Node)>,
}

impl Solver<'_> {
    pub(super) fn class(&mut self, frame: &mut Frame, class: &Class) -> Node {
        let mut bases = Vec::with_capacity(class.bases.len());
        for base in &class.bases {
            bases.push(self.expression(frame, base));
        }
        let id = index(self.classes.len());
        let (node, object) = self.holding(ObjectKind::Class(id));
        self.set_parents(object, bases.clone());
        let (prototype, shared) = if self.program.is_python {
            (node, object)
        } else {
            let (prototype, shared) = self.holding(ObjectKind::Plain);
            let mut parents = Vec::new();
            for base in &bases {
                let parent = self.node();
                self.flow(*base, Use::Load(name::PROTOTYPE, parent));
                // A class of the engine has methods that keep what they are given.
                self.copy(*base, parent);
                parents.push(parent);
            }
            self.set_parents(shared, parents);
            let place = self.field(object, name::PROTOTYPE);
            self.add(place, Value::Object(shared), place);
            (prototype, shared)
        };
        let instances = self.node();
        let is_called = self.is_called_by_bases(&bases);
        self.classes.push(ClassState {
            prototype,
            constructor: class.constructor,
            environment: frame.instance,
            instances,
            bases,
            is_called,
            fields: class.fields.clone(),
            initialisers: Vec::new(),
        });
        if let Some(constructor) = class.constructor {
            self.classes_by_constructor.entry(constructor).or_default().push(id);
        }
        for member in &class.members {
            let (owner, this) = if member.is_static || self.program.is_python {
                (object, if member.is_static { node } else { instances })
            } else {
                (shared, instances)
            };
            let field = match &member.key {
                Key::Name(field) => *field,
                Key::Computed(key) => {
                    let key = self.expression(frame, key);
                    let (keys, any) = (self.field(owner, name::KEYS), self.field(owner, name::ANY));
                    self.copy(key, keys);
                    self.flow(any, Use::Rename(key));
                    name::ANY
                }
            };
            match &member.kind {
                MemberKind::Field(function) if !member.is_static => {
                    let environment = frame.instance;
                    let function = ObjectKind::Function { function: *function, environment };
                    let made = self.holding(function).0;
                    self.classes[id as usize].initialisers.push((field, made));
                }
                MemberKind::Factory { marker, factory, otherwise } => {
                    let marker = self.expression(frame, marker);
                    if self.is_only(marker, "dataclasses.field") {
                        let factory = self.expression(frame, factory);
                        self.classes[id as usize].initialisers.push((field, factory));
                    } else {
                        self.class_member(frame, otherwise, (owner, field), this);
                    }
                }
                kind => self.class_member(frame, kind, (owner, field), this),
            }
            // A class of the engine may call it.
            if let (true, MemberKind::Method(function)) = (is_called, &member.kind) {
                let others = self.node();
                self.copy(this, others);
                self.flow(this, Use::LoadAny(others));
                let returned = self.node();
                self.call_own(frame, *function, this, &[others, others, others], returned);
                self.flow(this, Use::Store(name::ANY, returned));
            }
        }
        // A class of the engine makes new objects: `map` of a list.
        if is_called && !self.program.is_python && class.constructor.is_some() {
            let (others, made) = (self.node(), self.node());
            self.flow(instances, Use::LoadAny(others));
            let arguments = vec![(ArgumentKind::Position, others); 3];
            let state = self.call_state(frame, node, arguments, 0);
            let thrown = self.sudden;
            self.call(CallState { is_new: true, is_modelled: true, result: made, thrown, ..state });
        }
        node
    }

    /// Whether a node holds nothing but a function of the engine so far.
    fn is_only(&mut self, node: Node, path: &str) -> bool {
        self.propagate();
        let values = self.graph.nodes.get(node as usize).map_or(&[][..], |node| &node.values);
        let is_known = |value: &Value| match value {
            Value::Object(object) => match self.kind(*object) {
                ObjectKind::Builtin(known) => &*self.names.text(known) == path,
                _ => false,
            },
            Value::Data(_) | Value::Choice(_) => false,
        };
        !values.is_empty() && values.iter().all(is_known)
    }

    /// Whether a base class is one of the engine that calls methods of classes of the script.
    fn is_called_by_bases(&mut self, bases: &[Node]) -> bool {
        if bases.is_empty() {
            return false;
        }
        self.propagate();
        let values = bases.iter().filter_map(|base| self.graph.nodes.get(*base as usize));
        values.flat_map(|node| &node.values).any(|value| match value {
            Value::Object(object) => match self.kind(*object) {
                ObjectKind::Builtin(path) => {
                    let path = self.names.text(path);
                    !QUIET_BASES.contains(&path.strip_suffix(".*").unwrap_or(&path))
                }
                ObjectKind::Class(class) => {
                    self.classes.get(class as usize).is_some_and(|class| class.is_called)
                }
                _ => false,
            },
            Value::Data(_) | Value::Choice(_) => false,
        })
    }

    fn class_member(
        &mut self,
        frame: &mut Frame,
        kind: &MemberKind,
        (owner, field): (ObjectId, u32),
        this: Node,
    ) {
        let place = self.field(owner, field);
        match kind {
            MemberKind::Method(function) => {
                let environment = frame.instance;
                self.make_defaults(frame, *function);
                let function = ObjectKind::Function { function: *function, environment };
                let method = self.holding(function).0;
                self.copy(method, place);
            }
            MemberKind::Getter(function) => {
                let outer = self.under_keys(frame, this);
                self.call_own(frame, *function, this, &[], place);
                frame.condition = outer;
            }
            MemberKind::Setter(function) => {
                let given = self.node();
                self.flow(this, Use::Load(field, given));
                let returned = self.node();
                let outer = self.under_keys(frame, this);
                self.call_own(frame, *function, this, &[given], returned);
                frame.condition = outer;
            }
            MemberKind::Implicit(function) => {
                let environment = frame.instance;
                let method =
                    self.holding(ObjectKind::Function { function: *function, environment }).0;
                self.copy(method, place);
                let implicit = self.field(owner, name::IMPLICIT);
                let others = self.node();
                self.copy(this, others);
                self.flow(this, Use::LoadAny(others));
                let compared = self.field(owner, name::COMPARED);
                self.copy(compared, others);
                let outer = self.under_keys(frame, this);
                self.call_own(frame, *function, this, &[others, others], implicit);
                frame.condition = outer;
            }
            MemberKind::Field(function) => {
                let value = self.node();
                self.call_own(frame, *function, this, &[], value);
                self.flow(this, Use::Store(field, value));
                self.copy(value, place);
            }
            MemberKind::Factory { .. } => {}
            // Something of the engine may be around it.
            MemberKind::Value(Expression::Opaque(parts)) => {
                let (node, object) = self.holding(ObjectKind::Opaque);
                let any = self.field(object, name::ANY);
                for part in parts {
                    let part = self.expression(frame, part);
                    self.copy(part, any);
                    self.flow(part, Use::Attribute { to: place, this });
                }
                self.copy(node, place);
            }
            MemberKind::Value(value) => {
                let value = self.expression(frame, value);
                self.copy(value, place);
            }
        }
    }

    /// The class whose constructor is around a place.
    pub(super) fn class_around(&self, instance: u32) -> Vec<u32> {
        let mut at = Some(instance);
        while let Some(current) = at {
            let instance = &self.instances[current as usize];
            if let Some(classes) = self.classes_by_constructor.get(&instance.function) {
                return classes.clone();
            }
            at = instance.lexical;
        }
        Vec::new()
    }

    pub(super) fn set_parents(&mut self, object: ObjectId, parents: Vec<Node>) {
        if let Some(object) = self.graph.objects.get_mut(object as usize) {
            object.parents = parents;
        }
    }

    pub(super) fn construct(&mut self, state: &CallState, call: CallId, class: u32) {
        let Some(known) = self.classes.get(class as usize) else { return };
        let (prototype, instances) = (known.prototype, known.instances);
        let this = if let Some(this) = state.constructs {
            this
        } else {
            let (node, made) = self.holding(ObjectKind::Instance);
            self.set_parents(made, vec![prototype]);
            self.copy(node, state.result);
            node
        };
        self.copy(this, instances);
        for (field, callee) in self.classes[class as usize].initialisers.clone() {
            let value = self.node();
            self.call(CallState {
                arguments: Vec::new(),
                this: Some(this),
                member: name::NONE,
                callee,
                result: value,
                thrown: self.sudden,
                is_new: false,
                is_awaited: false,
                constructs: None,
                is_modelled: true,
                ..state.clone()
            });
            self.flow(this, Use::Store(field, value));
        }
        let ClassState { constructor, environment, .. } = self.classes[class as usize];
        if let Some(constructor) = constructor {
            let function = (constructor, environment);
            let inner = CallState { result: self.node(), ..state.clone() };
            if self.program.is_python {
                self.invoke(&inner, call, function, None, &[this]);
            } else {
                let own = self.invoke(&inner, call, function, Some(this), &[]);
                // It may return another object, or its base class.
                for made in [Some(inner.result), own].into_iter().flatten() {
                    self.copy(made, state.result);
                    self.copy(made, this);
                }
            }
            return;
        }
        if self.program.is_python {
            let fields = self.classes[class as usize].fields.clone();
            let mut fields = fields.into_iter();
            for (kind, node) in &state.arguments {
                let field = match kind {
                    ArgumentKind::Position => fields.next().unwrap_or(name::ANY),
                    ArgumentKind::Keyword(name) => *name,
                    ArgumentKind::Spread | ArgumentKind::KeywordSpread => name::ANY,
                };
                self.flow(this, Use::Store(field, *node));
            }
        }
        self.construct_bases(state, class, this);
    }

    /// Calls the constructors of the base classes for an object.
    pub(super) fn construct_bases(&mut self, state: &CallState, class: u32, this: Node) {
        for base in self.classes[class as usize].bases.clone() {
            let result = self.node();
            let (member, constructs) = (name::NONE, Some(this));
            self.call(CallState { callee: base, result, member, constructs, ..state.clone() });
            if !self.program.is_python {
                self.copy(result, this);
            }
        }
    }

    /// Binds a function that was loaded from a parent of an object.
    pub(super) fn bind(&mut self, node: Node, value: ObjectId, to: Node, receiver: ObjectId) {
        let binding = match self.kind(value) {
            ObjectKind::Function { function, .. } if self.program.is_python => {
                self.program.functions.get(function as usize).map_or(Binding::None, |f| f.binding)
            }
            _ => Binding::None,
        };
        let is_class = matches!(self.kind(receiver), ObjectKind::Class(_));
        // A method that is loaded from its class gets its object as an argument.
        if binding == Binding::None || binding == Binding::Instance && is_class {
            self.add(to, Value::Object(value), node);
            return;
        }
        let bound = if let Some(bound) = self.methods.get(&(value, receiver)) {
            *bound
        } else {
            let this = self.node();
            self.add(this, Value::Object(receiver), this);
            if binding == Binding::Class && !is_class {
                for parent in self.parents(receiver) {
                    self.copy(parent, this);
                }
            }
            let bound = self.object(ObjectKind::Bound { function: value, this });
            self.methods.insert((value, receiver), bound);
            bound
        };
        self.add(to, Value::Object(bound), node);
    }
}
