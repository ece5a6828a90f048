//! What the functions and methods of the engines do with data.
//!
//! A function or method that is not listed may do anything: it stores its arguments in each other,
//! calls them with each other, and returns all of them.

mod collections;
mod effects;
mod functions;
mod iteration;
mod library;
mod making;
mod methods;
mod names;

use self::names::OPAQUE;
pub(super) use self::names::QUIET_BASES;
use super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{CallId, Node, ObjectId, ObjectKind, Use},
    ir::{Name, name},
};

/// How often an unknown function may call an unknown function back.
const MAX_UNKNOWN: u32 = 2;

fn is_in(list: &[&str], path: &str) -> bool {
    list.contains(&path)
        || path
            .match_indices('.')
            .any(|(at, _)| list.iter().any(|known| known.strip_suffix(".*") == path.get(..at)))
}

impl Solver<'_> {
    /// Whether the name stands for something that the analysis cannot follow.
    pub(super) fn is_opaque_name(&self, path: &str) -> bool {
        let root = path.split('.').next().unwrap_or(path);
        OPAQUE.contains(&path)
            || OPAQUE.contains(&root)
            || self.program.is_python && library::is_introspecting(path)
    }

    fn arguments(&mut self, state: &CallState) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(state.arguments.len());
        for (kind, node) in &state.arguments {
            nodes.push(match kind {
                ArgumentKind::Position | ArgumentKind::Keyword(_) => *node,
                ArgumentKind::Spread | ArgumentKind::KeywordSpread => {
                    let items = self.node();
                    self.flow(*node, Use::LoadAny(items));
                    items
                }
            });
        }
        nodes
    }

    fn loaded(&mut self, from: Node, to: fn(Node) -> Use) -> Node {
        let node = self.node();
        self.flow(from, to(node));
        node
    }

    fn list_of(&mut self, items: &[Node]) -> (Node, ObjectId) {
        let (node, list) = self.holding(ObjectKind::Array);
        let any = self.field(list, name::ANY);
        for item in items {
            self.copy(*item, any);
        }
        (node, list)
    }

    /// Adds what determines the number of elements.
    fn shaped(&mut self, list: ObjectId, by: Node) {
        let shape = self.field(list, name::SHAPE);
        self.flow(by, Use::Shape(shape));
    }

    fn put_shape(&mut self, list: ObjectId, shape: Node) {
        let place = self.field(list, name::SHAPE);
        self.copy(shape, place);
    }

    fn key(&self, state: &CallState, at: usize) -> Option<Name> {
        self.literal_keys.get(&state.arguments.get(at)?.1).copied()
    }

    /// A new object that holds the data and the values of others.
    fn hold(&mut self, given: &[Node], receiver: Option<Node>, result: Node) -> ObjectId {
        let (node, object) = self.holding(ObjectKind::Opaque);
        let any = self.field(object, name::ANY);
        for from in given.iter().copied().chain(receiver) {
            self.copy(from, any);
            self.flow(from, Use::LoadAny(any));
            self.deep(from, any);
        }
        self.copy(node, result);
        object
    }

    /// A function that may do anything with what it is given.
    pub(super) fn unknown(&mut self, call: CallId, receiver: Option<Node>) {
        let Some(state) = self.calls.get_mut(call as usize) else { return };
        state.is_modelled = true;
        let state = state.clone();
        let all = self.node();
        let (node, object) = self.holding(ObjectKind::Opaque);
        let any = self.field(object, name::ANY);
        let mut given = self.arguments(&state);
        given.extend(receiver);
        for from in &given {
            self.copy(*from, all);
            self.flow(*from, Use::LoadAny(all));
        }
        self.copy(all, any);
        self.copy(any, all);
        for from in &given {
            self.flow(*from, Use::Store(name::ANY, all));
        }
        // The receiver may change what it was given before.
        if let Some(receiver) = receiver {
            let held = self.loaded(receiver, Use::LoadAny);
            self.flow(held, Use::Store(name::ANY, all));
        }
        // What is called back has all values already.
        if state.depth < MAX_UNKNOWN {
            self.call_back_on(call, all, Some(all), &[all, all, all], any);
        }
        self.deep(all, state.thrown);
        self.copy(all, state.result);
        self.copy(node, state.result);
    }
}
