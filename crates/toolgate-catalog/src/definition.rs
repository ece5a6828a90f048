//! A tool's definition, stored as the JSON that the server sent.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    str::FromStr,
    sync::Arc,
    sync::OnceLock,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, value::RawValue};
use thiserror::Error;

use crate::cost::TokenCounter;

/// The largest definition that is accepted. The largest seen in the wild has about 90 KB.
pub const MAX_DEFINITION_BYTES: usize = 1024 * 1024;

const MAX_TOOL_NAME_BYTES: usize = 512;

/// The definition of a tool, as its server sent it.
///
/// The JSON is stored as text, which is smaller than a parsed tree, and parsed when a part of it is
/// needed. Every copy is JSON-equal to the original; only whitespace is lost.
#[derive(Debug, Clone)]
pub struct Definition {
    name: Arc<str>,
    description: Arc<str>,
    json: Arc<str>,
    fingerprint: Fingerprint,
    tokens: OnceLock<u32>,
    view: ToolView,
}

/// What a tool has to do with MCP Apps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolView {
    /// Whether a client can show a view with its results.
    pub has_view: bool,
    /// Whether only the views of its server may call it, and no model.
    pub only_for_views: bool,
}

impl ToolView {
    /// Reads `_meta` of a definition.
    fn of(meta: Option<&Value>) -> Self {
        let Some(meta) = meta else { return Self::default() };
        let ui = meta.get("ui");
        let uri = ui.and_then(|ui| ui.get("resourceUri")).or_else(|| meta.get("ui/resourceUri"));
        let visibility = ui.and_then(|ui| ui.get("visibility")).and_then(Value::as_array);
        Self {
            has_view: uri.is_some_and(Value::is_string),
            only_for_views: visibility.is_some_and(|who| !who.contains(&Value::from("model"))),
        }
    }

    /// Reads a definition, if it can have a view at all.
    fn of_text(json: &str) -> Self {
        if !json.contains("\"ui") {
            return Self::default();
        }
        let definition: Option<Value> = serde_json::from_str(json).ok();
        Self::of(definition.as_ref().and_then(|definition| definition.get("_meta")))
    }
}

/// The parts of a definition, so that it can be used later without being parsed.
#[derive(Debug, Clone, Copy)]
pub struct StoredDefinition<'a> {
    /// The tool's own name.
    pub name: &'a str,
    /// The description; may be empty.
    pub description: &'a str,
    /// The whole definition.
    pub json: &'a str,
    /// The content's hash.
    pub fingerprint: Fingerprint,
    /// Its cost in a model's context.
    pub tokens: u32,
}

/// A hash of a definition's content. Equal content gives an equal fingerprint, whatever the order
/// of the keys.
///
/// Its text has 64 hexadecimal digits. [`str::parse`] reads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// A text that is no [`Fingerprint`]. The compared content counts as changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct NotAFingerprint;

/// Why a definition cannot be used. Its server and the server's other tools still can.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The entry of the list is not a JSON object.
    #[error("the definition is {0}, not an object")]
    NotAnObject(&'static str),
    /// There is no usable name.
    #[error("`name` is missing or not a non-empty string of at most 512 bytes")]
    Name,
    /// There is no schema that arguments could be checked against.
    #[error("`inputSchema` is {0}, not an object")]
    InputSchema(&'static str),
    /// The definition is larger than [`MAX_DEFINITION_BYTES`].
    #[error("the definition has {0} bytes, more than the 1 MiB allowed")]
    TooLarge(usize),
    /// The list has the same definition twice. It is used once.
    #[error("the list has it twice, with the same definition; the first one is used")]
    Duplicate,
    /// The list has different definitions of one tool. Nobody can know which of them is true.
    #[error("the server lists it with different definitions, so none of them is used")]
    Ambiguous,
    /// The JSON could not be written down again.
    #[error("the definition cannot be kept: {0}")]
    Unwritable(String),
}

/// An entry of a tool list that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The tool's name, or its position in the list if it has no name.
    pub label: String,
    /// What is wrong with it.
    pub reason: Malformed,
}

