//! Reads of results: parts that a result does not have.

use oxc_ast::{
    AstKind,
    ast::{BindingPattern, Expression, ForStatementLeft, ObjectPattern, VariableDeclarator},
};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;

use super::{
    ParsedScript,
    values::{Values, assigned, element, item, path},
};
use crate::check::{
    CheckSeverity, Language,
    finding::FindingCollector,
    literal::{Literal, LiteralKind},
    wording::cut,
};

const OBJECT_PARTS: &[&str] = &[
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toJSON",
    "toLocaleString",
    "toString",
    "valueOf",
    "then",
];
#[rustfmt::skip]
const ARRAY_PARTS: &[&str] = &[
    "at", "concat", "copyWithin", "entries", "every", "fill", "filter", "find", "findIndex",
    "findLast", "findLastIndex", "flat", "flatMap", "forEach", "includes", "indexOf", "join",
    "keys", "lastIndexOf", "length", "map", "pop", "push", "reduce", "reduceRight", "reverse",
    "shift", "slice", "some", "sort", "splice", "toReversed", "toSorted", "toSpliced", "unshift",
    "values", "with",
];
#[rustfmt::skip]
const TEXT_PARTS: &[&str] = &[
    "at", "charAt", "charCodeAt", "codePointAt", "concat", "endsWith", "includes", "indexOf",
    "isWellFormed", "lastIndexOf", "length", "localeCompare", "match", "matchAll", "normalize",
    "padEnd", "padStart", "repeat", "replace", "replaceAll", "search", "slice", "split",
    "startsWith", "substr", "substring", "toLocaleLowerCase", "toLocaleUpperCase", "toLowerCase",
    "toUpperCase", "toWellFormed", "trim", "trimEnd", "trimLeft", "trimRight", "trimStart",
];
const NUMBER_PARTS: &[&str] = &["toExponential", "toFixed", "toPrecision"];

/// Reports parts that results do not have.
pub(super) fn check<'s, 'a>(
    script: &'s ParsedScript<'s, 'a>,
    values: &Values<'s, 'a>,
    report: &mut FindingCollector<'_>,
) {
    let reads = Reads { script, values };
    for node in script.semantic.nodes().iter() {
        if report.is_full() {
            return;
        }
        match node.kind() {
            AstKind::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                reads.member(node.id(), &member.object, name, member.property.span.start, report);
            }
            AstKind::ComputedMemberExpression(member) => {
                match member.expression.get_inner_expression() {
                    Expression::StringLiteral(name) => {
                        let (text, at) = (&name.value, name.span.start);
                        reads.member(node.id(), &member.object, text, at, report);
                    }
                    Expression::NumericLiteral(at)
                        if at.value >= 0.0 && at.value.fract() == 0.0 =>
                    {
                        let text = at.value.to_string();
                        reads.member(node.id(), &member.object, &text, at.span.start, report);
                    }
                    _ => {}
                }
            }
            AstKind::VariableDeclarator(it) => {
                let takes_apart = matches!(
                    it.id,
                    BindingPattern::ObjectPattern(_) | BindingPattern::ArrayPattern(_)
                );
                if let (true, Some(init)) = (takes_apart, &it.init) {
                    reads.taken_apart(&it.id, &values.read(init), report);
                }
            }
            AstKind::ForOfStatement(it) if !it.r#await => {
                reads.items(&it.right, report);
                if let ForStatementLeft::VariableDeclaration(left) = &it.left
                    && let [VariableDeclarator { id: pattern, .. }] = left.declarations.as_slice()
                {
                    reads.taken_apart(pattern, &element(&values.read(&it.right)), report);
                }
            }
            AstKind::FormalParameter(it) if it.initializer.is_none() => {
                if let BindingPattern::ObjectPattern(pattern) = &it.pattern
                    && it.type_annotation.is_none()
                    && let Some(value) = values.parameter_value(node.id(), it, 0)
                {
                    reads.pattern(pattern, &value, report);
                }
            }
            AstKind::SpreadElement(it) => {
                let parent = script.semantic.nodes().parent_kind(node.id());
                if matches!(parent, AstKind::ArrayExpression(_)) {
                    reads.items(&it.argument, report);
                }
            }
            _ => {}
        }
    }
}

