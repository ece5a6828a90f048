//! Classes: their members, and what their objects inherit.

use super::{
    Solver,
    calls::ClassState,
    graph::{Node, ObjectId, ObjectKind, Use, Value},
    ir::{Class, Key, MemberKind, index, name},
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
        self.classes.push(ClassState {
            prototype,
            constructor: class.constructor,
            environment: frame.instance,
            instances,
            bases,
            fields: class.fields.clone(),
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
                    self.expression(frame, key);
                    name::ANY
                }
            };
            self.class_member(frame, &member.kind, (owner, field), this);
        }
        node
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
                let function = ObjectKind::Function { function: *function, environment };
                let method = self.holding(function).0;
                self.copy(method, place);
            }
            MemberKind::Getter(function) => self.call_own(frame, *function, this, &[], place),
            MemberKind::Setter(function) => {
                let given = self.node();
                self.flow(this, Use::Load(field, given));
                let returned = self.node();
                self.call_own(frame, *function, this, &[given], returned);
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
                self.call_own(frame, *function, this, &[others, others], implicit);
            }
            MemberKind::Field(function) => {
                let value = self.node();
                self.call_own(frame, *function, this, &[], value);
                self.flow(this, Use::Store(field, value));
                self.copy(value, place);
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
