//! Functions that yield, as functions that collect.
//!
//! Monty has no `yield`. A generator becomes a function that returns an iterator over all that it
//! would have yielded. What it does happens at once, and not step by step; one that never ends is
//! stopped by the prelude with an error that says so.

use ruff_python_ast::{
    Expr, Stmt, StmtFunctionDef, StmtReturn,
    visitor::{Visitor, walk_expr, walk_stmt},
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{DEPTH_LIMIT, Rewriter, Scope};

/// Whether a body yields, not counting the functions inside of it.
pub(super) fn yields(body: &[Stmt]) -> bool {
    let mut search = Search { found: false, depth: 0 };
    search.visit_body(body);
    search.found
}

struct Search {
    found: bool,
    depth: usize,
}

impl<'a> Visitor<'a> for Search {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !self.found && !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Yield(_) | Expr::YieldFrom(_) => self.found = true,
            Expr::Lambda(_) => {}
            _ if !self.found && self.depth < DEPTH_LIMIT => {
                self.depth += 1;
                walk_expr(self, expression);
                self.depth -= 1;
            }
            _ => {}
        }
    }
}

impl<'a> Rewriter<'a> {
    /// A function's body, with what makes a generator of it around.
    pub(super) fn function_body(&mut self, function: &'a StmtFunctionDef) {
        if !yields(&function.body) {
            self.scopes.push(Scope::Plain);
            self.visit_body(&function.body);
            self.scopes.pop();
            return;
        }
        self.need("<iterating>");
        self.prepend(&function.body, "_tg_yielded = []");
        self.scopes.push(Scope::Generator);
        self.visit_body(&function.body);
        self.scopes.pop();
        // An asynchronous generator is a coroutine here, which `async for` awaits.
        self.append(&function.body, "return iter(_tg_yielded)");
    }

    /// `yield` as a statement of its own; as a part of an expression it has no other form.
    pub(super) fn yield_statement(&mut self, expression: &'a Expr) -> bool {
        match expression {
            Expr::Yield(yielded) => match yielded.value.as_deref() {
                Some(value) => {
                    // The keyword alone: what follows may stand in brackets.
                    let keyword = TextRange::at(expression.start(), TextSize::of("yield"));
                    self.edits.replace(keyword, "_tg_yield(_tg_yielded, (");
                    self.visit_expr(value);
                    self.edits.close(expression, "))");
                }
                None => self.edits.replace(expression.range(), "_tg_yield(_tg_yielded, None)"),
            },
            Expr::YieldFrom(yielded) => {
                let text = self.text(expression);
                let end = text.find("from").map_or(0, |from| from + "from".len());
                let end = TextSize::try_from(end).unwrap_or_default();
                let keyword = TextRange::at(expression.start(), end);
                self.edits.replace(keyword, "_tg_yield_from(_tg_yielded, (");
                self.visit_expr(&yielded.value);
                self.edits.close(expression, "))");
            }
            _ => return false,
        }
        true
    }

    /// `return`, which ends a generator with what it has collected.
    pub(super) fn return_statement(&mut self, statement: &'a StmtReturn) {
        if self.scopes.last() == Some(&Scope::Generator) {
            self.edits.replace(statement.range(), "return iter(_tg_yielded)");
        } else if let Some(value) = &statement.value {
            self.visit_expr(value);
        }
    }
}
