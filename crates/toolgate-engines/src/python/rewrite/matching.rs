//! Rewrites `match` to a chain of conditions.
//!
//! A pattern becomes a description that the prelude compares with the subject. The comparison
//! returns the values of the names in the pattern.

use ruff_python_ast::{Pattern, Singleton, Stmt, StmtMatch, visitor::Visitor};
use ruff_text_size::{Ranged, TextRange};

use super::Rewriter;

impl<'a> Rewriter<'a> {
    pub(super) fn matched(&mut self, statement: &'a Stmt, matched: &'a StmtMatch) {
        let Some(indentation) = self.indentation(statement).map(str::to_owned) else { return };
        let (subject, found) = (self.fresh(), self.fresh());
        let Some(first) = matched.cases.first() else { return };
        let colon = self.colon(matched.subject.end()).filter(|colon| *colon < first.start());
        let Some(colon) = colon else { return };
        self.need("<matching>");
        self.edits.replace(
            TextRange::new(statement.start(), matched.subject.start()),
            format!("{subject} = (("),
        );
        self.visit_expr(&matched.subject);
        self.edits.replace(
            TextRange::new(matched.subject.end(), colon),
            format!("))\n{indentation}if True"),
        );
        for (index, case) in matched.cases.iter().enumerate() {
            let word = if index == 0 { "if" } else { "elif" };
            let mut names = Vec::new();
            let description = self.pattern(&case.pattern, &mut names);
            let mut condition =
                format!("{word} ({found} := _tg_match({subject}, {description})) is not None");
            if !names.is_empty() {
                let binds: Vec<String> =
                    names.iter().map(|name| format!("{name} := {found}['{name}']")).collect();
                condition = format!("{condition} and [{}] is not None", binds.join(", "));
            }
            let from = case.guard.as_ref().map_or(case.pattern.end(), |guard| guard.end());
            let Some(colon) = self.colon(from) else { return };
            if let Some(guard) = &case.guard {
                self.edits.replace(
                    TextRange::new(case.start(), guard.start()),
                    format!("{condition} and (("),
                );
                self.visit_expr(guard);
                self.edits.replace(TextRange::new(guard.end(), colon), "))");
            } else {
                self.edits.replace(TextRange::new(case.start(), colon), condition);
            }
            self.visit_body(&case.body);
        }
    }

    /// Describes a pattern and collects the names that it binds.
    fn pattern(&self, pattern: &Pattern, names: &mut Vec<String>) -> String {
        let mut bind = |name: &str| {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        };
        match pattern {
            Pattern::MatchValue(value) => format!("('value', {})", self.text(&*value.value)),
            Pattern::MatchSingleton(singleton) => {
                let value = match singleton.value {
                    Singleton::None => "None",
                    Singleton::True => "True",
                    Singleton::False => "False",
                };
                format!("('is', {value})")
            }
            Pattern::MatchSequence(sequence) => {
                format!("('sequence', [{}])", self.patterns(&sequence.patterns, names))
            }
            Pattern::MatchOr(alternatives) => {
                format!("('or', [{}])", self.patterns(&alternatives.patterns, names))
            }
            Pattern::MatchStar(star) => match &star.name {
                Some(name) => {
                    bind(name);
                    format!("('star', '{name}')")
                }
                None => "('star', None)".to_owned(),
            },
            Pattern::MatchAs(alias) => {
                let name = alias.name.as_ref().map(|name| {
                    bind(name);
                    format!("'{name}'")
                });
                let inner = alias.pattern.as_ref().map(|inner| self.pattern(inner, names));
                format!(
                    "('as', {}, {})",
                    inner.as_deref().unwrap_or("None"),
                    name.as_deref().unwrap_or("None")
                )
            }
            Pattern::MatchMapping(mapping) => {
                if let Some(rest) = &mapping.rest {
                    bind(rest);
                }
                let pairs: Vec<String> = mapping
                    .keys
                    .iter()
                    .zip(&mapping.patterns)
                    .map(|(key, value)| {
                        format!("({}, {})", self.text(key), self.pattern(value, names))
                    })
                    .collect();
                let rest =
                    mapping.rest.as_ref().map_or("None".to_owned(), |rest| format!("'{rest}'"));
                format!("('mapping', [{}], {rest})", pairs.join(", "))
            }
            Pattern::MatchClass(class) => {
                let positional = self.patterns(&class.arguments.patterns, names);
                let keywords: Vec<String> = class
                    .arguments
                    .keywords
                    .iter()
                    .map(|keyword| {
                        let inner = self.pattern(&keyword.pattern, names);
                        format!("('{}', {inner})", keyword.attr)
                    })
                    .collect();
                format!(
                    "('class', {}, [{positional}], [{}])",
                    self.text(&*class.cls),
                    keywords.join(", ")
                )
            }
        }
    }

    /// Describes several patterns, with commas between them.
    fn patterns(&self, patterns: &[Pattern], names: &mut Vec<String>) -> String {
        let described: Vec<String> =
            patterns.iter().map(|pattern| self.pattern(pattern, names)).collect();
        described.join(", ")
    }
}
