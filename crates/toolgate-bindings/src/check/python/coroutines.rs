//! Coroutines that are never awaited.

use ruff_python_ast::{BoolOp, CmpOp, Expr, Stmt, UnaryOp};

use super::{
    offset,
    reader::{CalleeKind, Parent, PythonCall, ScriptReader},
};
use crate::check::{
    awaiting::{AwaitableCall, AwaitableUse},
    finding::FindingCollector,
    lookup::ToolTable,
    wording::cut,
};

/// How a value is used, as far as it matters for a coroutine.
pub(super) type CoroutineUse<'a> = AwaitableUse<&'a str>;

/// Functions that cannot use a coroutine.
#[rustfmt::skip]
const WANT_VALUES: &[&str] = &[
    "all", "any", "bool", "dict", "enumerate", "filter", "float", "frozenset", "int", "iter",
    "len", "list", "map", "max", "min", "next", "print", "repr", "reversed", "round", "set",
    "sorted", "str", "sum", "tuple", "zip",
];

/// The parts that a coroutine itself has.
#[rustfmt::skip]
const OWN_PARTS: &[&str] = &[
    "__await__", "__name__", "__qualname__", "close", "cr_await", "cr_code", "cr_frame",
    "cr_running", "send", "throw",
];

/// Reports coroutines that are dropped or used as their result.
pub(super) fn check(
    script: &ScriptReader<'_, '_>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    for call in &script.calls {
        let name = match call.sort {
            CalleeKind::Free if tools.tool(call.name).is_some() => cut(call.name),
            CalleeKind::Own if is_coroutine(call, script) => cut(call.name),
            CalleeKind::Asyncio
                if matches!(call.name, "gather" | "sleep" | "wait_for" | "wait") =>
            {
                format!("asyncio.{}", call.name)
            }
            _ => continue,
        };
        let addition =
            if call.is_sync { ", and make the function around it `async def`" } else { "" };
        let awaitable = AwaitableCall {
            noun: "coroutine",
            text: format!("{name}(…)"),
            name,
            offset: offset(call.expression),
        };
        match &call.coroutine_use {
            CoroutineUse::PassedOn => {}
            CoroutineUse::Given(function) => {
                if tools.tool(function).is_some() {
                    awaitable.report_value(None, report, addition);
                }
            }
            CoroutineUse::Dropped => awaitable.report_dropped(report, addition),
            CoroutineUse::UsedAsValue { part, .. } => {
                awaitable.report_value(part.as_deref(), report, addition);
            }
            CoroutineUse::Named(variable) => {
                let Some(known) = script.variables.get(&(call.scope, *variable)) else { continue };
                if known.assignments != 1 {
                    continue;
                }
                if known.reads == 0 {
                    awaitable.report_dropped(report, addition);
                } else if let Some(taken) = known.taken_at {
                    awaitable.report_variable(&cut(variable), taken, report, addition);
                }
            }
        }
    }
}

/// Whether the script's own function is certainly `async`.
fn is_coroutine(call: &PythonCall<'_>, script: &ScriptReader<'_, '_>) -> bool {
    let is_assigned =
        script.variables.get(&(0, call.name)).is_some_and(|variable| variable.assignments > 0);
    script.coroutines.get(call.name) == Some(&1) && !is_assigned
}

