//! Rewrites scripts for Monty.
//!
//! Monty lacks parts of the language and the library that scripts use often. Where the meaning can
//! be preserved, such a part is rewritten before the script is compiled, to a call of a prelude
//! function or to other statements. The text is edited in place and every edit records its origin,
//! so that stacks have the original lines.

mod attributes;
mod bindings;
mod classes;
mod edits;
mod expressions;
mod gone;
mod imports;
mod lazy;
mod private;
mod refused;
mod statements;
mod trace;

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{
    Comprehension, Decorator, ExceptHandler, Expr, ExprAttribute, ExprCall, Parameter, Stmt,
    visitor::{Visitor, walk_comprehension, walk_decorator, walk_expr, walk_parameter, walk_stmt},
};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange, TextSize};

use self::edits::Edits;
pub(super) use self::{
    edits::Changed,
    imports::implicit_modules,
    trace::{AT, Trace},
};
use crate::engine::{FailureKind, ScriptFailure};

/// The longest script in bytes, which limits the work of the parser and of this module.
const SOURCE_LIMIT: usize = 128 << 10;

/// The depth of the walk. Monty refuses nesting of more than 200 levels.
const DEPTH_LIMIT: usize = 250;

/// A script that Monty can compile, and the parts of the prelude that it needs.
#[derive(Debug)]
pub(super) struct Rewritten {
    /// The text.
    pub(super) changed: Changed,
    /// The parts of the prelude that it needs.
    pub(super) pieces: BTreeSet<&'static str>,
    /// The statements that it notes.
    pub(super) trace: Trace,
}

/// Rewrites a script. Fails if it does not parse or cannot be supported.
pub(super) fn rewrite(source: &str) -> Result<Rewritten, ScriptFailure> {
    let Some(named) = private::named_in_full(source) else { return rewrite_named(source) };
    match rewrite_named(&named.text) {
        Ok(mut rewritten) => {
            rewritten.changed.before = Some(Box::new(named));
            Ok(rewritten)
        }
        Err(mut failure) => {
            for frame in &mut failure.stack {
                frame.position = named.original(frame.position);
            }
            Err(failure)
        }
    }
}

/// Rewrites a script without private names.
fn rewrite_named(source: &str) -> Result<Rewritten, ScriptFailure> {
    if source.len() > SOURCE_LIMIT {
        let message = format!("SyntaxError: the script is longer than {SOURCE_LIMIT} bytes");
        return Err(ScriptFailure::new(FailureKind::Syntax, message));
    }
    let parsed = parse_module(source).map_err(|error| {
        let message = format!("SyntaxError: {}", error.error);
        let position = edits::locate(source, error.location.start());
        ScriptFailure::new(FailureKind::Syntax, message).at(position)
    })?;
    let body = &parsed.syntax().body;
    let classes = classes::collect(body);
    let bindings = bindings::collect(body);
    if let Some(refusal) = refused::find(body, &classes, &bindings) {
        return Err(refusal.failure(source));
    }
    let mut rewriter = Rewriter {
        source,
        edits: Edits::default(),
        pieces: BTreeSet::new(),
        modules: BTreeMap::new(),
        own_exceptions: classes.has_exceptions() || sees_exceptions(source, body),
        catches: source.contains("except") && bindings.is_built_in("type"),
        refusal: None,
        tracer: trace::Tracer::default(),
        classes,
        bindings,
        depth: 0,
        functions: 0,
        plain_generators: BTreeSet::new(),
        callee: None,
        names: 0,
        has_durations: source.contains("timedelta"),
        compares_sets: compares_sets(source, body),
        tasks: ["create_task", "ensure_future", "TaskGroup"].iter().any(|n| source.contains(n)),
    };
    rewriter.find_modules(body);
    rewriter.find_blocks(body);
    if rewriter.own_exceptions {
        // A failed call that is kept or caught is a `ToolError`, also where nothing else needs this.
        rewriter.need("<classes>");
    }
    rewriter.visit_body(body);
    if let Some(refusal) = rewriter.refusal {
        return Err(refusal.failure(source));
    }
    let (pieces, trace) = (rewriter.pieces, rewriter.tracer.trace);
    Ok(Rewritten { changed: rewriter.edits.apply(source), pieces, trace })
}

