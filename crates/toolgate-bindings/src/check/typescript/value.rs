//! A last line whose value nobody gets.

use oxc_ast::{
    AstKind,
    ast::{Expression, Program, Statement},
};
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;

use super::Script;
use crate::check::{CheckSeverity, finding::Report};

/// What is said of such a line.
pub(in crate::check) const NOT_RETURNED: &str = "this value is not returned";

/// Warns where a script hands nothing over and ends with an expression, as in a console that would
/// show it. A script that cannot run has other worries.
pub(super) fn check(program: &Program<'_>, script: &Script<'_, '_>, report: &mut Report<'_>) {
    let Some(Statement::ExpressionStatement(last)) = program.body.last() else { return };
    if report.has_errors() || !is_value(&last.expression) || hands_over(script) {
        return;
    }
    let hint = "a script's value is what it returns: write `return …`".to_owned();
    let offset = last.span.start as usize;
    report.add(CheckSeverity::Warning, offset, NOT_RETURNED.to_owned(), Some(hint));
}

/// Whether an expression may be there for its value.
fn is_value(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::AssignmentExpression(_) | Expression::UpdateExpression(_) => false,
        Expression::UnaryExpression(unary) => {
            !matches!(unary.operator, UnaryOperator::Void | UnaryOperator::Delete)
        }
        Expression::CallExpression(call) => match call.callee.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                !matches!(member.property.name.as_str(), "forEach" | "push")
            }
            Expression::Identifier(name) => {
                !matches!(name.name.as_str(), "setTimeout" | "setInterval" | "queueMicrotask")
            }
            _ => true,
        },
        _ => true,
    }
}

/// Whether a script returns, prints or emits something, or ends itself.
fn hands_over(script: &Script<'_, '_>) -> bool {
    let speaks =
        script.references.iter().any(|(name, _)| matches!(*name, "console" | "emit" | "process"));
    let nodes = script.semantic.nodes();
    let mut functions: Vec<_> = nodes
        .iter()
        .filter(|node| {
            matches!(node.kind(), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
        })
        .map(|node| node.kind().span())
        .collect();
    functions.sort_by_key(|span| span.start);
    // Those within others add nothing.
    let mut outermost: Vec<oxc_span::Span> = Vec::new();
    for span in functions {
        if outermost.last().is_none_or(|last| last.end <= span.start) {
            outermost.push(span);
        }
    }
    let is_outside = |start: u32| {
        let before = outermost.partition_point(|span| span.start <= start);
        before.checked_sub(1).is_none_or(|index| outermost[index].end <= start)
    };
    speaks
        || nodes.iter().any(|node| {
            matches!(node.kind(), AstKind::ReturnStatement(found) if is_outside(found.span.start))
        })
}
