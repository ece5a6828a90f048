//! YAML, as Goose and Continue use it.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::{Member, Node, Object, Value, syntax, too_deep};
use crate::position::SourceText;
use crate::{ConfigError, MAX_DEPTH};

/// A list or an object that has not ended yet.
enum Open<'a> {
    List(Vec<Node<'a>>),
    Object {
        members: Vec<Member<'a>>,
        /// The key whose value comes next.
        key: Option<(String, usize)>,
    },
}

/// Reads the first document of a text; `None` if it is empty.
pub(super) fn read<'a>(source: &SourceText<'a>) -> Result<Option<Node<'a>>, ConfigError> {
    let offsets = Offsets::new(source.text());
    let mut open: Vec<(Open<'a>, usize)> = Vec::new();
    // The parser keeps no stack of the program, so that only this loop limits the depth.
    for event in Parser::new_from_str(source.text()) {
        let (event, span): (Event<'a>, Span) = event.map_err(|error| {
            let offset = offsets.of(*error.marker());
            syntax(source, offset, format!("expected YAML: {}", error.info()))
        })?;
        let offset = offsets.of(span.start);
        let node = match event {
            Event::Scalar(text, style, _, tag) => {
                let is_plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if is_plain { plain(text) } else { Value::String(text) };
                Node { value, offset }
            }
            Event::Alias(_) => Node { value: Value::Alias, offset },
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if open.len() >= MAX_DEPTH {
                    return Err(too_deep(source, offset));
                }
                let is_list = matches!(event, Event::SequenceStart(..));
                let object = || Open::Object { members: Vec::new(), key: None };
                open.push((if is_list { Open::List(Vec::new()) } else { object() }, offset));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((Open::List(nodes), offset)) => Node { value: Value::Array(nodes), offset },
                Some((Open::Object { members, .. }, offset)) => {
                    Node { value: Value::Object(Object::new(members)), offset }
                }
                None => continue,
            },
            Event::DocumentEnd => return Ok(None),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(Some(node)),
            Some((Open::List(nodes), _)) => nodes.push(node),
            Some((Open::Object { members, key }, _)) => match key.take() {
                Some((key, key_offset)) => {
                    members.push(Member { key: key.into(), key_offset, node });
                }
                None => *key = Some((key_text(&node.value), node.offset)),
            },
        }
    }
    Ok(None)
}

/// A key as a text. One that is no scalar has no meaning here.
fn key_text(value: &Value<'_>) -> String {
    match value {
        Value::String(text) | Value::Number(text) => text.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
        _ => String::new(),
    }
}

/// What a text without quotes means, by the core schema of YAML 1.2.
fn plain(text: std::borrow::Cow<'_, str>) -> Value<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Boolean(true),
        "false" | "False" | "FALSE" => Value::Boolean(false),
        // The same numbers as in JSON; `007` and `1_000` are texts.
        number if serde_json::from_str::<serde_json::Number>(number).is_ok() => Value::Number(text),
        _ => Value::String(text),
    }
}

/// Where the characters of a text begin in bytes. The parser counts characters.
struct Offsets(Option<Vec<usize>>);

impl Offsets {
    fn new(text: &str) -> Self {
        let offsets =
            || text.char_indices().map(|(offset, _)| offset).chain([text.len()]).collect();
        Self((!text.is_ascii()).then(offsets))
    }

    fn of(&self, marker: Marker) -> usize {
        match &self.0 {
            None => marker.index(),
            Some(offsets) => {
                offsets.get(marker.index()).or(offsets.last()).copied().unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json(text: &str) -> serde_json::Value {
        let source = SourceText::new(text, "config.yaml");
        read(&source).unwrap().map_or(json!(null), |node| node.value.to_json())
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        let text = "a: 1\nb: 'x: y'\nc: true\nd: ~\ne: 007\nf: yes\ng: \"2\"\nh: -1.5\nk: [x, {y: 1}]\n1: n\n";
        assert_eq!(
            json(text),
            json!({ "a": 1, "b": "x: y", "c": true, "d": null, "e": "007", "f": "yes", "g": "2",
                    "h": -1.5, "k": ["x", { "y": 1 }], "1": "n" })
        );
        for empty in ["", "# a comment\n", "---\n"] {
            assert_eq!(json(empty), json!(null), "{empty:?}");
        }
        assert_eq!(json("a: &x 1\nb: *x\n---\nsecond: 1\n"), json!({ "a": 1, "b": "an alias" }));
    }

    #[test]
    fn a_mistake_has_its_position() {
        let source = SourceText::new("é: [1\nb: }\n", "config.yaml");
        let error = read(&source).unwrap_err().to_string();
        assert!(error.contains("config.yaml:2"), "{error}");
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let text = nested(MAX_DEPTH);
        assert!(read(&SourceText::new(&text, "deep.yaml")).is_ok());
        let text = nested(MAX_DEPTH + 1);
        let deep = SourceText::new(&text, "deep.yaml");
        assert!(matches!(read(&deep), Err(ConfigError::TooDeep { .. })));
        // The parser itself refuses this.
        let text = "[".repeat(1_000_000);
        assert!(read(&SourceText::new(&text, "deeper.yaml")).is_err());
    }
}
