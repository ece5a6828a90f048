//! Data classes with `field()`.
//!
//! Monty's data classes take plain defaults only. One that uses `field` gets its methods written
//! out here, and is no data class to Monty then.

use ruff_python_ast::{Expr, Stmt, StmtAnnAssign, StmtClassDef};
use ruff_text_size::Ranged;

use super::Rewriter;

/// What stands for an argument that was not given.
const MISSING: &str = "_tg_missing";

impl<'a> Rewriter<'a> {
    /// Writes out the methods of a data class, if it has fields that Monty would refuse.
    pub(super) fn record(&mut self, class: &'a StmtClassDef) {
        let fields: Vec<&StmtAnnAssign> = class
            .body
            .iter()
            .filter_map(|member| match member {
                Stmt::AnnAssign(field) if field.target.is_name_expr() => Some(field),
                _ => None,
            })
            .collect();
        if !fields.iter().any(|field| field_call(field).is_some()) {
            return;
        }
        self.need("<records>");
        for decorator in &class.decorator_list {
            if self.text(decorator).contains("dataclass") {
                self.edits.replace(decorator.range(), "");
            }
        }
        let mut parameters = String::new();
        let mut statements = Vec::new();
        let mut names = Vec::new();
        for field in &fields {
            let name = self.text(&*field.target).to_owned();
            let default = self.default(field);
            parameters.push_str(", ");
            parameters.push_str(&name);
            statements.push(match &default {
                Some(default) => {
                    parameters.push('=');
                    parameters.push_str(MISSING);
                    format!("self.{name} = {default} if {name} is {MISSING} else {name}")
                }
                None => format!("self.{name} = {name}"),
            });
            if field_call(field).is_some() {
                self.edits.replace(field.range(), format!("{name} = None"));
            }
            names.push(format!("'{name}'"));
        }
        let has = |wanted: &str| {
            class.body.iter().any(|m| m.as_function_def_stmt().is_some_and(|f| &f.name == wanted))
        };
        if has("__post_init__") {
            statements.push("self.__post_init__()".to_owned());
        }
        let names = names.join(", ");
        self.append(
            &class.body,
            &format!("def __init__(self{parameters}): {}", statements.join("; ")),
        );
        if !has("__repr__") {
            self.append(
                &class.body,
                &format!(
                    "def __repr__(self): return _tg_record(self, '{}', [{names}])",
                    class.name
                ),
            );
        }
        if !has("__eq__") {
            self.append(
                &class.body,
                &format!("def __eq__(self, other): return _tg_same(self, other, [{names}])"),
            );
        }
        self.append(&class.body, &format!("__dataclass_fields__ = [{names}]"));
    }

    fn default(&self, field: &StmtAnnAssign) -> Option<String> {
        let value = field.value.as_deref()?;
        let Some(call) = field_call(field) else { return Some(self.text(value).to_owned()) };
        call.arguments.keywords.iter().find_map(|keyword| {
            let value = self.text(&keyword.value);
            match keyword.arg.as_deref()? {
                "default" => Some(value.to_owned()),
                "default_factory" => Some(format!("({value})()")),
                _ => None,
            }
        })
    }
}

fn field_call(field: &StmtAnnAssign) -> Option<&ruff_python_ast::ExprCall> {
    let call = field.value.as_deref()?.as_call_expr()?;
    let is_field = match &*call.func {
        Expr::Name(name) => name.id == "field",
        Expr::Attribute(attribute) => &attribute.attr == "field",
        _ => false,
    };
    is_field.then_some(call)
}
