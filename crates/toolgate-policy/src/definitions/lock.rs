//! `toolgate.lock`: the definitions that were approved.
//!
//! The file is JSON with one value per line and sorted keys, so that version control shows a
//! changed definition as changed lines. Invisible characters are written as escapes. Fields that
//! this version does not know are kept.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_catalog::{Definition, ServerName};

use super::{
    pin::{EntryKind, LockedDefinition, PinKey, REVIEWED, ServerEntry},
    scan::HiddenKind,
};

/// The largest lock file that is read.
pub const MAX_LOCK_BYTES: usize = 64 * 1024 * 1024;

const VERSION: u64 = 1;
/// The most resources of one server that are pinned. Longer lists are data.
const MOST_RESOURCES: usize = 1_000;

/// The definitions that were approved, by server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    servers: BTreeMap<ServerName, LockedServer>,
    /// Fields of the file that this version does not know.
    others: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct LockedServer {
    /// `None` if no tool was ever pinned.
    tools: Option<BTreeMap<Box<str>, LockedDefinition>>,
    /// A kind that is missing was never pinned.
    entries: BTreeMap<EntryKind, BTreeMap<Box<str>, LockedDefinition>>,
    others: Map<String, Value>,
}

/// Definitions of one server that toolgate pins by itself, because they are new and used.
#[derive(Debug, Clone, Default)]
pub struct NewPins {
    /// Definitions of tools.
    pub tools: Vec<Definition>,
    /// Definitions of prompts and templates, or the instructions.
    pub entries: Vec<ServerEntry>,
    /// The kind that is pinned from now on, even if the server has none of it.
    pub covered: Option<EntryKind>,
}

/// How much of a server an earlier version of toolgate did not pin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotPinned {
    /// How many tools are pinned without `_meta`, icons and unknown fields.
    pub tools: usize,
    /// The kinds of entries that were never pinned.
    pub entries: Vec<EntryKind>,
}

/// Why a lock file cannot be used. Nothing counts as approved then.
#[derive(Debug, Error)]
pub enum LockError {
    /// The file is larger than [`MAX_LOCK_BYTES`].
    #[error("the lock file has {0} bytes, more than the 64 MiB allowed")]
    TooLarge(usize),
    /// The text is not JSON.
    #[error("the lock file is broken: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A newer version of toolgate wrote the file.
    #[error("the lock file has version {0}, which needs a newer toolgate")]
    Version(String),
    /// A value is not of the expected kind.
    #[error("`{path}` in the lock file is not {expected}")]
    Shape {
        /// The path of the value.
        path: String,
        /// The expected kind.
        expected: &'static str,
    },
}

impl Lock {
    /// Reads a lock file. An empty text is an empty lock.
    pub fn read(text: &str) -> Result<Self, LockError> {
        if text.len() > MAX_LOCK_BYTES {
            return Err(LockError::TooLarge(text.len()));
        }
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut others = object(serde_json::from_str(text)?, "(the top)")?;
        let version = others.remove("version").unwrap_or_default();
        if version != VERSION {
            return Err(LockError::Version(super::shown(&version.to_string(), 20)));
        }
        let listed = object(others.remove("servers").unwrap_or_else(empty), "servers")?;
        let mut servers = BTreeMap::new();
        for (name, value) in listed {
            let path = format!("servers.{name}");
            let mut others = object(value, &path)?;
            let tools = others.remove("tools");
            let tools = tools.map(|tools| read_section(tools, &format!("{path}.tools")));
            let tools = tools.transpose()?;
            let mut entries = BTreeMap::new();
            for kind in EntryKind::ALL {
                let Some(value) = others.remove(kind.section()) else { continue };
                let path = format!("{path}.{}", kind.section());
                let section = match (kind, value) {
                    (EntryKind::Instructions, Value::Null) => BTreeMap::new(),
                    (EntryKind::Instructions, value) => {
                        BTreeMap::from([("".into(), LockedDefinition::read(value, &path)?)])
                    }
                    (_, value) => read_section(value, &path)?,
                };
                entries.insert(kind, section);
            }
            servers.insert(name.into(), LockedServer { tools, entries, others });
        }
        Ok(Self { servers, others })
    }

