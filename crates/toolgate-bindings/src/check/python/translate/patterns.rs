//! The patterns of `match`.

use ruff_python_ast::{Expr, Pattern};

use super::Translator;
use crate::check::flow::ir::{Expression, Key, Target};

impl<'a> Translator<'a> {
    /// What a pattern assigns.
    pub(super) fn captures(&mut self, pattern: &'a Pattern) -> Vec<Target> {
        let any = || Key::Computed(Box::new(Expression::Literal));
        match pattern {
            Pattern::MatchValue(_) | Pattern::MatchSingleton(_) => Vec::new(),
            Pattern::MatchStar(star) => {
                star.name.iter().map(|name| self.assigned(name.as_str())).collect()
            }
            Pattern::MatchAs(matched) => {
                let inner = matched.pattern.as_ref();
                let mut targets = inner.map(|it| self.captures(it)).unwrap_or_default();
                targets.extend(matched.name.iter().map(|name| self.assigned(name.as_str())));
                targets
            }
            Pattern::MatchOr(matched) => {
                let mut targets = Vec::new();
                for pattern in &matched.patterns {
                    targets.extend(self.captures(pattern));
                }
                targets
            }
            Pattern::MatchSequence(sequence) => {
                let star =
                    sequence.patterns.iter().position(ruff_python_ast::Pattern::is_match_star);
                let mut entries = Vec::new();
                for (at, pattern) in sequence.patterns.iter().enumerate() {
                    for target in self.captures(pattern) {
                        let key = if star.is_some_and(|star| at >= star) {
                            any()
                        } else {
                            Key::Name(self.program.names.intern(&at.to_string()))
                        };
                        // The rest is a list of elements; an element stands for it.
                        entries.push((key, target, None));
                    }
                }
                vec![Target::Object { entries, rest: None }]
            }
            Pattern::MatchMapping(mapping) => {
                let mut entries = Vec::new();
                for (key, pattern) in mapping.keys.iter().zip(&mapping.patterns) {
                    for target in self.captures(pattern) {
                        let key = match key {
                            Expr::StringLiteral(text) => {
                                Key::Name(self.program.names.intern(text.value.to_str()))
                            }
                            _ => any(),
                        };
                        entries.push((key, target, None));
                    }
                }
                let rest = mapping.rest.as_ref();
                let rest = rest.map(|rest| Box::new(self.assigned(rest.as_str())));
                vec![Target::Object { entries, rest }]
            }
            Pattern::MatchClass(class) => {
                let mut entries = Vec::new();
                let mut targets = Vec::new();
                for pattern in &class.arguments.patterns {
                    for target in self.captures(pattern) {
                        entries.push((any(), target, None));
                    }
                    // `str(x)` is the value itself.
                    targets.extend(self.captures(pattern));
                }
                for keyword in &class.arguments.keywords {
                    for target in self.captures(&keyword.pattern) {
                        let name = self.program.names.intern(keyword.attr.as_str());
                        entries.push((Key::Name(name), target, None));
                    }
                }
                // Both happen: neither may hide the other.
                self.program.is_opaque |= !targets.is_empty();
                vec![Target::Object { entries, rest: None }]
            }
        }
    }
}
