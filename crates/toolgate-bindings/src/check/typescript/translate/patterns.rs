//! The targets of assignments.

use oxc_ast::ast::{
    AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty, BindingPattern,
    Expression as Syntax, IdentifierReference, PropertyKey, SimpleAssignmentTarget,
};

use oxc_syntax::operator::BinaryOperator;

use super::Translator;
use crate::check::{
    flow::ir::{Expression, Key, Target},
    literal::LiteralKind,
    typescript::{calls::is_free, literals::Literals},
};

/// Properties that lead to what many objects share, and to functions that are made of texts.
#[rustfmt::skip]
const REFLECTIVE: &[&str] = &[
    "__proto__", "constructor", "__defineGetter__", "__defineSetter__", "__lookupGetter__",
    "__lookupSetter__",
];

/// Methods that the language calls itself.
const CALLED: &[&str] =
    &["toString", "toJSON", "valueOf", "toLocaleString", "join", "exec", "then"];

impl Translator<'_, '_> {
    pub(super) fn pattern(&mut self, pattern: &BindingPattern<'_>) -> Target {
        match pattern {
            BindingPattern::BindingIdentifier(identifier) => self.declared(identifier),
            BindingPattern::ObjectPattern(object) => {
                let mut entries = Vec::with_capacity(object.properties.len());
                for property in &object.properties {
                    let key = self.property_key(&property.key);
                    let (target, default) = self.with_default(&property.value);
                    entries.push((key, target, default));
                }
                let rest = object.rest.as_ref().map(|rest| Box::new(self.pattern(&rest.argument)));
                Target::Object { entries, rest }
            }
            BindingPattern::ArrayPattern(array) => {
                let mut items = Vec::with_capacity(array.elements.len());
                for element in &array.elements {
                    items.push(match element {
                        Some(element) => self.with_default(element),
                        None => (Target::Nothing, None),
                    });
                }
                let rest = array.rest.as_ref().map(|rest| Box::new(self.pattern(&rest.argument)));
                Target::Array { items, rest }
            }
            // The default of a parameter stands elsewhere.
            BindingPattern::AssignmentPattern(pattern) => self.pattern(&pattern.left),
        }
    }

    fn with_default(&mut self, pattern: &BindingPattern<'_>) -> (Target, Option<Expression>) {
        match pattern {
            BindingPattern::AssignmentPattern(pattern) => {
                let default = self.expression(&pattern.right);
                (self.pattern(&pattern.left), Some(default))
            }
            other => (self.pattern(other), None),
        }
    }

    pub(super) fn property_key(&mut self, key: &PropertyKey<'_>) -> Key {
        if let PropertyKey::PrivateIdentifier(private) = key {
            return Key::Name(self.program.names.intern(&format!("#{}", private.name)));
        }
        match (key.static_name(), key.as_expression()) {
            (Some(name), _) => self.key(&name),
            (None, Some(computed)) => self.computed_key(computed),
            (None, None) => {
                self.program.is_opaque = true;
                Key::Name(0)
            }
        }
    }

    /// The text of a key that is known.
    pub(super) fn text_of(&self, key: &Key) -> std::rc::Rc<str> {
        match key {
            Key::Name(name) => self.program.names.text(*name),
            Key::Computed(_) => "".into(),
        }
    }

    pub(super) fn key(&mut self, name: &str) -> Key {
        self.program.is_opaque |= REFLECTIVE.contains(&name);
        Key::Name(self.program.names.intern(name))
    }

    pub(super) fn computed_key(&mut self, key: &Syntax<'_>) -> Key {
        match key.get_inner_expression() {
            Syntax::StringLiteral(text) => self.key(text.value.as_str()),
            Syntax::NumericLiteral(number) => self.key(&number.value.to_string()),
            other => match self.constant(other) {
                Some(text) => self.key(&text),
                None => Key::Computed(Box::new(self.expression(other))),
            },
        }
    }

