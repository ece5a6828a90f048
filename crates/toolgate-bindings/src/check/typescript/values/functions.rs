//! What functions of the script return.

use std::{collections::HashMap, rc::Rc};

use oxc_ast::{
    AstKind,
    ast::{ArrowFunctionBody, Expression},
};
use oxc_semantic::{NodeId, SymbolId};

use super::{Values, awaited};
use crate::check::{
    declared::one_of,
    literal::{Literal, LiteralKind, NOWHERE},
    typescript::{ParsedScript, annotations},
};

/// The values that functions return, by their nodes.
pub(super) struct Functions<'s, 'a> {
    returned: HashMap<NodeId, Vec<Option<&'s Expression<'a>>>>,
}

impl<'s, 'a> Functions<'s, 'a> {
    pub(super) fn of(script: &'s ParsedScript<'s, 'a>) -> Self {
        let nodes = script.semantic.nodes();
        let mut returned: HashMap<NodeId, Vec<Option<&'s Expression<'a>>>> = HashMap::new();
        for node in nodes.iter() {
            if let AstKind::ReturnStatement(it) = node.kind() {
                let mut around = nodes.ancestor_ids(node.id());
                let function = around.find(|id| {
                    matches!(
                        nodes.kind(*id),
                        AstKind::Function(_) | AstKind::ArrowFunctionExpression(_)
                    )
                });
                if let Some(function) = function {
                    returned.entry(function).or_default().push(it.argument.as_ref());
                }
            }
        }
        Self { returned }
    }
}

impl<'a> Values<'_, 'a> {
    /// What a function that a variable holds returns.
    pub(super) fn returned_by(&self, symbol: SymbolId, depth: usize) -> Option<Literal> {
        let semantic = self.script.semantic;
        let scoping = semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return None;
        }
        let declaration = scoping.symbol_declaration(symbol);
        match semantic.nodes().kind(declaration) {
            AstKind::Function(_) => self.returned_by_node(declaration, depth),
            AstKind::VariableDeclarator(it) if it.id.is_binding_identifier() => {
                self.returned_by_expression(it.init.as_ref()?, depth)
            }
            _ => None,
        }
    }

    /// What a function expression returns.
    pub(super) fn returned_by_expression(
        &self,
        function: &Expression<'a>,
        depth: usize,
    ) -> Option<Literal> {
        let node = match function.get_inner_expression() {
            Expression::ArrowFunctionExpression(arrow) => arrow.node_id.get(),
            Expression::FunctionExpression(function) => function.node_id.get(),
            _ => return None,
        };
        self.returned_by_node(node, depth)
    }

    fn returned_by_node(&self, node: NodeId, depth: usize) -> Option<Literal> {
        let read = |annotation: &oxc_ast::ast::TSTypeAnnotation<'a>| {
            annotations::read(&annotation.type_annotation, self.script)
        };
        let (is_async, annotation, body) = match self.script.semantic.nodes().kind(node) {
            AstKind::Function(it) if !it.generator => (it.r#async, it.return_type.as_ref(), None),
            AstKind::ArrowFunctionExpression(it) => {
                let body = match &it.body {
                    ArrowFunctionBody::FunctionBody(_) => None,
                    other => other.as_expression(),
                };
                (it.r#async, it.return_type.as_ref(), body)
            }
            _ => return None,
        };
        let value = if let Some(body) = body {
            self.read_at(body, depth + 1)
        } else {
            let returned = self.functions.returned.get(&node)?;
            let values = returned.iter().map(|value| match value {
                Some(value) => self.read_at(value, depth + 1),
                None => Literal::new(NOWHERE, LiteralKind::Undefined),
            });
            one_of(values.collect())
        };
        let value = match (annotation, value.kind == LiteralKind::Unknown) {
            (Some(annotation), true) => return Some(read(annotation)),
            _ => value,
        };
        Some(if is_async {
            Literal::new(NOWHERE, LiteralKind::Promise(Rc::new(awaited(value))))
        } else {
            value
        })
    }
}
