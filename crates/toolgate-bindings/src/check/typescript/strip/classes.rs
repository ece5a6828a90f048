//! Rewrites classes: modifiers, `implements`, and properties that are declared as parameters.

use std::fmt::Write;

use oxc_ast::ast::{
    AccessorProperty, BindingPattern, Class, ClassElement, Decorator, Expression, FunctionBody,
    MethodDefinition, MethodDefinitionKind, PropertyDefinition, Statement,
};
use oxc_span::GetSpan;

use super::Stripper;

const MODIFIERS: &[&str] =
    &["public", "private", "protected", "readonly", "override", "abstract", "declare"];

/// Rewrites the head of a class. Its members are visited separately.
pub(super) fn rewrite(stripper: &mut Stripper<'_>, class: &Class<'_>) {
    let start = after(&class.decorators, class.span.start);
    let name = class.id.as_ref().map_or(class.body.span.start, |id| id.span.start);
    if class.r#abstract {
        blank_words(stripper, start, name, &["abstract"]);
    }
    if let [first, .., last] | [first @ last] = class.implements.as_slice() {
        let heritage = class.heritage.as_ref().map(|heritage| heritage.expression.span().end);
        let generics = class.type_parameters.as_ref().map(|generics| generics.span.end);
        let from = heritage.or(generics).or(class.id.as_ref().map(|id| id.span.end));
        let from = from.unwrap_or(start);
        if let Some(at) = stripper.edits.slice(from, first.span.start).rfind("implements") {
            let at = u32::try_from(at).unwrap_or_default();
            stripper.edits.blank(from + at, last.span.end);
        }
    }
    declare_parameter_properties(stripper, class);
}

pub(super) fn rewrite_method(stripper: &mut Stripper<'_>, method: &MethodDefinition<'_>) {
    let key = method.key.span();
    blank_words(stripper, after(&method.decorators, method.span.start), key.start, MODIFIERS);
    if method.optional {
        blank_mark_after_key(stripper, key.end, method.computed);
    }
}

pub(super) fn rewrite_property(stripper: &mut Stripper<'_>, property: &PropertyDefinition<'_>) {
    let key = property.key.span();
    blank_words(stripper, after(&property.decorators, property.span.start), key.start, MODIFIERS);
    if property.optional || property.definite {
        blank_mark_after_key(stripper, key.end, property.computed);
    }
}

/// Makes a getter and a setter of `accessor x`, with a private field behind them.
pub(super) fn rewrite_accessor(stripper: &mut Stripper<'_>, accessor: &AccessorProperty<'_>) {
    let number = stripper.accessors;
    stripper.accessors += 1;
    let field = format!("#accessor{number}");
    let key = accessor.key.span();
    let name = stripper.edits.slice(key.start, key.end);
    let name = if accessor.computed { format!("[{name}]") } else { name.to_owned() };
    let is_static = if accessor.r#static { "static " } else { "" };
    let pair = format!(
        "; {is_static}get {name}() {{ return this.{field}; }} \
         {is_static}set {name}(value) {{ this.{field} = value; }}"
    );
    let start = after(&accessor.decorators, accessor.span.start);
    match &accessor.value {
        Some(value) => {
            let declared = format!("{is_static}{field} = ");
            stripper.edits.replace(start, value.span().start, declared);
            stripper.edits.insert(accessor.span.end, pair);
        }
        None => {
            stripper.edits.replace(start, accessor.span.end, format!("{is_static}{field}{pair}"));
        }
    }
}

/// Sets `this.x` for `constructor(private x)`, after `super()` if the class has a base.
fn declare_parameter_properties(stripper: &mut Stripper<'_>, class: &Class<'_>) {
    for element in &class.body.body {
        let ClassElement::MethodDefinition(method) = element else { continue };
        if method.kind != MethodDefinitionKind::Constructor {
            continue;
        }
        let Some(body) = &method.value.body else { continue };
        let mut assignments = String::new();
        for parameter in &method.value.params.items {
            let is_property =
                parameter.accessibility.is_some() || parameter.readonly || parameter.r#override;
            let pattern = match &parameter.pattern {
                BindingPattern::AssignmentPattern(assignment) => &assignment.left,
                pattern => pattern,
            };
            if let BindingPattern::BindingIdentifier(name) = pattern
                && is_property
            {
                let _ = write!(assignments, " this.{0} = {0};", name.name);
            }
        }
        if !assignments.is_empty() {
            let after_super = class.heritage.as_ref().and_then(|_| end_of_super(body));
            // The end of the line or of the block may be what ends `super()`.
            if after_super.is_some_and(|end| stripper.edits.slice(end - 1, end) != ";") {
                assignments.insert(0, ';');
            }
            stripper.edits.insert(after_super.unwrap_or(body.span.start + 1), assignments);
        }
    }
}

fn end_of_super(body: &FunctionBody<'_>) -> Option<u32> {
    body.statements.iter().find_map(|statement| match statement {
        Statement::ExpressionStatement(expression) => match &expression.expression {
            Expression::CallExpression(call) if matches!(call.callee, Expression::Super(_)) => {
                Some(expression.span.end)
            }
            _ => None,
        },
        _ => None,
    })
}

fn after(decorators: &[Decorator<'_>], start: u32) -> u32 {
    decorators.last().map_or(start, |last| last.span.end)
}

fn blank_mark_after_key(stripper: &mut Stripper<'_>, key_end: u32, is_computed: bool) {
    let bracket = if is_computed { stripper.edits.find(key_end, &[']']) } else { None };
    stripper.blank_mark(bracket.map_or(key_end, |at| at + 1));
}

/// Removes the given words between two offsets, but not in comments.
fn blank_words(stripper: &mut Stripper<'_>, start: u32, end: u32, words: &[&str]) {
    let text = stripper.edits.slice(start, end);
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if length > 0 {
            if words.contains(&&rest[..length]) {
                let from = start + u32::try_from(at).unwrap_or_default();
                stripper.edits.blank(from, from + u32::try_from(length).unwrap_or_default());
            }
            length
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += skipped;
    }
}