/// Reads the entries of a `tools/list`. One malformed entry never takes the others with it. Of a tool
/// with several definitions none is used.
pub fn read_list(entries: &[Value]) -> (Vec<Definition>, Vec<Rejected>) {
    let mut seen: HashMap<Arc<str>, Fingerprint> = HashMap::new();
    let (mut repeated, mut ambiguous) = (HashSet::new(), HashSet::new());
    let mut definitions = Vec::with_capacity(entries.len());
    let mut rejected = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let result = Definition::from_value(entry).and_then(|definition| {
            let Definition { name, fingerprint, .. } = &definition;
            match seen.get(name) {
                None => {
                    seen.insert(Arc::clone(name), *fingerprint);
                    Ok(Some(definition))
                }
                Some(first) if first == fingerprint => {
                    let is_told = ambiguous.contains(name) || !repeated.insert(Arc::clone(name));
                    if is_told { Ok(None) } else { Err(Malformed::Duplicate) }
                }
                Some(_) if ambiguous.insert(Arc::clone(name)) => Err(Malformed::Ambiguous),
                Some(_) => Ok(None),
            }
        });
        match result {
            Ok(definition) => definitions.extend(definition),
            Err(reason) => {
                let label = entry
                    .get("name")
                    .and_then(Value::as_str)
                    .filter(|name| !name.is_empty())
                    .map_or_else(|| format!("#{}", index + 1), |name| printable(name, 64));
                rejected.push(Rejected { label, reason });
            }
        }
    }
    definitions.retain(|definition| !ambiguous.contains(&definition.name));
    (definitions, rejected)
}

impl Definition {
    /// Checks the fields that toolgate relies on, and keeps the rest unchanged.
    pub fn from_value(value: &Value) -> Result<Self, Malformed> {
        let object = value.as_object().ok_or(Malformed::NotAnObject(kind(value)))?;
        let name = object
            .get("name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty() && name.len() <= MAX_TOOL_NAME_BYTES)
            .ok_or(Malformed::Name)?;
        match object.get("inputSchema") {
            Some(Value::Object(_)) => {}
            Some(other) => return Err(Malformed::InputSchema(kind(other))),
            None => return Err(Malformed::InputSchema("missing")),
        }
        let json = serde_json::to_string(value)
            .map_err(|error| Malformed::Unwritable(error.to_string()))?;
        if json.len() > MAX_DEFINITION_BYTES {
            return Err(Malformed::TooLarge(json.len()));
        }
        let description = object.get("description").and_then(Value::as_str).unwrap_or_default();
        Ok(Self {
            name: name.into(),
            description: description.into(),
            json: json.into(),
            fingerprint: Fingerprint::of(value),
            tokens: OnceLock::new(),
            view: ToolView::of(object.get("_meta")),
        })
    }

    /// A definition that was read before, from parts of it that were stored. Nothing is checked, and
    /// only one that may have a view is parsed.
    pub fn restored(stored: &StoredDefinition<'_>) -> Self {
        Self {
            name: stored.name.into(),
            description: stored.description.into(),
            json: stored.json.into(),
            fingerprint: stored.fingerprint,
            tokens: OnceLock::from(stored.tokens),
            view: ToolView::of_text(stored.json),
        }
    }

    /// What [`Self::restored`] needs. Counts the tokens.
    pub fn stored(&self) -> StoredDefinition<'_> {
        StoredDefinition {
            name: &self.name,
            description: &self.description,
            json: &self.json,
            fingerprint: self.fingerprint,
            tokens: self.tokens(),
        }
    }

    /// The tool's own name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The description; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What the tool has to do with MCP Apps.
    pub fn view(&self) -> ToolView {
        self.view
    }

    /// The whole definition, as text.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The whole definition, parsed.
    pub fn to_value(&self) -> Value {
        // The text was written from a value, so it always parses.
        serde_json::from_str(&self.json).unwrap_or(Value::Null)
    }

    /// The schema of the arguments.
    pub fn input_schema(&self) -> Value {
        #[derive(Deserialize)]
        struct Part {
            #[serde(rename = "inputSchema")]
            input_schema: Value,
        }
        serde_json::from_str::<Part>(&self.json).map_or(Value::Null, |part| part.input_schema)
    }

