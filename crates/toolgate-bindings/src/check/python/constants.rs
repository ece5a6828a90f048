//! What a script says about its own course: code that never runs, exceptions that it handles, and
//! variables that it tests.

use std::collections::{BTreeSet, HashSet};

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

/// Exceptions of a key, an index or an attribute that is not there.
const KEY_ERRORS: &[&str] = &[
    "AttributeError",
    "BaseException",
    "Exception",
    "IndexError",
    "KeyError",
    "LookupError",
    "TypeError",
];

/// Whether a test is always true or always false.
pub(super) fn truth(test: &Expr) -> Option<bool> {
    match test {
        Expr::BooleanLiteral(literal) => Some(literal.value),
        Expr::NoneLiteral(_) => Some(false),
        // It is true only for programs that check types.
        Expr::Name(name) if name.id == "TYPE_CHECKING" => Some(false),
        Expr::Attribute(part) if part.attr.as_str() == "TYPE_CHECKING" => Some(false),
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a kind of error that is expected or not"
)]
pub(super) struct Caught {
    /// A name that does not exist.
    pub(super) names: bool,
    /// A file that cannot be opened.
    pub(super) files: bool,
    /// A question that nobody answers.
    pub(super) questions: bool,
    /// A key or an attribute that is not there.
    pub(super) keys: bool,
}

impl Caught {
    pub(super) fn by(attempt: &StmtTry) -> Self {
        let mut caught = Self::default();
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            let Some(kind) = handler.type_.as_deref() else {
                caught.files = true;
                caught.questions = true;
                caught.keys = true;
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
                caught.keys |= KEY_ERRORS.contains(&kind.id.as_str());
            }
        }
        caught
    }
}

/// What decides whether the values of variables are certain.
#[derive(Default)]
pub(super) struct Constants<'a> {
    /// Names that a definition, a parameter or an import binds.
    defined: HashSet<(usize, &'a str)>,
    /// Names that the script tests.
    tested: BTreeSet<&'a str>,
    /// Names that inner functions assign.
    foreign: BTreeSet<&'a str>,
}

impl<'a> Constants<'a> {
    pub(super) fn open(
        &mut self,
        scope: usize,
        defined: &HashSet<&'a str>,
        foreign: &HashSet<&'a str>,
    ) {
        self.defined.extend(defined.iter().map(|name| (scope, *name)));
        self.foreign.extend(foreign.iter().copied());
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
        Names(&mut self.tested).visit_expr(test);
    }

    /// Whether only assignments give a variable its values.
    pub(super) fn is_plain(&self, key: (usize, &'a str)) -> bool {
        !self.defined.contains(&key) && !self.foreign.contains(key.1)
    }

    /// Whether the script may know more about a variable after a test.
    pub(super) fn is_tested(&self, name: &str) -> bool {
        self.tested.contains(name)
    }
}
