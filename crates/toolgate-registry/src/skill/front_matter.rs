//! The front matter of a `SKILL.md`: YAML between two lines of `---`.
//!
//! Only texts and lists of texts are read. Everything else (maps, aliases, tags) belongs to keys
//! that mean nothing here, and is skipped as events of the parser: nothing is built from it, so that
//! neither depth nor aliases cost anything.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

use super::SkillError;

/// The keys and their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    values: BTreeMap<String, FrontValue>,
    /// Keys whose values are neither texts nor lists of texts.
    pub(super) unreadable: Vec<String>,
}

/// A value of the front matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrontValue {
    Text(String),
    List(Vec<String>),
}

/// How many lines a front matter may have.
const MAX_LINES: usize = 400;

impl FrontMatter {
    /// Splits a text into its front matter and the rest.
    pub(super) fn split(text: &str) -> Result<(Self, &str), SkillError> {
        let text = text.trim_start_matches('\u{feff}');
        let rest = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r']));
        let rest = rest.ok_or(SkillError::NoFrontMatter)?;
        let mut end = 0;
        for line in rest.split_inclusive('\n').take(MAX_LINES) {
            if end > 0 && line.trim_end() == "---" {
                let (front, body) = (&rest[..end], &rest[end + line.len()..]);
                // Many files have `description: Use it when: …`, which is not valid YAML without
                // quotes.
                let read = Self::read(front).or_else(|_| Self::read(&quoted(front)));
                return read.map(|front| (front, body));
            }
            end += line.len();
        }
        Err(SkillError::EndlessFrontMatter)
    }

    pub(super) fn get(&self, key: &str) -> Option<&FrontValue> {
        self.values.get(key)
    }

    /// The keys and their values as JSON, where the whole cannot be converted.
    fn to_json(&self) -> Map<String, Value> {
        let values = self.values.iter().map(|(key, value)| {
            let value = match value {
                FrontValue::Text(text) => Value::from(text.as_str()),
                FrontValue::List(items) => Value::from(items.clone()),
            };
            (key.clone(), value)
        });
        values.collect()
    }

    fn read(yaml: &str) -> Result<Self, SkillError> {
        let mut front = Self::default();
        let mut depth = 0_usize;
        let mut key: Option<String> = None;
        // The items of the list that is the value of `key`; none once something else is in it.
        let mut items: Option<Vec<String>> = None;
        for event in Parser::new_from_str(yaml) {
            let (event, _) = event.map_err(|error| SkillError::NotYaml(error.to_string()))?;
            match event {
                Event::Scalar(text, _, _, None) if depth == 1 => match key.take() {
                    Some(key) => {
                        front.values.insert(key, FrontValue::Text(text.into_owned()));
                    }
                    None => key = Some(text.into_owned()),
                },
                Event::Scalar(text, _, _, None) if depth == 2 => {
                    if let Some(items) = &mut items {
                        items.push(text.into_owned());
                    }
                }
                Event::Scalar(..) | Event::Alias(_) if depth == 1 => {
                    front.unreadable.extend(key.take());
                }
                Event::Scalar(..) | Event::Alias(_) => items = None,
                Event::SequenceStart(..) | Event::MappingStart(..) => {
                    depth += 1;
                    let is_list = matches!(event, Event::SequenceStart(_, None));
                    items = (depth == 2 && is_list).then(Vec::new);
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    depth = depth.saturating_sub(1);
                    if depth == 1 {
                        match (key.take(), items.take()) {
                            (Some(key), Some(items)) => {
                                front.values.insert(key, FrontValue::List(items));
                            }
                            (key, _) => front.unreadable.extend(key),
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(front)
    }
}

/// How deep the values of a front matter may be, to be converted.
const MAX_DEPTH: usize = 16;

/// The front matter of a text as JSON; `None` if it has none.
pub fn front_matter_json(text: &str) -> Option<Map<String, Value>> {
    let (front, body) = FrontMatter::split(text).ok()?;
    let yaml = text.trim_start_matches('\u{feff}').strip_prefix("---")?;
    let yaml = yaml.get(..yaml.len().checked_sub(body.len())?)?;
    let yaml = yaml.trim_end().strip_suffix("---").unwrap_or(yaml);
    Some(whole(yaml).or_else(|| whole(&quoted(yaml))).unwrap_or_else(|| front.to_json()))
}

/// All of a mapping, or nothing if it has aliases, tags or other keys than texts, or is too deep.
fn whole(yaml: &str) -> Option<Map<String, Value>> {
    let mut open: Vec<(Value, Option<String>)> = Vec::new();
    for event in Parser::new_from_str(yaml) {
        let value = match event.ok()?.0 {
            Event::Scalar(text, style, _, None) => {
                if let Some((Value::Object(_), key @ None)) = open.last_mut() {
                    *key = Some(text.into_owned());
                    continue;
                }
                if style == ScalarStyle::Plain { plain(&text) } else { Value::from(text.as_ref()) }
            }
            Event::SequenceStart(_, None) if open.len() < MAX_DEPTH => {
                open.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingStart(_, None) if open.len() < MAX_DEPTH => {
                if matches!(open.last(), Some((Value::Object(_), None))) {
                    return None;
                }
                open.push((Value::Object(Map::new()), None));
                continue;
            }
            Event::Scalar(..)
            | Event::Alias(_)
            | Event::SequenceStart(..)
            | Event::MappingStart(..) => return None,
            Event::SequenceEnd | Event::MappingEnd => open.pop()?.0,
            _ => continue,
        };
        match open.last_mut() {
            Some((Value::Object(fields), key)) => drop(fields.insert(key.take()?, value)),
            Some((Value::Array(items), _)) => items.push(value),
            _ => return if let Value::Object(fields) = value { Some(fields) } else { None },
        }
    }
    None
}

/// A scalar without quotes, by the core schema of YAML.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
            let number = if is_number { serde_json::from_str::<Value>(text).ok() } else { None };
            number.unwrap_or_else(|| Value::from(text))
        }
    }
}

/// The front matter with quotes around the plain texts of its own keys.
fn quoted(yaml: &str) -> String {
    let quote = |line: &str| match line.split_once(": ") {
        Some((key, text))
            if !key.starts_with([' ', '-', '#'])
                && !text
                    .trim_start()
                    .starts_with(['"', '\'', '[', '{', '|', '>', '&', '*', '!']) =>
        {
            format!("{key}: '{}'", text.trim().replace('\'', "''"))
        }
        _ => line.to_owned(),
    };
    yaml.lines().map(quote).collect::<Vec<_>>().join("\n")
}
