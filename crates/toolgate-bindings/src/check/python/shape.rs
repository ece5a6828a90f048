//! What the statements of a script are, for an engine that runs it as a module.

use ruff_python_ast::{
    Expr, Stmt,
    visitor::{Visitor, walk_expr, walk_stmt},
};
use ruff_text_size::Ranged;

/// What an engine has to know to run a script as a module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModuleShape {
    /// The last statement, if it is an expression: where it begins and ends in the source. Its value
    /// is that of the script.
    pub value: Option<(u32, u32)>,
    /// Whether there is a `return` outside of a function.
    pub returns: bool,
    /// Whether the script looks for variables by names that it computes.
    pub looks_up: bool,
}

impl ModuleShape {
    pub(super) fn of(body: &[Stmt]) -> Self {
        let value = match body.last() {
            Some(Stmt::Expr(last)) => Some((last.start().into(), last.end().into())),
            _ => None,
        };
        let mut finder = Finder::default();
        finder.visit_body(body);
        Self { value, returns: finder.returns, looks_up: finder.looks_up }
    }
}

#[derive(Default)]
struct Finder {
    /// The number of functions around the current statement.
    functions: usize,
    returns: bool,
    looks_up: bool,
}

impl<'a> Visitor<'a> for Finder {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_function = matches!(statement, Stmt::FunctionDef(_));
        self.returns |= self.functions == 0 && matches!(statement, Stmt::Return(_));
        self.functions += usize::from(is_function);
        walk_stmt(self, statement);
        self.functions -= usize::from(is_function);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.looks_up |= matches!(expression, Expr::Name(name) if name.id == "globals");
        walk_expr(self, expression);
    }
}
