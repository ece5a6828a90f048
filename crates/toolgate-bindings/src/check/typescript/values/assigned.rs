//! Values of variables that are assigned more than once, of fields of classes, and of parameters
//! with a default.

use oxc_ast::{
    AstKind,
    ast::{
        AssignmentExpression, ClassElement, Expression, IdentifierReference, Statement,
        ThisExpression,
    },
};
use oxc_semantic::{NodeId, SymbolId};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::AssignmentOperator;

use super::Values;
use crate::check::{
    declared::one_of,
    literal::{Literal, LiteralKind, NOWHERE},
    typescript::calls::is_free,
};

/// The number of assignments of one variable that are followed.
const MAX_ASSIGNMENTS: usize = 20;

impl<'s, 'a> Values<'s, 'a> {
    /// The value of a variable at a place, if an assignment before it is certain to be the last.
    pub(super) fn last_assigned(
        &self,
        identifier: &IdentifierReference<'a>,
        symbol: SymbolId,
        depth: usize,
    ) -> Option<Literal> {
        let writes = self.writes(symbol)?;
        let nodes = self.script.semantic.nodes();
        let place = identifier.node_id.get();
        let function = self.function_around(place);
        let is_here = |(node, _): &(NodeId, _)| self.function_around(*node) == function;
        if !writes.iter().all(is_here) {
            return None;
        }
        let mut inner = nodes.kind(place).span();
        for around in nodes.ancestor_ids(place) {
            let statements = match nodes.kind(around) {
                AstKind::Program(it) => &it.body,
                AstKind::FunctionBody(it) => &it.statements,
                AstKind::BlockStatement(it) => &it.body,
                AstKind::Function(_) | AstKind::ArrowFunctionExpression(_) => return None,
                _ => {
                    inner = nodes.kind(around).span();
                    continue;
                }
            };
            let before = statements.iter().rev().filter(|it| it.span().end <= inner.start);
            for statement in before {
                let Some(value) = Self::assigned_by(statement, &writes) else { continue };
                let end = statement.span().end;
                // Another assignment may come in between, or in the next round of a loop.
                let is_between =
                    |write: &AssignmentExpression<'_>| (end..inner.end).contains(&write.span.start);
                let is_last = !writes.iter().any(|(_, write)| is_between(write));
                return is_last.then(|| self.read_at(value, depth + 1));
            }
            inner = nodes.kind(around).span();
        }
        None
    }

    /// One of all values that a variable is given.
    pub(super) fn all_assigned(&self, symbol: SymbolId, depth: usize) -> Option<Literal> {
        let writes = self.writes(symbol)?;
        let scoping = self.script.semantic.scoping();
        let declaration = scoping.symbol_declaration(symbol);
        let AstKind::VariableDeclarator(declarator) =
            self.script.semantic.nodes().kind(declaration)
        else {
            return None;
        };
        if !declarator.id.is_binding_identifier() {
            return None;
        }
        let first = declarator.init.iter();
        let values = first.chain(writes.iter().map(|(_, write)| &write.right));
        Some(one_of(values.map(|value| self.read_at(value, depth + 1)).collect()))
    }

    /// All assignments of a variable, if each gives it a value of its own.
    fn writes(&self, symbol: SymbolId) -> Option<Vec<(NodeId, &'s AssignmentExpression<'a>)>> {
        let semantic = self.script.semantic;
        let mut writes = Vec::new();
        for reference in semantic.scoping().get_resolved_references(symbol) {
            if !reference.is_write() {
                continue;
            }
            let node = reference.node_id();
            let span = semantic.nodes().kind(node).span();
            match semantic.nodes().parent_kind(node) {
                AstKind::AssignmentExpression(it)
                    if it.left.span() == span && it.operator == AssignmentOperator::Assign =>
                {
                    writes.push((node, it));
                }
                _ => return None,
            }
        }
        (writes.len() <= MAX_ASSIGNMENTS).then_some(writes)
    }

