//! A call's arguments against the tool's schema.

use super::{
    Language,
    finding::Report,
    literal::{Kind, Literal},
    lookup::{Budget, Tool},
    schema::{Checker, Place},
};

/// Reports what does not fit about the arguments, which are an object literal. `offset` is where
/// the tool's name is written.
pub(super) fn check(
    tool: &Tool,
    arguments: &Literal,
    offset: usize,
    language: Language,
    budget: &Budget,
    report: &mut Report<'_>,
) {
    if report.is_full() {
        return;
    }
    // What is missing is missing from the call, not from its bracket.
    let arguments = Literal { offset, kind: arguments.kind.clone() };
    let place = Place::root(&tool.name);
    for violation in Checker::new(&tool.schema, language, budget).check(&arguments, &place) {
        report.add(violation.severity, violation.offset, violation.message, violation.hint);
    }
}

/// The arguments of a call without any.
pub(super) fn none(offset: usize) -> Literal {
    Literal { offset, kind: Kind::Object { entries: Vec::new(), complete: true } }
}
