//! Calls: of functions and classes of the script, and of tools.

use rustc_hash::FxHashMap;

use super::{
    Site, Solver,
    graph::{CallId, NOTHING, Node, ObjectId, ObjectKind, SiteId, Use, Value},
    ir::{Binding, FunctionId, Name, index, name},
};
use crate::check::lookup::takes_positions;

/// The depth of calls that are told apart. Below it, all calls of a function are one.
const MAX_DEPTH: u32 = 8;
/// The number of functions of the engine that may call each other.
const MAX_CALLBACKS: u32 = 6;
/// Functions of the gateway that scripts can call. Their results depend on their arguments.
const OWN_FUNCTIONS: &[&str] = &[
    "search_tools",
    "get_tool_details",
    "extract",
    "search_available_servers",
    "connect_server",
    "read_output",
];
/// The largest number of functions with their contexts.
const MAX_INSTANCES: usize = 4_000;

/// A call in some context.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about the call")]
pub(super) struct CallState {
    pub(super) arguments: Vec<(ArgumentKind, Node)>,
    pub(super) this: Option<Node>,
    /// The name of the method, if it is one.
    pub(super) member: Name,
    pub(super) callee: Node,
    pub(super) result: Node,
    pub(super) thrown: Node,
    /// The data that decides whether the call is made.
    pub(super) condition: Node,
    /// The data that chose the function, or the object whose method it is.
    pub(super) chosen: Node,
    pub(super) offset: u32,
    pub(super) instance: u32,
    pub(super) is_new: bool,
    pub(super) is_awaited: bool,
    /// The object that the constructor of a base class gets.
    pub(super) constructs: Option<Node>,
    /// How many functions of the engine call each other for this call.
    pub(super) depth: u32,
    /// Whether the call was treated as one of the engine's own functions.
    pub(super) is_modelled: bool,
    /// Whether the engine may make the call at any time, of functions of the script.
    pub(super) is_sudden: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    Position,
    Spread,
    Keyword(Name),
    KeywordSpread,
}

/// A function in a context: the call that it was called by.
pub(super) struct Instance {
    pub(super) function: FunctionId,
    /// The instance in which the function was created.
    pub(super) lexical: Option<u32>,
    caller: Option<u32>,
    depth: u32,
    positions: Vec<Node>,
    spread: Node,
    keywords: FxHashMap<Name, Node>,
    keyword_spread: Node,
    rest: Option<(usize, ObjectId)>,
    keyword_rest: Option<ObjectId>,
    pub(super) this: Node,
    pub(super) result: Node,
    pub(super) thrown: Node,
    pub(super) condition: Node,
    pub(super) variables: FxHashMap<u32, Node>,
}

/// A class in a context.
pub(super) struct ClassState {
    /// The object that instances inherit from.
    pub(super) prototype: Node,
    pub(super) constructor: Option<FunctionId>,
    pub(super) environment: u32,
    pub(super) instances: Node,
    pub(super) bases: Vec<Node>,
    /// Whether a base class of the engine calls its methods.
    pub(super) is_called: bool,
    pub(super) fields: Vec<Name>,
    /// The functions that make the fields of each new object.
    pub(super) initialisers: Vec<(Name, Node)>,
}

