//! Functions of the engines.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, ObjectKind, Use, Value},
        ir::{Name, is_frame, name},
    },
    MAX_UNKNOWN, is_in,
    names::{
        ASYNCHRONOUS_FUNCTIONS, HOLDING_FUNCTIONS, ITERATING_FUNCTIONS, PASSING_FUNCTIONS,
        PRIMITIVE_FUNCTIONS,
    },
};

impl Solver<'_> {
    /// A function of the engine.
    pub(in crate::check::flow) fn call_builtin(&mut self, call: CallId, path: Name) {
        let Some(known) = self.calls.get_mut(call as usize) else { return };
        let (was_modelled, state) = (known.is_modelled, known.clone());
        let path = self.names.text(path);
        let result = state.result;
        if let Some(this) = state.constructs {
            for (_, node) in &state.arguments {
                self.flow(this, Use::Store(name::ANY, *node));
            }
            return;
        }
        if self.is_opaque_name(&path) {
            self.graph.is_lost = true;
            return;
        }
        if was_modelled && state.member != name::NONE {
            return;
        }
        let given = self.arguments(&state);
        for node in &given {
            self.deep(*node, state.thrown);
            self.touch(*node);
        }
        // A function of the engine that one of its functions got from one of its functions.
        if state.depth > MAX_UNKNOWN {
            self.hold(&given, None, result);
            return;
        }
        let first = given.first().copied();
        self.compare(&given);
        self.share_state(&state, &path, &given);
        if self.call_library(call, &state, &path, &given) {
            return;
        }
        if self.call_effect(call, &state, &path, &given) {
            return;
        }
        if self.call_through_class(&state, &path) || self.call_maker(call, &state, &path, &given) {
            return;
        }
        // The functions of `Object`, and methods that are called through their class.
        let method = match &*path {
            "Object.keys" | "Object.getOwnPropertyNames" => Some("keys"),
            "Object.values" => Some("values"),
            "Object.entries" => Some("entries"),
            "re.sub" | "re.subn" => Some("sub"),
            _ => None,
        };
        if let (Some(method), Some(first)) = (method, first) {
            return self.model_other(call, &state, first, method, &given);
        }
        match &*path {
            _ if ASYNCHRONOUS_FUNCTIONS.contains(&&*path) => {
                self.asynchronous(call, &state, &path, &given);
            }
            _ if PASSING_FUNCTIONS.contains(&&*path) => {
                for node in given {
                    self.copy(node, result);
                }
            }
            "Object.assign" => {
                if let Some(target) = first {
                    for from in given.iter().skip(1) {
                        self.flow(target, Use::SpreadFrom(*from));
                    }
                    self.copy(target, result);
                }
            }
            "Object.fromEntries"
            | "Map"
            | "WeakMap"
            | "dict"
            | "Object"
            | "collections.ChainMap" => {
                self.mapping(&state, &path, &given);
            }
            _ if ITERATING_FUNCTIONS.contains(&&*path) => self.iterate(call, &state, &path, &given),
            "getattr" => self.load_named(&state, &given),
            "setattr" => {
                let value = given.get(2).copied().unwrap_or(result);
                if let Some(object) = first {
                    self.flow(object, Use::Change);
                    let key = self.key(&state, 1).unwrap_or(name::ANY);
                    self.flow(object, Use::Store(key, value));
                    if let (name::ANY, Some(key)) = (key, given.get(1)) {
                        let data = self.loaded(*key, Use::Deep);
                        self.flow(object, Use::Store(name::ANY, data));
                        self.flow(object, Use::Store(name::KEYS, *key));
                    }
                }
            }
            _ => self.call_listed(call, &state, &path, &given),
        }
    }

    /// A function that only makes a value of its arguments, or one that is not known.
    fn call_listed(&mut self, call: CallId, state: &CallState, path: &str, given: &[Node]) {
        let result = state.result;
        if is_in(PRIMITIVE_FUNCTIONS, path) && !state.is_new {
            for node in given {
                self.deep(*node, result);
            }
            if !matches!(path, "JSON.stringify" | "json.dumps") {
                return;
            }
            // The replacer.
            let data = self.node();
            for node in given {
                self.copy(*node, data);
                self.flow(*node, Use::LoadAny(data));
            }
            let returned = self.node();
            for node in given {
                self.call_back_on(call, *node, Some(data), &[data, data], returned);
            }
            self.deep(returned, result);
        } else if is_in(HOLDING_FUNCTIONS, path) {
            let held = self.hold(given, None, result);
            // What is data already is returned as it is.
            if matches!(path, "JSON.parse" | "json.loads" | "loads") {
                for node in given {
                    self.copy(*node, result);
                }
            }
            if path == "RegExp" {
                self.stateful.insert(held);
            }
            let (data, returned) = (self.loaded(result, Use::LoadAny), self.node());
            for node in given {
                self.call_back_on(call, *node, Some(data), &[data, data, data], returned);
            }
            if !given.is_empty() {
                self.flow(result, Use::Store(name::ANY, returned));
            }
        } else {
            self.unknown(call, None);
        }
    }

    /// Promises, tasks and timers.
    fn asynchronous(&mut self, call: CallId, state: &CallState, path: &str, given: &[Node]) {
        let (result, first) = (state.result, given.first().copied());
        match path {
            "setTimeout" | "setInterval" | "queueMicrotask" | "setImmediate" => {
                let rest = given.get(2..).unwrap_or_default().to_vec();
                let returned = self.node();
                if let Some(function) = first {
                    self.call_back(call, function, &rest, returned);
                }
            }
            "Promise" => {
                let (resolve, function) = (self.node(), self.object(ObjectKind::Collector(result)));
                self.add(resolve, Value::Object(function), resolve);
                let returned = self.node();
                if let Some(first) = first {
                    self.call_back(call, first, &[resolve, resolve], returned);
                }
            }
            "Promise.withResolvers" => self.unknown(call, None),
            "Promise.reject" => {
                for node in given.iter().copied() {
                    let rejected = self.rejected;
                    self.copy(node, rejected);
                    self.copy(node, result);
                }
            }
            "Promise.race" | "Promise.any" | "next" | "anext" | "random.choice" => {
                for (at, node) in given.iter().copied().enumerate() {
                    if at > 0 {
                        self.copy(node, result);
                    } else if matches!(path, "next" | "anext") {
                        self.flow(node, Use::Store(name::SHAPE, state.condition));
                    }
                    self.flow(node, Use::LoadAny(result));
                    self.flow(node, Use::Shape(result));
                }
            }
            "Promise.allSettled" => {
                let (node, list) = self.holding(ObjectKind::Array);
                if let Some(first) = first {
                    self.flow(first, Use::Settle(list));
                }
                self.copy(node, result);
            }
            "asyncio.gather" | "gather" | "asyncio.wait" | "Array.of" | "tuple_of" => {
                let (node, list) = self.holding(ObjectKind::Array);
                let mut position = 0;
                for (at, from) in given.iter().enumerate() {
                    match state.arguments.get(at).map(|(kind, _)| *kind) {
                        Some(ArgumentKind::Position) if position == at => {
                            let place = self.indexed(list, at);
                            self.copy(*from, place);
                            position += 1;
                        }
                        _ => {
                            let any = self.field(list, name::ANY);
                            self.copy(*from, any);
                        }
                    }
                }
                // The results may be exceptions.
                if state.arguments.iter().any(|(kind, _)| *kind != ArgumentKind::Position) {
                    let any = self.field(list, name::ANY);
                    self.copy(self.rejected, any);
                }
                if path == "asyncio.wait" {
                    let any = self.field(list, name::ANY);
                    for from in given.iter().copied() {
                        self.flow(from, Use::LoadAny(any));
                    }
                }
                self.copy(node, result);
            }
            _ => {}
        }
    }

    fn load_named(&mut self, state: &CallState, given: &[Node]) {
        let Some(object) = given.first() else { return };
        if let Some(key) = self.key(state, 1) {
            // A way to the parts of the engine.
            let text = self.names.text(key);
            self.graph.is_lost |= text.starts_with("__")
                && !matches!(&*text, "__class__" | "__name__" | "__doc__")
                || self.program.is_python && is_frame(&text);
            self.flow(*object, Use::Load(key, state.result));
        } else {
            self.flow(*object, Use::LoadAny(state.result));
            self.flow(*object, Use::ClassOf(state.result));
            if self.program.is_python {
                self.flow(*object, Use::Inside { is_text: false });
            }
            // It may be a method.
            self.hold(&given[..1], None, state.result);
        }
        for node in given.iter().skip(1) {
            self.deep(*node, state.result);
            self.copy(*node, state.result);
        }
    }

    /// Functions that make a dictionary.
    fn mapping(&mut self, state: &CallState, path: &str, given: &[Node]) {
        let kind =
            if matches!(path, "Map" | "WeakMap") { ObjectKind::Map } else { ObjectKind::Dict };
        let kind = if path.starts_with("Object") { ObjectKind::Plain } else { kind };
        let (node, made) = self.holding(kind);
        for (at, from) in given.iter().enumerate() {
            match state.arguments.get(at).map(|(kind, _)| *kind) {
                Some(ArgumentKind::Keyword(name)) => {
                    let place = self.field(made, name);
                    self.copy(*from, place);
                    continue;
                }
                _ if matches!(path, "dict" | "Object" | "collections.ChainMap") => {
                    self.flow(*from, Use::Spread(made));
                }
                _ => {}
            }
            let pairs = self.loaded(*from, Use::Items);
            let (keys, values) = (self.node(), self.node());
            self.flow(pairs, Use::Load(name::FIRST, keys));
            self.flow(pairs, Use::Load(name::SECOND, values));
            let (any, places) = (self.field(made, name::ANY), self.field(made, name::KEYS));
            if !matches!(path, "Object" | "collections.ChainMap") {
                self.copy(values, any);
                self.deep(keys, places);
            }
            self.shaped(made, *from);
        }
        self.copy(node, state.result);
    }
}
