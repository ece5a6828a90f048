//! Places where tools are called, so that a call at run time says where in the script it was made.
//!
//! A call whose callee is the name of a tool gets another name for it, which nothing else in the
//! script has. Only this place can make a call under that name. Calls that are made in other ways
//! (through variables, other functions, or computed names) keep the name of the tool, and may have
//! been made anywhere.

use rustc_hash::FxHashSet;

use super::{
    Solver,
    ir::{Call, Expression, Key, Name},
    report::MAX_CALLS,
};

/// The object with all tools as its properties.
pub(super) const TOOLS: &str = "tools";

/// A place where the source to run calls a tool under a name that only this place uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// The name that the place uses.
    pub alias: String,
    /// The function that it calls.
    pub function: String,
}

/// A callee in the text, and the place that it becomes.
#[derive(Debug)]
pub(in crate::check) struct PlaceMark {
    pub(in crate::check) start: u32,
    pub(in crate::check) end: u32,
    pub(in crate::check) place: CallPlace,
}

/// The callee of a call that names a tool.
pub(super) struct DirectCall {
    name: Name,
    range: (u32, u32),
    is_property: bool,
}

impl PlaceMark {
    /// What stands in the place of the callee: as long as the callee, so that positions stay.
    pub(in crate::check) fn text(&self) -> String {
        let width = self.end.saturating_sub(self.start) as usize;
        format!("{:<width$}", self.place.alias)
    }

    /// The text with these marks, which are in the order of their positions.
    pub(in crate::check) fn apply(marks: &[Self], text: &str) -> Option<String> {
        if marks.is_empty() {
            return None;
        }
        let mut changed = String::with_capacity(text.len() + marks.len());
        let mut done = 0;
        for mark in marks {
            let (start, end) = (mark.start as usize, mark.end as usize);
            changed.push_str(text.get(done..start)?);
            changed.push_str(&mark.text());
            done = end;
        }
        changed.push_str(text.get(done..)?);
        Some(changed)
    }
}

impl Solver<'_> {
    /// Notes a call whose callee names a tool.
    pub(super) fn note_direct(&mut self, call: &Call) {
        let (Some(range), false) = (call.name_range, call.is_new) else { return };
        let (name, is_property) = match &call.callee {
            Expression::Free(name) => (*name, false),
            Expression::Member(object, Key::Name(name)) => match &**object {
                Expression::Free(object) if &*self.names.text(*object) == TOOLS => (*name, true),
                _ => return,
            },
            _ => return,
        };
        let is_tool = self.tools.tool(&self.names.text(name)).is_some();
        if is_tool && !(is_property && self.program.is_python) {
            self.direct.insert(call.offset, DirectCall { name, range, is_property });
        }
    }

    /// The places that get names, by the positions of their calls.
    pub(super) fn marks(&self) -> Vec<(u32, PlaceMark)> {
        let own: FxHashSet<Name> = self.program.variables.iter().map(|it| it.name).collect();
        let is_tools = |name: &Name| &*self.names.text(*name) == TOOLS;
        let is_changed = self.overwritten.iter().any(is_tools);
        // The name must mean the tool wherever the script uses it.
        let is_certain = |call: &DirectCall| {
            let is_known = !own.contains(&call.name) && !self.overwritten.contains(&call.name);
            is_known && (!call.is_property || !is_changed)
        };
        let mut direct: Vec<_> = self.direct.iter().filter(|(_, call)| is_certain(call)).collect();
        direct.sort_unstable_by_key(|(offset, _)| **offset);
        let mut free = (0..)
            .map(|number: u32| format!("_{number}"))
            .filter(|alias| !self.names.contains(alias) && self.tools.get(alias).is_none())
            .peekable();
        let mut marks = Vec::with_capacity(direct.len());
        for (offset, call) in direct.into_iter().take(MAX_CALLS) {
            let width = call.range.1.saturating_sub(call.range.0) as usize;
            // One that is longer would move what follows it.
            let Some(alias) = free.next_if(|alias| alias.len() <= width) else { continue };
            let function = self.names.text(call.name).to_string();
            let (start, end) = call.range;
            let place = CallPlace { alias, function };
            marks.push((*offset, PlaceMark { start, end, place }));
        }
        marks
    }
}
