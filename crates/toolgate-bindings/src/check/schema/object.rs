//! Checks properties: missing, unknown and misspelt ones.

use serde_json::{Map, Value};

use super::{GivenValue, SchemaChecker, Violation, list};
use crate::check::{
    CheckSeverity, Language,
    literal::LiteralEntry,
    lookup::takes_positions,
    wording::{cut, nearest, python_arguments, quoted_list},
};

/// An object literal.
pub(super) struct ObjectLiteral<'l> {
    pub(super) given: &'l GivenValue<'l>,
    pub(super) entries: &'l [LiteralEntry],
    pub(super) complete: bool,
}

/// The largest number of missing or unknown names that are listed.
const SHOWN_NAMES: usize = 12;
/// The largest number of unknown names that are checked.
const MAX_UNKNOWN: usize = 100;

/// Keywords of a schema that takes, or may take, names which it does not list itself.
#[rustfmt::skip]
const OPENING: &[&str] = &[
    "$dynamicRef", "$ref", "allOf", "anyOf", "dependencies", "dependentSchemas", "if",
    "minProperties", "oneOf", "propertyNames", "unevaluatedProperties",
];

impl ObjectLiteral<'_> {
    fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }
}

impl SchemaChecker<'_> {
    pub(super) fn check_object(
        &self,
        schema: &Value,
        keywords: &Map<String, Value>,
        object: &ObjectLiteral<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        let none = Map::new();
        let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> =
            list(keywords, "required").iter().filter_map(Value::as_str).collect();
        let patterns = keywords.get("patternProperties").is_some();
        let additional = keywords.get("additionalProperties");
        let mut unknown: Vec<&LiteralEntry> = Vec::new();
        for entry in object.entries {
            let inner = object.given.entry(entry, required.contains(&entry.key.as_str()));
            if let Some(property) = properties.get(&entry.key) {
                self.walk(property, &inner, depth + 1, out);
            } else if patterns {
                // The broker decides whether a pattern accepts the key.
            } else if let Some(schema @ Value::Object(_)) = additional {
                self.walk(schema, &inner, depth + 1, out);
            } else if !entry.value.kind.may_be_undefined() {
                unknown.push(entry);
            }
        }
        let missing: Vec<&str> =
            required.iter().copied().filter(|name| object.complete && !object.has(name)).collect();
        // Comparing names is the most expensive part.
        unknown.truncate(MAX_UNKNOWN);
        let comparisons = unknown.len().min(SHOWN_NAMES) * properties.len();
        if !self.budget.take(comparisons) {
            return;
        }
        let unknown_entries =
            UnknownEntries { missing: &missing, properties, object, language: self.language };
        let explained = match additional {
            Some(Value::Bool(false)) => unknown_entries.report(&unknown, true, out),
            None if !properties.is_empty() && !unknown.is_empty() => {
                let known = self.known(schema, 0);
                unknown.retain(|entry| !known.contains(&entry.key.as_str()));
                let is_refused = |entry: &&LiteralEntry| {
                    std::ptr::eq(schema, self.root)
                        && self.named.contains(&entry.key)
                        && !OPENING.iter().any(|keyword| keywords.contains_key(*keyword))
                };
                let (refused, others): (Vec<_>, Vec<_>) = unknown.into_iter().partition(is_refused);
                let mut explained = unknown_entries.report(&refused, true, out);
                explained.extend(unknown_entries.report(&others, false, out));
                explained
            }
            _ => Vec::new(),
        };
        let missing: Vec<&str> =
            missing.iter().copied().filter(|name| !explained.contains(name)).collect();
        if !missing.is_empty() {
            let shown = &missing[..missing.len().min(SHOWN_NAMES)];
            let message = format!("{} needs {}", object.given, quoted_list(shown, "and"));
            let hint = self.usage(object.given, properties, &required);
            out.push(object.given.violation(message, hint));
        }
    }

    /// The names of the properties in all parts of a schema.
    fn known<'v>(&'v self, schema: &'v Value, depth: usize) -> Vec<&'v str> {
        let Some(keywords) = schema.as_object().filter(|_| depth < 8 && self.may_go_on(depth))
        else {
            return Vec::new();
        };
        let mut names: Vec<&str> = Vec::new();
        for keyword in ["properties", "dependentSchemas", "dependentRequired", "dependencies"] {
            let properties = keywords.get(keyword).and_then(Value::as_object);
            names.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|part| list(keywords, part));
        let single = ["if", "then", "else"].into_iter().filter_map(|part| keywords.get(part));
        for part in parts.chain(single) {
            names.extend(self.known(part, depth + 1));
        }
        let reference = keywords.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|pointer| self.resolve(pointer)) {
            names.extend(self.known(target, depth + 1));
        }
        names
    }

    /// How to call the tool, if the value is that of all arguments.
    fn usage(
        &self,
        given: &GivenValue<'_>,
        properties: &Map<String, Value>,
        required: &[&str],
    ) -> Option<String> {
        let tool = given.tool()?;
        let is_required = |name: &str| required.contains(&name);
        let names: Vec<&str> = properties.keys().take(SHOWN_NAMES).map(String::as_str).collect();
        let show = |name: &str| match (self.language, is_required(name)) {
            (_, true) => cut(name),
            (Language::TypeScript, false) => format!("{}?", cut(name)),
            (Language::Python, false) => format!("{}=…", cut(name)),
        };
        let mut parts: Vec<String> = match self.language {
            Language::TypeScript => names.into_iter().map(show).collect(),
            Language::Python => python_arguments(&names, show),
        };
        if parts.is_empty() {
            return None;
        }
        if properties.len() > SHOWN_NAMES {
            parts.push("…".to_owned());
        }
        let parts = parts.join(", ");
        Some(match self.language {
            Language::TypeScript if !takes_positions(tool) => {
                format!("call it as `{tool}({{ {parts} }})`")
            }
            Language::TypeScript | Language::Python => format!("call it as `{tool}({parts})`"),
        })
    }
}

