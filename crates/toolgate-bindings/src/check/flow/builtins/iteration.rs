//! Functions over the elements of their arguments.

use super::{
    super::{
        Solver,
        calls::{ArgumentKind, CallState},
        graph::{CallId, Node, ObjectKind, Use},
        ir::name,
    },
    names::COLLECTIONS,
};

impl Solver<'_> {
    /// Functions over the elements of their arguments.
    #[expect(
        clippy::similar_names,
        clippy::too_many_lines,
        reason = "one arm for each built-in function"
    )]
    pub(super) fn iterate(&mut self, call: CallId, state: &CallState, path: &str, given: &[Node]) {
        let result = state.result;
        let last = path.rsplit('.').next().unwrap_or(path);
        let (items, returned, shape) = (self.node(), self.node(), self.node());
        let takes_function_first = matches!(last, "map" | "filter" | "reduce" | "starmap");
        let mut each = Vec::new();
        for (at, node) in given.iter().enumerate() {
            if at == 0 && takes_function_first {
                continue;
            }
            let own = self.loaded(*node, Use::Items);
            self.copy(own, items);
            self.flow(*node, Use::Shape(shape));
            each.push(own);
        }
        let total = self.node();
        let arguments: Vec<Node> = match last {
            "reduce" => vec![total, items],
            "map" if path == "map" => each.clone(),
            "starmap" => {
                let inner = self.loaded(items, Use::LoadAny);
                vec![inner; 4]
            }
            _ => vec![items, shape],
        };
        let this = if takes_function_first { None } else { given.get(2).copied() };
        let functions = if COLLECTIONS.contains(&path) { &[][..] } else { given };
        for function in functions {
            self.call_back_on(call, *function, this, &arguments, returned);
        }
        let chosen = self.loaded(returned, Use::Deep);
        match last {
            "min" | "max" => {
                self.copy(items, result);
                self.copy(chosen, result);
                for node in given {
                    self.copy(*node, result);
                }
            }
            "sum" | "any" | "all" => {
                for node in given {
                    self.deep(*node, result);
                }
                self.copy(items, result);
            }
            "reduce" => {
                self.copy(items, total);
                self.copy(returned, total);
                for node in given.iter().skip(2) {
                    self.copy(*node, total);
                }
                self.copy(total, result);
                self.copy(shape, result);
            }
            "zip" | "enumerate" | "zip_longest" => {
                let (pair, made) = self.holding(ObjectKind::Array);
                let start = usize::from(last == "enumerate");
                if last == "enumerate" {
                    let first = self.field(made, name::FIRST);
                    self.copy(shape, first);
                }
                for (at, own) in each.iter().enumerate() {
                    let place = self.indexed(made, at + start);
                    self.copy(*own, place);
                }
                // What stands for elements that are missing.
                if last == "zip_longest" {
                    let any = self.field(made, name::ANY);
                    for (kind, node) in &state.arguments {
                        match kind {
                            ArgumentKind::Keyword(_) => self.copy(*node, any),
                            ArgumentKind::KeywordSpread => self.flow(*node, Use::LoadAny(any)),
                            ArgumentKind::Position | ArgumentKind::Spread => {}
                        }
                    }
                }
                let (list, object) = self.list_of(&[pair]);
                self.put_shape(object, shape);
                self.copy(list, result);
                // The shortest one says how much is taken of an iterator.
                if self.names.contains("next") {
                    for node in given {
                        self.flow(*node, Use::Store(name::SHAPE, shape));
                    }
                }
            }
            "groupby" | "groupBy" => {
                let (group, object) = self.list_of(&[items, chosen]);
                self.put_shape(object, shape);
                let (pair, made) = self.holding(ObjectKind::Array);
                let (first, second) =
                    (self.field(made, name::FIRST), self.field(made, name::SECOND));
                self.copy(returned, first);
                self.copy(group, second);
                if given.len() < 2 {
                    self.copy(items, first);
                }
                if path == "Object.groupBy" || path == "Map.groupBy" {
                    let (map, object) = self.holding(ObjectKind::Map);
                    let (any, keys) =
                        (self.field(object, name::ANY), self.field(object, name::KEYS));
                    self.copy(group, any);
                    self.deep(returned, keys);
                    self.copy(map, result);
                } else {
                    let (list, object) = self.list_of(&[pair]);
                    self.put_shape(object, shape);
                    self.copy(list, result);
                }
            }
            "map" | "starmap" => {
                let (list, object) = self.list_of(&[returned]);
                self.put_shape(object, shape);
                self.copy(list, result);
            }
            "from" | "fromAsync" if given.len() > 1 => {
                let (list, object) = self.list_of(&[returned]);
                self.put_shape(object, shape);
                if let Some(first) = given.first() {
                    let length = self.node();
                    self.flow(*first, Use::Load(name::LENGTH, length));
                    self.put_shape(object, length);
                }
                self.copy(list, result);
            }
            _ => {
                let (list, object) = self.list_of(&[items, chosen]);
                self.put_shape(object, shape);
                if last == "from" || last == "Array" {
                    for node in given {
                        let data = self.loaded(*node, Use::Deep);
                        self.put_shape(object, data);
                    }
                }
                self.copy(list, result);
            }
        }
    }
}
