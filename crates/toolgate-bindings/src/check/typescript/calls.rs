//! Tool calls: the callee and the arguments.

use oxc_ast::ast::{Argument, CallExpression, Expression, IdentifierReference};
use oxc_span::GetSpan;

use super::{ParsedScript, values::Values};
use crate::check::{
    CheckSeverity, Language,
    finding::FindingCollector,
    literal::{Literal, LiteralEntries, LiteralEntry, LiteralKind},
    lookup::{ToolSignature, ToolTable, check_arguments, no_arguments, takes_positions},
    wording::cut,
};

/// The object with all tools as its properties.
pub(super) const TOOLS: &str = "tools";

/// The callee of a call.
pub(super) struct Callee {
    pub(super) name: String,
    /// The position of the name.
    pub(super) offset: usize,
    pub(super) path: CalleePath,
}

/// How a call refers to its callee.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CalleePath {
    /// `name(…)`.
    Name,
    /// `tools.name(…)`.
    Tools,
    /// `globalThis.name(…)`.
    Global,
}

impl Callee {
    /// The callee, unless the script itself declares it.
    pub(super) fn of(call: &CallExpression<'_>, script: &ParsedScript<'_, '_>) -> Option<Self> {
        match call.callee.get_inner_expression() {
            Expression::Identifier(identifier) if is_free(identifier, script) => {
                Some(Self::at(identifier.name.as_str(), identifier.span.start, CalleePath::Name))
            }
            callee => {
                let (object, name, offset) = named_part(callee)?;
                if let Some(path) = path_through(object, script) {
                    return Some(Self::at(name, offset, path));
                }
                let name = name_of_server_tool(object, name, script)?;
                Some(Self::at(&name, offset, CalleePath::Tools))
            }
        }
    }

    fn at(name: &str, offset: u32, path: CalleePath) -> Self {
        Self { name: name.to_owned(), offset: offset as usize, path }
    }
}

