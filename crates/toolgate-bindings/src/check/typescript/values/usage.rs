//! What a script does with an object after it was made.

use std::{collections::HashSet, rc::Rc};

use oxc_ast::{
    AstKind,
    ast::{BindingPattern, Expression},
};
use oxc_semantic::{NodeId, SymbolId};
use oxc_span::GetSpan;
use oxc_syntax::operator::UnaryOperator;

use super::Values;
use crate::check::{
    literal::{Literal, LiteralEntry, LiteralKind, NOWHERE},
    typescript::{calls::is_free, promises::global_method},
};

/// The depth of variables with the same object that are followed.
const MAX_ALIASES: usize = 8;
/// The number of expressions around a use that are looked at.
const MAX_PARENTS: usize = 40;

/// Methods that change the object that they belong to.
const CHANGING: &[&str] = &[
    "push",
    "unshift",
    "pop",
    "shift",
    "splice",
    "sort",
    "reverse",
    "fill",
    "copyWithin",
    "set",
    "add",
    "delete",
    "clear",
    "append",
];

/// How a script changes an object.
pub(super) enum Usage {
    /// It changes these properties, or none.
    Changed(HashSet<String>),
    /// It may do anything with it.
    Anything,
}

impl Usage {
    /// Whether a value can change at all.
    pub(super) fn is_needed(literal: &Literal) -> bool {
        match literal.kind.alternatives() {
            Some(all) => all.iter().any(Self::is_needed),
            None => matches!(
                literal.kind,
                LiteralKind::Object { .. } | LiteralKind::Array { .. } | LiteralKind::ListOf(_)
            ),
        }
    }

    /// What is certain of a value that is used in this way.
    pub(super) fn applied(&self, literal: Literal) -> Literal {
        match self {
            Self::Changed(keys) if keys.is_empty() => literal,
            _ => self.changed(&literal),
        }
    }

    fn changed(&self, literal: &Literal) -> Literal {
        let kind = match (&literal.kind, self) {
            (LiteralKind::Object { entries, .. }, Self::Changed(keys)) => {
                let kept = entries.iter().filter(|entry| !keys.contains(&entry.key)).cloned();
                let new = keys.iter().map(|key| LiteralEntry {
                    key: key.clone(),
                    offset: NOWHERE,
                    value: Literal::new(
                        NOWHERE,
                        // It may not be there yet.
                        LiteralKind::OneOf(Rc::new([
                            Literal::new(NOWHERE, LiteralKind::Undefined),
                            Literal::unknown(NOWHERE),
                        ])),
                    ),
                });
                let kind = LiteralKind::object(kept.chain(new).collect(), false);
                return Literal { kind, ..literal.clone() };
            }
            (LiteralKind::Object { .. }, Self::Anything) => LiteralKind::object(Vec::new(), false),
            (LiteralKind::Array { .. } | LiteralKind::ListOf(_), _) => {
                LiteralKind::array(Vec::new(), false)
            }
            (LiteralKind::Each(all), _) => {
                LiteralKind::Each(all.iter().map(|one| self.changed(one)).collect())
            }
            (LiteralKind::OneOf(all), _) => {
                LiteralKind::OneOf(all.iter().map(|one| self.changed(one)).collect())
            }
            _ => return literal.clone(),
        };
        Literal::new(literal.offset, kind)
    }

    fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Changed(keys), Self::Changed(more)) => keys.extend(more),
            _ => *self = Self::Anything,
        }
    }
}

