//! Checks TypeScript and JavaScript scripts.

mod annotations;
mod calls;
mod entry;
mod literals;
mod names;
mod promises;
mod reads;
mod strip;
mod translate;
mod values;

use std::{collections::HashSet, ops::Range};

use oxc_allocator::Allocator;
use oxc_ast::{
    AstKind,
    ast::{CallExpression, Expression, Program},
};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::{NodeId, Reference, Semantic, SemanticBuilder, SymbolId};
use oxc_span::{GetSpan as _, SourceType, Span};

pub use self::literals::NOT_RETURNED;
use self::{
    calls::Callee,
    values::{Conditions, Values},
};
use super::{
    Language, LanguageCheck, ModuleShape,
    finding::FindingCollector,
    flow,
    lookup::{Lookup, ToolTable},
    names::{NameContext, report_hiding_variables},
    positions::SourcePositions,
    python, wording,
};

/// The number of syntax errors that are reported. Later ones are usually caused by the first.
const MAX_SYNTAX_ERRORS: usize = 3;

pub(super) fn check(
    text: &str,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
    report: &mut FindingCollector<'_>,
) -> Option<LanguageCheck> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text);
    let is_read = !parsed.panicked && parsed.diagnostics.is_empty();
    let meant = if is_read {
        entry::meant(&parsed.program, text)
    } else {
        entry::nameless(text).filter(|meant| parses(&meant.text))
    };
    let Some(meant) = meant else {
        return check_parsed(text, &parsed, globals, modules, lookup, report);
    };
    report.inserted = meant.inserted;
    let allocator = Allocator::default();
    let parsed = parse(&allocator, &meant.text);
    let mut checked = check_parsed(&meant.text, &parsed, globals, modules, lookup, report)?;
    checked.positions.add(&meant.text, text, &meant.changes);
    checked.source.get_or_insert(meant.text);
    Some(checked)
}

fn check_parsed(
    text: &str,
    parsed: &ParserReturn<'_>,
    globals: &[&str],
    modules: &[&str],
    lookup: &mut dyn Lookup,
    report: &mut FindingCollector<'_>,
) -> Option<LanguageCheck> {
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        let hint = other_language(text);
        for error in parsed.diagnostics.iter().take(MAX_SYNTAX_ERRORS) {
            let offset = error.labels.first().map_or(0, |label| label.offset() as usize);
            // For a script in the other language, the suggestions of the parser do not help.
            let help = hint.clone().or_else(|| error.help.as_deref().map(str::to_owned));
            report.error(offset, format!("syntax error: {}", error.message), help);
        }
        if parsed.diagnostics.is_empty() {
            report.error(0, "this cannot be read as TypeScript", hint);
        }
        return None;
    }
    let built = SemanticBuilder::new()
        .with_build_nodes(true)
        .with_check_syntax_error(true)
        .build(&parsed.program);
    if !built.diagnostics.is_empty() {
        for error in built.diagnostics.iter().take(MAX_SYNTAX_ERRORS) {
            // If two declarations collide, the second one is reported.
            let offset = error.labels.iter().map(|label| label.offset() as usize).max();
            let offset = offset.unwrap_or_default();
            let help = error.help.as_deref().map(str::to_owned);
            report.error(offset, format!("syntax error: {}", error.message), help);
        }
        return None;
    }
    if let Some(offset) = html_comment(&parsed.program, &built.semantic, text) {
        let message = "syntax error: the engine takes `<!--` for the start of a comment";
        report.error(offset, message, "write `//`, or a space after `<`".to_owned());
        return None;
    }
    let script = ParsedScript::new(&built.semantic);
    report.unused = unused(&built.semantic);
    names::check_modules(&parsed.program, &script, modules, report);
    let conditions = Conditions::of(&script);
    let mut names = names::collect(&script, globals, modules, &conditions);
    let hidings = literals::collect_hidings(&script);
    names.mentions.extend(hidings.iter().map(|hiding| hiding.name.clone()));
    let knowledge = NameContext {
        language: Language::TypeScript,
        advice: names::advice,
        modules: &[],
        own: built.semantic.scoping().symbol_names().collect(),
    };
    let tools = ToolTable::look_up(&names.names_to_look_up(&knowledge), lookup);
    names.report(&knowledge, &tools, report);
    report_hiding_variables(&hidings, &tools, report);
    let own: Vec<&TypeScriptCall<'_, '_>> =
        script.calls.iter().filter(|call| tools.tool(&call.callee.name).is_some()).collect();
    let values = Values::new(&script, &tools, conditions);
    for node in script.semantic.nodes().iter() {
        if let AstKind::CallExpression(call) = node.kind()
            && let Some(tool) = values.tool_of(call)
        {
            let name = Callee::of(call, &script).map(|callee| callee.offset);
            let offset = name.unwrap_or(call.span.start as usize);
            calls::check(tool, call, offset, &values, &tools, report);
        }
    }
    reads::check(&script, &values, report);
    promises::check(&own, &script, report);
    literals::check_value(&parsed.program, &script, report);
    let analysis = flow::analyse(translate::translate(&parsed.program, &script), &tools, text);
    let replaced = names::module_calls(&script, modules);
    let stripped = strip::strip(&parsed.program, text, &analysis.marks, &replaced);
    let mut positions = SourcePositions::default();
    let source = stripped.map(|(source, changes)| {
        positions.add(&source, text, &changes);
        source
    });
    Some(LanguageCheck {
        source,
        positions,
        tools: tools.used(names.tool_names()),
        flow: analysis.flow,
        flow_steps: analysis.steps,
        places: analysis.marks.into_iter().map(|mark| mark.place).collect(),
        module: ModuleShape::default(),
    })
}

