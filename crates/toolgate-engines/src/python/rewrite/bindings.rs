//! The meaning of a script's names, as far as the rewriter needs it.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt};

use super::{Node, walk};

/// Methods of strings that return a boolean.
#[rustfmt::skip]
const ANSWERING: &[&str] = &[
    "endswith", "isalnum", "isalpha", "isdigit", "islower", "isspace", "issubset", "issuperset",
    "isupper", "startswith",
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
    /// Names and attributes that are set to a list somewhere.
    lists: BTreeSet<String>,
    /// Names that are imported from `typing` and similar modules.
    types: BTreeSet<String>,
}

/// Collects the names of a script.
pub(super) fn collect(body: &[Stmt]) -> Bindings {
    let mut found = Bindings::default();
    walk(body, |node| {
        found.add(node);
        true
    });
    found
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

    /// Whether an expression is set to a list somewhere.
    pub(super) fn may_be_list(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => self.lists.contains(name.id.as_str()),
            Expr::Attribute(attribute) => self.lists.contains(attribute.attr.as_str()),
            _ => false,
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

/// Whether an expression is certainly a list.
fn is_list(expression: &Expr) -> bool {
    match expression {
        Expr::List(_) | Expr::ListComp(_) => true,
        Expr::Call(call) => {
            let name = call.func.as_name_expr().map(|name| name.id.as_str());
            matches!(name, Some("list" | "sorted"))
        }
        Expr::BinOp(operation) => is_list(&operation.left),
        _ => false,
    }
}

fn is_compilation(expression: &Expr) -> bool {
    let function = expression.as_call_expr().and_then(|call| call.func.as_attribute_expr());
    function.is_some_and(|function| {
        &function.attr == "compile" && function.value.as_name_expr().is_some_and(|n| n.id == "re")
    })
}

impl Bindings {
    fn add(&mut self, node: Node<'_>) {
        match node {
            Node::Statement(Stmt::Assign(assignment)) => {
                for target in &assignment.targets {
                    self.assigned(target, &assignment.value);
                }
            }
            Node::Statement(Stmt::AnnAssign(assignment)) => {
                if let Some(value) = &assignment.value {
                    self.assigned(&assignment.target, value);
                }
            }
            Node::Statement(Stmt::FunctionDef(function)) => self.bind(&function.name),
            Node::Statement(Stmt::ClassDef(class)) => self.bind(&class.name),
            Node::Statement(Stmt::ImportFrom(import)) => {
                let module = import.module.as_deref().unwrap_or_default();
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    if matches!(module, "typing" | "collections.abc" | "typing_extensions") {
                        self.types.insert(name.to_string());
                    } else if module != "collections" {
                        self.bind(name);
                    }
                }
            }
            Node::Expression(Expr::Name(name)) if name.ctx.is_store() => self.bind(&name.id),
            Node::Expression(Expr::Named(named)) => self.assigned(&named.target, &named.value),
            Node::Parameter(parameter) => self.bind(&parameter.name),
            _ => {}
        }
    }

    fn bind(&mut self, name: &str) {
        self.bound.insert(name.to_owned());
    }

    fn assigned(&mut self, target: &Expr, value: &Expr) {
        let name = match target {
            Expr::Name(name) => Some(name.id.as_str()),
            Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
            _ => None,
        };
        if let Some(name) = name.filter(|_| is_list(value)) {
            self.lists.insert(name.to_owned());
        }
        let Some(name) = target.as_name_expr() else { return };
        if is_truth(value) {
            self.flags.insert(name.id.to_string());
        }
        if is_compilation(value) {
            self.patterns.insert(name.id.to_string());
        }
    }
}
