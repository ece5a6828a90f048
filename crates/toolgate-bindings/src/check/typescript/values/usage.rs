//! What a script does with an object after it was made.

use std::{collections::HashSet, rc::Rc};

use oxc_ast::{
    AstKind,
    ast::{BindingPattern, Expression, ForStatementLeft},
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

/// Methods that give their elements to a function.
const CALLING: &[&str] = &[
    "map",
    "forEach",
    "filter",
    "find",
    "findLast",
    "findIndex",
    "findLastIndex",
    "some",
    "every",
    "flatMap",
    "reduce",
    "reduceRight",
    "sort",
    "toSorted",
];

/// How a script changes an object.
pub(super) enum Usage {
    /// It changes only these parts, or none.
    Changed(Changes),
    /// It may do anything with it.
    Anything,
}

/// What a script changes of an object.
#[derive(Default)]
pub(super) struct Changes {
    /// Properties that it assigns.
    keys: HashSet<String>,
    /// Properties whose own parts it may change.
    inside: HashSet<String>,
    /// Whether it may change what any of its parts has.
    inside_all: bool,
}

impl Changes {
    fn key(name: &str) -> Self {
        Self { keys: HashSet::from([name.to_owned()]), ..Self::default() }
    }

    /// Changes inside of a part, or of any part if the name is unknown.
    fn inside(name: Option<&str>) -> Self {
        match name {
            Some(name) => Self { inside: HashSet::from([name.to_owned()]), ..Self::default() },
            None => Self { inside_all: true, ..Self::default() },
        }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.inside.is_empty() && !self.inside_all
    }
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
            Self::Changed(changes) if changes.is_empty() => literal,
            _ => self.changed(&literal),
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Changed(changes) if changes.is_empty())
    }

    /// Whether a property is as it was made.
    pub(super) fn keeps(&self, name: &str) -> bool {
        matches!(self, Self::Changed(changes) if !changes.keys.contains(name))
    }

    /// A part whose own parts may have changed.
    fn inside(part: &Literal) -> Literal {
        if Self::is_needed(part) { Self::Anything.changed(part) } else { part.clone() }
    }

    fn changed(&self, literal: &Literal) -> Literal {
        let kind = match (&literal.kind, self) {
            (LiteralKind::Object { entries, complete }, Self::Changed(changes)) => {
                let keys = &changes.keys;
                let kept = entries.iter().filter(|entry| !keys.contains(&entry.key));
                let kept = kept.map(|entry| {
                    if changes.inside_all || changes.inside.contains(&entry.key) {
                        LiteralEntry { value: Self::inside(&entry.value), ..entry.clone() }
                    } else {
                        entry.clone()
                    }
                });
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
                let is_complete = *complete && keys.is_empty();
                let kind = LiteralKind::object(kept.chain(new).collect(), is_complete);
                return Literal { kind, ..literal.clone() };
            }
            (LiteralKind::Object { .. }, Self::Anything) => LiteralKind::object(Vec::new(), false),
            (LiteralKind::Array { items, complete }, Self::Changed(changes))
                if changes.keys.is_empty() =>
            {
                LiteralKind::array(items.iter().map(Self::inside).collect(), *complete)
            }
            (LiteralKind::ListOf(item), Self::Changed(changes)) if changes.keys.is_empty() => {
                LiteralKind::ListOf(Rc::new(Self::inside(item)))
            }
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
            (Self::Changed(changes), Self::Changed(more)) => {
                changes.keys.extend(more.keys);
                changes.inside.extend(more.inside);
                changes.inside_all |= more.inside_all;
            }
            _ => *self = Self::Anything,
        }
    }
}

