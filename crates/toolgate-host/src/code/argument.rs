//! What an argument of a tool can be, as far as a form and a completion need it.

use serde_json::{Map, Value};

/// How many references and choices within each other are followed.
const MOST_STEPS: usize = 8;

/// What an argument can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArgumentKind<'s> {
    /// The JSON types, without `null`; empty if it can be anything.
    pub types: Vec<&'s str>,
    /// Values that the schema lists, without `null`.
    pub choices: Vec<&'s Value>,
    /// Whether it can be something else than these values.
    pub is_open: bool,
    /// The schema of the object that it can be.
    pub object: Option<&'s Map<String, Value>>,
    /// The schema of the elements of the list that it can be.
    pub items: Option<&'s Value>,
}

impl<'s> ArgumentKind<'s> {
    /// What this part of a schema allows. References are to `root`.
    pub fn of(root: &'s Value, part: &'s Value) -> Self {
        let mut kind = Self::default();
        if !kind.add(root, part, MOST_STEPS) {
            (kind.types, kind.is_open) = (Vec::new(), true);
        }
        kind
    }

    /// The argument that a person means with what they type into a field, or why it is none. Where text and other values are
    /// possible, JSON of another value is that value, and anything else is text.
    pub fn read(&self, text: &str) -> Result<Value, serde_json::Error> {
        let is_type = |value: &Value| self.types.iter().any(|name| is_of(value, name));
        let choice = self.choices.iter().find(|choice| Self::written(choice) == text);
        if let Some(choice) = choice {
            return Ok((*choice).clone());
        }
        match serde_json::from_str::<Value>(text) {
            _ if self.types == ["string"] => Ok(Value::from(text)),
            Ok(value) if is_type(&value) || self.types.is_empty() => Ok(value),
            _ if self.types.contains(&"string") => Ok(Value::from(text)),
            other => other,
        }
    }

    /// A value as a person types it: a text without quotes, anything else as JSON.
    pub fn written(value: &Value) -> String {
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    }

    /// Takes up what a part allows; `false` if that is anything.
    fn add(&mut self, root: &'s Value, part: &'s Value, steps: usize) -> bool {
        let (Some(fields), Some(steps)) = (part.as_object(), steps.checked_sub(1)) else {
            return false;
        };
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return target.is_some_and(|target| self.add(root, target, steps));
        }
        let listed = fields.get("enum").and_then(Value::as_array);
        let listed = listed.map(|values| values.iter().collect::<Vec<_>>());
        if let Some(values) = listed.or_else(|| fields.get("const").map(|value| vec![value])) {
            for value in values.into_iter().filter(|value| !value.is_null()) {
                self.add_type(type_of(value));
                if !self.choices.contains(&value) {
                    self.choices.push(value);
                }
            }
            return true;
        }
        let names: Vec<&str> = match fields.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !names.is_empty() {
            for name in names.into_iter().filter(|name| *name != "null") {
                self.add_type(name);
                self.is_open = true;
                match name {
                    "object" => self.object = self.object.or(Some(fields)),
                    "array" => self.items = self.items.or(fields.get("items")),
                    _ => {}
                }
            }
            return true;
        }
        let branches = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| fields.get(*key));
        match branches.and_then(Value::as_array).map(Vec::as_slice) {
            None | Some([]) if fields.contains_key("properties") => {
                self.add_type("object");
                (self.is_open, self.object) = (true, self.object.or(Some(fields)));
                true
            }
            None | Some([]) => false,
            // All of several parts would have to be joined.
            Some([_, _, ..]) if fields.contains_key("allOf") => false,
            Some(branches) => branches.iter().all(|branch| self.add(root, branch, steps)),
        }
    }

    fn add_type(&mut self, name: &'s str) {
        if !self.types.contains(&name) {
            self.types.push(name);
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    type_of(value) == name || name == "integer" && value.is_number()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unions_and_references_are_understood() {
        let root = json!({ "$defs": { "Level": { "enum": ["low", "high"], "type": "string" } } });
        let types = |part: &Value| {
            let kind = ArgumentKind::of(&root, part);
            (kind.types.join(" "), kind.choices.len(), kind.is_open)
        };
        let text =
            |types: &str, choices: usize, is_open: bool| (types.to_owned(), choices, is_open);
        let optional = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        assert_eq!(types(&optional), text("string", 0, true));
        assert_eq!(types(&json!({ "type": ["integer", "null"] })), text("integer", 0, true));
        assert_eq!(types(&json!({ "$ref": "#/$defs/Level" })), text("string", 2, false));
        let choice = json!({ "anyOf": [{ "$ref": "#/$defs/Level" }, { "type": "null" }] });
        assert_eq!(types(&choice), text("string", 2, false));
        assert_eq!(types(&json!({ "enum": [1, 2, null] })), text("number", 2, false));
        assert_eq!(types(&json!({ "allOf": [optional] })), text("string", 0, true));
        for anything in
            [json!({}), json!(true), json!({ "$ref": "#/nowhere" }), json!({ "$ref": "https://x" })]
        {
            assert_eq!(types(&anything), text("", 0, true), "{anything}");
        }
        let endless = json!({ "a": { "$ref": "#/a" } });
        assert!(ArgumentKind::of(&endless, &endless["a"]).types.is_empty());
    }

    #[test]
    fn what_is_typed_is_read_as_it_is_meant() {
        let read = |part: Value, text: &str| ArgumentKind::of(&json!({}), &part).read(text).ok();
        assert_eq!(read(json!({ "type": "string" }), "5"), Some(json!("5")));
        assert_eq!(read(json!({ "type": ["string", "null"] }), "hello"), Some(json!("hello")));
        let list = json!({ "anyOf": [{ "type": "array", "items": {} }, { "type": "string" }] });
        assert_eq!(read(list.clone(), "a, b"), Some(json!("a, b")));
        assert_eq!(read(list.clone(), "[\"a\"]"), Some(json!(["a"])));
        assert_eq!(read(list, "5"), Some(json!("5")));
        assert_eq!(read(json!({ "type": ["string", "number"] }), "5"), Some(json!(5)));
        assert_eq!(read(json!({ "type": ["string", "number"] }), "\"5\""), Some(json!("5")));
        assert_eq!(read(json!({ "enum": [1, 2] }), "2"), Some(json!(2)));
        assert_eq!(read(json!({ "type": "integer" }), "x"), None);
        // The broker says that it does not fit.
        assert_eq!(read(json!({ "type": "integer" }), "\"x\""), Some(json!("x")));
    }
}
