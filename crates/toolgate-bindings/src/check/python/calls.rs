//! The arguments of tool calls, by position in the order of the parameters or by name.

use ruff_python_ast::{Expr, Number, Operator, UnaryOp};
use serde_json::Value;

use super::{
    offset,
    reader::{CalleeKind, PythonCall, ScriptReader},
};
use crate::check::{
    Language,
    finding::FindingCollector,
    literal::{Literal, LiteralEntries, LiteralEntry, LiteralKind, MAX_DEPTH},
    lookup::{CheckBudget, ToolSignature, check_arguments},
    wording::{cut, python_arguments},
};

/// Checks the arguments of a call.
pub(super) fn check(
    tool: &ToolSignature,
    call: &PythonCall<'_>,
    script: &ScriptReader<'_, '_>,
    budget: &CheckBudget,
    report: &mut FindingCollector<'_>,
) {
    if call.sort != CalleeKind::Free {
        return;
    }
    let given = &call.expression.arguments;
    let positional = &given.args;
    let at = offset(call.expression);
    // The object with all tools takes one dictionary too.
    let is_named = matches!(call.expression.func.as_ref(), Expr::Name(_));
    if let ([only], true) = (positional.as_ref(), given.keywords.is_empty())
        && !is_named
        && script.has_tools()
    {
        let arguments = read(only);
        match &arguments.kind {
            LiteralKind::Object { .. } if takes_object(tool) => return,
            LiteralKind::Object { .. } => {
                let language = Language::Python;
                return check_arguments(tool, &arguments, &[], at, language, budget, report);
            }
            LiteralKind::Unknown => return,
            _ => {}
        }
    }
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
        push(&mut entries, tool, name, offset(argument), value_of(argument, call, script));
    }
    let mut is_open = starred.is_some();
    for keyword in &given.keywords {
        let Some(name) = &keyword.arg else {
            match value_of(&keyword.value, call, script).kind {
                LiteralKind::Object { entries: spread, complete: true } => {
                    for entry in spread.iter() {
                        push(&mut entries, tool, &entry.key, offset(keyword), entry.value.clone());
                    }
                }
                _ => is_open = true,
            }
            continue;
        };
        let is_given =
            tool.parameters.iter().take(positional.len()).any(|known| known == name.as_str());
        if is_given && starred.is_none() {
            let message = format!("`{}` is given twice", cut(name.as_str()));
            report.error(offset(keyword), message, "it was given by position".to_owned());
            return;
        }
        let value = value_of(&keyword.value, call, script);
        push(&mut entries, tool, name.as_str(), offset(keyword), value);
    }
    let kind = match (entries.finish(), is_open) {
        (LiteralKind::Object { entries, .. }, true) => {
            LiteralKind::Object { entries, complete: false }
        }
        (kind, _) => kind,
    };
    let named: Vec<String> =
        given.keywords.iter().filter_map(|it| it.arg.as_ref()).map(ToString::to_string).collect();
    check_arguments(tool, &Literal::new(at, kind), &named, at, Language::Python, budget, report);
}

/// Adds an argument. `None` means that it is omitted.
fn push(
    entries: &mut LiteralEntries,
    tool: &ToolSignature,
    name: &str,
    offset: usize,
    value: Literal,
) {
    let is_none = value.kind == LiteralKind::Null;
    if is_none && is_needed(tool, name) {
        return;
    }
    let value = if is_none { Literal::unknown(value.offset) } else { value };
    entries.push(LiteralEntry { key: name.to_owned(), offset, value });
}

/// The value of an argument.
fn value_of(argument: &Expr, call: &PythonCall<'_>, script: &ScriptReader<'_, '_>) -> Literal {
    let constant = argument.as_name_expr().and_then(|it| script.constant(call, it.id.as_str()));
    Literal { offset: offset(argument), ..read(constant.unwrap_or(argument)) }
}

/// Whether a parameter is required, and takes no `null`.
fn is_needed(tool: &ToolSignature, name: &str) -> bool {
    let required = tool.schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
    let schema = tool.schema.get("properties").and_then(|properties| properties.get(name));
    let kind = schema.filter(|it| it.get("nullable").is_none()).and_then(|it| it.get("type"));
    is_required && kind.and_then(Value::as_str).is_some_and(|kind| kind != "null")
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
    let names: Vec<&str> = tool.parameters.iter().take(6).map(String::as_str).collect();
    let more = if tool.parameters.len() > names.len() { ", …" } else { "" };
    let shown = python_arguments(&names, |name| format!("{}=…", cut(name)));
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
