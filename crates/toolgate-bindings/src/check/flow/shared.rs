//! What objects share: their classes, what compares them, and the state of the engine.

use super::{
    Solver,
    graph::{Node, ObjectId, ObjectKind, Use, Value},
    ir::{Name, name},
};

impl Solver<'_> {
    /// The uses that only some objects have.
    pub(super) fn apply_rare(&mut self, node: Node, object: ObjectId, to: Use) {
        let value = Value::Object(object);
        match to {
            Use::ClassOf(to) => self.class_of(object, to),
            // Other parts of the library may use what is changed.
            Use::Change => {
                let is_library = matches!(self.kind(object), ObjectKind::Builtin(_));
                self.graph.is_lost |= self.program.is_python && is_library;
            }
            Use::Inside { is_text } => self.look_inside(object, is_text),
            Use::Blur if self.kind(object) == ObjectKind::Array => {
                let (any, place) = (self.any(object), self.field(object, name::ANY));
                self.copy(any, place);
            }
            Use::Remember(from) if self.stateful.contains(&object) => {
                let place = self.field(object, name::ANY);
                self.copy(from, place);
            }
            Use::Compare(from) => match self.kind(object) {
                ObjectKind::Instance => {
                    for parent in self.parents(object) {
                        self.flow(parent, to);
                    }
                }
                ObjectKind::Class(_) => {
                    let place = self.field(object, name::COMPARED);
                    self.copy(from, place);
                    for parent in self.parents(object) {
                        self.flow(parent, to);
                    }
                }
                ObjectKind::Array | ObjectKind::Dict | ObjectKind::Map | ObjectKind::Opaque => {
                    let (any, keys) = (self.any(object), self.field(object, name::KEYS));
                    self.flow(any, to);
                    self.flow(keys, to);
                }
                _ => {}
            },
            Use::Attribute { to, this } => {
                self.add(to, value, node);
                if let ObjectKind::Function { .. } = self.kind(object) {
                    let bound = self.object_of(ObjectKind::Bound { function: object, this });
                    self.add(to, Value::Object(bound), node);
                }
            }
            Use::Rename(from) => {
                if let ObjectKind::Function { .. } | ObjectKind::Class(_) = self.kind(object) {
                    let place = self.field(object, name::NAME);
                    self.copy(from, place);
                }
            }
            // A function under a computed name may be `then`.
            Use::Resolve(to) if self.kind(object) == ObjectKind::Plain => {
                let (then, this) = (self.field(object, name::ANY), self.node());
                self.add(this, value, this);
                let resolve = self.object_of(ObjectKind::Collector(to));
                let (given, returned) = (self.node(), self.node());
                self.add(given, Value::Object(resolve), given);
                self.call_suddenly(then, &[given, given], returned, Some(this));
            }
            Use::Reflect(to) => {
                if matches!(
                    self.kind(object),
                    ObjectKind::Function { .. }
                        | ObjectKind::Bound { .. }
                        | ObjectKind::Class(_)
                        | ObjectKind::Tool(_)
                        | ObjectKind::AnyTool
                ) {
                    let name = self.names.intern("Function");
                    let made = self.object_of(ObjectKind::Builtin(name));
                    self.add(to, Value::Object(made), node);
                }
            }
            _ => {}
        }
    }

    /// What an iterator that the script wrote, or changed, returns: the language calls its methods.
    pub(super) fn take(&mut self, object: ObjectId, to: Node) {
        let is_iterator = matches!(
            self.kind(object),
            ObjectKind::Plain | ObjectKind::Array | ObjectKind::Map | ObjectKind::Instance
        );
        if self.program.is_python || !is_iterator {
            return;
        }
        if let Some(taken) = self.iterators.get(&object).copied() {
            return self.copy(taken, to);
        }
        let taken = self.node();
        self.iterators.insert(object, taken);
        self.copy(taken, to);
        let this = self.node();
        self.add(this, Value::Object(object), this);
        // A function under a computed name may be `next`.
        for method in ["next", "return", "throw", "*"] {
            if !self.names.contains(method) {
                continue;
            }
            let method = self.names.intern(method);
            let (callee, step) = (self.field(object, method), self.node());
            self.call_suddenly(callee, &[], step, Some(this));
            if let ObjectKind::Instance = self.kind(object) {
                let inherited = self.node();
                self.inherit(object, method, inherited, object);
                self.call_suddenly(inherited, &[], step, Some(this));
            }
            self.flow(step, Use::Load(name::VALUE, taken));
        }
    }

    /// Something of the engine gets another meaning for the whole script.
    pub(super) fn change_builtin(&mut self, object: ObjectId) {
        if let ObjectKind::Builtin(path) = self.kind(object) {
            let path = self.names.text(path);
            self.graph.is_lost |=
                path.contains("prototype") || matches!(&*path, "Error" | "sys" | "builtins");
        }
    }

    /// The class of an object.
    pub(super) fn class_of(&mut self, object: ObjectId, to: Node) {
        if self.kind(object) == ObjectKind::Instance {
            for parent in self.parents(object) {
                self.copy(parent, to);
            }
        }
        let taint = self.taint(object);
        self.copy(taint, to);
    }

    /// What functions change in a part of the engine that all of them share.
    pub(super) fn engine_state(&mut self, path: Name) -> Option<Node> {
        let text = self.names.text(path);
        let (root, _) = text.split_once('.')?;
        let root = self.names.intern(root);
        let object = self.object_of(ObjectKind::Builtin(root));
        Some(self.field(object, name::ANY))
    }
}
