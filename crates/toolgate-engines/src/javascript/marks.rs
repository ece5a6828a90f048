//! Marks that tell the engine where statements begin.
//!
//! QuickJS notes positions only for some operations: reading a variable, a call, `throw`, and
//! statements that are expressions. An error of any other operation, such as destructuring, has the
//! last position that was noted, often that of another statement. So a script gets `0;` before each
//! statement of another kind. QuickJS notes its position and makes no further code of it. No line
//! break is added, and the positions in stacks are converted back.
//!
//! The position of a call is noted before its arguments, which note theirs. So the last argument is put
//! into a variable and read from there, which stands for the call.

use std::borrow::Cow;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, CallExpression, DoWhileStatement, Expression, ForInStatement, ForOfStatement,
    ForStatement, IfStatement, NewExpression, PropertyDefinition, Statement, SwitchCase,
    ThrowStatement, TryStatement, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::{GetSpan as _, SourceType, Span};

use super::callee;
use crate::engine::ScriptPosition;

/// A statement without an effect.
const STATEMENT: &str = "0;";
/// An operation without an effect, before an expression. QuickJS notes the position of the second
/// number.
const EXPRESSION: &str = "0|0,";

/// The number of parts that are looked at. Parts are short, and hardly nested.
const NEAR: usize = 16;

/// A script with marks.
#[derive(Debug, Default)]
pub(super) struct MarkedSource {
    pub(super) text: String,
    /// The variable of the last argument, which the script does not mention.
    pub(super) variable: String,
    /// By position in the text.
    inserts: Vec<Insert>,
    /// Parts of the script that stand for a call, by position in the script.
    parts: Vec<Part>,
}

/// A part of the script, from a line and a column to another, that stands for something else.
#[derive(Debug)]
struct Part {
    start: (u32, u32),
    end: (u32, u32),
    meaning: (u32, u32),
}

/// Something that the script does not contain.
#[derive(Debug)]
struct Insert {
    /// The line and the column in the text, both from 1, in bytes.
    line: u32,
    column: u32,
    length: u32,
    /// What it stands for, in the script.
    meaning: (u32, u32),
}

impl MarkedSource {
    /// The script with marks; unchanged if it does not parse, so that the engine says why.
    pub(super) fn of(source: &str) -> Self {
        let allocator = Allocator::default();
        let parsed = parse(&allocator, source);
        if parsed.panicked || !parsed.diagnostics.is_empty() {
            return Self { text: source.to_owned(), ..Self::default() };
        }
        let mut marks = Marks { variable: unused_name(source), ..Marks::default() };
        marks.visit_program(&parsed.program);
        marks.applied(source)
    }

    /// The position in the script of a position in the text.
    pub(super) fn original(&self, line: u32, column: u32) -> (u32, u32) {
        let first = self.inserts.partition_point(|insert| insert.line < line);
        let mut original = column;
        for insert in self.inserts.iter().skip(first).take_while(|insert| insert.line == line) {
            if column >= insert.column + insert.length {
                original -= insert.length;
            } else if column >= insert.column {
                return insert.meaning;
            } else {
                break;
            }
        }
        let at = (line, original);
        // The innermost part that contains it begins last.
        let before = self.parts.partition_point(|part| part.start <= at);
        let part = self.parts.iter().take(before).rev().take(NEAR).find(|part| at < part.end);
        part.map_or(at, |part| part.meaning)
    }
}

/// A name that a script does not contain.
fn unused_name(source: &str) -> String {
    let mut name = "$_".to_owned();
    while source.contains(&name) {
        name.push('_');
    }
    name
}

/// Where a script throws this text, or another value that is no error, as far as that is certain: such a value has no
/// stack.
pub(super) fn thrown_at(source: &str, value: &str) -> Option<ScriptPosition> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, source);
    let mut throws = Throws::default();
    throws.visit_program(&parsed.program);
    let same = throws.texts.iter().filter(|(_, text)| text == value).map(|(at, _)| *at);
    let mut candidates: Vec<u32> = same.collect();
    // A promise can be rejected with anything too.
    if candidates.is_empty() && !source.contains("reject") && !source.contains("abort") {
        candidates = throws.others;
    }
    let [at] = candidates[..] else { return None };
    position_of(source, at)
}

