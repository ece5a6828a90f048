//! Conditions of a script after which it knows more about a value than its source says.

use std::collections::HashSet;

use oxc_ast::{
    AstKind,
    ast::{Argument, AssignmentTarget, Expression},
};
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

use super::some_of;
use crate::check::{
    literal::{Literal, NOWHERE},
    typescript::{ParsedScript, calls::named_part, literals::Literals},
};

/// A variable, and the names from it to a part of its value.
pub(in crate::check::typescript) type Path = (SymbolId, String);

/// The conditions of a script, wherever they are.
#[derive(Default)]
pub(in crate::check::typescript) struct Conditions {
    /// What is tested for its kind: `typeof x`, `"a" in x`, `Array.isArray(x)`.
    of_kind: HashSet<Path>,
    /// What is tested for being there, or compared.
    of_value: HashSet<Path>,
    /// What is compared with a value, so that it must be there.
    compared: HashSet<Path>,
    /// The variables that a test mentions.
    mentioned: HashSet<SymbolId>,
    /// Where a loop or a function may be left.
    leaving: Vec<u32>,
    /// Where nothing runs: after a `return`, or after a test that is always false.
    dead: Vec<Span>,
    /// What may fail without ending the script.
    tried: Vec<Span>,
}

impl Conditions {
    pub(in crate::check::typescript) fn of(script: &ParsedScript<'_, '_>) -> Self {
        let mut conditions = Self::default();
        let constants = Literals::new(script);
        for node in script.semantic.nodes().iter() {
            match node.kind() {
                AstKind::IfStatement(it) => {
                    conditions.condition(&it.test, script);
                    match constants.truth(&it.test) {
                        Some(true) => conditions
                            .dead
                            .extend(it.alternate.as_ref().map(oxc_span::GetSpan::span)),
                        Some(false) => {
                            conditions.dead.push(oxc_span::GetSpan::span(&it.consequent));
                        }
                        None => {}
                    }
                }
                AstKind::ConditionalExpression(it) => {
                    conditions.condition(&it.test, script);
                    match constants.truth(&it.test) {
                        Some(true) => conditions.dead.push(oxc_span::GetSpan::span(&it.alternate)),
                        Some(false) => {
                            conditions.dead.push(oxc_span::GetSpan::span(&it.consequent));
                        }
                        None => {}
                    }
                }
                AstKind::LogicalExpression(it) => {
                    conditions.condition(&it.left, script);
                    let is_skipped = match it.operator {
                        oxc_ast::ast::LogicalOperator::And => Some(false),
                        oxc_ast::ast::LogicalOperator::Or => Some(true),
                        oxc_ast::ast::LogicalOperator::Coalesce => None,
                    };
                    if is_skipped.is_some() && constants.truth(&it.left) == is_skipped {
                        conditions.dead.push(oxc_span::GetSpan::span(&it.right));
                    }
                }
                AstKind::WhileStatement(it) => {
                    conditions.condition(&it.test, script);
                    if constants.truth(&it.test) == Some(false) {
                        conditions.dead.push(oxc_span::GetSpan::span(&it.body));
                    }
                }
                AstKind::DoWhileStatement(it) => conditions.condition(&it.test, script),
                AstKind::ForStatement(it) => {
                    if let Some(test) = &it.test {
                        conditions.condition(test, script);
                    }
                }
                AstKind::SwitchStatement(it) => {
                    conditions.compared.extend(path(&it.discriminant, script));
                }
                AstKind::UnaryExpression(it) => match it.operator {
                    UnaryOperator::Typeof => conditions.of_kind.extend(path(&it.argument, script)),
                    UnaryOperator::LogicalNot => conditions.condition(&it.argument, script),
                    _ => {}
                },
                AstKind::BinaryExpression(it) => match it.operator {
                    BinaryOperator::In => conditions.of_kind.extend(path(&it.right, script)),
                    BinaryOperator::Instanceof => conditions.of_kind.extend(path(&it.left, script)),
                    operator if operator.is_equality() => {
                        conditions.comparison(&it.left, &it.right, script);
                    }
                    _ => {}
                },
                AstKind::CallExpression(it) => {
                    if it.optional {
                        conditions.of_value.extend(path(&it.callee, script));
                    }
                    if let Some((object, method, _)) = named_part(&it.callee) {
                        if matches!(method, "isArray" | "hasOwn") {
                            conditions.guard(&it.arguments, script);
                        }
                        if matches!(method, "hasOwnProperty" | "propertyIsEnumerable") {
                            conditions.of_kind.extend(path(object, script));
                        }
                    }
                }
                AstKind::StaticMemberExpression(it) if it.optional => {
                    conditions.of_value.extend(path(&it.object, script));
                }
                AstKind::ComputedMemberExpression(it) if it.optional => {
                    conditions.of_value.extend(path(&it.object, script));
                }
                AstKind::TryStatement(it) if it.handler.is_some() => {
                    conditions.tried.push(it.block.span);
                }
                AstKind::BreakStatement(it) => conditions.leaving.push(it.span.start),
                AstKind::ReturnStatement(it) => conditions.leaving.push(it.span.start),
                AstKind::Program(it) => conditions.after_the_end(&it.body),
                AstKind::BlockStatement(it) => conditions.after_the_end(&it.body),
                AstKind::FunctionBody(it) => conditions.after_the_end(&it.statements),
                AstKind::SwitchCase(it) => conditions.after_the_end(&it.consequent),
                _ => {}
            }
        }
        conditions.mentioned = mentioned(script);
        conditions.dead.sort_by_key(|span| span.start);
        conditions.tried.sort_by_key(|span| span.start);
        conditions
    }

