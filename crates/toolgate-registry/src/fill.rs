//! Fills in the values that a registry describes.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::entry::{Argument, Input};

/// A missing value that only a person can provide.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MissingValue {
    /// An argument of the program.
    #[error("the argument `{0}`")]
    Argument(String),
    /// A variable of a template.
    #[error("the value `{0}`")]
    Variable(String),
    /// A header of the requests.
    #[error("the header `{0}`")]
    Header(String),
}

/// The words of a program's arguments, in order. Optional arguments without a value are left out.
pub(crate) fn arguments(described: &[Argument]) -> Result<Vec<String>, MissingValue> {
    let mut words = Vec::new();
    for argument in described {
        let input = Input::deserialize(&argument.input).unwrap_or_default();
        let name = argument.name.clone().unwrap_or_default();
        let is_named = argument.r#type == "named";
        let value = match value(&input)? {
            Some(value) => Some(value),
            // A named argument without any value is a switch.
            None if is_named && input.is_required && argument.value_hint.is_none() => None,
            None if input.is_required => {
                let called = argument.value_hint.clone().filter(|_| name.is_empty());
                return Err(MissingValue::Argument(called.unwrap_or(name)));
            }
            None => continue,
        };
        if is_named {
            words.push(name);
        }
        words.extend(value);
    }
    Ok(words)
}

/// The fixed value or the default, if there is one.
pub(crate) fn value(input: &Input) -> Result<Option<String>, MissingValue> {
    match &input.value {
        Some(template) => template_of(template, &input.variables).map(Some),
        None => Ok(input.default.clone()),
    }
}

/// Fills in the `{name}`s of a text. Braces around anything but a variable stay as they are.
pub(crate) fn template_of(
    template: &str,
    variables: &BTreeMap<String, Input>,
) -> Result<String, MissingValue> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, remaining)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        match variables.get(name) {
            None => {
                text.push('{');
                text.push_str(name);
                text.push('}');
            }
            // The value of a variable may not refer to other variables.
            Some(input) => match input.value.as_ref().or(input.default.as_ref()) {
                Some(value) => text.push_str(value),
                None => return Err(MissingValue::Variable(name.to_owned())),
            },
        }
        rest = remaining;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(described: serde_json::Value) -> Result<Vec<String>, MissingValue> {
        let described: Vec<Argument> = serde_json::from_value(described).unwrap();
        arguments(&described)
    }

    #[test]
    fn arguments_are_in_order_and_unset_optional_ones_left_out() {
        let words = filled(json!([
            { "type": "positional", "value": "serve" },
            { "type": "named", "name": "--port", "default": "80" },
            { "type": "named", "name": "--verbose" },
            { "type": "named", "name": "--root", "value": "{home}/x{y}{",
              "variables": { "home": { "default": "/srv" } } },
        ]));
        assert_eq!(words.unwrap(), ["serve", "--port", "80", "--root", "/srv/x{y}{"]);
    }

    #[test]
    fn missing_values_are_named() {
        let missing = |described| filled(described).unwrap_err().to_string();
        let folder = json!([{ "type": "positional", "valueHint": "folder", "isRequired": true }]);
        assert_eq!(missing(folder), "the argument `folder`");
        let key =
            json!([{ "type": "named", "name": "--key", "valueHint": "key", "isRequired": true }]);
        assert_eq!(missing(key), "the argument `--key`");
        let template =
            json!([{ "type": "positional", "value": "{id}", "variables": { "id": {} } }]);
        assert_eq!(missing(template), "the value `id`");
    }
}
