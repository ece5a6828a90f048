//! The fields and elements of objects: how they are stored, loaded and copied.

use super::{
    Solver,
    graph::{Node, ObjectId, ObjectKind, Use, Value},
    ir::{Name, name},
    places::TOOLS,
};
use crate::check::lookup::MAX_NAME_BYTES;

/// Whether a field is no element.
fn is_hidden(field: Name) -> bool {
    matches!(
        field,
        name::SHAPE | name::KEYS | name::IMPLICIT | name::SENT | name::BRANCH | name::COMPARED
    )
}

impl Solver<'_> {
    pub(super) fn store(&mut self, object: ObjectId, field: Name, from: Node) {
        match self.kind(object) {
            ObjectKind::Builtin(_) => self.change_builtin(object),
            ObjectKind::Opaque => self.call_stored(object, from),
            ObjectKind::Tools => {
                let tools = self.names.intern(TOOLS);
                self.overwritten.insert(tools);
            }
            _ => {}
        }
        let place = self.field(object, field);
        self.copy(from, place);
    }

    pub(super) fn field_at(&self, object: ObjectId, at: usize) -> Option<(Name, Node)> {
        self.graph.objects.get(object as usize)?.fields.get(at).copied()
    }

    pub(super) fn load(&mut self, node: Node, object: ObjectId, field: Name, to: Node) {
        match self.kind(object) {
            ObjectKind::Opaque | ObjectKind::Result(_) => self.add(to, Value::Object(object), node),
            ObjectKind::Tools => {
                let tool = self.object_of(ObjectKind::Tool(field));
                self.add(to, Value::Object(tool), node);
            }
            // It may be the name of a server: `tools.server.tool`.
            ObjectKind::Tool(server) if self.may_be_server(field) => {
                let name = format!("{}_{}", self.names.text(server), self.names.text(field));
                // No tool has a longer name, and a loop could make it endless.
                let kind = match name.len() {
                    ..=MAX_NAME_BYTES => ObjectKind::Tool(self.names.intern(&name)),
                    _ => ObjectKind::AnyTool,
                };
                let tool = self.object_of(kind);
                self.add(to, Value::Object(tool), node);
            }
            ObjectKind::AnyTool if self.may_be_server(field) => {
                self.add(to, Value::Object(object), node);
            }
            ObjectKind::Builtin(path) if self.is_number(path, field) => {}
            ObjectKind::Builtin(path) => {
                let part = self.builtin_part(path, field);
                self.add(to, Value::Object(part), node);
            }
            ObjectKind::Array | ObjectKind::Dict | ObjectKind::Map | ObjectKind::Plain
                if matches!(field, name::LENGTH | name::SIZE) =>
            {
                let taint = self.taint(object);
                self.copy(taint, to);
            }
            ObjectKind::Array | ObjectKind::Dict | ObjectKind::Map
                if Self::is_method(&self.names.text(field)) =>
            {
                let method = self.object_of(ObjectKind::Method { receiver: object, name: field });
                self.add(to, Value::Object(method), node);
            }
            ObjectKind::Instance if self.program.is_python && field == name::CLASS => {
                self.class_of(object, to);
            }
            // An object is taken apart as its iterator says.
            ObjectKind::Instance if self.is_index(field) => self.items(node, object, to),
            ObjectKind::Array | ObjectKind::Plain if self.is_index(field) => {
                self.take(object, to);
            }
            ObjectKind::Function { .. } if field == name::PROTOTYPE => {
                let place = self.field(object, field);
                if !self.prototypes.contains(&object) {
                    self.prototypes.insert(object);
                    let made = self.object(ObjectKind::Plain);
                    self.add(place, Value::Object(made), place);
                }
            }
            ObjectKind::Bound { function, .. } if field == name::NAME => {
                let place = self.field(function, field);
                self.copy(place, to);
            }
            _ => {}
        }
        // A method of a class is bound to it.
        let is_bound = self.program.is_python && matches!(self.kind(object), ObjectKind::Class(_));
        for name in [field, name::ANY] {
            let place = self.field(object, name);
            let used = if is_bound { Use::Bind { to, receiver: object } } else { Use::Copy(to) };
            self.flow(place, used);
        }
        self.inherit(object, field, to, object);
    }

    pub(super) fn load_any(&mut self, node: Node, object: ObjectId, to: Node) {
        match self.kind(object) {
            ObjectKind::Opaque | ObjectKind::Result(_) => self.add(to, Value::Object(object), node),
            ObjectKind::Tools => {
                let tool = self.object_of(ObjectKind::AnyTool);
                self.add(to, Value::Object(tool), node);
            }
            ObjectKind::Tool(_) if self.program.has_tools => {
                let tool = self.object_of(ObjectKind::AnyTool);
                self.add(to, Value::Object(tool), node);
            }
            ObjectKind::Builtin(path) => {
                let part = self.builtin_part(path, name::ANY);
                self.add(to, Value::Object(part), node);
            }
            _ => {}
        }
        let any = self.any(object);
        self.copy(any, to);
        for parent in self.parents(object) {
            self.flow(parent, Use::LoadAny(to));
        }
    }

    /// Whether a field of a tool may be a tool, because the tool's name is that of a server. Functions and
    /// promises of JavaScript have methods.
    fn may_be_server(&self, field: Name) -> bool {
        let is_method = matches!(
            &*self.names.text(field),
            "apply"
                | "bind"
                | "call"
                | "catch"
                | "finally"
                | "length"
                | "name"
                | "then"
                | "toString"
        );
        self.program.has_tools && (self.program.is_python || !is_method)
    }

    pub(super) fn is_index(&self, field: Name) -> bool {
        self.names.text(field).bytes().all(|byte| byte.is_ascii_digit())
    }

    pub(super) fn items(&mut self, node: Node, object: ObjectId, to: Node) {
        self.take(object, to);
        match self.kind(object) {
            ObjectKind::Dict => self.apply(node, Value::Object(object), Use::Keys(to)),
            ObjectKind::Map => {
                let pair = self.pair_of(object);
                self.add(to, Value::Object(pair), node);
                // A set has the same kind.
                let any = self.any(object);
                self.copy(any, to);
            }
            ObjectKind::Instance => {
                self.load_any(node, object, to);
                self.inherit(object, name::IMPLICIT, to, object);
                let inner = self.node();
                self.inherit(object, name::IMPLICIT, inner, object);
                self.flow(inner, Use::LoadAny(to));
            }
            _ => self.load_any(node, object, to),
        }
    }

    /// The pair of key and value that a loop over a map gets.
    pub(super) fn pair_of(&mut self, object: ObjectId) -> ObjectId {
        if let Some(pair) = self.pairs.get(&object) {
            return *pair;
        }
        let pair = self.object(ObjectKind::Array);
        self.pairs.insert(object, pair);
        let (keys, any) = (self.field(object, name::KEYS), self.any(object));
        let (first, second) = (self.field(pair, name::FIRST), self.field(pair, name::SECOND));
        self.copy(keys, first);
        self.copy(any, second);
        pair
    }

    pub(super) fn parents(&self, object: ObjectId) -> Vec<Node> {
        self.graph.objects.get(object as usize).map(|it| it.parents.clone()).unwrap_or_default()
    }

    /// Adds what an object inherits.
    pub(super) fn inherit(&mut self, object: ObjectId, name: Name, to: Node, receiver: ObjectId) {
        for parent in self.parents(object) {
            self.flow(parent, Use::Inherited { name, to, receiver });
        }
    }

    /// The node of a field.
    pub(super) fn field(&mut self, object: ObjectId, field: Name) -> Node {
        if let Some(node) = self.graph.fields.get(&(object, field)) {
            return *node;
        }
        let node = self.part_of(object);
        self.graph.fields.insert((object, field), node);
        let Some(state) = self.graph.objects.get_mut(object as usize) else { return node };
        state.fields.push((field, node));
        let (any, taint, kind) = (state.any, state.taint, state.kind);
        let spreads = state.spreads.clone();
        if let Some(any) = any.filter(|_| !is_hidden(field)) {
            self.copy(node, any);
        }
        if let Some(taint) = taint {
            self.deep(node, taint);
        }
        if let ObjectKind::Sent(site) = kind {
            let sent = self.node();
            self.deep(node, sent);
            self.sent.push((site, field, sent));
        }
        for to in spreads {
            self.spread_field(field, node, to);
        }
        node
    }

    /// A new object that gets all fields of what is in a node, except some.
    pub(super) fn spread_except(&mut self, from: Node, excluded: Vec<Name>) -> (Node, ObjectId) {
        let (node, object) = self.holding(ObjectKind::Plain);
        if let Some(object) = self.graph.objects.get_mut(object as usize) {
            object.excluded = excluded;
        }
        self.flow(from, Use::Spread(object));
        (node, object)
    }

    pub(super) fn spread_field(&mut self, field: Name, from: Node, to: Use) {
        if let Use::Spread(target) = to
            && let Some(target) = self.graph.objects.get(target as usize)
            && target.excluded.contains(&field)
        {
            return;
        }
        match to {
            Use::Spread(target) => {
                let place = self.field(target, field);
                self.copy(from, place);
            }
            Use::Settle(target) => {
                let place = self.field(target, field);
                if is_hidden(field) {
                    self.copy(from, place);
                    return;
                }
                let outcome = self.object(ObjectKind::Plain);
                self.add(place, Value::Object(outcome), place);
                for name in [name::VALUE, name::REASON] {
                    let part = self.field(outcome, name);
                    self.copy(from, part);
                }
                let (reason, rejected) = (self.field(outcome, name::REASON), self.rejected);
                self.copy(rejected, reason);
            }
            _ => {}
        }
    }

    /// The node with all elements and fields of an object.
    pub(super) fn any(&mut self, object: ObjectId) -> Node {
        if let Some(any) = self.graph.objects.get(object as usize).and_then(|object| object.any) {
            return any;
        }
        let any = self.part_of(object);
        let Some(state) = self.graph.objects.get_mut(object as usize) else { return any };
        state.any = Some(any);
        let fields = state.fields.clone();
        for (_, node) in fields.into_iter().filter(|(field, _)| !is_hidden(*field)) {
            self.copy(node, any);
        }
        any
    }

    /// The node with the data in an object, at any depth.
    pub(super) fn taint(&mut self, object: ObjectId) -> Node {
        if let Some(taint) = self.graph.objects.get(object as usize).and_then(|it| it.taint) {
            return taint;
        }
        let taint = self.part_of(object);
        let Some(state) = self.graph.objects.get_mut(object as usize) else { return taint };
        state.taint = Some(taint);
        let (fields, kind) = (state.fields.clone(), state.kind);
        for (_, node) in fields {
            self.deep(node, taint);
        }
        if let ObjectKind::Result(site) = kind {
            self.add(taint, Value::Data(site), taint);
        }
        if let ObjectKind::Builtin(path) = kind
            && let Some(shared) = self.engine_state(path)
        {
            self.deep(shared, taint);
        }
        if let ObjectKind::Builtin(path) = kind
            && let Some(kept) = self.kept(path)
        {
            self.deep(kept, taint);
        }
        if matches!(kind, ObjectKind::Plain | ObjectKind::Array | ObjectKind::Map)
            && !self.program.is_python
        {
            // A function under a computed name may be `toString`.
            let any = self.field(object, name::ANY);
            let returned = self.node();
            self.call_suddenly(any, &[], returned, None);
            self.deep(returned, taint);
        }
        if kind == ObjectKind::Instance {
            let implicit = self.node();
            self.inherit(object, name::IMPLICIT, implicit, object);
            self.deep(implicit, taint);
        }
        taint
    }
}
