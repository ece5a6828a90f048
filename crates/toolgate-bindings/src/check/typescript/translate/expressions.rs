//! Expressions.

use oxc_ast::ast::{
    Argument as SyntaxArgument, ArrayExpressionElement, BinaryExpression, CallExpression,
    ChainElement, Expression as Syntax, IdentifierReference, LogicalExpression, MemberExpression,
    ObjectExpression, ObjectPropertyKind, PropertyKind, RegExpFlags,
};
use oxc_semantic::SymbolId;
use oxc_syntax::operator::{AssignmentOperator, UnaryOperator};

use super::Translator;
use crate::check::{
    flow::ir::{Argument, Call, Entry, Expression, Item, Key, Target, name},
    typescript::calls::{TOOLS, is_free, name_of_server_tool},
};

/// Methods that the language calls when it makes a text or a number of an object.
pub(super) const IMPLICIT: &[&str] = &["toString", "toJSON", "valueOf", "toLocaleString"];

/// A value that may not be evaluated.
fn optional(value: Expression) -> Expression {
    Expression::Conditional(Box::new([Expression::Literal, value, Expression::Literal]))
}

/// Whether an optional chain only reads properties by their names, so that it changes nothing.
fn is_simple_chain(expression: &Syntax<'_>) -> bool {
    match expression.get_inner_expression() {
        Syntax::Identifier(_) | Syntax::ThisExpression(_) => true,
        Syntax::StaticMemberExpression(member) => is_simple_chain(&member.object),
        Syntax::CallExpression(call) => call.arguments.is_empty() && is_simple_chain(&call.callee),
        _ => false,
    }
}

/// What stands before the first `?.`.
fn optional_object<'e, 'a>(expression: &'e Syntax<'a>) -> Option<&'e Syntax<'a>> {
    let (object, is_optional) = match expression.get_inner_expression() {
        Syntax::StaticMemberExpression(member) => (&member.object, member.optional),
        Syntax::ComputedMemberExpression(member) => (&member.object, member.optional),
        Syntax::CallExpression(call) => (&call.callee, call.optional),
        _ => return None,
    };
    optional_object(object).or(is_optional.then_some(object))
}

/// Whether an expression only reads variables and their parts.
fn is_read(expression: &Syntax<'_>) -> bool {
    match expression.get_inner_expression() {
        Syntax::StaticMemberExpression(member) => is_read(&member.object),
        Syntax::ComputedMemberExpression(member) => {
            is_read(&member.object) && is_read(&member.expression)
        }
        Syntax::Identifier(_)
        | Syntax::ThisExpression(_)
        | Syntax::NumericLiteral(_)
        | Syntax::StringLiteral(_) => true,
        _ => false,
    }
}