/// Whether a script looks at exceptions, and not only at their kinds.
fn sees_exceptions(source: &str, body: &[Stmt]) -> bool {
    let mut sees =
        ["ToolError", "return_exceptions", ".exception()"].iter().any(|n| source.contains(n));
    walk(body, |node| {
        if let Node::Statement(Stmt::Try(tried)) = node {
            sees |= tried.handlers.iter().any(|ExceptHandler::ExceptHandler(h)| h.name.is_some());
        }
        !sees && matches!(node, Node::Statement(_))
    });
    sees
}

/// Whether a script has sets and compares something by order.
fn compares_sets(source: &str, body: &[Stmt]) -> bool {
    let mut has_sets = ["set(", ".keys()"].iter().any(|name| source.contains(name));
    let mut compares = false;
    walk(body, |node| {
        if let Node::Expression(expression) = node {
            has_sets |= matches!(expression, Expr::Set(_) | Expr::SetComp(_));
            compares |= expression.as_compare_expr().is_some_and(attributes::is_ordering);
        }
        !(has_sets && compares)
    });
    has_sets && compares
}

/// The state of the walk over one script.
#[expect(clippy::struct_excessive_bools, reason = "each is something that the script may do")]
struct Rewriter<'a> {
    source: &'a str,
    edits: Edits,
    pieces: BTreeSet<&'static str>,
    /// The script's names for modules that the prelude extends.
    modules: BTreeMap<String, &'static str>,
    classes: classes::Classes,
    bindings: bindings::Bindings,
    /// Whether the script can see exceptions that are objects of the prelude: its own ones, or the
    /// failures of tools.
    own_exceptions: bool,
    /// Whether the script may ask for the type of an exception.
    catches: bool,
    /// Whether the script may compare sets by `<` and the like.
    compares_sets: bool,
    /// Whether the script may divide durations, which Monty's operators lack.
    has_durations: bool,
    /// What the walk found that cannot be rewritten.
    refusal: Option<refused::Refusal>,
    tracer: trace::Tracer,
    /// The current depth.
    depth: usize,
    /// The number of functions around the current position.
    functions: usize,
    /// Where the generators, and the calls of `zip` and the like, are that are used up in place, so that
    /// a list works as well.
    plain_generators: BTreeSet<TextSize>,
    /// The callee of the current call, as opposed to a function that is passed on.
    callee: Option<TextRange>,
    /// The number of generated names.
    names: usize,
    /// Whether the script has tasks, which Monty does not treat as awaitables.
    tasks: bool,
}

impl Rewriter<'_> {
    /// Adds a part of the prelude.
    fn need(&mut self, piece: &'static str) {
        self.pieces.insert(piece);
    }

    /// Generates a name that is not used elsewhere.
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("_tg_{}", self.names)
    }

    fn text(&self, node: &impl Ranged) -> &str {
        &self.source[node.start().to_usize()..node.end().to_usize()]
    }

    /// The range of the operator between two operands, which may have brackets and space around it.
    fn operator(&self, left: &Expr, right: &Expr, operator: &str) -> Option<TextRange> {
        let start = left.end();
        let between = &self.source[start.to_usize()..right.start().to_usize()];
        // A comment may contain anything, so such a line is not changed.
        if between.contains('#') {
            return None;
        }
        let at = start + TextSize::try_from(between.find(operator)?).ok()?;
        Some(TextRange::at(at, TextSize::of(operator)))
    }

    /// The text before an offset on its line.
    fn before(&self, offset: TextSize) -> &str {
        let before = &self.source[..offset.to_usize()];
        &before[before.rfind('\n').map_or(0, |index| index + 1)..]
    }

    /// The text before a statement on its line, if it is only space.
    fn indentation(&self, statement: &Stmt) -> Option<&str> {
        let indentation = self.before(statement.start());
        indentation.chars().all(|c| c == ' ' || c == '\t').then_some(indentation)
    }

    /// The first colon from an offset on.
    fn colon(&self, from: TextSize) -> Option<TextSize> {
        let colon = self.source[from.to_usize()..].find(':')?;
        Some(from + TextSize::try_from(colon).ok()?)
    }

    /// The dot of an attribute.
    fn dot(&self, attribute: &ExprAttribute) -> Option<TextSize> {
        let before = &self.source[..attribute.attr.start().to_usize()];
        before.rfind('.').and_then(|dot| TextSize::try_from(dot).ok())
    }

    /// The end of the line on which a statement ends.
    fn end_of_line(&self, statement: &Stmt) -> TextSize {
        let end = statement.end().to_usize();
        let rest = &self.source[end..];
        let length = rest.find('\n').unwrap_or(rest.len());
        TextSize::try_from(end + length).unwrap_or_else(|_| statement.end())
    }

    /// Appends a statement to a block.
    fn append(&mut self, body: &[Stmt], statement: &str) {
        let (Some(first), Some(last)) = (body.first(), body.last()) else { return };
        match self.indentation(first).map(str::to_owned) {
            Some(indentation) => {
                let at = self.end_of_line(last);
                self.edits.insert(at, format!("\n{indentation}{statement}"));
            }
            None => self.edits.insert(last.end(), format!("; {statement}")),
        }
    }

    /// Inserts a statement before a block.
    fn prepend(&mut self, body: &[Stmt], statement: &str) {
        let Some(first) = body.first() else { return };
        let separator = match self.indentation(first) {
            Some(indentation) => format!("\n{indentation}"),
            None => "; ".to_owned(),
        };
        self.edits.insert(first.start(), format!("{statement}{separator}"));
    }
}

