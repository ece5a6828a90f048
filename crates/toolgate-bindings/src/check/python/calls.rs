//! What tools are given: by position, in the order of their parameters, or by name.

use ruff_python_ast::{Expr, Number, Operator, UnaryOp};
use serde_json::Value;

use super::{
    offset,
    reader::{Call, Sort},
};
use crate::check::{
    Language,
    finding::Report,
    literal::{Entries, Entry, Kind, Literal, MAX_DEPTH},
    lookup::{Budget, Tool, check_arguments},
    words::cut,
};

/// Reports what does not fit about a call's arguments.
pub(super) fn check(tool: &Tool, call: &Call<'_>, budget: &Budget, report: &mut Report<'_>) {
    if call.sort != Sort::Free {
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
    let mut entries = Entries::default();
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
        entries.push(Entry { key: name.clone(), offset: offset(argument), value });
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
        entries.push(Entry { key: name.to_string(), offset: offset(keyword), value });
    }
    let is_open = starred.is_some() || given.keywords.iter().any(|keyword| keyword.arg.is_none());
    let kind = match (entries.finish(), is_open) {
        (Kind::Object { entries, .. }, true) => Kind::Object { entries, complete: false },
        (kind, _) => kind,
    };
    let at = offset(call.expression);
    check_arguments(tool, &Literal { offset: at, kind }, at, Language::Python, budget, report);
}

/// An argument's value. `None` stands for an argument that is not given.
fn value_of(argument: &Expr) -> Literal {
    match argument {
        Expr::NoneLiteral(_) => Literal::unknown(offset(argument)),
        _ => read(argument),
    }
}

/// Whether the first parameter may be an object, so that a dict is no mistake.
fn takes_object(tool: &Tool) -> bool {
    let first = tool.parameters.first();
    let schema = first.and_then(|name| tool.schema.get("properties")?.get(name));
    match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => schema.is_some(),
    }
}

fn usage(tool: &Tool) -> String {
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
    let kind = if depth > MAX_DEPTH { Kind::Unknown } else { kind(expression, depth) };
    Literal { offset: offset(expression), kind }
}

fn kind(expression: &Expr, depth: usize) -> Kind {
    match expression {
        Expr::NoneLiteral(_) => Kind::Null,
        Expr::BooleanLiteral(literal) => Kind::Boolean(Some(literal.value)),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(value) => value.to_string().parse().map_or(Kind::Unknown, number),
            Number::Float(value) => number(*value),
            Number::Complex { .. } => Kind::Unknown,
        },
        Expr::StringLiteral(literal) => Kind::Text(Some(literal.value.to_str().to_owned())),
        Expr::FString(_) => Kind::Text(None),
        Expr::UnaryOp(unary) => match (unary.op, read_at(&unary.operand, depth + 1).kind) {
            (UnaryOp::USub, Kind::Number(value)) => number(-value),
            (UnaryOp::UAdd, Kind::Number(value)) => number(value),
            (UnaryOp::Not, _) => Kind::Boolean(None),
            _ => Kind::Unknown,
        },
        Expr::Compare(_) => Kind::Boolean(None),
        Expr::BinOp(binary) => {
            let is_text = |side: &Expr| matches!(read_at(side, depth + 1).kind, Kind::Text(_));
            match binary.op {
                Operator::Add if is_text(&binary.left) || is_text(&binary.right) => {
                    Kind::Text(None)
                }
                Operator::Mod if is_text(&binary.left) => Kind::Text(None),
                _ => Kind::Unknown,
            }
        }
        Expr::List(list) => array(&list.elts, depth),
        Expr::Tuple(tuple) => array(&tuple.elts, depth),
        Expr::Dict(dict) => {
            let mut entries = Entries::default();
            for item in &dict.items {
                match &item.key {
                    Some(key @ Expr::StringLiteral(text)) => entries.push(Entry {
                        key: text.value.to_str().to_owned(),
                        offset: offset(key),
                        value: read_at(&item.value, depth + 1),
                    }),
                    _ => entries.push_unknown(),
                }
            }
            entries.finish()
        }
        _ => Kind::Unknown,
    }
}

fn array(elements: &[Expr], depth: usize) -> Kind {
    let complete = !elements.iter().any(Expr::is_starred_expr);
    let items = elements.iter().filter(|element| !element.is_starred_expr());
    Kind::Array { items: items.map(|item| read_at(item, depth + 1)).collect(), complete }
}

fn number(value: f64) -> Kind {
    if value.is_finite() { Kind::Number(value) } else { Kind::Unknown }
}
