//! One approved definition: of a tool, a prompt, a resource or a template, or the instructions of a
//! server.

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_catalog::{Definition, Fingerprint, ServerName};

use super::{
    lock::{LockError, empty, object, shape, sorted},
    scan_value, shown,
};

/// The key of a definition that a person has approved in spite of findings.
pub(super) const REVIEWED: &str = "reviewed";
/// The key that says which fields are pinned. Versions that pinned a few fields of tools did not
/// write it.
const FIELDS: &str = "fields";
const ALL_FIELDS: &str = "all";

/// The fields of a tool that are pinned where [`FIELDS`] is missing.
const FIRST_PINNED: [&str; 5] =
    ["title", "description", "inputSchema", "outputSchema", "annotations"];
/// The longest time that is not pinned, in bytes.
const LONGEST_TIME: usize = 40;
/// The longest name or URI that is shown, in characters.
const LONGEST_KEY: usize = 200;

/// What a server offers besides tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// The instructions of the server.
    Instructions,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
    /// A skill, with the digests of its files.
    Skill,
}

/// The definition of a prompt, a resource or a template, or the instructions of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    /// The server that sent it.
    pub server: ServerName,
    /// What it is.
    pub kind: EntryKind,
    /// The name of a prompt, or the URI of a resource or template; empty for instructions.
    pub key: Arc<str>,
    /// What the server sent; for instructions, an object with the `text`.
    pub value: Arc<Value>,
}

/// One definition that was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedDefinition {
    fingerprint: Fingerprint,
    definition: Map<String, Value>,
    /// Whether all fields are pinned, and not only those that earlier versions pinned.
    is_whole: bool,
    pub(super) others: Map<String, Value>,
}

/// What identifies a definition: the field that names it, and the name.
#[derive(Debug, Clone, Copy)]
pub(super) struct PinKey<'k> {
    field: &'static str,
    name: &'k str,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Instructions, Self::Prompt, Self::Resource, Self::Template, Self::Skill];
    /// The kinds that every server may have, without an extension of the protocol.
    pub const WITHOUT_EXTENSION: [Self; 4] =
        [Self::Instructions, Self::Prompt, Self::Resource, Self::Template];

    /// The name of the kind in the lock file, and in the names of entries.
    pub fn section(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "templates",
            Self::Skill => "skills",
        }
    }

    /// The field that identifies an entry; instructions have none.
    pub fn key_field(self) -> &'static str {
        match self {
            Self::Instructions => "",
            Self::Prompt => "name",
            Self::Resource | Self::Skill => "uri",
            Self::Template => "uriTemplate",
        }
    }

    pub(super) fn pin_key(self, name: &str) -> PinKey<'_> {
        PinKey { field: self.key_field(), name }
    }
}

impl ServerEntry {
    /// An entry of a list; `None` if nothing identifies it.
    pub fn new(server: &ServerName, kind: EntryKind, value: Value) -> Option<Self> {
        let key = value.get(kind.key_field())?.as_str()?.into();
        Some(Self { server: server.clone(), kind, key, value: Arc::new(value) })
    }

    /// The instructions of a server.
    pub fn instructions(server: &ServerName, text: &str) -> Self {
        let value = Value::Object(Map::from_iter([("text".to_owned(), text.into())]));
        let kind = EntryKind::Instructions;
        Self { server: server.clone(), kind, key: "".into(), value: Arc::new(value) }
    }

    /// The pinned part.
    pub(super) fn locked(&self) -> LockedDefinition {
        let mut pinned = all_fields(&self.value, self.kind.key_field());
        if self.kind == EntryKind::Resource {
            remove_what_follows_the_content(&mut pinned);
        }
        LockedDefinition::new(self.kind.pin_key(&self.key), pinned, true)
    }
}

impl fmt::Display for ServerEntry {
    /// `SERVER/prompts/NAME`, safe to display.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.server, self.kind.section())?;
        if self.kind == EntryKind::Instructions {
            return Ok(());
        }
        write!(formatter, "/{}", shown(&self.key, LONGEST_KEY))
    }
}

