//! Reads what a server declares about a result as a value that is known only at run time.

use std::rc::Rc;

use serde_json::{Map, Value, value::RawValue};

use super::literal::{Literal, LiteralEntry, LiteralKind, MAX_ALTERNATIVES, NOWHERE, Origin};
use crate::wraps_result;

/// The depth to which a schema is read. Deeper values are unknown.
const MAX_DEPTH: usize = 8;
/// The number of schemas that are read for one tool.
const MAX_SCHEMAS: usize = 500;
/// The number of values of an enumeration that are told apart.
const MAX_VALUES: usize = 20;

/// The result of a tool. It has an origin even if nothing is declared.
pub(super) fn result(tool: &str, schema: Option<&RawValue>) -> Literal {
    let origin = Origin { tool: tool.into(), path: String::new() };
    let schema = schema.and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok());
    let mut literal = match &schema {
        Some(root) => {
            let mut reader = ResultReader { root, left: MAX_SCHEMAS };
            let inner = if wraps_result(root) {
                root.get("properties").and_then(|properties| properties.get("result"))
            } else {
                Some(root)
            };
            inner.map_or(Literal::unknown(NOWHERE), |inner| reader.read(inner, &origin, 0))
        }
        None => Literal::unknown(NOWHERE),
    };
    if literal.kind == LiteralKind::Unknown {
        literal.origin = schema.is_none().then(|| Rc::new(origin));
    }
    literal
}

struct ResultReader<'v> {
    root: &'v Value,
    left: usize,
}

/// Keywords with which a schema says more than its type and its parts.
const COMBINING: &[&str] =
    &["allOf", "not", "if", "then", "else", "dependentSchemas", "$dynamicRef"];

impl ResultReader<'_> {
    fn read(&mut self, schema: &Value, origin: &Origin, depth: usize) -> Literal {
        let unknown = Literal::unknown(NOWHERE);
        let (Some(keywords), Some(left)) = (schema.as_object(), self.left.checked_sub(1)) else {
            return unknown;
        };
        self.left = left;
        if depth > MAX_DEPTH || COMBINING.iter().any(|keyword| keywords.contains_key(*keyword)) {
            return unknown;
        }
        if let Some(reference) = keywords.get("$ref") {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
            let target =
                pointer.filter(|_| keywords.len() <= 3).and_then(|it| self.root.pointer(it));
            return match target.cloned() {
                Some(target) => self.read(&target, origin, depth + 1),
                None => unknown,
            };
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = keywords.get(keyword).and_then(Value::as_array) {
                // With parts of its own it is more than the choice.
                if keywords.contains_key("properties") {
                    return unknown;
                }
                let all = branches.iter().map(|branch| self.read(branch, origin, depth + 1));
                return one_of(all.collect());
            }
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array)
            && values.len() <= MAX_VALUES
        {
            return one_of(values.iter().map(|value| with_origin(exact(value), origin)).collect());
        }
        if let Some(value) = keywords.get("const") {
            return with_origin(exact(value), origin);
        }
        let types: Vec<&str> = match keywords.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ if keywords.contains_key("properties") => vec!["object"],
            _ => return unknown,
        };
        let all = types.iter().map(|name| self.of_type(name, keywords, origin, depth)).collect();
        one_of(all)
    }

    fn of_type(
        &mut self,
        name: &str,
        keywords: &Map<String, Value>,
        origin: &Origin,
        depth: usize,
    ) -> Literal {
        let kind = match name {
            "string" => LiteralKind::Text(None),
            "number" | "integer" => LiteralKind::SomeNumber,
            "boolean" => LiteralKind::Boolean(None),
            "null" => LiteralKind::Null,
            "array" => {
                let part = Origin { path: format!("{}[]", origin.path), ..origin.clone() };
                let item = match keywords.get("items") {
                    Some(items) if !keywords.contains_key("prefixItems") => {
                        self.read(items, &part, depth + 1)
                    }
                    _ => Literal::unknown(NOWHERE),
                };
                LiteralKind::ListOf(Rc::new(item))
            }
            "object" => return self.object(keywords, origin, depth),
            _ => return Literal::unknown(NOWHERE),
        };
        with_origin(kind, origin)
    }

    fn object(&mut self, keywords: &Map<String, Value>, origin: &Origin, depth: usize) -> Literal {
        let none = Map::new();
        let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let additional = keywords.get("additionalProperties");
        let is_open = keywords.contains_key("patternProperties")
            || keywords.contains_key("unevaluatedProperties")
            || properties.is_empty()
            || !matches!(additional, None | Some(Value::Bool(false)));
        let required: Vec<&str> = keywords
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut entries = Vec::with_capacity(properties.len());
        for (name, schema) in properties {
            let part = Origin { path: format!("{}.{name}", origin.path), ..origin.clone() };
            let mut value = self.read(schema, &part, depth + 1);
            if !required.contains(&name.as_str()) && value.kind != LiteralKind::Unknown {
                value = one_of(vec![Literal::new(NOWHERE, LiteralKind::Undefined), value]);
            }
            entries.push(LiteralEntry { key: name.clone(), offset: NOWHERE, value });
        }
        let kind = LiteralKind::object(entries, !is_open && additional.is_some());
        if is_open { Literal::new(NOWHERE, kind) } else { with_origin(kind, origin) }
    }
}

fn with_origin(kind: LiteralKind, origin: &Origin) -> Literal {
    Literal { offset: NOWHERE, kind, origin: Some(Rc::new(origin.clone())) }
}

/// One of several values; unknown if one of them is.
pub(super) fn one_of(all: Vec<Literal>) -> Literal {
    let mut flat: Vec<Literal> = Vec::with_capacity(all.len());
    for one in all {
        match &one.kind {
            LiteralKind::Unknown => return Literal::unknown(NOWHERE),
            LiteralKind::OneOf(inner) => flat.extend(inner.iter().cloned()),
            _ => flat.push(one),
        }
    }
    match flat.len() {
        0 => Literal::unknown(NOWHERE),
        count if count > MAX_ALTERNATIVES => Literal::unknown(NOWHERE),
        1 => flat.swap_remove(0),
        _ => Literal::new(NOWHERE, LiteralKind::OneOf(flat.into())),
    }
}

/// A value of an enumeration.
fn exact(value: &Value) -> LiteralKind {
    match value {
        Value::Null => LiteralKind::Null,
        Value::Bool(value) => LiteralKind::Boolean(Some(*value)),
        Value::Number(number) => {
            number.as_f64().map_or(LiteralKind::SomeNumber, LiteralKind::number)
        }
        Value::String(text) => LiteralKind::Text(Some(text.clone())),
        Value::Array(_) | Value::Object(_) => LiteralKind::Unknown,
    }
}
