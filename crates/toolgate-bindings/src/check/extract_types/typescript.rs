//! Types of TypeScript.

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, BindingIdentifier, CallExpression, Expression, TSInterfaceDeclaration, TSLiteral,
    TSSignature, TSType, TSTypeAliasDeclaration, TSTypeName,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use serde_json::{Value, json};

use super::{EXTRACT, Edit, MAX_DEPTH, ObjectType, any_of};
use crate::check::typescript::parse;

pub(super) fn edits(text: &str) -> Vec<Edit> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text);
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Vec::new();
    }
    let mut declared = Declared::default();
    declared.visit_program(&parsed.program);
    if declared.has_own_extract {
        return Vec::new();
    }
    let mut calls = Calls { declared: &declared, edits: Vec::new() };
    calls.visit_program(&parsed.program);
    calls.edits
}

/// The types that a script declares.
#[derive(Default)]
struct Declared {
    types: HashMap<String, DeclaredType>,
    has_own_extract: bool,
}

/// A declaration: what it extends, and its own members.
struct DeclaredType {
    extends: Vec<String>,
    shape: TypeShape,
}

/// A type, with the names of others that it mentions.
enum TypeShape {
    Known(Value),
    Named(String),
    Array(Box<TypeShape>),
    Map(Box<TypeShape>),
    AnyOf(Vec<TypeShape>),
    AllOf(Vec<TypeShape>),
    Object(Vec<(String, TypeShape, bool)>),
}

impl<'a> Visit<'a> for Declared {
    fn visit_ts_interface_declaration(&mut self, interface: &TSInterfaceDeclaration<'a>) {
        let extends = interface.extends.iter().filter_map(|base| name(&base.type_name));
        if let Some(shape) = members(&interface.body.body, 0) {
            let declared = DeclaredType { extends: extends.collect(), shape };
            self.types.insert(interface.id.name.to_string(), declared);
        }
    }

    fn visit_ts_type_alias_declaration(&mut self, alias: &TSTypeAliasDeclaration<'a>) {
        if let Some(shape) = shape(&alias.type_annotation, 0) {
            let declared = DeclaredType { extends: Vec::new(), shape };
            self.types.insert(alias.id.name.to_string(), declared);
        }
    }

    fn visit_binding_identifier(&mut self, identifier: &BindingIdentifier<'a>) {
        self.has_own_extract |= identifier.name == EXTRACT;
    }
}

impl Declared {
    fn named(&self, name: &str, depth: usize) -> Option<Value> {
        let DeclaredType { extends, shape } = self.types.get(name)?;
        let schema = self.schema(shape, depth + 1)?;
        if extends.is_empty() {
            return Some(schema);
        }
        let mut object = ObjectType::default();
        for base in extends {
            object.inherit(&self.named(base, depth + 1)?);
        }
        object.inherit(&schema);
        Some(object.schema())
    }

    fn schema(&self, shape: &TypeShape, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let inner = |shape: &TypeShape| self.schema(shape, depth + 1);
        let all = |shapes: &[TypeShape]| shapes.iter().map(inner).collect::<Option<Vec<Value>>>();
        Some(match shape {
            TypeShape::Known(schema) => schema.clone(),
            TypeShape::Named(name) => self.named(name, depth)?,
            TypeShape::Array(items) => json!({ "type": "array", "items": inner(items)? }),
            TypeShape::Map(values) => {
                json!({ "type": "object", "additionalProperties": inner(values)? })
            }
            TypeShape::AnyOf(shapes) => any_of(all(shapes)?),
            TypeShape::AllOf(shapes) => {
                let mut object = ObjectType::default();
                for part in all(shapes)? {
                    part.get("properties")?;
                    object.inherit(&part);
                }
                object.schema()
            }
            TypeShape::Object(members) => {
                let mut object = ObjectType::default();
                for (name, shape, is_required) in members {
                    object.add(name, inner(shape)?, *is_required);
                }
                object.schema()
            }
        })
    }
}

/// The calls of `extract` with a type.
struct Calls<'d> {
    declared: &'d Declared,
    edits: Vec<Edit>,
}

impl<'a> Visit<'a> for Calls<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if matches!(&call.callee, Expression::Identifier(callee) if callee.name == EXTRACT) {
            self.expand(call);
        }
        walk::walk_call_expression(self, call);
    }
}