struct Reads<'v, 's, 'a> {
    script: &'s ParsedScript<'s, 'a>,
    values: &'v Values<'s, 'a>,
}

impl<'a> Reads<'_, '_, 'a> {
    fn member(
        &self,
        node: NodeId,
        object: &Expression<'a>,
        name: &str,
        offset: u32,
        report: &mut FindingCollector<'_>,
    ) {
        if self.values.conditions.is_dead(offset) {
            return;
        }
        let value = self.values.read(object);
        let nodes = self.script.semantic.nodes();
        let (span, parent) = (nodes.kind(node).span(), nodes.parent_kind(node));
        if let AstKind::AssignmentExpression(it) = parent
            && it.left.span() == span
        {
            return;
        }
        if value.kind == LiteralKind::Unknown {
            Self::envelope(&value, name, span, &parent, offset, report);
            return;
        }
        let Some(lacking) = lacking(&value, name) else { return };
        let is_tested = path(object, self.script).is_some_and(|(symbol, names)| {
            let names = if names.is_empty() { name.to_owned() } else { format!("{names}.{name}") };
            self.values.conditions.is_tested(&(symbol, names))
        });
        let is_expected = is_tested
            || self.is_kept_for_a_test(span, &parent)
            || self.values.conditions.is_tried(offset)
            || matches!(parent, AstKind::LogicalExpression(it) if it.left.span() == span)
            || matches!(parent, AstKind::StaticMemberExpression(it) if it.optional)
            || matches!(parent, AstKind::ComputedMemberExpression(it) if it.optional && it.object.span() == span)
            || matches!(parent, AstKind::CallExpression(it) if it.optional && it.callee.span() == span);
        report_lacking(&lacking, name, offset, is_expected, report);
    }

    /// Whether the value at `span` goes to a variable that is tested for being there, as the cursor of a loop over
    /// pages. Few schemas declare that a result has nothing else, so the part may be there at times.
    fn is_kept_for_a_test(&self, span: oxc_span::Span, parent: &AstKind<'_>) -> bool {
        let symbol = match parent {
            AstKind::VariableDeclarator(it)
                if it.init.as_ref().is_some_and(|it| it.span() == span) =>
            {
                it.id.get_binding_identifier().and_then(|it| it.symbol_id.get())
            }
            AstKind::AssignmentExpression(it) if it.right.span() == span => {
                assigned(&it.left, self.script)
            }
            _ => None,
        };
        symbol.is_some_and(|symbol| self.values.conditions.is_tested(&(symbol, String::new())))
    }

    /// Warns about a part of the MCP result, of which a call returns only the data.
    fn envelope(
        value: &Literal,
        name: &str,
        span: oxc_span::Span,
        parent: &AstKind<'_>,
        offset: u32,
        report: &mut FindingCollector<'_>,
    ) {
        let Some(origin) = value.origin.as_ref().filter(|origin| origin.path.is_empty()) else {
            return;
        };
        let is_envelope = match name {
            "structuredContent" => true,
            "content" => match parent {
                AstKind::ComputedMemberExpression(it) => it.object.span() == span,
                AstKind::StaticMemberExpression(it) => {
                    matches!(it.property.name.as_str(), "find" | "map" | "filter")
                }
                _ => false,
            },
            _ => false,
        };
        if is_envelope {
            let message = format!("the result of `{}` may have no `{name}`", cut(&origin.tool));
            let hint = Some(ENVELOPE.to_owned());
            report.add(CheckSeverity::Warning, offset as usize, message, hint);
        }
    }

    /// What a declaration takes out of a value.
    fn taken_apart(
        &self,
        pattern: &BindingPattern<'a>,
        value: &Literal,
        report: &mut FindingCollector<'_>,
    ) {
        match pattern {
            BindingPattern::ObjectPattern(pattern) => self.pattern(pattern, value, report),
            BindingPattern::ArrayPattern(pattern) => {
                for (at, part) in pattern.elements.iter().enumerate() {
                    if let Some(part) = part {
                        self.taken_apart(part, &item(value, at), report);
                    }
                }
            }
            _ => {}
        }
    }

