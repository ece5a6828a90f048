//! Reads expressions as literals.

use oxc_ast::{
    AstKind,
    ast::{
        ArrayExpression, ArrayExpressionElement, BinaryExpression, CallExpression, ChainElement,
        Expression, ObjectExpression, ObjectPropertyKind, Program, PropertyKind, Statement,
        TemplateLiteral, UnaryExpression, VariableDeclarationKind,
    },
};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;
use oxc_syntax::operator::{BinaryOperator, LogicalOperator, UnaryOperator};

use super::{ParsedScript, calls::is_free, values::Values};
use crate::check::{
    CheckSeverity,
    finding::FindingCollector,
    literal::{Literal, LiteralEntries, LiteralEntry, LiteralKind, MAX_DEPTH},
    names::HidingVariable,
};

/// Reads literals of one script.
pub(super) struct Literals<'s, 'a> {
    script: &'s ParsedScript<'s, 'a>,
    /// Knows the values of expressions that are no literals.
    values: Option<&'s Values<'s, 'a>>,
    depth: usize,
}

impl<'s, 'a> Literals<'s, 'a> {
    /// Reads only literals, and constants that are one.
    pub(super) fn new(script: &'s ParsedScript<'s, 'a>) -> Self {
        Self { script, values: None, depth: 0 }
    }

    /// Reads what is known of any expression.
    pub(super) fn following(
        script: &'s ParsedScript<'s, 'a>,
        values: &'s Values<'s, 'a>,
        depth: usize,
    ) -> Self {
        Self { script, values: Some(values), depth }
    }

    pub(super) fn read(&self, expression: &Expression<'a>) -> Literal {
        let offset = expression.span().start as usize;
        if self.depth > MAX_DEPTH {
            return Literal::unknown(offset);
        }
        if let Some(values) = self.values
            && let Some(followed) = values.follow(expression, self.depth)
        {
            return Literal { offset, ..followed };
        }
        Literal::new(offset, self.kind(expression))
    }

    /// Whether a condition is always true or always false.
    pub(super) fn truth(&self, test: &Expression<'a>) -> Option<bool> {
        if let Expression::UnaryExpression(unary) = test.get_inner_expression()
            && unary.operator == UnaryOperator::LogicalNot
        {
            return self.truth(&unary.argument).map(|truth| !truth);
        }
        match self.read(test).kind {
            LiteralKind::Boolean(truth) => truth,
            LiteralKind::Number(number) => Some(number != 0.0),
            LiteralKind::Text(content) => content.map(|content| !content.is_empty()),
            LiteralKind::Null => Some(false),
            _ => None,
        }
    }

    fn deeper(&self) -> Self {
        Self { script: self.script, values: self.values, depth: self.depth + 1 }
    }

    fn kind(&self, expression: &Expression<'a>) -> LiteralKind {
        match expression.get_inner_expression() {
            Expression::NullLiteral(_) => LiteralKind::Null,
            Expression::BooleanLiteral(literal) => LiteralKind::Boolean(Some(literal.value)),
            Expression::NumericLiteral(literal) => LiteralKind::number(literal.value),
            Expression::BigIntLiteral(literal) => {
                literal.value.parse().map_or(LiteralKind::Unknown, LiteralKind::number)
            }
            Expression::StringLiteral(literal) if literal.lone_surrogates => {
                LiteralKind::Text(None)
            }
            Expression::StringLiteral(literal) => {
                LiteralKind::Text(Some(literal.value.to_string()))
            }
            Expression::TemplateLiteral(template) => LiteralKind::Text(template_text(template)),
            Expression::Identifier(identifier) if is_free(identifier, self.script) => {
                match identifier.name.as_str() {
                    "undefined" => LiteralKind::Undefined,
                    _ => LiteralKind::Unknown,
                }
            }
            Expression::Identifier(identifier) => {
                let scoping = self.script.semantic.scoping();
                let reference = identifier.reference_id.get().map(|id| scoping.get_reference(id));
                let symbol = reference.and_then(oxc_semantic::Reference::symbol_id);
                symbol.map_or(LiteralKind::Unknown, |symbol| self.constant(symbol))
            }
            Expression::UnaryExpression(unary) => self.unary(unary),
            Expression::BinaryExpression(binary) => self.binary(binary),
            Expression::ArrayExpression(array) => self.array(array),
            Expression::ObjectExpression(object) => self.object(object),
            // JSON omits functions.
            Expression::ArrowFunctionExpression(_)
            | Expression::FunctionExpression(_)
            | Expression::ClassExpression(_) => LiteralKind::Undefined,
            _ => LiteralKind::Unknown,
        }
    }

