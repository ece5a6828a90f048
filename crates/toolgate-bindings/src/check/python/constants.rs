//! What a script says about its own course: code that never runs, exceptions that it handles, and
//! variables with one value.

use std::collections::{BTreeSet, HashMap, HashSet};

use ruff_python_ast::{
    ExceptHandler, Expr, Number, Stmt, StmtTry, UnaryOp,
    visitor::{Visitor, walk_expr},
};

/// Exceptions of a file that cannot be opened.
const FILE_ERRORS: &[&str] = &[
    "BaseException",
    "EnvironmentError",
    "Exception",
    "FileNotFoundError",
    "IOError",
    "OSError",
    "PermissionError",
];

/// Whether a test is always true or always false.
pub(super) fn truth(test: &Expr) -> Option<bool> {
    match test {
        Expr::BooleanLiteral(literal) => Some(literal.value),
        Expr::NoneLiteral(_) => Some(false),
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(value) => Some(*value != 0),
            _ => None,
        },
        Expr::UnaryOp(unary) if unary.op == UnaryOp::Not => {
            truth(&unary.operand).map(|truth| !truth)
        }
        _ => None,
    }
}

/// Whether nothing runs after a statement of a block.
pub(super) fn leaves(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_))
}

/// What the handlers of a `try` expect.
#[derive(Clone, Copy, Default)]
pub(super) struct Caught {
    /// A name that does not exist.
    pub(super) names: bool,
    /// A file that cannot be opened.
    pub(super) files: bool,
    /// A question that nobody answers.
    pub(super) questions: bool,
}

impl Caught {
    pub(super) fn by(attempt: &StmtTry) -> Self {
        let mut caught = Self::default();
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            let Some(kind) = handler.type_.as_deref() else {
                caught.files = true;
                caught.questions = true;
                continue;
            };
            let kinds = match kind {
                Expr::Tuple(tuple) => tuple.elts.as_slice(),
                one => std::slice::from_ref(one),
            };
            for kind in kinds.iter().filter_map(Expr::as_name_expr) {
                caught.names |= kind.id == "NameError";
                caught.files |= FILE_ERRORS.contains(&kind.id.as_str());
                caught.questions |=
                    matches!(kind.id.as_str(), "EOFError" | "Exception" | "BaseException");
            }
        }
        caught
    }
}

/// The variables that may have only one value.
#[derive(Default)]
pub(super) struct Constants<'a> {
    /// What each variable is assigned, by its scope.
    values: HashMap<(usize, &'a str), &'a Expr>,
    /// Names that a definition, a parameter or an import binds.
    defined: HashSet<(usize, &'a str)>,
    /// Names that the script tests, or that inner functions assign.
    doubtful: BTreeSet<&'a str>,
    /// How often a variable is used as `**variable`.
    spreads: HashMap<(usize, &'a str), usize>,
}

impl<'a> Constants<'a> {
    pub(super) fn open(
        &mut self,
        scope: usize,
        defined: &HashSet<&'a str>,
        foreign: &HashSet<&'a str>,
    ) {
        self.defined.extend(defined.iter().map(|name| (scope, *name)));
        self.doubtful.extend(foreign.iter().copied());
    }

    pub(super) fn assign(&mut self, scope: usize, name: &'a str, value: &'a Expr) {
        self.values.insert((scope, name), value);
    }

    pub(super) fn spread(&mut self, scope: usize, name: &'a str) {
        *self.spreads.entry((scope, name)).or_default() += 1;
    }

    /// Notes the names in a test, after which the script knows more about them.
    pub(super) fn test(&mut self, test: &'a Expr) {
        struct Names<'n, 'a>(&'n mut BTreeSet<&'a str>);
        impl<'a> Visitor<'a> for Names<'_, 'a> {
            fn visit_expr(&mut self, expression: &'a Expr) {
                if let Expr::Name(name) = expression {
                    self.0.insert(name.id.as_str());
                }
                walk_expr(self, expression);
            }
        }
        Names(&mut self.doubtful).visit_expr(test);
    }

    /// The value of a variable with these numbers of assignments and reads, if it is certain.
    pub(super) fn value(
        &self,
        key: (usize, &'a str),
        assignments: usize,
        reads: usize,
    ) -> Option<&'a Expr> {
        let value = self.values.get(&key).copied()?;
        if assignments != 1 || self.defined.contains(&key) || self.doubtful.contains(key.1) {
            return None;
        }
        match value {
            Expr::StringLiteral(_)
            | Expr::FString(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::UnaryOp(_) => Some(value),
            // Nothing else can change it.
            Expr::Dict(_) if self.spreads.get(&key) == Some(&reads) => Some(value),
            _ => None,
        }
    }
}
