//! The arguments of tool calls, by position in the order of the parameters or by name.

use ruff_python_ast::{Expr, Number, Operator, UnaryOp};
use serde_json::Value;

use super::{
    offset,
    reader::{CalleeKind, PythonCall},
};
use crate::check::{
    Language,
    finding::FindingCollector,
    literal::{Literal, LiteralEntries, LiteralEntry, LiteralKind, MAX_DEPTH},
    lookup::{CheckBudget, ToolSignature, check_arguments},
    wording::cut,
};

/// Checks the arguments of a call.
pub(super) fn check(
    tool: &ToolSignature,
    call: &PythonCall<'_>,
    budget: &CheckBudget,
    report: &mut FindingCollector<'_>,
) {
    if call.sort != CalleeKind::Free {
        return;
    }
    let given = &call.expression.arguments;
    let positional = &given.args;
    if let [only @ Expr::Dict(_)] = positional.as_ref()
        && given.keywords.is_empty()
        && !takes_object(tool)
    {
        let message = format!("`{}` takes its arguments by name, not in a dict", cut(&tool.name));
        report.error(offset(only), message, usage(tool));
        return;
    }
    let mut entries = LiteralEntries::default();
    let starred = positional.iter().position(Expr::is_starred_expr);
    for (index, argument) in positional.iter().take(starred.unwrap_or(usize::MAX)).enumerate() {
        let Some(name) = tool.parameters.get(index) else {
            let message = format!(
                "`{}` takes {} arguments, and this is number {}",
                cut(&tool.name),
                tool.parameters.len(),
                index + 1
            );
            report.error(offset(argument), message, usage(tool));
            return;
        };
        let value = value_of(argument);
        entries.push(LiteralEntry { key: name.clone(), offset: offset(argument), value });
    }
    for keyword in &given.keywords {
        let Some(name) = &keyword.arg else { continue };
        let is_given =
            tool.parameters.iter().take(positional.len()).any(|known| known == name.as_str());
        if is_given && starred.is_none() {
            let message = format!("`{}` is given twice", cut(name.as_str()));
            report.error(offset(keyword), message, "it was given by position".to_owned());
            return;
        }
        let value = value_of(&keyword.value);
        entries.push(LiteralEntry { key: name.to_string(), offset: offset(keyword), value });
    }
    let is_open = starred.is_some() || given.keywords.iter().any(|keyword| keyword.arg.is_none());
    let kind = match (entries.finish(), is_open) {
        (LiteralKind::Object { entries, .. }, true) => {
            LiteralKind::Object { entries, complete: false }
        }
        (kind, _) => kind,
    };
    let at = offset(call.expression);
    check_arguments(tool, &Literal::new(at, kind), at, Language::Python, budget, report);
}

/// The value of an argument. `None` means that the argument is omitted.
fn value_of(argument: &Expr) -> Literal {
    match argument {
        Expr::NoneLiteral(_) => Literal::unknown(offset(argument)),
        _ => read(argument),
    }
}

/// Whether the first parameter may be an object, so that a dict is correct.
fn takes_object(tool: &ToolSignature) -> bool {
    let first = tool.parameters.first();
    let schema = first.and_then(|name| tool.schema.get("properties")?.get(name));
    match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => schema.is_some(),
    }
}

fn usage(tool: &ToolSignature) -> String {
    let shown: Vec<String> =
        tool.parameters.iter().take(6).map(|name| format!("{}=…", cut(name))).collect();
    let more = if tool.parameters.len() > shown.len() { ", …" } else { "" };
    if shown.is_empty() {
        return format!("write `{}()`", tool.name);
    }
    format!("write `{}({}{more})`", tool.name, shown.join(", "))
}

pub(super) fn read(expression: &Expr) -> Literal {
    read_at(expression, 0)
}

fn read_at(expression: &Expr, depth: usize) -> Literal {
    let kind = if depth > MAX_DEPTH { LiteralKind::Unknown } else { kind(expression, depth) };
    Literal::new(offset(expression), kind)
}

fn kind(expression: &Expr, depth: usize) -> LiteralKind {
    match expression {
        Expr::NoneLiteral(_) => LiteralKind::Null,
        Expr::BooleanLiteral(literal) => LiteralKind::Boolean(Some(literal.value)),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(value) => {
                value.to_string().parse().map_or(LiteralKind::Unknown, LiteralKind::number)
            }
            Number::Float(value) => LiteralKind::number(*value),
            Number::Complex { .. } => LiteralKind::Unknown,
        },
        Expr::StringLiteral(literal) => LiteralKind::Text(Some(literal.value.to_str().to_owned())),
        Expr::FString(_) => LiteralKind::Text(None),
        Expr::UnaryOp(unary) => match (unary.op, read_at(&unary.operand, depth + 1).kind) {
            (UnaryOp::USub, LiteralKind::Number(value)) => LiteralKind::number(-value),
            (UnaryOp::UAdd, LiteralKind::Number(value)) => LiteralKind::number(value),
            (UnaryOp::Not, _) => LiteralKind::Boolean(None),
            _ => LiteralKind::Unknown,
        },
        Expr::Compare(_) => LiteralKind::Boolean(None),
        Expr::BinOp(binary) => {
            let is_text =
                |side: &Expr| matches!(read_at(side, depth + 1).kind, LiteralKind::Text(_));
            match binary.op {
                Operator::Add if is_text(&binary.left) || is_text(&binary.right) => {
                    LiteralKind::Text(None)
                }
                Operator::Mod if is_text(&binary.left) => LiteralKind::Text(None),
                _ => LiteralKind::Unknown,
            }
        }
        Expr::List(list) => array(&list.elts, depth),
        Expr::Tuple(tuple) => array(&tuple.elts, depth),
        Expr::Dict(dict) => {
            let mut entries = LiteralEntries::default();
            for item in &dict.items {
                match &item.key {
                    Some(key @ Expr::StringLiteral(text)) => entries.push(LiteralEntry {
                        key: text.value.to_str().to_owned(),
                        offset: offset(key),
                        value: read_at(&item.value, depth + 1),
                    }),
                    _ => entries.push_unknown(),
                }
            }
            entries.finish()
        }
        _ => LiteralKind::Unknown,
    }
}

fn array(elements: &[Expr], depth: usize) -> LiteralKind {
    let complete = !elements.iter().any(Expr::is_starred_expr);
    let items = elements.iter().filter(|element| !element.is_starred_expr());
    LiteralKind::array(items.map(|item| read_at(item, depth + 1)).collect(), complete)
}
