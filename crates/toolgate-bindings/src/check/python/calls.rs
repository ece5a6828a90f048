//! The arguments of tool calls, by position in the order of the parameters or by name.

use ruff_python_ast::Expr;
use serde_json::Value;

use super::{offset, reader::PythonCall, values::Values};
use crate::check::{
    Language,
    declared::one_of,
    finding::FindingCollector,
    literal::{Literal, LiteralEntries, LiteralEntry, LiteralKind, each},
    lookup::{CheckBudget, ToolSignature, check_arguments, takes_positions},
    wording::{cut, python_arguments},
};

/// Checks the arguments of a call.
pub(super) fn check<'a>(
    tool: &ToolSignature,
    call: &PythonCall<'a>,
    values: &Values<'_, 'a, '_>,
    budget: &CheckBudget,
    report: &mut FindingCollector<'_>,
) {
    let given = &call.expression.arguments;
    let positional = &given.args;
    let at = offset(call.expression);
    let checked = |arguments: &Literal, named: &[String], report: &mut FindingCollector<'_>| {
        check_arguments(tool, arguments, named, at, Language::Python, budget, report);
    };
    // The object with all tools always takes one dictionary.
    let is_named = matches!(call.expression.func.as_ref(), Expr::Name(_));
    let takes_all = !is_named || !tool.first_takes_object();
    match (positional.as_ref(), given.keywords.as_ref()) {
        // A single dictionary has all arguments, unless the first parameter may be one.
        ([only], []) if takes_all && !only.is_starred_expr() => {
            let value = values.argument(only);
            if is_object(&value) {
                if is_named || !tool.first_takes_object() {
                    checked(&as_arguments(value, tool), &values.own_keys(only), report);
                }
                return;
            }
            if value.kind == LiteralKind::Unknown && (!is_named || !takes_positions(&tool.name)) {
                return;
            }
        }
        ([], [only]) if only.arg.is_none() => {
            let value = values.argument(&only.value);
            if is_object(&value) {
                checked(&as_arguments(value, tool), &values.own_keys(&only.value), report);
                return;
            }
        }
        _ => {}
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
        push_written(&mut entries, tool, name, argument, offset(argument), values);
    }
    let mut is_open = starred.is_some();
    for keyword in &given.keywords {
        let Some(name) = &keyword.arg else {
            let value = values.argument(&keyword.value);
            match &value.kind {
                LiteralKind::Object { entries: spread, complete } if is_object(&value) => {
                    for entry in spread.iter() {
                        push(&mut entries, tool, &entry.key, offset(keyword), entry.value.clone());
                    }
                    is_open |= !complete;
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
        push_written(&mut entries, tool, name.as_str(), &keyword.value, offset(keyword), values);
    }
    let kind = match (entries.finish(), is_open) {
        (LiteralKind::Object { entries, .. }, true) => {
            LiteralKind::Object { entries, complete: false }
        }
        (kind, _) => kind,
    };
    let named = given.keywords.iter().flat_map(|it| match &it.arg {
        Some(name) => vec![name.to_string()],
        None => values.own_keys(&it.value),
    });
    let named: Vec<String> = named.collect();
    checked(&Literal::new(at, kind), &named, report);
}

/// Whether a value is an object that the script makes, or each of several. A result may have more than is
/// declared.
fn is_object(value: &Literal) -> bool {
    match &value.kind {
        LiteralKind::Object { .. } => value.origin.is_none(),
        LiteralKind::Each(all) | LiteralKind::OneOf(all) => all.iter().all(is_object),
        _ => false,
    }
}

/// An object, or each of several, as arguments of a tool.
fn as_arguments(value: Literal, tool: &ToolSignature) -> Literal {
    match &value.kind {
        LiteralKind::Object { entries, complete } => {
            let mut pushed = LiteralEntries::default();
            for entry in entries.iter() {
                push(&mut pushed, tool, &entry.key, entry.offset, entry.value.clone());
            }
            let kind = match pushed.finish() {
                LiteralKind::Object { entries, .. } => {
                    LiteralKind::Object { entries, complete: *complete }
                }
                other => other,
            };
            Literal { kind, ..value }
        }
        LiteralKind::Each(all) => {
            each(all.iter().map(|one| as_arguments(one.clone(), tool)).collect())
        }
        LiteralKind::OneOf(all) => {
            one_of(all.iter().map(|one| as_arguments(one.clone(), tool)).collect())
        }
        _ => value,
    }
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
    let value = if is_none { Literal::unknown(value.offset) } else { without_none(value) };
    entries.push(LiteralEntry { key: name.to_owned(), offset, value });
}

/// Adds an argument that the call itself has. A `None` that is written there is sent.
fn push_written<'a>(
    entries: &mut LiteralEntries,
    tool: &ToolSignature,
    name: &str,
    argument: &'a Expr,
    offset: usize,
    values: &Values<'_, 'a, '_>,
) {
    let value = value_of(argument, values);
    let is_sent = argument.is_none_literal_expr() && !is_needed(tool, name);
    if is_sent && schema_of(tool, name).is_some_and(|schema| schema.get("nullable").is_none()) {
        entries.push(LiteralEntry { key: name.to_owned(), offset, value });
    } else {
        push(entries, tool, name, offset, value);
    }
}

fn schema_of<'t>(tool: &'t ToolSignature, name: &str) -> Option<&'t Value> {
    tool.schema.get("properties").and_then(|properties| properties.get(name))
}

/// A value that may be `None`, and so omitted.
fn without_none(value: Literal) -> Literal {
    let is_none = |one: &Literal| one.kind == LiteralKind::Null;
    match &value.kind {
        LiteralKind::Each(all) if all.iter().any(is_none) => {
            let others: Vec<Literal> = all.iter().filter(|one| !is_none(one)).cloned().collect();
            if others.is_empty() { Literal::unknown(value.offset) } else { each(others) }
        }
        LiteralKind::OneOf(all) if all.iter().any(is_none) => Literal::unknown(value.offset),
        _ => value,
    }
}

/// The value of an argument.
fn value_of<'a>(argument: &'a Expr, values: &Values<'_, 'a, '_>) -> Literal {
    Literal { offset: offset(argument), ..values.argument(argument) }
}

/// Whether a parameter is required, and takes no `null`.
fn is_needed(tool: &ToolSignature, name: &str) -> bool {
    let required = tool.schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
    let kind = schema_of(tool, name)
        .filter(|it| it.get("nullable").is_none())
        .and_then(|it| it.get("type"));
    is_required && kind.and_then(Value::as_str).is_some_and(|kind| kind != "null")
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
