//! Imports and exports, of which a script has none.

use oxc_ast::{
    AstKind,
    ast::{ImportOrExportKind, Program, Statement},
};

use super::Script;
use crate::check::{finding::Report, words::cut};

pub(super) fn check(program: &Program<'_>, script: &Script<'_, '_>, report: &mut Report<'_>) {
    for statement in &program.body {
        match statement {
            Statement::ImportDeclaration(import)
                if import.import_kind == ImportOrExportKind::Value =>
            {
                let offset = import.span.start as usize;
                report.error(offset, no_module(&import.source.value), no_import());
            }
            Statement::TSImportEqualsDeclaration(import) => {
                report.error(import.span.start as usize, "a script has no modules", no_import());
            }
            Statement::ExportDefaultDeclaration(export) => {
                report.error(export.span.start as usize, NO_EXPORTS, no_export());
            }
            Statement::ExportNamedDeclaration(export)
                if export.export_kind == ImportOrExportKind::Value =>
            {
                report.error(export.span.start as usize, NO_EXPORTS, no_export());
            }
            Statement::ExportFromDeclaration(export) => {
                report.error(export.span.start as usize, NO_EXPORTS, no_export());
            }
            Statement::ExportAllDeclaration(export) => {
                report.error(export.span.start as usize, NO_EXPORTS, no_export());
            }
            Statement::TSExportAssignment(export) => {
                report.error(export.span.start as usize, NO_EXPORTS, no_export());
            }
            _ => {}
        }
    }
    for node in script.semantic.nodes().iter() {
        match node.kind() {
            AstKind::ImportExpression(import) => {
                report.error(import.span.start as usize, "a script has no modules", no_import());
            }
            AstKind::Decorator(decorator) => {
                let message = "decorators are not understood";
                let hint = "call the function yourself".to_owned();
                report.error(decorator.span.start as usize, message, hint);
            }
            _ => {}
        }
    }
}

const NO_EXPORTS: &str = "a script exports nothing";

fn no_module(name: &str) -> String {
    format!("there is no module `{}`: a script has none", cut(name))
}

fn no_import() -> String {
    "all tools are functions already: call them without an import; what a library would do, \
     write yourself"
        .to_owned()
}

fn no_export() -> String {
    "end with `return` and the value".to_owned()
}
