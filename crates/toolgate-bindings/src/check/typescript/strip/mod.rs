//! Types are taken out of a script; its lines, and nearly always its columns, stay.
//!
//! What is only type becomes spaces. What is more than type (enums, namespaces, properties declared
//! as parameters) becomes JavaScript on the same lines.

mod classes;
mod edits;
mod namespaces;

use oxc_ast::ast::{
    ArrowFunctionExpression, Class, Declaration, ExportDeclaration, ExportFromDeclaration,
    ExportNamedDeclaration, FormalParameter, Function, FunctionType, ImportDeclaration,
    ImportOrExportKind, MethodDefinition, Program, PropertyDefinition, TSAsExpression,
    TSEnumDeclaration, TSExternalModuleDeclaration, TSGlobalDeclaration, TSImportEqualsDeclaration,
    TSIndexSignature, TSInterfaceDeclaration, TSNamespaceDeclaration, TSNonNullExpression,
    TSSatisfiesExpression, TSThisParameter, TSTypeAliasDeclaration, TSTypeAnnotation,
    TSTypeAssertion, TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclaration,
    VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use self::edits::Edits;

/// The script as JavaScript; `None` where it is that already.
pub(super) fn strip(program: &Program<'_>, text: &str) -> Option<String> {
    let mut stripper = Stripper { edits: Edits::new(text) };
    if let Some(hashbang) = &program.hashbang {
        stripper.blank(hashbang.span);
    }
    stripper.visit_program(program);
    stripper.edits.apply()
}

struct Stripper<'t> {
    edits: Edits<'t>,
}

impl Stripper<'_> {
    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// Takes off `as T` and the like, which begin where the expression ends.
    fn blank_suffix(&mut self, expression: Span, whole: Span) {
        self.edits.blank(expression.end, whole.end);
        // After `x as T` a bracket on the next line starts a statement; after `x` it would not.
        if let Some(next) = self.edits.find(whole.end, &['(', '[', '`'])
            && self.edits.slice(whole.end, next).contains('\n')
        {
            self.edits.insert(whole.end, ";".to_owned());
        }
    }

    /// Takes off a `?` or `!` behind a name.
    fn blank_mark(&mut self, after: u32) {
        if let Some(at) = self.edits.find(after, &['?', '!']) {
            self.edits.blank(at, at + 1);
        }
    }
}

impl<'a> Visit<'a> for Stripper<'_> {
    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_suffix(it.expression.span(), it.span);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_suffix(it.expression.span(), it.span);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.edits.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.edits.blank(it.span.start, it.expression.span().start);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_external_module_declaration(&mut self, it: &TSExternalModuleDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_global_declaration(&mut self, it: &TSGlobalDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank(it.span);
        if let Some(comma) = self.edits.find(it.span.end, &[',']) {
            self.edits.blank(comma, comma + 1);
        }
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        namespaces::rewrite_enum(self, it);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        namespaces::rewrite(self, it);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        if it.import_kind == ImportOrExportKind::Type {
            self.edits.blank_statement(it.span);
        } else {
            self.edits.replace(it.span.start, it.id.span.start, "const ".to_owned());
        }
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        // Other imports are findings.
        if it.import_kind == ImportOrExportKind::Type {
            self.edits.blank_statement(it.span);
        }
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        self.edits.blank_statement(it.span);
    }

    fn visit_export_declaration(&mut self, it: &ExportDeclaration<'a>) {
        self.edits.blank(it.span.start, it.declaration.span().start);
        self.visit_declaration(&it.declaration);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        if it.declare {
            self.edits.blank_statement(it.span);
        } else {
            walk::walk_variable_declaration(self, it);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_mark(it.id.span().end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        let is_declaration = it.declare || it.r#type == FunctionType::TSDeclareFunction;
        if is_declaration || it.body.is_none() {
            self.edits.blank_statement(it.span);
        } else {
            walk::walk_function(self, it, flags);
        }
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            let start = it.decorators.last().map_or(it.span.start, |last| last.span.end);
            self.edits.blank(start, it.pattern.span().start);
        }
        if it.optional {
            self.blank_mark(it.pattern.span().end);
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // No line may end between the parameters and the arrow, or between `async` and the
        // parameters: where a type takes several lines, the brackets move to its other end.
        if let Some(annotation) = &it.return_type
            && self.edits.slice(annotation.span.start, annotation.span.end).contains('\n')
        {
            self.edits.blank(it.params.span.end - 1, annotation.span.end - 1);
            self.edits.put(annotation.span.end - 1, ")");
        }
        if let Some(generics) = &it.type_parameters
            && it.r#async
            && self.edits.slice(generics.span.start, generics.span.end).contains('\n')
        {
            self.edits.put(generics.span.start, "(");
            self.edits.blank(generics.span.start + 1, it.params.span.start + 1);
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            self.edits.blank_statement(it.span);
        } else {
            classes::rewrite(self, it);
            walk::walk_class(self, it);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.r#type.is_abstract() || it.value.body.is_none() {
            self.edits.blank_statement(it.span);
        } else {
            classes::rewrite_method(self, it);
            walk::walk_method_definition(self, it);
        }
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.r#type.is_abstract() || it.declare {
            self.edits.blank_statement(it.span);
        } else {
            classes::rewrite_property(self, it);
            walk::walk_property_definition(self, it);
        }
    }
}

/// Whether a declaration is there in the run.
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
