//! Scripts that only define a function, or export one: the function is called, and what it returns
//! is the value of the script.

use std::{borrow::Cow, ops::Range};

use oxc_ast::ast::{
    BindingIdentifier, BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression,
    FormalParameter, FormalParameters, Function, ObjectPattern, Program, Statement,
    VariableDeclaration,
};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, Span};

use crate::check::positions::TextChange;

/// A script as it is meant.
pub(super) struct MeantScript {
    pub(super) text: String,
    /// Where text was inserted before other text of its line, and how much.
    pub(super) inserted: Option<(usize, usize)>,
    /// What was inserted.
    pub(super) changes: Vec<TextChange>,
}

impl MeantScript {
    /// A text with insertions: before which offset of the original each stands, and how long it is.
    fn new(text: String, insertions: &[(usize, usize)]) -> Self {
        let mut moved = 0;
        let change = |&(at, length): &(usize, usize)| {
            let start = at + moved;
            moved += length;
            TextChange { new: start..start + length, old: at..at, has_meaning: false }
        };
        let changes = insertions.iter().map(change).collect();
        Self { text, inserted: None, changes }
    }

    /// The same, where the first insertion stands before other text of its line.
    fn moved(text: String, insertions: &[(usize, usize)]) -> Self {
        Self { inserted: insertions.first().copied(), ..Self::new(text, insertions) }
    }
}

/// The name of a function that is exported without one.
const NAMELESS: &str = "$main";
/// The names of functions that are meant to be called.
const ENTRY_NAMES: &[&str] = &["main", "run", "handler", "execute", "script"];

/// The script with a call of the function that it defines; `None` if it is a script as it is. Lines
/// keep their numbers.
pub(super) fn meant(program: &Program<'_>, text: &str) -> Option<MeantScript> {
    let last = program.body.last()?.span().end as usize;
    if let Some(function) = only_function(program) {
        return Some(called_in_place(function, text));
    }
    if let Some(call) = only_call(program) {
        return Some(returned(call, text));
    }
    let mut edited = text.to_owned();
    let append = if let Some(export) = default_export(program) {
        edit_default(&mut edited, &export)?
    } else {
        let (name, arguments) = entry(program)?;
        format!(";return {name}({arguments});")
    };
    // The edit of an export keeps the length of the text before it.
    let at = last + (edited.len() - text.len());
    edited.insert_str(at, &append);
    Some(MeantScript::new(edited, &[(at, append.len())]))
}

/// A script that is one function without a name, which does not parse as a statement.
pub(super) fn nameless(text: &str) -> Option<MeantScript> {
    let body = text.trim();
    let rest = body.strip_prefix("async").map_or(body, str::trim_start);
    let parameters = rest.strip_prefix("function")?.trim_start().strip_prefix('(')?.trim_start();
    let word = parameters.split(|c: char| !is_of_name(c)).next().unwrap_or_default();
    let given = match parameters.chars().next() {
        Some('{') => "{tools}".to_owned(),
        _ if word.is_empty() => String::new(),
        _ => named_argument(word, text).to_owned(),
    };
    let start = text.len() - text.trim_start().len();
    let end = start + body.trim_end_matches(';').len();
    Some(called(text, start..end, &given))
}

/// What stands before a function that is called in its place.
const BEFORE: &str = "return(";

/// A script that is one function expression.
fn only_function<'p, 'a>(program: &'p Program<'a>) -> Option<&'p Expression<'a>> {
    let mut statements = program.body.iter().filter(|statement| !is_type(statement));
    let (Some(Statement::ExpressionStatement(only)), None) = (statements.next(), statements.next())
    else {
        return None;
    };
    is_function(&only.expression).then_some(&only.expression)
}

fn called_in_place(function: &Expression<'_>, text: &str) -> MeantScript {
    let Span { start, end, .. } = function.span();
    let (start, end) = (start as usize, end as usize);
    let given = parameters(function).map(|given| arguments(given, text)).unwrap_or_default();
    called(text, start..end, &given)
}

/// The script with a call of the function in a range of it.
fn called(text: &str, function: Range<usize>, given: &str) -> MeantScript {
    let Range { start, end } = function;
    let after = format!(")({given})");
    let called = format!("{}{BEFORE}{}{after}{}", &text[..start], &text[start..end], &text[end..]);
    let mut called = MeantScript::moved(called, &[(start, BEFORE.len()), (end, after.len())]);
    // The engine notes the call at the end of the function.
    if let Some(TextChange { new, old, .. }) = called.changes.last_mut() {
        (new.start, old.start) = (new.start - 1, old.start - 1);
    }
    called
}

