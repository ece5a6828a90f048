//! Reads the documentation of a schema: descriptions, limits, defaults.

use serde_json::{Map, Number, Value};

use super::SchemaReader;
use crate::{
    limits::{MAX_DESCRIPTION, MAX_VALUES},
    model::Doc,
    text::clean,
};

/// The longest default and the longest pattern that are shown.
const SHORT: usize = 40;

impl SchemaReader<'_, '_> {
    /// The documentation of the property `name`.
    pub(super) fn documentation(&mut self, name: &str, schema: &Value) -> Doc {
        let Value::Object(keywords) = schema else { return Doc::default() };
        let mut text = self.description(keywords);
        if text.is_empty() {
            text = self.title(name, keywords);
        }
        for line in self.of_variants(keywords) {
            append(&mut text, &line);
        }
        if let Some(Value::Object(items)) = keywords.get("items") {
            let of_items = self.description(items);
            // The description of an object is written at its own declaration.
            if !of_items.is_empty() && !text.contains(&of_items) && !is_object(items) {
                let line = if text.is_empty() { of_items } else { format!("Items: {of_items}") };
                append(&mut text, &line);
            }
        }
        let notes = notes(keywords, &text);
        let default = default(keywords, &text).filter(|default| self.budget.text(default.len()));
        Doc { text, notes, default }
    }

    /// The cleaned `description`.
    pub(super) fn description(&mut self, keywords: &Map<String, Value>) -> String {
        let Some(Value::String(text)) = keywords.get("description") else { return String::new() };
        let text = clean(text, MAX_DESCRIPTION);
        if self.budget.text(text.len()) { text } else { "…".to_owned() }
    }

    /// A title, unless it only repeats the name, as generated titles do.
    fn title(&mut self, name: &str, keywords: &Map<String, Value>) -> String {
        let Some(Value::String(title)) = keywords.get("title") else { return String::new() };
        let letters = |text: &str| -> String {
            text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
        };
        let title = clean(title, 100);
        let says_more = letters(&title) != letters(name) && !title.contains('\n');
        if says_more && !is_object(keywords) && self.budget.text(title.len()) {
            title
        } else {
            String::new()
        }
    }

