//! Namespaces, as objects whose properties are the exported names.

use std::{collections::HashSet, fmt::Write};

use oxc_ast::ast::{
    BindingPattern, Declaration, Statement, TSModuleBlock, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody, VariableDeclarationKind,
};
use oxc_ast_visit::walk;

use super::Stripper;

pub(super) fn rewrite(stripper: &mut Stripper<'_>, namespace: &TSNamespaceDeclaration<'_>) {
    if !is_real(namespace) {
        stripper.edits.blank_statement(namespace.span);
        return;
    }
    // `namespace a.b.c { … }` is three of them.
    let mut outer: Option<&str> = None;
    let mut head = String::new();
    let mut feet: Vec<String> = Vec::new();
    let mut inner = namespace;
    let block = loop {
        let name = inner.id.name.as_str();
        let place = outer.map_or(name.to_owned(), |outer| format!("{outer}.{name}"));
        let keyword = if outer.is_none() { "var " } else { "" };
        let _ = write!(head, "{keyword}{place} = (({name}) => {{ ");
        feet.push(format!(" return {name}; }})({place} || {{}});"));
        outer = Some(name);
        match &inner.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(next) => inner = next,
            TSNamespaceDeclarationBody::TSModuleBlock(block) => break block,
        }
    };
    let name = inner.id.name.as_str();
    for export in exports(block) {
        let setter = if export.is_variable {
            format!(", set: (value) => {{ {} = value; }}", export.name)
        } else {
            String::new()
        };
        let _ = write!(
            head,
            "Object.defineProperty({name}, \"{0}\", {{ get: () => {0}{setter}, enumerable: true, \
             configurable: true }}); ",
            export.name
        );
    }
    stripper.edits.replace(namespace.span.start, block.span.start + 1, head);
    walk::walk_ts_module_block(stripper, block);
    feet.reverse();
    stripper.edits.replace(block.span.end - 1, block.span.end, feet.concat());
}

/// Whether there is more in a namespace than types.
pub(super) fn is_real(namespace: &TSNamespaceDeclaration<'_>) -> bool {
    if namespace.declare {
        return false;
    }
    match &namespace.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => is_real(inner),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => {
            block.body.iter().any(|statement| match statement {
                Statement::ExportDeclaration(export) => super::is_real(&export.declaration),
                statement => statement.as_declaration().is_none_or(super::is_real),
            })
        }
    }
}

struct Export {
    name: String,
    /// Whether it can be assigned to.
    is_variable: bool,
}

fn exports(block: &TSModuleBlock<'_>) -> Vec<Export> {
    let mut exports: Vec<Export> = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |name: &str, is_variable: bool| {
        if seen.insert(name.to_owned()) {
            exports.push(Export { name: name.to_owned(), is_variable });
        }
    };
    for statement in &block.body {
        let Statement::ExportDeclaration(export) = statement else { continue };
        if !super::is_real(&export.declaration) {
            continue;
        }
        match &export.declaration {
            Declaration::VariableDeclaration(variable) => {
                let is_variable = matches!(
                    variable.kind,
                    VariableDeclarationKind::Let | VariableDeclarationKind::Var
                );
                for declarator in &variable.declarations {
                    bound(&declarator.id, &mut |name| add(name, is_variable));
                }
            }
            declaration => {
                if let Some(name) = declaration.id() {
                    add(name.name.as_str(), false);
                }
            }
        }
    }
    exports
}

/// All names that a pattern binds.
fn bound(pattern: &BindingPattern<'_>, add: &mut dyn FnMut(&str)) {
    match pattern {
        BindingPattern::BindingIdentifier(name) => add(name.name.as_str()),
        BindingPattern::AssignmentPattern(assignment) => bound(&assignment.left, add),
        BindingPattern::ObjectPattern(object) => {
            object.properties.iter().for_each(|property| bound(&property.value, add));
            object.rest.iter().for_each(|rest| bound(&rest.argument, add));
        }
        BindingPattern::ArrayPattern(array) => {
            array.elements.iter().flatten().for_each(|element| bound(element, add));
            array.rest.iter().for_each(|rest| bound(&rest.argument, add));
        }
    }
}
