//! Follows values through variables, calls and members, as far as they are certain.
//!
//! What a script may change later, or may know better after a test, is unknown.

mod assigned;
mod builtins;
mod conditions;
mod functions;
mod usage;

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use oxc_ast::{
    AstKind,
    ast::{
        BindingPattern, CallExpression, ChainElement, Expression, ForStatementLeft,
        FormalParameter, IdentifierReference, LogicalOperator, ObjectPropertyKind, PropertyKind,
        VariableDeclarator,
    },
};
use oxc_semantic::{NodeId, SymbolId};
use oxc_span::GetSpan;

pub(super) use self::conditions::{Conditions, assigned, path};
use self::{functions::Functions, usage::Usage};
use super::{
    ParsedScript, annotations,
    calls::{Callee, is_free, named_part},
    literals::Literals,
};
use crate::check::{
    declared::one_of,
    literal::{Literal, LiteralKind, NOWHERE, awaited, each, some_of},
    lookup::{ToolSignature, ToolTable, takes_positions},
};

/// The number of expressions that are followed in one script.
const MAX_STEPS: u32 = 200_000;

/// The values of one script.
pub(super) struct Values<'s, 'a> {
    script: &'s ParsedScript<'s, 'a>,
    tools: &'s ToolTable,
    /// The values of variables; `None` while one is being determined.
    known: RefCell<HashMap<SymbolId, Option<Literal>>>,
    pub(super) conditions: Conditions,
    functions: Functions<'s, 'a>,
    steps: Cell<u32>,
}

impl<'s, 'a> Values<'s, 'a> {
    pub(super) fn new(
        script: &'s ParsedScript<'s, 'a>,
        tools: &'s ToolTable,
        conditions: Conditions,
    ) -> Self {
        Self {
            script,
            tools,
            known: RefCell::default(),
            conditions,
            functions: Functions::of(script),
            steps: Cell::new(0),
        }
    }

    /// The value of an expression.
    pub(super) fn read(&self, expression: &Expression<'a>) -> Literal {
        self.read_at(expression, 0)
    }

    fn read_at(&self, expression: &Expression<'a>, depth: usize) -> Literal {
        Literals::following(self.script, self, depth).read(expression)
    }