/// How the innermost of `parents` is used.
pub(super) fn coroutine_use<'a>(
    parents: &[Parent<'a>],
    reader: &ScriptReader<'a, '_>,
) -> CoroutineUse<'a> {
    let mut around = parents.iter().rev();
    let Some(&Parent::Expression(mut child)) = around.next() else { return CoroutineUse::PassedOn };
    for parent in around {
        let expression = match parent {
            Parent::Statement(statement) => return use_in_statement(statement, child),
            Parent::Expression(expression) => *expression,
        };
        let is = |other: &Expr| std::ptr::eq(other, child);
        match expression {
            Expr::If(choice) if is(&choice.test) => return CoroutineUse::condition(),
            Expr::If(_) => {}
            Expr::BoolOp(choice) => match choice.values.last() {
                Some(last) if is(last) => {}
                _ if choice.op == BoolOp::And || choice.op == BoolOp::Or => {
                    return CoroutineUse::condition();
                }
                _ => return CoroutineUse::PassedOn,
            },
            Expr::UnaryOp(unary) => {
                return if unary.op == UnaryOp::Not {
                    CoroutineUse::condition()
                } else {
                    CoroutineUse::value()
                };
            }
            Expr::Compare(compare) => {
                let is_identity =
                    |op: &CmpOp| matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::Eq | CmpOp::NotEq);
                return if compare.ops.iter().all(is_identity) {
                    CoroutineUse::condition()
                } else {
                    CoroutineUse::value()
                };
            }
            Expr::BinOp(_) | Expr::FString(_) | Expr::Starred(_) => return CoroutineUse::value(),
            Expr::Attribute(attribute) if OWN_PARTS.contains(&attribute.attr.as_str()) => {
                return CoroutineUse::PassedOn;
            }
            Expr::Attribute(attribute) => {
                return CoroutineUse::part(format!(".{}", cut(attribute.attr.as_str())));
            }
            Expr::Subscript(subscript) if is(&subscript.value) => {
                return CoroutineUse::part("[…]");
            }
            // In a comprehension, a coroutine can only be used as an element.
            Expr::ListComp(list) => return CoroutineUse::value_if(!is(&list.elt)),
            Expr::SetComp(set) => return CoroutineUse::value_if(!is(&set.elt)),
            Expr::Generator(each) => return CoroutineUse::value_if(!is(&each.elt)),
            Expr::DictComp(dict) => return CoroutineUse::value_if(!is(&dict.value)),
            Expr::Call(call) if is(&call.func) => return CoroutineUse::PassedOn,
            Expr::Call(call) => {
                return match call.func.as_ref() {
                    callee if wants_value(callee, reader) => CoroutineUse::value(),
                    Expr::Name(name) if reader.is_builtin(name.id.as_str()) => {
                        CoroutineUse::Given(name.id.as_str())
                    }
                    _ => CoroutineUse::PassedOn,
                };
            }
            _ => return CoroutineUse::PassedOn,
        }
        child = expression;
    }
    CoroutineUse::PassedOn
}

fn use_in_statement<'a>(statement: &'a Stmt, child: &Expr) -> CoroutineUse<'a> {
    let is = |other: &Expr| std::ptr::eq(other, child);
    match statement {
        Stmt::Expr(_) => CoroutineUse::Dropped,
        Stmt::Assign(assign) if is(&assign.value) => match assign.targets.as_slice() {
            [Expr::Name(name)] => CoroutineUse::Named(name.id.as_str()),
            [Expr::Tuple(_) | Expr::List(_)] => CoroutineUse::value(),
            _ => CoroutineUse::PassedOn,
        },
        Stmt::AnnAssign(assign) => match assign.target.as_ref() {
            Expr::Name(name) => CoroutineUse::Named(name.id.as_str()),
            _ => CoroutineUse::PassedOn,
        },
        Stmt::AugAssign(assign) if is(&assign.value) => CoroutineUse::value(),
        Stmt::For(each) if is(&each.iter) => CoroutineUse::value(),
        Stmt::With(_) => CoroutineUse::value(),
        Stmt::If(_) | Stmt::While(_) | Stmt::Assert(_) => CoroutineUse::condition(),
        _ => CoroutineUse::PassedOn,
    }
}

fn wants_value(callee: &Expr, reader: &ScriptReader<'_, '_>) -> bool {
    match callee {
        Expr::Name(name) => {
            WANT_VALUES.contains(&name.id.as_str()) && reader.is_builtin(name.id.as_str())
        }
        Expr::Attribute(attribute) => match attribute.value.as_ref() {
            Expr::Name(module) if module.id == "json" => {
                matches!(attribute.attr.as_str(), "dumps" | "loads")
            }
            _ => false,
        },
        _ => false,
    }
}
