//! Expressions as values, as far as the text says.

use ruff_python_ast::{Expr, Number, Operator, UnaryOp};

use super::offset;
use crate::check::literal::{Entries, Entry, Kind, Literal, MAX_DEPTH};

pub(super) fn read(expression: &Expr) -> Literal {
    read_at(expression, 0)
}

fn read_at(expression: &Expr, depth: usize) -> Literal {
    let kind = if depth > MAX_DEPTH { Kind::Unknown } else { kind(expression, depth) };
    Literal { offset: offset(expression), kind }
}

fn kind(expression: &Expr, depth: usize) -> Kind {
    match expression {
        Expr::NoneLiteral(_) => Kind::Null,
        Expr::BooleanLiteral(literal) => Kind::Boolean(Some(literal.value)),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(value) => value.to_string().parse().map_or(Kind::Unknown, number),
            Number::Float(value) => number(*value),
            Number::Complex { .. } => Kind::Unknown,
        },
        Expr::StringLiteral(literal) => Kind::Text(Some(literal.value.to_str().to_owned())),
        Expr::FString(_) => Kind::Text(None),
        Expr::UnaryOp(unary) => match (unary.op, read_at(&unary.operand, depth + 1).kind) {
            (UnaryOp::USub, Kind::Number(value)) => number(-value),
            (UnaryOp::UAdd, Kind::Number(value)) => number(value),
            (UnaryOp::Not, _) => Kind::Boolean(None),
            _ => Kind::Unknown,
        },
        Expr::Compare(_) => Kind::Boolean(None),
        Expr::BinOp(binary) => {
            let is_text = |side: &Expr| matches!(read_at(side, depth + 1).kind, Kind::Text(_));
            match binary.op {
                Operator::Add if is_text(&binary.left) || is_text(&binary.right) => {
                    Kind::Text(None)
                }
                Operator::Mod if is_text(&binary.left) => Kind::Text(None),
                _ => Kind::Unknown,
            }
        }
        Expr::List(list) => array(&list.elts, depth),
        Expr::Tuple(tuple) => array(&tuple.elts, depth),
        Expr::Dict(dict) => {
            let mut entries = Entries::default();
            for item in &dict.items {
                match &item.key {
                    Some(key @ Expr::StringLiteral(text)) => entries.push(Entry {
                        key: text.value.to_str().to_owned(),
                        offset: offset(key),
                        value: read_at(&item.value, depth + 1),
                    }),
                    _ => entries.push_unknown(),
                }
            }
            entries.finish()
        }
        _ => Kind::Unknown,
    }
}

fn array(elements: &[Expr], depth: usize) -> Kind {
    let complete = !elements.iter().any(Expr::is_starred_expr);
    let items = elements.iter().filter(|element| !element.is_starred_expr());
    Kind::Array { items: items.map(|item| read_at(item, depth + 1)).collect(), complete }
}

fn number(value: f64) -> Kind {
    if value.is_finite() { Kind::Number(value) } else { Kind::Unknown }
}