/// The call of a function with which a script ends that only defines functions otherwise: what it
/// returns is the value of the script.
fn only_call<'p, 'a>(program: &'p Program<'a>) -> Option<&'p Expression<'a>> {
    let (last, others) = program.body.split_last()?;
    let Statement::ExpressionStatement(last) = last else { return None };
    let call = match last.expression.get_inner_expression() {
        Expression::AwaitExpression(awaited) => awaited.argument.get_inner_expression(),
        other => other,
    };
    let Expression::CallExpression(call) = call else { return None };
    let mut callee = call.callee.get_inner_expression();
    while let Expression::StaticMemberExpression(member) = callee
        && ["then", "catch", "finally"].contains(&member.property.name.as_str())
        && let Expression::CallExpression(call) = member.object.get_inner_expression()
    {
        callee = call.callee.get_inner_expression();
    }
    let is_own = match callee {
        Expression::Identifier(name) => others.iter().any(|statement| {
            let found = Definition::of_statement(statement);
            found.is_some_and(|function| function.id.name == name.name)
        }),
        function => others.iter().all(is_type) && is_function(function),
    };
    let is_definition = |statement: &Statement<'_>| {
        Definition::of_statement(statement).is_some() || is_quiet(statement, program.source_text)
    };
    (is_own && others.iter().all(is_definition)).then_some(&last.expression)
}

fn returned(value: &Expression<'_>, text: &str) -> MeantScript {
    const RETURN: &str = "return ";
    let start = value.span().start as usize;
    // A comment or a bracket may stand before it.
    let mut text = text.to_owned();
    text.insert_str(start, RETURN);
    MeantScript::moved(text, &[(start, RETURN.len())])
}

/// What a function gets that is called with the tools.
fn arguments(parameters: &FormalParameters<'_>, text: &str) -> String {
    let mut given: Vec<String> = Vec::new();
    for (index, parameter) in parameters.items.iter().enumerate() {
        let is_free = index == 0 && parameter.initializer.is_none() && !parameter.optional;
        given.push(match &parameter.pattern {
            BindingPattern::ObjectPattern(pattern) if is_free || takes_tools(parameter) => {
                destructured(pattern)
            }
            BindingPattern::BindingIdentifier(name) if is_free || takes_tools(parameter) => {
                named_argument(&name.name, text).to_owned()
            }
            _ => "undefined".to_owned(),
        });
    }
    while given.last().is_some_and(|last| last == "undefined") {
        given.pop();
    }
    given.join(",")
}

/// Names under which scripts of other systems get the tools.
const TOOLS_NAMES: &[&str] = &["tools", "codemode"];
/// Names of an object that has the tools.
const CONTEXT_NAMES: &[&str] = &["api", "context", "ctx", "env", "mcp"];

/// Whether a parameter is meant for the tools.
fn takes_tools(parameter: &FormalParameter<'_>) -> bool {
    match &parameter.pattern {
        BindingPattern::BindingIdentifier(name) => {
            let name = name.name.as_str();
            TOOLS_NAMES.contains(&name) || CONTEXT_NAMES.contains(&name) || name == "console"
        }
        BindingPattern::ObjectPattern(pattern) => {
            keys(pattern).any(|key| key.is_some_and(|key| TOOLS_NAMES.contains(&key.as_ref())))
        }
        _ => false,
    }
}

/// What is given to a parameter with this name.
fn named_argument(name: &str, text: &str) -> &'static str {
    let has_tools = |name: &str| text.contains(&format!("{name}.tools"));
    match name {
        "console" => "console",
        name if !TOOLS_NAMES.contains(&name) && has_tools(name) => "{tools}",
        _ => "tools",
    }
}

/// An object with what the pattern takes.
fn destructured(pattern: &ObjectPattern<'_>) -> String {
    let members: Vec<String> = keys(pattern)
        .flatten()
        .map(|key| match key.as_ref() {
            "console" => "console".to_owned(),
            "tools" => "tools".to_owned(),
            key if TOOLS_NAMES.contains(&key) => format!("{key}:tools"),
            key if key.chars().all(is_of_name) => format!("{key}:tools.{key}"),
            _ => String::new(),
        })
        .filter(|member| !member.is_empty())
        .collect();
    format!("{{{}}}", members.join(","))
}

