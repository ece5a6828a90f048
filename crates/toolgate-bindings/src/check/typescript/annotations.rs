//! Reads the types of a script as values that are known only at run time.

use std::rc::Rc;

use oxc_ast::{
    AstKind,
    ast::{Expression, TSLiteral, TSSignature, TSType, TSTypeName, TSTypeReference},
};

use super::ParsedScript;
use crate::check::{
    declared::one_of,
    literal::{Literal, LiteralEntry, LiteralKind, NOWHERE},
};

/// The depth to which a type is read. Deeper ones are unknown.
const MAX_DEPTH: usize = 8;

/// A value of a type.
pub(super) fn read(annotation: &TSType<'_>, script: &ParsedScript<'_, '_>) -> Literal {
    read_at(annotation, script, 0)
}

fn read_at(annotation: &TSType<'_>, script: &ParsedScript<'_, '_>, depth: usize) -> Literal {
    let inner = |annotation: &TSType<'_>| read_at(annotation, script, depth + 1);
    if depth > MAX_DEPTH {
        return Literal::unknown(NOWHERE);
    }
    let kind = match annotation {
        TSType::TSStringKeyword(_) | TSType::TSTemplateLiteralType(_) => LiteralKind::Text(None),
        TSType::TSNumberKeyword(_) | TSType::TSBigIntKeyword(_) => LiteralKind::SomeNumber,
        TSType::TSBooleanKeyword(_) => LiteralKind::Boolean(None),
        TSType::TSNullKeyword(_) => LiteralKind::Null,
        TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => LiteralKind::Undefined,
        TSType::TSParenthesizedType(it) => return inner(&it.type_annotation),
        TSType::TSTypeOperatorType(it) => return inner(&it.type_annotation),
        TSType::TSArrayType(it) => LiteralKind::ListOf(Rc::new(inner(&it.element_type))),
        TSType::TSTupleType(_) => LiteralKind::array(Vec::new(), false),
        TSType::TSUnionType(it) => return one_of(it.types.iter().map(inner).collect()),
        TSType::TSLiteralType(it) => match &it.literal {
            TSLiteral::BooleanLiteral(literal) => LiteralKind::Boolean(Some(literal.value)),
            TSLiteral::NumericLiteral(literal) => LiteralKind::number(literal.value),
            TSLiteral::StringLiteral(literal) => LiteralKind::Text(Some(literal.value.to_string())),
            TSLiteral::TemplateLiteral(_) => LiteralKind::Text(None),
            TSLiteral::BigIntLiteral(_) | TSLiteral::UnaryExpression(_) => LiteralKind::SomeNumber,
        },
        TSType::TSTypeLiteral(it) => object(&it.members, script, depth),
        TSType::TSTypeReference(it) => return reference(it, script, depth),
        _ => LiteralKind::Unknown,
    };
    Literal::new(NOWHERE, kind)
}

/// An object with these members. One with methods or any keys has more than its entries.
fn object(members: &[TSSignature<'_>], script: &ParsedScript<'_, '_>, depth: usize) -> LiteralKind {
    let mut entries = Vec::new();
    let mut complete = true;
    for member in members {
        let TSSignature::TSPropertySignature(property) = member else {
            complete = false;
            continue;
        };
        let Some(key) = property.key.static_name() else {
            complete = false;
            continue;
        };
        let annotation = property.type_annotation.as_ref();
        let mut value = annotation.map_or(Literal::unknown(NOWHERE), |annotation| {
            read_at(&annotation.type_annotation, script, depth + 1)
        });
        if property.optional && value.kind != LiteralKind::Unknown {
            value = one_of(vec![Literal::new(NOWHERE, LiteralKind::Undefined), value]);
        }
        if property.optional && value.kind == LiteralKind::Unknown {
            complete = false;
            continue;
        }
        entries.push(LiteralEntry { key: key.into_owned(), offset: NOWHERE, value });
    }
    LiteralKind::object(entries, complete)
}

/// A type by its name: one of the script, or one of the language.
fn reference(it: &TSTypeReference<'_>, script: &ParsedScript<'_, '_>, depth: usize) -> Literal {
    let unknown = Literal::unknown(NOWHERE);
    let TSTypeName::IdentifierReference(name) = &it.type_name else { return unknown };
    let given = it.type_arguments.as_ref().map_or(&[][..], |given| given.params.as_slice());
    let first = || given.first().map_or(unknown.clone(), |it| read_at(it, script, depth + 1));
    let scoping = script.semantic.scoping();
    let symbol = name.reference_id.get().and_then(|id| scoping.get_reference(id).symbol_id());
    if let Some(symbol) = symbol {
        // A generic type depends on its arguments.
        return match script.semantic.nodes().kind(scoping.symbol_declaration(symbol)) {
            AstKind::TSTypeAliasDeclaration(alias) if alias.type_parameters.is_none() => {
                read_at(&alias.type_annotation, script, depth + 1)
            }
            AstKind::TSInterfaceDeclaration(interface)
                if interface.type_parameters.is_none()
                    && interface.extends.is_empty()
                    && scoping.symbol_redeclarations(symbol).is_empty() =>
            {
                Literal::new(NOWHERE, object(&interface.body.body, script, depth))
            }
            _ => unknown,
        };
    }
    let kind = match name.name.as_str() {
        "Array" | "ReadonlyArray" => LiteralKind::ListOf(Rc::new(first())),
        "Promise" | "PromiseLike" => LiteralKind::Promise(Rc::new(first())),
        "Record" => LiteralKind::object(Vec::new(), false),
        "Readonly" | "Required" | "NonNullable" => return first(),
        _ => LiteralKind::Unknown,
    };
    Literal::new(NOWHERE, kind)
}

/// Whether a cast says that a value is of any type.
pub(super) fn is_any(annotation: &TSType<'_>) -> bool {
    matches!(annotation, TSType::TSAnyKeyword(_) | TSType::TSUnknownKeyword(_))
}

/// Whether a cast is `as const`, which says nothing new.
pub(super) fn is_const(annotation: &TSType<'_>) -> bool {
    matches!(annotation, TSType::TSTypeReference(it)
        if matches!(&it.type_name, TSTypeName::IdentifierReference(name) if name.name == "const"))
}

/// Whether an expression, behind casts, is an object or a list that the script writes.
pub(super) fn is_written(expression: &Expression<'_>) -> bool {
    matches!(
        expression.get_inner_expression(),
        Expression::ObjectExpression(_) | Expression::ArrayExpression(_)
    )
}
