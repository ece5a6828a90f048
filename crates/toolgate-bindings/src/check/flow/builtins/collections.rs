//! Methods of collections and promises that change them, or call functions.

use super::super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{CallId, Node, ObjectKind, Use, Value},
    ir::name,
};

impl Solver<'_> {
    /// `reduce`: what the function returns is its argument in the next step.
    pub(super) fn reduce(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        given: &[Node],
    ) {
        let result = state.result;
        let returned = self.node();
        let (items, total) = (self.loaded(receiver, Use::Items), self.node());
        if let Some(first) = given.get(1) {
            self.copy(*first, total);
        } else {
            self.copy(items, total);
        }
        self.copy(returned, total);
        let none = self.node();
        if let Some(function) = given.first() {
            self.call_back(call, *function, &[total, items, none, receiver], returned);
        }
        self.copy(total, result);
        self.flow(receiver, Use::Shape(result));
    }

    /// `then`, `catch` and `finally` of a promise.
    pub(super) fn promise_method(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        method: &str,
        given: &[Node],
    ) {
        let result = state.result;
        let returned = self.node();
        let error = self.loaded(receiver, Use::Deep);
        let rejected = self.rejected;
        self.copy(rejected, error);
        for (at, function) in given.iter().enumerate() {
            let value = match (method, at) {
                ("then", 0) => receiver,
                ("finally", _) => self.node(),
                _ => error,
            };
            self.call_back(call, *function, &[value], returned);
        }
        if method != "then" {
            self.copy(receiver, result);
        }
        self.copy(returned, result);
    }

    /// Methods that set one element.
    pub(super) fn set_element(
        &mut self,
        state: &CallState,
        receiver: Node,
        method: &str,
        given: &[Node],
    ) {
        let result = state.result;
        let returned = self.node();
        let value = given.get(1).copied().unwrap_or(returned);
        if let Some(key) = self.key(state, 0) {
            self.flow(receiver, Use::Store(key, value));
            self.flow(receiver, Use::Load(key, result));
        } else {
            self.flow(receiver, Use::Store(name::ANY, value));
            if let Some(key) = given.first() {
                self.flow(receiver, Use::Store(name::KEYS, *key));
                // A typed array copies the elements.
                self.flow(receiver, Use::Store(name::ANY, *key));
            }
            self.flow(receiver, Use::LoadAny(result));
        }
        self.flow(receiver, Use::Store(name::SHAPE, state.condition));
        if method == "set" {
            self.copy(receiver, result);
        }
    }

    /// Methods that add all elements of their arguments.
    pub(super) fn extend(&mut self, state: &CallState, receiver: Node) {
        for (kind, node) in &state.arguments {
            if let ArgumentKind::Keyword(name) = kind {
                self.flow(receiver, Use::Store(*name, *node));
                continue;
            }
            let items = self.loaded(*node, Use::Items);
            self.flow(receiver, Use::SpreadFrom(*node));
            self.flow(receiver, Use::Store(name::ANY, items));
            // A hash takes a text.
            let data = self.loaded(*node, Use::Deep);
            if self.is_data_only(*node) {
                self.flow(receiver, Use::Store(name::ANY, data));
            }
        }
        self.flow(receiver, Use::Store(name::SHAPE, state.condition));
    }

    /// Methods that return a new list of parts of the receiver.
    pub(super) fn view(&mut self, state: &CallState, receiver: Node, method: &str, given: &[Node]) {
        let result = state.result;
        match method {
            "keys" => {
                let keys = self.loaded(receiver, Use::Keys);
                let (list, object) = self.list_of(&[keys]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "values" => {
                let items = self.loaded(receiver, Use::LoadAny);
                let (list, object) = self.list_of(&[items]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "entries" | "items" | "popitem" => {
                let keys = self.loaded(receiver, Use::Keys);
                let items = self.loaded(receiver, Use::LoadAny);
                let (pair, made) = self.holding(ObjectKind::Array);
                let (first, second) =
                    (self.field(made, name::FIRST), self.field(made, name::SECOND));
                self.copy(keys, first);
                self.copy(items, second);
                if method == "popitem" {
                    self.flow(receiver, Use::Store(name::SHAPE, state.condition));
                    self.shaped(made, receiver);
                    return self.copy(pair, result);
                }
                let (list, object) = self.list_of(&[pair]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "concat" => {
                let items = self.loaded(receiver, Use::LoadAny);
                let (list, object) = self.list_of(&[items]);
                let any = self.field(object, name::ANY);
                for node in given {
                    self.copy(*node, any);
                    self.flow(*node, Use::LoadAny(any));
                    self.shaped(object, *node);
                }
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            _ => {
                let items = self.loaded(receiver, Use::LoadAny);
                let inner = self.loaded(items, Use::LoadAny);
                let deeper = self.loaded(inner, Use::LoadAny);
                let (list, object) = self.list_of(&[items, inner, deeper]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
        }
    }

    /// Methods that replace parts of a text, by another text or by what a function returns.
    pub(super) fn replaced(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        given: &[Node],
    ) {
        let result = state.result;
        let returned = self.node();
        let data = self.node();
        for node in given.iter().chain([&receiver]) {
            self.deep(*node, data);
        }
        for function in given {
            self.call_back(call, *function, &[data, data, data, data, data], returned);
        }
        self.copy(data, result);
        self.deep(returned, result);
    }

    /// Whether nothing but data was seen in a node so far. More may follow, so this only widens.
    fn is_data_only(&self, node: Node) -> bool {
        let values = self.graph.nodes.get(node as usize).map_or(&[][..], |state| &state.values);
        !values.iter().any(|value| {
            matches!(value, Value::Object(object) if matches!(
            self.kind(*object), ObjectKind::Plain | ObjectKind::Dict | ObjectKind::Array))
        })
    }

    /// Methods that call a function for each element.
    pub(super) fn each(&mut self, call: CallId, receiver: Node, method: &str, given: &[Node]) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        let (result, returned) = (state.result, self.node());
        let items = self.loaded(receiver, Use::Items);
        let position = self.node();
        self.flow(receiver, Use::Shape(position));
        let second = if matches!(method, "sort" | "toSorted") { items } else { position };
        let this = given.get(1).copied();
        for function in given {
            self.call_back_on(call, *function, this, &[items, second, receiver], returned);
        }
        let chosen = self.loaded(returned, Use::Deep);
        match method {
            "map" => {
                let (list, object) = self.list_of(&[returned]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "flatMap" => {
                let inner = self.loaded(returned, Use::LoadAny);
                let (list, object) = self.list_of(&[returned, inner]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "filter" => {
                let (list, object) = self.list_of(&[items, chosen]);
                self.shaped(object, receiver);
                self.copy(list, result);
            }
            "find" | "findLast" => {
                self.copy(items, result);
                self.copy(chosen, result);
                // In Python it searches a text.
                for node in given {
                    self.deep(*node, result);
                }
            }
            "sort" | "toSorted" => {
                self.flow(receiver, Use::Store(name::ANY, chosen));
                self.copy(receiver, result);
            }
            "forEach" => {}
            _ => {
                self.copy(chosen, result);
                self.flow(receiver, Use::Shape(result));
            }
        }
    }
}