impl Calls<'_> {
    fn expand(&mut self, call: &CallExpression<'_>) {
        let parameter = call.type_arguments.as_ref().and_then(|all| all.params.first());
        let of_parameter = || parameter.and_then(|one| self.declared.schema(&shape(one, 0)?, 0));
        match call.arguments.as_slice() {
            // `extract(text, "Ticket")`
            [_, Argument::StringLiteral(named), ..]
                if self.declared.types.contains_key(named.value.as_str()) =>
            {
                let Some(schema) = self.declared.named(&named.value, 0) else { return };
                let place = named.span.start as usize..named.span.end as usize;
                self.edit(place, schema.to_string());
            }
            // `extract<Ticket>(text)`, and with a hint
            [value] | [value, Argument::StringLiteral(_) | Argument::TemplateLiteral(_)] => {
                let Some(schema) = of_parameter() else { return };
                self.edit(end(value.span()), format!(", {schema}"));
            }
            _ => {}
        }
    }

    fn edit(&mut self, place: std::ops::Range<usize>, text: String) {
        self.edits.push(Edit { place, text });
    }
}

fn end(span: Span) -> std::ops::Range<usize> {
    span.end as usize..span.end as usize
}

fn name(name: &TSTypeName<'_>) -> Option<String> {
    match name {
        TSTypeName::IdentifierReference(name) => Some(name.name.to_string()),
        _ => None,
    }
}

/// What a type consists of; `None` for types of which no value can be JSON.
fn shape(of: &TSType<'_>, depth: usize) -> Option<TypeShape> {
    if depth > MAX_DEPTH {
        return None;
    }
    let inner = |one: &TSType<'_>| shape(one, depth + 1);
    let boxed = |one: &TSType<'_>| inner(one).map(Box::new);
    let simple = |kind: &str| TypeShape::Known(json!({ "type": kind }));
    Some(match of {
        TSType::TSStringKeyword(_) => simple("string"),
        TSType::TSNumberKeyword(_) => simple("number"),
        TSType::TSBooleanKeyword(_) => simple("boolean"),
        TSType::TSNullKeyword(_) => simple("null"),
        TSType::TSAnyKeyword(_) | TSType::TSUnknownKeyword(_) => TypeShape::Known(json!({})),
        TSType::TSObjectKeyword(_) => simple("object"),
        TSType::TSArrayType(array) => TypeShape::Array(boxed(&array.element_type)?),
        TSType::TSTypeOperatorType(operator) => inner(&operator.type_annotation)?,
        TSType::TSParenthesizedType(inside) => inner(&inside.type_annotation)?,
        TSType::TSTypeLiteral(literal) => members(&literal.members, depth)?,
        TSType::TSLiteralType(literal) => {
            let value: Value = match &literal.literal {
                TSLiteral::StringLiteral(text) => text.value.as_str().into(),
                TSLiteral::NumericLiteral(number) => number.value.into(),
                TSLiteral::BooleanLiteral(flag) => flag.value.into(),
                _ => return None,
            };
            TypeShape::Known(json!({ "enum": [value] }))
        }
        TSType::TSUnionType(union) => {
            let kept =
                union.types.iter().filter(|one| !matches!(one, TSType::TSUndefinedKeyword(_)));
            TypeShape::AnyOf(kept.map(inner).collect::<Option<_>>()?)
        }
        TSType::TSIntersectionType(all) => {
            TypeShape::AllOf(all.types.iter().map(inner).collect::<Option<_>>()?)
        }
        TSType::TSTypeReference(reference) => {
            let arguments = reference.type_arguments.as_ref().map(|all| all.params.as_slice());
            match (name(&reference.type_name)?.as_str(), arguments) {
                ("Array" | "ReadonlyArray", Some([items])) => TypeShape::Array(boxed(items)?),
                ("Record", Some([_, values])) => TypeShape::Map(boxed(values)?),
                ("Readonly" | "Required", Some([inside])) => inner(inside)?,
                (name, None) => TypeShape::Named(name.to_owned()),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn members(of: &[TSSignature<'_>], depth: usize) -> Option<TypeShape> {
    let mut object = Vec::new();
    for member in of {
        match member {
            TSSignature::TSPropertySignature(property) => {
                let name = property.key.static_name()?.to_string();
                let annotation = &property.type_annotation.as_ref()?.type_annotation;
                let may_miss = property.optional
                    || matches!(annotation, TSType::TSUnionType(union)
                        if union.types.iter().any(|one| matches!(one, TSType::TSUndefinedKeyword(_))));
                object.push((name, shape(annotation, depth + 1)?, !may_miss));
            }
            TSSignature::TSIndexSignature(index) if of.len() == 1 => {
                let values = shape(&index.type_annotation.type_annotation, depth + 1)?;
                return Some(TypeShape::Map(Box::new(values)));
            }
            _ => return None,
        }
    }
    Some(TypeShape::Object(object))
}
