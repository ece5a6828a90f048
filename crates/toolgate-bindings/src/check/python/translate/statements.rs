//! Statements.

use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtImport, StmtImportFrom, StmtTry, StmtWith};

use super::Translator;
use crate::check::{
    flow::ir::{Expression, Key, Loop, LoopHead, Statement, Target, Try, name},
    python::bindings::Bindings,
};

/// Whether an expression only names something.
fn is_quiet(expression: &Expr) -> bool {
    match expression {
        Expr::Name(_) => true,
        Expr::Attribute(attribute) => is_quiet(&attribute.value),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_quiet),
        _ => false,
    }
}

impl<'a> Translator<'a> {
    pub(super) fn block(&mut self, body: &'a [Stmt]) -> Vec<Statement> {
        let mut translated = Vec::with_capacity(body.len());
        for statement in body {
            self.statement(statement, &mut translated);
        }
        translated
    }

    fn set(target: Target, value: Expression) -> Statement {
        Statement::Expression(Expression::Assign(Box::new(target), Box::new(value)))
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each construct; parts of it would not be clearer"
    )]
    fn statement(&mut self, statement: &'a Stmt, into: &mut Vec<Statement>) {
        match statement {
            Stmt::FunctionDef(function) => {
                let id = self.function(function, crate::check::flow::ir::Binding::None);
                let value = self.decorated(Expression::Function(id), &function.decorator_list);
                let target = self.assigned(function.name.as_str());
                into.push(Self::set(target, value));
            }
            Stmt::ClassDef(class) => {
                let value = self.class(class);
                let target = self.assigned(class.name.as_str());
                into.push(Self::set(target, value));
            }
            Stmt::Return(returned) => {
                let value = returned.value.as_ref().map(|value| self.expression(value));
                into.push(Statement::Return(value));
            }
            Stmt::Assign(assign) => {
                let mut value = self.expression(&assign.value);
                for target in &assign.targets {
                    let target = self.target(target);
                    value = Expression::Assign(Box::new(target), Box::new(value));
                }
                into.push(Statement::Expression(value));
            }
            Stmt::AugAssign(assign) => {
                let value = Box::new(self.expression(&assign.value));
                let target = Box::new(self.target(&assign.target));
                into.push(Statement::Expression(Expression::Update(target, value)));
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    let value = self.expression(value);
                    let target = self.target(&assign.target);
                    into.push(Self::set(target, value));
                }
            }
            Stmt::For(each) => {
                let items = self.expression(&each.iter);
                let (mut each, assigned) = self.region(|this| {
                    let target = this.target(&each.target);
                    let head = LoopHead::Each { target, items, are_keys: false };
                    let body = this.block(&each.body);
                    let otherwise = this.block(&each.orelse);
                    Loop { head, body, update: None, otherwise, assigned: Vec::new() }
                });
                each.assigned = assigned;
                into.push(Statement::Loop(Box::new(each)));
            }
            Stmt::While(each) => {
                let (mut each, assigned) = self.region(|this| {
                    let head = LoopHead::While(Some(this.expression(&each.test)));
                    let body = this.block(&each.body);
                    let otherwise = this.block(&each.orelse);
                    Loop { head, body, update: None, otherwise, assigned: Vec::new() }
                });
                each.assigned = assigned;
                into.push(Statement::Loop(Box::new(each)));
            }
            Stmt::If(choice) => {
                let test = self.expression(&choice.test);
                let then = self.block(&choice.body);
                let mut clauses = Vec::new();
                for clause in &choice.elif_else_clauses {
                    let test = clause.test.as_ref().map(|test| self.expression(test));
                    clauses.push((test, self.block(&clause.body)));
                }
                let mut otherwise = Vec::new();
                for (test, body) in clauses.into_iter().rev() {
                    otherwise = match test {
                        Some(test) => vec![Statement::If { test, then: body, otherwise }],
                        None => body,
                    };
                }
                into.push(Statement::If { test, then, otherwise });
            }
            Stmt::With(with) => self.with(with, into),
            Stmt::Match(matched) => {
                let subject = self.temporary();
                let value = self.expression(&matched.subject);
                into.push(Self::set(Target::Variable(subject), value));
                let (cases, assigned) = self.region(|this| {
                    let mut cases = Vec::new();
                    for case in &matched.cases {
                        let mut body = Vec::new();
                        for target in this.captures(&case.pattern) {
                            body.push(Self::set(target, Expression::Variable(subject)));
                        }
                        let test = case.guard.as_ref().map(|guard| this.expression(guard));
                        let then = this.block(&case.body);
                        match test {
                            Some(test) => {
                                body.push(Statement::If { test, then, otherwise: Vec::new() });
                            }
                            None => body.extend(then),
                        }
                        cases.push((None, body));
                    }
                    cases
                });
                let subject = Expression::Variable(subject);
                into.push(Statement::Switch { subject, cases, assigned });
            }
            Stmt::Raise(raised) => {
                let parts = raised.exc.iter().chain(&raised.cause);
                let parts = parts.map(|part| self.expression(part)).collect();
                into.push(Statement::Throw(parts));
            }
            Stmt::Try(attempt) => self.attempt(attempt, into),
            Stmt::Assert(assertion) => {
                let test = self.expression(&assertion.test);
                let message = assertion.msg.iter().map(|message| self.expression(message));
                let otherwise = vec![Statement::Throw(message.collect())];
                into.push(Statement::If { test, then: Vec::new(), otherwise });
            }
            Stmt::Import(import) => self.import(import, into),
            Stmt::ImportFrom(import) => self.import_from(import, into),
            Stmt::Expr(expression) => {
                into.push(Statement::Expression(self.expression(&expression.value)));
            }
            Stmt::Break(_) | Stmt::Continue(_) => into.push(Statement::Leave),
            Stmt::Delete(deleted) => {
                for target in &deleted.targets {
                    if let Target::Member(object, key) = self.target(target) {
                        let target = Box::new(Target::Member(object, key));
                        into.push(Statement::Expression(Expression::Remove(target)));
                    }
                }
            }
            Stmt::TypeAlias(_) | Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Pass(_) => {}
            Stmt::IpyEscapeCommand(_) => self.program.is_opaque = true,
        }
    }

    fn with(&mut self, with: &'a StmtWith, into: &mut Vec<Statement>) {
        for item in &with.items {
            let manager = self.temporary();
            let value = self.expression(&item.context_expr);
            into.push(Self::set(Target::Variable(manager), value));
            let Some(target) = &item.optional_vars else { continue };
            let target = self.target(target);
            // The manager itself, what its method returns, or what its generator yields.
            let part = |key| Expression::Member(Box::new(Expression::Variable(manager)), key);
            let yielded = part(Key::Computed(Box::new(Expression::Literal)));
            let entered = part(Key::Name(name::IMPLICIT));
            let inner = Expression::Conditional(Box::new([Expression::Literal, yielded, entered]));
            let own = Expression::Variable(manager);
            let all = Expression::Conditional(Box::new([Expression::Literal, own, inner]));
            into.push(Self::set(target, all));
        }
        // The end of the block may swallow an exception of its middle.
        let (mut body, assigned) = self.region(|this| this.block(&with.body));
        if with.is_async {
            // Tasks that were started in the block end with it.
            let end = Expression::Await(Box::new(Expression::Literal));
            body.insert(0, Statement::Expression(end));
        }
        into.push(Statement::Labelled { body, assigned });
    }

    fn attempt(&mut self, attempt: &'a StmtTry, into: &mut Vec<Statement>) {
        let (mut attempt, assigned) = self.region(|this| {
            let body = this.block(&attempt.body);
            let mut handlers = Vec::new();
            for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                let target = handler.name.as_ref().map(|name| this.assigned(name.as_str()));
                let mut body = this.block(&handler.body);
                // The expression that says which exceptions are meant may do something.
                if let Some(kind) = handler.type_.as_deref().filter(|kind| !is_quiet(kind)) {
                    body.insert(0, Statement::Expression(this.expression(kind)));
                }
                handlers.push((target.unwrap_or(Target::Nothing), body));
            }
            let otherwise = this.block(&attempt.orelse);
            let finally = this.block(&attempt.finalbody);
            Try { body, handlers, otherwise, finally, assigned: Vec::new() }
        });
        attempt.assigned = assigned;
        into.push(Statement::Try(Box::new(attempt)));
    }

    fn import(&mut self, import: &'a StmtImport, into: &mut Vec<Statement>) {
        for alias in &import.names {
            let Some(bound) = Bindings::imported(alias) else { continue };
            let path = if alias.asname.is_some() { alias.name.as_str() } else { bound };
            let value = Expression::Free(self.program.names.intern(path));
            let target = self.assigned(bound);
            into.push(Self::set(target, value));
        }
    }

    fn import_from(&mut self, import: &'a StmtImportFrom, into: &mut Vec<Statement>) {
        let module = import.module.as_ref().map_or("", |module| module.as_str());
        for alias in &import.names {
            let Some(bound) = Bindings::imported(alias) else {
                self.program.is_opaque = true;
                continue;
            };
            let path = format!("{module}.{}", alias.name);
            let value = Expression::Free(self.program.names.intern(&path));
            let target = self.assigned(bound);
            into.push(Self::set(target, value));
        }
    }

    pub(super) fn target(&mut self, target: &'a Expr) -> Target {
        match target {
            Expr::Name(name) => self.assigned(name.id.as_str()),
            Expr::Tuple(tuple) => self.targets(&tuple.elts),
            Expr::List(list) => self.targets(&list.elts),
            Expr::Starred(starred) => self.target(&starred.value),
            other => match self.expression(other) {
                Expression::Member(object, key) => Target::Member(object, key),
                Expression::Slice(object, bounds) => {
                    let part = Expression::Slice(Box::new(Expression::Literal), bounds);
                    Target::Member(object, Key::Computed(Box::new(part)))
                }
                _ => Target::Nothing,
            },
        }
    }

    fn targets(&mut self, targets: &'a [Expr]) -> Target {
        let starred = targets.iter().position(Expr::is_starred_expr);
        let mut items = Vec::new();
        let mut rest = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let target = self.target(target);
            if starred.is_some_and(|starred| at >= starred) {
                rest.push(target);
            } else {
                items.push((target, None));
            }
        }
        let mut rest = rest.into_iter();
        let first = rest.next().map(Box::new);
        // What comes after the star may be any element.
        let others: Vec<_> = rest
            .map(|target| (Key::Computed(Box::new(Expression::Literal)), target, None))
            .collect();
        if others.is_empty() {
            return Target::Array { items, rest: first };
        }
        let mut entries = others;
        for (at, (target, default)) in items.into_iter().enumerate() {
            let name = self.program.names.intern(&at.to_string());
            entries.push((Key::Name(name), target, default));
        }
        Target::Object { entries, rest: first }
    }
}
