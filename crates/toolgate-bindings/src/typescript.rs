//! TypeScript declarations.

use crate::{
    model::{Arena, Doc, Literal, Node, NodeId, Object, Property},
    module::{Module, ResultSource, ToolFunction},
    naming::{DeclaredNames, Objects, TypeNames},
    text::{Escape, identifier, indented, is_identifier, quoted},
};

const MAX_LINE: usize = 100;

/// The whole module.
pub(crate) fn render(module: &Module, used: &mut DeclaredNames) -> String {
    let names = TypeNames::choose(module, Objects::Inline, used);
    let printer = TypeScriptPrinter { arena: &module.arena, names: &names };
    let mut text = String::new();
    for (name, node) in &names.declared {
        let description = module.arena.description(*node);
        text.push_str(&comment(description, ""));
        let body = printer.body(*node, "");
        match module.arena.node(*node) {
            Node::Object(object) if !object.properties.is_empty() => {
                text.extend(["interface ", name, " ", &body, "\n"]);
            }
            _ => text.extend(["type ", name, " = ", &body, ";\n"]),
        }
    }
    for function in &module.functions {
        text.push_str(&printer.function(function));
    }
    text
}

struct TypeScriptPrinter<'m> {
    arena: &'m Arena,
    names: &'m TypeNames,
}

/// A property where it is declared.
#[derive(Debug, Default)]
struct ObjectMember {
    /// The comment above the property, with its indentation.
    comment: String,
    text: String,
    /// The comment after the property.
    note: String,
}

impl ObjectMember {
    fn is_short(&self) -> bool {
        self.comment.is_empty() && self.note.is_empty() && !self.text.contains('\n')
    }
}

/// How tightly an operator binds what is put beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Union,
    Intersection,
    Postfix,
}

