//! Promises of tool calls that are never awaited.

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

use super::{ParsedScript, TypeScriptCall, calls::is_free};
use crate::check::{
    awaiting::{AwaitableCall, AwaitableUse},
    finding::FindingCollector,
    wording::cut,
};

/// Reports tool calls with a promise that is dropped or used as its value.
pub(super) fn check(
    own: &[&TypeScriptCall<'_, '_>],
    script: &ParsedScript<'_, '_>,
    report: &mut FindingCollector<'_>,
) {
    let calls: HashSet<NodeId> = own.iter().map(|call| call.node).collect();
    let mut in_order: Vec<&TypeScriptCall<'_, '_>> = own.to_vec();
    in_order.sort_by_key(|call| call.callee.offset);
    for own in own {
        let name = cut(&own.callee.name);
        let text = format!("{name}(…)");
        let call = AwaitableCall { noun: "promise", name, text, offset: own.callee.offset };
        Promise { node: own.node, call }.check(script, &calls, report);
    }
    for node in script.semantic.nodes().iter() {
        let AstKind::CallExpression(together) = node.kind() else { continue };
        let Some(method) = promise_method(together, script) else { continue };
        let offset = together.span.start as usize;
        let next = in_order.partition_point(|call| call.callee.offset < offset);
        let within = |call: &&&TypeScriptCall<'_, '_>| {
            together.span.contains_inclusive(call.expression.span)
        };
        if let Some(first) = in_order.get(next).filter(within) {
            let name = cut(&first.callee.name);
            let text = format!("Promise.{method}(…)");
            let call = AwaitableCall { noun: "promise", name, text, offset };
            Promise { node: node.id(), call }.check(script, &calls, report);
        }
    }
}

/// The promise of a tool call.
struct Promise {
    node: NodeId,
    call: AwaitableCall,
}

impl Promise {
    fn check(
        &self,
        script: &ParsedScript<'_, '_>,
        calls: &HashSet<NodeId>,
        report: &mut FindingCollector<'_>,
    ) {
        match promise_use(self.node, script, calls) {
            PromiseUse::PassedOn | PromiseUse::Given(_) => {}
            PromiseUse::Dropped => self.call.report_dropped(report, self.addition(script)),
            PromiseUse::UsedAsValue { part, .. } => {
                self.call.report_value(part.as_deref(), report, self.addition(script));
            }
            PromiseUse::Named(symbol) => self.check_variable(symbol, script, calls, report),
        }
    }

    /// Checks how a variable that contains the promise is used.
    fn check_variable(
        &self,
        symbol: SymbolId,
        script: &ParsedScript<'_, '_>,
        calls: &HashSet<NodeId>,
        report: &mut FindingCollector<'_>,
    ) {
        let scoping = script.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return;
        }
        let mut is_read = false;
        for reference in scoping.get_resolved_references(symbol) {
            if !reference.is_value() {
                continue;
            }
            is_read = true;
            if let PromiseUse::UsedAsValue { is_condition: false, .. } =
                promise_use(reference.node_id(), script, calls)
            {
                let offset = script.semantic.reference_span(reference).start as usize;
                let variable = cut(scoping.symbol_name(symbol));
                self.call.report_variable(&variable, offset, report, self.addition(script));
                return;
            }
        }
        if !is_read {
            self.call.report_dropped(report, self.addition(script));
        }
    }

    /// The addition to a hint for a function that is not async, where `await` alone would not work.
    fn addition(&self, script: &ParsedScript<'_, '_>) -> &'static str {
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
fn promise_method<'a>(call: &CallExpression<'a>, script: &ParsedScript<'_, '_>) -> Option<&'a str> {
    let (object, method) = global_method(call, script)?;
    let is_one = object == "Promise" && matches!(method, "all" | "allSettled" | "race" | "any");
    is_one.then_some(method)
}

/// The number of ancestors that are followed. A chain of `&&` may be as long as a script.
const MAX_STEPS: usize = 100;

/// How a promise is used.
type PromiseUse = AwaitableUse<SymbolId>;

