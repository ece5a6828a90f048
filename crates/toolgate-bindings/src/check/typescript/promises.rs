//! Promises of tool calls that nobody waits for.

use std::collections::HashSet;

use oxc_ast::{
    AstKind,
    ast::{
        AssignmentExpression, AssignmentTarget, BindingPattern, CallExpression, Expression,
        LogicalOperator, VariableDeclarator,
    },
};
use oxc_semantic::{NodeId, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{AssignmentOperator, BinaryOperator, UnaryOperator};

use super::{Call, Script, calls::is_free};
use crate::check::{finding::Report, words::cut};

/// Reports calls of tools whose promise is dropped, or taken for its value.
pub(super) fn check(own: &[&Call<'_, '_>], script: &Script<'_, '_>, report: &mut Report<'_>) {
    let calls: HashSet<NodeId> = own.iter().map(|call| call.node).collect();
    let mut in_order: Vec<&Call<'_, '_>> = own.to_vec();
    in_order.sort_by_key(|call| call.callee.offset);
    for call in own {
        let promise = Promise {
            node: call.node,
            name: cut(&call.callee.name),
            offset: call.callee.offset,
            text: format!("{}(…)", cut(&call.callee.name)),
        };
        promise.check(script, &calls, report);
    }
    for node in script.semantic.nodes().iter() {
        let AstKind::CallExpression(together) = node.kind() else { continue };
        let Some(method) = promise_method(together, script) else { continue };
        let start = together.span.start as usize;
        let next = in_order.partition_point(|call| call.callee.offset < start);
        let within = |call: &&&Call<'_, '_>| together.span.contains_inclusive(call.expression.span);
        if let Some(first) = in_order.get(next).filter(within) {
            let promise = Promise {
                node: node.id(),
                name: cut(&first.callee.name),
                offset: start,
                text: format!("Promise.{method}(…)"),
            };
            promise.check(script, &calls, report);
        }
    }
}

/// A promise that a script gets.
struct Promise {
    node: NodeId,
    /// The tool's name.
    name: String,
    /// Where the call is.
    offset: usize,
    /// The call in short.
    text: String,
}

impl Promise {
    fn check(&self, script: &Script<'_, '_>, calls: &HashSet<NodeId>, report: &mut Report<'_>) {
        match fate(self.node, script, calls) {
            Fate::Kept => {}
            Fate::Dropped => self.report_dropped(script, report),
            Fate::Taken(taken) => {
                let message = format!("this is the promise of `{}`, not its result", self.name);
                let hint = match taken {
                    Taken::Property(property) => {
                        format!("write `(await {}){property}`", self.text)
                    }
                    Taken::Condition | Taken::Value => format!("write `await {}`", self.text),
                };
                let hint = hint + self.within_sync(script);
                report.error(self.offset, message, hint);
            }
            Fate::Named(symbol) => self.check_variable(symbol, script, calls, report),
        }
    }

    /// What becomes of the variable that holds the promise.
    fn check_variable(
        &self,
        symbol: SymbolId,
        script: &Script<'_, '_>,
        calls: &HashSet<NodeId>,
        report: &mut Report<'_>,
    ) {
        let scoping = script.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return;
        }
        let variable = cut(scoping.symbol_name(symbol));
        let mut is_read = false;
        for reference in scoping.get_resolved_references(symbol) {
            if !reference.is_value() {
                continue;
            }
            is_read = true;
            let Fate::Taken(taken) = fate(reference.node_id(), script, calls) else { continue };
            let hint = match taken {
                Taken::Condition => continue,
                Taken::Property(_) | Taken::Value => {
                    format!("write `{variable} = await {}`{}", self.text, self.within_sync(script))
                }
            };
            let offset = script.semantic.reference_span(reference).start as usize;
            let message = format!("`{variable}` is the promise of `{}`, not its result", self.name);
            report.error(offset, message, hint);
            return;
        }
        if !is_read {
            self.report_dropped(script, report);
        }
    }

    fn report_dropped(&self, script: &Script<'_, '_>, report: &mut Report<'_>) {
        let message = format!("the call of `{}` is never awaited", self.name);
        let hint = format!("write `await {}`{}", self.text, self.within_sync(script));
        report.error(self.offset, message, hint);
    }

    /// `await` alone would not do in a function that is not async.
    fn within_sync(&self, script: &Script<'_, '_>) -> &'static str {
        let mut functions =
            script.semantic.nodes().ancestor_kinds(self.node).filter_map(|kind| match kind {
                AstKind::Function(function) => Some(function.r#async),
                AstKind::ArrowFunctionExpression(function) => Some(function.r#async),
                _ => None,
            });
        match functions.next() {
            Some(false) => ", and make the function around it `async`",
            _ => "",
        }
    }
}

/// `all` of `Promise.all`, and the like.
fn promise_method<'a>(call: &CallExpression<'a>, script: &Script<'_, '_>) -> Option<&'a str> {
    let (object, method) = global_method(call, script)?;
    let is_one = object == "Promise" && matches!(method, "all" | "allSettled" | "race" | "any");
    is_one.then_some(method)
}