/// A script, parsed.
pub(super) fn parse<'a>(allocator: &'a Allocator, source: &'a str) -> ParserReturn<'a> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    Parser::new(allocator, source, SourceType::mjs()).with_options(options).parse()
}

/// The line and the column, in characters, of an offset.
pub(super) fn position_of(source: &str, at: u32) -> Option<ScriptPosition> {
    let before = source.get(..offset(at))?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some(ScriptPosition {
        line: number(before.matches('\n').count()) + 1,
        column: number(line.chars().count()) + 1,
    })
}

/// The `throw` statements of a script.
#[derive(Default)]
struct Throws {
    texts: Vec<(u32, String)>,
    /// Those of values that are neither texts nor new.
    others: Vec<u32>,
}

impl<'a> Visit<'a> for Throws {
    fn visit_throw_statement(&mut self, it: &ThrowStatement<'a>) {
        match it.argument.get_inner_expression() {
            Expression::StringLiteral(text) => {
                self.texts.push((it.span.start, text.value.to_string()));
            }
            Expression::NewExpression(_) => {}
            _ => self.others.push(it.span.start),
        }
        walk::walk_throw_statement(self, it);
    }
}

/// The marks of a script, by offset.
#[derive(Default)]
struct Marks {
    found: Vec<Mark>,
    /// The variable of the last argument.
    variable: String,
    /// Parts that stand for the offset of a call.
    parts: Vec<(Span, u32)>,
}

struct Mark {
    /// Where it is inserted.
    at: u32,
    text: Cow<'static, str>,
    /// The offset that it stands for.
    meaning: u32,
}

impl Marks {
    fn add(&mut self, at: u32, text: impl Into<Cow<'static, str>>, meaning: u32) {
        self.found.push(Mark { at, text: text.into(), meaning });
    }

