//! What functions and methods of the language return.

use std::rc::Rc;

use oxc_ast::ast::{CallExpression, Expression};

use super::{Values, awaited, element, some_of};
use crate::check::{
    declared::one_of,
    literal::{Literal, LiteralKind, NOWHERE},
    typescript::{
        calls::{is_free, named_part},
        promises::global_method,
    },
};

#[expect(clippy::unnecessary_wraps, reason = "it is returned where a value may be unknown")]
fn some(kind: LiteralKind) -> Option<Literal> {
    Some(Literal::new(NOWHERE, kind))
}

fn list_of(item: Literal) -> Option<Literal> {
    some(LiteralKind::ListOf(Rc::new(item)))
}

fn promise(value: Literal) -> Option<Literal> {
    some(LiteralKind::Promise(Rc::new(value)))
}

const TEXT: LiteralKind = LiteralKind::Text(None);
const NUMBER: LiteralKind = LiteralKind::SomeNumber;
const TRUTH: LiteralKind = LiteralKind::Boolean(None);

impl<'a> Values<'_, 'a> {
    /// What a call of a function of the script or of the language returns.
    pub(super) fn built_in(&self, call: &CallExpression<'a>, depth: usize) -> Option<Literal> {
        let argument = |at: usize| call.arguments.get(at).and_then(|it| it.as_expression());
        let given =
            || argument(0).map_or(Literal::unknown(NOWHERE), |it| self.read_at(it, depth + 1));
        if let Expression::Identifier(name) = call.callee.get_inner_expression() {
            if !is_free(name, self.script) {
                return self.returned_by(self.symbol_of(name)?, depth);
            }
            return match name.name.as_str() {
                "String" => some(TEXT),
                "Number" | "parseInt" | "parseFloat" => some(NUMBER),
                "Boolean" | "isNaN" => some(TRUTH),
                "structuredClone" => Some(given()),
                _ => None,
            };
        }
        if let Some((object, method)) = global_method(call, self.script) {
            match (object, method) {
                // Of a result it is the result.
                ("JSON", "parse") => {
                    let value = given();
                    return value.origin.is_some().then_some(value);
                }
                ("JSON", "stringify") | ("String", _) => return some(TEXT),
                ("Number", "isInteger" | "isFinite" | "isNaN" | "isSafeInteger") => {
                    return some(TRUTH);
                }
                ("Math" | "Number", _) | ("Date", "now" | "UTC" | "parse") => return some(NUMBER),
                ("Array", "isArray") => return some(TRUTH),
                ("Object", "keys") => return list_of(Literal::new(NOWHERE, TEXT)),
                ("Object", "freeze" | "seal") => return Some(given()),
                ("Promise", "resolve") => return promise(awaited(given())),
                ("Promise", "all") => {
                    let all = match given().kind {
                        LiteralKind::Array { items, complete } => {
                            let items = items.iter().cloned().map(awaited).collect();
                            Literal::new(NOWHERE, LiteralKind::array(items, complete))
                        }
                        LiteralKind::ListOf(item) => list_of(awaited((*item).clone()))?,
                        _ => return None,
                    };
                    return promise(all);
                }
                _ => {}
            }
        }
        let (object, method, _) = named_part(&call.callee)?;
        let receiver = self.read_at(object, depth + 1);
        let returned = || {
            let value = argument(0).and_then(|it| self.returned_by_expression(it, depth + 1));
            value.unwrap_or(Literal::unknown(NOWHERE))
        };
        match &receiver.kind {
            LiteralKind::Promise(_) => match method {
                "then" if call.arguments.len() == 1 => promise(awaited(returned())),
                "finally" => Some(receiver),
                _ => None,
            },
            LiteralKind::Text(_) => match method {
                "split" => list_of(Literal::new(NOWHERE, TEXT)),
                "indexOf" | "lastIndexOf" | "charCodeAt" | "search" | "localeCompare" => {
                    some(NUMBER)
                }
                "includes" | "startsWith" | "endsWith" => some(TRUTH),
                "match" | "matchAll" | "at" | "codePointAt" => None,
                _ => some(TEXT),
            },
            LiteralKind::Array { .. } | LiteralKind::ListOf(_) => {
                let one = element(&receiver);
                match method {
                    "map" => list_of(returned()),
                    "sort" | "reverse" | "toSorted" | "toReversed" => list_of(one),
                    "filter" | "slice" => list_of(some_of(one)),
                    "find" | "findLast" | "at" | "pop" | "shift" => {
                        let absent = Literal::new(NOWHERE, LiteralKind::Undefined);
                        Some(one_of(vec![absent, some_of(one)]))
                    }
                    "join" => some(TEXT),
                    "includes" | "some" | "every" => some(TRUTH),
                    "indexOf" | "findIndex" | "push" | "unshift" | "lastIndexOf" => some(NUMBER),
                    _ => None,
                }
            }
            LiteralKind::Number(_) | LiteralKind::SomeNumber => match method {
                "toFixed" | "toString" | "toLocaleString" | "toPrecision" => some(TEXT),
                _ => None,
            },
            LiteralKind::Unknown => match method {
                "getTime" | "valueOf" | "getFullYear" | "getMonth" | "getDate" | "getDay"
                | "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds"
                    if self.is_date(object) =>
                {
                    some(NUMBER)
                }
                "toISOString" | "toFixed" | "toUpperCase" | "toLowerCase" => some(TEXT),
                _ => None,
            },
            _ => None,
        }
    }
}

/// What a method gives to a parameter of its callback.
pub(super) fn callback_argument(
    receiver: &Literal,
    method: &str,
    position: usize,
) -> Option<Literal> {
    match (&receiver.kind, method, position) {
        (LiteralKind::Promise(value), "then", 0) => Some((**value).clone()),
        (
            LiteralKind::Array { .. } | LiteralKind::ListOf(_),
            "map" | "forEach" | "filter" | "flatMap",
            0,
        ) => Some(element(receiver)),
        // These may not come to every element.
        (
            LiteralKind::Array { .. } | LiteralKind::ListOf(_),
            "find" | "findLast" | "findIndex" | "some" | "every",
            0,
        )
        | (LiteralKind::Array { .. } | LiteralKind::ListOf(_), "reduce" | "reduceRight", 1)
        | (LiteralKind::Array { .. } | LiteralKind::ListOf(_), "sort" | "toSorted", 0 | 1) => {
            Some(some_of(element(receiver)))
        }
        (LiteralKind::Array { .. } | LiteralKind::ListOf(_), "map" | "forEach" | "filter", 1) => {
            some(NUMBER)
        }
        _ => None,
    }
}
