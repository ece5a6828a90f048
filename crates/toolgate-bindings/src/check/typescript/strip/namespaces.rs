//! Rewrites namespaces to objects with the exported names as properties, and enums.

use std::{collections::HashSet, fmt::Write};

use oxc_ast::ast::{
    BindingPattern, Declaration, Statement, TSEnumDeclaration, TSEnumMember, TSEnumMemberName,
    TSModuleBlock, TSNamespaceDeclaration, TSNamespaceDeclarationBody, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;
use oxc_syntax::{identifier::is_identifier_name, keyword::is_reserved_keyword};

use super::Stripper;

pub(super) fn rewrite(stripper: &mut Stripper<'_>, namespace: &TSNamespaceDeclaration<'_>) {
    if !is_real(namespace) {
        stripper.edits.blank_statement(namespace.span);
        return;
    }
    // `namespace a.b.c { … }` declares three namespaces.
    let mut outer: Option<&str> = None;
    let mut head = String::new();
    let mut ends: Vec<String> = Vec::new();
    let mut inner = namespace;
    let block = loop {
        let name = inner.id.name.as_str();
        let path = outer.map_or(name.to_owned(), |outer| format!("{outer}.{name}"));
        let keyword = if outer.is_none() { "var " } else { "" };
        let _ = write!(head, "{keyword}{path} = (({name}) => {{ ");
        ends.push(format!(" return {name}; }})({path} || {{}});"));
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
    ends.reverse();
    // The last statement may have ended with the block.
    let end = format!(";{}", ends.concat());
    stripper.edits.replace(block.span.end - 1, block.span.end, end);
}

/// Whether a namespace contains more than types.
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

/// The function that sets a member, and for a number also the name of the member. No member has
/// this name.
const SET: &str = "$set";

pub(super) fn rewrite_enum(stripper: &mut Stripper<'_>, enumeration: &TSEnumDeclaration<'_>) {
    if enumeration.declare {
        stripper.edits.blank_statement(enumeration.span);
        return;
    }
    let name = enumeration.id.name.as_str();
    let body = enumeration.body.span;
    let head = format!("var {name} = (({name}, {SET}) => {{");
    stripper.edits.replace(enumeration.span.start, body.start + 1, head);
    let mut previous: Option<String> = None;
    for member in &enumeration.body.members {
        previous = Some(rewrite_member(stripper, name, member, previous.as_deref()));
        if let Some(comma) = stripper.edits.find(member.span.end, &[',']) {
            stripper.edits.blank(comma, comma + 1);
        }
    }
    let end = format!(
        " return {name}; }})({name} || {{}}, (e, k, v) => (e[k] = v, typeof v === \"number\" && (e[v] = k), v));"
    );
    stripper.edits.replace(body.end - 1, body.end, end);
}

/// Returns the member's key, as a JavaScript string.
fn rewrite_member(
    stripper: &mut Stripper<'_>,
    name: &str,
    member: &TSEnumMember<'_>,
    previous: Option<&str>,
) -> String {
    let (text, computed) = match &member.id {
        TSEnumMemberName::Identifier(identifier) => (identifier.name.to_string(), None),
        TSEnumMemberName::String(literal) | TSEnumMemberName::ComputedString(literal) => {
            (literal.value.to_string(), None)
        }
        TSEnumMemberName::ComputedTemplateString(template) => {
            let span = template.span;
            (String::new(), Some(stripper.edits.slice(span.start, span.end).to_owned()))
        }
    };
    let key = computed.unwrap_or_else(|| serde_json::Value::from(text.as_str()).to_string());
    // Later members may refer to it by its name.
    let is_name = is_identifier_name(&text)
        && !is_reserved_keyword(&text)
        && text != name
        && text != SET
        && text != "let"
        && text != "await"
        && text != "arguments"
        && text != "eval";
    let constant = if is_name { format!("const {text} = ") } else { String::new() };
    let start = format!("{constant}{SET}({name}, {key}, ");
    if let Some(value) = &member.initializer {
        stripper.edits.replace(member.span.start, value.span().start, start);
        stripper.visit_expression(value);
        stripper.edits.insert(member.span.end, ");".to_owned());
    } else {
        let value = previous.map_or("0".to_owned(), |key| format!("{name}[{key}] + 1"));
        let whole = format!("{start}{value});");
        stripper.edits.replace(member.span.start, member.span.end, whole);
    }
    key
}