    /// The value of an expression, without what a test may have told about it.
    pub(super) fn applied(
        &self,
        literal: Literal,
        expression: &Expression<'_>,
        script: &ParsedScript<'_, '_>,
    ) -> Literal {
        if self.of_kind.is_empty()
            && self.of_value.is_empty()
            && self.compared.is_empty()
            && self.mentioned.is_empty()
        {
            return literal;
        }
        let Some(path) = path(expression, script) else { return literal };
        if self.of_kind.contains(&path) {
            return Literal::unknown(NOWHERE);
        }
        if self.is_mentioned(path.0) { some_of(literal) } else { literal }
    }

    /// Whether a test mentions a variable. It may tell which of several values it has.
    pub(super) fn is_mentioned(&self, symbol: SymbolId) -> bool {
        self.mentioned.contains(&symbol)
    }

    /// Whether a loop or a function may be left in a part of the script.
    pub(super) fn leaves(&self, part: Span) -> bool {
        self.leaving.iter().any(|at| (part.start..part.end).contains(at))
    }

    /// Whether the script tests somewhere whether a part is there.
    pub(in crate::check::typescript) fn is_tested(&self, path: &Path) -> bool {
        self.of_value.contains(path) || self.of_kind.contains(path)
    }

    /// Whether the code at an offset never runs.
    pub(in crate::check::typescript) fn is_dead(&self, offset: u32) -> bool {
        is_within(&self.dead, offset)
    }

    /// Whether the script goes on if the code at an offset fails.
    pub(in crate::check::typescript) fn is_tried(&self, offset: u32) -> bool {
        is_within(&self.tried, offset)
    }

    fn condition(&mut self, test: &Expression<'_>, script: &ParsedScript<'_, '_>) {
        self.of_value.extend(tested(test, script));
        // A function of the script may be a type guard.
        if let Expression::CallExpression(call) = test.get_inner_expression() {
            self.guard(&call.arguments, script);
        }
        if let Expression::LogicalExpression(logical) = test.get_inner_expression() {
            self.of_value.extend(path(&logical.right, script));
            if let Expression::CallExpression(call) = logical.right.get_inner_expression() {
                self.guard(&call.arguments, script);
            }
        }
    }

    /// Notes what is compared. Only a comparison with nothing says that it may not be there.
    fn comparison(
        &mut self,
        left: &Expression<'_>,
        right: &Expression<'_>,
        script: &ParsedScript<'_, '_>,
    ) {
        let is_presence = is_absent(left) || is_absent(right);
        let paths = [left, right].into_iter().filter_map(|it| tested(it, script));
        if is_presence {
            self.of_value.extend(paths);
        } else {
            self.compared.extend(paths);
        }
    }

