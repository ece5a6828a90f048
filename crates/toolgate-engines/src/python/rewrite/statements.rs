//! Statements that Monty lacks.

use ruff_python_ast::{
    ExceptHandler, Expr, Operator, Stmt, StmtAssign, StmtAugAssign, StmtFunctionDef, StmtRaise,
    StmtTry, StmtWith,
    visitor::{Visitor, walk_stmt},
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{AT, Rewriter, refused::Refusal};

impl<'a> Rewriter<'a> {
    pub(super) fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            Stmt::Delete(delete) => self.delete(statement, &delete.targets),
            Stmt::Assign(StmtAssign { value, .. })
                if let (true, Expr::Lambda(lambda)) = (self.is_traced(), &**value) =>
            {
                self.stored_lambda(lambda);
            }
            Stmt::Assign(assignment) => self.plain_assignment(statement, assignment),
            Stmt::AugAssign(assignment) => self.assignment(assignment),
            Stmt::With(with) if with.is_async => self.async_with(statement, with),
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(statement, class),
            Stmt::Return(returned) if self.is_traced() => self.traced_return(returned),
            Stmt::Raise(raise) => self.raise(raise),
            Stmt::Try(tried) if !tried.is_star => self.tried(tried),
            Stmt::Assert(assertion) => {
                self.visit_expr(&assertion.test);
                if let Some(message) = assertion.msg.as_deref() {
                    self.need("<core>");
                    self.wrap(message, "_tg_text(", ")");
                }
            }
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                self.members_of(&each.iter);
                self.visit_expr(&each.target);
                self.turns(&each.body, Some(each));
                self.visit_body(&each.orelse);
            }
            Stmt::With(with) => {
                let number = self.tracer.current;
                walk_stmt(self, statement);
                if self.is_traced() {
                    self.append(&with.body, &format!("{AT} = {number}"));
                }
            }
            Stmt::While(each) => {
                self.condition(&each.test);
                self.turns(&each.body, None);
                self.visit_body(&each.orelse);
            }
            Stmt::If(choice) => {
                self.visit_expr(&choice.test);
                self.visit_body(&choice.body);
                for clause in &choice.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        self.condition(test);
                    }
                    self.visit_body(&clause.body);
                }
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        if let Some(parameters) = &function.type_params {
            self.edits.replace(parameters.range(), "");
        }
        self.visit_parameters(&function.parameters);
        self.functions += 1;
        self.enter(&function.name, &function.body);
        self.visit_body(&function.body);
        self.leave(&function.body);
        self.functions -= 1;
    }

    /// `del a, b[c]`.
    fn delete(&mut self, statement: &'a Stmt, targets: &'a [Expr]) {
        self.need("<core>");
        let mut parts = Vec::with_capacity(targets.len());
        for target in targets {
            parts.push(match target {
                Expr::Subscript(subscript) => {
                    let (value, index) =
                        (self.text(&*subscript.value), self.text(&*subscript.slice));
                    format!("_tg_del({value}, ({index}))")
                }
                // Monty reports brackets around several targets with their position.
                _ => return,
            });
        }
        self.edits.replace(statement.range(), parts.join("; "));
    }

    /// `a[i], b.c = d`, which Monty lacks.
    fn plain_assignment(&mut self, statement: &'a Stmt, assignment: &'a StmtAssign) {
        let [target] = assignment.targets.as_slice() else { return walk_stmt(self, statement) };
        let items = match target {
            Expr::Tuple(tuple) => tuple.elts.as_slice(),
            Expr::List(list) => list.elts.as_slice(),
            _ => return walk_stmt(self, statement),
        };
        if !items.iter().any(|item| item.is_subscript_expr() || item.is_attribute_expr()) {
            return walk_stmt(self, statement);
        }
        let mut later = String::new();
        for item in items {
            // Each value goes into a name first, so that the whole right side is read before.
            if item.is_subscript_expr() || item.is_attribute_expr() {
                let name = self.fresh();
                later = format!("{later}; {} = {name}", self.text(item));
                self.edits.replace(item.range(), name);
            }
        }
        self.visit_expr(&assignment.value);
        self.edits.insert(statement.end(), later);
    }

    /// `a |= b` for dictionaries, which Monty's operator lacks.
    fn assignment(&mut self, assignment: &'a StmtAugAssign) {
        let (target, value) = (&*assignment.target, &*assignment.value);
        if assignment.op == Operator::BitOr
            && is_simple(target)
            && let Some(operator) = self.operator(target, value, "|=")
        {
            self.need("<core>");
            let name = self.text(target).to_owned();
            self.edits.replace(operator, format!("= _tg_ior({name}, ("));
            self.visit_expr(value);
            self.edits.close(value, "))");
        } else if let Some((symbol, function, piece)) = self.changing(assignment)
            && is_simple(target)
            && let Some(operator) = self.operator(target, value, symbol)
        {
            self.need(piece);
            let name = self.text(target).to_owned();
            self.edits.replace(operator, format!("= {function}{name}, ("));
            self.added(value, assignment.op);
            self.edits.close(value, "))");
        } else {
            self.visit_expr(target);
            self.added(value, assignment.op);
        }
    }

    /// The function for an assignment such as `a += b` that Monty does otherwise.
    fn changing(
        &self,
        assignment: &StmtAugAssign,
    ) -> Option<(&'static str, &'static str, &'static str)> {
        let (target, value) = (&*assignment.target, &*assignment.value);
        match assignment.op {
            // A list takes all values of anything.
            Operator::Add
                if has_values(value)
                    || (self.bindings.may_be_list(target) && may_have_values(value)) =>
            {
                Some(("+=", "_tg_iadd(", "<core>"))
            }
            Operator::Pow => Some(("**=", "_tg_pow(", "<numbers>")),
            Operator::FloorDiv if !value.is_number_literal_expr() => {
                Some(("//=", "_tg_floordiv(", "<numbers>"))
            }
            _ => None,
        }
    }

    /// `async with a as b:` as `try` and `finally`.
    fn async_with(&mut self, statement: &'a Stmt, with: &'a StmtWith) {
        let (Some(indentation), Some(first)) =
            (self.indentation(statement).map(str::to_owned), with.body.first())
        else {
            return;
        };
        // Several items would need as many blocks. Monty reports them with their position.
        let [item] = with.items.as_slice() else { return };
        self.need("<core>");
        let (name, ended) = (self.fresh(), self.fresh());
        let context = &item.context_expr;
        self.edits
            .replace(TextRange::new(statement.start(), context.start()), format!("{name} = ("));
        self.visit_expr(context);
        let target = item.optional_vars.as_ref().map(|target| self.text(&**target));
        let bind = target.map_or_else(String::new, |target| format!("{target} = "));
        let inline = self.indentation(first).is_none();
        let colon = self.colon(item.end()).map(|colon| colon + TextSize::of(':'));
        let rest = colon.filter(|_| !inline).unwrap_or(first.start());
        let space = if inline { " " } else { "" };
        self.edits.replace(
            TextRange::new(context.end(), rest),
            format!(
                "); {bind}await {name}.__aenter__(); {ended} = False\n{indentation}try:{space}"
            ),
        );
        self.visit_body(&with.body);
        if let Some(last) = with.body.last() {
            let at = self.end_of_line(last);
            let (error, line) = (self.fresh(), format!("\n{indentation}"));
            self.edits.insert(
                at,
                format!(
                    "{line}except BaseException as {error}:\
                     {line} {ended} = True\
                     {line} if not await {name}.__aexit__(_tg_type({error}), {error}, None): raise\
                     {line}finally:\
                     {line} if not {ended}: await {name}.__aexit__(None, None, None)"
                ),
            );
        }
    }
}

