//! Types of the script in calls of `extract`: a class, an interface or another type becomes the JSON Schema that the
//! function takes. The text changes within its lines, so that line numbers stay.

mod python;
mod typescript;

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::Language;

/// The name of the function.
const EXTRACT: &str = "extract";
/// How deep types may be nested. A type that contains itself has no schema.
const MAX_DEPTH: usize = 16;
/// The largest text that all schemas together may have.
const MAX_BYTES: usize = 256 * 1024;

/// The script with schemas in place of types; `None` if nothing changes.
pub(super) fn expand(language: Language, text: &str) -> Option<String> {
    if !text.contains(EXTRACT) {
        return None;
    }
    let mut edits = match language {
        Language::TypeScript => typescript::edits(text),
        Language::Python => python::edits(text)?,
    };
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    if edits.is_empty() || added > MAX_BYTES {
        return None;
    }
    edits.sort_by_key(|edit| edit.place.start);
    let mut expanded = String::with_capacity(text.len() + added);
    let mut end = 0;
    for edit in edits {
        expanded.push_str(text.get(end..edit.place.start)?);
        expanded.push_str(&edit.text);
        end = edit.place.end;
    }
    expanded.push_str(text.get(end..)?);
    Some(expanded)
}

/// A place of the text, and what stands there instead.
struct Edit {
    place: Range<usize>,
    text: String,
}

/// An object with these properties and those that are required.
#[derive(Default)]
struct ObjectType {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl ObjectType {
    fn add(&mut self, name: &str, schema: Value, is_required: bool) {
        self.properties.insert(name.to_owned(), schema);
        self.required.retain(|known| known != name);
        if is_required {
            self.required.push(name.to_owned());
        }
    }

    /// Takes what another type has.
    fn inherit(&mut self, other: &Value) {
        let required = &other["required"];
        for (name, schema) in other["properties"].as_object().into_iter().flatten() {
            let is_required =
                required.as_array().is_some_and(|all| all.iter().any(|it| it == name));
            self.add(name, schema.clone(), is_required);
        }
    }

    fn schema(self) -> Value {
        json!({ "type": "object", "properties": self.properties, "required": self.required })
    }
}

/// One of several types.
fn any_of(mut schemas: Vec<Value>) -> Value {
    let values: Option<Vec<Value>> = schemas
        .iter()
        .map(|schema| schema.get("enum")?.as_array().cloned())
        .collect::<Option<Vec<_>>>()
        .map(|all| all.concat());
    match (values, schemas.len()) {
        (Some(values), 1..) => json!({ "enum": values }),
        (_, 1) => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    }
}
