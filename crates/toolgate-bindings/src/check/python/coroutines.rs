//! Coroutines that are never awaited.

use ruff_python_ast::{BoolOp, CmpOp, Expr, Stmt, UnaryOp};

use super::{
    offset,
    reader::{CalleeKind, Parent, PythonCall, ScriptReader},
};
use crate::check::{finding::FindingCollector, lookup::ToolTable, wording::cut};

/// How a value is used, as far as it matters for a coroutine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CoroutineUse<'a> {
    /// It is awaited, returned or passed on.
    PassedOn,
    /// It is not used.
    Dropped,
    /// It is used as if it were the result of the coroutine.
    UsedAsValue {
        /// The accessed part: `.name` or `[…]`.
        part: Option<String>,
        /// Whether it is only used as a condition.
        is_condition: bool,
    },
    /// It is assigned to a variable.
    Named(&'a str),
    /// It is an argument of a function that the script does not define, such as a tool.
    Given(&'a str),
}

/// Functions that cannot use a coroutine.
const WANT_VALUES: &[&str] = &[
    "all",
    "any",
    "bool",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "print",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
];

/// Reports coroutines that are dropped or used as their result.
pub(super) fn check(
    script: &ScriptReader<'_, '_>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    for call in &script.calls {
        let name = cut(call.name);
        let (shown, text) = match call.sort {
            CalleeKind::Free if tools.tool(call.name).is_some() => {
                (name.clone(), format!("{name}(…)"))
            }
            CalleeKind::Asyncio
                if matches!(call.name, "gather" | "sleep" | "wait_for" | "wait") =>
            {
                (format!("asyncio.{name}"), format!("asyncio.{name}(…)"))
            }
            CalleeKind::Own if is_coroutine(call, script) => (name.clone(), format!("{name}(…)")),
            _ => continue,
        };
        let at = offset(call.expression);
        let asynchronous =
            if call.is_sync { ", and make the function around it `async def`" } else { "" };
        let dropped = || {
            let message = format!("the call of `{shown}` is never awaited");
            (message, format!("write `await {text}`{asynchronous}"))
        };
        let taken = |part: Option<&str>| {
            let message = format!("this is the coroutine of `{shown}`, not its result");
            let hint = match part {
                Some(part) => format!("write `(await {text}){part}`{asynchronous}"),
                None => format!("write `await {text}`{asynchronous}"),
            };
            (message, hint)
        };
        match &call.coroutine_use {
            CoroutineUse::PassedOn => {}
            CoroutineUse::Given(function) => {
                if tools.tool(function).is_some() {
                    let (message, hint) = taken(None);
                    report.error(at, message, hint);
                }
            }
            CoroutineUse::Dropped => {
                let (message, hint) = dropped();
                report.error(at, message, hint);
            }
            CoroutineUse::UsedAsValue { part, .. } => {
                let (message, hint) = taken(part.as_deref());
                report.error(at, message, hint);
            }
            CoroutineUse::Named(variable) => {
                let Some(known) = script.variables.get(&(call.scope, *variable)) else { continue };
                if known.assignments != 1 {
                    continue;
                }
                let variable = cut(variable);
                if known.reads == 0 {
                    let (message, hint) = dropped();
                    report.error(at, message, hint);
                } else if let Some(taken) = known.taken_at {
                    let message =
                        format!("`{variable}` is the coroutine of `{shown}`, not its result");
                    let hint = format!("write `{variable} = await {text}`{asynchronous}");
                    report.error(taken, message, hint);
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
    let value = || CoroutineUse::UsedAsValue { part: None, is_condition: false };
    let condition = || CoroutineUse::UsedAsValue { part: None, is_condition: true };
    let mut around = parents.iter().rev();
    let Some(&Parent::Expression(mut child)) = around.next() else { return CoroutineUse::PassedOn };
    for parent in around {
        let expression = match parent {
            Parent::Statement(statement) => return fate_in_statement(statement, child),
            Parent::Expression(expression) => *expression,
        };
        let is = |other: &Expr| std::ptr::eq(other, child);
        match expression {
            Expr::If(choice) if is(&choice.test) => return condition(),
            Expr::If(_) => {}
            Expr::BoolOp(choice) => match choice.values.last() {
                Some(last) if is(last) => {}
                _ if choice.op == BoolOp::And || choice.op == BoolOp::Or => return condition(),
                _ => return CoroutineUse::PassedOn,
            },
            Expr::UnaryOp(unary) => {
                return if unary.op == UnaryOp::Not { condition() } else { value() };
            }
            Expr::Compare(compare) => {
                let is_identity =
                    |op: &CmpOp| matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::Eq | CmpOp::NotEq);
                return if compare.ops.iter().all(is_identity) { condition() } else { value() };
            }
            Expr::BinOp(_) | Expr::FString(_) | Expr::Starred(_) => return value(),
            Expr::Attribute(attribute) => {
                let part = Some(format!(".{}", cut(attribute.attr.as_str())));
                return CoroutineUse::UsedAsValue { part, is_condition: false };
            }
            Expr::Subscript(subscript) if is(&subscript.value) => {
                return CoroutineUse::UsedAsValue {
                    part: Some("[…]".to_owned()),
                    is_condition: false,
                };
            }
            Expr::ListComp(list) => return in_comprehension(is(&list.elt)),
            Expr::SetComp(set) => return in_comprehension(is(&set.elt)),
            Expr::Generator(each) => return in_comprehension(is(&each.elt)),
            Expr::DictComp(dict) => return in_comprehension(is(&dict.value)),
            Expr::Call(call) if is(&call.func) => return CoroutineUse::PassedOn,
            Expr::Call(call) => {
                return match call.func.as_ref() {
                    callee if wants_value(callee, reader) => value(),
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

/// In a comprehension, a coroutine can only be used as an element.
fn in_comprehension<'a>(is_element: bool) -> CoroutineUse<'a> {
    if is_element {
        CoroutineUse::PassedOn
    } else {
        CoroutineUse::UsedAsValue { part: None, is_condition: false }
    }
}

fn fate_in_statement<'a>(statement: &'a Stmt, child: &Expr) -> CoroutineUse<'a> {
    let is = |other: &Expr| std::ptr::eq(other, child);
    let taken = |is_condition| CoroutineUse::UsedAsValue { part: None, is_condition };
    match statement {
        Stmt::Expr(_) => CoroutineUse::Dropped,
        Stmt::Assign(assign) if is(&assign.value) => match assign.targets.as_slice() {
            [Expr::Name(name)] => CoroutineUse::Named(name.id.as_str()),
            [Expr::Tuple(_) | Expr::List(_)] => taken(false),
            _ => CoroutineUse::PassedOn,
        },
        Stmt::AnnAssign(assign) => match assign.target.as_ref() {
            Expr::Name(name) => CoroutineUse::Named(name.id.as_str()),
            _ => CoroutineUse::PassedOn,
        },
        Stmt::AugAssign(assign) if is(&assign.value) => taken(false),
        Stmt::For(each) if is(&each.iter) => taken(false),
        Stmt::With(_) => taken(false),
        Stmt::If(_) | Stmt::While(_) | Stmt::Assert(_) => taken(true),
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