impl<'a> Rewriter<'a> {
    /// Rewrites an expression and puts texts around it.
    fn wrap(&mut self, expression: &'a Expr, before: impl Into<String>, after: &str) {
        self.edits.open(expression, before);
        self.visit_expr(expression);
        self.edits.close(expression, after);
    }

    /// Rewrites a call to a call of a function in a part of the prelude.
    fn call_instead(&mut self, call: &'a ExprCall, piece: &'static str, function: &str) {
        self.need(piece);
        self.edits.replace(call.func.range(), function);
        self.visit_arguments(&call.arguments);
    }
}

impl<'a> Visitor<'a> for Rewriter<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            if self.is_traced() {
                self.note(statement);
            }
            if let Stmt::For(each) = statement {
                self.plain_generators.insert(each.iter.start());
            }
            self.statement(statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            if let Expr::Call(call) = expression {
                self.note_chain(call);
            }
            self.on_its_line(expression);
            self.depth -= 1;
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.plain_generators.insert(comprehension.iter.start());
        walk_comprehension(self, comprehension);
        self.members_of(&comprehension.iter);
    }

    // Monty knows some decorators by their text.
    fn visit_decorator(&mut self, decorator: &'a Decorator) {
        let around = std::mem::replace(&mut self.tracer.is_one_piece, true);
        walk_decorator(self, decorator);
        self.tracer.is_one_piece = around;
    }

    // Annotations are never evaluated, so they need no changes.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_parameter(&mut self, _parameter: &'a Parameter) {}
}

/// A node of a script's tree.
#[derive(Clone, Copy)]
enum Node<'a> {
    Statement(&'a Stmt),
    Expression(&'a Expr),
    Parameter(&'a Parameter),
}

/// Walks a body without its annotations, to the depth limit. `visit` returns whether the walk goes
/// into a node.
fn walk<'a>(body: &'a [Stmt], visit: impl FnMut(Node<'a>) -> bool) {
    Walk { visit, depth: 0 }.visit_body(body);
}

struct Walk<F> {
    visit: F,
    depth: usize,
}

impl<'a, F: FnMut(Node<'a>) -> bool> Walk<F> {
    fn enter(&mut self, node: Node<'a>) {
        if self.depth < DEPTH_LIMIT && (self.visit)(node) {
            self.depth += 1;
            match node {
                Node::Statement(statement) => walk_stmt(self, statement),
                Node::Expression(expression) => walk_expr(self, expression),
                Node::Parameter(parameter) => walk_parameter(self, parameter),
            }
            self.depth -= 1;
        }
    }
}

impl<'a, F: FnMut(Node<'a>) -> bool> Visitor<'a> for Walk<F> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.enter(Node::Statement(statement));
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.enter(Node::Expression(expression));
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.enter(Node::Parameter(parameter));
    }

    // Annotations are never evaluated.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}
}

/// Walks the parts of an expression.
fn inside<'a>(rewriter: &mut Rewriter<'a>, expression: &'a Expr) {
    walk_expr(rewriter, expression);
}
