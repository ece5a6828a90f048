//! Python stubs.

use serde_json::Value;

use crate::{
    model::{Arena, Doc, Literal, Node, NodeId, Object, Property},
    module::{Module, ResultSource, ToolFunction},
    naming::{DeclaredNames, Objects, TypeNames},
    text::{Escape, identifier, indented, is_identifier, quoted},
};

/// The code that must precede the text of [`python`](crate::python) when it is executed.
pub const PYTHON_PREAMBLE: &str = "\
from __future__ import annotations
from typing import Any, Literal, Never, NotRequired, Required, TypeAlias, TypedDict, TypeVar
";

const MAX_LINE: usize = 100;

/// The whole module.
pub(crate) fn render(module: &Module, used: &mut DeclaredNames) -> String {
    let names = TypeNames::choose(module, Objects::Declared, used);
    let printer = PythonPrinter { arena: &module.arena, names: &names };
    let mut text = String::new();
    for (name, node) in &names.declared {
        text.push_str(&printer.declaration(name, *node));
    }
    for function in &module.functions {
        text.push_str(&printer.function(function));
    }
    text
}

struct PythonPrinter<'m> {
    arena: &'m Arena,
    names: &'m TypeNames,
}

impl PythonPrinter<'_> {
    fn declaration(&self, name: &str, node: NodeId) -> String {
        let object = match self.arena.node(node) {
            Node::Object(object) if !object.properties.is_empty() => object,
            // Quoted, because it may name a later declaration, or itself.
            _ => {
                return format!(
                    "{name}: TypeAlias = {}\n",
                    quoted(&self.body(node), Escape::Python)
                );
            }
        };
        let optional = object.properties.iter().filter(|property| !property.required).count();
        let total = optional * 2 <= object.properties.len();
        let is_plain = object
            .properties
            .iter()
            .all(|property| is_parameter(&property.name) && !property.name.starts_with("__"));
        let description = self.arena.description(node);
        if is_plain {
            self.class(name, object, total, description)
        } else {
            self.call(name, object, total, description)
        }
    }

    fn class(&self, name: &str, object: &Object, total: bool, description: &str) -> String {
        let base = if total { "TypedDict" } else { "TypedDict, total=False" };
        let mut text = format!("class {name}({base}):\n");
        if !description.is_empty() {
            text.extend(["    ", &docstring(description, "    "), "\n"]);
        }
        for property in &object.properties {
            let member = format!("    {}: {}", property.name, self.member(property, total));
            text.push_str(&commented(&member, &documentation(&property.doc), "    "));
        }
        text
    }

    /// A dictionary with keys that are no identifiers.
    fn call(&self, name: &str, object: &Object, total: bool, description: &str) -> String {
        let mut text = comments(description, "");
        text.extend([name, " = TypedDict(\"", name, "\", {\n"]);
        for property in &object.properties {
            let key = quoted(&property.name, Escape::Python);
            let value = quoted(&self.member(property, total), Escape::Python);
            let doc = documentation(&property.doc);
            text.push_str(&commented(&format!("    {key}: {value},"), &doc, "    "));
        }
        text.push_str(if total { "})\n" } else { "}, total=False)\n" });
        text
    }

    fn member(&self, property: &Property, total: bool) -> String {
        let kind = self.at(property.node);
        match (total, property.required) {
            (true, false) => format!("NotRequired[{kind}]"),
            (false, true) => format!("Required[{kind}]"),
            _ => kind,
        }
    }

    fn function(&self, function: &ToolFunction) -> String {
        let name = identifier(&function.name, is_keyword);
        let parameters = self.parameters(&function.parameters);
        let result = self.at(function.output);
        let mark = match function.origin {
            ResultSource::Declared => "",
            ResultSource::Inferred => "  # inferred",
        };
        let is_short = parameters.iter().all(|(_, doc)| doc.is_empty());
        let line: Vec<&str> = parameters.iter().map(|(parameter, _)| parameter.as_str()).collect();
        let mut text = format!("async def {name}({}) -> {result}:", line.join(", "));
        if !is_short || text.len() > MAX_LINE {
            text = format!("async def {name}(\n");
            for (parameter, doc) in &parameters {
                text.push_str(&commented(&format!("    {parameter},"), doc, "    "));
            }
            text.extend([") -> ", &result, ":"]);
        }
        if function.description.is_empty() {
            format!("{text} ...{mark}\n")
        } else {
            format!("{text}{mark}\n    {}\n", docstring(&function.description, "    "))
        }
    }

    /// The parameters with their descriptions.
    fn parameters(&self, object: &Object) -> Vec<(String, String)> {
        let mut parameters = Vec::new();
        // In Python a required parameter cannot follow an optional one, except after a `*`.
        let (mut has_optional, mut only_by_name, mut others) = (false, false, Vec::new());
        let mut skipped = false;
        for property in &object.properties {
            if !is_parameter(&property.name) {
                skipped = true;
                others.push(property);
                continue;
            }
            if !only_by_name && (skipped || (has_optional && property.required)) {
                only_by_name = true;
                parameters.push(("*".to_owned(), String::new()));
            }
            has_optional |= !property.required;
            parameters.push(self.parameter(property));
        }
        if object.rest.is_some() || !others.is_empty() {
            parameters.push(self.others(object, &others));
        }
        parameters
    }

    fn parameter(&self, property: &Property) -> (String, String) {
        let kind = self.at(property.node);
        let mut doc = property.doc.clone();
        let text = if property.required {
            doc.default = None;
            format!("{}: {kind}", property.name)
        } else {
            let default = doc.default.take().map(|default| literal_default(&default));
            let nullable = self.arena.nullable(property.node).is_some();
            let default = default.unwrap_or(if nullable { "None" } else { "..." }.to_owned());
            format!("{}: {kind} = {default}", property.name)
        };
        (text, documentation(&doc))
    }

    /// The parameters that can only be passed as `**{"user-id": 1}`.
    fn others(&self, object: &Object, others: &[&Property]) -> (String, String) {
        let mut name = "others".to_owned();
        while object.properties.iter().any(|property| property.name == name) {
            name.push('_');
        }
        let rest = object.rest.map_or("Any".to_owned(), |rest| self.at(rest));
        let Some(first) = others.first() else {
            return (format!("**{name}: {rest}"), String::new());
        };
        let mut doc = format!("pass as **{{{}: ...}}:", quoted(&first.name, Escape::Python));
        for property in others {
            let mark = if property.required { "" } else { " = ..." };
            let kind = self.at(property.node);
            doc.extend(["\n", &quoted(&property.name, Escape::Python), ": ", &kind, mark]);
            let text = documentation(&property.doc);
            if !text.is_empty() {
                doc.extend(["  # ", &text.replace('\n', " ")]);
            }
        }
        (format!("**{name}: Any"), doc)
    }

    fn at(&self, id: NodeId) -> String {
        match self.names.of(self.arena, id) {
            Some(name) => name.to_owned(),
            None => self.body(id),
        }
    }

    fn body(&self, id: NodeId) -> String {
        match self.arena.node(id) {
            Node::Unknown | Node::Cut => "Any".to_owned(),
            Node::Never => "Never".to_owned(),
            Node::Null => "None".to_owned(),
            Node::Boolean => "bool".to_owned(),
            Node::Integer => "int".to_owned(),
            Node::Number => "float".to_owned(),
            Node::String => "str".to_owned(),
            Node::Literal(literal) => literals(&[literal]),
            Node::Array(item) => match self.at(*item).as_str() {
                "Any" => "list".to_owned(),
                item => format!("list[{item}]"),
            },
            Node::Tuple { items, required, rest } => self.tuple(items, *required, *rest),
            Node::Object(object) => {
                match object.rest.map_or("Any".to_owned(), |rest| self.at(rest)).as_str() {
                    "Any" => "dict".to_owned(),
                    value => format!("dict[str, {value}]"),
                }
            }
            Node::Union(parts) => self.union(parts),
            Node::Intersection { parts, outline } => match (outline, parts.first()) {
                (Some(one), _) | (None, Some(one)) => self.at(*one),
                (None, None) => "Any".to_owned(),
            },
            Node::Recursive(_) => self.names.of(self.arena, id).unwrap_or("Any").to_owned(),
        }
    }

    fn union(&self, parts: &[NodeId]) -> String {
        let mut values: Vec<&Literal> = Vec::new();
        let mut options: Vec<String> = Vec::new();
        for part in parts {
            match self.arena.node(*part) {
                Node::Literal(literal) => values.push(literal),
                _ => options.push(self.at(*part)),
            }
        }
        if !values.is_empty() {
            options.insert(0, literals(&values));
        }
        let mut distinct: Vec<String> = Vec::new();
        for option in options {
            if !distinct.contains(&option) {
                distinct.push(option);
            }
        }
        distinct.join(" | ")
    }

    fn tuple(&self, items: &[NodeId], required: usize, rest: Option<NodeId>) -> String {
        let parts: Vec<String> = items.iter().map(|item| self.at(*item)).collect();
        match rest {
            // A tuple of varying length has no better type.
            _ if required < items.len() || items.is_empty() => "list".to_owned(),
            None => format!("tuple[{}]", parts.join(", ")),
            Some(rest) => format!("tuple[{}, *tuple[{}, ...]]", parts.join(", "), self.at(rest)),
        }
    }
}