/// A chain of `&&` may be as long as a script; who needs more of it is not told.
const MAX_STEPS: usize = 100;

/// What becomes of a promise.
pub(super) enum Fate {
    /// Awaited, returned, handed on: somebody else's.
    Kept,
    /// Nothing.
    Dropped,
    /// Used as if it were what it promises.
    Taken(Taken),
    /// Put into a variable.
    Named(SymbolId),
}

/// How a promise is used as if it were what it promises.
pub(super) enum Taken {
    /// For its property.
    Property(String),
    /// Whether it is true, or equal to something. That a variable is set may be asked.
    Condition,
    Value,
}

/// What becomes of an expression. `calls` are those of tools.
pub(super) fn fate(node: NodeId, script: &Script<'_, '_>, calls: &HashSet<NodeId>) -> Fate {
    let nodes = script.semantic.nodes();
    let mut node = node;
    for _ in 0..MAX_STEPS {
        let span = nodes.kind(node).span();
        let parent = nodes.parent_id(node);
        let fate = match nodes.kind(parent) {
            AstKind::ParenthesizedExpression(_)
            | AstKind::ChainExpression(_)
            | AstKind::TSAsExpression(_)
            | AstKind::TSSatisfiesExpression(_)
            | AstKind::TSNonNullExpression(_)
            | AstKind::TSTypeAssertion(_) => None,
            AstKind::ConditionalExpression(choice) if choice.test.span() != span => None,
            AstKind::LogicalExpression(choice) if choice.left.span() != span => None,
            AstKind::LogicalExpression(choice) if choice.operator == LogicalOperator::Coalesce => {
                Some(Fate::Taken(Taken::Condition))
            }
            AstKind::SequenceExpression(sequence) => match sequence.expressions.last() {
                Some(last) if last.span() == span => None,
                _ => Some(Fate::Dropped),
            },
            AstKind::ExpressionStatement(_) => Some(Fate::Dropped),
            AstKind::ConditionalExpression(_)
            | AstKind::LogicalExpression(_)
            | AstKind::IfStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_) => Some(Fate::Taken(Taken::Condition)),
            AstKind::ForStatement(each) if is(each.test.as_ref(), span) => {
                Some(Fate::Taken(Taken::Condition))
            }
            AstKind::UnaryExpression(unary) => Some(match unary.operator {
                UnaryOperator::Void | UnaryOperator::Typeof | UnaryOperator::Delete => Fate::Kept,
                UnaryOperator::LogicalNot => Fate::Taken(Taken::Condition),
                _ => Fate::Taken(Taken::Value),
            }),
            AstKind::BinaryExpression(binary) => Some(match binary.operator {
                BinaryOperator::Instanceof => Fate::Kept,
                operator if operator.is_equality() => Fate::Taken(Taken::Condition),
                _ => Fate::Taken(Taken::Value),
            }),
            AstKind::StaticMemberExpression(member) => Some(match member.property.name.as_str() {
                "then" | "catch" | "finally" | "constructor" => Fate::Kept,
                name => Fate::Taken(Taken::Property(format!(".{}", cut(name)))),
            }),
            AstKind::ComputedMemberExpression(member) => Some(if member.object.span() == span {
                Fate::Taken(Taken::Property("[…]".to_owned()))
            } else {
                Fate::Taken(Taken::Value)
            }),
            AstKind::TemplateLiteral(_) => Some(match nodes.parent_kind(parent) {
                AstKind::TaggedTemplateExpression(_) => Fate::Kept,
                _ => Fate::Taken(Taken::Value),
            }),
            AstKind::SpreadElement(_)
            | AstKind::ForOfStatement(_)
            | AstKind::ForInStatement(_)
            | AstKind::SwitchStatement(_) => Some(Fate::Taken(Taken::Value)),
            AstKind::VariableDeclarator(declarator) => Some(declared(declarator)),
            AstKind::AssignmentExpression(assignment) => Some(assigned(assignment)),
            AstKind::CallExpression(call) => {
                let is_value = call.callee.span() == span || wants_value(call, script);
                Some(if is_value { Fate::Taken(Taken::Value) } else { Fate::Kept })
            }
            AstKind::ObjectProperty(_) => {
                // As an argument of another tool it would be sent as `{}`.
                let object = nodes.parent_id(parent);
                let holder = nodes.parent_id(object);
                let is_sent = calls.contains(&holder);
                Some(if is_sent { Fate::Taken(Taken::Value) } else { Fate::Kept })
            }
            _ => Some(Fate::Kept),
        };
        match fate {
            Some(fate) => return fate,
            None => node = parent,
        }
    }
    Fate::Kept
}

