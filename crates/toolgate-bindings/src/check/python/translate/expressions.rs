//! Expressions.

use ruff_python_ast::{
    Arguments, Comprehension as SyntaxComprehension, Expr, ExprCall, ExprSubscript,
    InterpolatedStringElement, Number, Operator,
};
use ruff_text_size::Ranged;

use super::{ScopeKind, Translator};
use crate::check::{
    flow::ir::{
        Argument, Call, Clause, Comprehension, Entry, Expression, Item, Key, Target, is_frame,
    },
    python::bindings::Bindings,
};

/// Attributes with two underscores that reach no other data than the object itself.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "__init__", "__name__", "__str__", "__repr__", "__class__", "__doc__", "__len__", "__iter__",
    "__next__", "__aiter__", "__anext__", "__enter__", "__aenter__", "__version__", "__cause__",
];

impl<'a> Translator<'a> {
    pub(super) fn expression(&mut self, expression: &'a Expr) -> Expression {
        match expression {
            Expr::BoolOp(choice) => Expression::Either(self.expressions(&choice.values)),
            Expr::Named(named) => {
                let value = self.expression(&named.value);
                let target = self.target(&named.target);
                // In a comprehension it happens any number of times.
                if let (true, Target::Variable(variable)) = (self.is_in_comprehension(), &target) {
                    self.program.variables[*variable as usize].is_captured = true;
                }
                Expression::Assign(Box::new(target), Box::new(value))
            }
            Expr::BinOp(_) => self.binary(expression),
            Expr::UnaryOp(unary) => Expression::Operator(vec![self.expression(&unary.operand)]),
            Expr::Lambda(lambda) => Expression::Function(self.lambda(lambda)),
            Expr::If(choice) => Expression::Conditional(Box::new([
                self.expression(&choice.test),
                self.expression(&choice.body),
                self.expression(&choice.orelse),
            ])),
            Expr::Dict(dict) => {
                let mut entries = Vec::with_capacity(dict.items.len());
                for item in &dict.items {
                    let value = self.expression(&item.value);
                    entries.push(match &item.key {
                        Some(key) => Entry::Value(self.key(key), value),
                        None => Entry::Spread(value),
                    });
                }
                Expression::Object { entries, is_dict: true }
            }
            Expr::Set(set) => self.items(&set.elts),
            Expr::List(list) => self.items(&list.elts),
            Expr::Tuple(tuple) => self.items(&tuple.elts),
            Expr::ListComp(list) => self.comprehension(&list.generators, None, &list.elt),
            Expr::SetComp(set) => self.comprehension(&set.generators, None, &set.elt),
            Expr::Generator(each) => self.comprehension(&each.generators, None, &each.elt),
            Expr::DictComp(dict) => {
                self.comprehension(&dict.generators, dict.key.as_deref(), &dict.value)
            }
            Expr::Await(awaited) => Expression::Await(Box::new(self.expression(&awaited.value))),
            Expr::Yield(yielded) => {
                let value = yielded.value.as_ref().map(|value| self.expression(value));
                Expression::Yield(value.map(Box::new))
            }
            Expr::YieldFrom(yielded) => {
                Expression::YieldAll(Box::new(self.expression(&yielded.value)))
            }
            Expr::Compare(compare) => {
                let mut operands = vec![self.expression(&compare.left)];
                for (at, operand) in self.expressions(&compare.comparators).into_iter().enumerate()
                {
                    // Later ones may not be evaluated.
                    operands.push(if at == 0 {
                        operand
                    } else {
                        let parts = [Expression::Literal, operand, Expression::Literal];
                        Expression::Conditional(Box::new(parts))
                    });
                }
                Expression::Operator(operands)
            }
            Expr::Call(call) => self.call(call),
            Expr::FString(text) => {
                let mut parts = Vec::new();
                for element in text.value.elements() {
                    self.interpolated(element, &mut parts);
                }
                Expression::Operator(parts)
            }
            Expr::TString(_) | Expr::IpyEscapeCommand(_) => {
                self.program.is_opaque = true;
                Expression::Literal
            }
            Expr::StringLiteral(text) if text.value.len() <= 128 => {
                Expression::Text(self.program.names.intern(text.value.to_str()))
            }
            Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::Slice(_) => Expression::Literal,
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                self.program.is_opaque |=
                    name.starts_with("__") && !HARMLESS.contains(&name) || is_frame(name);
                let key = Key::Name(self.program.names.intern(name));
                Expression::Member(Box::new(self.whole(&attribute.value)), key)
            }
            Expr::Subscript(subscript) => self.subscript(subscript),
            Expr::Starred(starred) => self.expression(&starred.value),
            Expr::Name(name) => self.name(name.id.as_str()),
        }
    }

    fn expressions(&mut self, expressions: &'a [Expr]) -> Vec<Expression> {
        let mut translated = Vec::with_capacity(expressions.len());
        for expression in expressions {
            translated.push(self.expression(expression));
        }
        translated
    }

    fn items(&mut self, elements: &'a [Expr]) -> Expression {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let is_spread = element.is_starred_expr();
            items.push(Item { value: self.expression(element), is_spread });
        }
        Expression::Array(items)
    }

    /// A chain of operators, which may be as long as a script.
    fn binary(&mut self, expression: &'a Expr) -> Expression {
        let mut operands = Vec::new();
        let mut is_text = false;
        let mut can_merge = true;
        let mut left = expression;
        while let Expr::BinOp(binary) = left {
            can_merge &= !matches!(binary.op, Operator::Mod | Operator::Div | Operator::FloorDiv);
            is_text |= is_simple(&binary.right);
            operands.push(self.expression(&binary.right));
            left = &binary.left;
        }
        is_text |= is_simple(left);
        operands.push(self.expression(left));
        operands.reverse();
        if is_text || !can_merge {
            Expression::Operator(operands)
        } else {
            Expression::Merge(operands)
        }
    }

    fn interpolated(
        &mut self,
        element: &'a InterpolatedStringElement,
        parts: &mut Vec<Expression>,
    ) {
        if let InterpolatedStringElement::Interpolation(element) = element {
            let outer = self.in_shown_text;
            self.in_shown_text |= element.debug_text.is_some();
            parts.push(self.expression(&element.expression));
            self.in_shown_text = outer;
            if let Some(format) = &element.format_spec {
                for element in &format.elements {
                    self.interpolated(element, parts);
                }
            }
        }
    }

    fn key(&mut self, key: &'a Expr) -> Key {
        match key {
            Expr::StringLiteral(text) => Key::Name(self.program.names.intern(text.value.to_str())),
            Expr::NumberLiteral(number) => match &number.value {
                Number::Int(value) => Key::Name(self.program.names.intern(&value.to_string())),
                _ => Key::Computed(Box::new(Expression::Literal)),
            },
            other => Key::Computed(Box::new(self.expression(other))),
        }
    }

    fn subscript(&mut self, subscript: &'a ExprSubscript) -> Expression {
        let value = self.whole(&subscript.value);
        if let Expr::Slice(slice) = subscript.slice.as_ref() {
            let bounds = slice.lower.iter().chain(&slice.upper).chain(&slice.step);
            let bounds = bounds.map(|bound| self.expression(bound)).collect();
            return Expression::Slice(Box::new(value), bounds);
        }
        let key = self.key(&subscript.slice);
        Expression::Member(Box::new(value), key)
    }

    fn call(&mut self, call: &'a ExprCall) -> Expression {
        if let Expr::Name(name) = call.func.as_ref()
            && name.id == "super"
            && self.resolve("super").is_none()
        {
            return if let Some(receiver) = self.receivers.last().copied() {
                let function = self.function_id();
                let known = &mut self.program.variables[receiver as usize];
                known.is_captured |= known.owner != function;
                Expression::Variable(receiver)
            } else {
                self.program.is_opaque = true;
                Expression::Literal
            };
        }
        let callee = self.expression(&call.func);
        let arguments = self.arguments(&call.arguments);
        let offset = u32::from(call.start());
        let name = call.func.as_name_expr().filter(|_| !self.in_shown_text);
        let name_range = name.map(|name| (name.start().into(), name.end().into()));
        Expression::Call(Box::new(Call { callee, arguments, is_new: false, offset, name_range }))
    }

    fn arguments(&mut self, given: &'a Arguments) -> Vec<Argument> {
        let mut arguments = Vec::with_capacity(given.len());
        for argument in &given.args {
            let value = self.expression(argument);
            if argument.is_starred_expr() {
                Argument::spread(value, &mut arguments);
            } else {
                arguments.push(Argument::Position(value));
            }
        }
        for keyword in &given.keywords {
            let value = self.expression(&keyword.value);
            arguments.push(match &keyword.arg {
                Some(name) => Argument::Keyword(self.program.names.intern(name.as_str()), value),
                None => Argument::KeywordSpread(value),
            });
        }
        arguments
    }

    fn comprehension(
        &mut self,
        generators: &'a [SyntaxComprehension],
        key: Option<&'a Expr>,
        value: &'a Expr,
    ) -> Expression {
        // The first one is evaluated in the outer scope.
        let mut first = generators.first().map(|generator| self.expression(&generator.iter));
        let targets = generators.iter().map(|generator| &generator.target);
        self.open(&Bindings::of_targets(targets), ScopeKind::Comprehension);
        let mut clauses = Vec::with_capacity(generators.len());
        for generator in generators {
            let items = match first.take() {
                Some(first) => first,
                None => self.expression(&generator.iter),
            };
            let target = self.target(&generator.target);
            let conditions = self.expressions(&generator.ifs);
            clauses.push(Clause { target, items, conditions });
        }
        let key = key.map(|key| self.expression(key));
        let value = self.expression(value);
        self.close();
        Expression::Comprehension(Box::new(Comprehension { clauses, key, value }))
    }
}

/// Whether a value is a text or a number, so that it is no part of a list.
fn is_simple(expression: &Expr) -> bool {
    matches!(expression, Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_))
}
