//! Calls as they stand in the text.

use super::{
    Solver,
    calls::{ArgumentKind, CallState},
    graph::{NOTHING, Node, ObjectKind, Use},
    ir::{Argument, Call, Entry, Expression, Key, name},
    places::TOOLS,
    statements::Frame,
};

impl Solver<'_> {
    /// Whether a call is one of a tool by its name.
    pub(super) fn is_tool_call(&self, call: &Call) -> bool {
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

    pub(super) fn call_state(
        &mut self,
        frame: &Frame,
        callee: Node,
        arguments: Vec<(ArgumentKind, Node)>,
        offset: u32,
    ) -> CallState {
        let condition = self.node();
        self.copy(frame.condition, condition);
        self.copy(frame.doubt, condition);
        CallState {
            arguments,
            this: None,
            member: name::NONE,
            callee,
            result: self.node(),
            thrown: frame.thrown,
            failing: self.node(),
            condition,
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

    pub(super) fn arguments_of(
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
        let (thrown, failing) = (self.sudden, self.ended);
        self.call(CallState { this: Some(this), result, thrown, failing, ..state });
    }

    pub(super) fn call_expression(
        &mut self,
        frame: &mut Frame,
        call: &Call,
        is_awaited: bool,
    ) -> Node {
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
                self.may_end(frame, *argument);
            }
        }
        let failing = state.failing;
        self.call(CallState { this: receiver, member, is_new, is_awaited, chosen, ..state });
        if !self.is_tool_call(call) {
            self.may_end(frame, failing);
            self.flow(failing, Use::Choose(frame.failing));
        }
        result
    }

    /// `call_tool` with the name of the tool in the script.
    pub(super) fn named_tool(&mut self, frame: &mut Frame, call: &Call) -> Option<Node> {
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