    /// The value of a constant with a simple literal. Objects may change later.
    fn constant(&self, symbol: oxc_semantic::SymbolId) -> LiteralKind {
        let semantic = self.script.semantic;
        let nodes = semantic.nodes();
        let declaration = semantic.scoping().symbol_declaration(symbol);
        let AstKind::VariableDeclarator(declarator) = nodes.kind(declaration) else {
            return LiteralKind::Unknown;
        };
        let is_constant = matches!(
            nodes.parent_kind(declaration),
            AstKind::VariableDeclaration(variable) if variable.kind == VariableDeclarationKind::Const
        );
        let is_loop = matches!(
            nodes.parent_kind(nodes.parent_id(declaration)),
            AstKind::ForStatement(_) | AstKind::ForInStatement(_) | AstKind::ForOfStatement(_)
        );
        if !is_constant || is_loop || !declarator.id.is_binding_identifier() {
            return LiteralKind::Unknown;
        }
        // Nothing that refers further, because that could be endless.
        match declarator.init.as_ref().map(Expression::get_inner_expression) {
            Some(
                value @ (Expression::NullLiteral(_)
                | Expression::BooleanLiteral(_)
                | Expression::NumericLiteral(_)
                | Expression::StringLiteral(_)
                | Expression::TemplateLiteral(_)),
            ) => self.kind(value),
            _ => LiteralKind::Unknown,
        }
    }

    fn unary(&self, unary: &UnaryExpression<'a>) -> LiteralKind {
        match (unary.operator, self.deeper().read(&unary.argument).kind) {
            (UnaryOperator::UnaryNegation, LiteralKind::Number(value)) => {
                LiteralKind::number(-value)
            }
            (UnaryOperator::UnaryPlus, LiteralKind::Number(value)) => LiteralKind::number(value),
            (UnaryOperator::LogicalNot | UnaryOperator::Delete, _) => LiteralKind::Boolean(None),
            (UnaryOperator::Typeof, _) => LiteralKind::Text(None),
            (UnaryOperator::Void, _) => LiteralKind::Undefined,
            _ => LiteralKind::Unknown,
        }
    }

    fn binary(&self, binary: &BinaryExpression<'a>) -> LiteralKind {
        if binary.operator.is_compare() || binary.operator.is_equality() {
            return LiteralKind::Boolean(None);
        }
        if binary.operator != BinaryOperator::Addition {
            // A number, or a BigInt, which is written as one.
            return match self.values {
                Some(_) => LiteralKind::SomeNumber,
                None => LiteralKind::Unknown,
            };
        }
        let (left, right) = (self.deeper().read(&binary.left), self.deeper().read(&binary.right));
        let is_number =
            |side: &Literal| matches!(side.kind, LiteralKind::Number(_) | LiteralKind::SomeNumber);
        match (&left.kind, &right.kind) {
            (LiteralKind::Text(_), _) | (_, LiteralKind::Text(_)) => LiteralKind::Text(None),
            _ if is_number(&left) && is_number(&right) => LiteralKind::SomeNumber,
            _ => LiteralKind::Unknown,
        }
    }

    fn array(&self, array: &ArrayExpression<'a>) -> LiteralKind {
        let mut complete = true;
        let mut items = Vec::new();
        for element in &array.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    match self.followed(&spread.argument).map(|value| value.kind) {
                        Some(LiteralKind::Array { items: more, complete: true }) => {
                            items.extend(more.iter().cloned());
                        }
                        _ => complete = false,
                    }
                }
                // JSON writes null for it.
                ArrayExpressionElement::Elision(_) => {
                    items.push(Literal::unknown(element.span().start as usize));
                }
                _ => items.extend(element.as_expression().map(|item| self.deeper().read(item))),
            }
        }
        LiteralKind::array(items, complete)
    }

    fn object(&self, object: &ObjectExpression<'a>) -> LiteralKind {
        let mut entries = LiteralEntries::default();
        for property in &object.properties {
            let property = match property {
                ObjectPropertyKind::ObjectProperty(property) => property,
                ObjectPropertyKind::SpreadProperty(spread) => {
                    self.spread(&spread.argument, &mut entries);
                    continue;
                }
            };
            let Some(key) = property.key.static_name() else {
                entries.push_unknown();
                continue;
            };
            match key.as_ref() {
                // The method decides what is sent.
                "toJSON" => return LiteralKind::Unknown,
                // It sets the prototype and is no key.
                "__proto__" if !property.shorthand && !property.computed => continue,
                _ => {}
            }
            let offset = property.key.span().start as usize;
            let value = match property.kind {
                PropertyKind::Init => self.deeper().read(&property.value),
                PropertyKind::Get | PropertyKind::Set => Literal::unknown(offset),
            };
            entries.push(LiteralEntry { key: key.into_owned(), offset, value });
        }
        entries.finish()
    }
}

