//! Types of Python.

use std::collections::HashMap;

use ruff_python_ast::{
    Expr, ExprCall, Operator, Stmt, StmtClassDef,
    visitor::{Visitor, walk_expr, walk_stmt},
};
use ruff_text_size::Ranged;
use serde_json::{Value, json};

use super::{EXTRACT, Edit, MAX_DEPTH, ObjectType, any_of};
use crate::check::python::parse_script;

/// `None` if the script does not parse, or has a function `extract` of its own.
pub(super) fn edits(text: &str) -> Option<Vec<Edit>> {
    let parsed = parse_script(text).ok()?;
    let body = &parsed.syntax().body;
    let mut types = TypeReader::default();
    types.visit_body(body);
    if types.has_own_extract {
        return None;
    }
    let mut edits = Vec::new();
    for (call, awaited) in &types.calls {
        let Some(given) = call.arguments.find_argument_value("type", 1) else { continue };
        let Some(schema) = types.schema(given, 0) else { continue };
        edits.push(Edit { place: place(given), text: literal(&schema) });
        // An instance of a dataclass is made of what comes back.
        if let (Some(awaited), Expr::Name(name)) = (awaited, given)
            && types.classes.get(name.id.as_str()).is_some_and(|class| is_dataclass(class))
        {
            let around = place(*awaited);
            edits
                .push(Edit { place: around.start..around.start, text: format!("{}(**(", name.id) });
            edits.push(Edit { place: around.end..around.end, text: "))".to_owned() });
        }
    }
    Some(edits)
}

/// The classes of a script, and its calls of `extract`.
#[derive(Default)]
struct TypeReader<'a> {
    classes: HashMap<&'a str, &'a StmtClassDef>,
    /// Each call, and the `await` around it.
    calls: Vec<(&'a ExprCall, Option<&'a Expr>)>,
    has_own_extract: bool,
}

impl<'a> Visitor<'a> for TypeReader<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::ClassDef(class) => {
                self.classes.insert(class.name.as_str(), class);
            }
            Stmt::FunctionDef(function) => self.has_own_extract |= &function.name == EXTRACT,
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(awaits) => {
                if let Some(call) = extract_call(&awaits.value) {
                    self.calls.push((call, Some(expression)));
                    for argument in &call.arguments.args {
                        self.visit_expr(argument);
                    }
                    return;
                }
            }
            Expr::Name(name) if name.ctx.is_store() => self.has_own_extract |= name.id == EXTRACT,
            _ => {
                if let Some(call) = extract_call(expression) {
                    self.calls.push((call, None));
                }
            }
        }
        walk_expr(self, expression);
    }
}