/// `Literal[…]`, with `float` for the numbers that it cannot contain.
fn literals(values: &[&Literal]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut has_float = false;
    for value in values {
        match value {
            Literal::String(text) => texts.push(quoted(text, Escape::Python)),
            Literal::Boolean(value) => texts.push(if *value { "True" } else { "False" }.to_owned()),
            Literal::Number(number) if number.is_f64() => has_float = true,
            Literal::Number(number) => texts.push(number.to_string()),
        }
    }
    match (texts.is_empty(), has_float) {
        (true, _) => "float".to_owned(),
        (false, true) => format!("Literal[{}] | float", texts.join(", ")),
        (false, false) => format!("Literal[{}]", texts.join(", ")),
    }
}

/// A default value in Python syntax.
fn literal_default(json: &str) -> String {
    fn python(value: &Value) -> Option<String> {
        Some(match value {
            Value::Null => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => quoted(text, Escape::Python),
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(python).collect();
                format!("[{}]", items?.join(", "))
            }
            Value::Object(members) if members.is_empty() => "{}".to_owned(),
            Value::Object(_) => return None,
        })
    }
    serde_json::from_str(json).ok().and_then(|value| python(&value)).unwrap_or("...".to_owned())
}

fn documentation(doc: &Doc) -> String {
    let mut notes = doc.notes.clone();
    let default = doc.default.as_deref().map(literal_default);
    notes.extend(default.map(|default| format!("default {default}")));
    match (doc.text.as_str(), notes.join(", ")) {
        ("", notes) => notes,
        (text, notes) if notes.is_empty() => text.to_owned(),
        (text, notes) => format!("{text} ({notes})"),
    }
}

/// A line with its documentation after it, or above it if that has several lines.
fn commented(line: &str, doc: &str, indent: &str) -> String {
    match doc {
        "" => format!("{line}\n"),
        _ if doc.contains('\n') => format!("{}{line}\n", comments(doc, indent)),
        _ => format!("{line}  # {doc}\n"),
    }
}

fn comments(text: &str, indent: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { String::new() } else { format!("{indent}# {line}\n") })
        .collect()
}

fn docstring(text: &str, indent: &str) -> String {
    let mut safe = text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    if safe.ends_with('"') {
        safe.pop();
        safe.push_str("\\\"");
    }
    format!("\"\"\"{}\"\"\"", indented(&safe, indent))
}

/// Whether a property can be a parameter.
pub(crate) fn is_parameter(name: &str) -> bool {
    is_identifier(name) && !is_keyword(name) && name != "__debug__"
}

fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
        "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global",
        "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
        "try", "while", "with", "yield",
    ];
    KEYWORDS.binary_search(&word).is_ok()
}
