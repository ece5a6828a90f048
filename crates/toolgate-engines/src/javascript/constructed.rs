//! Where an error was made.
//!
//! For `new` QuickJS notes no position of its own: an error that is made by `new Error(…)` has the last
//! position in its arguments, which may be lines later. The text shows to which `new` it belongs.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ClassBody, Expression, FunctionBody, NewExpression};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};

use super::marks;
use crate::engine::{ScriptPosition, StackFrame};

/// Moves the frames that are in the arguments of a `new` to the name behind it.
pub(super) fn place(source: &str, message: &str, stack: &mut [StackFrame]) {
    if !source.contains("new") {
        return;
    }
    let allocator = Allocator::default();
    let parsed = marks::parse(&allocator, source);
    let class = message.split(':').next().unwrap_or_default();
    let mut called = String::new();
    for (number, frame) in stack.iter_mut().enumerate() {
        let made = offset_of(source, frame.position).and_then(|at| {
            let mut enclosing = Enclosing { at, found: None };
            enclosing.visit_program(&parsed.program);
            enclosing.found
        });
        if let Some((name, start)) = made {
            // Any other error was raised by an argument.
            let is_made_here = if number == 0 {
                name == class || (class == "Error" && name.ends_with("Error"))
            } else {
                name == called
            };
            if is_made_here {
                frame.position = marks::position_of(source, start).unwrap_or(frame.position);
            }
        }
        called.clone_from(&frame.function);
    }
}

/// Looks for the innermost `new` around an offset, in the same function.
struct Enclosing {
    at: u32,
    /// The name behind it, and where that begins.
    found: Option<(String, u32)>,
}

impl Enclosing {
    fn is_in(&self, span: Span) -> bool {
        span.start <= self.at && self.at < span.end
    }
}

impl<'a> Visit<'a> for Enclosing {
    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        if self.is_in(it.span) {
            let name = match &it.callee {
                Expression::Identifier(name) => Some(name.name.as_str()),
                Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
                _ => None,
            };
            self.found = name.map(|name| (name.to_owned(), it.callee.span().start));
        }
        walk::walk_new_expression(self, it);
    }

    fn visit_function_body(&mut self, it: &FunctionBody<'a>) {
        if self.is_in(it.span) {
            self.found = None;
        }
        walk::walk_function_body(self, it);
    }

    fn visit_class_body(&mut self, it: &ClassBody<'a>) {
        if self.is_in(it.span) {
            self.found = None;
        }
        walk::walk_class_body(self, it);
    }
}

fn offset_of(source: &str, position: ScriptPosition) -> Option<u32> {
    let line = usize::try_from(position.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(position.column).ok()?.checked_sub(1)?;
    let before: usize = source.split('\n').take(line).map(|line| line.len() + 1).sum();
    let in_line = source.split('\n').nth(line)?.char_indices().nth(column)?.0;
    u32::try_from(before + in_line).ok()
}
