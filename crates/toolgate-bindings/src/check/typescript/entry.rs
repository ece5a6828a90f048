//! Scripts that only define a function, or export one: the function is called, and what it returns
//! is the value of the script.

use oxc_ast::ast::{
    BindingIdentifier, Declaration, ExportDefaultDeclarationKind, Expression, FormalParameters,
    Function, Program, Statement, VariableDeclaration,
};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, Span};

/// A script as it is meant.
pub(super) struct MeantScript {
    pub(super) text: String,
    /// Where text was inserted before other text of its line, and how much.
    pub(super) inserted: Option<(usize, usize)>,
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
    let mut edited = text.to_owned();
    let append = if let Some(export) = default_export(program) {
        edit_default(&mut edited, &export)?
    } else {
        format!(";return {}();", entry(program)?)
    };
    // The edit of an export keeps the length of the text before it.
    let at = last + (edited.len() - text.len());
    edited.insert_str(at, &append);
    Some(MeantScript { text: edited, inserted: None })
}

/// A script that is one function without a name, which does not parse as a statement.
pub(super) fn nameless(text: &str) -> Option<MeantScript> {
    let body = text.trim();
    let rest = body.strip_prefix("async").map_or(body, str::trim_start);
    let parameters = rest.strip_prefix("function")?.trim_start();
    if !parameters.starts_with('(') {
        return None;
    }
    let start = text.len() - text.trim_start().len();
    let end = start + body.trim_end_matches(';').len();
    let inner = &text[start..end];
    let text = format!("{}{BEFORE}{inner})(){}", &text[..start], &text[end..]);
    Some(MeantScript { text, inserted: Some((start, BEFORE.len())) })
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
    let given = parameters(function).map_or("", |parameters| {
        let first = parameters.items.first().and_then(|it| it.pattern.get_identifier_name());
        if first.is_some_and(|name| name == "tools") { "tools" } else { "" }
    });
    let inner = &text[start..end];
    let text = format!("{}{BEFORE}{inner})({given}){}", &text[..start], &text[end..]);
    MeantScript { text, inserted: Some((start, BEFORE.len())) }
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
    program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export) => {
            let value = export.declaration.span();
            let (name, kind) = match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    function.body.as_ref()?;
                    (function.id.as_ref().map(|id| id.name.as_str()), ExportKind::Function)
                }
                ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                    (class.id.as_ref().map(|id| id.name.as_str()), ExportKind::Class)
                }
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => return None,
                other => match other.as_expression()? {
                    function if is_function(function) => (None, ExportKind::Function),
                    _ => (None, ExportKind::Value),
                },
            };
            Some(DefaultExport { statement: export.span, value, name, kind })
        }
        Statement::TSExportAssignment(export) => Some(DefaultExport {
            statement: export.span,
            value: export.expression.span(),
            name: None,
            kind: ExportKind::Value,
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
        ExportKind::Function => format!(";return {name}();"),
        ExportKind::Class => ";".to_owned(),
        ExportKind::Value | ExportKind::Name => {
            format!(";return typeof {name}===\"function\"?{name}():{name};")
        }
    })
}

/// The function that a script of definitions is meant to call: an exported one, or the only one, or
/// one with a name like `main`. Nothing in the script refers to it.
fn entry<'p, 'a>(program: &'p Program<'a>) -> Option<&'p str> {
    let mut functions: Vec<Definition<'p, 'a>> = Vec::new();
    let mut has_others = false;
    for statement in &program.body {
        let before = functions.len();
        match statement {
            Statement::FunctionDeclaration(function) => {
                functions.extend(Definition::of(function, false));
            }
            Statement::VariableDeclaration(variable) => {
                functions.extend(Definition::of_variable(variable, false));
            }
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::FunctionDeclaration(function) => {
                    functions.extend(Definition::of(function, true));
                }
                Declaration::VariableDeclaration(variable) => {
                    functions.extend(Definition::of_variable(variable, true));
                }
                _ => {}
            },
            _ => {}
        }
        has_others |= functions.len() == before
            && !is_type(statement)
            && !is_constant(statement, program.source_text)
            && !matches!(
                statement,
                Statement::ClassDeclaration(_)
                    | Statement::TSEnumDeclaration(_)
                    | Statement::ExportNamedDeclaration(_)
            );
    }
    // Most scripts have statements.
    if has_others || functions.is_empty() {
        return None;
    }
    let built = SemanticBuilder::new().build(program);
    let scoping = built.semantic.scoping();
    functions.retain(|function| {
        let symbol = function.id.symbol_id.get();
        !function.needs_arguments && symbol.is_some_and(|it| scoping.symbol_is_unused(it))
    });
    let is_entry = |name: &str| ENTRY_NAMES.contains(&name);
    let named = functions.iter().find(|function| is_entry(&function.id.name));
    let exported: Vec<_> = functions.iter().filter(|function| function.is_exported).collect();
    let chosen = match (named, exported.as_slice(), functions.as_slice()) {
        (Some(named), ..) => named,
        (None, [only], _) => only,
        (None, [], [only]) => only,
        _ => return None,
    };
    Some(chosen.id.name.as_str())
}

struct Definition<'p, 'a> {
    id: &'p BindingIdentifier<'a>,
    is_exported: bool,
    needs_arguments: bool,
}

impl<'p, 'a> Definition<'p, 'a> {
    fn of(function: &'p Function<'a>, is_exported: bool) -> Option<Self> {
        let id = function.id.as_ref().filter(|_| function.body.is_some() && !function.generator)?;
        Some(Self { id, is_exported, needs_arguments: needs_arguments(&function.params) })
    }

    fn of_variable(variable: &'p VariableDeclaration<'a>, is_exported: bool) -> Option<Self> {
        let [only] = variable.declarations.as_slice() else { return None };
        let function = only.init.as_ref().filter(|init| is_function(init))?;
        let id = only.id.get_binding_identifier()?;
        Some(Self {
            id,
            is_exported,
            needs_arguments: parameters(function).is_some_and(needs_arguments),
        })
    }
}

fn needs_arguments(parameters: &FormalParameters<'_>) -> bool {
    parameters.items.iter().any(|parameter| parameter.initializer.is_none() && !parameter.optional)
}
