//! JSON that is kept as text.

use std::{fmt, fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// One message of a conversation, as the JSON of its wire: a message, an item or a content. It is sent back byte by
/// byte.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WireMessage(Arc<RawValue>);

impl WireMessage {
    /// A message of ours.
    pub fn new(value: &Value) -> Self {
        Self::from_text(value.to_string())
    }

    /// A message that a provider sent. `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Self> {
        let raw: Box<RawValue> = serde_json::from_str(text).ok()?;
        Some(Self(raw.into()))
    }

    /// Text that this crate has put together of JSON.
    pub(crate) fn from_text(text: String) -> Self {
        Self(RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()).into())
    }

    /// The JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The JSON as a value, for readers.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl PartialEq for WireMessage {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for WireMessage {}

/// The text of a conversation is not for logs.
impl fmt::Debug for WireMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WireMessage({} bytes)", self.as_str().len())
    }
}

/// Writes an object whose values are JSON texts.
#[derive(Debug, Default)]
pub(crate) struct RawObject(String);

impl RawObject {
    pub(crate) fn field(mut self, name: &str, json: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}{}:{json}", Value::from(name));
        self
    }

    pub(crate) fn value(self, name: &str, value: impl Into<Value>) -> Self {
        self.field(name, &value.into().to_string())
    }

    pub(crate) fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}

/// Writes an array of JSON texts.
pub(crate) fn raw_array<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Merges a delta of a stream into a value, for fields that this crate does not know: texts are appended, lists
/// extended, objects merged, and all else replaced.
pub(crate) fn merge(target: &mut Value, delta: Value) {
    match (target, delta) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (Value::Object(fields), Value::Object(more)) => {
            for (name, value) in more {
                // These name something. They come once, or are repeated.
                let names =
                    matches!(name.as_str(), "id" | "type" | "role" | "name" | "format" | "index");
                match fields.get_mut(&name) {
                    Some(known) if !names => merge(known, value),
                    Some(known) if value.as_str() != Some("") => *known = value,
                    Some(_) => {}
                    None => {
                        fields.insert(name, value);
                    }
                }
            }
        }
        (target, delta) => *target = delta,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_keeps_its_bytes() {
        let text =
            r#"{ "b":1.50,  "a":[ 1e3, 123456789012345678901234567890 ], "\u0061":"\u00e9" }"#;
        let message = WireMessage::parse(text).unwrap();
        assert_eq!(message.as_str(), text);
        assert_eq!(serde_json::to_string(&[message]).unwrap(), format!("[{text}]"));
    }

    #[test]
    fn unknown_deltas_are_merged() {
        let mut value = json!({"text": "a", "list": [1], "id": "x", "deep": {"t": "b"}});
        merge(
            &mut value,
            json!({"text": "b", "list": [2], "id": "x", "deep": {"t": "c"}, "n": 3, "text2": null}),
        );
        assert_eq!(
            value,
            json!({"text": "ab", "list": [1, 2], "id": "x", "deep": {"t": "bc"}, "n": 3, "text2": null})
        );
    }
}