impl Solver<'_> {
    /// Adds a call, whose callee is looked at when it is known.
    pub(super) fn call(&mut self, state: CallState) -> CallId {
        let callee = state.callee;
        let receiver = state.this.filter(|_| state.member != name::NONE);
        self.calls.push(state);
        let call = index(self.calls.len() - 1);
        self.flow(callee, Use::Call(call));
        if let Some(receiver) = receiver {
            self.flow(receiver, Use::Method(call));
        }
        call
    }

    /// Calls the functions in a node on behalf of a function of the engine.
    pub(super) fn call_back(&mut self, by: CallId, callee: Node, arguments: &[Node], result: Node) {
        self.call_back_on(by, callee, None, arguments, result);
    }

    /// The same, with what `this` is.
    pub(super) fn call_back_on(
        &mut self,
        by: CallId,
        callee: Node,
        this: Option<Node>,
        arguments: &[Node],
        result: Node,
    ) {
        let Some(by) = self.calls.get(by as usize).cloned() else { return };
        if by.depth >= MAX_CALLBACKS {
            self.graph.is_lost = true;
            return;
        }
        let arguments = arguments.iter().map(|node| (ArgumentKind::Position, *node)).collect();
        // What the function of the engine is given says how often it calls.
        let (condition, chosen) = (self.node(), self.node());
        self.copy(by.condition, condition);
        self.flow(callee, Use::Labels(chosen));
        if !matches!(&*self.names.text(by.member), "then" | "finally") {
            for node in by.arguments.iter().map(|(_, node)| *node).chain(by.this) {
                self.flow(node, Use::Choose(condition));
            }
        }
        // A list may call the function later, when something takes its elements.
        let thrown = self.node();
        self.copy(thrown, by.thrown);
        if self.program.is_python {
            self.copy(thrown, self.sudden);
        }
        let state = CallState {
            arguments,
            callee,
            result,
            thrown,
            condition,
            chosen,
            this,
            member: name::NONE,
            is_new: false,
            is_awaited: false,
            constructs: None,
            is_modelled: true,
            is_sudden: false,
            depth: by.depth + 1,
            ..by
        };
        self.call(state);
    }

    /// Calls the functions in a node at a time that is not known.
    pub(super) fn call_suddenly(
        &mut self,
        callee: Node,
        arguments: &[Node],
        result: Node,
        this: Option<Node>,
    ) {
        let arguments = arguments.iter().map(|node| (ArgumentKind::Position, *node)).collect();
        self.call(CallState {
            arguments,
            this,
            member: name::NONE,
            callee,
            result,
            thrown: self.sudden,
            condition: NOTHING,
            chosen: NOTHING,
            offset: 0,
            instance: 0,
            is_new: false,
            is_awaited: false,
            constructs: None,
            depth: 1,
            is_modelled: true,
            is_sudden: true,
        });
    }

    /// A function was put into an object of the engine, which may call it.
    pub(super) fn call_stored(&mut self, object: ObjectId, from: Node) {
        if !self.stored.insert((object, from)) {
            return;
        }
        let any = self.field(object, name::ANY);
        let this = self.node();
        self.add(this, Value::Object(object), this);
        self.call_suddenly(from, &[any, any, any], any, Some(this));
    }

    /// A call of something that is data: a function that was chosen by it, or a method of a text.
    pub(super) fn call_data(&mut self, call: CallId, value: Value) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        if matches!(state.member, name::NONE | name::ANY) {
            self.add(state.result, value, state.callee);
            for (_, argument) in &state.arguments {
                self.deep(*argument, state.result);
            }
        }
    }

    pub(super) fn call_object(&mut self, call: CallId, object: ObjectId) {
        let Some(state) = self.calls.get(call as usize).cloned() else { return };
        if !self.done.insert((call, object)) {
            return;
        }
        match self.kind(object) {
            ObjectKind::Function { function, environment } => {
                let mut this = state.constructs.or(state.this);
                if state.is_new && state.constructs.is_none() {
                    let (node, made) = self.holding(ObjectKind::Instance);
                    let prototype = self.field(object, name::PROTOTYPE);
                    self.set_parents(made, vec![prototype]);
                    self.copy(node, state.result);
                    this = Some(node);
                }
                self.invoke(&state, call, (function, environment), this, &[]);
            }
            ObjectKind::Bound { function: inner, this } => {
                let extra = self.bound.get(&object).cloned().unwrap_or_default();
                match self.kind(inner) {
                    ObjectKind::Function { function, environment } if self.program.is_python => {
                        let extra: Vec<Node> = std::iter::once(this).chain(extra).collect();
                        self.invoke(&state, call, (function, environment), None, &extra);
                    }
                    ObjectKind::Function { function, environment } => {
                        self.invoke(&state, call, (function, environment), Some(this), &extra);
                    }
                    // A bound tool or class.
                    _ => {
                        let callee = self.node();
                        self.add(callee, Value::Object(inner), callee);
                        let before = extra.iter().map(|node| (ArgumentKind::Position, *node));
                        let arguments = before.chain(state.arguments.clone()).collect();
                        self.call(CallState { arguments, callee, member: name::NONE, ..state });
                    }
                }
            }
            ObjectKind::Class(class) => self.construct(&state, call, class),
            ObjectKind::Tool(tool) => self.call_tool(&state, Some(tool)),
            ObjectKind::AnyTool => self.call_tool(&state, None),
            ObjectKind::Builtin(path) => self.call_builtin(call, path),
            ObjectKind::Collector(into) => {
                for (_, argument) in &state.arguments {
                    self.copy(*argument, into);
                    self.flow(*argument, Use::LoadAny(into));
                }
                self.copy(state.condition, into);
                self.copy(into, state.result);
            }
            ObjectKind::Opaque | ObjectKind::Result(_) if state.is_sudden => {}
            ObjectKind::Opaque | ObjectKind::Result(_) => {
                // A method of it is looked at as such.
                if state.member != name::NONE
                    && state.this.is_some_and(|this| self.holds(this, Value::Object(object)))
                {
                    return;
                }
                let own = self.node();
                self.add(own, Value::Object(object), own);
                if matches!(self.kind(object), ObjectKind::Result(_)) {
                    self.copy(own, state.result);
                    self.deep(own, state.result);
                    for (_, argument) in &state.arguments {
                        self.copy(*argument, state.result);
                        self.deep(*argument, state.result);
                    }
                    return;
                }
                let any = self.field(object, name::ANY);
                for (_, argument) in &state.arguments {
                    self.copy(*argument, any);
                    self.flow(*argument, Use::Store(name::ANY, any));
                    // It may be a method of what it holds.
                    self.flow(any, Use::Store(name::ANY, *argument));
                }
                self.copy(own, state.result);
                // It may be a function of the script, with something around it.
                let inner = CallState { callee: any, member: name::NONE, ..state };
                if inner.depth < 2 {
                    let depth = inner.depth + 1;
                    self.call(CallState { depth, is_modelled: true, ..inner });
                }
            }
            ObjectKind::Method { receiver, name } => self.call_loaded(&state, receiver, name),
            ObjectKind::Partial(of) => self.call_partial(&state, of),
            ObjectKind::Plain
            | ObjectKind::Array
            | ObjectKind::Dict
            | ObjectKind::Map
            | ObjectKind::Instance
            | ObjectKind::Tools
            | ObjectKind::Sent(_) => {}
        }
    }

    /// Calls what `functools.partial` made: its arguments come before those of the call.
    fn call_partial(&mut self, state: &CallState, of: CallId) {
        let Some(made) = self.calls.get(of as usize).cloned() else { return };
        if state.depth >= MAX_CALLBACKS {
            self.graph.is_lost = true;
            return;
        }
        let mut given = made.arguments.into_iter();
        let Some((_, callee)) = given.next() else { return };
        self.call(CallState {
            arguments: given.chain(state.arguments.clone()).collect(),
            callee,
            this: None,
            member: name::NONE,
            is_modelled: true,
            depth: state.depth + 1,
            ..state.clone()
        });
    }

    /// Calls a method of a collection that was loaded before, or that has another `this`.
    fn call_loaded(&mut self, state: &CallState, receiver: ObjectId, method: Name) {
        let is_own = |this: Node| self.holds(this, Value::Object(receiver));
        if state.member == method && state.this.is_some_and(is_own) {
            return;
        }
        if state.depth >= MAX_CALLBACKS {
            self.graph.is_lost = true;
            return;
        }
        let own = self.node();
        self.add(own, Value::Object(receiver), own);
        let text = self.names.text(method);
        for this in std::iter::once(own).chain(state.this) {
            self.calls.push(CallState {
                this: Some(this),
                member: method,
                is_modelled: false,
                depth: state.depth + 1,
                ..state.clone()
            });
            let call = index(self.calls.len() - 1);
            self.model_method(call, this, &text);
        }
    }

    /// Connects a call with a function of the script. Returns the node of its `this`.
    pub(super) fn invoke(
        &mut self,
        state: &CallState,
        call: CallId,
        (function, environment): (FunctionId, u32),
        this: Option<Node>,
        extra: &[Node],
    ) -> Option<Node> {
        let at = self.instance_of(function, environment, state.instance, call)?;
        let mut position = 0;
        for node in extra {
            let parameter = self.position(at, position);
            self.copy(*node, parameter);
            position += 1;
        }
        for (kind, node) in &state.arguments {
            match kind {
                ArgumentKind::Position => {
                    let parameter = self.position(at, position);
                    self.copy(*node, parameter);
                    position += 1;
                }
                ArgumentKind::Spread => {
                    let spread = self.instances[at as usize].spread;
                    self.flow(*node, Use::Items(spread));
                }
                ArgumentKind::Keyword(name) => {
                    let parameter = self.keyword(at, *name);
                    self.copy(*node, parameter);
                }
                ArgumentKind::KeywordSpread => {
                    let spread = self.instances[at as usize].keyword_spread;
                    self.copy(*node, spread);
                }
            }
        }
        let Instance { this: own, result, thrown, condition, .. } = self.instances[at as usize];
        if let Some(this) = this {
            self.copy(this, own);
        }
        self.copy(result, state.result);
        self.copy(thrown, state.thrown);
        self.copy(state.condition, condition);
        self.copy(state.chosen, condition);
        let body = self.program.functions.get(function as usize)?;
        if body.is_async && !state.is_awaited {
            self.copy(thrown, self.rejected);
        }
        // It runs when something takes its elements.
        if body.is_generator {
            self.copy(thrown, self.sudden);
        }
        Some(own)
    }

    /// The function in the context of a call. A recursive call has the context of the first.
    fn instance_of(
        &mut self,
        function: FunctionId,
        environment: u32,
        caller: u32,
        call: CallId,
    ) -> Option<u32> {
        let mut around = Some(caller);
        while let Some(at) = around {
            let instance = self.instances.get(at as usize)?;
            if instance.function == function && instance.lexical == Some(environment) {
                return Some(at);
            }
            around = instance.caller;
        }
        let depth = self.instances.get(caller as usize)?.depth + 1;
        let context = if depth > MAX_DEPTH { CallId::MAX } else { call };
        let key = (function, environment, context);
        if let Some(known) = self.contexts.get(&key) {
            return Some(*known);
        }
        if self.instances.len() >= MAX_INSTANCES {
            self.graph.is_lost = true;
            return None;
        }
        let at = self.instance(function, Some(environment), Some(caller), depth);
        self.contexts.insert(key, at);
        self.pending.push(at);
        Some(at)
    }

    pub(super) fn instance(
        &mut self,
        function: FunctionId,
        lexical: Option<u32>,
        caller: Option<u32>,
        depth: u32,
    ) -> u32 {
        let instance = Instance {
            function,
            lexical,
            caller,
            depth,
            positions: Vec::new(),
            spread: self.node(),
            keywords: FxHashMap::default(),
            keyword_spread: self.node(),
            rest: None,
            keyword_rest: None,
            this: self.node(),
            result: self.node(),
            thrown: self.node(),
            condition: self.node(),
            variables: FxHashMap::default(),
        };
        self.instances.push(instance);
        index(self.instances.len() - 1)
    }

    /// The node of a positional parameter.
    pub(super) fn position(&mut self, at: u32, position: usize) -> Node {
        while self.instances[at as usize].positions.len() <= position {
            let node = self.node();
            let instance = &mut self.instances[at as usize];
            instance.positions.push(node);
            let (reached, spread) = (instance.positions.len() - 1, instance.spread);
            if let Some((start, rest)) = instance.rest
                && reached >= start
            {
                let place = self.indexed(rest, reached - start);
                self.copy(node, place);
            }
            self.copy(spread, node);
        }
        self.instances[at as usize].positions[position]
    }

    pub(super) fn keyword(&mut self, at: u32, name: Name) -> Node {
        if let Some(node) = self.instances[at as usize].keywords.get(&name) {
            return *node;
        }
        let node = self.node();
        let instance = &mut self.instances[at as usize];
        instance.keywords.insert(name, node);
        let (spread, rest) = (instance.keyword_spread, instance.keyword_rest);
        self.flow(spread, Use::Load(name, node));
        if let Some(rest) = rest {
            let place = self.field(rest, name);
            self.copy(node, place);
        }
        node
    }

    /// The list of the arguments from a position on.
    pub(super) fn rest(&mut self, at: u32, start: usize) -> Node {
        let (node, list) = self.holding(ObjectKind::Array);
        let instance = &mut self.instances[at as usize];
        instance.rest = Some((start, list));
        let (spread, given) = (instance.spread, instance.positions.clone());
        let any = self.field(list, name::ANY);
        self.copy(spread, any);
        for (position, from) in given.into_iter().enumerate().skip(start) {
            let place = self.indexed(list, position - start);
            self.copy(from, place);
        }
        node
    }

    /// The dictionary of the arguments that are passed by name.
    pub(super) fn keyword_rest(&mut self, at: u32) -> Node {
        let (node, dict) = self.holding(ObjectKind::Dict);
        let instance = &mut self.instances[at as usize];
        instance.keyword_rest = Some(dict);
        let (spread, given) = (instance.keyword_spread, instance.keywords.clone());
        self.flow(spread, Use::Spread(dict));
        for (name, from) in given {
            let place = self.field(dict, name);
            self.copy(from, place);
        }
        node
    }

    /// The field of an element at a fixed position. Positions that are far behind are one field.
    pub(super) fn indexed(&mut self, object: ObjectId, at: usize) -> Node {
        let name = self.index_name(at);
        self.field(object, name)
    }

    pub(super) fn set_parents(&mut self, object: ObjectId, parents: Vec<Node>) {
        if let Some(object) = self.graph.objects.get_mut(object as usize) {
            object.parents = parents;
        }
    }

    fn construct(&mut self, state: &CallState, call: CallId, class: u32) {
        let Some(known) = self.classes.get(class as usize) else { return };
        let (prototype, instances) = (known.prototype, known.instances);
        let this = if let Some(this) = state.constructs {
            this
        } else {
            let (node, made) = self.holding(ObjectKind::Instance);
            self.set_parents(made, vec![prototype]);
            self.copy(node, state.result);
            node
        };
        self.copy(this, instances);
        for (field, callee) in self.classes[class as usize].initialisers.clone() {
            let value = self.node();
            self.call(CallState {
                arguments: Vec::new(),
                this: Some(this),
                member: name::NONE,
                callee,
                result: value,
                thrown: self.sudden,
                is_new: false,
                is_awaited: false,
                constructs: None,
                is_modelled: true,
                ..state.clone()
            });
            self.flow(this, Use::Store(field, value));
        }
        let ClassState { constructor, environment, .. } = self.classes[class as usize];
        if let Some(constructor) = constructor {
            let function = (constructor, environment);
            let inner = CallState { result: self.node(), ..state.clone() };
            if self.program.is_python {
                self.invoke(&inner, call, function, None, &[this]);
            } else {
                let own = self.invoke(&inner, call, function, Some(this), &[]);
                // It may return another object, or its base class.
                for made in [Some(inner.result), own].into_iter().flatten() {
                    self.copy(made, state.result);
                    self.copy(made, this);
                }
            }
            return;
        }
        if self.program.is_python {
            let fields = self.classes[class as usize].fields.clone();
            let mut fields = fields.into_iter();
            for (kind, node) in &state.arguments {
                let field = match kind {
                    ArgumentKind::Position => fields.next().unwrap_or(name::ANY),
                    ArgumentKind::Keyword(name) => *name,
                    ArgumentKind::Spread | ArgumentKind::KeywordSpread => name::ANY,
                };
                self.flow(this, Use::Store(field, *node));
            }
        }
        self.construct_bases(state, class, this);
    }

    /// Calls the constructors of the base classes for an object.
    pub(super) fn construct_bases(&mut self, state: &CallState, class: u32, this: Node) {
        for base in self.classes[class as usize].bases.clone() {
            let result = self.node();
            let (member, constructs) = (name::NONE, Some(this));
            self.call(CallState { callee: base, result, member, constructs, ..state.clone() });
            if !self.program.is_python {
                self.copy(result, this);
            }
        }
    }

    /// Binds a function that was loaded from a parent of an object.
    pub(super) fn bind(&mut self, node: Node, value: ObjectId, to: Node, receiver: ObjectId) {
        let binding = match self.kind(value) {
            ObjectKind::Function { function, .. } if self.program.is_python => {
                self.program.functions.get(function as usize).map_or(Binding::None, |f| f.binding)
            }
            _ => Binding::None,
        };
        let is_class = matches!(self.kind(receiver), ObjectKind::Class(_));
        // A method that is loaded from its class gets its object as an argument.
        if binding == Binding::None || binding == Binding::Instance && is_class {
            self.add(to, Value::Object(value), node);
            return;
        }
        let bound = if let Some(bound) = self.methods.get(&(value, receiver)) {
            *bound
        } else {
            let this = self.node();
            self.add(this, Value::Object(receiver), this);
            if binding == Binding::Class && !is_class {
                for parent in self.parents(receiver) {
                    self.copy(parent, this);
                }
            }
            let bound = self.object(ObjectKind::Bound { function: value, this });
            self.methods.insert((value, receiver), bound);
            bound
        };
        self.add(to, Value::Object(bound), node);
    }

    /// A call of a tool: its arguments are sent, and its result is data.
    pub(super) fn call_tool(&mut self, state: &CallState, tool: Option<Name>) {
        let text = tool.map(|tool| self.names.text(tool));
        if text.as_deref() == Some("call_tool") {
            let at = usize::from(self.program.is_python);
            let named = self.names.intern("name");
            let mut arguments = Vec::new();
            let condition = self.node();
            self.copy(state.condition, condition);
            for (position, (kind, node)) in state.arguments.iter().enumerate() {
                match kind {
                    ArgumentKind::Keyword(name::ARGUMENTS) => arguments.push(*node),
                    ArgumentKind::Position if self.program.is_python && position == at => {
                        arguments.push(*node);
                    }
                    // The name: the error contains it, and it decides which tool is called.
                    ArgumentKind::Keyword(_) | ArgumentKind::Position if self.program.is_python => {
                        self.deep(*node, state.thrown);
                        self.flow(*node, Use::Choose(condition));
                    }
                    _ => {
                        let inner = self.node();
                        self.flow(*node, Use::Load(name::ARGUMENTS, inner));
                        self.flow(*node, Use::Load(named, inner));
                        arguments.push(inner);
                        // Something may be called when it becomes a text.
                        let all = self.node();
                        self.deep(*node, all);
                        arguments.push(all);
                    }
                }
            }
            let arguments =
                arguments.into_iter().map(|node| (ArgumentKind::KeywordSpread, node)).collect();
            let state = CallState { arguments, condition, ..state.clone() };
            return self.call_tool(&state, None);
        }
        let site = self.site(state.offset, tool);
        let sent = self.sites[site as usize].sent;
        let parameters = text.as_deref().and_then(|text| Some(&self.tools.tool(text)?.parameters));
        let is_positional = self.program.is_python || text.as_deref().is_some_and(takes_positions);
        let mut position = 0;
        for (kind, node) in &state.arguments {
            match kind {
                ArgumentKind::Position if is_positional => {
                    let field = parameters.and_then(|all| all.get(position));
                    let field = field.map_or(name::ANY, |field| self.names.intern(field));
                    let place = self.field(sent, field);
                    self.copy(*node, place);
                    position += 1;
                }
                ArgumentKind::Keyword(name) => {
                    let place = self.field(sent, *name);
                    self.copy(*node, place);
                }
                ArgumentKind::Spread => {
                    let any = self.field(sent, name::ANY);
                    self.flow(*node, Use::LoadAny(any));
                }
                ArgumentKind::KeywordSpread => self.flow(*node, Use::Spread(sent)),
                // A tool takes one object and does not look at what comes after it.
                ArgumentKind::Position => {
                    if position == 0 {
                        self.flow(*node, Use::Spread(sent));
                    }
                    position += 1;
                }
            }
        }
        let branch = self.field(sent, name::BRANCH);
        // It decides that the call is made, and is not sent.
        self.flow(state.condition, Use::Choose(branch));
        self.flow(state.chosen, Use::Choose(branch));
        self.copy(self.ended, branch);
        let result = self.object(ObjectKind::Result(site));
        self.add(state.result, Value::Object(result), state.result);
        self.add(state.thrown, Value::Data(site), state.thrown);
        // A function of the gateway answers with what it was asked, and has no labels of its own.
        let text = tool.map(|tool| self.names.text(tool));
        if text.is_none_or(|text| OWN_FUNCTIONS.contains(&&*text)) {
            let (asked, place) = (self.taint(sent), self.field(result, name::ANY));
            self.copy(asked, place);
        }
        // The error of a call that was refused contains its arguments.
        let asked = self.taint(sent);
        self.copy(asked, state.thrown);
    }

    fn site(&mut self, offset: u32, tool: Option<Name>) -> SiteId {
        if let Some(site) = self.site_ids.get(&(offset, tool)) {
            return *site;
        }
        let site = index(self.sites.len());
        let sent = self.object(ObjectKind::Sent(site));
        self.sites.push(Site { tool, offset, sent });
        self.site_ids.insert((offset, tool), site);
        site
    }
}
