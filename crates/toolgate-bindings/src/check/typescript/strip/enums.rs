//! Enums, as objects that are filled on the lines of their members.

use oxc_ast::ast::{TSEnumDeclaration, TSEnumMember, TSEnumMemberName};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;
use oxc_syntax::{identifier::is_identifier_name, keyword::is_reserved_keyword};

use super::Stripper;

/// Sets a member, and for a number the way back. Its name is one that no member has.
const SET: &str = "$set";

pub(super) fn rewrite(stripper: &mut Stripper<'_>, enumeration: &TSEnumDeclaration<'_>) {
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
    let foot = format!(
        " return {name}; }})({name} || {{}}, (e, k, v) => (e[k] = v, typeof v === \"number\" && (e[v] = k), v));"
    );
    stripper.edits.replace(body.end - 1, body.end, foot);
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