    /// The schema of the structured result, where the server declares one.
    pub fn output_schema(&self) -> Option<Value> {
        #[derive(Deserialize)]
        struct Part {
            #[serde(rename = "outputSchema")]
            output_schema: Option<Value>,
        }
        serde_json::from_str::<Part>(&self.json)
            .ok()?
            .output_schema
            .filter(|schema| schema.as_object().is_some_and(|fields| !fields.is_empty()))
    }

    /// Whether the tool can be called only as a task (`execution.taskSupport`).
    pub fn needs_task(&self) -> bool {
        // Few definitions have it, and every call asks.
        self.json.contains("taskSupport")
            && self.to_value()["execution"]["taskSupport"] == "required"
    }

    /// The content's hash.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The cost of this tool in a model's context: name, description and input schema as compact
    /// JSON, in tokens of o200k. Counted once.
    pub fn tokens(&self) -> u32 {
        *self.tokens.get_or_init(|| {
            let count = TokenCounter::shared().count(&self.prompt_text());
            u32::try_from(count).unwrap_or(u32::MAX)
        })
    }

    /// The same in characters.
    pub fn characters(&self) -> usize {
        self.prompt_text().chars().count()
    }

    /// The characters of name, description and parameters as JSON, without what holds them together. Some
    /// clients count in this way.
    pub fn plain_characters(&self) -> usize {
        let schema = self.input_schema().to_string();
        let texts: [&str; 3] = [self.name(), self.description(), schema.as_str()];
        texts.iter().map(|text| text.chars().count()).sum()
    }

    fn prompt_text(&self) -> String {
        #[derive(Deserialize, Serialize)]
        struct Prompt<'a> {
            #[serde(borrow)]
            name: &'a RawValue,
            #[serde(borrow, skip_serializing_if = "Option::is_none")]
            description: Option<&'a RawValue>,
            #[serde(borrow, rename = "inputSchema")]
            input_schema: &'a RawValue,
        }
        serde_json::from_str::<Prompt<'_>>(&self.json)
            .and_then(|prompt| serde_json::to_string(&prompt))
            .unwrap_or_else(|_| self.json.to_string())
    }
}

impl Fingerprint {
    /// Hashes a JSON value, with the keys of each object in order.
    pub fn of(value: &Value) -> Self {
        let mut hasher = blake3::Hasher::new();
        hash_value(value, &mut hasher);
        Self(*hasher.finalize().as_bytes())
    }