/// How an expression is used. `calls` are the tool calls.
fn promise_use(node: NodeId, script: &ParsedScript<'_, '_>, calls: &HashSet<NodeId>) -> PromiseUse {
    let nodes = script.semantic.nodes();
    let mut node = node;
    for _ in 0..MAX_STEPS {
        let span = nodes.kind(node).span();
        let parent = nodes.parent_id(node);
        let promise_use = match nodes.kind(parent) {
            AstKind::ParenthesizedExpression(_)
            | AstKind::ChainExpression(_)
            | AstKind::TSAsExpression(_)
            | AstKind::TSSatisfiesExpression(_)
            | AstKind::TSNonNullExpression(_)
            | AstKind::TSTypeAssertion(_) => None,
            AstKind::ConditionalExpression(choice) if choice.test.span() != span => None,
            AstKind::LogicalExpression(choice) if choice.left.span() != span => None,
            AstKind::LogicalExpression(choice) if choice.operator == LogicalOperator::Coalesce => {
                Some(PromiseUse::condition())
            }
            AstKind::SequenceExpression(sequence) => match sequence.expressions.last() {
                Some(last) if last.span() == span => None,
                _ => Some(PromiseUse::Dropped),
            },
            AstKind::ExpressionStatement(_) => Some(PromiseUse::Dropped),
            AstKind::ConditionalExpression(_)
            | AstKind::LogicalExpression(_)
            | AstKind::IfStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_) => Some(PromiseUse::condition()),
            AstKind::ForStatement(each) if is(each.test.as_ref(), span) => {
                Some(PromiseUse::condition())
            }
            AstKind::UnaryExpression(unary) => Some(match unary.operator {
                UnaryOperator::Void | UnaryOperator::Typeof | UnaryOperator::Delete => {
                    PromiseUse::PassedOn
                }
                UnaryOperator::LogicalNot => PromiseUse::condition(),
                _ => PromiseUse::value(),
            }),
            AstKind::BinaryExpression(binary) => Some(match binary.operator {
                BinaryOperator::Instanceof => PromiseUse::PassedOn,
                operator if operator.is_equality() => PromiseUse::condition(),
                _ => PromiseUse::value(),
            }),
            AstKind::StaticMemberExpression(member) => Some(match member.property.name.as_str() {
                "then" | "catch" | "finally" | "constructor" => PromiseUse::PassedOn,
                name => PromiseUse::part(format!(".{}", cut(name))),
            }),
            AstKind::ComputedMemberExpression(member) => Some(if member.object.span() == span {
                PromiseUse::part("[…]")
            } else {
                PromiseUse::value()
            }),
            AstKind::TemplateLiteral(_) => Some(match nodes.parent_kind(parent) {
                AstKind::TaggedTemplateExpression(_) => PromiseUse::PassedOn,
                _ => PromiseUse::value(),
            }),
            AstKind::SpreadElement(_)
            | AstKind::ForOfStatement(_)
            | AstKind::ForInStatement(_)
            | AstKind::SwitchStatement(_) => Some(PromiseUse::value()),
            AstKind::VariableDeclarator(declarator) => Some(declared(declarator)),
            AstKind::AssignmentExpression(assignment) => Some(assigned(assignment)),
            AstKind::CallExpression(call) => {
                let is_value = call.callee.span() == span || wants_value(call, script);
                Some(PromiseUse::value_if(is_value))
            }
            AstKind::ObjectProperty(_) => {
                // As an argument of another tool it would be sent as `{}`.
                let call = nodes.parent_id(nodes.parent_id(parent));
                Some(PromiseUse::value_if(calls.contains(&call)))
            }
            _ => Some(PromiseUse::PassedOn),
        };
        match promise_use {
            Some(promise_use) => return promise_use,
            None => node = parent,
        }
    }
    PromiseUse::PassedOn
}

fn declared(declarator: &VariableDeclarator<'_>) -> PromiseUse {
    match &declarator.id {
        BindingPattern::BindingIdentifier(name) => {
            name.symbol_id.get().map_or(PromiseUse::PassedOn, PromiseUse::Named)
        }
        BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_) => PromiseUse::value(),
        BindingPattern::AssignmentPattern(_) => PromiseUse::PassedOn,
    }
}

fn assigned(assignment: &AssignmentExpression<'_>) -> PromiseUse {
    let is_pattern = matches!(
        assignment.left,
        AssignmentTarget::ArrayAssignmentTarget(_) | AssignmentTarget::ObjectAssignmentTarget(_)
    );
    let is_plain =
        assignment.operator == AssignmentOperator::Assign || assignment.operator.is_logical();
    PromiseUse::value_if(is_pattern || !is_plain)
}

fn is(expression: Option<&Expression<'_>>, span: Span) -> bool {
    expression.is_some_and(|expression| expression.span() == span)
}

/// Whether a built-in function cannot use a promise.
fn wants_value(call: &CallExpression<'_>, script: &ParsedScript<'_, '_>) -> bool {
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

/// The object and method of a call such as `JSON.stringify(…)`, if the object is a built-in.
pub(super) fn global_method<'a>(
    call: &CallExpression<'a>,
    script: &ParsedScript<'_, '_>,
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