fn declared(declarator: &VariableDeclarator<'_>) -> Fate {
    match &declarator.id {
        BindingPattern::BindingIdentifier(name) => {
            name.symbol_id.get().map_or(Fate::Kept, Fate::Named)
        }
        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_) => {
            Fate::Taken(Taken::Value)
        }
        BindingPattern::AssignmentPattern(_) => Fate::Kept,
    }
}

fn assigned(assignment: &AssignmentExpression<'_>) -> Fate {
    let is_pattern = matches!(
        assignment.left,
        AssignmentTarget::ArrayAssignmentTarget(_) | AssignmentTarget::ObjectAssignmentTarget(_)
    );
    let is_plain =
        assignment.operator == AssignmentOperator::Assign || assignment.operator.is_logical();
    if is_pattern || !is_plain { Fate::Taken(Taken::Value) } else { Fate::Kept }
}

fn is(expression: Option<&Expression<'_>>, span: Span) -> bool {
    expression.is_some_and(|expression| expression.span() == span)
}

/// Whether a function of the language does nothing useful with a promise.
fn wants_value(call: &CallExpression<'_>, script: &Script<'_, '_>) -> bool {
    if let Expression::Identifier(name) = call.callee.get_inner_expression() {
        return is_free(name, script)
            && matches!(
                name.name.as_str(),
                "String" | "Number" | "Boolean" | "parseInt" | "parseFloat" | "structuredClone"
            );
    }
    match global_method(call, script) {
        Some(("JSON", method)) => method == "stringify" || method == "parse",
        Some(("console", _)) => true,
        Some(("Array", method)) => method == "from" || method == "isArray",
        Some(("Object", method)) => matches!(method, "keys" | "values" | "entries" | "fromEntries"),
        _ => false,
    }
}

/// The object and the method of a call such as `JSON.stringify(…)`, if the object is the language's.
pub(super) fn global_method<'a>(
    call: &CallExpression<'a>,
    script: &Script<'_, '_>,
) -> Option<(&'a str, &'a str)> {
    let Expression::StaticMemberExpression(member) = call.callee.get_inner_expression() else {
        return None;
    };
    match member.object.get_inner_expression() {
        Expression::Identifier(object) if is_free(object, script) => {
            Some((object.name.as_str(), member.property.name.as_str()))
        }
        _ => None,
    }
}
