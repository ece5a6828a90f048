//! Attributes: of modules, attributes that Monty's types lack, and methods that are not called.

use ruff_python_ast::{
    CmpOp, Expr, ExprAttribute, ExprCall, ExprCompare, Operator, Stmt, StmtAnnAssign, StmtClassDef,
    visitor::Visitor,
};
use ruff_text_size::{Ranged, TextRange};

use super::{Rewriter, expressions::METHODS, inside};
use crate::python::prelude::{self, Extent};

/// Methods that scripts pass as values: `key=counts.get`, `add = items.append`.
#[rustfmt::skip]
const PASSED_ON: &[&str] = &[
    "add", "append", "count", "endswith", "extend", "find", "format", "get", "index", "isalnum",
    "isalpha", "isdigit", "isoformat", "items", "join", "keys", "lower", "pop", "popleft",
    "remove", "replace", "search", "split", "startswith", "strip", "total_seconds", "update",
    "upper", "values",
];

impl<'a> Rewriter<'a> {
    /// `a.__class__` and `a.__name__`, which Monty has only as functions, or only for classes.
    fn reflection(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute) -> bool {
        let function = match attribute.attr.as_str() {
            "__class__" => "_tg_type(",
            "__name__" => "_tg_name(",
            "real" | "imag" | "numerator" | "denominator" => "_tg_number_part(",
            "max" | "min" | "resolution" if is_of_time(&attribute.value) => "_tg_extreme(",
            _ => return false,
        };
        let (Some(dot), true) = (self.dot(attribute), attribute.ctx.is_load()) else {
            return false;
        };
        let (piece, end) = match function {
            "_tg_number_part(" => ("<numbers>", format!(", '{}')", attribute.attr)),
            "_tg_extreme(" => ("<methods>", format!(", '{}')", attribute.attr)),
            _ => ("<core>", ")".to_owned()),
        };
        self.need(piece);
        self.edits.open(expression, function);
        self.visit_expr(&attribute.value);
        self.edits.replace(TextRange::new(dot, expression.end()), end);
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
            } else if METHODS.contains(&attr) {
                self.need("<methods>");
                self.edits.replace(expression.range(), format!("_tg_{attr}"));
            } else {
                // In Monty only instances have methods, not the types themselves.
                self.edits.replace(
                    expression.range(),
                    format!("(lambda _tg_s, *_tg_a: _tg_s.{attr}(*_tg_a))"),
                );
            }
            return;
        }
        let module = self.modules.get(name.id.as_str()).copied();
        if let Some(piece) = module.and_then(prelude::module)
            && piece.extent == Extent::Part
            && piece.provides(attr)
            // Monty's own function is faster where it works.
            && !matches!((piece.name, attr), ("asyncio", "run") | ("json", "dumps"))
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

    /// A method that is passed as a value. Monty's own types support only calls.
    fn bound(&mut self, expression: &'a Expr, attribute: &'a ExprAttribute, is_called: bool) {
        let method = attribute.attr.as_str();
        if is_called || !attribute.ctx.is_load() || !PASSED_ON.contains(&method) {
            return inside(self, expression);
        }
        let Some(dot) = self.dot(attribute) else { return inside(self, expression) };
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

    /// An enumeration where its members are iterated.
    pub(super) fn members_of(&mut self, expression: &Expr) {
        if self.classes.is_enumeration(expression) {
            self.edits.close(expression, "._tg_items");
        }
    }
}

impl<'a> Rewriter<'a> {
    /// An operand. Monty does not add or subtract booleans.
    pub(super) fn operand(&mut self, operand: &'a Expr, operator: Operator) {
        let differs = matches!(operator, Operator::Add | Operator::Sub | Operator::Mod);
        if differs && self.bindings.may_be_truth(operand) {
            self.as_number(operand);
        } else {
            self.visit_expr(operand);
        }
    }

    /// A value that is added to a variable. An item of a tool's result may be a boolean.
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

    /// `sum(…)`, `round(…, n)`, `pow(…)` and `divmod(…)`. Returns whether it was one.
    pub(super) fn number_call(&mut self, call: &'a ExprCall) -> bool {
        let name = call.func.as_name_expr().map(|name| name.id.as_str());
        let function = match name {
            Some("sum") => "_tg_sum",
            Some("round") if call.arguments.len() > 1 => "_tg_round",
            Some("pow") if matches!(call.arguments.len(), 2 | 3) => "_tg_pow",
            Some("divmod") => "_tg_divmod",
            Some("float") if call.arguments.len() == 1 => "_tg_float",
            _ => return false,
        };
        if !self.bindings.is_built_in(name.unwrap_or_default()) {
            return false;
        }
        self.call_instead(call, "<numbers>", function);
        true
    }