    /// The tool that a call calls, if that is certain.
    pub(super) fn tool_of(&self, call: &CallExpression<'a>) -> Option<&'s ToolSignature> {
        let name = match Callee::of(call, self.script) {
            Some(callee) => callee.name,
            None => self.function_name(&call.callee, 0)?,
        };
        self.tools.tool(&name)
    }

    /// The name of the function that an expression is, if a constant has it from the tools.
    fn function_name(&self, expression: &Expression<'a>, depth: usize) -> Option<String> {
        let Expression::Identifier(identifier) = expression.get_inner_expression() else {
            let (object, name, _) = named_part(expression)?;
            let is_tools = matches!(object.get_inner_expression(), Expression::Identifier(it)
                if it.name == super::calls::TOOLS && is_free(it, self.script));
            if is_tools {
                return Some(name.to_owned());
            }
            return self.method_name(object, name, depth);
        };
        if is_free(identifier, self.script) {
            return Some(identifier.name.to_string());
        }
        let symbol = self.symbol_of(identifier).filter(|_| depth < 8)?;
        let declarator = self.constant(symbol)?;
        match &declarator.id {
            BindingPattern::BindingIdentifier(_) => {
                self.function_name(declarator.init.as_ref()?, depth + 1)
            }
            BindingPattern::ObjectPattern(pattern) => {
                let init = declarator.init.as_ref()?.get_inner_expression();
                let is_tools = matches!(init, Expression::Identifier(it)
                    if it.name == super::calls::TOOLS && is_free(it, self.script));
                let mut parts = pattern.properties.iter().filter(|_| is_tools);
                let part = parts.find(|part| {
                    let id = part.value.get_binding_identifier();
                    id.is_some_and(|id| id.symbol_id.get() == Some(symbol))
                })?;
                part.key.static_name().map(Cow::into_owned)
            }
            _ => None,
        }
    }

    /// The name of the function that an object of the script has as a method.
    fn method_name(&self, object: &Expression<'a>, name: &str, depth: usize) -> Option<String> {
        let Expression::Identifier(object) = object.get_inner_expression() else { return None };
        let symbol = self.symbol_of(object).filter(|_| depth < 8)?;
        let declarator = self.constant(symbol).filter(|it| it.id.is_binding_identifier())?;
        let init = declarator.init.as_ref()?.get_inner_expression();
        let Expression::ObjectExpression(made) = init else { return None };
        let mut found = None;
        for property in &made.properties {
            let ObjectPropertyKind::ObjectProperty(it) = property else { return None };
            if it.key.static_name()? == name {
                found = (it.kind == PropertyKind::Init && !it.method).then_some(&it.value);
            }
        }
        if !self.usage(symbol, 0).keeps(name) {
            return None;
        }
        let value = found?.get_inner_expression();
        // Other expressions may be functions of the script.
        let is_named = matches!(value, Expression::Identifier(_));
        is_named.then(|| self.function_name(value, depth + 1))?
    }

    fn symbol_of(&self, identifier: &IdentifierReference<'_>) -> Option<SymbolId> {
        let scoping = self.script.semantic.scoping();
        scoping.get_reference(identifier.reference_id.get()?).symbol_id()
    }

    /// The declaration of a variable that is assigned once, with a value.
    fn constant(&self, symbol: SymbolId) -> Option<&'s VariableDeclarator<'a>> {
        let scoping = self.script.semantic.scoping();
        let is_once =
            !scoping.symbol_is_mutated(symbol) && scoping.symbol_redeclarations(symbol).is_empty();
        match self.script.semantic.nodes().kind(scoping.symbol_declaration(symbol)) {
            AstKind::VariableDeclarator(declarator) if is_once => Some(declarator),
            _ => None,
        }
    }

    /// The names that an object literal itself has, and those of objects that are spread in it.
    pub(super) fn own_keys(&self, expression: &Expression<'a>) -> Vec<String> {
        let Expression::ObjectExpression(object) = expression.get_inner_expression() else {
            return self.exact_keys(expression, 0).unwrap_or_default();
        };
        let keys = object.properties.iter().flat_map(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                property.key.static_name().map(Cow::into_owned).into_iter().collect()
            }
            ObjectPropertyKind::SpreadProperty(spread) => {
                self.exact_keys(&spread.argument, 0).unwrap_or_default()
            }
        });
        keys.collect()
    }

    /// All names of an object literal, or of one that a variable keeps for this place alone: what is used
    /// elsewhere as well may have names for another purpose. `None` if they are not known.
    fn exact_keys(&self, expression: &Expression<'a>, depth: usize) -> Option<Vec<String>> {
        match expression.get_inner_expression() {
            Expression::ObjectExpression(object) if depth < 8 => {
                let mut keys = Vec::new();
                for property in &object.properties {
                    match property {
                        ObjectPropertyKind::ObjectProperty(property) => {
                            keys.push(property.key.static_name()?.into_owned());
                        }
                        ObjectPropertyKind::SpreadProperty(spread) => {
                            keys.extend(self.exact_keys(&spread.argument, depth + 1)?);
                        }
                    }
                }
                Some(keys)
            }
            Expression::Identifier(identifier) => {
                let scoping = self.script.semantic.scoping();
                let symbol = self.symbol_of(identifier)?;
                let is_for_this = scoping.get_resolved_references(symbol).take(2).count() == 1;
                let made = self.constant(symbol).filter(|it| {
                    is_for_this && it.id.is_binding_identifier() && it.type_annotation.is_none()
                })?;
                let made = made.init.as_ref()?;
                matches!(made.get_inner_expression(), Expression::ObjectExpression(_))
                    .then(|| self.exact_keys(made, depth + 1))?
            }
            _ => None,
        }
    }

    /// The value of an expression that is no literal; `None` for the others.
    pub(super) fn follow(&self, expression: &Expression<'a>, depth: usize) -> Option<Literal> {
        let steps = self.steps.get();
        if steps >= MAX_STEPS {
            return None;
        }
        self.steps.set(steps + 1);
        let found = match expression {
            Expression::ParenthesizedExpression(it) => self.read_at(&it.expression, depth),
            Expression::TSSatisfiesExpression(it) => self.read_at(&it.expression, depth),
            Expression::TSNonNullExpression(it) => {
                let value = self.read_at(&it.expression, depth);
                present(&value).unwrap_or(value)
            }
            Expression::TSAsExpression(it) => {
                let is_same = annotations::is_const(&it.type_annotation)
                    || annotations::is_written(&it.expression);
                if is_same {
                    self.read_at(&it.expression, depth)
                } else {
                    annotations::read(&it.type_annotation, self.script)
                }
            }
            Expression::TSTypeAssertion(it) => annotations::read(&it.type_annotation, self.script),
            Expression::Identifier(identifier) if !is_free(identifier, self.script) => {
                let symbol = self.symbol_of(identifier)?;
                let is_mutated = self.script.semantic.scoping().symbol_is_mutated(symbol);
                let last =
                    if is_mutated { self.last_assigned(identifier, symbol, depth) } else { None };
                match last {
                    Some(last) if Usage::is_needed(&last) => self.usage(symbol, 0).applied(last),
                    Some(last) => last,
                    None => self.symbol(symbol, depth),
                }
            }
            Expression::AwaitExpression(it) => awaited(self.read_at(&it.argument, depth + 1)),
            Expression::CallExpression(call) => self.call(call, depth),
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => self.call(call, depth),
                ChainElement::TSNonNullExpression(it) => self.read_at(&it.expression, depth),
                other => self.member_value(other.as_member_expression()?, depth),
            },
            Expression::ConditionalExpression(choice) => {
                match Literals::new(self.script).truth(&choice.test) {
                    Some(true) => self.read_at(&choice.consequent, depth + 1),
                    Some(false) => self.read_at(&choice.alternate, depth + 1),
                    None => each(vec![
                        self.read_at(&choice.consequent, depth + 1),
                        self.read_at(&choice.alternate, depth + 1),
                    ]),
                }
            }
            Expression::LogicalExpression(logical) => {
                let left = self.read_at(&logical.left, depth + 1);
                match logical.operator {
                    LogicalOperator::Coalesce if left.kind != LiteralKind::Unknown => {
                        if may_be_absent(&left) {
                            let right = self.read_at(&logical.right, depth + 1);
                            one_or_each(present(&left), right)
                        } else {
                            left
                        }
                    }
                    _ => Literal::unknown(NOWHERE),
                }
            }
            other => self.member_value(other.as_member_expression()?, depth),
        };
        Some(self.conditions.applied(found, expression, self.script))
    }

    fn member_value(&self, member: &oxc_ast::ast::MemberExpression<'a>, depth: usize) -> Literal {
        if let Expression::ThisExpression(this) = member.object() {
            let name = member.static_property_name();
            let value = name.and_then(|name| self.field(this, name, depth));
            return value.unwrap_or(Literal::unknown(NOWHERE));
        }
        let object = self.read_at(member.object(), depth + 1);
        match (member, member.static_property_name()) {
            (oxc_ast::ast::MemberExpression::PrivateFieldExpression(_), _) => {
                Literal::unknown(NOWHERE)
            }
            (_, Some(name)) => part(&object, name),
            (oxc_ast::ast::MemberExpression::ComputedMemberExpression(_), None) => {
                some_of(element(&object))
            }
            _ => Literal::unknown(NOWHERE),
        }
    }

    /// The value of a variable.
    fn symbol(&self, symbol: SymbolId, depth: usize) -> Literal {
        if let Some(known) = self.known.borrow().get(&symbol) {
            return known.clone().unwrap_or(Literal::unknown(NOWHERE));
        }
        self.known.borrow_mut().insert(symbol, None);
        let literal = self.evaluate(symbol, depth).unwrap_or(Literal::unknown(NOWHERE));
        let literal = if Usage::is_needed(&literal) {
            self.usage(symbol, 0).applied(literal)
        } else {
            literal
        };
        self.known.borrow_mut().insert(symbol, Some(literal.clone()));
        literal
    }

    fn evaluate(&self, symbol: SymbolId, depth: usize) -> Option<Literal> {
        let scoping = self.script.semantic.scoping();
        let nodes = self.script.semantic.nodes();
        if !scoping.symbol_redeclarations(symbol).is_empty() {
            return None;
        }
        let declaration = scoping.symbol_declaration(symbol);
        let (pattern, annotation, base) = match nodes.kind(declaration) {
            AstKind::VariableDeclarator(it) => {
                let base = self.declared_value(declaration, it, depth);
                (&it.id, it.type_annotation.as_ref(), base)
            }
            AstKind::FormalParameter(it) => {
                let default =
                    it.initializer.as_ref().filter(|_| it.pattern.is_binding_identifier());
                let base = match default {
                    Some(default) => self.default_value(default, depth),
                    None => self.parameter_value(declaration, it, depth),
                };
                (&it.pattern, it.type_annotation.as_ref(), base)
            }
            _ => return None,
        };
        let annotated = annotation.map(|it| annotations::read(&it.type_annotation, self.script));
        if annotation.is_some_and(|it| annotations::is_any(&it.type_annotation)) {
            return None;
        }
        if scoping.symbol_is_mutated(symbol) {
            if annotated.is_none() {
                return self.all_assigned(symbol, depth);
            }
            // Of a type with alternatives, an assignment may have chosen one.
            return annotated
                .filter(|it| it.kind.alternatives().is_none() && pattern.is_binding_identifier());
        }
        let base = match base {
            Some(base) if base.kind != LiteralKind::Unknown || annotated.is_none() => base,
            _ => annotated?,
        };
        // A test of one part may tell about the others.
        let names = pattern.get_binding_identifiers();
        let mut symbols = names.iter().filter_map(|id| id.symbol_id.get());
        let is_tested = !pattern.is_binding_identifier()
            && symbols.any(|symbol| self.conditions.is_mentioned(symbol));
        let base = if is_tested { some_of(base) } else { base };
        self.in_pattern(pattern, symbol, &base, depth)
    }

    fn declared_value(
        &self,
        declaration: NodeId,
        it: &VariableDeclarator<'a>,
        depth: usize,
    ) -> Option<Literal> {
        let nodes = self.script.semantic.nodes();
        let variable = nodes.parent_id(declaration);
        let is_head = |left: &ForStatementLeft<'_>| left.span() == nodes.kind(variable).span();
        match nodes.parent_kind(variable) {
            AstKind::ForOfStatement(each) if is_head(&each.left) => {
                let items = self.read_at(&each.right, depth + 1);
                let one = element(&items);
                // It may not come to every element.
                let is_left = self.conditions.leaves(each.body.span());
                Some(match (each.r#await, is_left) {
                    (true, _) => Literal::unknown(NOWHERE),
                    (_, true) => some_of(one),
                    _ => one,
                })
            }
            AstKind::ForInStatement(each) if is_head(&each.left) => {
                Some(Literal::new(NOWHERE, LiteralKind::Text(None)))
            }
            _ => it.init.as_ref().map(|init| self.read_at(init, depth + 1)),
        }
    }

    /// The value of a parameter, if its function is called for each element of a list, or with what
    /// a promise has.
    pub(super) fn parameter_value(
        &self,
        declaration: NodeId,
        it: &FormalParameter<'a>,
        depth: usize,
    ) -> Option<Literal> {
        let nodes = self.script.semantic.nodes();
        let parameters = nodes.parent_id(declaration);
        let AstKind::FormalParameters(all) = nodes.kind(parameters) else { return None };
        let position = all.items.iter().position(|other| other.span == it.span)?;
        let function = nodes.parent_id(parameters);
        let AstKind::CallExpression(call) = nodes.parent_kind(function) else { return None };
        let first = call.arguments.first()?.as_expression()?;
        if first.span() != nodes.kind(function).span() || it.initializer.is_some() {
            return None;
        }
        let (object, method, _) = named_part(&call.callee)?;
        let receiver = self.read_at(object, depth + 1);
        builtins::callback_argument(&receiver, method, position)
    }

    /// The part of a value that a pattern gives to a variable.
    fn in_pattern(
        &self,
        pattern: &BindingPattern<'a>,
        symbol: SymbolId,
        base: &Literal,
        depth: usize,
    ) -> Option<Literal> {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                (id.symbol_id.get() == Some(symbol)).then(|| base.clone())
            }
            BindingPattern::ObjectPattern(it) => it.properties.iter().find_map(|property| {
                let value = match property.key.static_name() {
                    Some(name) => part(base, &name),
                    None => Literal::unknown(NOWHERE),
                };
                self.in_pattern(&property.value, symbol, &value, depth)
            }),
            BindingPattern::ArrayPattern(it) => {
                it.elements.iter().enumerate().find_map(|(at, element)| {
                    self.in_pattern(element.as_ref()?, symbol, &item(base, at), depth)
                })
            }
            BindingPattern::AssignmentPattern(it) => {
                let value = if base.kind.may_be_undefined() {
                    one_or_each(present(base), self.read_at(&it.right, depth + 1))
                } else {
                    base.clone()
                };
                self.in_pattern(&it.left, symbol, &value, depth)
            }
        }
    }

    fn call(&self, call: &CallExpression<'a>, depth: usize) -> Literal {
        if let Some(tool) = self.tool_of(call) {
            let result = if takes_positions(&tool.name) {
                Literal::unknown(NOWHERE)
            } else {
                tool.result.clone()
            };
            return Literal::new(NOWHERE, LiteralKind::Promise(Rc::new(result)));
        }
        self.built_in(call, depth).unwrap_or(Literal::unknown(NOWHERE))
    }
}