    /// The text of an expression that is always the same.
    fn constant(&self, expression: &Syntax<'_>) -> Option<String> {
        match expression.get_inner_expression() {
            Syntax::BinaryExpression(sum) if sum.operator == BinaryOperator::Addition => {
                Some(self.constant(&sum.left)? + &self.constant(&sum.right)?)
            }
            other => match Literals::new(self.script).read(other).kind {
                LiteralKind::Text(text) => text,
                _ => None,
            },
        }
    }

    pub(super) fn assignment_target(&mut self, target: &AssignmentTarget<'_>) -> Target {
        match target {
            AssignmentTarget::ArrayAssignmentTarget(array) => {
                let mut items = Vec::with_capacity(array.elements.len());
                for element in &array.elements {
                    items.push(match element {
                        Some(element) => self.maybe_default(element),
                        None => (Target::Nothing, None),
                    });
                }
                let rest = array.rest.as_ref();
                let rest = rest.map(|rest| Box::new(self.assignment_target(&rest.target)));
                Target::Array { items, rest }
            }
            AssignmentTarget::ObjectAssignmentTarget(object) => {
                let mut entries = Vec::with_capacity(object.properties.len());
                for property in &object.properties {
                    entries.push(match property {
                        AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(property) => {
                            let key = self.key(property.binding.name.as_str());
                            let default = property.init.as_ref().map(|init| self.expression(init));
                            (key, self.identifier_target(&property.binding), default)
                        }
                        AssignmentTargetProperty::AssignmentTargetPropertyProperty(property) => {
                            let key = self.property_key(&property.name);
                            let (target, default) = self.maybe_default(&property.binding);
                            (key, target, default)
                        }
                    });
                }
                let rest = object.rest.as_ref();
                let rest = rest.map(|rest| Box::new(self.assignment_target(&rest.target)));
                Target::Object { entries, rest }
            }
            other => match other.as_simple_assignment_target() {
                Some(target) => self.simple_target(target),
                None => Target::Nothing,
            },
        }
    }

    fn maybe_default(
        &mut self,
        target: &AssignmentTargetMaybeDefault<'_>,
    ) -> (Target, Option<Expression>) {
        match target {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(target) => {
                let default = self.expression(&target.init);
                (self.assignment_target(&target.binding), Some(default))
            }
            other => {
                let target = other.as_assignment_target();
                (target.map_or(Target::Nothing, |target| self.assignment_target(target)), None)
            }
        }
    }

    pub(super) fn simple_target(&mut self, target: &SimpleAssignmentTarget<'_>) -> Target {
        let target = self.any_target(target);
        if let Target::Member(_, Key::Name(name)) = &target {
            let text = self.program.names.text(*name);
            self.program.is_opaque |= CALLED.contains(&&*text);
        }
        target
    }

    fn any_target(&mut self, target: &SimpleAssignmentTarget<'_>) -> Target {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(identifier) => {
                self.identifier_target(identifier)
            }
            other => match other.as_member_expression() {
                Some(member) => match self.member(member) {
                    Expression::Member(object, key) => Target::Member(object, key),
                    Expression::Free(name) => Target::Free(name),
                    _ => Target::Nothing,
                },
                None => match other.get_expression() {
                    Some(inner) => match self.expression(inner) {
                        Expression::Variable(variable) => self.regions.assign(variable),
                        Expression::Member(object, key) => Target::Member(object, key),
                        Expression::Free(name) => Target::Free(name),
                        _ => Target::Nothing,
                    },
                    None => Target::Nothing,
                },
            },
        }
    }

    fn identifier_target(&mut self, identifier: &IdentifierReference<'_>) -> Target {
        match self.symbol(identifier) {
            Some(symbol) if !is_free(identifier, self.script) => self.assigned(symbol),
            _ => Target::Free(self.program.names.intern(identifier.name.as_str())),
        }
    }
}