    /// The value that a statement gives to the variable.
    fn assigned_by<'e>(
        statement: &'e Statement<'a>,
        writes: &[(NodeId, &'s AssignmentExpression<'a>)],
    ) -> Option<&'e Expression<'a>> {
        let Statement::ExpressionStatement(statement) = statement else { return None };
        let Expression::AssignmentExpression(it) = &statement.expression else { return None };
        writes.iter().any(|(_, write)| write.span == it.span).then_some(&it.right)
    }

    fn function_around(&self, node: NodeId) -> NodeId {
        let nodes = self.script.semantic.nodes();
        let is_function = |id: &NodeId| {
            matches!(
                nodes.kind(*id),
                AstKind::Function(_) | AstKind::ArrowFunctionExpression(_) | AstKind::Program(_)
            )
        };
        nodes.ancestor_ids(node).find(is_function).unwrap_or(node)
    }

    /// The value of `this.name`, if a class gives it a literal and nothing assigns to it.
    pub(super) fn field(&self, this: &ThisExpression, name: &str, depth: usize) -> Option<Literal> {
        let nodes = self.script.semantic.nodes();
        let mut around = nodes.ancestor_ids(this.node_id.get());
        let class = around.find_map(|id| match nodes.kind(id) {
            AstKind::Function(_) => match nodes.parent_kind(id) {
                AstKind::MethodDefinition(it) if !it.r#static => None,
                _ => Some(None),
            },
            AstKind::StaticBlock(_) => Some(None),
            AstKind::PropertyDefinition(it) if it.r#static => Some(None),
            AstKind::Class(class) => Some(Some(class)),
            _ => None,
        })??;
        let value = class.body.body.iter().find_map(|element| match element {
            ClassElement::PropertyDefinition(it)
                if !it.r#static
                    && it.type_annotation.is_none()
                    && it.key.static_name().as_deref() == Some(name) =>
            {
                it.value.as_ref()
            }
            _ => None,
        })?;
        let is_assigned = nodes.iter().any(|node| {
            let target: Option<(Span, NodeId)> = match node.kind() {
                AstKind::StaticMemberExpression(it) if it.property.name == name => {
                    Some((it.span, node.id()))
                }
                // It may be any field.
                AstKind::ComputedMemberExpression(it)
                    if matches!(
                        it.object.get_inner_expression(),
                        Expression::ThisExpression(_)
                    ) =>
                {
                    Some((it.span, node.id()))
                }
                _ => None,
            };
            target.is_some_and(|(span, id)| match nodes.parent_kind(id) {
                AstKind::AssignmentExpression(it) => it.left.span() == span,
                AstKind::UpdateExpression(_) => true,
                _ => false,
            })
        });
        if is_assigned {
            return None;
        }
        widened(&self.read_at(value, depth + 1))
    }

    /// The value of a parameter, from its default.
    pub(super) fn default_value(&self, default: &Expression<'a>, depth: usize) -> Option<Literal> {
        widened(&self.read_at(default, depth + 1))
    }

    /// Whether an expression is a date that the script made.
    pub(super) fn is_date(&self, expression: &Expression<'a>) -> bool {
        match expression.get_inner_expression() {
            Expression::NewExpression(it) => {
                matches!(it.callee.get_inner_expression(), Expression::Identifier(name)
                    if name.name == "Date" && is_free(name, self.script))
            }
            Expression::Identifier(it) if !is_free(it, self.script) => {
                let declarator = self.symbol_of(it).and_then(|symbol| self.constant(symbol));
                let init = declarator.filter(|it| it.id.is_binding_identifier());
                let init = init.and_then(|it| it.init.as_ref());
                init.is_some_and(|it| {
                    matches!(it.get_inner_expression(), Expression::NewExpression(_))
                        && self.is_date(it)
                })
            }
            _ => false,
        }
    }
}

/// The type of a literal, of which the script may use other values.
fn widened(literal: &Literal) -> Option<Literal> {
    let kind = match literal.kind {
        LiteralKind::Text(_) => LiteralKind::Text(None),
        LiteralKind::Number(_) | LiteralKind::SomeNumber => LiteralKind::SomeNumber,
        LiteralKind::Boolean(_) => LiteralKind::Boolean(None),
        _ => return None,
    };
    Some(Literal::new(NOWHERE, kind))
}