impl Translator<'_, '_> {
    pub(super) fn symbol(&self, identifier: &IdentifierReference<'_>) -> Option<SymbolId> {
        let scoping = self.script.semantic.scoping();
        scoping.get_reference(identifier.reference_id.get()?).symbol_id()
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    pub(super) fn expression(&mut self, expression: &Syntax<'_>) -> Expression {
        match expression.get_inner_expression() {
            Syntax::StringLiteral(text) if text.value.len() <= 128 => {
                Expression::Text(self.program.names.intern(text.value.as_str()))
            }
            Syntax::TemplateLiteral(template) => self.operator(template.expressions.iter()),
            Syntax::Identifier(identifier) => self.identifier(identifier),
            Syntax::Super(_) | Syntax::ThisExpression(_) => Expression::This,
            Syntax::ArrayExpression(array) => {
                let mut items = Vec::with_capacity(array.elements.len());
                for element in &array.elements {
                    items.push(match element {
                        ArrayExpressionElement::SpreadElement(spread) => {
                            Item { value: self.expression(&spread.argument), is_spread: true }
                        }
                        other => {
                            let value = other.as_expression().map(|it| self.expression(it));
                            Item { value: value.unwrap_or(Expression::Literal), is_spread: false }
                        }
                    });
                }
                Expression::Array(items)
            }
            Syntax::ArrowFunctionExpression(function) => Expression::Function(self.arrow(function)),
            Syntax::FunctionExpression(function) => {
                // Its own name is a variable of the function around it.
                let target = function.id.as_ref().and_then(|id| id.symbol_id.get()).map(|symbol| {
                    let owner = self.function_id();
                    let text = self.script.semantic.scoping().symbol_name(symbol);
                    let variable = self.program.variable(text, owner);
                    self.variables.insert(symbol, variable);
                    self.assigned(symbol)
                });
                let function = Expression::Function(self.function(function));
                match target {
                    Some(target) => Expression::Assign(Box::new(target), Box::new(function)),
                    None => function,
                }
            }
            Syntax::ClassExpression(class) => self.class(class),
            Syntax::AssignmentExpression(assignment) => {
                let mut value = self.expression(&assignment.right);
                let target = Box::new(self.assignment_target(&assignment.left));
                // The value may not be evaluated.
                if assignment.operator.is_logical() {
                    value = optional(value);
                }
                if assignment.operator == AssignmentOperator::Assign {
                    Expression::Assign(target, Box::new(value))
                } else {
                    Expression::Update(target, Box::new(value))
                }
            }
            Syntax::AwaitExpression(awaited) => {
                Expression::Await(Box::new(self.expression(&awaited.argument)))
            }
            Syntax::BinaryExpression(binary) => self.binary(binary),
            Syntax::LogicalExpression(logical) => self.logical(logical),
            Syntax::ConditionalExpression(choice) => Expression::Conditional(Box::new([
                self.expression(&choice.test),
                self.expression(&choice.consequent),
                self.expression(&choice.alternate),
            ])),
            Syntax::CallExpression(call) => self.call(call),
            Syntax::NewExpression(call) => {
                let callee = self.expression(&call.callee);
                let arguments = self.arguments(&call.arguments);
                let offset = call.span.start;
                let name_range = None;
                Expression::Call(Box::new(Call {
                    callee,
                    arguments,
                    is_new: true,
                    offset,
                    name_range,
                }))
            }
            Syntax::ChainExpression(chain) => {
                let is_simple;
                let value = match &chain.expression {
                    ChainElement::CallExpression(call) => {
                        is_simple = call.arguments.is_empty() && is_simple_chain(&call.callee);
                        self.call(call)
                    }
                    ChainElement::TSNonNullExpression(inner) => {
                        is_simple = is_simple_chain(&inner.expression);
                        self.expression(&inner.expression)
                    }
                    other => match other.as_member_expression() {
                        Some(member) => {
                            is_simple = !member.is_computed() && is_simple_chain(member.object());
                            self.member(member)
                        }
                        None => return Expression::Literal,
                    },
                };
                // What is behind `?.` may not be evaluated.
                if is_simple {
                    value
                } else {
                    let object = match &chain.expression {
                        ChainElement::CallExpression(call) => {
                            optional_object(&call.callee).or(call.optional.then_some(&call.callee))
                        }
                        ChainElement::TSNonNullExpression(inner) => {
                            optional_object(&inner.expression)
                        }
                        other => other.as_member_expression().and_then(|member| {
                            let own = member.optional().then_some(member.object());
                            optional_object(member.object()).or(own)
                        }),
                    };
                    let object = object.filter(|object| is_read(object));
                    let test = object.map_or(Expression::Literal, |object| self.expression(object));
                    Expression::Conditional(Box::new([test, value, Expression::Literal]))
                }
            }
            Syntax::ObjectExpression(object) => self.object(object),
            Syntax::SequenceExpression(sequence) => {
                let mut values = Vec::with_capacity(sequence.expressions.len());
                for value in &sequence.expressions {
                    values.push(self.expression(value));
                }
                Expression::Sequence(values)
            }
            Syntax::TaggedTemplateExpression(tagged) => {
                let callee = self.expression(&tagged.tag);
                let mut arguments = vec![Argument::Position(Expression::Array(Vec::new()))];
                for value in &tagged.quasi.expressions {
                    arguments.push(Argument::Position(self.expression(value)));
                }
                let offset = tagged.span.start;
                let name_range = None;
                Expression::Call(Box::new(Call {
                    callee,
                    arguments,
                    is_new: false,
                    offset,
                    name_range,
                }))
            }
            Syntax::UnaryExpression(unary) => {
                let value = self.expression(&unary.argument);
                match unary.operator {
                    UnaryOperator::Void => Expression::Sequence(vec![value, Expression::Literal]),
                    UnaryOperator::Delete => match value {
                        Expression::Member(object, key) => {
                            Expression::Remove(Box::new(Target::Member(object, key)))
                        }
                        other => Expression::Operator(vec![other]),
                    },
                    _ => Expression::Operator(vec![value]),
                }
            }
            Syntax::UpdateExpression(update) => {
                let target = Box::new(self.simple_target(&update.argument));
                Expression::Update(target, Box::new(Expression::Literal))
            }
            Syntax::YieldExpression(yielded) => {
                let value = yielded.argument.as_ref().map(|value| self.expression(value));
                match (value, yielded.delegate) {
                    (Some(value), true) => Expression::YieldAll(Box::new(value)),
                    (value, _) => Expression::Yield(value.map(Box::new)),
                }
            }
            Syntax::PrivateInExpression(test) => {
                Expression::Operator(vec![self.expression(&test.right)])
            }
            Syntax::ImportExpression(_) | Syntax::ImportMeta(_) | Syntax::NewTarget(_) => {
                self.program.is_opaque = true;
                Expression::Literal
            }
            Syntax::RegExpLiteral(expression) => {
                // With these flags it remembers where it found something.
                let flags = expression.regex.flags;
                let has_state = flags.intersects(RegExpFlags::G | RegExpFlags::Y);
                let parts = has_state.then_some(Expression::Literal);
                Expression::Opaque(parts.into_iter().collect())
            }
            other => match other.as_member_expression() {
                Some(member) => self.member(member),
                None => Expression::Literal,
            },
        }
    }

    fn operator<'e, 'a: 'e>(&mut self, values: impl Iterator<Item = &'e Syntax<'a>>) -> Expression {
        let mut operands = Vec::new();
        for value in values {
            operands.push(self.expression(value));
        }
        Expression::Operator(operands)
    }