impl<'a> Values<'_, 'a> {
    /// How a script uses the object in a variable.
    pub(super) fn usage(&self, symbol: SymbolId, depth: usize) -> Usage {
        let scoping = self.script.semantic.scoping();
        let mut usage = Usage::Changed(HashSet::new());
        if depth > MAX_ALIASES {
            return Usage::Anything;
        }
        for reference in scoping.get_resolved_references(symbol) {
            // An assignment to the variable leaves the object as it is.
            if !reference.is_value() || reference.is_write() && !reference.is_read() {
                continue;
            }
            usage.merge(self.use_of(reference.node_id(), depth));
            if matches!(usage, Usage::Anything) {
                break;
            }
        }
        usage
    }

    fn use_of(&self, node: NodeId, depth: usize) -> Usage {
        let nodes = self.script.semantic.nodes();
        let nothing = || Usage::Changed(HashSet::new());
        let mut at = node;
        // The names from the object to the part that is used.
        let mut first: Option<Option<&str>> = None;
        let mut last = "";
        let mut parts = 0;
        let mut is_contained = false;
        for _ in 0..MAX_PARENTS {
            let span = nodes.kind(at).span();
            let parent = nodes.parent_id(at);
            let changed = |first: Option<Option<&str>>| match first {
                Some(Some(name)) => Usage::Changed(HashSet::from([name.to_owned()])),
                _ => Usage::Anything,
            };
            match nodes.kind(parent) {
                AstKind::ParenthesizedExpression(_)
                | AstKind::ChainExpression(_)
                | AstKind::TSAsExpression(_)
                | AstKind::TSSatisfiesExpression(_)
                | AstKind::TSNonNullExpression(_)
                | AstKind::TSTypeAssertion(_) => {}
                AstKind::StaticMemberExpression(member) => {
                    last = member.property.name.as_str();
                    first.get_or_insert(Some(last));
                    parts += 1;
                }
                AstKind::ComputedMemberExpression(member) if member.object.span() == span => {
                    let name = match member.expression.get_inner_expression() {
                        Expression::StringLiteral(name) => Some(name.value.as_str()),
                        _ => None,
                    };
                    last = name.unwrap_or_default();
                    first.get_or_insert(name);
                    parts += 1;
                }
                AstKind::AssignmentExpression(it) if it.left.span() == span => {
                    return if parts == 0 { Usage::Anything } else { changed(first) };
                }
                AstKind::UpdateExpression(_) if parts > 0 => return changed(first),
                AstKind::UnaryExpression(it) if it.operator == UnaryOperator::Delete => {
                    return changed(first);
                }
                AstKind::CallExpression(call) if call.callee.span() == span => {
                    return match (CHANGING.contains(&last), parts) {
                        (false, _) => nothing(),
                        (true, 2..) => changed(first),
                        (true, _) => Usage::Anything,
                    };
                }
                AstKind::CallExpression(call) => {
                    let is_safe = parts > 0 || self.keeps_arguments(call);
                    return if is_safe { nothing() } else { Usage::Anything };
                }
                AstKind::NewExpression(_) | AstKind::AssignmentExpression(_) if parts == 0 => {
                    return Usage::Anything;
                }
                AstKind::LogicalExpression(_) | AstKind::ConditionalExpression(_) if parts == 0 => {
                }
                AstKind::ObjectProperty(_)
                | AstKind::ObjectExpression(_)
                | AstKind::ArrayExpression(_)
                    if parts == 0 =>
                {
                    is_contained = true;
                }
                AstKind::VariableDeclarator(it) if parts == 0 => {
                    let BindingPattern::BindingIdentifier(id) = &it.id else { return nothing() };
                    let Some(symbol) = id.symbol_id.get() else { return Usage::Anything };
                    let is_once = !self.script.semantic.scoping().symbol_is_mutated(symbol);
                    let alias =
                        if is_once { self.usage(symbol, depth + 1) } else { Usage::Anything };
                    return match alias {
                        // What changes there is a part of what is around it.
                        Usage::Changed(keys) if is_contained && !keys.is_empty() => Usage::Anything,
                        other => other,
                    };
                }
                _ => return nothing(),
            }
            at = parent;
        }
        Usage::Anything
    }

    /// Whether a function does not change its arguments.
    fn keeps_arguments(&self, call: &oxc_ast::ast::CallExpression<'a>) -> bool {
        if self.tool_of(call).is_some() {
            return true;
        }
        if let Expression::Identifier(name) = call.callee.get_inner_expression() {
            return is_free(name, self.script)
                && matches!(
                    name.name.as_str(),
                    "String" | "Number" | "Boolean" | "structuredClone" | "isNaN" | "emit"
                );
        }
        match global_method(call, self.script) {
            Some(("console" | "JSON" | "Promise" | "Math" | "Array", _)) => true,
            Some(("Object", method)) => !matches!(
                method,
                "assign" | "defineProperty" | "defineProperties" | "setPrototypeOf"
            ),
            _ => false,
        }
    }
}