/// Where the functions are that nothing in the script refers to, and the methods of such classes.
fn unused(semantic: &Semantic<'_>) -> Vec<Range<usize>> {
    let (scoping, nodes) = (semantic.scoping(), semantic.nodes());
    let is_unused = |symbol| scoping.get_resolved_references(symbol).next().is_none();
    let of_node = |kind: AstKind<'_>| match kind {
        AstKind::Function(function) if function.is_function_declaration() => {
            let symbol = function.id.as_ref()?.symbol_id.get()?;
            is_unused(symbol).then_some(function.span)
        }
        AstKind::VariableDeclarator(variable) => {
            let symbol = variable.id.get_binding_identifier()?.symbol_id.get()?;
            let init = variable.init.as_ref()?;
            let is_function = matches!(
                init,
                Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
            );
            (is_function && is_unused(symbol)).then(|| init.span())
        }
        AstKind::MethodDefinition(method) => {
            let id = nodes.ancestor_kinds(method.node_id.get()).find_map(|kind| match kind {
                AstKind::Class(class) => Some(class.id.as_ref().filter(|_| class.is_declaration())),
                _ => None,
            })??;
            is_unused(id.symbol_id.get()?).then(|| method.value.span)
        }
        _ => None,
    };
    let unused = nodes.iter().filter_map(|node| of_node(node.kind()));
    unused.map(|span| span.start as usize..span.end as usize).collect()
}

/// A parsed script, and the calls in it that may be calls of tools.
struct ParsedScript<'s, 'a> {
    semantic: &'s Semantic<'a>,
    calls: Vec<TypeScriptCall<'s, 'a>>,
    /// The uses of names that the script does not declare, by name.
    references: Vec<(&'s str, Vec<&'s Reference>)>,
    /// The same uses, by node.
    free: HashSet<NodeId>,
}

/// A call of a name that the script does not declare.
struct TypeScriptCall<'s, 'a> {
    node: NodeId,
    expression: &'s CallExpression<'a>,
    callee: Callee,
}