impl<'a> Literals<'_, 'a> {
    /// The value of an expression, if values are followed.
    fn followed(&self, expression: &Expression<'a>) -> Option<Literal> {
        self.values.map(|_| self.deeper().read(expression))
    }

    /// Adds the entries of an object that is spread into another.
    fn spread(&self, argument: &Expression<'a>, entries: &mut LiteralEntries) {
        // What a test decides about: `...(x && { … })`.
        let inner = argument.get_inner_expression();
        if let Expression::LogicalExpression(logical) = inner
            && logical.operator == LogicalOperator::And
            && let Some(Literal { kind: LiteralKind::Object { entries: more, complete }, .. }) =
                self.followed(&logical.right)
        {
            entries.push_possible(&more, complete);
            return;
        }
        match self.followed(argument).map(|value| value.kind) {
            Some(LiteralKind::Object { entries: more, complete }) => {
                if !complete {
                    entries.push_unknown();
                }
                more.iter().cloned().for_each(|entry| entries.push(entry));
            }
            Some(LiteralKind::Each(all)) => {
                for one in all.iter() {
                    match &one.kind {
                        LiteralKind::Object { entries: more, complete } => {
                            entries.push_possible(more, *complete);
                        }
                        LiteralKind::Undefined | LiteralKind::Null => {}
                        _ => entries.push_unknown(),
                    }
                }
            }
            Some(LiteralKind::Undefined | LiteralKind::Null) => {}
            _ => entries.push_unknown(),
        }
    }
}

fn template_text(template: &TemplateLiteral<'_>) -> Option<String> {
    match template.quasis.as_slice() {
        [only] if template.expressions.is_empty() && !only.lone_surrogates => {
            only.value.cooked.as_ref().map(ToString::to_string)
        }
        _ => None,
    }
}

/// The message about a last line with a value that is not returned.
pub const NOT_RETURNED: &str = "this value is not returned";

/// Warns if a script produces no output and ends with an expression, as in a console. Scripts with
/// errors are skipped.
pub(super) fn check_value(
    program: &Program<'_>,
    script: &ParsedScript<'_, '_>,
    report: &mut FindingCollector<'_>,
) {
    let Some(Statement::ExpressionStatement(last)) = program.body.last() else { return };
    if report.has_errors() || !is_value(&last.expression, script) || has_output(script) {
        return;
    }
    let hint = "a script's value is what it returns: write `return …`".to_owned();
    let offset = last.span.start as usize;
    report.add(CheckSeverity::Warning, offset, NOT_RETURNED.to_owned(), Some(hint));
}

/// Methods and functions that are called for their value only.
const PURE: &[&str] = &[
    "Boolean",
    "Number",
    "Object",
    "String",
    "abs",
    "at",
    "ceil",
    "charAt",
    "concat",
    "endsWith",
    "entries",
    "every",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "flat",
    "flatMap",
    "floor",
    "from",
    "fromEntries",
    "includes",
    "indexOf",
    "join",
    "keys",
    "map",
    "match",
    "matchAll",
    "max",
    "min",
    "padEnd",
    "padStart",
    "parse",
    "parseFloat",
    "parseInt",
    "reduce",
    "repeat",
    "replace",
    "replaceAll",
    "round",
    "slice",
    "some",
    "split",
    "startsWith",
    "stringify",
    "structuredClone",
    "substring",
    "toFixed",
    "toISOString",
    "toLowerCase",
    "toSorted",
    "toString",
    "toUpperCase",
    "trim",
    "values",
];

/// Whether an expression may be intended as the result. A call of a tool may be meant for its effect.
fn is_value(expression: &Expression<'_>, script: &ParsedScript<'_, '_>) -> bool {
    match expression.get_inner_expression() {
        Expression::AssignmentExpression(_)
        | Expression::UpdateExpression(_)
        | Expression::NewExpression(_)
        | Expression::TaggedTemplateExpression(_) => false,
        Expression::UnaryExpression(unary) => {
            !matches!(unary.operator, UnaryOperator::Void | UnaryOperator::Delete)
        }
        Expression::AwaitExpression(awaited) => match awaited.argument.get_inner_expression() {
            call @ Expression::CallExpression(_) => is_value(call, script),
            _ => false,
        },
        Expression::LogicalExpression(logical) => is_value(&logical.right, script),
        Expression::ConditionalExpression(choice) => {
            is_value(&choice.consequent, script) && is_value(&choice.alternate, script)
        }
        Expression::CallExpression(call) => has_value(call, script),
        Expression::ChainExpression(chain) => match &chain.expression {
            ChainElement::CallExpression(call) => has_value(call, script),
            _ => true,
        },
        _ => true,
    }
}