    fn guard(&mut self, arguments: &[Argument<'_>], script: &ParsedScript<'_, '_>) {
        let given = arguments.iter().filter_map(|it| it.as_expression());
        self.of_kind.extend(given.filter_map(|it| path(it, script)));
    }

    /// Notes what comes after a statement that leaves. Functions exist all the same.
    fn after_the_end(&mut self, statements: &[oxc_ast::ast::Statement<'_>]) {
        use oxc_ast::ast::Statement;
        let leaves = |statement: &Statement<'_>| {
            matches!(
                statement,
                Statement::ReturnStatement(_)
                    | Statement::ThrowStatement(_)
                    | Statement::BreakStatement(_)
                    | Statement::ContinueStatement(_)
            )
        };
        let Some(end) = statements.iter().position(leaves) else { return };
        let rest = statements[end + 1..].iter();
        let rest = rest.filter(|it| !matches!(it, Statement::FunctionDeclaration(_)));
        self.dead.extend(rest.map(oxc_span::GetSpan::span));
    }
}

/// The variables that tests mention.
fn mentioned(script: &ParsedScript<'_, '_>) -> HashSet<SymbolId> {
    let nodes = script.semantic.nodes();
    let mut tests: Vec<Span> = Vec::new();
    for node in nodes.iter() {
        match node.kind() {
            AstKind::IfStatement(it) => tests.push(it.test.span()),
            AstKind::ConditionalExpression(it) => tests.push(it.test.span()),
            AstKind::LogicalExpression(it) => tests.push(it.left.span()),
            AstKind::WhileStatement(it) => tests.push(it.test.span()),
            AstKind::DoWhileStatement(it) => tests.push(it.test.span()),
            AstKind::SwitchStatement(it) => tests.push(it.discriminant.span()),
            AstKind::SwitchCase(it) => tests.extend(it.test.as_ref().map(GetSpan::span)),
            _ => {}
        }
    }
    tests.sort_by_key(|span| span.start);
    let scoping = script.semantic.scoping();
    let mut symbols = HashSet::new();
    for node in nodes.iter() {
        if let AstKind::IdentifierReference(it) = node.kind()
            && is_within(&tests, it.span.start)
        {
            let reference = it.reference_id.get().map(|id| scoping.get_reference(id));
            symbols.extend(reference.and_then(oxc_semantic::Reference::symbol_id));
        }
    }
    symbols
}

/// The path of what is tested: of `(a = b)` that of `a`.
fn tested(expression: &Expression<'_>, script: &ParsedScript<'_, '_>) -> Option<Path> {
    if let Expression::AssignmentExpression(it) = expression.get_inner_expression() {
        return assigned(&it.left, script).map(|symbol| (symbol, String::new()));
    }
    path(expression, script)
}

/// The variable that is assigned to.
pub(in crate::check::typescript) fn assigned(
    target: &AssignmentTarget<'_>,
    script: &ParsedScript<'_, '_>,
) -> Option<SymbolId> {
    let AssignmentTarget::AssignmentTargetIdentifier(name) = target else { return None };
    script.semantic.scoping().get_reference(name.reference_id.get()?).symbol_id()
}

/// Whether an expression is `null` or `undefined`.
fn is_absent(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::NullLiteral(_) => true,
        Expression::Identifier(name) => name.name == "undefined",
        Expression::UnaryExpression(unary) => unary.operator == UnaryOperator::Void,
        _ => false,
    }
}

/// Whether an offset is in one of the spans, which are in the order of their starts. Only those that
/// start last before it are looked at, because they are the innermost.
fn is_within(spans: &[Span], offset: u32) -> bool {
    let before = spans.partition_point(|span| span.start <= offset);
    spans[..before].iter().rev().take(50).any(|span| offset < span.end)
}

/// The path of an expression that only reads parts of a variable.
pub(in crate::check::typescript) fn path(
    expression: &Expression<'_>,
    script: &ParsedScript<'_, '_>,
) -> Option<Path> {
    const MAX_PARTS: usize = 8;
    let mut names: Vec<&str> = Vec::new();
    let mut at = expression.get_inner_expression();
    loop {
        at = at.get_inner_expression();
        if let Expression::ChainExpression(chain) = at {
            let member = chain.expression.as_member_expression()?;
            names.push(member.static_property_name()?);
            at = member.object();
            continue;
        }
        if let Expression::Identifier(identifier) = at {
            let scoping = script.semantic.scoping();
            let symbol = scoping.get_reference(identifier.reference_id.get()?).symbol_id()?;
            names.reverse();
            return Some((symbol, names.join(".")));
        }
        let (object, name, _) = named_part(at)?;
        names.push(name);
        if names.len() > MAX_PARTS {
            return None;
        }
        at = object;
    }
}