impl<'s, 'a: 's> ParsedScript<'s, 'a> {
    fn new(semantic: &'s Semantic<'a>) -> Self {
        let scoping = semantic.scoping();
        let unresolved = scoping.root_unresolved_references().iter().map(|(name, references)| {
            let references = references.iter().map(|id| scoping.get_reference(*id));
            (name.as_str(), references.collect())
        });
        // Ambient declarations, such as those of tools, bind nothing.
        let ambient = scoping.symbol_ids().filter(|symbol| is_ambient(semantic, *symbol));
        let declared = ambient.map(|symbol| {
            (scoping.symbol_name(symbol), scoping.get_resolved_references(symbol).collect())
        });
        let references: Vec<(&str, Vec<&Reference>)> = unresolved.chain(declared).collect();
        let all = references.iter().flat_map(|(_, references)| references);
        let free = all.map(|reference| reference.node_id()).collect();
        let mut script = Self { semantic, calls: Vec::new(), references, free };
        for node in semantic.nodes().iter() {
            if let AstKind::CallExpression(expression) = node.kind()
                && let Some(callee) = Callee::of(expression, &script)
            {
                script.calls.push(TypeScriptCall { node: node.id(), expression, callee });
            }
        }
        script
    }
}

/// Whether a name is declared only for types, without a value at run time.
fn is_ambient(semantic: &Semantic<'_>, symbol: SymbolId) -> bool {
    let nodes = semantic.nodes();
    let scoping = semantic.scoping();
    let is_declared = |declaration: NodeId| match nodes.kind(declaration) {
        AstKind::Function(function) => function.body.is_none(),
        AstKind::Class(class) => class.declare,
        AstKind::VariableDeclarator(_) => matches!(
            nodes.parent_kind(declaration),
            AstKind::VariableDeclaration(variable) if variable.declare
        ),
        _ => false,
    };
    is_declared(scoping.symbol_declaration(symbol))
        && scoping.symbol_declarations(symbol).all(is_declared)
}

/// Where a comment of HTML begins. To the engine the rest of the line is a comment, to the parser it
/// is code.
fn html_comment(program: &Program<'_>, semantic: &Semantic<'_>, text: &str) -> Option<usize> {
    let mut found: Vec<usize> = memchr::memmem::find_iter(text.as_bytes(), b"<!--").collect();
    if found.is_empty() {
        return None;
    }
    let is_in = |span: Span, at: usize| (span.start as usize) <= at && at < span.end as usize;
    found.retain(|at| !program.comments.iter().any(|comment| is_in(comment.span, *at)));
    for node in semantic.nodes().iter() {
        if let AstKind::StringLiteral(_)
        | AstKind::TemplateElement(_)
        | AstKind::RegExpLiteral(_)
        | AstKind::Directive(_) = node.kind()
        {
            let span = node.kind().span();
            found.retain(|at| !is_in(span, *at));
        }
    }
    found.first().copied()
}

/// A hint if the script is written in the other language.
fn other_language(text: &str) -> Option<String> {
    (python::parses(text) || python::looks_like(text)).then(|| {
        format!("it reads as Python: set `language` to \"{}\"", wording::name(Language::Python))
    })
}

/// Whether a text has something that only TypeScript and JavaScript have.
pub(super) fn looks_like(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "//",
        "/*",
        "const ",
        "let ",
        "var ",
        "function ",
        "async function ",
        "export ",
        "interface ",
        "await tools.",
        "}",
        "for (",
        "if (",
        "while (",
        "new ",
        "import {",
    ];
    const PARTS: &[&str] = &["=>", "===", "!==", "console.", "({", "${", " || ", " && ", "?."];
    text.lines().map(str::trim).any(|line| {
        STARTS.iter().any(|start| line.starts_with(start))
            || PARTS.iter().any(|part| line.contains(part))
            || line.ends_with(';')
            || line.ends_with('{')
    })
}

/// Whether a text parses as TypeScript.
pub(super) fn parses(text: &str) -> bool {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text);
    !parsed.panicked && parsed.diagnostics.is_empty()
}

/// Parses a module, for top-level `await`. The engine makes an async function of it, for `return`.
pub(super) fn parse<'a>(allocator: &'a Allocator, text: &'a str) -> ParserReturn<'a> {
    let kind = SourceType::ts().with_module(true);
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    Parser::new(allocator, text, kind).with_options(options).parse()
}