    /// The fingerprint with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Combines the fingerprints of a list, in its order.
    pub fn of_list<'a>(definitions: impl IntoIterator<Item = &'a Definition>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for definition in definitions {
            hasher.update(&definition.fingerprint.0);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

/// The hexadecimal digits of a hash. Each call needs some, and those of `blake3` take several times as long.
pub fn hex(hash: &[u8; 32]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
    let mut text = String::with_capacity(2 * hash.len());
    for byte in hash {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| NotAFingerprint)?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({self})")
    }
}

/// Each kind of value starts with its own byte and its length, so that different values give
/// different bytes. The parser has limited the depth.
fn hash_value(value: &Value, hasher: &mut blake3::Hasher) {
    match value {
        Value::Null => drop(hasher.update(b"n")),
        Value::Bool(flag) => drop(hasher.update(if *flag { b"t" } else { b"f" })),
        Value::Number(number) => hash_text(b'#', &number.to_string(), hasher),
        Value::String(text) => hash_text(b'"', text, hasher),
        Value::Array(items) => {
            hasher.update(b"[");
            hasher.update(&(items.len() as u64).to_le_bytes());
            for item in items {
                hash_value(item, hasher);
            }
        }
        Value::Object(fields) => {
            hasher.update(b"{");
            hasher.update(&(fields.len() as u64).to_le_bytes());
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            for (key, field) in sorted {
                hash_text(b'k', key, hasher);
                hash_value(field, hasher);
            }
        }
    }
}

fn hash_text(kind: u8, text: &str, hasher: &mut blake3::Hasher) {
    hasher.update(&[kind]);
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A server's text, fit for one line of a report.
fn printable(text: &str, limit: usize) -> String {
    text.chars().filter(|character| !character.is_control()).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_kept() {
        let sent = json!({
            "name": "t", "inputSchema": {"properties": {}, "x-vendor": [1, 1.5, null]},
            "execution": {"taskSupport": "optional"}, "annotations": {"custom": {"deep": true}},
            "description": null,
        });
        let definition = Definition::from_value(&sent).unwrap();
        assert_eq!(definition.to_value(), sent);
        assert_eq!(definition.input_schema(), sent["inputSchema"]);
        assert_eq!(definition.description(), "");
    }

    #[test]
    fn one_bad_tool_leaves_the_others() {
        let good = json!({"name": "good", "inputSchema": {}});
        let entries = [
            json!({"inputSchema": {}}),
            good.clone(),
            json!({"name": 7, "inputSchema": {}}),
            json!({"name": "no_schema"}),
            json!({"name": "text_schema", "inputSchema": "object"}),
            json!("junk"),
            good,
            json!({"name": "huge", "inputSchema": {"x": "y".repeat(MAX_DEFINITION_BYTES)}}),
        ];
        let (definitions, rejected) = read_list(&entries);
        assert_eq!(definitions.len(), 1);
        let report: Vec<String> =
            rejected.iter().map(|entry| format!("{}: {}", entry.label, entry.reason)).collect();
        insta::assert_snapshot!(report.join("\n"), @r"
        #1: `name` is missing or not a non-empty string of at most 512 bytes
        #3: `name` is missing or not a non-empty string of at most 512 bytes
        no_schema: `inputSchema` is missing, not an object
        text_schema: `inputSchema` is a string, not an object
        #6: the definition is a string, not an object
        good: the list has it twice, with the same definition; the first one is used
        huge: the definition has 1048614 bytes, more than the 1 MiB allowed
        ");
    }

    #[test]
    fn none_of_several_definitions_of_one_tool_is_used() {
        let tool = |name: &str, about: &str| json!({ "name": name, "description": about, "inputSchema": {} });
        let entries = [
            tool("twice", "Reads."),
            tool("other", "Reads."),
            tool("twice", "Deletes."),
            tool("twice", "Reads."),
            tool("same", "Reads."),
            tool("same", "Reads."),
        ];
        let (definitions, rejected) = read_list(&entries);
        let names: Vec<&str> = definitions.iter().map(|definition| &**definition.name()).collect();
        assert_eq!(names, ["other", "same"]);
        let labels: Vec<&str> = rejected.iter().map(|entry| &*entry.label).collect();
        assert_eq!(labels, ["twice", "same"], "each is said once");
    }

    #[test]
    fn the_fingerprint_sees_content_and_not_order() {
        let one = Fingerprint::of(&json!({"a": 1, "b": ["x", "y"]}));
        let same: Value = serde_json::from_str(r#"{"b":["x","y"],"a":1}"#).unwrap();
        assert_eq!(one, Fingerprint::of(&same));
        assert_ne!(one, Fingerprint::of(&json!({"a": 1, "b": ["xy"]})));
        assert_ne!(one, Fingerprint::of(&json!({"a": 1.0, "b": ["x", "y"]})));
        assert_ne!(Fingerprint::of(&json!(["a", "b"])), Fingerprint::of(&json!(["ab"])));
    }

    #[test]
    fn a_fingerprint_is_read_as_it_was_written() {
        let one = Fingerprint::of(&json!({"a": 1}));
        assert_eq!(one.to_string().parse(), Ok(one));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), one);
        assert_eq!("abc".parse::<Fingerprint>(), Err(NotAFingerprint));
        assert_eq!("é".repeat(32).parse::<Fingerprint>(), Err(NotAFingerprint));
    }

    #[test]
    fn the_cost_is_that_of_the_three_fields_a_provider_sees() {
        let definition = Definition::from_value(&json!({
            "name": "add", "description": "Adds two numbers.",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
            "outputSchema": {"type": "object"}, "_meta": {"x": 1},
        }))
        .unwrap();
        let prompt = r#"{"name":"add","description":"Adds two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"number"}}}}"#;
        assert_eq!(definition.characters(), prompt.len());
        assert_eq!(definition.tokens() as usize, TokenCounter::shared().count(prompt));
    }
}