    /// The descriptions of alternatives that are no objects. Objects have their own declaration.
    fn of_variants(&mut self, keywords: &Map<String, Value>) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for options in ["anyOf", "oneOf"].iter().filter_map(|key| super::array(keywords, key)) {
            for option in options.iter().take(MAX_VALUES).filter_map(Value::as_object) {
                if is_object(option) {
                    continue;
                }
                let text = self.description(option);
                let line = match option.get("const") {
                    Some(value) if !text.is_empty() && value.to_string().len() <= SHORT => {
                        format!("{value}: {text}")
                    }
                    _ => text,
                };
                if !line.is_empty() && !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }
}

fn append(text: &mut String, line: &str) {
    if !text.contains(line) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
}

fn is_object(keywords: &Map<String, Value>) -> bool {
    keywords.contains_key("properties")
}

/// Notes on the values, except for numbers that are in the description.
fn notes(keywords: &Map<String, Value>, text: &str) -> Vec<String> {
    let inner = value_schema(keywords);
    let mut notes = Vec::new();
    notes.extend(range(
        inner,
        ["minimum", "exclusiveMinimum"],
        ["maximum", "exclusiveMaximum"],
        "",
        text,
    ));
    notes.extend(range(inner, ["minLength", ""], ["maxLength", ""], " characters", text));
    notes.extend(range(keywords, ["minItems", ""], ["maxItems", ""], " items", text));
    for key in ["format", "pattern"] {
        if let Some(Value::String(value)) = inner.get(key) {
            // One of them is enough, and a description usually explains it better.
            if text.is_empty() && value.len() <= SHORT && notes.is_empty() {
                notes.push(clean(value, SHORT).replace('\n', " "));
            }
        }
    }
    if keywords.get("deprecated") == Some(&Value::Bool(true)) {
        notes.push("deprecated".to_owned());
    }
    notes
}

/// The schema of the value. If `null` is the only alternative, it is the schema of the other one.
fn value_schema(keywords: &Map<String, Value>) -> &Map<String, Value> {
    let Some(options) = super::array(keywords, "anyOf") else { return keywords };
    let is_null = |option: &Value| option.get("type").and_then(Value::as_str) == Some("null");
    let mut others = options.iter().filter(|option| !is_null(option));
    match (others.next(), others.next()) {
        (Some(Value::Object(only)), None) => only,
        _ => keywords,
    }
}

fn range(
    keywords: &Map<String, Value>,
    [least, above]: [&str; 2],
    [most, below]: [&str; 2],
    unit: &str,
    text: &str,
) -> Option<String> {
    // Generators write the extreme bounds for "any integer".
    let bound = |key: &str| match keywords.get(key) {
        Some(Value::Number(number)) if !is_extreme(number) => Some(number.to_string()),
        _ => None,
    };
    // A minimum size of 0 does not restrict anything.
    let (least, above) =
        (bound(least).filter(|least| unit.is_empty() || least != "0"), bound(above));
    let (most, below) = (bound(most), bound(below));
    let numbers = [&least, &above, &most, &below];
    if numbers
        .iter()
        .filter_map(|number| number.as_ref())
        .all(|number| text.contains(number.as_str()))
    {
        return None;
    }
    Some(match (least, above, most, below) {
        (Some(least), _, Some(most), _) if least == most => format!("{least}{unit}"),
        (Some(least), _, Some(most), _) => format!("{least}..{most}{unit}"),
        (Some(least), _, None, None) => format!(">= {least}{unit}"),
        (None, None, Some(most), _) => format!("<= {most}{unit}"),
        (None, Some(above), None, None) => format!("> {above}"),
        (None, None, None, Some(below)) => format!("< {below}"),
        (least, above, most, below) => {
            let low = least
                .map(|least| format!(">= {least}"))
                .or(above.map(|above| format!("> {above}")));
            let high =
                most.map(|most| format!("<= {most}")).or(below.map(|below| format!("< {below}")));
            format!("{} and {}", low?, high?)
        }
    })
}

fn is_extreme(number: &Number) -> bool {
    number.as_f64().is_none_or(|value| value.abs() >= 2_147_483_647.0)
}

fn default(keywords: &Map<String, Value>, text: &str) -> Option<String> {
    let value = keywords.get("default").filter(|value| !value.is_null())?;
    let json = match value {
        Value::Array(items) if !items.is_empty() && items.len() > 8 => return None,
        Value::Object(members) if !members.is_empty() => return None,
        Value::String(text) if text.len() > SHORT => return None,
        value => value.to_string(),
    };
    let is_documented = text.to_ascii_lowercase().contains("default");
    (json.len() <= SHORT && !is_documented).then_some(json)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notes_of(schema: &Value, text: &str) -> String {
        notes(schema.as_object().unwrap(), text).join(", ")
    }

    #[test]
    fn bounds_are_short() {
        for (schema, expected) in [
            (json!({ "minimum": 1, "maximum": 100 }), "1..100"),
            (json!({ "minimum": 1 }), ">= 1"),
            (json!({ "maximum": 9.5 }), "<= 9.5"),
            (json!({ "exclusiveMinimum": 0 }), "> 0"),
            (json!({ "exclusiveMinimum": 0, "maximum": 1 }), "> 0 and <= 1"),
            (json!({ "minLength": 3, "maxLength": 3 }), "3 characters"),
            (json!({ "minLength": 0 }), ""),
            (json!({ "minItems": 1, "maxItems": 5 }), "1..5 items"),
            (json!({ "minimum": -9_007_199_254_740_991_i64 }), ""),
            (json!({ "format": "date-time" }), "date-time"),
            (json!({ "anyOf": [{ "minimum": 2 }, { "type": "null" }] }), ">= 2"),
            (json!({ "minimum": "1", "format": 7 }), ""),
        ] {
            assert_eq!(notes_of(&schema, ""), expected, "{schema}");
        }
    }

    #[test]
    fn notes_do_not_repeat_the_description() {
        assert_eq!(notes_of(&json!({ "minimum": 1, "maximum": 100 }), "From 1 to 100."), "");
        assert_eq!(notes_of(&json!({ "format": "date" }), "The day."), "");
        let keywords = json!({ "default": 5 });
        let keywords = keywords.as_object().unwrap();
        assert_eq!(default(keywords, "How many. Default: 5"), None);
        assert_eq!(default(keywords, "How many."), Some("5".to_owned()));
    }
}
