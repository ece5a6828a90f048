//! Scripts in Python as Monty has it.
//!
//! Monty lacks parts of the language and of the library that scripts are full of. Where the meaning
//! can be kept, such a part is written in another way before the script is compiled: as a call of a
//! function of the prelude, or as other statements. The script's text is changed in place, part by
//! part, and every change knows its origin, so that a stack has the lines that were written.

mod attributes;
mod bindings;
mod classes;
mod edits;
mod expressions;
mod imports;
mod lazy;
mod matching;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::{
    Comprehension, Expr, Parameter, Stmt,
    visitor::{Visitor, walk_comprehension, walk_expr},
};
use ruff_python_parser::parse_module;
use ruff_text_size::{Ranged, TextRange, TextSize};

use self::edits::Edits;
pub(super) use self::{edits::Changed, imports::implicit_modules};
use crate::engine::{FailureKind, ScriptFailure, StackFrame};

/// The longest script, in bytes. It bounds what the parser and this module can be made to do.
const SOURCE_LIMIT: usize = 128 << 10;

/// How deep the walk goes. Monty refuses what is nested more deeply than 200 levels.
const DEPTH_LIMIT: usize = 250;

/// A script that Monty can compile, and what has to be there before.
#[derive(Debug)]
pub(super) struct Rewritten {
    /// The text.
    pub(super) changed: Changed,
    /// The parts of the prelude that it needs.
    pub(super) pieces: BTreeSet<&'static str>,
}

/// Rewrites a script, or says why it is none.
pub(super) fn rewrite(source: &str) -> Result<Rewritten, ScriptFailure> {
    if source.len() > SOURCE_LIMIT {
        return Err(ScriptFailure {
            kind: FailureKind::Syntax,
            message: format!("SyntaxError: the script is longer than {SOURCE_LIMIT} bytes"),
            stack: Vec::new(),
            hint: None,
        });
    }
    let parsed = parse_module(source).map_err(|error| ScriptFailure {
        kind: FailureKind::Syntax,
        message: format!("SyntaxError: {}", error.error),
        stack: vec![StackFrame {
            function: String::new(),
            position: edits::locate(source, error.location.start()),
        }],
        hint: None,
    })?;
    let body = &parsed.syntax().body;
    if let Some(place) = lazy::left_early(body) {
        return Err(lazy::refusal(edits::locate(source, place)));
    }
    let classes = classes::collect(body);
    let mut rewriter = Rewriter {
        source,
        edits: Edits::default(),
        pieces: BTreeSet::new(),
        modules: BTreeMap::new(),
        own_exceptions: classes.has_exceptions(),
        classes,
        bindings: bindings::collect(body),
        depth: 0,
        scopes: Vec::new(),
        plain_generators: BTreeSet::new(),
        callee: None,
        names: 0,
        tasks: ["create_task", "ensure_future", "TaskGroup"].iter().any(|n| source.contains(n)),
    };
    rewriter.find_modules(body);
    rewriter.visit_body(body);
    Ok(Rewritten { changed: rewriter.edits.apply(source), pieces: rewriter.pieces })
}

/// The state of the walk over one script.
struct Rewriter<'a> {
    source: &'a str,
    edits: Edits,
    pieces: BTreeSet<&'static str>,
    /// The names under which the script knows modules that the prelude adds to.
    modules: BTreeMap<String, &'static str>,
    classes: classes::Classes,
    bindings: bindings::Bindings,
    /// Whether the script defines exceptions.
    own_exceptions: bool,
    /// How deep the walk is.
    depth: usize,
    /// The functions that the walk is inside of.
    scopes: Vec<ScriptScope>,
    /// Generator expressions that are used up where they stand, so that a list does as well.
    plain_generators: BTreeSet<TextSize>,
    /// What is called where the walk is, in difference to what is passed on.
    callee: Option<TextRange>,
    /// How many names were made up so far.
    names: usize,
    /// Whether there are tasks, which may be awaited without being awaitables to Monty.
    tasks: bool,
}

/// What is known of a function while its body is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScriptScope {
    /// A function that returns what it says.
    Plain,
    /// A function that collects what it yields.
    Generator,
}

impl Rewriter<'_> {
    /// A part of the prelude that the script needs from here on.
    fn need(&mut self, piece: &'static str) {
        self.pieces.insert(piece);
    }

    /// A name that nobody else uses.
    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("_tg_{}", self.names)
    }

    fn text(&self, node: &impl Ranged) -> &str {
        &self.source[node.start().to_usize()..node.end().to_usize()]
    }

    /// Where the operator between two operands stands, which may have brackets and space around.
    fn operator(&self, left: &Expr, right: &Expr, operator: &str) -> Option<TextRange> {
        let start = left.end();
        let between = &self.source[start.to_usize()..right.start().to_usize()];
        // A comment may hold anything; such a line stays as it is.
        if between.contains('#') {
            return None;
        }
        let at = start + TextSize::try_from(between.find(operator)?).ok()?;
        Some(TextRange::at(at, TextSize::of(operator)))
    }

    /// What stands in front of a statement on its line, if that is only space.
    fn indentation(&self, statement: &Stmt) -> Option<&str> {
        let before = &self.source[..statement.start().to_usize()];
        let line = before.rfind('\n').map_or(0, |index| index + 1);
        let indentation = &before[line..];
        indentation.chars().all(|c| c == ' ' || c == '\t').then_some(indentation)
    }

    /// Where the line ends that a statement ends on.
    fn end_of_line(&self, statement: &Stmt) -> TextSize {
        let end = statement.end().to_usize();
        let rest = &self.source[end..];
        let length = rest.find('\n').unwrap_or(rest.len());
        TextSize::try_from(end + length).unwrap_or_else(|_| statement.end())
    }

    /// Adds a statement at the end of a block.
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

    /// Adds a statement in front of a block.
    fn prepend(&mut self, body: &[Stmt], statement: &str) {
        let Some(first) = body.first() else { return };
        let separator = match self.indentation(first) {
            Some(indentation) => format!("\n{indentation}"),
            None => "; ".to_owned(),
        };
        self.edits.insert(first.start(), format!("{statement}{separator}"));
    }
}

impl<'a> Visitor<'a> for Rewriter<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            self.statement(statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            self.expression(expression);
            self.depth -= 1;
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        if comprehension.is_async {
            let keyword = TextRange::new(comprehension.start(), comprehension.target.start());
            self.edits.replace(keyword, "for ");
            self.need("<iterating>");
            self.edits.open(&comprehension.iter, "await _tg_aiter(");
            self.visit_expr(&comprehension.target);
            self.visit_expr(&comprehension.iter);
            self.edits.close(&comprehension.iter, ")");
            for condition in &comprehension.ifs {
                self.visit_expr(condition);
            }
        } else {
            walk_comprehension(self, comprehension);
            self.members_of(&comprehension.iter);
        }
    }

    // Annotations are never evaluated, so that there is nothing to mend in them.
    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_parameter(&mut self, _parameter: &'a Parameter) {}
}

/// Walks what is inside of an expression.
fn inside<'a>(rewriter: &mut Rewriter<'a>, expression: &'a Expr) {
    walk_expr(rewriter, expression);
}