impl TypeScriptPrinter<'_> {
    fn function(&self, function: &ToolFunction) -> String {
        let name = identifier(&function.name, is_keyword);
        let arguments = self.arguments(function);
        let mark = match function.origin {
            ResultSource::Declared => "",
            ResultSource::Inferred => "/* inferred */ ",
        };
        let result = self.at(function.output, "", Binding::Union);
        let mark = match self.lifted(function.output) {
            "" => mark.to_owned(),
            said => format!("/** {} */ {mark}", harmless(said)),
        };
        let comment = comment(&function.description, "");
        format!("{comment}declare function {name}({arguments}): Promise<{mark}{result}>;\n")
    }

    fn arguments(&self, function: &ToolFunction) -> String {
        let body = match self.arena.node(function.input) {
            Node::Recursive(definition) => self.arena.node(self.arena.body(*definition)),
            node => node,
        };
        let optional = match body {
            Node::Object(object) => object.properties.iter().all(|property| !property.required),
            _ => function.parameters.says_nothing(),
        };
        let mark = if optional { "?" } else { "" };
        let text = match self.arena.node(function.input) {
            Node::Object(Object { properties, rest: None }) if properties.is_empty() => {
                "{}".to_owned()
            }
            Node::Object(object) => self.object(object, ""),
            _ if function.parameters.says_nothing() => "{ [key: string]: unknown }".to_owned(),
            _ => self.at(function.input, "", Binding::Union),
        };
        format!("args{mark}: {text}")
    }

    /// A type as it is written where it is used.
    fn at(&self, id: NodeId, indent: &str, around: Binding) -> String {
        match self.names.of(self.arena, id) {
            Some(name) => name.to_owned(),
            None => self.bound(id, indent, around),
        }
    }

    /// A type as it is written where it is declared.
    fn body(&self, id: NodeId, indent: &str) -> String {
        self.bound(id, indent, Binding::Union)
    }

    fn bound(&self, id: NodeId, indent: &str, around: Binding) -> String {
        let (text, own) = match self.arena.node(id) {
            Node::Unknown => ("unknown".to_owned(), Binding::Postfix),
            Node::Cut => ("unknown /* … */".to_owned(), Binding::Postfix),
            Node::Never => ("never".to_owned(), Binding::Postfix),
            Node::Null => ("null".to_owned(), Binding::Postfix),
            Node::Boolean => ("boolean".to_owned(), Binding::Postfix),
            Node::Integer | Node::Number => ("number".to_owned(), Binding::Postfix),
            Node::String => ("string".to_owned(), Binding::Postfix),
            Node::Literal(literal) => (self::literal(literal), Binding::Postfix),
            Node::Array(item) => {
                (format!("{}[]", self.at(*item, indent, Binding::Postfix)), Binding::Postfix)
            }
            Node::Tuple { items, required, rest } => {
                (self.tuple(items, *required, *rest, indent), Binding::Postfix)
            }
            Node::Object(object) => (self.object(object, indent), Binding::Postfix),
            Node::Union(parts) => (self.union(parts, indent), Binding::Union),
            Node::Intersection { parts, .. } => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|part| self.at(*part, indent, Binding::Intersection))
                    .collect();
                (parts.join(" & "), Binding::Intersection)
            }
            // Only reached if a definition is nothing but another definition.
            Node::Recursive(_) => {
                (self.names.of(self.arena, id).unwrap_or("unknown").to_owned(), Binding::Postfix)
            }
        };
        if own < around { format!("({text})") } else { text }
    }

    fn union(&self, parts: &[NodeId], indent: &str) -> String {
        let mut options: Vec<String> = Vec::new();
        for part in parts {
            let text = self.at(*part, indent, Binding::Intersection);
            let description = self.arena.description(*part);
            let named = self.names.of(self.arena, *part).is_some();
            let option = if description.is_empty()
                || named
                || parts.len() == 2 && parts.contains(&Arena::NULL)
            {
                text
            } else {
                format!("/* {} */ {text}", harmless(&indented(description, indent)))
            };
            if !options.contains(&option) {
                options.push(option);
            }
        }
        options.join(" | ")
    }

    fn tuple(
        &self,
        items: &[NodeId],
        required: usize,
        rest: Option<NodeId>,
        indent: &str,
    ) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            parts.push(if index < required {
                self.at(*item, indent, Binding::Union)
            } else {
                format!("{}?", self.at(*item, indent, Binding::Postfix))
            });
        }
        if let Some(rest) = rest {
            parts.push(format!("...{}[]", self.at(rest, indent, Binding::Postfix)));
        }
        format!("[{}]", parts.join(", "))
    }

    fn object(&self, object: &Object, indent: &str) -> String {
        if object.properties.is_empty() {
            let value = object.rest.unwrap_or(Arena::UNKNOWN);
            return format!("{{ [key: string]: {} }}", self.at(value, indent, Binding::Union));
        }
        let inner = format!("{indent}  ");
        let mut members: Vec<ObjectMember> =
            object.properties.iter().map(|property| self.property(property, &inner)).collect();
        if let Some(rest) = object.rest {
            members.push(ObjectMember { text: self.rest(rest, &inner), ..ObjectMember::default() });
        }
        let width: usize = members.iter().map(|member| member.text.len() + 2).sum();
        if width <= MAX_LINE && members.iter().all(ObjectMember::is_short) {
            let members: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
            return format!("{{ {} }}", members.join("; "));
        }
        let mut text = "{\n".to_owned();
        for ObjectMember { comment, text: member, note } in members {
            text.extend([&comment, &inner, &member, ";", &note, "\n"]);
        }
        text.extend([indent, "}"]);
        text
    }

    fn property(&self, property: &Property, indent: &str) -> ObjectMember {
        let name = if is_identifier(&property.name) {
            property.name.clone()
        } else {
            quoted(&property.name, Escape::TypeScript)
        };
        let mark = if property.required { "" } else { "?" };
        let text = format!("{name}{mark}: {}", self.at(property.node, indent, Binding::Union));
        let said = match property.doc.text.as_str() {
            "" => self.lifted(property.node),
            said => said,
        };
        let notes = notes(&property.doc);
        let (comment, note) = match (said, notes.as_str()) {
            ("", "") => (String::new(), String::new()),
            ("", notes) => (String::new(), format!(" // {notes}")),
            (said, "") => (comment(said, indent), String::new()),
            (said, notes) => (comment(&format!("{said} ({notes})"), indent), String::new()),
        };
        ObjectMember { comment, text, note }
    }

    /// The other properties. Their type is written in a comment, because TypeScript requires the
    /// declared properties to match an index signature.
    fn rest(&self, rest: NodeId, indent: &str) -> String {
        let text = self.at(rest, indent, Binding::Union);
        match text.as_str() {
            "unknown" => "[key: string]: unknown".to_owned(),
            _ if text.contains("*/") || text.contains('\n') => {
                "[key: string]: unknown /* … */".to_owned()
            }
            _ => format!("[key: string]: unknown /* {text} */"),
        }
    }

    /// The description of a type without a name, which would otherwise be lost.
    fn lifted(&self, id: NodeId) -> &str {
        if self.names.of(self.arena, id).is_some() {
            return "";
        }
        match self.arena.node(id) {
            Node::Array(item) => self.lifted(*item),
            _ => self
                .arena
                .nullable(id)
                .map_or(self.arena.description(id), |inner| self.lifted(inner)),
        }
    }
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::String(text) => quoted(text, Escape::TypeScript),
        Literal::Number(number) => number.to_string(),
        Literal::Boolean(value) => value.to_string(),
    }
}

/// Notes that are not part of the description.
fn notes(doc: &Doc) -> String {
    let mut notes = doc.notes.clone();
    notes.extend(doc.default.as_ref().map(|default| format!("default {default}")));
    notes.join(", ")
}

fn comment(text: &str, indent: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{indent}/** {} */\n", harmless(&indented(text, indent)))
}

/// A text that cannot end the comment around it.
fn harmless(text: &str) -> String {
    text.replace("*/", "*\\/")
}

fn is_keyword(word: &str) -> bool {
    #[rustfmt::skip]
    const KEYWORDS: &[&str] = &[
        "arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger",
        "default", "delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally",
        "for", "function", "if", "implements", "import", "in", "instanceof", "interface", "let",
        "new", "null", "package", "private", "protected", "public", "return", "static", "super",
        "switch", "this", "throw", "true", "try", "typeof", "undefined", "var", "void", "while",
        "with", "yield",
    ];
    KEYWORDS.binary_search(&word).is_ok()
}
