//! Methods of texts, collections and functions.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, ObjectId, ObjectKind, Use, Value},
        ir::{Name, index, name},
    },
    names::{ADDING_METHODS, ELEMENT_METHODS, PART_METHODS, PRIMITIVE_METHODS, SPLITTING_METHODS},
};

/// Whether a name is no method of a dictionary of Python, but a key.
fn is_part(method: &str) -> bool {
    let is_other = method.starts_with("__") || matches!(method, "fromkeys" | "new_child");
    !is_other && !Solver::is_method(method)
}

impl Solver<'_> {
    /// A method of something that is no object of the script.
    pub(in crate::check::flow) fn call_method(
        &mut self,
        call: CallId,
        receiver: Node,
        object: Option<ObjectId>,
    ) {
        let Some(state) = self.calls.get(call as usize) else { return };
        let method = self.names.text(state.member);
        let is_indirect = matches!(&*method, "call" | "apply" | "bind");
        // A promise is what it is resolved with.
        let is_promised =
            !self.program.is_python && matches!(&*method, "then" | "catch" | "finally");
        let may_define = state.member == name::ANY && state.arguments.len() > 1;
        match object.map(|object| (object, self.kind(object))) {
            _ if is_promised => self.model_method(call, receiver, &method),
            Some((_, ObjectKind::Plain)) if may_define && !self.program.is_python => {
                self.unknown(call, Some(receiver));
            }
            Some((_, ObjectKind::Plain)) if !matches!(&*method, "toString" | "hasOwnProperty") => {}
            Some((
                callee,
                ObjectKind::Function { .. }
                | ObjectKind::Bound { .. }
                | ObjectKind::Class(_)
                | ObjectKind::Tool(_)
                | ObjectKind::AnyTool
                | ObjectKind::Method { .. }
                | ObjectKind::Partial(_)
                | ObjectKind::Collector(_),
            )) if is_indirect => self.call_indirectly(call, callee, &method),
            Some((_, ObjectKind::Builtin(path)))
                if &*method == "call" && self.call_prototype(call, path) => {}
            Some((_, ObjectKind::Builtin(_))) if is_indirect => self.unknown(call, Some(receiver)),
            Some((
                _,
                ObjectKind::Plain
                | ObjectKind::Instance
                | ObjectKind::Function { .. }
                | ObjectKind::Bound { .. }
                | ObjectKind::Class(_)
                | ObjectKind::Tool(_)
                | ObjectKind::AnyTool
                | ObjectKind::Tools
                | ObjectKind::Builtin(_)
                | ObjectKind::Collector(_)
                | ObjectKind::Method { .. }
                | ObjectKind::Partial(_)
                | ObjectKind::Sent(_),
            )) => {}
            // A part of a collection, which is no method of it.
            Some((_, ObjectKind::Dict)) if self.program.is_python && is_part(&method) => {}
            Some((_, ObjectKind::Array)) if self.program.is_python && &*method == "*" => {}
            _ => self.model_method(call, receiver, &method),
        }
    }

    /// `Array.prototype.slice.call(list)`: a method of the engine with another receiver. Returns
    /// whether it is one.
    fn call_prototype(&mut self, call: CallId, path: Name) -> bool {
        let path = self.names.text(path);
        let Some((_, method)) = path.split_once(".prototype.") else { return false };
        let Some(state) = self.calls.get_mut(call as usize) else { return false };
        let Some((ArgumentKind::Position, receiver)) = state.arguments.first().copied() else {
            return false;
        };
        if !Self::is_method(method) {
            return false;
        }
        if state.is_modelled {
            return true;
        }
        state.is_modelled = true;
        let state = state.clone();
        self.calls.push(CallState {
            arguments: state.arguments.iter().skip(1).copied().collect(),
            this: Some(receiver),
            member: self.names.intern(method),
            is_modelled: false,
            ..state
        });
        let call = index(self.calls.len() - 1);
        self.model_method(call, receiver, method);
        true
    }

    /// `call`, `apply` and `bind` of a function.
    fn call_indirectly(&mut self, call: CallId, callee: ObjectId, method: &str) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        if !self.done.insert((call, callee)) {
            return;
        }
        let this = state.arguments.first().map(|(_, node)| *node);
        let node = self.node();
        self.add(node, Value::Object(callee), node);
        if method == "bind" {
            let this = this.unwrap_or(node);
            let bound = self.object(ObjectKind::Bound { function: callee, this });
            let extra = state.arguments.iter().skip(1).map(|(_, node)| *node).collect();
            self.bound.insert(bound, extra);
            self.add(state.result, Value::Object(bound), state.result);
            return;
        }
        let mut arguments: Vec<_> = state.arguments.iter().skip(1).copied().collect();
        if method == "apply" {
            for (kind, _) in &mut arguments {
                *kind = ArgumentKind::Spread;
            }
        }
        self.call(CallState { arguments, this, callee: node, member: name::NONE, ..state });
    }

    /// What a method of a text, a collection or a result does.
    pub(in crate::check::flow) fn model_method(
        &mut self,
        call: CallId,
        receiver: Node,
        method: &str,
    ) {
        let Some(known) = self.calls.get_mut(call as usize) else { return };
        if known.is_modelled {
            return;
        }
        known.is_modelled = true;
        let state = known.clone();
        let (result, given) = (state.result, self.arguments(&state));
        // The message of an error may contain them.
        for node in given.iter().chain([&receiver]) {
            self.deep(*node, state.thrown);
        }
        self.affect(receiver, method, &given);
        match method {
            _ if PRIMITIVE_METHODS.contains(&method) => {
                for node in given.iter().chain([&receiver]) {
                    self.deep(*node, result);
                    // `{0.name}` may be an attribute of a class.
                    if self.program.is_python && method == "format" {
                        self.format_text(receiver, &given);
                        let class = self.loaded(*node, Use::ClassOf);
                        self.deep(class, result);
                    }
                }
                self.read_codecs(method, &given, result);
            }
            _ if SPLITTING_METHODS.contains(&method) => {
                self.hold(&given, Some(receiver), result);
            }
            _ if PART_METHODS.contains(&method) => {
                self.copy(receiver, result);
                for node in given {
                    self.deep(node, result);
                    self.flow(node, Use::Items(result));
                }
                // A task throws what it ended with.
                if method == "result" {
                    self.copy(self.rejected, state.thrown);
                }
            }
            _ if ADDING_METHODS.contains(&method) => {
                for node in given.iter().chain([&state.condition]) {
                    self.flow(receiver, Use::Store(name::ANY, *node));
                }
                self.flow(receiver, Use::Shape(result));
                if method == "fill" {
                    self.copy(receiver, result);
                }
                if matches!(method, "set_exception" | "abort") {
                    for node in given {
                        self.copy(node, self.rejected);
                    }
                }
            }
            _ if ELEMENT_METHODS.contains(&method) => self.element(&state, receiver, &given),
            _ => self.model_other(call, &state, receiver, method, &given),
        }
    }

    fn element(&mut self, state: &CallState, receiver: Node, given: &[Node]) {
        match self.key(state, 0) {
            Some(key) => self.flow(receiver, Use::Load(key, state.result)),
            None => self.flow(receiver, Use::LoadAny(state.result)),
        }
        self.flow(receiver, Use::Shape(state.result));
        for node in given {
            self.deep(*node, state.result);
            self.copy(*node, state.result);
        }
    }

    /// A method that changes its receiver, or calls functions.
    pub(super) fn model_other(
        &mut self,
        call: CallId,
        state: &CallState,
        receiver: Node,
        method: &str,
        given: &[Node],
    ) {
        let result = state.result;
        match method {
            "map" | "flatMap" | "forEach" | "filter" | "find" | "findLast" | "some" | "every"
            | "findIndex" | "findLastIndex" | "sort" | "toSorted" => {
                self.each(call, receiver, method, given);
            }
            "reduce" | "reduceRight" => self.reduce(call, state, receiver, given),
            "then" | "catch" | "finally" => {
                self.promise_method(call, state, receiver, method, given);
            }
            "set" | "setdefault" | "__setitem__" => {
                self.set_element(state, receiver, method, given);
            }
            "get" | "getAll" => self.element(state, receiver, given),
            "extend" | "update" | "extendleft" => {
                self.extend(state, receiver);
                // A hash of Node keeps the data, and returns itself.
                if !self.program.is_python {
                    for node in given {
                        self.flow(receiver, Use::Store(name::ANY, *node));
                    }
                    self.copy(receiver, result);
                }
            }
            "keys" | "values" | "entries" | "items" | "concat" | "flat" | "popitem" => {
                self.view(state, receiver, method, given);
            }
            "exception" => {
                self.copy(receiver, result);
                self.copy(self.rejected, result);
            }
            "throw" | "athrow" => {
                for node in given {
                    self.copy(*node, self.sudden);
                }
                self.unknown(call, Some(receiver));
            }
            "splice" => {
                for node in given.iter().skip(2) {
                    self.flow(receiver, Use::Store(name::ANY, *node));
                }
                self.copy(receiver, result);
            }
            "next" | "send" | "asend" => {
                for node in given {
                    self.flow(receiver, Use::Store(name::SENT, *node));
                }
                self.flow(receiver, Use::Store(name::SHAPE, state.condition));
                let (step, object) = self.holding(ObjectKind::Plain);
                let value = self.field(object, name::VALUE);
                self.flow(receiver, Use::LoadAny(value));
                self.shaped(object, receiver);
                self.copy(step, result);
            }
            "replace" | "replaceAll" | "sub" | "subn" => {
                self.replaced(call, state, receiver, given);
            }
            "cancel" => {
                for node in given {
                    self.copy(*node, self.rejected);
                }
            }
            "clear" | "close" | "task_done" | "release" => {}
            "create_task" | "gather" => {
                self.keep_names(state, method);
                for node in given {
                    self.copy(*node, result);
                }
            }
            _ => self.call_library_method(call, state, receiver, method, given),
        }
    }
}
