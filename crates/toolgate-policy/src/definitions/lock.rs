//! `toolgate.lock`: the definitions that were approved.
//!
//! The file is JSON with one value per line and sorted keys, so that version control shows a
//! changed definition as changed lines. Invisible characters are written as escapes. Fields that
//! this version does not know are kept.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_catalog::{Definition, Fingerprint, ServerName};

use super::scan::HiddenKind;

/// The largest lock file that is read.
pub const MAX_LOCK_BYTES: usize = 64 * 1024 * 1024;

const VERSION: u64 = 1;
/// The key of a tool that a person has approved in spite of findings.
const REVIEWED: &str = "reviewed";

/// The fields of a definition that are pinned: those that a model or a person reads, and those that
/// rules use. Other fields (`_meta`, icons) may change.
const PINNED: [&str; 5] = ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// The definitions that were approved, by server and tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    servers: BTreeMap<ServerName, LockedServer>,
    /// Fields of the file that this version does not know.
    others: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct LockedServer {
    tools: BTreeMap<Box<str>, LockedTool>,
    others: Map<String, Value>,
}

/// One definition that was approved.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedTool {
    fingerprint: Fingerprint,
    definition: Map<String, Value>,
    others: Map<String, Value>,
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
            let listed = object(others.remove("tools").unwrap_or_else(empty), &path)?;
            let tools = listed
                .into_iter()
                .map(|(tool, value)| {
                    let locked = LockedTool::read(value, &format!("{path}.tools.{tool}"))?;
                    Ok((tool.into(), locked))
                })
                .collect::<Result<_, LockError>>()?;
            servers.insert(name.into(), LockedServer { tools, others });
        }
        Ok(Self { servers, others })
    }

    /// The text of the lock file. The same content always gives the same text.
    pub fn write(&self) -> String {
        let mut servers = Map::new();
        for (name, server) in &self.servers {
            let tools =
                server.tools.iter().map(|(name, locked)| (name.to_string(), locked.write()));
            let mut fields = sorted(&server.others);
            fields.insert("tools".into(), Value::Object(tools.collect()));
            servers.insert(name.to_string(), Value::Object(fields));
        }
        let mut root = Map::new();
        root.insert("version".into(), VERSION.into());
        root.extend(sorted(&self.others));
        root.insert("servers".into(), Value::Object(servers));
        visible(&format!("{:#}", Value::Object(root)))
    }

    /// The approved definition of a tool.
    pub fn get(&self, server: &ServerName, tool: &str) -> Option<&LockedTool> {
        self.servers.get(server)?.tools.get(tool)
    }

    /// Whether any tool of a server was ever approved.
    pub fn knows(&self, server: &ServerName) -> bool {
        self.servers.contains_key(server)
    }

    /// The approved tools of a server, in the order of their names.
    pub fn tools(&self, server: &ServerName) -> impl Iterator<Item = (&str, &LockedTool)> {
        let tools = self.servers.get(server).into_iter().flat_map(|server| &server.tools);
        tools.map(|(name, locked)| (&**name, locked))
    }

    /// Approves a definition. Unknown fields of the tool's entry are kept.
    pub fn approve(&mut self, server: &ServerName, definition: &Definition) {
        let tools = &mut self.servers.entry(server.clone()).or_default().tools;
        let name: &str = definition.name();
        let mut others = tools.remove(name).map(|locked| locked.others).unwrap_or_default();
        // The review was about the earlier definition.
        others.remove(REVIEWED);
        tools.insert(name.into(), LockedTool { others, ..LockedTool::of(definition) });
    }

    /// Approves a definition after a person has seen its findings.
    pub fn review(&mut self, server: &ServerName, definition: &Definition) {
        self.approve(server, definition);
        let locked = self.servers.get_mut(server);
        if let Some(locked) = locked.and_then(|server| server.tools.get_mut(&**definition.name())) {
            locked.others.insert(REVIEWED.into(), true.into());
        }
    }

    /// Whether a person has approved exactly this definition in spite of its findings.
    pub fn is_reviewed(&self, server: &ServerName, definition: &Definition) -> bool {
        let name: &str = definition.name();
        self.get(server, name).is_some_and(|locked| {
            locked.others.get(REVIEWED) == Some(&Value::Bool(true))
                && locked.is_consistent(name)
                && LockedTool::of(definition).fingerprint == locked.fingerprint
        })
    }

    /// Removes a tool, so that it is new when it comes back.
    pub fn forget(&mut self, server: &ServerName, tool: &str) -> Option<LockedTool> {
        self.servers.get_mut(server)?.tools.remove(tool)
    }
}

impl LockedTool {
    /// The pinned part of a definition.
    pub(super) fn of(definition: &Definition) -> Self {
        let value = definition.to_value();
        let pinned: Map<String, Value> = PINNED
            .iter()
            .filter_map(|key| Some((*key, value.get(key)?)))
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.to_owned(), canonical(value)))
            .collect();
        Self {
            fingerprint: fingerprint(definition.name(), &pinned),
            definition: pinned,
            others: Map::new(),
        }
    }

    /// The hash of name, title, description, schemas and annotations.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The approved definition without the name.
    pub fn definition(&self) -> &Map<String, Value> {
        &self.definition
    }

    /// Whether the fingerprint matches the definition beside it. After an edit by hand it does not,
    /// and the definition is not approved.
    pub fn is_consistent(&self, name: &str) -> bool {
        fingerprint(name, &self.definition) == self.fingerprint
    }

    fn read(value: Value, path: &str) -> Result<Self, LockError> {
        let mut others = object(value, path)?;
        let fingerprint = others
            .remove("fingerprint")
            .and_then(|value| value.as_str()?.parse().ok())
            .ok_or_else(|| shape(&format!("{path}.fingerprint"), "a fingerprint"))?;
        let definition = object(others.remove("definition").unwrap_or_else(empty), path)?;
        Ok(Self { fingerprint, definition, others })
    }

    fn write(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("fingerprint".into(), self.fingerprint.to_string().into());
        fields.extend(sorted(&self.others));
        fields.insert("definition".into(), Value::Object(sorted(&self.definition)));
        Value::Object(fields)
    }
}

fn fingerprint(name: &str, pinned: &Map<String, Value>) -> Fingerprint {
    let mut all = pinned.clone();
    all.insert("name".into(), name.into());
    Fingerprint::of(&Value::Object(all))
}

fn object(value: Value, path: &str) -> Result<Map<String, Value>, LockError> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(shape(path, "an object")),
    }
}

fn shape(path: &str, expected: &'static str) -> LockError {
    LockError::Shape { path: super::shown(path, 200), expected }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn sorted(fields: &Map<String, Value>) -> Map<String, Value> {
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
