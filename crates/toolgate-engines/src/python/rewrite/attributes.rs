//! Attributes: of modules, of what Monty's types do not have, of methods that are not called.

use ruff_python_ast::{Expr, ExprAttribute, visitor::Visitor};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Rewriter, inside};
use crate::python::prelude::{self, Extent};

/// Methods that scripts pass on: `key=counts.get`, `add = items.append`.
const PASSED_ON: &[&str] = &[
    "add",
    "append",
    "count",
    "endswith",
    "extend",
    "find",
    "format",
    "get",
    "index",
    "isalnum",
    "isalpha",
    "isdigit",
    "isoformat",
    "items",
    "join",
    "keys",
    "lower",
    "pop",
    "popleft",
    "remove",
    "replace",
    "search",
    "split",
    "startswith",
    "strip",
    "total_seconds",
    "update",
    "upper",
    "values",
];

impl<'a> Rewriter<'a> {
    /// `a.__class__` and `a.__name__`, which Monty has only as functions, or of classes.
    fn reflection(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute) -> bool {
        let function = match attribute.attr.as_str() {
            "__class__" => "type(",
            "__name__" if !attribute.value.is_call_expr() => "_tg_name(",
            _ => return false,
        };
        let before = &self.source[..attribute.attr.start().to_usize()];
        let dot = before.rfind('.').and_then(|dot| TextSize::try_from(dot).ok());
        let (Some(dot), true) = (dot, attribute.ctx.is_load()) else { return false };
        self.need("<core>");
        self.edits.open(expression, function);
        self.visit_expr(&attribute.value);
        self.edits.replace(TextRange::new(dot, expression.end()), ")");
        true
    }

    pub(super) fn attribute(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute) {
        if self.property(expression, attribute) || self.reflection(expression, attribute) {
            return;
        }
        let attr = attribute.attr.as_str();
        let is_called = self.callee.take() == Some(expression.range());
        let Some(name) = attribute.value.as_name_expr() else {
            return self.bound(expression, attribute, is_called);
        };
        if name.id.as_str() == "str" && attribute.ctx.is_load() {
            if attr == "maketrans" {
                self.need("<core>");
                self.edits.replace(expression.range(), "_tg_maketrans");
            } else {
                // Monty's types have no methods of their own, only their instances.
                self.edits.replace(
                    expression.range(),
                    format!("(lambda _tg_s, *_tg_a: _tg_s.{attr}(*_tg_a))"),
                );
            }
            return;
        }
        let module = self.modules.get(name.id.as_str()).copied();
        if let Some(piece) = module.and_then(prelude::module)
            && let Extent::Adds(names) = piece.extent
            && names.contains(&attr)
            // Monty's own, where it does: it is the quicker one.
            && !matches!((piece.name, attr), ("asyncio", "run") | ("json", "dumps") | ("re", "sub"))
        {
            self.need(piece.name);
            self.edits.replace(name.range(), piece.variable());
            return;
        }
        if module.is_some() {
            return inside(self, expression);
        }
        self.bound(expression, attribute, is_called);
    }

    /// A method that is passed on instead of called: Monty's own types have it only as a call.
    fn bound(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute, is_called: bool) {
        let method = attribute.attr.as_str();
        if is_called || !attribute.ctx.is_load() || !PASSED_ON.contains(&method) {
            return inside(self, expression);
        }
        let before = &self.source[..attribute.attr.start().to_usize()];
        let Some(dot) = before.rfind('.').and_then(|dot| TextSize::try_from(dot).ok()) else {
            return inside(self, expression);
        };
        self.edits.open(
            expression,
            format!(
                "(lambda _tg_o: _tg_o.{method} if hasattr(_tg_o, '{method}') else \
                 (lambda *_tg_a: _tg_o.{method}(*_tg_a)))("
            ),
        );
        self.visit_expr(&attribute.value);
        self.edits.replace(TextRange::new(dot, expression.end()), ")");
    }

    /// An enumeration where its members are gone through.
    pub(super) fn members_of(&mut self, expression: &Expr) {
        if self.classes.is_enumeration(expression) {
            self.edits.close(expression, ".__members__.values()");
        }
    }
}
