//! Objects that only one variable knows, so that a write replaces what was there.

use super::{
    Solver,
    graph::{Node, ObjectKind, Use},
    ir::{Argument, Call, Entry, Expression, Key, Name, Target},
    statements::Frame,
};

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
    /// Sets a field of an object that only this variable knows, so that its old value is gone.
    pub(super) fn replace_field(
        &mut self,
        frame: &mut Frame,
        target: &Target,
        value: Node,
    ) -> bool {
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
    pub(super) fn remove_field(&mut self, frame: &mut Frame, variable: u32, field: Name) {
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
    pub(super) fn pop_fresh(&mut self, frame: &mut Frame, call: &Call) -> Option<Node> {
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
    pub(super) fn append_fresh(&mut self, frame: &mut Frame, call: &Call) -> bool {
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
}