fn keys<'p>(pattern: &'p ObjectPattern<'_>) -> impl Iterator<Item = Option<Cow<'p, str>>> {
    pattern.properties.iter().map(|property| property.key.static_name())
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

fn parameters<'p, 'a>(function: &'p Expression<'a>) -> Option<&'p FormalParameters<'a>> {
    match function.get_inner_expression() {
        Expression::ArrowFunctionExpression(arrow) => Some(&arrow.params),
        Expression::FunctionExpression(function) => Some(&function.params),
        _ => None,
    }
}

fn is_function(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::ArrowFunctionExpression(_) => true,
        Expression::FunctionExpression(function) => !function.generator,
        _ => false,
    }
}

/// Whether a statement has no meaning at run time.
fn is_type(statement: &Statement<'_>) -> bool {
    matches!(
        statement,
        Statement::TSInterfaceDeclaration(_)
            | Statement::TSTypeAliasDeclaration(_)
            | Statement::EmptyStatement(_)
            | Statement::ImportDeclaration(_)
    )
}

/// Whether a statement declares variables without calling anything.
fn is_constant(statement: &Statement<'_>, text: &str) -> bool {
    let variable = match statement {
        Statement::VariableDeclaration(variable) => variable,
        Statement::ExportDeclaration(export) => match &export.declaration {
            Declaration::VariableDeclaration(variable) => variable,
            _ => return true,
        },
        _ => return false,
    };
    let Span { start, end, .. } = variable.span;
    text.get(start as usize..end as usize).is_some_and(|text| !text.contains(['(', '`']))
}

/// What a script exports as its default.
struct DefaultExport<'p> {
    /// The statement, and what is exported.
    statement: Span,
    value: Span,
    name: Option<&'p str>,
    kind: ExportKind,
    /// What a function gets.
    arguments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportKind {
    Function,
    Class,
    Value,
    /// `export { name as default }`.
    Name,
}

fn default_export<'p>(program: &'p Program<'_>) -> Option<DefaultExport<'p>> {
    let arguments = |given: &FormalParameters<'_>| arguments(given, program.source_text);
    program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export) => {
            let value = export.declaration.span();
            let mut given = String::new();
            let (name, kind) = match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    function.body.as_ref()?;
                    given = arguments(&function.params);
                    (function.id.as_ref().map(|id| id.name.as_str()), ExportKind::Function)
                }
                ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                    (class.id.as_ref().map(|id| id.name.as_str()), ExportKind::Class)
                }
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => return None,
                other => match other.as_expression()? {
                    function if is_function(function) => {
                        given = parameters(function).map(arguments).unwrap_or_default();
                        (None, ExportKind::Function)
                    }
                    _ => (None, ExportKind::Value),
                },
            };
            Some(DefaultExport { statement: export.span, value, name, kind, arguments: given })
        }
        Statement::TSExportAssignment(export) => Some(DefaultExport {
            statement: export.span,
            value: export.expression.span(),
            name: None,
            kind: ExportKind::Value,
            arguments: String::new(),
        }),
        Statement::ExportNamedDeclaration(export) => {
            let default = export.specifiers.iter().find(|it| it.exported.name() == "default")?;
            let name = match &default.local {
                oxc_ast::ast::ModuleExportName::IdentifierReference(local) => local.name.as_str(),
                _ => return None,
            };
            let name = Some(name);
            Some(DefaultExport {
                statement: export.span,
                value: export.span,
                name,
                kind: ExportKind::Name,
                arguments: "tools".to_owned(),
            })
        }
        _ => None,
    })
}