impl<'a> Values<'_, 'a> {
    /// How a script uses the object in a variable.
    pub(super) fn usage(&self, symbol: SymbolId, depth: usize) -> Usage {
        let scoping = self.script.semantic.scoping();
        let mut usage = Usage::Changed(Changes::default());
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
        let nothing = || Usage::Changed(Changes::default());
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
                Some(Some(name)) => Usage::Changed(Changes::key(name)),
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
                    // The last name is that of the method.
                    let part = first.flatten().filter(|_| parts > 1);
                    let mut usage = match (CHANGING.contains(&last), parts) {
                        (false, _) => nothing(),
                        (true, 2..) => changed(first),
                        (true, _) => Usage::Anything,
                    };
                    if CALLING.contains(&last) && !self.keeps_elements(call, depth) {
                        usage.merge(Usage::Changed(Changes::inside(part)));
                    }
                    return usage;
                }
                AstKind::CallExpression(call) => {
                    return match (self.keeps_arguments(call), parts) {
                        (true, _) => nothing(),
                        (false, 0) => Usage::Anything,
                        (false, _) => Usage::Changed(Changes::inside(first.flatten())),
                    };
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
                AstKind::AssignmentExpression(_) => {
                    return Usage::Changed(Changes::inside(first.flatten()));
                }
                AstKind::ForOfStatement(it) if it.right.span() == span => {
                    let ForStatementLeft::VariableDeclaration(left) = &it.left else {
                        return Usage::Changed(Changes::inside(first.flatten()));
                    };
                    let names = left.declarations.iter().flat_map(|it| symbols_of(&it.id));
                    return self.use_by_names(names, first.flatten(), depth);
                }
                AstKind::VariableDeclarator(it) => {
                    return match &it.id {
                        BindingPattern::BindingIdentifier(id) if parts == 0 => {
                            self.use_by_alias(id.symbol_id.get(), is_contained, depth)
                        }
                        pattern => {
                            let names = symbols_of(pattern).into_iter();
                            self.use_by_names(names, first.flatten(), depth)
                        }
                    };
                }
                _ => return nothing(),
            }
            at = parent;
        }
        Usage::Anything
    }

    /// How the object is used by another name for it. Of what contains the object, everything may change.
    fn use_by_alias(&self, symbol: Option<SymbolId>, is_contained: bool, depth: usize) -> Usage {
        let Some(symbol) = symbol else { return Usage::Anything };
        if self.script.semantic.scoping().symbol_is_mutated(symbol) {
            return Usage::Anything;
        }
        match self.usage(symbol, depth + 1) {
            Usage::Changed(parts) if is_contained && !parts.is_empty() => Usage::Anything,
            other => other,
        }
    }

    /// How a part of an object is used by other names for what it has.
    fn use_by_names(
        &self,
        mut names: impl Iterator<Item = SymbolId>,
        part: Option<&str>,
        depth: usize,
    ) -> Usage {
        let scoping = self.script.semantic.scoping();
        let is_kept = names.all(|symbol| {
            !scoping.symbol_is_mutated(symbol) && self.usage(symbol, depth + 1).is_nothing()
        });
        Usage::Changed(if is_kept { Changes::default() } else { Changes::inside(part) })
    }

    /// Whether the function that a method of a list calls does not change the elements.
    fn keeps_elements(&self, call: &oxc_ast::ast::CallExpression<'a>, depth: usize) -> bool {
        let Some(function) = call.arguments.first() else { return true };
        let parameters = match function.as_expression().map(Expression::get_inner_expression) {
            Some(Expression::ArrowFunctionExpression(it)) => &it.params,
            Some(Expression::FunctionExpression(it)) => &it.params,
            // A function of the language.
            Some(Expression::Identifier(name)) => return is_free(name, self.script),
            _ => return false,
        };
        let symbols = parameters.items.iter().flat_map(|it| symbols_of(&it.pattern));
        parameters.rest.is_none()
            && symbols.into_iter().all(|symbol| self.usage(symbol, depth + 1).is_nothing())
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

/// The variables of a pattern.
fn symbols_of(pattern: &BindingPattern<'_>) -> Vec<SymbolId> {
    pattern.get_binding_identifiers().iter().filter_map(|id| id.symbol_id.get()).collect()
}
