//! Classes.

use ruff_python_ast::{
    Expr, Stmt, StmtClassDef, StmtFunctionDef,
    visitor::{Visitor, walk_expr},
};

use super::{ScopeKind, Translator, last_name};
use crate::check::{
    flow::ir::{Binding, Class, ClassMember, Expression, Key, MemberKind},
    python::bindings::Bindings,
};

/// Methods that the language calls and that return something.
#[rustfmt::skip]
const IMPLICIT: &[&str] = &[
    "__str__", "__repr__", "__eq__", "__ne__", "__hash__", "__contains__", "__iter__", "__next__",
    "__aiter__", "__anext__", "__enter__", "__aenter__", "__len__", "__bool__", "__lt__", "__le__",
    "__gt__", "__ge__", "__post_init__", "__format__",
];

/// Decorators of classes that only add methods of the language.
const TRANSPARENT: &[&str] = &["dataclass", "unique", "total_ordering", "final"];

/// Whether a method uses no parameter but the first.
fn ignores_arguments(function: &StmtFunctionDef) -> bool {
    struct Uses<'f>(&'f StmtFunctionDef, bool);
    impl<'a> Visitor<'a> for Uses<'_> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            if let Expr::Name(name) = expression {
                let mut others = self.0.parameters.iter().skip(1);
                self.1 |= others.any(|other| other.name().as_str() == name.id.as_str());
            }
            walk_expr(self, expression);
        }
    }
    let mut uses = Uses(function, false);
    uses.visit_body(&function.body);
    !uses.1
}

impl<'a> Translator<'a> {
    pub(super) fn class(&mut self, class: &'a StmtClassDef) -> Expression {
        let mut bases = Vec::new();
        if let Some(arguments) = &class.arguments {
            for base in &arguments.args {
                bases.push(self.expression(base));
            }
            self.program.is_opaque |= !arguments.keywords.is_empty();
        }
        let is_known = |decorator: &ruff_python_ast::Decorator| {
            TRANSPARENT.contains(&last_name(&decorator.expression))
        };
        self.program.is_opaque |= !class.decorator_list.iter().all(is_known);
        let mut made = Class { bases, constructor: None, members: Vec::new(), fields: Vec::new() };
        self.open(&Bindings::of_body(&class.body), ScopeKind::Class);
        for statement in &class.body {
            match statement {
                Stmt::FunctionDef(function) => self.method(function, &mut made),
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        self.value(target, Some(&assign.value), &mut made);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Expr::Name(target) = assign.target.as_ref() {
                        made.fields.push(self.program.names.intern(target.id.as_str()));
                    }
                    self.value(&assign.target, assign.value.as_deref(), &mut made);
                }
                Stmt::Expr(_) | Stmt::Pass(_) => {}
                _ => self.program.is_opaque = true,
            }
        }
        self.close();
        Expression::Class(Box::new(made))
    }

    fn value(&mut self, target: &'a Expr, value: Option<&'a Expr>, class: &mut Class) {
        let Expr::Name(target) = target else {
            self.program.is_opaque = true;
            return;
        };
        let Some(value) = value else { return };
        let key = Key::Name(self.program.names.intern(target.id.as_str()));
        if let Expr::Call(call) = value
            && last_name(&call.func) == "field"
            && let Some(factory) = call.arguments.find_keyword("default_factory")
        {
            let otherwise = MemberKind::Value(Expression::Opaque(vec![self.expression(value)]));
            let kind = MemberKind::Factory {
                marker: self.expression(&call.func),
                factory: self.expression(&factory.value),
                otherwise: Box::new(otherwise),
            };
            class.members.push(ClassMember { key, kind, is_static: false });
            return;
        }
        // A member of an enumeration and a default of a data class wrap the value.
        let value = Expression::Opaque(vec![self.expression(value)]);
        let kind = MemberKind::Value(value);
        class.members.push(ClassMember { key, kind, is_static: false });
    }

    fn method(&mut self, function: &'a StmtFunctionDef, class: &mut Class) {
        let text = function.name.as_str();
        let decorators: Vec<&str> =
            function.decorator_list.iter().map(|it| last_name(&it.expression)).collect();
        let (binding, is_getter) = match decorators.as_slice() {
            [] | ["abstractmethod" | "override"] => (Binding::Instance, false),
            ["staticmethod"] => (Binding::None, false),
            ["classmethod"] => (Binding::Class, false),
            ["property" | "cached_property"] => (Binding::Instance, true),
            _ => {
                self.program.is_opaque = true;
                return;
            }
        };
        // What it is told of an exception is not used.
        let ends_block = matches!(text, "__exit__" | "__aexit__") && ignores_arguments(function);
        let id = self.function(function, binding);
        let is_special = text.starts_with("__") && text.ends_with("__");
        let kind = match text {
            _ if is_getter => MemberKind::Getter(id),
            "__init__" => {
                class.constructor = Some(id);
                MemberKind::Method(id)
            }
            _ if IMPLICIT.contains(&text) || ends_block => MemberKind::Implicit(id),
            _ => {
                self.program.is_opaque |= is_special;
                MemberKind::Method(id)
            }
        };
        let name = self.program.names.intern(text);
        class.members.push(ClassMember { key: Key::Name(name), kind, is_static: false });
    }
}
