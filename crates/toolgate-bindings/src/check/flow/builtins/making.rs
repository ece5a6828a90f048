//! Functions of Python that make functions and collections of what they are given.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, ObjectKind, Use, Value},
        ir::{index, name},
    },
    names::CLASSES,
};

impl Solver<'_> {
    /// Returns whether the function is one of these.
    pub(super) fn call_maker(
        &mut self,
        call: CallId,
        state: &CallState,
        path: &str,
        given: &[Node],
    ) -> bool {
        let result = state.result;
        match path {
            "defaultdict" | "collections.defaultdict" => self.default_dict(call, state, given),
            // It only takes classes of exceptions.
            "contextlib.suppress" => {}
            "functools.partial" => {
                let partial = self.object_of(ObjectKind::Partial(call));
                let held = self.field(partial, name::ANY);
                let (list, _) = self.list_of(given);
                self.copy(list, held);
                for node in given {
                    self.copy(*node, held);
                }
                self.add(result, Value::Object(partial), result);
            }
            "dataclasses.field" | "field" => {
                for (kind, node) in &state.arguments {
                    match kind {
                        ArgumentKind::Keyword(name)
                            if &*self.names.text(*name) == "default_factory" =>
                        {
                            self.call_back(call, *node, &[], result);
                        }
                        _ => self.copy(*node, result),
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// A method that is called as a function of its class: `str.lower`. Returns whether it is one.
    pub(super) fn call_through_class(&mut self, state: &CallState, path: &str) -> bool {
        let Some((class, method)) = path.split_once('.') else { return false };
        let Some((ArgumentKind::Position, receiver)) = state.arguments.first().copied() else {
            return false;
        };
        if !self.program.is_python || !CLASSES.contains(&class) || !Self::is_method(method) {
            return false;
        }
        self.calls.push(CallState {
            arguments: state.arguments.iter().skip(1).copied().collect(),
            this: Some(receiver),
            member: self.names.intern(method),
            is_modelled: false,
            ..state.clone()
        });
        let call = index(self.calls.len() - 1);
        self.model_method(call, receiver, method);
        true
    }

    /// A dictionary that makes what is not there.
    fn default_dict(&mut self, call: CallId, state: &CallState, given: &[Node]) {
        let (node, made) = self.holding(ObjectKind::Dict);
        self.growing.insert(made);
        let any = self.field(made, name::ANY);
        let mut given = given.iter().zip(&state.arguments);
        if let Some((factory, (ArgumentKind::Position, _))) = given.clone().next() {
            self.call_back(call, *factory, &[], any);
            given.next();
        }
        for (from, (kind, _)) in given {
            if let ArgumentKind::Keyword(name) = kind {
                let place = self.field(made, *name);
                self.copy(*from, place);
                continue;
            }
            self.flow(*from, Use::Spread(made));
            let pairs = self.loaded(*from, Use::Items);
            self.flow(pairs, Use::LoadAny(any));
            let keys = self.field(made, name::KEYS);
            self.deep(pairs, keys);
            self.shaped(made, *from);
        }
        self.copy(node, state.result);
    }
}
