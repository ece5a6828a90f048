//! Names that a script uses but does not declare.

use oxc_ast::{
    AstKind,
    ast::{Expression, ImportOrExportKind, Program, Statement},
};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::{
    ParsedScript,
    calls::{CalleePath, TOOLS},
    values::Conditions,
};
use crate::check::{
    finding::FindingCollector,
    names::{Advice, NameRole, UndeclaredName, UndeclaredNames},
    wording::cut,
};

/// The globals of every engine, whatever else it provides.
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

/// Collects the names that the script does not declare.
pub(super) fn collect(
    script: &ParsedScript<'_, '_>,
    globals: &[&str],
    modules: &[&str],
    conditions: &Conditions,
) -> UndeclaredNames {
    let mut names = UndeclaredNames::default();
    for (text, references) in &script.references {
        let text = *text;
        let mut name = UndeclaredName::new(text == TOOLS || is_global(text, globals));
        for reference in references {
            if !reference.is_value() || reference.flags().is_value_as_type() {
                continue;
            }
            name.is_intentional |= reference.is_write();
            let span = script.semantic.nodes().kind(reference.node_id()).span();
            if conditions.is_dead(span.start) {
                names.mentions.insert(text.to_owned());
                continue;
            }
            if text == "require" && required(script, reference.node_id(), modules).is_some() {
                continue;
            }
            add_use(&mut name, script, reference.node_id());
            if text == TOOLS {
                names.mentions.extend(mentioned(script, reference.node_id()));
            }
        }
        // A call that loads a module is no use that has to be reported.
        if name.is_used() || name.is_intentional || text == "require" {
            names.free.insert(text.to_owned(), name);
        }
    }
    for call in &script.calls {
        let callee = &call.callee;
        if names.free.contains_key(&callee.name) {
            continue;
        }
        match callee.path {
            _ if conditions.is_dead(call.expression.span.start) => {
                names.mentions.insert(callee.name.clone());
            }
            // The script may have defined it.
            CalleePath::Global if is_global(&callee.name, globals) => {}
            CalleePath::Global => {
                names.mentions.insert(callee.name.clone());
            }
            CalleePath::Name | CalleePath::Tools => {
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

/// The tool that a use of `tools` mentions: `tools.name`, `"name" in tools`.
fn mentioned(script: &ParsedScript<'_, '_>, node: NodeId) -> Option<String> {
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

fn add_use(name: &mut UndeclaredName, script: &ParsedScript<'_, '_>, node: NodeId) {
    let nodes = script.semantic.nodes();
    let span = nodes.kind(node).span();
    let parent = nodes.parent_id(node);
    let role = match nodes.kind(parent) {
        AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof => {
            name.is_intentional = true;
            return;
        }
        AstKind::CallExpression(call) if call.callee.span() == span => NameRole::Called,
        AstKind::StaticMemberExpression(member) => match nodes.parent_kind(parent) {
            AstKind::CallExpression(call) if call.callee.span() == member.span => {
                NameRole::MethodCalled(member.property.name.to_string())
            }
            _ => NameRole::Read,
        },
        _ => NameRole::Read,
    };
    name.add(span.start as usize, role);
}

/// The module of a source such as `node:crypto`, if there is one.
fn module<'m>(source: &Expression<'_>, modules: &[&'m str]) -> Option<&'m str> {
    match source.get_inner_expression() {
        Expression::StringLiteral(source) => known_module(source.value.as_str(), modules),
        _ => None,
    }
}

fn known_module<'m>(source: &str, modules: &[&'m str]) -> Option<&'m str> {
    let name = source.strip_prefix("node:").unwrap_or(source);
    modules.iter().copied().find(|module| *module == name)
}

/// The module and the position of `require("module")`, if `node` is that `require`.
fn required<'m>(
    script: &ParsedScript<'_, '_>,
    node: NodeId,
    modules: &[&'m str],
) -> Option<(&'m str, oxc_span::Span)> {
    let nodes = script.semantic.nodes();
    match nodes.parent_kind(node) {
        AstKind::CallExpression(call) if call.callee.span() == nodes.kind(node).span() => {
            let source = call.arguments.first()?.as_expression()?;
            Some((module(source, modules)?, call.span))
        }
        _ => None,
    }
}

/// The calls of `require` and `import` that load a module, with what stands in their places.
pub(super) fn module_calls(
    script: &ParsedScript<'_, '_>,
    modules: &[&str],
) -> Vec<(oxc_span::Span, String)> {
    let mut calls = Vec::new();
    for (name, references) in &script.references {
        if *name == "require" {
            let found = references.iter().filter_map(|it| required(script, it.node_id(), modules));
            calls.extend(found.map(|(module, span)| (span, loaded_module(module))));
        }
    }
    for node in script.semantic.nodes().iter() {
        if let AstKind::ImportExpression(import) = node.kind()
            && let Some(module) = module(&import.source, modules)
        {
            calls.push((import.span, format!("Promise.resolve({})", loaded_module(module))));
        }
    }
    calls
}

/// What loads a module at run time.
pub(super) fn loaded_module(module: &str) -> String {
    format!("process.getBuiltinModule({})", serde_json::Value::from(module))
}

/// Reports imports, exports and decorators.
pub(super) fn check_modules(
    program: &Program<'_>,
    script: &ParsedScript<'_, '_>,
    modules: &[&str],
    report: &mut FindingCollector<'_>,
) {
    for statement in &program.body {
        let (message, hint) = match statement {
            Statement::ImportDeclaration(import)
                if import.import_kind == ImportOrExportKind::Value =>
            {
                if known_module(&import.source.value, modules).is_some() {
                    continue;
                }
                let name = cut(&import.source.value);
                (format!("there is no module `{name}`"), NO_IMPORT)
            }
            Statement::TSImportEqualsDeclaration(_) => (NO_MODULES.to_owned(), NO_IMPORT),
            Statement::ExportFromDeclaration(_) | Statement::ExportAllDeclaration(_) => {
                (NO_MODULES.to_owned(), NO_IMPORT)
            }
            // Those that remain cannot be understood as the value of the script.
            Statement::ExportDefaultDeclaration(_) | Statement::TSExportAssignment(_) => {
                ("a script exports nothing".to_owned(), RETURN_A_VALUE)
            }
            _ => continue,
        };
        report.error(statement.span().start as usize, message, hint.to_owned());
    }
    for node in script.semantic.nodes().iter() {
        let (message, hint) = match node.kind() {
            AstKind::ImportExpression(import) if module(&import.source, modules).is_none() => {
                (NO_MODULES, NO_IMPORT)
            }
            AstKind::Decorator(_) => {
                ("decorators are not understood", "call the function yourself")
            }
            _ => continue,
        };
        report.error(node.kind().span().start as usize, message, hint.to_owned());
    }
}

const NO_MODULES: &str = "a script has no modules but some of Node";
const NO_IMPORT: &str = "all tools are functions already: call them without an import; what a \
                         library would do, write yourself";
const RETURN_A_VALUE: &str = "end with `return` and the value";

/// The advice about a name that is known from Node, Deno or browsers.
pub(super) fn advice(name: &str, _: &NameRole) -> Option<Advice> {
    let (is_stub, message, hint) = match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => (true, NETWORK, CALL_A_TOOL),
        "axios" | "got" | "ky" | "superagent" | "request" => (false, NETWORK, CALL_A_TOOL),
        "require" => (true, NO_MODULES, NO_REQUIRE),
        // Engines provide a part of it, so there is no finding.
        "process" => (false, SYSTEM, PROCESS),
        "Deno" | "Bun" => (true, SYSTEM, PROCESS),
        "fs" | "child_process" | "os" => (false, SYSTEM, CALL_A_TOOL),
        "path" => (false, NO_MODULES, "write the path as text"),
        "Temporal" => (
            false,
            "there is no `Temporal`",
            "use `Date` and `Intl.DateTimeFormat` with a `timeZone`",
        ),
        "window" | "document" | "localStorage" | "sessionStorage" | "alert" | "prompt"
        | "navigator" => {
            (false, "a script runs in no browser", "`return` the result, or `console.log` it")
        }
        "module" | "exports" | "__dirname" | "__filename" => {
            (false, "a script is not a module", RETURN_A_VALUE)
        }
        "print" => (
            false,
            "there is no `print`",
            "write `console.log(…)`; if it is Python, set `language` to \"python\"",
        ),
        "mcp" | "client" | "server" => (
            false,
            "there is no client to call tools with",
            "call tools as functions: `name({ … })`",
        ),
        "callTool" => (
            false,
            "there is no `callTool`",
            "call tools as functions: `name({ … })`; `await call_tool({ name, arguments })` calls \
             one by its name",
        ),
        "_" | "lodash" | "moment" | "dayjs" => {
            (false, "a script has no libraries", "write what it would do yourself")
        }
        _ => return None,
    };
    Some(Advice { message, hint, is_stub, is_import: false })
}

const NETWORK: &str = "a script has no network";
const SYSTEM: &str = "a script has no files, no processes and no environment";
const CALL_A_TOOL: &str = "call a tool; `await search_tools({ query })` finds one";
const PROCESS: &str = "call a tool; end with `return` and the value";
const NO_REQUIRE: &str = "all tools are functions already: call them without `require`";
