//! Calls that nobody awaits.

use ruff_python_ast::{BoolOp, CmpOp, Expr, Stmt, UnaryOp};

use super::{
    offset,
    reader::{Call, Parent, Reader, Sort},
};
use crate::check::{finding::Report, lookup::Tools, words::cut};

/// What becomes of a value, as far as it matters to a coroutine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate<'a> {
    /// Awaited, returned, handed on: somebody else's.
    Kept,
    /// Nothing.
    Dropped,
    /// Used as if it were what the coroutine gives.
    Taken {
        /// What is taken of it: `.name` or `[…]`.
        part: Option<String>,
        /// Whether it is only asked whether it is there.
        is_condition: bool,
    },
    /// Put into a variable.
    Named(&'a str),
    /// An argument of a function that is not the script's: a tool's, perhaps.
    Given(&'a str),
}

/// Functions that do nothing useful with a coroutine.
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

/// Reports coroutines that are dropped, or taken for what they give.
pub(super) fn check(script: &Reader<'_, '_>, tools: &Tools, report: &mut Report<'_>) {
    for call in &script.calls {
        let name = cut(call.name);
        let (shown, text) = match call.sort {
            Sort::Free if tools.tool(call.name).is_some() => (name.clone(), format!("{name}(…)")),
            Sort::Asyncio if matches!(call.name, "gather" | "sleep" | "wait_for" | "wait") => {
                (format!("asyncio.{name}"), format!("asyncio.{name}(…)"))
            }
            Sort::Own if is_coroutine(call, script) => (name.clone(), format!("{name}(…)")),
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
        match &call.fate {
            Fate::Kept => {}
            Fate::Given(function) => {
                if tools.tool(function).is_some() {
                    let (message, hint) = taken(None);
                    report.error(at, message, hint);
                }
            }
            Fate::Dropped => {
                let (message, hint) = dropped();
                report.error(at, message, hint);
            }
            Fate::Taken { part, .. } => {
                let (message, hint) = taken(part.as_deref());
                report.error(at, message, hint);
            }
            Fate::Named(variable) => {
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

/// Whether the script's own function is `async`, for certain.
fn is_coroutine(call: &Call<'_>, script: &Reader<'_, '_>) -> bool {
    let is_assigned =
        script.variables.get(&(0, call.name)).is_some_and(|variable| variable.assignments > 0);
    script.coroutines.get(call.name) == Some(&1) && !is_assigned
}

/// What becomes of the innermost of `parents`.
pub(super) fn fate<'a>(parents: &[Parent<'a>], reader: &Reader<'a, '_>) -> Fate<'a> {
    let value = || Fate::Taken { part: None, is_condition: false };
    let condition = || Fate::Taken { part: None, is_condition: true };
    let mut around = parents.iter().rev();
    let Some(&Parent::Expression(mut child)) = around.next() else { return Fate::Kept };
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
                _ => return Fate::Kept,
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
                return Fate::Taken { part, is_condition: false };
            }
            Expr::Subscript(subscript) if is(&subscript.value) => {
                return Fate::Taken { part: Some("[…]".to_owned()), is_condition: false };
            }
            Expr::ListComp(list) => return in_comprehension(is(&list.elt)),
            Expr::SetComp(set) => return in_comprehension(is(&set.elt)),
            Expr::Generator(each) => return in_comprehension(is(&each.elt)),
            Expr::DictComp(dict) => return in_comprehension(is(&dict.value)),
            Expr::Call(call) if is(&call.func) => return Fate::Kept,
            Expr::Call(call) => {
                return match call.func.as_ref() {
                    callee if wants_value(callee, reader) => value(),
                    Expr::Name(name) if reader.is_builtin(name.id.as_str()) => {
                        Fate::Given(name.id.as_str())
                    }
                    _ => Fate::Kept,
                };
            }
            _ => return Fate::Kept,
        }
        child = expression;
    }
    Fate::Kept
}

/// In a comprehension a coroutine may be an element, and nothing else.
fn in_comprehension<'a>(is_element: bool) -> Fate<'a> {
    if is_element { Fate::Kept } else { Fate::Taken { part: None, is_condition: false } }
}

fn fate_in_statement<'a>(statement: &'a Stmt, child: &Expr) -> Fate<'a> {
    let is = |other: &Expr| std::ptr::eq(other, child);
    let taken = |is_condition| Fate::Taken { part: None, is_condition };
    match statement {
        Stmt::Expr(_) => Fate::Dropped,
        Stmt::Assign(assign) if is(&assign.value) => match assign.targets.as_slice() {
            [Expr::Name(name)] => Fate::Named(name.id.as_str()),
            [Expr::Tuple(_) | Expr::List(_)] => taken(false),
            _ => Fate::Kept,
        },
        Stmt::AnnAssign(assign) => match assign.target.as_ref() {
            Expr::Name(name) => Fate::Named(name.id.as_str()),
            _ => Fate::Kept,
        },
        Stmt::AugAssign(assign) if is(&assign.value) => taken(false),
        Stmt::For(each) if is(&each.iter) => taken(false),
        Stmt::With(_) => taken(false),
        Stmt::If(_) | Stmt::While(_) | Stmt::Assert(_) => taken(true),
        _ => Fate::Kept,
    }
}

fn wants_value(callee: &Expr, reader: &Reader<'_, '_>) -> bool {
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