    /// A call whose callee ends at an offset.
    fn call(&mut self, callee_end: u32, end: u32, arguments: &[Argument<'_>], meaning: u32) {
        let Some(last) = arguments.last() else {
            self.parts.push((Span::new(callee_end, end), meaning));
            return;
        };
        // A function that is assigned would get the name of the variable. Of the first read after the
        // assignment QuickJS notes only half of the position.
        let (span, is_function) = match last {
            Argument::SpreadElement(spread) => (spread.argument.span(), is_named(&spread.argument)),
            last => (last.span(), last.as_expression().is_none_or(is_named)),
        };
        let name = &self.variable;
        let (before, after) = if is_function {
            (format!("({name}=(0,"), format!("),{name},{name})"))
        } else {
            (format!("({name}="), format!(",{name},{name})"))
        };
        self.add(span.start, before, meaning);
        self.add(span.end, after, meaning);
    }

    /// A statement that may be in braces.
    fn body(&mut self, body: &Statement<'_>) {
        let is_noted = matches!(
            body,
            Statement::BlockStatement(_)
                | Statement::EmptyStatement(_)
                | Statement::ExpressionStatement(_)
        );
        if !is_noted {
            let span = body.span();
            self.add(span.start, "{0;", span.start);
            self.add(span.end, "}", span.end);
        }
    }

    /// At the end of a block, for what follows it.
    fn after(&mut self, end: u32, meaning: u32) {
        self.add(end.saturating_sub(1), ";0;", meaning);
    }

    /// Before an expression in which the engine may note no position.
    fn expression(&mut self, expression: &Expression<'_>) {
        let start = expression.span().start;
        self.add(start, EXPRESSION, start);
    }

    fn applied(mut self, source: &str) -> MarkedSource {
        // Stable: an inner statement that begins at the same offset is added later.
        self.found.sort_by_key(|mark| mark.at);
        let starts: Vec<usize> =
            std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let position = |offset: usize| {
            let line = starts.partition_point(|start| *start <= offset);
            let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
            (number(line), number(offset - start) + 1)
        };
        let mut text = String::with_capacity(source.len() + self.found.len() * 2);
        let mut inserts: Vec<Insert> = Vec::with_capacity(self.found.len());
        let (mut done, mut added) = (0, 0);
        for mark in &self.found {
            let (at, meaning) = (offset(mark.at), offset(mark.meaning));
            text.push_str(source.get(done..at).unwrap_or_default());
            text.push_str(&mark.text);
            done = at;
            let (line, column) = position(at);
            if inserts.last().is_none_or(|last| last.line != line) {
                added = 0;
            }
            let length = number(mark.text.len());
            inserts.push(Insert {
                line,
                column: column + added,
                length,
                meaning: position(meaning),
            });
            added += length;
        }
        text.push_str(source.get(done..).unwrap_or_default());
        let mut parts: Vec<Part> = self
            .parts
            .iter()
            .map(|(span, meaning)| Part {
                start: position(offset(span.start)),
                end: position(offset(span.end)),
                meaning: position(offset(*meaning)),
            })
            .collect();
        parts.sort_by_key(|part| part.start);
        MarkedSource { text, variable: self.variable, inserts, parts }
    }
}

impl<'a> Visit<'a> for Marks {
    fn visit_statements(&mut self, statements: &oxc_allocator::Vec<'a, Statement<'a>>) {
        for statement in statements {
            // The engine notes the position of an expression itself, and these do nothing.
            let is_silent = !matches!(
                statement,
                Statement::ExpressionStatement(_)
                    | Statement::FunctionDeclaration(_)
                    | Statement::EmptyStatement(_)
                    | Statement::BlockStatement(_)
            );
            if is_silent {
                let start = statement.span().start;
                self.add(start, STATEMENT, start);
            }
            self.visit_statement(statement);
        }
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.visit_expression(&it.test);
        self.body(&it.consequent);
        self.visit_statement(&it.consequent);
        if let Some(alternate) = &it.alternate {
            self.body(alternate);
            self.visit_statement(alternate);
        }
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.body(&it.body);
        self.visit_statement(&it.body);
        self.expression(&it.test);
        self.visit_expression(&it.test);
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.visit_expression(&it.test);
        self.body(&it.body);
        self.visit_statement(&it.body);
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_statement(self, it);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_in_statement(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_of_statement(self, it);
        // The next element is asked for after the body.
        if let Statement::BlockStatement(block) = &it.body {
            self.after(block.span.end, it.span.start);
        }
    }

    fn visit_switch_case(&mut self, it: &SwitchCase<'a>) {
        if let Some(test) = &it.test {
            self.expression(test);
        }
        walk::walk_switch_case(self, it);
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        walk::walk_try_statement(self, it);
        // The parameter of `catch` may be a pattern.
        if let Some(handler) = &it.handler {
            self.after(it.block.span.end, handler.span.start);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        let callee_end = it.callee.span().end;
        self.call(callee_end, it.span.end, &it.arguments, callee::called_at(&it.callee));
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        let callee = it.callee.span();
        self.parts.push((Span::new(callee.start, callee.start + 1), it.span.start));
        self.call(callee.end, it.span.end, &it.arguments, it.span.start);
        walk::walk_new_expression(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if let Some(value) = it.value.as_ref().filter(|value| !is_named(value)) {
            let span = value.span();
            self.add(span.start, "(0|0,", span.start);
            walk::walk_property_definition(self, it);
            self.add(span.end, ")", span.end);
        } else {
            walk::walk_property_definition(self, it);
        }
    }
}

/// Whether a value gets its name from what it is assigned to.
fn is_named(value: &Expression<'_>) -> bool {
    matches!(
        value,
        Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_)
            | Expression::ParenthesizedExpression(_)
    )
}

fn offset(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
