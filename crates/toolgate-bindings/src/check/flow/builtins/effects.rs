//! What functions of the engines change beside their results.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, Use},
        ir::name,
    },
    names::{
        ADDING_METHODS, CHANGING_FUNCTIONS, ELEMENT_METHODS, MOVING_METHODS, OTHER_METHODS,
        PART_METHODS, PRIMITIVE_METHODS, SPLITTING_METHODS, TAKING_METHODS,
    },
};

impl Solver<'_> {
    /// Whether collections have a method with this name.
    pub(in crate::check::flow) fn is_method(name: &str) -> bool {
        let lists = [
            PRIMITIVE_METHODS,
            SPLITTING_METHODS,
            PART_METHODS,
            ADDING_METHODS,
            ELEMENT_METHODS,
            OTHER_METHODS,
        ];
        lists.iter().any(|list| list.contains(&name))
    }

    /// What a method does to its receiver and to its arguments.
    pub(super) fn affect(&mut self, receiver: Node, method: &str, given: &[Node]) {
        if MOVING_METHODS.contains(&method) && !(method == "pop" && given.is_empty()) {
            self.flow(receiver, Use::Blur);
        }
        if TAKING_METHODS.contains(&method) {
            for node in given {
                let data = self.loaded(*node, Use::Deep);
                self.flow(receiver, Use::Store(name::ANY, data));
            }
        }
        let removes = matches!(method, "delete" | "discard" | "remove" | "pop" | "__delitem__");
        if let (true, Some(key)) = (removes, given.first()) {
            let data = self.loaded(*key, Use::Deep);
            self.flow(receiver, Use::Store(name::KEYS, data));
        }
        // What chose the collection is in what is changed.
        if MOVING_METHODS.contains(&method)
            || TAKING_METHODS.contains(&method)
            || ADDING_METHODS.contains(&method)
            || matches!(method, "set" | "setdefault" | "extend" | "update" | "clear" | "popitem")
        {
            let chosen = self.loaded(receiver, Use::Labels);
            self.flow(receiver, Use::Store(name::ANY, chosen));
        }
        let operands: Vec<Node> = given.iter().copied().chain([receiver]).collect();
        self.compare(&operands);
        self.remember(receiver, method, given);
    }

    /// What is compared reaches the methods of objects that compare.
    pub(in crate::check::flow) fn compare(&mut self, operands: &[Node]) {
        if !self.program.is_python || operands.len() < 2 {
            return;
        }
        let all = self.node();
        for operand in operands {
            self.copy(*operand, all);
            self.flow(*operand, Use::LoadAny(all));
        }
        for operand in operands {
            self.flow(*operand, Use::Compare(all));
        }
    }

    /// A regular expression remembers where it found something.
    fn remember(&mut self, receiver: Node, method: &str, given: &[Node]) {
        let (expression, text) = match (method, given.first()) {
            ("test" | "exec", Some(text)) => (receiver, *text),
            (
                "match" | "matchAll" | "search" | "replace" | "replaceAll" | "split",
                Some(expression),
            ) => (*expression, receiver),
            _ => return,
        };
        if !self.program.is_python {
            let data = self.loaded(text, Use::Deep);
            self.flow(expression, Use::Remember(data));
        }
    }

    /// Some functions change what others return: the state of a random generator, a list that a
    /// module has.
    pub(super) fn share_state(&mut self, state: &CallState, path: &str, given: &[Node]) {
        if matches!(path, "process.exit" | "sys.exit" | "exit" | "quit") {
            self.flow(state.condition, Use::Choose(self.ended));
            self.flow(state.chosen, Use::Choose(self.ended));
        }
        let known = self.names.intern(path);
        let Some(shared) = self.engine_state(known) else { return };
        let is_deep = path.matches('.').count() > 1 && !path.contains("prototype");
        let last = path.rsplit('.').next().unwrap_or(path);
        let sets = is_deep && Self::is_method(last) && !self.is_stateless(path);
        if sets || matches!(path, "random.seed" | "random.setstate") {
            for node in given {
                self.copy(*node, shared);
                self.deep(*node, shared);
            }
            self.copy(state.condition, shared);
        }
        if let ("random.shuffle", Some(list)) = (path, given.first()) {
            let order = self.loaded(shared, Use::Deep);
            self.flow(*list, Use::Blur);
            self.flow(*list, Use::Store(name::ANY, order));
        }
        self.copy(shared, state.result);
    }

    /// A function that writes to its arguments, or reads what it is not given. Returns whether the
    /// function is one of these.
    pub(super) fn call_effect(
        &mut self,
        call: CallId,
        state: &CallState,
        path: &str,
        given: &[Node],
    ) -> bool {
        let result = state.result;
        let has_names = state.arguments.iter().any(|(kind, _)| *kind != ArgumentKind::Position);
        match path {
            "type" => match given {
                [object] => self.flow(*object, Use::ClassOf(result)),
                _ => self.graph.is_lost = true,
            },
            "print" if has_names => self.print(call, state, given),
            "traceback.format_exc" | "traceback.print_exc" | "sys.exc_info" | "sys.exception" => {
                let caught = self.caught;
                self.deep(caught, result);
                let all: Vec<Node> = given.iter().copied().chain([caught]).collect();
                self.hold(&all, None, result);
            }
            // It calls the function until that returns the second argument.
            "iter" if given.len() > 1 => {
                let returned = self.node();
                self.call_back(call, given[0], &[], returned);
                let (list, object) = self.list_of(&[returned]);
                let ends = self.loaded(returned, Use::Deep);
                self.put_shape(object, ends);
                self.copy(list, result);
            }
            "iter" => {
                for node in given {
                    self.copy(*node, result);
                }
                // What is left of it depends on what was taken.
                if let Some(first) = given.first() {
                    let items = self.loaded(*first, Use::Items);
                    let (list, object) = self.list_of(&[items]);
                    self.shaped(object, *first);
                    self.copy(list, result);
                }
            }
            _ if CHANGING_FUNCTIONS.contains(&path) => {
                if let Some(changed) = given.first() {
                    self.flow(*changed, Use::Change);
                }
                self.unknown(call, None);
            }
            _ => return false,
        }
        true
    }

    /// `print` to an object of the script.
    fn print(&mut self, call: CallId, state: &CallState, given: &[Node]) {
        let (file, write) = (self.names.intern("file"), self.names.intern("write"));
        let data = self.node();
        for node in given {
            self.deep(*node, data);
        }
        for (kind, node) in &state.arguments {
            let target = match kind {
                ArgumentKind::Keyword(name) if *name == file => *node,
                ArgumentKind::KeywordSpread => {
                    let target = self.node();
                    self.flow(*node, Use::Load(file, target));
                    target
                }
                _ => continue,
            };
            self.flow(target, Use::Store(name::ANY, data));
            let (method, returned) = (self.node(), self.node());
            self.flow(target, Use::Load(write, method));
            self.call_back(call, method, &[data], returned);
        }
    }
}
