//! Expressions: which values they have, and which calls they make.

use super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{NOTHING, Node, ObjectKind, Use},
    ir::{Argument, Call, Comprehension, Entry, Expression, Item, Key, Name, Target, name},
    places::TOOLS,
    statements::Frame,
};

/// The number of fields that replace those of a spread.
const MAX_REPLACED: usize = 32;

/// An object that only one variable knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fresh {
    Object,
    /// A list of this length.
    List(usize),
}

impl Fresh {
    /// What a literal makes, if nothing else can know the object.
    pub(super) fn of(expression: &Expression) -> Option<Self> {
        match expression {
            Expression::Object { entries, .. } => {
                let is_plain = |it: &Entry| matches!(it, Entry::Value(..) | Entry::Spread(_));
                entries.iter().all(is_plain).then_some(Self::Object)
            }
            Expression::Array(items) => {
                let is_fixed = !items.iter().any(|item| item.is_spread);
                is_fixed.then_some(Self::List(items.len()))
            }
            _ => None,
        }
    }
}

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

    /// Whether a call is one of a tool by its name.
    fn is_tool_call(&self, call: &Call) -> bool {
        let name = match &call.callee {
            Expression::Free(name) => *name,
            Expression::Member(object, Key::Name(name)) => match &**object {
                Expression::Free(tools) if &*self.names.text(*tools) == TOOLS => *name,
                _ => return false,
            },
            _ => return false,
        };
        let text = self.names.text(name);
        !self.overwritten.contains(&name)
            && (&*text == "call_tool" || self.tools.tool(&text).is_some())
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
            self.flow(object, Use::Choose(frame.faults));
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

    /// Sets a field of an object that only this variable knows, so that its old value is gone.
    fn replace_field(&mut self, frame: &mut Frame, target: &Target, value: Node) -> bool {
        let Target::Member(object, Key::Name(field)) = target else { return false };
        let Expression::Variable(variable) = &**object else { return false };
        if frame.fresh.get(variable) != Some(&Fresh::Object) {
            return false;
        }
        let old = self.variable(frame, *variable);
        let (rest, _) = self.spread_except(old, vec![*field]);
        let kind = if self.program.is_python { ObjectKind::Dict } else { ObjectKind::Plain };
        let (node, object) = self.holding(kind);
        self.flow(rest, Use::Spread(object));
        let place = self.field(object, *field);
        self.copy(value, place);
        self.assign(frame, &Target::Variable(*variable), node);
        frame.fresh.insert(*variable, Fresh::Object);
        true
    }

    /// Takes a field out of an object that only this variable knows.
    fn remove_field(&mut self, frame: &mut Frame, variable: u32, field: Name) {
        if frame.fresh.get(&variable) != Some(&Fresh::Object) {
            return;
        }
        let old = self.variable(frame, variable);
        let (rest, _) = self.spread_except(old, vec![field]);
        let kind = if self.program.is_python { ObjectKind::Dict } else { ObjectKind::Plain };
        let (node, object) = self.holding(kind);
        self.flow(rest, Use::Spread(object));
        self.assign(frame, &Target::Variable(variable), node);
        frame.fresh.insert(variable, Fresh::Object);
    }

    /// `pop` of a key of a dictionary that only this variable knows.
    fn pop_fresh(&mut self, frame: &mut Frame, call: &Call) -> Option<Node> {
        let Expression::Member(object, Key::Name(method)) = &call.callee else { return None };
        let Expression::Variable(variable) = &**object else { return None };
        let [Argument::Position(Expression::Text(field)), ..] = call.arguments.as_slice() else {
            return None;
        };
        let is_fresh = frame.fresh.get(variable) == Some(&Fresh::Object);
        if !is_fresh || !self.program.is_python || &*self.names.text(*method) != "pop" {
            return None;
        }
        let result = self.node();
        let old = self.variable(frame, *variable);
        self.flow(old, Use::Load(*field, result));
        for (_, default) in self.arguments_of(frame, &call.arguments).into_iter().skip(1) {
            self.copy(default, result);
        }
        self.remove_field(frame, *variable, *field);
        Some(result)
    }

    /// Adds elements to a list that only this variable knows, so that their positions are known.
    fn append_fresh(&mut self, frame: &mut Frame, call: &Call) -> bool {
        let Expression::Member(object, Key::Name(method)) = &call.callee else { return false };
        let Expression::Variable(variable) = &**object else { return false };
        let Some(Fresh::List(mut length)) = frame.fresh.get(variable).copied() else {
            return false;
        };
        let is_position = |argument: &Argument| matches!(argument, Argument::Position(_));
        if !matches!(&*self.names.text(*method), "push" | "append")
            || !call.arguments.iter().all(is_position)
        {
            return false;
        }
        for (_, value) in self.arguments_of(frame, &call.arguments) {
            let list = self.variable(frame, *variable);
            let name = self.index_name(length);
            self.flow(list, Use::Store(name, value));
            length += 1;
        }
        // An argument may have been the list itself.
        if frame.fresh.contains_key(variable) {
            frame.fresh.insert(*variable, Fresh::List(length));
        }
        true
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

    pub(super) fn call_state(
        &mut self,
        frame: &Frame,
        callee: Node,
        arguments: Vec<(ArgumentKind, Node)>,
        offset: u32,
    ) -> CallState {
        CallState {
            arguments,
            this: None,
            member: name::NONE,
            callee,
            result: self.node(),
            thrown: frame.thrown,
            condition: frame.condition,
            chosen: NOTHING,
            offset,
            instance: frame.instance,
            is_new: false,
            is_awaited: false,
            constructs: None,
            depth: 0,
            is_modelled: false,
            is_sudden: false,
        }
    }

    fn arguments_of(
        &mut self,
        frame: &mut Frame,
        arguments: &[Argument],
    ) -> Vec<(ArgumentKind, Node)> {
        let mut nodes = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (kind, value) = match argument {
                Argument::Position(value) => (ArgumentKind::Position, value),
                Argument::Spread(value) => (ArgumentKind::Spread, value),
                Argument::Keyword(name, value) => (ArgumentKind::Keyword(*name), value),
                Argument::KeywordSpread(value) => (ArgumentKind::KeywordSpread, value),
            };
            nodes.push((kind, self.expression(frame, value)));
        }
        nodes
    }

    /// A call of a function of the script that the language makes itself.
    pub(super) fn call_own(
        &mut self,
        frame: &mut Frame,
        function: u32,
        this: Node,
        arguments: &[Node],
        result: Node,
    ) {
        let environment = frame.instance;
        let callee = self.holding(ObjectKind::Function { function, environment }).0;
        let own = if self.program.is_python { Some(this) } else { None };
        let arguments = own.into_iter().chain(arguments.iter().copied());
        let arguments = arguments.map(|node| (ArgumentKind::Position, node)).collect();
        self.make_defaults(frame, function);
        let state = self.call_state(frame, callee, arguments, 0);
        // The language may call it anywhere.
        let thrown = self.sudden;
        self.call(CallState { this: Some(this), result, thrown, ..state });
    }

    fn call_expression(&mut self, frame: &mut Frame, call: &Call, is_awaited: bool) -> Node {
        let Call { callee, arguments, is_new, offset, .. } = call;
        self.note_direct(call);
        if let Some(result) = self.named_tool(frame, call) {
            return result;
        }
        if self.append_fresh(frame, call) {
            return NOTHING;
        }
        if let Some(result) = self.pop_fresh(frame, call) {
            return result;
        }
        let mut receiver = None;
        let mut member = name::NONE;
        let callee = match callee {
            Expression::Member(object, key) => {
                let object = self.expression(frame, object);
                receiver = Some(object);
                member = if let Key::Name(field) = key { *field } else { name::ANY };
                self.member(frame, object, key)
            }
            other => self.expression(frame, other),
        };
        let arguments = self.arguments_of(frame, arguments);
        let state = self.call_state(frame, callee, arguments, *offset);
        let result = state.result;
        let is_new = *is_new;
        let chosen = self.node();
        if member == name::NONE || member == name::ANY {
            self.flow(callee, Use::Labels(chosen));
        }
        if let Some(receiver) = receiver {
            self.flow(receiver, Use::Labels(chosen));
        }
        // A function of the engine may throw because of what it is given.
        if frame.is_tried && !self.is_tool_call(call) {
            for (_, argument) in &state.arguments {
                self.flow(*argument, Use::Choose(frame.faults));
            }
        }
        self.call(CallState { this: receiver, member, is_new, is_awaited, chosen, ..state });
        result
    }

    /// `call_tool` with the name of the tool in the script.
    fn named_tool(&mut self, frame: &mut Frame, call: &Call) -> Option<Node> {
        let Expression::Free(callee) = &call.callee else { return None };
        if &*self.names.text(*callee) != "call_tool" {
            return None;
        }
        let mut tool = None;
        let mut sent = None;
        let mut take = |position: usize, name: Option<&str>, value| match (position, name) {
            (0, None) | (_, Some("name")) => tool = Some(value),
            (1, None) | (_, Some("arguments")) => sent = Some(value),
            _ => {}
        };
        for (at, argument) in call.arguments.iter().enumerate() {
            match argument {
                Argument::Position(Expression::Object { entries, is_dict: false }) => {
                    for entry in entries {
                        let Entry::Value(Key::Name(key), value) = entry else { return None };
                        let key = self.names.text(*key);
                        take(at, Some(&key), value);
                    }
                }
                Argument::Position(value) if self.program.is_python => {
                    take(at, None, value);
                }
                Argument::Keyword(key, value) => {
                    let key = self.names.text(*key);
                    take(at, Some(&key), value);
                }
                _ => return None,
            }
        }
        let Some(Expression::Text(tool)) = tool else { return None };
        let sent = sent.map(|sent| self.expression(frame, sent));
        let arguments = sent.map(|node| (ArgumentKind::KeywordSpread, node)).into_iter().collect();
        let state = self.call_state(frame, NOTHING, arguments, call.offset);
        self.call_tool(&state, Some(*tool));
        Some(state.result)
    }
}