    /// The text of the lock file. The same content always gives the same text.
    pub fn write(&self) -> String {
        let mut servers = Map::new();
        for (name, server) in &self.servers {
            let mut fields = sorted(&server.others);
            for (kind, section) in &server.entries {
                let value = match (kind, section.values().next()) {
                    (EntryKind::Instructions, locked) => {
                        locked.map_or(Value::Null, LockedDefinition::write)
                    }
                    _ => write_section(section),
                };
                fields.insert(kind.section().into(), value);
            }
            if let Some(tools) = &server.tools {
                fields.insert("tools".into(), write_section(tools));
            }
            servers.insert(name.to_string(), Value::Object(fields));
        }
        let mut root = Map::new();
        root.insert("version".into(), VERSION.into());
        root.extend(sorted(&self.others));
        root.insert("servers".into(), Value::Object(servers));
        visible(&format!("{:#}", Value::Object(root)))
    }

    /// The approved definition of a tool.
    pub fn get(&self, server: &ServerName, tool: &str) -> Option<&LockedDefinition> {
        self.servers.get(server)?.tools.as_ref()?.get(tool)
    }

    /// The approved definition of an entry.
    pub fn entry(&self, entry: &ServerEntry) -> Option<&LockedDefinition> {
        self.servers.get(&entry.server)?.entries.get(&entry.kind)?.get(&*entry.key)
    }

    /// Whether any tool of a server was ever approved.
    pub fn knows(&self, server: &ServerName) -> bool {
        self.servers.get(server).is_some_and(|server| server.tools.is_some())
    }

    /// Whether entries of this kind of a server were ever pinned, so that others are new.
    pub fn covers(&self, server: &ServerName, kind: EntryKind) -> bool {
        self.servers.get(server).is_some_and(|server| server.entries.contains_key(&kind))
    }

    /// How much of a server an earlier version did not pin.
    pub fn not_pinned(&self, server: &ServerName) -> NotPinned {
        let Some(server) = self.servers.get(server) else { return NotPinned::default() };
        NotPinned {
            tools: server.tools.iter().flatten().filter(|(_, tool)| !tool.is_whole()).count(),
            entries: EntryKind::WITHOUT_EXTENSION
                .into_iter()
                .filter(|kind| !server.entries.contains_key(kind))
                .collect(),
        }
    }

    /// The approved tools of a server, in the order of their names.
    pub fn tools(&self, server: &ServerName) -> impl Iterator<Item = (&str, &LockedDefinition)> {
        let tools = self.servers.get(server).and_then(|server| server.tools.as_ref());
        let tools = tools.into_iter().flatten();
        tools.map(|(name, locked)| (&**name, locked))
    }

    /// Approves a definition. Unknown fields of the tool's entry are kept.
    pub fn approve(&mut self, server: &ServerName, definition: &Definition) {
        let tools = &mut self.servers.entry(server.clone()).or_default().tools;
        put(tools.get_or_insert_default(), definition.name(), LockedDefinition::of(definition));
    }

    /// Approves an entry. Beyond the first thousand resources of a server nothing is pinned.
    pub fn approve_entry(&mut self, entry: &ServerEntry) {
        let section = self.section(&entry.server, entry.kind);
        let is_full = entry.kind == EntryKind::Resource && section.len() >= MOST_RESOURCES;
        if section.contains_key(&*entry.key) || !is_full {
            put(section, &entry.key, entry.locked());
        }
    }

    /// Pins entries of this kind of a server from now on, so that later ones are new.
    pub fn cover(&mut self, server: &ServerName, kind: EntryKind) {
        self.section(server, kind);
    }

    /// Pins what is new.
    pub fn pin(&mut self, server: &ServerName, new: &NewPins) {
        for definition in &new.tools {
            self.approve(server, definition);
        }
        for entry in &new.entries {
            self.approve_entry(entry);
        }
        if let Some(kind) = new.covered {
            self.cover(server, kind);
        }
    }