/// A value, or another one that the script contains in its place.
fn one_or_each(value: Option<Literal>, other: Literal) -> Literal {
    match value {
        Some(value) => match value.kind {
            LiteralKind::OneOf(_) => one_of(vec![value, other]),
            _ => each(vec![value, other]),
        },
        None => other,
    }
}

fn may_be_absent(value: &Literal) -> bool {
    match value.kind.alternatives() {
        Some(all) => all.iter().any(may_be_absent),
        None => {
            matches!(value.kind, LiteralKind::Undefined | LiteralKind::Null | LiteralKind::Unknown)
        }
    }
}

/// The value without `null` and `undefined`; `None` if nothing is left.
fn present(value: &Literal) -> Option<Literal> {
    let Some(all) = value.kind.alternatives() else {
        let is_absent = matches!(value.kind, LiteralKind::Undefined | LiteralKind::Null);
        return (!is_absent).then(|| value.clone());
    };
    let left: Vec<Literal> = all.iter().filter_map(present).collect();
    match (&value.kind, left.is_empty()) {
        (_, true) => None,
        (LiteralKind::Each(_), _) => Some(each(left)),
        _ => Some(one_of(left)),
    }
}

/// The value of a property.
pub(super) fn part(value: &Literal, name: &str) -> Literal {
    let of = |all: &[Literal]| -> Vec<Literal> {
        all.iter().filter(|one| !may_be_absent(one)).map(|one| part(one, name)).collect()
    };
    match &value.kind {
        LiteralKind::Object { entries, complete } => {
            match entries.iter().find(|entry| entry.key == name) {
                Some(entry) => entry.value.clone(),
                None if *complete => Literal::new(NOWHERE, LiteralKind::Undefined),
                None => Literal::unknown(NOWHERE),
            }
        }
        LiteralKind::Array { .. } | LiteralKind::ListOf(_) | LiteralKind::Text(_)
            if name == "length" =>
        {
            Literal::new(NOWHERE, LiteralKind::SomeNumber)
        }
        LiteralKind::Array { .. } => match name.parse() {
            Ok(at) => item(value, at),
            Err(_) => Literal::unknown(NOWHERE),
        },
        LiteralKind::ListOf(_) if name.bytes().all(|byte| byte.is_ascii_digit()) => element(value),
        LiteralKind::Each(all) => each(of(all)),
        LiteralKind::OneOf(all) => one_of(of(all)),
        _ => Literal::unknown(NOWHERE),
    }
}

/// Any element of a list.
pub(super) fn element(value: &Literal) -> Literal {
    match &value.kind {
        LiteralKind::ListOf(item) => (**item).clone(),
        // A character.
        LiteralKind::Text(_) => Literal { kind: LiteralKind::Text(None), ..value.clone() },
        LiteralKind::Array { items, complete: true } if !items.is_empty() && items.len() <= 50 => {
            each(items.to_vec())
        }
        LiteralKind::OneOf(all) => {
            one_of(all.iter().filter(|one| !may_be_absent(one)).map(element).collect())
        }
        _ => Literal::unknown(NOWHERE),
    }
}

/// The element at a position.
pub(super) fn item(value: &Literal, at: usize) -> Literal {
    match &value.kind {
        LiteralKind::Array { items, complete: true } => {
            items.get(at).cloned().unwrap_or(Literal::new(NOWHERE, LiteralKind::Undefined))
        }
        LiteralKind::ListOf(_) => element(value),
        _ => Literal::unknown(NOWHERE),
    }
}
