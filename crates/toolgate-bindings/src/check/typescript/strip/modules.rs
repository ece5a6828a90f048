//! Rewrites imports of the modules that exist.

use std::fmt::Write as _;

use oxc_ast::ast::{ImportDeclaration, ImportDeclarationSpecifier, ImportOrExportKind};

use crate::check::typescript::names::loaded_module;

/// The constants that an import declares. Imports of other modules are findings.
pub(super) fn constants(import: &ImportDeclaration<'_>) -> String {
    let source = import.source.value.as_str();
    let module = loaded_module(source.strip_prefix("node:").unwrap_or(source));
    let mut whole = Vec::new();
    let mut parts = Vec::new();
    for specifier in import.specifiers.iter().flatten() {
        match specifier {
            ImportDeclarationSpecifier::ImportSpecifier(part) => {
                if part.import_kind == ImportOrExportKind::Value {
                    let key = serde_json::Value::from(part.imported.name().as_str());
                    parts.push(format!("{key}: {}", part.local.name));
                }
            }
            ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => whole.push(&it.local.name),
            ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => whole.push(&it.local.name),
        }
    }
    let mut text = String::from(";");
    for name in whole {
        let _ = write!(text, "const {name} = {module};");
    }
    if !parts.is_empty() {
        let _ = write!(text, "const {{ {} }} = {module};", parts.join(", "));
    }
    text
}
