//! Classes and enumerations.

use oxc_ast::ast::{
    Class as Syntax, ClassElement, Expression as Value, MethodDefinitionKind, PropertyKey,
    TSEnumDeclaration, TSEnumMemberName,
};

use super::{Translator, expressions::IMPLICIT};
use crate::check::flow::ir::{Class, ClassMember, Entry, Expression, Key, MemberKind, Statement};

impl Translator<'_, '_> {
    pub(super) fn class(&mut self, class: &Syntax<'_>) -> Expression {
        let bases = class.heritage.as_ref().map(|base| self.expression(&base.expression));
        let target = class.id.as_ref().map(|id| self.declared(id));
        let mut made = Class {
            bases: bases.into_iter().collect(),
            constructor: None,
            members: Vec::new(),
            fields: Vec::new(),
        };
        for element in &class.body.body {
            match element {
                ClassElement::MethodDefinition(method) => {
                    if method.value.body.is_none() {
                        continue;
                    }
                    if method.kind == MethodDefinitionKind::Constructor {
                        made.constructor = Some(self.function(&method.value));
                        continue;
                    }
                    let key = self.property_key(&method.key);
                    let text = self.text_of(&key);
                    self.program.is_opaque |= &*text == "then";
                    let function = self.function(&method.value);
                    let kind = match method.kind {
                        MethodDefinitionKind::Get => MemberKind::Getter(function),
                        MethodDefinitionKind::Set => MemberKind::Setter(function),
                        MethodDefinitionKind::Method if IMPLICIT.contains(&&*text) => {
                            MemberKind::Implicit(function)
                        }
                        MethodDefinitionKind::Method | MethodDefinitionKind::Constructor => {
                            MemberKind::Method(function)
                        }
                    };
                    made.members.push(ClassMember { key, kind, is_static: method.r#static });
                }
                ClassElement::PropertyDefinition(property) => {
                    let value = property.value.as_ref();
                    made.members.extend(self.field(&property.key, value, property.r#static));
                }
                // A field behind a getter and a setter.
                ClassElement::AccessorProperty(property) => {
                    let value = property.value.as_ref();
                    made.members.extend(self.field(&property.key, value, property.r#static));
                }
                ClassElement::TSIndexSignature(_) => {}
                ClassElement::StaticBlock(_) => self.program.is_opaque = true,
            }
        }
        let class = Expression::Class(Box::new(made));
        match target {
            Some(target) => Expression::Assign(Box::new(target), Box::new(class)),
            None => class,
        }
    }

    fn field(
        &mut self,
        key: &PropertyKey<'_>,
        value: Option<&Value<'_>>,
        is_static: bool,
    ) -> Option<ClassMember> {
        let value = value?;
        let key = self.property_key(key);
        let text = self.text_of(&key);
        self.program.is_opaque |= &*text == "then" || IMPLICIT.contains(&&*text);
        let function = self.within(None, |this, id| {
            let value = this.expression(value);
            this.program.functions[id as usize].body = vec![Statement::Return(Some(value))];
        });
        Some(ClassMember { key, kind: MemberKind::Field(function), is_static })
    }

    pub(super) fn enumeration(&mut self, declared: &TSEnumDeclaration<'_>) -> Expression {
        let target = self.declared(&declared.id);
        let mut entries = Vec::with_capacity(declared.body.members.len());
        for member in &declared.body.members {
            let text = match &member.id {
                TSEnumMemberName::Identifier(name) => name.name.as_str(),
                TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => {
                    text.value.as_str()
                }
                TSEnumMemberName::ComputedTemplateString(_) => {
                    self.program.is_opaque = true;
                    continue;
                }
            };
            let key = self.program.names.intern(text);
            let value = member.initializer.as_ref().map(|value| self.expression(value));
            entries.push(Entry::Value(Key::Name(key), value.unwrap_or(Expression::Literal)));
        }
        let object = Expression::Object { entries, is_dict: false };
        Expression::Assign(Box::new(target), Box::new(object))
    }
}
