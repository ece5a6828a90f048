//! Calls, and what is called by them.

use super::{
    Solver,
    graph::{CallId, NOTHING, Node, ObjectId, ObjectKind, Use, Value},
    ir::{Name, index, name},
};

/// The number of functions of the engine that may call each other.
const MAX_CALLBACKS: u32 = 6;

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
    /// The data that decides whether the call throws.
    pub(super) failing: Node,
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
            // At any place: what throws there ends everything that follows.
            failing: self.ended,
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
}