/// Reports entries that are not among the properties.
struct UnknownEntries<'a> {
    missing: &'a [&'a str],
    properties: &'a Map<String, Value>,
    object: &'a ObjectLiteral<'a>,
    language: Language,
}

impl<'a> UnknownEntries<'a> {
    /// Reports entries that are unknown in a closed object, or that look like one of the properties
    /// of an open object. Returns the missing names that were probably meant.
    fn report(
        &self,
        entries: &[&LiteralEntry],
        is_closed: bool,
        out: &mut Vec<Violation>,
    ) -> Vec<&'a str> {
        let mut explained = Vec::new();
        for entry in entries.iter().take(SHOWN_NAMES) {
            let missing = nearest(&entry.key, self.missing.iter().copied());
            explained.extend(missing);
            let hint = match missing.or_else(|| self.meant(entry)) {
                Some(meant) => {
                    let is_python = self.language == Language::Python;
                    let is_parameter = self.object.given.tool().is_some();
                    let shown = python_arguments(&[meant], cut);
                    match shown.first() {
                        Some(shown) if is_python && is_parameter => {
                            format!("did you mean `{shown}`?")
                        }
                        _ => format!("did you mean `{}`?", cut(meant)),
                    }
                }
                None if !is_closed => continue,
                None if self.properties.is_empty() => "it takes none".to_owned(),
                None => {
                    let names: Vec<&String> = self.properties.keys().take(SHOWN_NAMES).collect();
                    let more = if self.properties.len() > SHOWN_NAMES { " …" } else { "" };
                    format!("it takes {}{more}", quoted_list(&names, "and"))
                }
            };
            let mut violation = Violation::error(entry.offset, self.no_such(entry), Some(hint));
            // Without a required property the call would be refused.
            if !is_closed && missing.is_none() {
                violation.severity = CheckSeverity::Warning;
            }
            out.push(violation);
        }
        explained
    }

    fn meant(&self, entry: &LiteralEntry) -> Option<&'a str> {
        let absent = self.properties.keys().filter(|name| !self.object.has(name));
        nearest(&entry.key, absent.map(String::as_str))
    }

    fn no_such(&self, entry: &LiteralEntry) -> String {
        let given = self.object.given;
        let what = if given.tool().is_some() { "parameter" } else { "property" };
        format!("{given} has no {what} `{}`", cut(&entry.key))
    }
}
