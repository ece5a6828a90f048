//! Types as values: what is behind an alias, a cast or `isinstance`.
//!
//! Monty's types take no parameters. They lose them, and a union is a tuple, which is what
//! `isinstance` takes.

use ruff_python_ast::{Expr, ExprSubscript, visitor::Visitor};
use ruff_text_size::{Ranged, TextRange};

use super::Rewriter;

/// Types that take parameters.
const GENERIC: &[&str] = &[
    "Counter",
    "OrderedDict",
    "defaultdict",
    "deque",
    "dict",
    "frozenset",
    "list",
    "set",
    "tuple",
    "type",
];

impl<'a> Rewriter<'a> {
    /// `dict[str, int]`, `Optional[int]` and the like. Says whether it was one.
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
                // What is in the brackets may be a tuple of several, with a comma at its end.
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
