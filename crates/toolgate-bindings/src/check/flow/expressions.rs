//! Expressions: which values they have, and which calls they make.

use super::{
    Solver,
    graph::{NOTHING, Node, ObjectKind, Use},
    ir::{Comprehension, Entry, Expression, Item, Key, Name, Target, name},
    statements::Frame,
};

/// The number of fields that replace those of a spread.
const MAX_REPLACED: usize = 32;

impl Solver<'_> {
    /// The node with the values of an expression.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    pub(super) fn expression(&mut self, frame: &mut Frame, expression: &Expression) -> Node {
        match expression {
            Expression::Literal => NOTHING,
            Expression::Text(text) => {
                let node = self.node();
                self.literal_keys.insert(node, *text);
                node
            }
            Expression::Variable(variable) => {
                // Others may know the object from now on.
                frame.fresh.remove(variable);
                self.variable(frame, *variable)
            }
            Expression::Free(name) => self.free(*name),
            Expression::This => self.this(frame),
            Expression::Member(object, key) => {
                let object = match &**object {
                    Expression::Variable(variable) => self.variable(frame, *variable),
                    other => self.expression(frame, other),
                };
                self.member(frame, object, key)
            }
            Expression::Slice(sequence, bounds) => {
                let sequence = self.expression(frame, sequence);
                let node = self.node();
                self.copy(sequence, node);
                self.flow(sequence, Use::Blur);
                for bound in bounds {
                    let bound = self.expression(frame, bound);
                    self.deep(bound, node);
                }
                node
            }
            Expression::Call(call) => self.call_expression(frame, call, false),
            Expression::Object { entries, is_dict } => {
                self.object_literal(frame, entries, *is_dict)
            }
            Expression::Array(items) => self.array_literal(frame, items),
            Expression::Function(function) => {
                let environment = frame.instance;
                self.make_defaults(frame, *function);
                self.holding(ObjectKind::Function { function: *function, environment }).0
            }
            Expression::Class(class) => self.class(frame, class),
            Expression::Operator(operands) => {
                let node = self.node();
                let mut values = Vec::with_capacity(operands.len());
                for operand in operands {
                    let operand = self.expression(frame, operand);
                    self.deep(operand, node);
                    self.touch(operand);
                    values.push(operand);
                }
                self.compare(&values);
                node
            }
            Expression::Merge(operands) => {
                let (node, object) = self.holding(ObjectKind::Array);
                let (any, shape) = (self.field(object, name::ANY), self.field(object, name::SHAPE));
                for operand in operands {
                    let operand = self.expression(frame, operand);
                    self.flow(operand, Use::LoadAny(any));
                    self.flow(operand, Use::Shape(shape));
                    self.flow(operand, Use::Spread(object));
                }
                node
            }
            Expression::Either(values) => {
                let node = self.node();
                let (outer, mark) = (frame.condition, Self::mark(frame));
                frame.fresh.clear();
                for (at, value) in values.iter().enumerate() {
                    let value = self.expression(frame, value);
                    self.copy(value, node);
                    if at + 1 < values.len() {
                        self.chooses(value, node);
                        self.under(frame, &[value]);
                    }
                }
                frame.condition = outer;
                self.join_optional(frame, mark);
                node
            }
            Expression::Conditional(parts) => {
                let [test, then, otherwise] = &**parts;
                let node = self.node();
                let test = self.expression(frame, test);
                self.chooses(test, node);
                let outer = self.under(frame, &[test]);
                frame.fresh.clear();
                for value in [then, otherwise] {
                    let mark = Self::mark(frame);
                    let value = self.expression(frame, value);
                    self.join_optional(frame, mark);
                    self.copy(value, node);
                }
                frame.condition = outer;
                node
            }
            Expression::Assign(target, value) => {
                let value = self.expression(frame, value);
                if !self.replace_field(frame, target, value) {
                    self.assign(frame, target, value);
                }
                value
            }
            Expression::Update(target, value) => self.update(frame, target, value),
            Expression::Await(value) => {
                if let Expression::Call(call) = &**value {
                    let node = self.call_expression(frame, call, true);
                    self.deep(node, frame.thrown);
                    if self.is_tool_call(call) {
                        return node;
                    }
                    self.copy(self.rejected, frame.thrown);
                    return self.resolved(node);
                }
                let node = self.expression(frame, value);
                self.deep(node, frame.thrown);
                self.copy(self.rejected, frame.thrown);
                self.resolved(node)
            }
            Expression::Yield(value) => {
                let value = value.as_ref().map(|value| self.expression(frame, value));
                let Some(list) = frame.yields else { return NOTHING };
                let (any, sent) = (self.field(list, name::ANY), self.field(list, name::SENT));
                if let Some(value) = value {
                    self.copy(value, any);
                }
                self.copy(frame.condition, any);
                sent
            }
            Expression::YieldAll(value) => {
                let value = self.expression(frame, value);
                let Some(list) = frame.yields else { return NOTHING };
                let any = self.field(list, name::ANY);
                self.flow(value, Use::Items(any));
                let node = self.node();
                self.flow(value, Use::LoadAny(node));
                node
            }
            Expression::Sequence(values) => {
                let mut last = NOTHING;
                for value in values {
                    last = self.expression(frame, value);
                }
                last
            }
            Expression::Comprehension(comprehension) => self.comprehension(frame, comprehension),
            Expression::Remove(target) => {
                if let Target::Member(object, key) = &**target
                    && let Expression::Variable(variable) = &**object
                {
                    match key {
                        Key::Name(field) => {
                            self.remove_field(frame, *variable, *field);
                            let object = self.variable(frame, *variable);
                            self.flow(object, Use::Blur);
                        }
                        Key::Computed(key) => {
                            let object = self.variable(frame, *variable);
                            self.take_out(frame, object, key);
                        }
                    }
                } else if let Target::Member(object, key) = &**target {
                    let object = self.expression(frame, object);
                    self.flow(object, Use::Blur);
                    if let Key::Computed(key) = key {
                        self.take_out(frame, object, key);
                    }
                }
                NOTHING
            }
            Expression::SuperCall(arguments) => {
                let arguments = self.arguments_of(frame, arguments);
                let this = self.this(frame);
                let state = self.call_state(frame, NOTHING, arguments, 0);
                for class in self.class_around(frame.instance) {
                    self.construct_bases(&state, class, this);
                }
                this
            }
            Expression::Opaque(parts) => {
                let (node, object) = self.holding(ObjectKind::Opaque);
                if !self.program.is_python && !parts.is_empty() {
                    self.stateful.insert(object);
                }
                let any = self.field(object, name::ANY);
                for part in parts {
                    let part = self.expression(frame, part);
                    self.copy(part, any);
                }
                node
            }
        }
    }

    /// Evaluates the defaults of parameters, which exist once for all calls, in Python.
    pub(super) fn make_defaults(&mut self, frame: &mut Frame, function: u32) {
        let key = (function, frame.instance);
        if !self.program.is_python || self.defaults.contains_key(&key) {
            return;
        }
        let Some(body) = self.program.functions.get(function as usize) else { return };
        let mut nodes = Vec::with_capacity(body.parameters.len());
        for parameter in &body.parameters {
            nodes.push(match &parameter.default {
                Some(default) => self.expression(frame, default),
                None => NOTHING,
            });
        }
        self.defaults.insert(key, nodes);
    }

    /// What is left says what the key was.
    fn take_out(&mut self, frame: &mut Frame, object: Node, key: &Expression) {
        let key = self.expression(frame, key);
        let data = self.node();
        self.deep(key, data);
        self.copy(frame.condition, data);
        self.flow(object, Use::Blur);
        self.flow(object, Use::Store(name::ANY, data));
        self.flow(object, Use::Store(name::KEYS, data));
    }

    /// Data decides which value an expression has.
    fn chooses(&mut self, test: Node, node: Node) {
        self.flow(test, Use::Choose(node));
    }

    pub(super) fn member(&mut self, frame: &mut Frame, object: Node, key: &Key) -> Node {
        let node = self.node();
        // It may not be there.
        if frame.is_tried {
            self.flow(object, Use::Choose(frame.thrown));
            self.may_end(frame, object);
        }
        match key {
            Key::Name(field) => self.flow(object, Use::Load(*field, node)),
            Key::Computed(key) => {
                let key = self.expression(frame, key);
                self.flow(object, Use::LoadAny(node));
                self.flow(object, Use::LookUp(key));
                if !self.program.is_python {
                    self.flow(object, Use::Reflect(node));
                }
                // The key is in what it chooses, and in the error if it does not exist.
                self.deep(key, node);
                self.deep(key, frame.thrown);
            }
        }
        node
    }

    fn this(&mut self, frame: &Frame) -> Node {
        let mut at = frame.instance;
        loop {
            let instance = &self.instances[at as usize];
            let function = self.program.functions.get(instance.function as usize);
            match instance.lexical {
                Some(outer) if function.is_some_and(|function| function.is_arrow) => at = outer,
                _ => return instance.this,
            }
        }
    }

    fn update(&mut self, frame: &mut Frame, target: &Target, value: &Expression) -> Node {
        let old = match target {
            Target::Variable(variable) => self.variable(frame, *variable),
            Target::Free(name) => self.free(*name),
            Target::Member(object, key) => {
                let object = self.expression(frame, object);
                self.member(frame, object, key)
            }
            Target::Nothing | Target::Object { .. } | Target::Array { .. } => NOTHING,
        };
        let value = self.expression(frame, value);
        let node = self.node();
        self.copy(old, node);
        self.copy(value, node);
        self.deep(value, node);
        if self.program.is_python {
            let items = self.node();
            self.flow(value, Use::Items(items));
            self.flow(old, Use::Store(name::ANY, items));
        }
        self.assign(frame, target, node);
        node
    }

    fn object_literal(&mut self, frame: &mut Frame, entries: &[Entry], is_dict: bool) -> Node {
        let kind = if is_dict { ObjectKind::Dict } else { ObjectKind::Plain };
        let (node, object) = self.holding(kind);
        for (at, entry) in entries.iter().enumerate() {
            match entry {
                Entry::Value(Key::Name(field), value) => {
                    let value = self.expression(frame, value);
                    let place = self.field(object, *field);
                    self.copy(value, place);
                }
                Entry::Value(Key::Computed(key), value) => {
                    let key = self.expression(frame, key);
                    let is_named = matches!(value, Expression::Function(_) | Expression::Class(_));
                    let value = self.expression(frame, value);
                    let (any, keys) =
                        (self.field(object, name::ANY), self.field(object, name::KEYS));
                    self.copy(value, any);
                    self.copy(key, keys);
                    if is_named {
                        self.flow(value, Use::Rename(key));
                    }
                }
                Entry::Spread(value) => {
                    let value = self.expression(frame, value);
                    // Later entries replace what the spread sets.
                    let later = entries.iter().skip(at + 1).filter_map(|entry| match entry {
                        Entry::Value(Key::Name(field), _) => Some(*field),
                        _ => None,
                    });
                    let later: Vec<Name> = later.take(MAX_REPLACED).collect();
                    if later.is_empty() {
                        self.flow(value, Use::Spread(object));
                    } else {
                        let (rest, _) = self.spread_except(value, later);
                        self.flow(rest, Use::Spread(object));
                    }
                }
                Entry::Getter(key, function) => {
                    let field = if let Key::Name(field) = key { *field } else { name::ANY };
                    let place = self.field(object, field);
                    let outer = self.under_keys(frame, node);
                    self.call_own(frame, *function, node, &[], place);
                    frame.condition = outer;
                }
                Entry::Setter(function) => {
                    let any = self.any(object);
                    let returned = self.node();
                    let outer = self.under_keys(frame, node);
                    self.call_own(frame, *function, node, &[any], returned);
                    frame.condition = outer;
                }
            }
        }
        node
    }

    /// The values of an awaited expression.
    fn resolved(&mut self, node: Node) -> Node {
        if self.program.is_python || node == NOTHING {
            return node;
        }
        let resolved = self.node();
        self.copy(node, resolved);
        self.flow(node, Use::Resolve(resolved));
        resolved
    }

    /// The language calls methods of the objects: what chose the objects decides which.
    pub(super) fn touch(&mut self, objects: Node) {
        if objects == NOTHING {
            return;
        }
        let chosen = self.node();
        self.flow(objects, Use::Labels(chosen));
        self.flow(objects, Use::LookUp(chosen));
    }

    /// Makes what follows depend on the keys with which the objects are used: a getter or a setter
    /// runs. Returns the old condition.
    pub(super) fn under_keys(&mut self, frame: &mut Frame, objects: Node) -> Node {
        self.has_accessors = true;
        let keys = self.node();
        self.flow(objects, Use::Keys(keys));
        let inner = self.node();
        self.copy(frame.condition, inner);
        self.copy(keys, inner);
        std::mem::replace(&mut frame.condition, inner)
    }

    fn array_literal(&mut self, frame: &mut Frame, items: &[Item]) -> Node {
        let (node, object) = self.holding(ObjectKind::Array);
        let mut is_shifted = false;
        for (at, item) in items.iter().enumerate() {
            let value = self.expression(frame, &item.value);
            if item.is_spread {
                is_shifted = true;
                let (any, shape) = (self.field(object, name::ANY), self.field(object, name::SHAPE));
                self.flow(value, Use::Items(any));
                self.flow(value, Use::Shape(shape));
            } else {
                let place = if is_shifted {
                    self.field(object, name::ANY)
                } else {
                    self.indexed(object, at)
                };
                self.copy(value, place);
            }
        }
        node
    }

    fn comprehension(&mut self, frame: &mut Frame, comprehension: &Comprehension) -> Node {
        let Comprehension { clauses, key, value } = comprehension;
        let kind = if key.is_some() { ObjectKind::Dict } else { ObjectKind::Array };
        let (node, object) = self.holding(kind);
        let (any, shape) = (self.field(object, name::ANY), self.field(object, name::SHAPE));
        let outer = frame.condition;
        let mark = Self::mark(frame);
        frame.fresh.clear();
        for clause in clauses {
            let items = self.expression(frame, &clause.items);
            let item = self.node();
            self.flow(items, Use::Items(item));
            self.flow(items, Use::Shape(shape));
            self.under(frame, &[items]);
            self.assign(frame, &clause.target, item);
            for condition in &clause.conditions {
                let test = self.expression(frame, condition);
                self.under(frame, &[test]);
                // What is left says what the condition was.
                self.deep(test, any);
            }
        }
        if let Some(key) = key {
            let key = self.expression(frame, key);
            let keys = self.field(object, name::KEYS);
            self.copy(key, keys);
        }
        let value = self.expression(frame, value);
        self.copy(value, any);
        frame.condition = outer;
        self.join_optional(frame, mark);
        node
    }
}