impl TypeReader<'_> {
    /// The schema of a type; `None` for what is not a type, such as a schema itself.
    fn schema(&self, expression: &Expr, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match expression {
            Expr::NoneLiteral(_) => Some(json!({ "type": "null" })),
            Expr::Name(name) => self.named(&name.id, depth),
            Expr::Attribute(attribute) => self.named(&attribute.attr, depth),
            // The name of a class that may come later.
            Expr::StringLiteral(text) => {
                let name = text.value.to_str();
                self.classes.get(name).and_then(|class| self.class(class, depth))
            }
            Expr::BinOp(union) if union.op == Operator::BitOr => Some(any_of(vec![
                self.schema(&union.left, depth + 1)?,
                self.schema(&union.right, depth + 1)?,
            ])),
            Expr::Subscript(subscript) => {
                let of = type_name(&subscript.value)?;
                let inner: Vec<&Expr> = match &*subscript.slice {
                    Expr::Tuple(tuple) => tuple.elts.iter().collect(),
                    one => vec![one],
                };
                self.generic(of, &inner, depth + 1)
            }
            _ => None,
        }
    }

    fn named(&self, name: &str, depth: usize) -> Option<Value> {
        Some(match name {
            "str" => json!({ "type": "string" }),
            "int" => json!({ "type": "integer" }),
            "float" => json!({ "type": "number" }),
            "bool" => json!({ "type": "boolean" }),
            "dict" | "Dict" => json!({ "type": "object" }),
            "list" | "List" => json!({ "type": "array" }),
            "Any" => json!({}),
            _ => return self.classes.get(name).and_then(|class| self.class(class, depth)),
        })
    }

    fn generic(&self, of: &str, inner: &[&Expr], depth: usize) -> Option<Value> {
        let first = || self.schema(inner.first()?, depth);
        Some(match of {
            "list" | "List" | "Sequence" | "Iterable" | "set" | "Set" => {
                json!({ "type": "array", "items": first()? })
            }
            "dict" | "Dict" | "Mapping" => {
                let values = self.schema(inner.get(1)?, depth)?;
                json!({ "type": "object", "additionalProperties": values })
            }
            "Optional" => any_of(vec![first()?, json!({ "type": "null" })]),
            "Union" => {
                let all = inner.iter().map(|one| self.schema(one, depth));
                any_of(all.collect::<Option<Vec<_>>>()?)
            }
            "Literal" => {
                json!({ "enum": inner.iter().map(|one| value(one)).collect::<Option<Vec<_>>>()? })
            }
            "Annotated" | "Required" | "NotRequired" => first()?,
            _ => return None,
        })
    }

    /// The annotated names of a class and of those that it extends.
    fn class(&self, class: &StmtClassDef, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut object = ObjectType::default();
        let mut is_total = true;
        if let Some(arguments) = &class.arguments {
            for base in arguments.args.iter().filter_map(type_name) {
                if let Some(base) = self.classes.get(base) {
                    object.inherit(&self.class(base, depth + 1)?);
                }
            }
            let total = arguments.find_keyword("total").map(|keyword| &keyword.value);
            is_total = !matches!(total, Some(Expr::BooleanLiteral(total)) if !total.value);
        }
        for statement in &class.body {
            let Stmt::AnnAssign(field) = statement else { continue };
            let Expr::Name(name) = &*field.target else { continue };
            let marker = match &*field.annotation {
                Expr::Subscript(subscript) => type_name(&subscript.value),
                _ => None,
            };
            if marker == Some("ClassVar") {
                continue;
            }
            let is_required = field.value.is_none()
                && (is_total || marker == Some("Required"))
                && marker != Some("NotRequired");
            object.add(&name.id, self.schema(&field.annotation, depth + 1)?, is_required);
        }
        let mut schema = object.schema();
        if is_dataclass(class) {
            // Its constructor takes nothing else.
            schema["additionalProperties"] = false.into();
        }
        Some(schema)
    }
}

fn extract_call(expression: &Expr) -> Option<&ExprCall> {
    let Expr::Call(call) = expression else { return None };
    matches!(&*call.func, Expr::Name(name) if name.id == EXTRACT).then_some(call)
}

fn is_dataclass(class: &StmtClassDef) -> bool {
    class.decorator_list.iter().any(|decorator| {
        let decorator = match &decorator.expression {
            Expr::Call(call) => &call.func,
            name => name,
        };
        type_name(decorator) == Some("dataclass")
    })
}

/// The last part of a dotted name.
fn type_name(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(&name.id),
        Expr::Attribute(attribute) => Some(&attribute.attr),
        _ => None,
    }
}

/// A value of `Literal`.
fn value(expression: &Expr) -> Option<Value> {
    Some(match expression {
        Expr::StringLiteral(text) => text.value.to_str().into(),
        Expr::BooleanLiteral(literal) => literal.value.into(),
        Expr::NoneLiteral(_) => Value::Null,
        Expr::NumberLiteral(number) => number.value.as_int()?.as_i64()?.into(),
        _ => return None,
    })
}

fn place(node: &impl Ranged) -> std::ops::Range<usize> {
    node.start().to_usize()..node.end().to_usize()
}

/// JSON as an expression of Python.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
