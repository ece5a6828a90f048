//! Private names: `self.__x` in a class `A` is `self._A__x`.
//!
//! They are changed in the text before the rest of the rewriter reads it, because that copies parts
//! of the text.

use ruff_python_ast::{
    Alias, ExceptHandler, Expr, Identifier, Keyword, Parameter, Stmt,
    visitor::{
        Visitor, walk_alias, walk_except_handler, walk_expr, walk_keyword, walk_parameter,
        walk_stmt,
    },
};
use ruff_python_parser::parse_module;
use ruff_text_size::TextRange;

use super::{
    DEPTH_LIMIT,
    edits::{Changed, Edits},
};

/// The script with the long forms of its private names, if it has such names in classes.
pub(super) fn named_in_full(source: &str) -> Option<Changed> {
    if !source.contains("class ") || !mentions_private(source) {
        return None;
    }
    // A syntax error is reported by who parses the script next.
    let parsed = parse_module(source).ok()?;
    let mut names = Names { class: None, edits: Edits::default(), count: 0, depth: 0 };
    names.visit_body(&parsed.syntax().body);
    (names.count > 0).then(|| names.edits.apply(source))
}

fn mentions_private(source: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    source.split(|c| !is_part(c)).any(is_private)
}

fn is_private(name: &str) -> bool {
    name.len() > 2 && name.starts_with("__") && !name.ends_with("__")
}

struct Names {
    /// The class around, without the underscores before its name.
    class: Option<String>,
    edits: Edits,
    count: usize,
    depth: usize,
}

impl Names {
    fn name(&mut self, name: &str, range: TextRange) {
        if let Some(class) = &self.class
            && is_private(name)
        {
            self.edits.replace(range, format!("_{class}{name}"));
            self.count += 1;
        }
    }

    fn identifier(&mut self, identifier: &Identifier) {
        self.name(identifier.as_str(), identifier.range);
    }
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if self.depth >= DEPTH_LIMIT {
            return;
        }
        self.depth += 1;
        if let Stmt::ClassDef(class) = statement {
            self.identifier(&class.name);
            for decorator in &class.decorator_list {
                self.visit_decorator(decorator);
            }
            if let Some(arguments) = &class.arguments {
                self.visit_arguments(arguments);
            }
            // A class of underscores alone has no private names.
            let name = class.name.trim_start_matches('_');
            let own = (!name.is_empty()).then(|| name.to_owned());
            let around = std::mem::replace(&mut self.class, own);
            self.visit_body(&class.body);
            self.class = around;
        } else {
            match statement {
                Stmt::FunctionDef(function) => self.identifier(&function.name),
                Stmt::Global(global) => global.names.iter().for_each(|it| self.identifier(it)),
                Stmt::Nonlocal(nonlocal) => {
                    nonlocal.names.iter().for_each(|it| self.identifier(it));
                }
                _ => {}
            }
            walk_stmt(self, statement);
        }
        self.depth -= 1;
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.depth >= DEPTH_LIMIT {
            return;
        }
        self.depth += 1;
        match expression {
            Expr::Name(name) => self.name(&name.id, name.range),
            Expr::Attribute(attribute) => self.identifier(&attribute.attr),
            _ => {}
        }
        walk_expr(self, expression);
        self.depth -= 1;
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.identifier(&parameter.name);
        walk_parameter(self, parameter);
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        if let Some(name) = &keyword.arg {
            self.identifier(name);
        }
        walk_keyword(self, keyword);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        self.identifier(alias.asname.as_ref().unwrap_or(&alias.name));
        walk_alias(self, alias);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.identifier(name);
        }
        walk_except_handler(self, handler);
    }
}
