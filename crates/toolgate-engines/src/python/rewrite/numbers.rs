//! Truth values in arithmetic, sums and rounding, which Monty takes in another way.

use ruff_python_ast::{Expr, ExprCall, ExprCompare, Operator, visitor::Visitor};
use ruff_text_size::Ranged;

use super::Rewriter;

impl<'a> Rewriter<'a> {
    /// An operand. Monty does not add or subtract truth values.
    pub(super) fn operand(&mut self, operand: &'a Expr, operator: Operator) {
        let differs = matches!(operator, Operator::Add | Operator::Sub | Operator::Mod);
        if differs && self.bindings.may_be_truth(operand) {
            self.as_number(operand);
        } else {
            self.visit_expr(operand);
        }
    }

    /// What is added to a variable. An item of a tool's result may well be a truth value.
    pub(super) fn added(&mut self, value: &'a Expr, operator: Operator) {
        let is_item = match value {
            Expr::Subscript(subscript) => subscript.slice.is_string_literal_expr(),
            Expr::Call(call) => call.func.as_attribute_expr().is_some_and(|f| &f.attr == "get"),
            _ => false,
        };
        if is_item && matches!(operator, Operator::Add | Operator::Sub) {
            self.as_number(value);
        } else {
            self.operand(value, operator);
        }
    }

    /// `sum(…)` and `round(…, n)`. Says whether it was one.
    pub(super) fn number_call(&mut self, call: &'a ExprCall) -> bool {
        let name = call.func.as_name_expr().map(|name| name.id.as_str());
        let function = match name {
            Some("sum") => "_tg_sum",
            Some("round") if call.arguments.len() > 1 => "_tg_round",
            _ => return false,
        };
        if !self.bindings.is_built_in(name.unwrap_or_default()) {
            return false;
        }
        self.need("<numbers>");
        self.edits.replace(call.func.range(), function);
        self.visit_arguments(&call.arguments);
        true
    }

    /// `a < b`, where a member of an enumeration may be compared like its value.
    pub(super) fn comparison(&mut self, comparison: &'a ExprCompare) {
        use ruff_python_ast::CmpOp::{Gt, GtE, Lt, LtE};
        let ordered = comparison.ops.iter().all(|op| matches!(op, Gt | GtE | Lt | LtE));
        for operand in std::iter::once(&*comparison.left).chain(&comparison.comparators) {
            if ordered && !operand.is_literal_expr() {
                self.need("<classes>");
                self.edits.open(operand, "_tg_value(");
                self.visit_expr(operand);
                self.edits.close(operand, ")");
            } else {
                self.visit_expr(operand);
            }
        }
    }

    fn as_number(&mut self, expression: &'a Expr) {
        self.need("<numbers>");
        self.edits.open(expression, "_tg_number(");
        self.visit_expr(expression);
        self.edits.close(expression, ")");
    }
}