/// Whether an expression certainly has values and is neither a list nor a text.
fn has_values(expression: &Expr) -> bool {
    match expression {
        Expr::Tuple(_)
        | Expr::Set(_)
        | Expr::Dict(_)
        | Expr::SetComp(_)
        | Expr::DictComp(_)
        | Expr::Generator(_) => true,
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => matches!(
                name.id.as_str(),
                "enumerate" | "filter" | "map" | "range" | "reversed" | "set" | "tuple" | "zip"
            ),
            Expr::Attribute(method) => {
                matches!(method.attr.as_str(), "items" | "keys" | "values")
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether an expression may have values and is not certainly a list.
fn may_have_values(expression: &Expr) -> bool {
    !expression.is_list_expr()
        && !expression.is_list_comp_expr()
        && !expression.is_number_literal_expr()
}

/// Whether a target can be evaluated twice without a second effect.
fn is_simple(target: &Expr) -> bool {
    match target {
        Expr::Name(_) => true,
        Expr::Attribute(attribute) => is_simple(&attribute.value),
        Expr::Subscript(subscript) => {
            is_simple(&subscript.value)
                && (subscript.slice.is_name_expr() || subscript.slice.is_literal_expr())
        }
        _ => false,
    }
}

impl<'a> Rewriter<'a> {
    pub(super) fn raise(&mut self, raise: &'a StmtRaise) {
        let Some(exception) = raise.exc.as_deref() else { return };
        if !self.own_exceptions {
            self.visit_expr(exception);
            if let Some(cause) = &raise.cause {
                self.visit_expr(cause);
            }
            return;
        }
        self.need("<classes>");
        self.wrap(exception, "_tg_raise(", ")");
        if raise.cause.is_some() {
            // The cause may be an exception of the script, which Monty would refuse.
            self.edits.replace(TextRange::new(self.after(exception.end()), raise.end()), "");
        }
    }

    pub(super) fn tried(&mut self, tried: &'a StmtTry) {
        self.visit_body(&tried.body);
        if self.own_exceptions && !tried.handlers.is_empty() {
            if self.can_merge(tried) {
                self.merge(tried);
            } else {
                self.refusal = Some(Refusal::new(
                    tried,
                    "`except` in lines that begin with a tab or a single blank",
                    "indent each block by four blanks",
                ));
            }
        } else {
            for (index, ExceptHandler::ExceptHandler(handler)) in tried.handlers.iter().enumerate()
            {
                if let Some(kind) = &handler.type_ {
                    self.visit_expr(kind);
                }
                self.handled(&tried.handlers[index]);
            }
        }
        self.visit_body(&tried.orelse);
        self.finally(&tried.finalbody);
    }

    /// Merges the handlers into one with a chain of conditions. They are indented by one space,
    /// which is less than any block below them, so that no other line moves.
    fn merge(&mut self, tried: &'a StmtTry) {
        self.need("<classes>");
        let caught = self.fresh();
        let mut has_default = false;
        for (index, ExceptHandler::ExceptHandler(handler)) in tried.handlers.iter().enumerate() {
            let indentation = self.before(handler.start()).to_owned();
            let header = if index == 0 {
                format!("except BaseException as {caught}:\n{indentation} if ")
            } else {
                " elif ".to_owned()
            };
            let header_end = match (&handler.name, &handler.type_) {
                (Some(name), _) => name.end(),
                (None, Some(kind)) => kind.end(),
                (None, None) => handler.start(),
            };
            let Some(colon) = self.colon(header_end) else { continue };
            let bound = handler.name.as_ref().map_or_else(String::new, |name| {
                format!(" and [{name} := _tg_caught({caught})] is not None")
            });
            if let Some(kind) = &handler.type_ {
                let start = TextRange::new(handler.start(), kind.start());
                self.edits.replace(start, format!("{header}_tg_is({caught}, ("));
                self.visit_expr(kind);
                self.edits.replace(TextRange::new(kind.end(), colon), format!(")){bound}"));
            } else {
                has_default = true;
                let start = TextRange::new(handler.start(), colon);
                self.edits.replace(start, format!("{header}True"));
            }
            self.handled(&tried.handlers[index]);
            if index + 1 == tried.handlers.len()
                && !has_default
                && let Some(last) = handler.body.last()
            {
                let at = self.end_of_line(last);
                self.edits.insert(at, format!("\n{indentation} else: raise"));
            }
        }
    }

    fn can_merge(&self, tried: &StmtTry) -> bool {
        tried.handlers.iter().all(|ExceptHandler::ExceptHandler(handler)| {
            let around = self.before(handler.start());
            let blank = around.chars().all(|c| c == ' ');
            let body = handler.body.first().and_then(|first| self.indentation(first));
            blank && body.is_none_or(|body| body.len() > around.len() + 1 && !body.contains('\t'))
        })
    }

    /// The offset after the closing brackets that follow an expression.
    fn after(&self, offset: TextSize) -> TextSize {
        let rest = &self.source[offset.to_usize()..];
        let length = rest.len() - rest.trim_start_matches([')', ' ']).len();
        // Only brackets count. The space before the next token stays.
        let closed = rest[..length].rfind(')').map_or(0, |index| index + 1);
        offset + TextSize::try_from(closed).unwrap_or_default()
    }
}