impl<'k> PinKey<'k> {
    pub(super) fn tool(name: &'k str) -> Self {
        Self { field: "name", name }
    }

    fn fingerprint(self, pinned: &Map<String, Value>) -> Fingerprint {
        let mut all = pinned.clone();
        if !self.field.is_empty() {
            all.insert(self.field.to_owned(), self.name.into());
        }
        Fingerprint::of(&Value::Object(all))
    }
}

impl LockedDefinition {
    fn new(key: PinKey<'_>, pinned: Map<String, Value>, is_whole: bool) -> Self {
        let fingerprint = key.fingerprint(&pinned);
        Self { fingerprint, definition: pinned, is_whole, others: Map::new() }
    }

    /// Everything in the definition of a tool.
    pub(super) fn of(definition: &Definition) -> Self {
        let pinned = all_fields(&definition.to_value(), "name");
        Self::new(PinKey::tool(definition.name()), pinned, true)
    }

    /// The same part of a tool's definition as in this one.
    pub(super) fn same_part_of(&self, definition: &Definition) -> Self {
        let mut now = Self::of(definition);
        if !self.is_whole {
            now.definition.retain(|field, _| FIRST_PINNED.contains(&&**field));
            now = Self::new(PinKey::tool(definition.name()), now.definition, false);
        }
        now
    }

    /// Whether something is suspicious in the fields that are not pinned here.
    pub(super) fn leaves_suspicions(&self, definition: &Definition) -> bool {
        if self.is_whole {
            return false;
        }
        let mut rest = Self::of(definition).definition;
        rest.retain(|field, _| !FIRST_PINNED.contains(&&**field));
        !scan_value(&Value::Object(rest)).is_empty()
    }

    /// The hash of the name and the pinned fields.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The pinned fields, without the name.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }

    /// Whether all fields are pinned. An earlier version of toolgate pinned only a few.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether the fingerprint matches the definition beside it. After an edit by hand it does not,
    /// and the definition is not approved.
    pub(super) fn is_consistent(&self, key: PinKey<'_>) -> bool {
        key.fingerprint(&self.definition) == self.fingerprint
    }

    pub(super) fn read(value: Value, path: &str) -> Result<Self, LockError> {
        let mut others = object(value, path)?;
        let fingerprint = others
            .remove("fingerprint")
            .and_then(|value| value.as_str()?.parse().ok())
            .ok_or_else(|| shape(&format!("{path}.fingerprint"), "a fingerprint"))?;
        let definition = object(others.remove("definition").unwrap_or_else(empty), path)?;
        let is_whole = others.get(FIELDS).is_some_and(|fields| fields == ALL_FIELDS);
        others.retain(|key, _| !is_whole || key != FIELDS);
        Ok(Self { fingerprint, definition, is_whole, others })
    }

    pub(super) fn write(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("fingerprint".into(), self.fingerprint.to_string().into());
        if self.is_whole {
            fields.insert(FIELDS.into(), ALL_FIELDS.into());
        }
        fields.extend(sorted(&self.others));
        fields.insert("definition".into(), Value::Object(sorted(&self.definition)));
        Value::Object(fields)
    }
}

/// All fields except the one that names the definition, in the order of their names.
fn all_fields(value: &Value, name: &str) -> Map<String, Value> {
    let Value::Object(fields) = value else { return Map::new() };
    let mut fields = sorted(fields);
    fields.retain(|field, value| field != name && !value.is_null());
    fields
}

/// Removes the size of a resource and the time of its last change: they follow its content.
fn remove_what_follows_the_content(pinned: &mut Map<String, Value>) {
    pinned.retain(|field, value| !(field == "size" && value.is_number()));
    if let Some(Value::Object(annotations)) = pinned.get_mut("annotations") {
        annotations.retain(|field, value| field != "lastModified" || !is_time(value));
    }
}

/// Whether a value is a time, and no text.
fn is_time(value: &Value) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b"TZtz:.+- ".contains(&byte);
    value.as_str().is_some_and(|time| time.len() <= LONGEST_TIME && time.bytes().all(is_part))
}
