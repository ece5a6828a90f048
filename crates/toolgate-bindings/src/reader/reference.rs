//! Resolves `$ref`.

use std::{borrow::Cow, collections::HashMap};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::SchemaReader;
use crate::{
    limits::MAX_DEPTH,
    model::{Arena, NodeId},
};

impl<'a> SchemaReader<'a, '_> {
    /// The type of a reference. It is unknown if the reference leads out of the document or
    /// nowhere.
    pub(super) fn reference(&mut self, reference: &str, hint: &str) -> NodeId {
        let Some(target) = self.find(reference) else { return Arena::UNKNOWN };
        // `#/$defs/Label` is named Label; for `#/properties/a/items` the name of the property that
        // uses it is better.
        let mut segments = reference.rsplit('/');
        let name = segments.next().unwrap_or_default();
        let is_definition = matches!(segments.next(), Some("$defs" | "definitions" | "schemas"));
        let name = percent_decoded(name).replace("~1", "/").replace("~0", "~");
        // Namespaced definitions (`shared.types.Label`) are named by their last part.
        let name = name.rsplit(['.', '/']).next().unwrap_or_default();
        let is_definition = is_definition && !name.is_empty();
        self.target(target, if is_definition { name } else { hint })
    }

    fn find(&mut self, reference: &str) -> Option<&'a Value> {
        if reference == "#" {
            return Some(self.root);
        }
        if let Some(pointer) = reference.strip_prefix("#/") {
            return self.root.pointer(&format!("/{}", percent_decoded(pointer)));
        }
        let (root, names) = (self.root, &mut self.names);
        let names = names.get_or_insert_with(|| {
            let mut names = HashMap::new();
            collect_names(root, 0, &mut 20_000, &mut names);
            names
        });
        if let Some(found) = names.get(reference) {
            return Some(*found);
        }
        let (document, fragment) = reference.split_once('#')?;
        let document = if document.is_empty() { root } else { *names.get(document)? };
        match fragment {
            "" => Some(document),
            _ if fragment.starts_with('/') => document.pointer(&percent_decoded(fragment)),
            _ => names.get(format!("#{fragment}").as_str()).copied(),
        }
    }
}

/// The schemas by the names that they declare: `$id` unchanged, `$anchor` with its `#`.
fn collect_names<'v>(
    value: &'v Value,
    depth: usize,
    steps: &mut usize,
    names: &mut HashMap<String, &'v Value>,
) {
    if depth > 2 * MAX_DEPTH || *steps == 0 {
        return;
    }
    *steps -= 1;
    match value {
        Value::Object(members) => {
            for key in ["$id", "id"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    names.entry(name.trim_end_matches('#').to_owned()).or_insert(value);
                    names.entry(name.to_owned()).or_insert(value);
                }
            }
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    names.entry(format!("#{name}")).or_insert(value);
                }
            }
            for member in members.values() {
                collect_names(member, depth + 1, steps, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_names(item, depth + 1, steps, names);
            }
        }
        _ => {}
    }
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Output, ToolApi, typescript};

    /// The type of `property` in the declaration of a tool with these definitions.
    fn declared(reference: &str) -> String {
        let schema = json!({
            "$id": "https://example.com/root.json",
            "properties": { "it": { "$ref": reference } },
            "required": ["it"],
            "$defs": {
                "text": { "type": "string" },
                "with/slash": { "type": "integer" },
                "by anchor": { "$anchor": "here", "type": "boolean" },
                "by name": { "$id": "https://example.com/item.json",
                    "properties": { "x": { "type": "null" } } },
            },
        });
        let tool = ToolApi {
            name: "f",
            description: None,
            input_schema: &schema,
            output: Output::Unknown,
        };
        let text = typescript(&[tool]);
        let start = text.find("it: ").unwrap() + "it: ".len();
        text[start..text.rfind(" })").unwrap()].to_owned()
    }

    #[test]
    fn all_kinds_of_references_are_followed() {
        assert_eq!(declared("#/$defs/text"), "string");
        assert_eq!(declared("#/$defs/with~1slash"), "number");
        assert_eq!(declared("#/$defs/by%20anchor"), "boolean");
        assert_eq!(declared("#here"), "boolean");
        assert_eq!(declared("https://example.com/item.json"), "{ x?: null }");
        assert_eq!(declared("https://example.com/item.json#/properties/x"), "null");
    }

    #[test]
    fn a_reference_without_a_target_is_unknown() {
        for reference in ["#/$defs/none", "https://example.com/other.json", "", "#/%zz", "x#y"] {
            assert_eq!(declared(reference), "unknown", "{reference}");
        }
    }

    #[test]
    fn invalid_percent_encoding_stays() {
        assert_eq!(percent_decoded("a%20b%zz%"), "a b%zz%");
        assert_eq!(percent_decoded("%e2%82%ac"), "€");
        assert_eq!(percent_decoded("%é"), "%é");
    }
}
