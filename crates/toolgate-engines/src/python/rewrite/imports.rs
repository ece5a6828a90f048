//! Imports of modules that the prelude provides.

use ruff_python_ast::{
    Alias, Expr, ExprSubscript, Stmt, StmtImport, StmtImportFrom, visitor::Visitor,
};
use ruff_text_size::{Ranged, TextRange};

use super::{Node, Rewriter, walk};
use crate::python::{
    names::IMPLICIT_MODULES,
    prelude::{self, Extent},
};

impl<'a> Rewriter<'a> {
    /// Collects the names of modules that the prelude extends, before they are used.
    pub(super) fn find_modules(&mut self, body: &'a [Stmt]) {
        for name in implicit_modules(self.source) {
            self.modules.extend(prelude::module(name).map(|piece| (name.to_owned(), piece.name)));
        }
        walk(body, |node| {
            if let Node::Statement(Stmt::Import(import)) = node {
                for alias in &import.names {
                    let (wanted, bound) = import_names(alias);
                    let known = prelude::module(wanted).map(|piece| (bound.to_owned(), piece.name));
                    self.modules.extend(known);
                }
            }
            matches!(node, Node::Statement(_))
        });
    }

    /// `import a, b as c`.
    pub(super) fn import(&mut self, statement: &'a StmtImport) {
        let mut changed = false;
        let parts: Vec<String> = statement
            .names
            .iter()
            .map(|alias| {
                let Some(own) = self.own_import(alias) else {
                    return format!("import {}", self.text(alias));
                };
                changed = true;
                own
            })
            .collect();
        if changed {
            self.edits.replace(statement.range(), parts.join("; "));
        }
    }

    /// `from a import b, c as d`.
    pub(super) fn import_from(&mut self, statement: &'a StmtImportFrom) {
        let Some(module) = statement.module.as_deref() else { return };
        let Some(piece) = prelude::module(module) else { return };
        if statement.level > 0 || statement.names.iter().any(|alias| &alias.name == "*") {
            return;
        }
        let (own, native): (Vec<&Alias>, Vec<&Alias>) =
            statement.names.iter().partition(|alias| piece.provides(&alias.name));
        if own.is_empty() {
            return;
        }
        self.need(piece.name);
        let mut parts: Vec<String> = own
            .into_iter()
            .map(|alias| {
                let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                format!("{bound} = _tg_from({}, '{}')", piece.variable(), alias.name)
            })
            .collect();
        if !native.is_empty() {
            let names: Vec<&str> = native.into_iter().map(|alias| self.text(alias)).collect();
            parts.push(format!("from {module} import {}", names.join(", ")));
        }
        self.edits.replace(statement.range(), parts.join("; "));
    }

    fn own_import(&mut self, alias: &Alias) -> Option<String> {
        let (wanted, bound) = import_names(alias);
        let piece = prelude::module(wanted)?;
        match piece.extent {
            Extent::Whole => {
                self.need(piece.name);
                Some(format!("{bound} = {}", piece.variable()))
            }
            Extent::Part if wanted != alias.name.as_str() => Some(format!("import {wanted}")),
            Extent::Part => None,
        }
    }
}

/// The module that an import makes available, and the name that it binds: `import a.b` binds `a`,
/// `import a.b as c` binds `a.b`.
fn import_names(alias: &Alias) -> (&str, &str) {
    let whole = alias.name.as_str();
    let root = whole.split('.').next().unwrap_or(whole);
    alias.asname.as_ref().map_or((root, root), |name| (whole, name.as_str()))
}

/// The modules that a script uses without importing them, as models often do. A name that the
/// script binds is not included.
pub(in crate::python) fn implicit_modules(source: &str) -> Vec<&'static str> {
    let used = |name: &&&str| {
        source.contains(&format!("{name}."))
            && !source.contains(&format!("{name} ="))
            && !source.contains(&format!("{name}="))
    };
    IMPLICIT_MODULES.iter().filter(used).copied().collect()
}

/// Types that take parameters.
#[rustfmt::skip]
const GENERIC: &[&str] = &[
    "Counter", "OrderedDict", "defaultdict", "deque", "dict", "frozenset", "list", "set", "tuple",
    "type",
];

impl<'a> Rewriter<'a> {
    /// Rewrites `dict[str, int]`, `Optional[int]` and the like. Returns whether it was one.
    pub(super) fn parameterised(&mut self, expression: &'a Expr, of: &'a ExprSubscript) -> bool {
        if !of.ctx.is_load() {
            return false;
        }
        let name = match &*of.value {
            Expr::Name(name) => {
                let name = name.id.as_str();
                if !self.bindings.is_typing(name) {
                    let is_generic = self.classes.is_generic(name)
                        || (GENERIC.contains(&name) && self.bindings.is_built_in(name));
                    if is_generic {
                        self.edits.replace(TextRange::new(of.value.end(), expression.end()), "");
                    }
                    return is_generic;
                }
                name
            }
            Expr::Attribute(attribute) if self.is_module(&attribute.value, "typing") => {
                attribute.attr.as_str()
            }
            _ => return false,
        };
        let slice = &*of.slice;
        let plain = match name {
            "Union" | "Optional" => {
                self.edits.replace(TextRange::new(expression.start(), slice.start()), "(");
                self.visit_expr(slice);
                // The brackets may contain a tuple with a trailing comma.
                let several = slice.as_tuple_expr().is_some();
                let end = match name {
                    "Union" if several => ")",
                    "Union" => ",)",
                    _ => ", type(None))",
                };
                self.edits.replace(TextRange::new(slice.end(), expression.end()), end);
                return true;
            }
            "Dict" | "DefaultDict" | "Mapping" | "MutableMapping" => "dict",
            "List" => "list",
            "Tuple" => "tuple",
            "Set" => "set",
            "FrozenSet" => "frozenset",
            _ => "object",
        };
        self.edits.replace(expression.range(), plain);
        true
    }
}