    fn identifier(&mut self, identifier: &IdentifierReference<'_>) -> Expression {
        match self.symbol(identifier) {
            Some(symbol) if !is_free(identifier, self.script) => {
                Expression::Variable(self.variable(symbol))
            }
            _ => {
                // The protocols of the language make calls that are not in the script.
                self.program.is_opaque |= identifier.name == "Symbol";
                Expression::Free(self.program.names.intern(identifier.name.as_str()))
            }
        }
    }

    /// A chain of operators, which may be as long as a script.
    fn binary(&mut self, binary: &BinaryExpression<'_>) -> Expression {
        let mut operands = vec![self.expression(&binary.right)];
        let mut left = &binary.left;
        while let Syntax::BinaryExpression(inner) = left.get_inner_expression() {
            operands.push(self.expression(&inner.right));
            left = &inner.left;
        }
        operands.push(self.expression(left));
        operands.reverse();
        Expression::Operator(operands)
    }

    fn logical(&mut self, logical: &LogicalExpression<'_>) -> Expression {
        let mut values = vec![self.expression(&logical.right)];
        let mut left = &logical.left;
        while let Syntax::LogicalExpression(inner) = left.get_inner_expression() {
            values.push(self.expression(&inner.right));
            left = &inner.left;
        }
        values.push(self.expression(left));
        values.reverse();
        Expression::Either(values)
    }

