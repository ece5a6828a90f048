//! Classes: their members, and what their objects inherit.

use super::{
    Solver,
    builtins::QUIET_BASES,
    calls::{ArgumentKind, CallState, ClassState},
    graph::{Node, ObjectId, ObjectKind, Use, Value},
    ir::{Class, Expression, Key, MemberKind, index, name},
    statements::Frame,
};

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
}
