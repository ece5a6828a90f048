//! Names that a script uses and does not declare.

use oxc_ast::{AstKind, ast::Expression};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::{
    Script,
    calls::{TOOLS, Way},
};
use crate::check::names::{Name, Names, Role};

/// What every engine has, whatever else it says it has.
#[rustfmt::skip]
const ALWAYS: &[&str] = &[
    "AggregateError", "Array", "ArrayBuffer", "Atomics", "BigInt", "BigInt64Array",
    "BigUint64Array", "Boolean", "DataView", "Date", "Error", "EvalError", "FinalizationRegistry",
    "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array", "Int32Array",
    "Int8Array", "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy",
    "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String",
    "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array",
    "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "arguments", "console", "decodeURI",
    "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis",
    "isFinite", "isNaN", "parseFloat", "parseInt", "undefined", "unescape",
];

/// All names that no declaration of the script binds.
pub(super) fn collect(script: &Script<'_, '_>, globals: &[&str]) -> Names {
    let mut names = Names::default();
    for (text, references) in &script.references {
        let text = *text;
        let mut name = Name::new(text == TOOLS || is_global(text, globals));
        for reference in references {
            if !reference.is_value() || reference.flags().is_value_as_type() {
                continue;
            }
            name.is_minded |= reference.is_write();
            add_use(&mut name, script, reference.node_id());
            if text == TOOLS {
                names.mentions.extend(mentioned(script, reference.node_id()));
            }
        }
        if name.is_used() || name.is_minded {
            names.free.insert(text.to_owned(), name);
        }
    }
    for call in &script.calls {
        let callee = &call.callee;
        if names.free.contains_key(&callee.name) {
            continue;
        }
        match callee.way {
            // The script may have put it there.
            Way::Global if is_global(&callee.name, globals) => {}
            Way::Global => {
                names.mentions.insert(callee.name.clone());
            }
            Way::Name | Way::Tools => {
                names.members.entry(callee.name.clone()).or_default().push(callee.offset);
            }
        }
    }
    names.is_dynamic =
        ["eval", "Function", "globalThis"].iter().any(|name| names.free.contains_key(*name));
    names
}

fn is_global(name: &str, globals: &[&str]) -> bool {
    globals.contains(&name) || ALWAYS.contains(&name)
}

/// The tool that is asked for where the object of all tools is used: `tools.name`, `"name" in tools`.
fn mentioned(script: &Script<'_, '_>, node: NodeId) -> Option<String> {
    let text = |expression: &Expression<'_>| match expression.get_inner_expression() {
        Expression::StringLiteral(name) => Some(name.value.to_string()),
        _ => None,
    };
    let span = script.semantic.nodes().kind(node).span();
    match script.semantic.nodes().parent_kind(node) {
        AstKind::StaticMemberExpression(member) => Some(member.property.name.to_string()),
        AstKind::ComputedMemberExpression(member) if member.object.span() == span => {
            text(&member.expression)
        }
        AstKind::BinaryExpression(binary) if binary.operator == BinaryOperator::In => {
            text(&binary.left)
        }
        _ => None,
    }
}

fn add_use(name: &mut Name, script: &Script<'_, '_>, node: NodeId) {
    let nodes = script.semantic.nodes();
    let span = nodes.kind(node).span();
    let parent = nodes.parent_id(node);
    let role = match nodes.kind(parent) {
        AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof => {
            name.is_minded = true;
            return;
        }
        AstKind::CallExpression(call) if call.callee.span() == span => Role::Called,
        AstKind::StaticMemberExpression(member) => match nodes.parent_kind(parent) {
            AstKind::CallExpression(call) if call.callee.span() == member.span => {
                Role::MethodCalled(member.property.name.to_string())
            }
            _ => Role::Read,
        },
        _ => Role::Read,
    };
    name.add(span.start as usize, role);
}
