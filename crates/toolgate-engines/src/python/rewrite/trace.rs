//! Notes which statement runs, for the position of an exception that leaves a block.
//!
//! Monty forgets where an exception was raised when it leaves `try` or `with`, and names the last
//! line of the block. So scripts with such blocks set the variable [`AT`] to the number of each
//! statement before it runs. A function restores the number of its caller when it returns, and a
//! `finally` block that of the statement before it.

use std::collections::BTreeMap;

use ruff_python_ast::{
    ExceptHandler, Expr, ExprCall, ExprLambda, Stmt, StmtFor, StmtRaise, StmtReturn,
    visitor::Visitor,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::{Changed, Node, Rewriter, walk};
use crate::engine::ScriptPosition;

/// The variable with the number of the statement that runs.
pub(in crate::python) const AT: &str = "_tg_at";

/// The statements of a script by their numbers, which are their offsets plus one.
#[derive(Debug, Default)]
pub(in crate::python) struct Trace {
    statements: BTreeMap<u32, Traced>,
    /// The blocks that exceptions can leave.
    blocks: Vec<TextRange>,
    /// Calls of methods whose names are on later lines, by where they begin and end, and the names.
    chains: BTreeMap<(TextSize, TextSize), TextSize>,
}

#[derive(Debug)]
struct Traced {
    range: TextRange,
    function: String,
}

impl Trace {
    /// Whether the script notes its statements.
    pub(in crate::python) fn is_on(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Where a call begins that failed at `start..end`. As in `CPython`, in a chain of methods over
    /// several lines that is the name of the method.
    pub(in crate::python) fn begin(
        &self,
        start: ScriptPosition,
        end: ScriptPosition,
        script: &Changed,
    ) -> ScriptPosition {
        let at = |offset: &TextSize| script.position(offset.to_usize());
        let mut chains = self.chains.iter();
        chains
            .find(|((first, last), _)| at(first) == start && at(last) == end)
            .map_or(start, |(_, name)| at(name))
    }

    /// The statement with that number, as its function and position, if an exception at `shown` may
    /// come from there.
    pub(in crate::python) fn origin(
        &self,
        number: u32,
        shown: ScriptPosition,
        script: &Changed,
    ) -> Option<(&str, ScriptPosition)> {
        let Traced { range, function } = self.statements.get(&number)?;
        let ends = |range: &TextRange| {
            [range.start(), range.end()].map(|offset| script.position(offset.to_usize()))
        };
        let left = self
            .blocks
            .iter()
            .map(ends)
            .any(|[first, last]| (first.line..=last.line).contains(&shown.line));
        let [start, end] = ends(range);
        let place = |position: ScriptPosition| (position.line, position.column);
        // What begins on a later line is noted itself, so it has not failed.
        let is_exact =
            shown.line == start.line && (place(start)..=place(end)).contains(&place(shown));
        (left && !is_exact).then_some((function.as_str(), start))
    }
}

/// The state of the walk.
#[derive(Debug, Default)]
pub(super) struct Tracer {
    pub(super) trace: Trace,
    /// The number of the current statement.
    pub(super) current: u32,
    /// Whether the current place is in an f-string, of which `CPython` shows the beginning, or
    /// in a decorator.
    pub(super) is_one_piece: bool,
    /// The names of the functions around.
    functions: Vec<String>,
    /// The handlers around: the name of the exception, and the variable with its statement.
    handlers: Vec<(Option<String>, String)>,
    /// The loops around, with the number of those whose next turn may fail.
    loops: Vec<Option<u32>>,
}

impl<'a> Rewriter<'a> {
    /// Finds out whether the script has to note its statements.
    pub(super) fn find_blocks(&mut self, body: &[Stmt]) {
        let blocks = &mut self.tracer.trace.blocks;
        walk(body, |node| {
            if let Node::Statement(statement @ (Stmt::Try(_) | Stmt::With(_))) = node {
                blocks.push(statement.range());
            }
            matches!(node, Node::Statement(_))
        });
        if self.is_traced() {
            self.need("<await>");
        }
    }

    pub(super) fn is_traced(&self) -> bool {
        self.tracer.trace.is_on()
    }

    /// Notes a statement, before the rest of it is rewritten.
    pub(super) fn note(&mut self, statement: &'a Stmt) {
        match statement {
            // A loop notes its condition each time.
            Stmt::Pass(_) | Stmt::Break(_) | Stmt::Global(_) | Stmt::Nonlocal(_) | Stmt::Try(_) => {
                return;
            }
            Stmt::Continue(_) => {
                if let Some(Some(number)) = self.tracer.loops.last() {
                    self.edits.insert(statement.start(), format!("{AT} = {number}; "));
                }
                return;
            }
            Stmt::Expr(expression) if expression.value.is_literal_expr() => return,
            _ => {}
        }
        let end = match statement {
            Stmt::If(choice) => choice.test.end(),
            Stmt::While(each) => each.test.end(),
            Stmt::For(each) => each.iter.end(),
            Stmt::With(with) => with.items.last().map_or(statement.end(), Ranged::end),
            Stmt::FunctionDef(function) => function.parameters.end(),
            Stmt::ClassDef(class) => class.name.end(),
            _ => statement.end(),
        };
        let number = self.number(statement, end);
        let text = match statement {
            Stmt::While(_) => return,
            Stmt::Raise(raise) => self.raised_again(raise).unwrap_or(format!("{AT} = {number}")),
            _ => format!("{AT} = {number}"),
        };
        let separator = match (is_compound(statement), self.indentation(statement)) {
            (true, Some(indentation)) => format!("\n{indentation}"),
            _ => "; ".to_owned(),
        };
        self.edits.insert(statement.start(), format!("{text}{separator}"));
    }

    /// Makes a statement or a condition the current one.
    fn number(&mut self, node: &impl Ranged, end: TextSize) -> u32 {
        let number = u32::from(node.start()) + 1;
        let traced = Traced {
            range: TextRange::new(node.start(), end),
            function: self.tracer.functions.last().cloned().unwrap_or_default(),
        };
        self.tracer.trace.statements.insert(number, traced);
        self.tracer.current = number;
        number
    }

    /// Notes the call of a method whose name is on a later line.
    pub(super) fn note_chain(&mut self, call: &ExprCall) {
        let Expr::Attribute(attribute) = &*call.func else { return };
        let name = attribute.attr.start();
        if self.source[call.start().to_usize()..name.to_usize()].contains('\n') {
            self.tracer.trace.chains.insert((call.start(), call.end()), name);
        }
    }

    /// An expression. One that begins on another line than what is around it is noted as well, and
    /// afterwards what is around it again.
    pub(super) fn on_its_line(&mut self, expression: &'a Expr) {
        let around = self.tracer.current;
        let Some(at) = self.line_of_its_own(expression) else {
            return self.expression(expression);
        };
        let number = self.number(&TextRange::new(at, expression.end()), expression.end());
        self.edits.open(expression, format!("_tg_back(_tg_go({number}), "));
        self.expression(expression);
        self.edits.close(expression, ")");
        self.tracer.current = around;
    }

    /// Where an expression begins that may fail on another line than the current one.
    fn line_of_its_own(&self, expression: &Expr) -> Option<TextSize> {
        let is_callee = self.callee == Some(expression.range());
        if !self.is_traced() || self.tracer.is_one_piece || is_callee {
            return None;
        }
        let at = match expression {
            // As in CPython: in a chain of methods the name of the method counts.
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(attribute) => attribute.attr.start(),
                _ => call.start(),
            },
            Expr::Attribute(attribute) if attribute.ctx.is_load() => attribute.attr.start(),
            Expr::Subscript(subscript) if subscript.ctx.is_load() => subscript.start(),
            Expr::Dict(dict) if dict.items.iter().any(|item| !item.value.is_literal_expr()) => {
                dict.start()
            }
            Expr::Await(_) | Expr::BinOp(_) | Expr::Compare(_) | Expr::UnaryOp(_) => {
                expression.start()
            }
            _ => return None,
        };
        let current = TextSize::new(self.tracer.current.checked_sub(1)?);
        let between = TextRange::new(at.min(current), at.max(current));
        self.source[between.start().to_usize()..between.end().to_usize()]
            .contains('\n')
            .then_some(at)
    }

    /// `f = lambda: …`, which other statements call.
    pub(super) fn stored_lambda(&mut self, lambda: &'a ExprLambda) {
        if let Some(parameters) = &lambda.parameters {
            self.visit_parameters(parameters);
        }
        self.tracer.functions.push("<lambda>".to_owned());
        let number = self.number(&*lambda.body, lambda.body.end());
        self.wrap(&lambda.body, format!("_tg_back(_tg_go({number}), "), ")");
        self.tracer.functions.pop();
    }

    /// `raise`, or `raise e` in the handler of `e`: the exception keeps its position.
    fn raised_again(&self, raise: &StmtRaise) -> Option<String> {
        let (name, saved) = self.tracer.handlers.last()?;
        let again = match raise.exc.as_deref() {
            None => true,
            Some(Expr::Name(raised)) => name.as_deref() == Some(raised.id.as_str()),
            Some(_) => false,
        };
        again.then(|| format!("{AT} = {saved}"))
    }

    /// A condition that is evaluated after other statements ran.
    pub(super) fn condition(&mut self, condition: &'a Expr) {
        if !self.is_traced() {
            return self.visit_expr(condition);
        }
        let number = self.number(condition, condition.end());
        self.wrap(condition, format!("({AT} := {number}) and ("), ")");
    }

    /// The body of a loop. Its next turn may fail if it unpacks values.
    pub(super) fn turns(&mut self, body: &'a [Stmt], each: Option<&StmtFor>) {
        let unpacks = each.is_some_and(|each| !each.target.is_name_expr()) && self.is_traced();
        let number = unpacks.then_some(self.tracer.current);
        self.tracer.loops.push(number);
        self.visit_body(body);
        self.tracer.loops.pop();
        if let Some(number) = number {
            self.append(body, &format!("{AT} = {number}"));
        }
    }

    /// The body of a function, between `enter` and `leave`.
    pub(super) fn enter(&mut self, name: &str, body: &[Stmt]) {
        if self.is_traced() {
            self.tracer.functions.push(name.to_owned());
            self.prepend(body, &format!("global {AT}; _tg_in = {AT}"));
        }
    }

    pub(super) fn leave(&mut self, body: &[Stmt]) {
        if self.is_traced() {
            self.tracer.functions.pop();
            if !matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_))) {
                self.append(body, &format!("{AT} = _tg_in"));
            }
        }
    }

    /// `return`, after which the statement of the caller continues.
    pub(super) fn traced_return(&mut self, statement: &'a StmtReturn) {
        let keyword = TextRange::at(statement.start(), TextSize::of("return"));
        match (self.functions, &statement.value) {
            (0, Some(value)) => self.visit_expr(value),
            (_, Some(value)) => {
                self.edits.replace(keyword, "_tg_out = (");
                self.visit_expr(value);
                self.edits.close(statement, format!("); {AT} = _tg_in; return _tg_out"));
            }
            (0, None) => {}
            (_, None) => self.edits.replace(keyword, format!("{AT} = _tg_in; return")),
        }
    }

    /// The body of a handler.
    pub(super) fn handled(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(handler) = handler;
        let mut raises = false;
        walk(&handler.body, |node| {
            raises |= matches!(node, Node::Statement(Stmt::Raise(_)));
            matches!(node, Node::Statement(_))
        });
        if !raises || !self.is_traced() {
            return self.visit_body(&handler.body);
        }
        let saved = self.fresh();
        self.prepend(&handler.body, &format!("{saved} = {AT}"));
        self.tracer.handlers.push((handler.name.as_ref().map(ToString::to_string), saved));
        self.visit_body(&handler.body);
        self.tracer.handlers.pop();
    }

    /// A `finally` block.
    pub(super) fn finally(&mut self, body: &'a [Stmt]) {
        if body.is_empty() || !self.is_traced() {
            return self.visit_body(body);
        }
        let saved = self.fresh();
        self.prepend(body, &format!("{saved} = {AT}"));
        self.visit_body(body);
        self.append(body, &format!("{AT} = {saved}"));
    }
}

fn is_compound(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::If(_)
            | Stmt::For(_)
            | Stmt::While(_)
            | Stmt::With(_)
            | Stmt::FunctionDef(_)
            | Stmt::ClassDef(_)
    )
}
