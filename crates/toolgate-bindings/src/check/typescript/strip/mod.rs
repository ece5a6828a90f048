//! Removes the types from a script. Lines keep their numbers, and nearly always their columns.
//!
//! Code that is only a type becomes spaces. Enums, namespaces and properties that are declared as
//! parameters become JavaScript on the same lines.

mod classes;
mod edits;
mod modules;
mod namespaces;

use oxc_ast::{
    AstKind,
    ast::{
        ArrowFunctionExpression, Declaration, FormalParameter, FunctionType, ImportOrExportKind,
        Program, TSEnumDeclaration, TSNamespaceDeclaration,
    },
};
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};

use self::edits::Edits;
use crate::check::{flow::PlaceMark, positions::TextChange};

/// The script as JavaScript, with the names of its places and with `replaced` parts, and what moves columns in it;
/// `None` if it has nothing of that.
pub(super) fn strip(
    program: &Program<'_>,
    text: &str,
    marks: &[PlaceMark],
    replaced: &[(Span, String)],
) -> Option<(String, Vec<TextChange>)> {
    let mut stripper = Stripper { edits: Edits::new(text), accessors: 0 };
    for (span, text) in replaced {
        stripper.edits.replace(span.start, span.end, text.clone());
    }
    if let Some(hashbang) = &program.hashbang {
        stripper.blank(hashbang.span);
    }
    for mark in marks {
        stripper.edits.replace(mark.start, mark.end, mark.text());
    }
    stripper.visit_program(program);
    stripper.edits.apply()
}

struct Stripper<'t> {
    edits: Edits<'t>,
    /// The number of accessors so far.
    accessors: u32,
}

impl Stripper<'_> {
    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// Removes `as T` or `satisfies T` after an expression.
    fn blank_suffix(&mut self, expression: Span, whole: Span) {
        self.edits.blank(expression.end, whole.end);
        // After `x as T` a bracket on the next line starts a statement; after `x` it would not.
        if let Some(next) = self.edits.find(whole.end, &['(', '[', '`'])
            && self.edits.slice(whole.end, next).contains('\n')
        {
            self.edits.insert(whole.end, ";".to_owned());
        }
    }

    /// Removes a `?` or `!` after a name.
    fn blank_mark(&mut self, after: u32) {
        if let Some(at) = self.edits.find(after, &['?', '!']) {
            self.edits.blank(at, at + 1);
        }
    }

    fn strip_parameter(&mut self, parameter: &FormalParameter<'_>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            let start = parameter.decorators.last().map(|last| last.span.end);
            let start = start.unwrap_or(parameter.span.start);
            self.edits.blank(start, parameter.pattern.span().start);
        }
        if parameter.optional {
            self.blank_mark(parameter.pattern.span().end);
        }
    }

    /// No line may end between the parameters and the arrow, or between `async` and the parameters.
    /// If a type has several lines, the bracket moves to its other end.
    fn strip_arrow(&mut self, arrow: &ArrowFunctionExpression<'_>) {
        if let Some(annotation) = &arrow.return_type
            && self.edits.slice(annotation.span.start, annotation.span.end).contains('\n')
        {
            self.edits.blank(arrow.params.span.end - 1, annotation.span.end - 1);
            self.edits.put(annotation.span.end - 1, ")");
        }
        if let Some(generics) = &arrow.type_parameters
            && arrow.r#async
            && self.edits.slice(generics.span.start, generics.span.end).contains('\n')
        {
            self.edits.put(generics.span.start, "(");
            self.edits.blank(generics.span.start + 1, arrow.params.span.start + 1);
        }
    }
}

impl<'a> Visit<'a> for Stripper<'_> {
    /// Edits the text of one node. Its parts are visited afterwards, and edits inside of a removed
    /// text have no effect.
    fn enter_node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::TSTypeAnnotation(_)
            | AstKind::TSTypeParameterDeclaration(_)
            | AstKind::TSTypeParameterInstantiation(_) => self.blank(kind.span()),
            AstKind::TSAsExpression(it) => self.blank_suffix(it.expression.span(), it.span),
            AstKind::TSSatisfiesExpression(it) => self.blank_suffix(it.expression.span(), it.span),
            AstKind::TSNonNullExpression(it) => {
                self.edits.blank(it.expression.span().end, it.span.end);
            }
            AstKind::TSTypeAssertion(it) => {
                self.edits.blank(it.span.start, it.expression.span().start);
            }
            AstKind::TSThisParameter(it) => {
                self.blank(it.span);
                if let Some(comma) = self.edits.find(it.span.end, &[',']) {
                    self.edits.blank(comma, comma + 1);
                }
            }
            AstKind::ExportDeclaration(it) => {
                self.edits.blank(it.span.start, it.declaration.span().start);
            }
            AstKind::TSImportEqualsDeclaration(it)
                if it.import_kind == ImportOrExportKind::Value =>
            {
                self.edits.replace(it.span.start, it.id.span.start, "const ".to_owned());
            }
            AstKind::ImportDeclaration(it) if it.import_kind == ImportOrExportKind::Value => {
                self.edits.replace(it.span.start, it.span.end, modules::constants(it));
            }
            AstKind::AccessorProperty(it) if !it.r#type.is_abstract() => {
                classes::rewrite_accessor(self, it);
            }
            AstKind::VariableDeclarator(it) if it.definite => self.blank_mark(it.id.span().end),
            AstKind::FormalParameter(it) => self.strip_parameter(it),
            AstKind::ArrowFunctionExpression(it) => self.strip_arrow(it),
            AstKind::Class(it) if !it.declare => classes::rewrite(self, it),
            AstKind::MethodDefinition(it)
                if !it.r#type.is_abstract() && it.value.body.is_some() =>
            {
                classes::rewrite_method(self, it);
            }
            AstKind::PropertyDefinition(it) if !it.r#type.is_abstract() && !it.declare => {
                classes::rewrite_property(self, it);
            }
            AstKind::VariableDeclaration(it) if !it.declare => {}
            AstKind::Function(it)
                if !it.declare
                    && it.r#type != FunctionType::TSDeclareFunction
                    && it.body.is_some() => {}
            AstKind::TSInterfaceDeclaration(_)
            | AstKind::TSTypeAliasDeclaration(_)
            | AstKind::TSExternalModuleDeclaration(_)
            | AstKind::TSGlobalDeclaration(_)
            | AstKind::TSIndexSignature(_)
            | AstKind::TSImportEqualsDeclaration(_)
            | AstKind::ImportDeclaration(_)
            | AstKind::ExportNamedDeclaration(_)
            | AstKind::ExportFromDeclaration(_)
            | AstKind::AccessorProperty(_)
            | AstKind::Class(_)
            | AstKind::MethodDefinition(_)
            | AstKind::PropertyDefinition(_)
            | AstKind::VariableDeclaration(_)
            | AstKind::Function(_) => self.edits.blank_statement(kind.span()),
            _ => {}
        }
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        namespaces::rewrite_enum(self, it);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        namespaces::rewrite(self, it);
    }
}

/// Whether a declaration has a meaning at run time.
fn is_real(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::VariableDeclaration(variable) => !variable.declare,
        Declaration::FunctionDeclaration(function) => !function.declare && function.body.is_some(),
        Declaration::ClassDeclaration(class) => !class.declare,
        Declaration::TSEnumDeclaration(enumeration) => !enumeration.declare,
        Declaration::TSNamespaceDeclaration(namespace) => namespaces::is_real(namespace),
        Declaration::TSImportEqualsDeclaration(import) => {
            import.import_kind == ImportOrExportKind::Value
        }
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => false,
    }
}
