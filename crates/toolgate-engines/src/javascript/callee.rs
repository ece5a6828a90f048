//! What a call calls: where that is in the text, and how it is named in a message.

use oxc_allocator::Allocator;
use oxc_ast::ast::{CallExpression, Expression, NewExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

use super::marks;
use crate::engine::ScriptPosition;

/// The longest text of a callee in a message.
const LONGEST_TEXT: usize = 200;

/// The offset that stands for a call: that of the name that is called.
pub(super) fn called_at(callee: &Expression<'_>) -> u32 {
    match callee {
        Expression::StaticMemberExpression(member) => member.property.span.start,
        Expression::PrivateFieldExpression(member) => member.field.span.start,
        Expression::ParenthesizedExpression(inner) => called_at(&inner.expression),
        callee => callee.span().start,
    }
}

/// The text of what the call at a position calls: `a.b`.
pub(super) fn text_at(source: &str, position: ScriptPosition) -> Option<&str> {
    let allocator = Allocator::default();
    let parsed = marks::parse(&allocator, source);
    let mut calls = Calls { at: offset_of(source, position)?, found: None };
    calls.visit_program(&parsed.program);
    let (whole, name) = calls.found?;
    let is_short = |text: &&str| text.len() <= LONGEST_TEXT && !text.contains('\n');
    let whole = whole.and_then(|span| text_of(source, span)).filter(is_short);
    whole.or_else(|| text_of(source, name?).filter(is_short))
}

fn text_of(source: &str, span: Span) -> Option<&str> {
    source.get(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)
}

/// The span of a callee if it consists of names, and that of the last one.
type Names = (Option<Span>, Option<Span>);

/// The calls of a script.
struct Calls {
    /// The offset of the wanted call.
    at: u32,
    found: Option<Names>,
}

impl Calls {
    fn see(&mut self, callee: &Expression<'_>, at: u32) {
        if at == self.at && self.found.is_none() {
            self.found = named(callee);
        }
    }
}

fn named(callee: &Expression<'_>) -> Option<Names> {
    match callee {
        Expression::Identifier(name) => Some((Some(name.span), None)),
        Expression::StaticMemberExpression(member) => {
            let whole = is_chain(&member.object).then_some(member.span);
            Some((whole, Some(member.property.span)))
        }
        Expression::ComputedMemberExpression(member) if is_chain(&member.object) => {
            Some((Some(member.span), None))
        }
        _ => None,
    }
}

fn is_chain(object: &Expression<'_>) -> bool {
    match object {
        Expression::Identifier(_) | Expression::ThisExpression(_) => true,
        Expression::StaticMemberExpression(member) => is_chain(&member.object),
        Expression::ComputedMemberExpression(member) => is_chain(&member.object),
        _ => false,
    }
}

impl<'a> Visit<'a> for Calls {
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.see(&it.callee, called_at(&it.callee));
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.see(&it.callee, it.span.start);
        walk::walk_new_expression(self, it);
    }
}

fn offset_of(source: &str, position: ScriptPosition) -> Option<u32> {
    let line = usize::try_from(position.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(position.column).ok()?.checked_sub(1)?;
    let before: usize = source.split('\n').take(line).map(|line| line.len() + 1).sum();
    let in_line = source.split('\n').nth(line)?.char_indices().nth(column)?.0;
    u32::try_from(before + in_line).ok()
}
