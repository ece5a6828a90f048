//! Where problems are gathered.

use std::fmt;
use std::sync::Arc;

use super::scope::WRITTEN_TWICE;
use crate::position::{SourceText, printable};
use crate::{MAX_PROBLEMS, Position, Problem, Severity};

/// The problems of one file.
pub(super) struct Report<'a> {
    source: &'a SourceText<'a>,
    name: Arc<str>,
    problems: Vec<Problem>,
    left_out: usize,
}

/// The way to a value, from the top of the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl<'a> Report<'a> {
    pub(super) fn new(source: &'a SourceText<'a>) -> Self {
        Self { source, name: source.name().into(), problems: Vec::new(), left_out: 0 }
    }

    /// Makes a problem whose message begins with the path: `` `path` predicate ``.
    pub(super) fn problem(
        &self,
        severity: Severity,
        path: &Path<'_>,
        offset: usize,
        predicate: &str,
        hint: Option<String>,
    ) -> Problem {
        let path = path.to_string();
        let message = format!("`{path}` {predicate}");
        let position = self.source.position(offset);
        Problem { severity, source: Arc::clone(&self.name), path, position, message, hint }
    }

    /// The place of an offset as a person writes it: `toolgate.json:3:7`.
    pub(super) fn place(&self, offset: usize) -> String {
        format!("{}:{}", self.name, self.source.position(offset))
    }

    /// Makes a problem of the file as a whole.
    pub(super) fn problem_of_file(&self, message: &str, hint: String) -> Problem {
        Problem {
            severity: Severity::Error,
            source: Arc::clone(&self.name),
            path: String::new(),
            position: Position { line: 1, column: 1 },
            message: message.to_owned(),
            hint: Some(hint),
        }
    }

    /// Makes a problem and keeps it, as long as there is room. A file of nothing but mistakes costs
    /// a text and a place in the file for the first of them only.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        path: &Path<'_>,
        offset: usize,
        predicate: &str,
        hint: Option<String>,
    ) {
        if self.has_room() {
            let problem = self.problem(severity, path, offset, predicate, hint);
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds the problem of a key that is written more than once.
    pub(super) fn add_replaced(&mut self, path: &Path<'_>, later_offset: usize) {
        let predicate = "is written more than once; the last one is used";
        let hint = Some("remove the others".to_owned());
        self.add(Severity::Warning, path, later_offset, predicate, hint);
    }

    /// The same of a key that holds something back, where each of the values may have been meant.
    pub(super) fn refuse_replaced(&mut self, path: &Path<'_>, later_offset: usize) {
        let hint = Some("remove the others".to_owned());
        self.add(Severity::Error, path, later_offset, WRITTEN_TWICE, hint);
    }

    /// Keeps a problem, as long as there is room.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.has_room() {
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether one more problem would be kept; the last place is for the number of the others.
    pub(super) fn has_room(&self) -> bool {
        self.problems.len() < MAX_PROBLEMS - 1
    }

    /// The problems in the order of the file, and one more that says how many were left out.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.position);
        if self.left_out > 0 {
            self.problems.push(Problem {
                severity: Severity::Warning,
                message: format!("{} more problems are not shown", self.left_out),
                ..self.problem_of_file("", "fix the ones above first".to_owned())
            });
        }
        self.problems
    }
}

impl fmt::Display for Path<'_> {
    /// Writes keys with dots between, and quotes those that would be misread.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
            Self::Key(parent, key) => {
                let key = printable(key);
                let plain = |character: char| {
                    character.is_alphanumeric() || matches!(character, '_' | '-' | '$')
                };
                if key.is_empty() || !key.chars().all(plain) {
                    write!(formatter, "{parent}[\"{key}\"]")
                } else if matches!(parent, Self::Root) {
                    formatter.write_str(&key)
                } else {
                    write!(formatter, "{parent}.{key}")
                }
            }
        }
    }
}