/// Makes a declaration of the export, in the same columns. Returns what to append to the script.
fn edit_default(text: &mut String, export: &DefaultExport<'_>) -> Option<String> {
    let (start, value) = (export.statement.start as usize, export.value.start as usize);
    let name = export.name.unwrap_or(NAMELESS);
    if export.name.is_none() && text.contains(NAMELESS) {
        return None;
    }
    let declared = match export.name {
        Some(_) => String::new(),
        None => format!("var {NAMELESS}="),
    };
    if export.kind != ExportKind::Name {
        let before = text.get(start..value)?;
        let lines: String = before.chars().filter(|c| *c == '\n').collect();
        let width = before.len().saturating_sub(lines.len());
        // `export =` is shorter.
        text.replace_range(start..value, &format!("{lines}{declared:<width$}"));
    }
    Some(match export.kind {
        ExportKind::Function => format!(";return {name}({});", export.arguments),
        ExportKind::Class => ";".to_owned(),
        ExportKind::Value | ExportKind::Name => {
            let given = &export.arguments;
            format!(";return typeof {name}===\"function\"?{name}({given}):{name};")
        }
    })
}

/// The function that a script of definitions is meant to call: an exported one, or one with a name like
/// `main`, or the only one, if the script ends with it. Nothing in the script refers to it.
fn entry<'p>(program: &'p Program<'_>) -> Option<(&'p str, String)> {
    let mut functions: Vec<Definition<'p, '_>> = Vec::new();
    let mut has_others = false;
    for statement in &program.body {
        match Definition::of_statement(statement) {
            Some(function) => functions.push(function),
            None => has_others |= !is_quiet(statement, program.source_text),
        }
    }
    // Most scripts have statements.
    if has_others || functions.is_empty() {
        return None;
    }
    let built = SemanticBuilder::new().build(program);
    let scoping = built.semantic.scoping();
    functions.retain(|function| {
        let symbol = function.id.symbol_id.get();
        !function.needs_arguments() && symbol.is_some_and(|it| scoping.symbol_is_unused(it))
    });
    let is_entry = |name: &str| ENTRY_NAMES.contains(&name);
    let named = functions.iter().find(|function| is_entry(&function.id.name));
    let exported: Vec<_> = functions.iter().filter(|function| function.is_exported).collect();
    let chosen = match (named, exported.as_slice(), functions.as_slice()) {
        (Some(named), ..) => named,
        (None, [only], _) => only,
        (None, [], [only]) if ends_with(program, only.id.span.start) => only,
        _ => return None,
    };
    let given = arguments(chosen.parameters, program.source_text);
    Some((chosen.id.name.as_str(), given))
}

/// Whether only functions and types come after an offset.
fn ends_with(program: &Program<'_>, offset: u32) -> bool {
    let mut after = program.body.iter().filter(|statement| statement.span().start > offset);
    after.all(|it| is_type(it) || Definition::of_statement(it).is_some())
}

/// Whether a statement only declares something.
fn is_quiet(statement: &Statement<'_>, text: &str) -> bool {
    is_type(statement)
        || is_constant(statement, text)
        || matches!(
            statement,
            Statement::ClassDeclaration(_)
                | Statement::TSEnumDeclaration(_)
                | Statement::ExportNamedDeclaration(_)
        )
}

struct Definition<'p, 'a> {
    id: &'p BindingIdentifier<'a>,
    is_exported: bool,
    parameters: &'p FormalParameters<'a>,
}

impl<'p, 'a> Definition<'p, 'a> {
    fn of_statement(statement: &'p Statement<'a>) -> Option<Self> {
        match statement {
            Statement::FunctionDeclaration(function) => Self::of(function, false),
            Statement::VariableDeclaration(variable) => Self::of_variable(variable, false),
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::FunctionDeclaration(function) => Self::of(function, true),
                Declaration::VariableDeclaration(variable) => Self::of_variable(variable, true),
                _ => None,
            },
            _ => None,
        }
    }

    fn of(function: &'p Function<'a>, is_exported: bool) -> Option<Self> {
        let id = function.id.as_ref().filter(|_| function.body.is_some() && !function.generator)?;
        Some(Self { id, is_exported, parameters: &function.params })
    }

    fn of_variable(variable: &'p VariableDeclaration<'a>, is_exported: bool) -> Option<Self> {
        let [only] = variable.declarations.as_slice() else { return None };
        let function = only.init.as_ref().filter(|init| is_function(init))?;
        let id = only.id.get_binding_identifier()?;
        Some(Self { id, is_exported, parameters: parameters(function)? })
    }

    /// Whether the function takes something other than the tools.
    fn needs_arguments(&self) -> bool {
        self.parameters.items.iter().any(|parameter| {
            parameter.initializer.is_none() && !parameter.optional && !takes_tools(parameter)
        })
    }
}