    pub(super) fn member(&mut self, member: &MemberExpression<'_>) -> Expression {
        let is_free_name = |this: &Self, object: &Syntax<'_>, text: &str| {
            matches!(object.get_inner_expression(), Syntax::Identifier(identifier)
                if identifier.name == text && is_free(identifier, this.script))
        };
        match member {
            MemberExpression::StaticMemberExpression(member) => {
                let property = member.property.name.as_str();
                if is_free_name(self, &member.object, "globalThis") {
                    self.program.is_opaque |= matches!(property, "Symbol" | "Function" | "eval");
                    return Expression::Free(self.program.names.intern(property));
                }
                if let Some(name) = name_of_server_tool(&member.object, property, self.script) {
                    let (tools, name) = (self.program.names.intern(TOOLS), self.key(&name));
                    return Expression::Member(Box::new(Expression::Free(tools)), name);
                }
                // The name of the class of an object.
                if property == "name"
                    && let Syntax::StaticMemberExpression(class) =
                        member.object.get_inner_expression()
                    && class.property.name == "constructor"
                {
                    return Expression::Operator(vec![self.expression(&class.object)]);
                }
                let key = self.key(property);
                Expression::Member(Box::new(self.expression(&member.object)), key)
            }
            MemberExpression::ComputedMemberExpression(member) => {
                let object = self.expression(&member.object);
                let key = self.computed_key(&member.expression);
                Expression::Member(Box::new(object), key)
            }
            MemberExpression::PrivateFieldExpression(member) => {
                let name = self.program.names.intern(&format!("#{}", member.field.name));
                Expression::Member(Box::new(self.expression(&member.object)), Key::Name(name))
            }
        }
    }

    fn call(&mut self, call: &CallExpression<'_>) -> Expression {
        if let Syntax::Super(_) = call.callee.get_inner_expression() {
            return Expression::SuperCall(self.arguments(&call.arguments));
        }
        let callee = self.expression(&call.callee);
        let arguments = self.arguments(&call.arguments);
        let offset = call.span.start;
        let name_range = match call.callee.get_inner_expression() {
            Syntax::Identifier(name) => Some(name.span),
            Syntax::StaticMemberExpression(member)
                if matches!(member.object, Syntax::Identifier(_))
                    || name_of_server_tool(&member.object, &member.property.name, self.script)
                        .is_some() =>
            {
                Some(member.span)
            }
            _ => None,
        };
        let name_range = name_range.map(|span| (span.start, span.end));
        Expression::Call(Box::new(Call { callee, arguments, is_new: false, offset, name_range }))
    }

    fn arguments(&mut self, arguments: &[SyntaxArgument<'_>]) -> Vec<Argument> {
        let mut translated = Vec::with_capacity(arguments.len());
        for argument in arguments {
            translated.push(match argument {
                SyntaxArgument::SpreadElement(spread) => {
                    let value = self.expression(&spread.argument);
                    Argument::spread(value, &mut translated);
                    continue;
                }
                other => {
                    let value = other.as_expression().map(|value| self.expression(value));
                    Argument::Position(value.unwrap_or(Expression::Literal))
                }
            });
        }
        translated
    }

    fn object(&mut self, object: &ObjectExpression<'_>) -> Expression {
        let mut entries = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let property = match property {
                ObjectPropertyKind::ObjectProperty(property) => property,
                ObjectPropertyKind::SpreadProperty(spread) => {
                    entries.push(Entry::Spread(self.expression(&spread.argument)));
                    continue;
                }
            };
            let key = self.property_key(&property.key);
            let text = self.text_of(&key);
            let value = self.expression(&property.value);
            match (property.kind, value) {
                (PropertyKind::Get, Expression::Function(function)) => {
                    self.program.is_opaque |= &*text == "then";
                    entries.push(Entry::Getter(key, function));
                }
                (PropertyKind::Set, Expression::Function(function)) => {
                    entries.push(Entry::Setter(function));
                }
                (PropertyKind::Init, Expression::Function(function)) => {
                    if IMPLICIT.contains(&&*text) {
                        entries.push(Entry::Getter(Key::Name(name::IMPLICIT), function));
                    }
                    entries.push(Entry::Value(key, Expression::Function(function)));
                    self.program.is_opaque |= &*text == "then";
                }
                (_, value) => {
                    self.program.is_opaque |= IMPLICIT.contains(&&*text) || &*text == "then";
                    entries.push(Entry::Value(key, value));
                }
            }
        }
        Expression::Object { entries, is_dict: false }
    }
}