    fn pattern(
        &self,
        pattern: &ObjectPattern<'a>,
        value: &Literal,
        report: &mut FindingCollector<'_>,
    ) {
        for property in &pattern.properties {
            let Some(name) = property.key.static_name() else { continue };
            let offset = property.key.span().start;
            if self.values.conditions.is_dead(offset) {
                return;
            }
            if let Some(lacking) = lacking(value, &name) {
                let has_default = matches!(property.value, BindingPattern::AssignmentPattern(_));
                let is_expected = has_default || self.values.conditions.is_tried(offset);
                report_lacking(&lacking, &name, offset, is_expected, report);
            } else {
                self.taken_apart(&property.value, &super::values::part(value, &name), report);
            }
        }
    }

    /// Reports a value that is taken apart into items and has none.
    fn items(&self, expression: &Expression<'a>, report: &mut FindingCollector<'_>) {
        let offset = expression.span().start;
        let value = self.values.read(expression);
        let has_items = !matches!(
            value.kind,
            LiteralKind::Object { .. } | LiteralKind::SomeNumber | LiteralKind::Boolean(_)
        );
        let (Some(origin), false) = (&value.origin, has_items) else { return };
        if self.values.conditions.is_dead(offset) {
            return;
        }
        let message = format!("{} is no list", origin.subject());
        let severity = if self.values.conditions.is_tried(offset) {
            CheckSeverity::Warning
        } else {
            CheckSeverity::Error
        };
        report.add(
            severity,
            offset as usize,
            message,
            Some(value.contents("", Language::TypeScript)),
        );
    }
}

const ENVELOPE: &str = "a call returns the data itself, without an MCP result around it";

fn report_lacking(
    lacking: &Literal,
    name: &str,
    offset: u32,
    is_expected: bool,
    report: &mut FindingCollector<'_>,
) {
    let Some(origin) = &lacking.origin else { return };
    let message = format!("{} has no `{}`", origin.subject(), cut(name));
    let is_envelope = matches!(name, "content" | "structuredContent" | "isError");
    let mut hint = lacking.contents(name, Language::TypeScript);
    if is_envelope && origin.path.is_empty() {
        hint = format!("{ENVELOPE}; {hint}");
    } else if matches!(lacking.kind, LiteralKind::Object { complete: false, .. }) {
        // The schema does not say that this is all.
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        let read = if is_number { format!("[{}]", cut(name)) } else { format!(".{}", cut(name)) };
        hint = format!("{hint}; if it is there all the same, write `(… as any){read}`");
    }
    let severity = if is_expected { CheckSeverity::Warning } else { CheckSeverity::Error };
    report.add(severity, offset as usize, message, Some(hint));
}

/// The value, or the alternative of it, that does not have a part of this name, if it is certain that
/// none has.
fn lacking(value: &Literal, name: &str) -> Option<Literal> {
    if let Some(all) = value.kind.alternatives() {
        let is_absent =
            |one: &&Literal| matches!(one.kind, LiteralKind::Null | LiteralKind::Undefined);
        let mut found = None;
        for one in all.iter().filter(|one| !is_absent(one)) {
            found = Some(lacking(one, name)?);
        }
        return found;
    }
    value.origin.as_ref()?;
    let is_known = match &value.kind {
        LiteralKind::Object { entries, .. } => entries.iter().any(|entry| entry.key == name),
        LiteralKind::Array { .. } | LiteralKind::ListOf(_) => {
            ARRAY_PARTS.contains(&name) || name.bytes().all(|byte| byte.is_ascii_digit())
        }
        LiteralKind::Text(_) => {
            TEXT_PARTS.contains(&name) || name.bytes().all(|byte| byte.is_ascii_digit())
        }
        LiteralKind::Number(_) | LiteralKind::SomeNumber => NUMBER_PARTS.contains(&name),
        LiteralKind::Boolean(_) => false,
        _ => true,
    };
    (!is_known && !OBJECT_PARTS.contains(&name)).then(|| value.clone())
}
