//! Promises of tool calls that nobody waits for.

use std::collections::HashSet;

use oxc_ast::{AstKind, ast::CallExpression};
use oxc_semantic::{NodeId, SymbolId};

use super::{
    Call, Script,
    fate::{Fate, Taken, fate, global_method},
};
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