    /// Approves a definition after a person has seen its findings.
    pub fn review(&mut self, server: &ServerName, definition: &Definition) {
        self.approve(server, definition);
        let tools = self.servers.get_mut(server).and_then(|server| server.tools.as_mut());
        mark_reviewed(tools.and_then(|tools| tools.get_mut(&**definition.name())));
    }

    /// Approves an entry after a person has seen its findings.
    pub fn review_entry(&mut self, entry: &ServerEntry) {
        self.approve_entry(entry);
        mark_reviewed(self.section(&entry.server, entry.kind).get_mut(&*entry.key));
    }

    /// Whether a person has approved exactly this definition in spite of its findings.
    pub fn is_reviewed(&self, server: &ServerName, definition: &Definition) -> bool {
        let name: &str = definition.name();
        self.get(server, name).is_some_and(|locked| {
            is_marked(locked)
                && locked.is_consistent(PinKey::tool(name))
                && locked.same_part_of(definition).fingerprint() == locked.fingerprint()
                && !locked.leaves_suspicions(definition)
        })
    }

    /// Whether a person has approved exactly this entry in spite of its findings.
    pub fn is_entry_reviewed(&self, entry: &ServerEntry) -> bool {
        self.entry(entry).is_some_and(|locked| {
            is_marked(locked)
                && locked.is_consistent(entry.kind.pin_key(&entry.key))
                && entry.locked().fingerprint() == locked.fingerprint()
        })
    }

    /// Removes a tool, so that it is new when it comes back.
    pub fn forget(&mut self, server: &ServerName, tool: &str) -> Option<LockedDefinition> {
        self.servers.get_mut(server)?.tools.as_mut()?.remove(tool)
    }

    fn section(
        &mut self,
        server: &ServerName,
        kind: EntryKind,
    ) -> &mut BTreeMap<Box<str>, LockedDefinition> {
        self.servers.entry(server.clone()).or_default().entries.entry(kind).or_default()
    }
}

/// Replaces an entry of the file, and keeps its unknown fields.
fn put(
    section: &mut BTreeMap<Box<str>, LockedDefinition>,
    name: &str,
    mut locked: LockedDefinition,
) {
    let mut others = section.remove(name).map(|before| before.others).unwrap_or_default();
    // The review was about the earlier definition.
    others.remove(REVIEWED);
    locked.others = others;
    section.insert(name.into(), locked);
}

fn mark_reviewed(locked: Option<&mut LockedDefinition>) {
    if let Some(locked) = locked {
        locked.others.insert(REVIEWED.into(), true.into());
    }
}

fn is_marked(locked: &LockedDefinition) -> bool {
    locked.others.get(REVIEWED) == Some(&Value::Bool(true))
}

fn read_section(
    value: Value,
    path: &str,
) -> Result<BTreeMap<Box<str>, LockedDefinition>, LockError> {
    let listed = object(value, path)?.into_iter();
    let read = listed.map(|(name, value)| {
        let locked = LockedDefinition::read(value, &format!("{path}.{name}"))?;
        Ok((name.into(), locked))
    });
    read.collect()
}

fn write_section(section: &BTreeMap<Box<str>, LockedDefinition>) -> Value {
    let written = section.iter().map(|(name, locked)| (name.to_string(), locked.write()));
    Value::Object(written.collect())
}

pub(super) fn object(value: Value, path: &str) -> Result<Map<String, Value>, LockError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(shape(path, "an object")),
    }
}

pub(super) fn shape(path: &str, expected: &'static str) -> LockError {
    LockError::Shape { path: super::shown(path, 200), expected }
}

pub(super) fn empty() -> Value {
    Value::Object(Map::new())
}

pub(super) fn sorted(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    sorted.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect()
}

/// The value with the keys of each object sorted.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(sorted(fields)),
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// The JSON with invisible characters as escapes. They occur only in strings.
fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if character == '\n' || HiddenKind::of(character).is_none() {
            text.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    text
}
