//! The meaning of a script's names, as far as the rewriter needs it.

use std::collections::BTreeSet;

use ruff_python_ast::{
    Expr, Parameter, Stmt,
    visitor::{Visitor, walk_expr, walk_parameter, walk_stmt},
};

use super::DEPTH_LIMIT;

/// Methods of strings that return a boolean.
const ANSWERING: &[&str] = &[
    "endswith",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isspace",
    "issubset",
    "issuperset",
    "isupper",
    "startswith",
];

/// The names of a script, in all scopes together.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// Names that the script binds.
    bound: BTreeSet<String>,
    /// Names that are set to a boolean somewhere.
    flags: BTreeSet<String>,
    /// Names that are set to a compiled pattern somewhere.
    patterns: BTreeSet<String>,
    /// Names that are imported from `typing` and similar modules.
    types: BTreeSet<String>,
}

/// Collects the names of a script.
pub(super) fn collect(body: &[Stmt]) -> Bindings {
    let mut search = BindingSearch { found: Bindings::default(), depth: 0 };
    search.visit_body(body);
    search.found
}

impl Bindings {
    /// Whether a name still refers to the built-in, or to the class in `collections`.
    pub(super) fn is_built_in(&self, name: &str) -> bool {
        !self.bound.contains(name)
    }

    /// Whether a name comes from `typing` or a similar module.
    pub(super) fn is_typing(&self, name: &str) -> bool {
        self.types.contains(name)
    }

    /// Whether an expression is a compiled pattern.
    pub(super) fn is_pattern(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => self.patterns.contains(name.id.as_str()),
            _ => is_compilation(expression),
        }
    }

    /// Whether an expression may be a boolean.
    pub(super) fn may_be_truth(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => self.flags.contains(name.id.as_str()),
            _ => is_truth(expression),
        }
    }
}

/// Whether an expression is a boolean, or a choice between two.
fn is_truth(expression: &Expr) -> bool {
    match expression {
        Expr::Compare(_) | Expr::BooleanLiteral(_) => true,
        Expr::UnaryOp(operation) => operation.op.is_not(),
        Expr::BoolOp(operation) => operation.values.iter().all(is_truth),
        Expr::If(choice) => is_truth(&choice.body) || is_truth(&choice.orelse),
        Expr::Named(named) => is_truth(&named.value),
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => {
                matches!(name.id.as_str(), "all" | "any" | "bool" | "hasattr" | "isinstance")
            }
            Expr::Attribute(attribute) => ANSWERING.contains(&attribute.attr.as_str()),
            _ => false,
        },
        _ => false,
    }
}

fn is_compilation(expression: &Expr) -> bool {
    let function = expression.as_call_expr().and_then(|call| call.func.as_attribute_expr());
    function.is_some_and(|function| {
        &function.attr == "compile" && function.value.as_name_expr().is_some_and(|n| n.id == "re")
    })
}

struct BindingSearch {
    found: Bindings,
    depth: usize,
}

impl BindingSearch {
    fn assigned(&mut self, target: &Expr, value: &Expr) {
        let Some(name) = target.as_name_expr() else { return };
        if is_truth(value) {
            self.found.flags.insert(name.id.to_string());
        }
        if is_compilation(value) {
            self.found.patterns.insert(name.id.to_string());
        }
    }
}

impl<'a> Visitor<'a> for BindingSearch {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assignment) => {
                for target in &assignment.targets {
                    self.assigned(target, &assignment.value);
                }
            }
            Stmt::AnnAssign(assignment) => {
                if let Some(value) = &assignment.value {
                    self.assigned(&assignment.target, value);
                }
            }
            Stmt::FunctionDef(function) => {
                self.found.bound.insert(function.name.to_string());
            }
            Stmt::ClassDef(class) => {
                self.found.bound.insert(class.name.to_string());
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_deref().unwrap_or_default();
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                    if matches!(module, "typing" | "collections.abc" | "typing_extensions") {
                        self.found.types.insert(name);
                    } else if module != "collections" {
                        self.found.bound.insert(name);
                    }
                }
            }
            _ => {}
        }
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            walk_stmt(self, statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx.is_store() => {
                self.found.bound.insert(name.id.to_string());
            }
            Expr::Named(named) => self.assigned(&named.target, &named.value),
            _ => {}
        }
        if self.depth < DEPTH_LIMIT {
            self.depth += 1;
            walk_expr(self, expression);
            self.depth -= 1;
        }
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.found.bound.insert(parameter.name.to_string());
        walk_parameter(self, parameter);
    }
}