    /// `a < b`, where a member of an enumeration may be compared like its value, and a set with another
    /// one. `a in Enumeration` looks among its members.
    pub(super) fn comparison(&mut self, expression: &'a Expr, comparison: &'a ExprCompare) {
        if let ([operator], [right]) = (&*comparison.ops, &*comparison.comparators)
            && self.compares_sets
            && is_ordering(comparison)
            && let left = &*comparison.left
            && !is_number(left)
            && !is_number(right)
            && let Some(range) = self.operator(left, right, operator.as_str())
        {
            self.need("<sets>");
            self.edits.open(expression, format!("_tg_ordered('{operator}', "));
            self.compared(left);
            self.edits.replace(range, ",");
            self.compared(right);
            return self.edits.close(expression, ")");
        }
        let is_ordering = is_ordering(comparison);
        for operand in std::iter::once(&*comparison.left).chain(&comparison.comparators) {
            if is_ordering { self.compared(operand) } else { self.visit_expr(operand) }
        }
        for (operator, operand) in comparison.ops.iter().zip(&comparison.comparators) {
            if matches!(operator, CmpOp::In | CmpOp::NotIn) && self.classes.is_enumeration(operand)
            {
                self.edits.close(operand, "._tg_all");
            }
        }
    }

    fn compared(&mut self, operand: &'a Expr) {
        if self.classes.has_ordered() && !operand.is_literal_expr() {
            self.need("<classes>");
            self.wrap(operand, "_tg_value(", ")");
        } else {
            self.visit_expr(operand);
        }
    }

    fn as_number(&mut self, expression: &'a Expr) {
        self.need("<numbers>");
        self.wrap(expression, "_tg_number(", ")");
    }
}

/// Whether an expression is the name of a type of `datetime`.
fn is_of_time(expression: &Expr) -> bool {
    let name = match expression {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    matches!(name, "date" | "datetime" | "time" | "timedelta")
}

/// Whether a comparison is by order.
pub(super) fn is_ordering(comparison: &ExprCompare) -> bool {
    use CmpOp::{Gt, GtE, Lt, LtE};
    comparison.ops.iter().all(|op| matches!(op, Gt | GtE | Lt | LtE))
}

/// Whether an operand is certainly no set.
fn is_number(operand: &Expr) -> bool {
    match operand {
        Expr::Call(call) => call.func.as_name_expr().is_some_and(|it| it.id == "len"),
        _ => operand.is_literal_expr(),
    }
}

/// The marker for an argument that was not passed.
const MISSING: &str = "_tg_missing";

impl<'a> Rewriter<'a> {
    /// Writes the methods of a data class explicitly, if it has fields that Monty would refuse.
    pub(super) fn record(&mut self, class: &'a StmtClassDef) {
        let fields: Vec<&StmtAnnAssign> = class
            .body
            .iter()
            .filter_map(|member| match member {
                Stmt::AnnAssign(field) if field.target.is_name_expr() => Some(field),
                _ => None,
            })
            .collect();
        if !fields.iter().any(|field| field_call(field).is_some()) {
            return;
        }
        self.need("<records>");
        for decorator in &class.decorator_list {
            if self.text(decorator).contains("dataclass") {
                self.edits.replace(decorator.range(), "");
            }
        }
        let mut parameters = String::new();
        let mut statements = Vec::new();
        let mut names = Vec::new();
        for field in &fields {
            let name = self.text(&*field.target).to_owned();
            if let Some(default) = self.default(field) {
                parameters.extend([", ", &name, "=", MISSING]);
                statements
                    .push(format!("self.{name} = {default} if {name} is {MISSING} else {name}"));
            } else {
                parameters.extend([", ", &name]);
                statements.push(format!("self.{name} = {name}"));
            }
            if field_call(field).is_some() {
                self.edits.replace(field.range(), format!("{name} = None"));
            }
            names.push(format!("'{name}'"));
        }
        let has = |wanted: &str| {
            class.body.iter().any(|m| m.as_function_def_stmt().is_some_and(|f| &f.name == wanted))
        };
        if has("__post_init__") {
            statements.push("self.__post_init__()".to_owned());
        }
        let (class_name, names) = (&class.name, names.join(", "));
        let mut members =
            vec![format!("def __init__(self{parameters}): {}", statements.join("; "))];
        if !has("__repr__") {
            let text = format!("_tg_record(self, '{class_name}', [{names}])");
            members.push(format!("def __repr__(self): return {text}"));
        }
        if !has("__eq__") {
            let same = format!("_tg_same(self, other, [{names}])");
            members.push(format!("def __eq__(self, other): return {same}"));
        }
        members.push(format!("__dataclass_fields__ = [{names}]"));
        for member in &members {
            self.append(&class.body, member);
        }
    }

    fn default(&self, field: &StmtAnnAssign) -> Option<String> {
        let value = field.value.as_deref()?;
        let Some(call) = field_call(field) else { return Some(self.text(value).to_owned()) };
        call.arguments.keywords.iter().find_map(|keyword| {
            let value = self.text(&keyword.value);
            match keyword.arg.as_deref()? {
                "default" => Some(value.to_owned()),
                "default_factory" => Some(format!("({value})()")),
                _ => None,
            }
        })
    }
}

fn field_call(field: &StmtAnnAssign) -> Option<&ExprCall> {
    let call = field.value.as_deref()?.as_call_expr()?;
    let is_field = match &*call.func {
        Expr::Name(name) => name.id == "field",
        Expr::Attribute(attribute) => &attribute.attr == "field",
        _ => false,
    };
    is_field.then_some(call)
}