/// The object, name and position of `object.name` or `object["name"]`.
pub(super) fn named_part<'e, 'a>(
    expression: &'e Expression<'a>,
) -> Option<(&'e Expression<'a>, &'e str, u32)> {
    match expression.get_inner_expression() {
        Expression::StaticMemberExpression(member) => {
            Some((&member.object, member.property.name.as_str(), member.property.span.start))
        }
        Expression::ComputedMemberExpression(member) => {
            match member.expression.get_inner_expression() {
                Expression::StringLiteral(name) => {
                    Some((&member.object, name.value.as_str(), name.span.start))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What every function has: no parts of a server.
const FUNCTION_PARTS: &[&str] = &[
    "apply",
    "arguments",
    "bind",
    "call",
    "caller",
    "catch",
    "constructor",
    "finally",
    "length",
    "name",
    "prototype",
    "then",
    "toJSON",
    "toString",
    "valueOf",
];

/// The tool of `tools.server.tool`, if `object` is `tools.server`.
pub(super) fn name_of_server_tool(
    object: &Expression<'_>,
    name: &str,
    script: &ParsedScript<'_, '_>,
) -> Option<String> {
    let (tools, server, _) = named_part(object)?;
    let is_tools = path_through(tools, script) == Some(CalleePath::Tools);
    if !is_tools || FUNCTION_PARTS.contains(&name) {
        return None;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    Some(format!("{server}_{name}").replace(|c| !is_part(c), "_"))
}

pub(super) fn is_free(identifier: &IdentifierReference<'_>, script: &ParsedScript<'_, '_>) -> bool {
    script.free.contains(&identifier.node_id.get())
}

/// The path for a callee that is a property of `object`.
fn path_through(object: &Expression<'_>, script: &ParsedScript<'_, '_>) -> Option<CalleePath> {
    match object.get_inner_expression() {
        Expression::Identifier(identifier) if is_free(identifier, script) => {
            match identifier.name.as_str() {
                TOOLS => Some(CalleePath::Tools),
                "globalThis" => Some(CalleePath::Global),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Checks the arguments of a call of a tool. `offset` is the position of its name.
pub(super) fn check<'a>(
    tool: &ToolSignature,
    call: &CallExpression<'a>,
    offset: usize,
    values: &Values<'_, 'a>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    let given = &call.arguments;
    let is_dead = values.conditions.is_dead(call.span.start);
    if given.iter().any(Argument::is_spread) || is_dead {
        return;
    }
    let literal = given.first().and_then(Argument::as_expression);
    let literal = literal.map(|expression| values.read(expression));
    let is_object = literal.is_some_and(|first| matches!(first.kind, LiteralKind::Object { .. }));
    // Those whose first argument is a text also take one object, as the meta-tool does.
    if takes_positions(&tool.name) && !(is_object && tool.name != "extract") {
        check_positions(tool, call, offset, values, tools, report);
        return;
    }
    let literal = match given.first() {
        None => no_arguments(offset),
        Some(first) => {
            let Some(expression) = first.as_expression() else { return };
            values.read(expression)
        }
    };
    if let Some(second) = given.get(1) {
        // A first argument that is an object works; the others are ignored.
        let severity = match literal.kind {
            LiteralKind::Object { .. } | LiteralKind::Unknown => CheckSeverity::Warning,
            _ => CheckSeverity::Error,
        };
        let message =
            format!("`{}` takes one object, not {} arguments", cut(&tool.name), given.len());
        report.add(severity, second.span().start as usize, message, usage(tool));
        if severity == CheckSeverity::Error {
            return;
        }
    }
    let literal = match literal.kind {
        LiteralKind::Undefined => no_arguments(offset),
        _ => literal,
    };
    let first = given.first().and_then(Argument::as_expression);
    let named = first.map(|first| values.own_keys(first)).unwrap_or_default();
    let check = |literal: &Literal, report: &mut FindingCollector<'_>| {
        let language = Language::TypeScript;
        check_arguments(tool, literal, &named, offset, language, &tools.budget, report);
    };
    match &literal.kind {
        LiteralKind::Unknown | LiteralKind::Undefined | LiteralKind::Promise(_) => {}
        LiteralKind::Object { .. } | LiteralKind::OneOf(_) => check(&literal, report),
        LiteralKind::Each(all) => {
            let objects = all.iter().filter(|one| matches!(one.kind, LiteralKind::Object { .. }));
            objects.for_each(|one| check(one, report));
        }
        LiteralKind::Null
        | LiteralKind::Boolean(_)
        | LiteralKind::Number(_)
        | LiteralKind::SomeNumber
        | LiteralKind::Text(_)
        | LiteralKind::ListOf(_)
        | LiteralKind::Array { .. } => {
            let message = format!("`{}` takes one object", cut(&tool.name));
            report.error(literal.offset, message, usage(tool));
        }
    }
}

/// Checks arguments that are passed by position.
fn check_positions<'a>(
    tool: &ToolSignature,
    call: &CallExpression<'a>,
    offset: usize,
    values: &Values<'_, 'a>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    let mut entries = LiteralEntries::default();
    for (index, argument) in call.arguments.iter().enumerate() {
        let Some(expression) = argument.as_expression() else { return };
        let at = argument.span().start as usize;
        let Some(name) = tool.parameters.get(index) else {
            let message = format!(
                "`{}` takes {} arguments, and this is number {}",
                cut(&tool.name),
                tool.parameters.len(),
                index + 1
            );
            let shown = tool.parameters.join(", ");
            report.error(at, message, Some(format!("write `{}({shown})`", tool.name)));
            return;
        };
        let value = values.read(expression);
        if !matches!(value.kind, LiteralKind::Undefined) {
            entries.push(LiteralEntry { key: name.clone(), offset: at, value });
        }
    }
    let arguments = Literal::new(offset, entries.finish());
    check_arguments(tool, &arguments, &[], offset, Language::TypeScript, &tools.budget, report);
}

fn usage(tool: &ToolSignature) -> Option<String> {
    let shown: Vec<String> = tool.parameters.iter().take(6).map(|name| cut(name)).collect();
    let more = if tool.parameters.len() > shown.len() { ", …" } else { "" };
    match shown.as_slice() {
        [] => None,
        [one] => Some(format!("write `{}({{ {one}: … }})`", tool.name)),
        _ => Some(format!("write `{}({{ {}{more} }})`", tool.name, shown.join(", "))),
    }
}
