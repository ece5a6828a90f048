//! Tool calls: the callee and the arguments.

use oxc_ast::ast::{Argument, CallExpression, Expression, IdentifierReference};
use oxc_span::GetSpan;

use super::{ParsedScript, TypeScriptCall, literals::Literals};
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
            Expression::StaticMemberExpression(member) => {
                let path = path_through(&member.object, script)?;
                Some(Self::at(member.property.name.as_str(), member.property.span.start, path))
            }
            Expression::ComputedMemberExpression(member) => {
                let path = path_through(&member.object, script)?;
                match member.expression.get_inner_expression() {
                    Expression::StringLiteral(name) => {
                        Some(Self::at(name.value.as_str(), name.span.start, path))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn at(name: &str, offset: u32, path: CalleePath) -> Self {
        Self { name: name.to_owned(), offset: offset as usize, path }
    }
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

/// Checks the arguments of a call.
pub(super) fn check(
    call: &TypeScriptCall<'_, '_>,
    script: &ParsedScript<'_, '_>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    let Some(tool) = tools.tool(&call.callee.name) else { return };
    let given = &call.expression.arguments;
    if given.iter().any(Argument::is_spread) {
        return;
    }
    let offset = call.callee.offset;
    if takes_positions(&tool.name) {
        check_positions(tool, call, script, tools, report);
        return;
    }
    let literal = match given.first() {
        None => no_arguments(offset),
        Some(first) => {
            let Some(expression) = first.as_expression() else { return };
            Literals::new(script).read(expression)
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
    match literal.kind {
        LiteralKind::Unknown | LiteralKind::Undefined => {}
        LiteralKind::Object { .. } => {
            check_arguments(tool, &literal, offset, Language::TypeScript, &tools.budget, report);
        }
        LiteralKind::Null
        | LiteralKind::Boolean(_)
        | LiteralKind::Number(_)
        | LiteralKind::Text(_)
        | LiteralKind::Array { .. } => {
            let message = format!("`{}` takes one object", cut(&tool.name));
            report.error(literal.offset, message, usage(tool));
        }
    }
}

/// Checks arguments that are passed by position.
fn check_positions(
    tool: &ToolSignature,
    call: &TypeScriptCall<'_, '_>,
    script: &ParsedScript<'_, '_>,
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    let mut entries = LiteralEntries::default();
    for (index, argument) in call.expression.arguments.iter().enumerate() {
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
        let value = Literals::new(script).read(expression);
        if !matches!(value.kind, LiteralKind::Undefined) {
            entries.push(LiteralEntry { key: name.clone(), offset: at, value });
        }
    }
    let offset = call.callee.offset;
    let arguments = Literal { offset, kind: entries.finish() };
    check_arguments(tool, &arguments, offset, Language::TypeScript, &tools.budget, report);
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
