//! The names that a scope binds.

use std::collections::HashSet;

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, Identifier, Parameters, Pattern, Stmt,
    visitor::{Visitor, walk_except_handler, walk_expr, walk_pattern, walk_stmt},
};

/// The names that a scope binds itself, without inner scopes.
#[derive(Default)]
pub(super) struct Bindings<'a> {
    /// Names that are assigned.
    pub(super) assigned: HashSet<&'a str>,
    /// Names from definitions, parameters, imports and patterns.
    pub(super) defined: HashSet<&'a str>,
    /// Names that are declared `global` or `nonlocal`.
    pub(super) foreign: HashSet<&'a str>,
    /// Whether an import may bind any name.
    pub(super) is_open: bool,
    /// Whether the body of a function makes it a generator.
    pub(super) yields: bool,
    within_comprehension: usize,
}

impl<'a> Bindings<'a> {
    pub(super) fn of_body(body: &'a [Stmt]) -> Self {
        let mut bindings = Self::default();
        bindings.visit_body(body);
        bindings
    }

    pub(super) fn of_function(parameters: Option<&'a Parameters>, body: &'a [Stmt]) -> Self {
        let mut bindings = Self::of_body(body);
        for parameter in parameters.into_iter().flat_map(Parameters::iter) {
            bindings.defined.insert(parameter.name().as_str());
        }
        bindings
    }

    /// The scope of a lambda or a comprehension, from its targets.
    pub(super) fn of_targets(targets: impl Iterator<Item = &'a Expr>) -> Self {
        let mut bindings = Self::default();
        targets.for_each(|target| bindings.visit_expr(target));
        bindings
    }

    pub(super) fn binds(&self, name: &str) -> bool {
        self.assigned.contains(name) || self.defined.contains(name)
    }

    /// The name that an import binds; `None` for `*`.
    pub(super) fn imported(alias: &'a Alias) -> Option<&'a str> {
        let name = alias.name.as_str();
        match &alias.asname {
            Some(other) => Some(other.as_str()),
            None if name == "*" => None,
            None => name.split('.').next(),
        }
    }
}

/// The names that some function of a script declares `global`.
pub(super) fn global_names(body: &[Stmt]) -> HashSet<&str> {
    struct Globals<'a>(HashSet<&'a str>);
    impl<'a> Visitor<'a> for Globals<'a> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if let Stmt::Global(global) = statement {
                self.0.extend(global.names.iter().map(Identifier::as_str));
            }
            walk_stmt(self, statement);
        }
        // Expressions contain no statements.
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut globals = Globals(HashSet::new());
    globals.visit_body(body);
    globals.0
}

impl<'a> Visitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.defined.insert(function.name.as_str());
            }
            Stmt::ClassDef(class) => {
                self.defined.insert(class.name.as_str());
            }
            Stmt::Import(import) => {
                self.defined.extend(import.names.iter().filter_map(Bindings::imported));
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    match Bindings::imported(alias) {
                        Some(name) => {
                            self.defined.insert(name);
                        }
                        None => self.is_open = true,
                    }
                }
            }
            Stmt::Global(global) => {
                self.foreign.extend(global.names.iter().map(Identifier::as_str));
            }
            Stmt::Nonlocal(nonlocal) => {
                self.foreign.extend(nonlocal.names.iter().map(Identifier::as_str));
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if !name.ctx.is_load() => {
                if self.within_comprehension == 0 {
                    self.assigned.insert(name.id.as_str());
                }
            }
            // It binds in the outer scope, in a comprehension too.
            Expr::Named(named) => {
                if let Expr::Name(name) = named.target.as_ref() {
                    self.assigned.insert(name.id.as_str());
                }
                self.visit_expr(&named.value);
            }
            Expr::Lambda(_) => {}
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.yields = true;
                walk_expr(self, expression);
            }
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                self.within_comprehension += 1;
                walk_expr(self, expression);
                self.within_comprehension -= 1;
            }
            _ => walk_expr(self, expression),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        self.defined.extend(inner.name.as_ref().map(Identifier::as_str));
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(matched) => matched.name.as_ref(),
            Pattern::MatchStar(matched) => matched.name.as_ref(),
            Pattern::MatchMapping(matched) => matched.rest.as_ref(),
            _ => None,
        };
        self.defined.extend(name.map(Identifier::as_str));
        walk_pattern(self, pattern);
    }
}