/// Whether a call is made for its value: of a function of the script that returns one, or of one that
/// has no effect.
fn has_value(call: &CallExpression<'_>, script: &ParsedScript<'_, '_>) -> bool {
    match call.callee.get_inner_expression() {
        Expression::StaticMemberExpression(member) => {
            PURE.binary_search(&member.property.name.as_str()).is_ok()
        }
        Expression::Identifier(name) if is_free(name, script) => {
            PURE.binary_search(&name.name.as_str()).is_ok()
        }
        Expression::Identifier(name) => {
            let scoping = script.semantic.scoping();
            let symbol = name.reference_id.get().map(|id| scoping.get_reference(id).symbol_id());
            let Some(symbol) = symbol.flatten() else { return false };
            let nodes = script.semantic.nodes();
            match nodes.kind(scoping.symbol_declaration(symbol)) {
                AstKind::Function(function) => returns(function.span, script),
                AstKind::VariableDeclarator(variable) => {
                    variable.init.as_ref().is_some_and(|init| is_returning(init, script))
                }
                _ => false,
            }
        }
        other => is_returning(other, script),
    }
}

/// Whether an expression is a function that returns a value.
fn is_returning(expression: &Expression<'_>, script: &ParsedScript<'_, '_>) -> bool {
    match expression.get_inner_expression() {
        Expression::FunctionExpression(function) => returns(function.span, script),
        Expression::ArrowFunctionExpression(arrow) => {
            arrow.body.as_expression().is_some() || returns(arrow.span, script)
        }
        _ => false,
    }
}

/// Whether the function at this place returns a value.
fn returns(function: oxc_span::Span, script: &ParsedScript<'_, '_>) -> bool {
    let nodes = script.semantic.nodes();
    let is_its = |id: NodeId| {
        let kinds = nodes.ancestor_kinds(id).take(MAX_STEPS);
        let functions = kinds.filter(|kind| {
            matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
        });
        functions.map(|kind| kind.span()).next() == Some(function)
    };
    nodes.iter().any(|node| match node.kind() {
        AstKind::ReturnStatement(returned) => returned.argument.is_some() && is_its(node.id()),
        _ => false,
    })
}

/// Whether a script returns, prints or emits something, or exits.
fn has_output(script: &ParsedScript<'_, '_>) -> bool {
    let writes =
        script.references.iter().any(|(name, _)| matches!(*name, "console" | "emit" | "process"));
    let nodes = script.semantic.nodes();
    let mut functions: Vec<_> = nodes
        .iter()
        .filter(|node| {
            matches!(node.kind(), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
        })
        .map(|node| node.kind().span())
        .collect();
    functions.sort_by_key(|span| span.start);
    // A nested function is inside of its outer function.
    let mut outermost: Vec<oxc_span::Span> = Vec::new();
    for span in functions {
        if outermost.last().is_none_or(|last| last.end <= span.start) {
            outermost.push(span);
        }
    }
    let is_outside = |start: u32| {
        let before = outermost.partition_point(|span| span.start <= start);
        before.checked_sub(1).is_none_or(|index| outermost[index].end <= start)
    };
    writes
        || nodes.iter().any(|node| {
            matches!(node.kind(), AstKind::ReturnStatement(found) if is_outside(found.span.start))
        })
}

/// The number of ancestors that are searched for a call.
const MAX_STEPS: usize = 100;

/// The variables that are called in their own initial value.
pub(super) fn collect_hidings(script: &ParsedScript<'_, '_>) -> Vec<HidingVariable> {
    let semantic = script.semantic;
    let scoping = semantic.scoping();
    let mut hidings = Vec::new();
    for symbol in scoping.symbol_ids() {
        let declaration = scoping.symbol_declaration(symbol);
        if !matches!(semantic.nodes().kind(declaration), AstKind::VariableDeclarator(_)) {
            continue;
        }
        let mut references = scoping.get_resolved_references(symbol);
        if references.any(|reference| is_called(reference.node_id(), declaration, script)) {
            let name = scoping.symbol_name(symbol).to_owned();
            hidings
                .push(HidingVariable { name, offset: scoping.symbol_span(symbol).start as usize });
        }
    }
    hidings
}

/// Whether a name is called while its own declaration is evaluated.
fn is_called(name: NodeId, declaration: NodeId, script: &ParsedScript<'_, '_>) -> bool {
    let nodes = script.semantic.nodes();
    let span = nodes.kind(name).span();
    let parent = nodes.parent_kind(name);
    if !matches!(parent, AstKind::CallExpression(call) if call.callee.span() == span) {
        return false;
    }
    let above = nodes.ancestor_ids(name).take(MAX_STEPS);
    let mut above = above.take_while(|node| {
        // The body of a function runs later.
        !matches!(nodes.kind(*node), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
    });
    above.any(|node| node == declaration)
}
