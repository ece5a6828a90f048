//! One tree for all syntaxes, with the position of every key and value.

mod jsonc;
mod toml;
mod yaml;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::position::SourceText;
use crate::{ConfigError, Format, MAX_DEPTH, MAX_FILE_BYTES};

/// A value and where it begins.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: Value<'a>,
    /// In bytes from the start of the text.
    pub(crate) offset: usize,
}

/// A value of any syntax.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    Null,
    Boolean(bool),
    /// A number as it is written, in base ten.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Object<'a>),
    /// A date or time of TOML, which no setting takes.
    Date,
    /// An alias of YAML. It is not followed, because a few of them can stand for a whole disk.
    Alias,
}

/// The members of an object in the order of the file, each key once.
#[derive(Debug, Default)]
pub(crate) struct Object<'a> {
    pub(crate) members: Vec<Member<'a>>,
    /// The members that a later one with the same key replaced.
    pub(crate) replaced: Vec<Replaced<'a>>,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_offset: usize,
    pub(crate) node: Node<'a>,
}

/// A key that was written again further down.
#[derive(Debug)]
pub(crate) struct Replaced<'a> {
    pub(crate) key: Cow<'a, str>,
    /// The offset of the key of the effective value.
    pub(crate) later_offset: usize,
}

/// Reads the text into a tree; an empty file is an empty object.
pub(crate) fn read<'a>(source: &SourceText<'a>, format: Format) -> Result<Object<'a>, ConfigError> {
    let source_name = || source.name().to_owned();
    let bytes = source.text().len();
    if bytes > MAX_FILE_BYTES {
        return Err(ConfigError::TooLarge {
            source_name: source_name(),
            bytes,
            limit: MAX_FILE_BYTES,
        });
    }
    let root = match format {
        Format::Jsonc => jsonc::read(source)?,
        Format::Toml => toml::read(source)?,
        Format::Yaml => yaml::read(source)?,
    };
    match root.map(|node| node.value) {
        None => Ok(Object::default()),
        Some(Value::Null) if format == Format::Yaml => Ok(Object::default()),
        Some(Value::Object(mut object)) => {
            object.name_servers();
            Ok(object)
        }
        Some(other) => {
            Err(ConfigError::NotAnObject { source_name: source_name(), found: other.kind() })
        }
    }
}

/// Reads the JSON of one value, as the value of this key.
pub(crate) fn read_member<'a>(
    source: &SourceText<'a>,
    key: &'static str,
) -> Result<Object<'a>, ConfigError> {
    let bytes = source.text().len();
    if bytes > MAX_FILE_BYTES {
        let source_name = source.name().to_owned();
        return Err(ConfigError::TooLarge { source_name, bytes, limit: MAX_FILE_BYTES });
    }
    let node = jsonc::read(source)?.unwrap_or(Node { value: Value::Null, offset: 0 });
    Ok(Object::new(vec![Member { key: key.into(), key_offset: node.offset, node }]))
}

impl<'a> Object<'a> {
    /// Makes an object in which the last of several equal keys counts, as in every other reader of
    /// these files.
    fn new(all: Vec<Member<'a>>) -> Self {
        let mut last: HashMap<Cow<'a, str>, usize> = HashMap::with_capacity(all.len());
        for (index, member) in all.iter().enumerate() {
            last.insert(member.key.clone(), index);
        }
        if last.len() == all.len() {
            return Self { members: all, replaced: Vec::new() };
        }
        let offsets: Vec<usize> = all.iter().map(|member| member.key_offset).collect();
        let mut object = Self::default();
        for (index, member) in all.into_iter().enumerate() {
            match last.get(&member.key) {
                Some(&later) if later != index => {
                    let later_offset = offsets[later];
                    object.replaced.push(Replaced { key: member.key, later_offset });
                }
                _ => object.members.push(member),
            }
        }
        object
    }

    /// Turns a list of servers with names, as Continue writes it, into an object.
    fn name_servers(&mut self) {
        let is_named = |node: &Node<'_>| matches!(&node.value, Value::Object(server) if server.name().is_some());
        let servers = self.members.iter_mut().find(|member| member.key == "mcpServers");
        let Some(Value::Array(nodes)) = servers.map(|member| &mut member.node.value) else {
            return;
        };
        if nodes.is_empty() || !nodes.iter().all(is_named) {
            return;
        }
        let members = std::mem::take(nodes).into_iter().filter_map(|node| {
            let Value::Object(server) = &node.value else { return None };
            let (key, key_offset) = server.name()?;
            Some(Member { key: key.to_owned().into(), key_offset, node })
        });
        let members = Value::Object(Self::new(members.collect()));
        if let Some(member) = self.members.iter_mut().find(|member| member.key == "mcpServers") {
            member.node.value = members;
        }
    }

    /// The `name` in it, and where that is.
    fn name(&self) -> Option<(&str, usize)> {
        let member = self.get("name")?;
        match &member.node.value {
            Value::String(name) => Some((name, member.node.offset)),
            _ => None,
        }
    }

    /// The value of a key; a `null` is as good as no value.
    pub(crate) fn get(&self, key: &str) -> Option<&Member<'a>> {
        self.written(key).filter(|member| !member.is_null())
    }

    /// The value of a key, also if it is `null`: what protects must not be left out by mistake.
    pub(crate) fn written(&self, key: &str) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.key == key)
    }

    /// The same as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        let members = self.members.iter();
        members.map(|member| (member.key.to_string(), member.node.value.to_json())).collect()
    }
}

impl Member<'_> {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.value, Value::Null)
    }
}

impl Value<'_> {
    /// The same as JSON. A number that JSON does not have, and a date, becomes a string.
    fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;

        match self {
            Self::Null => Json::Null,
            Self::Boolean(boolean) => Json::Bool(*boolean),
            Self::Number(number) => {
                serde_json::from_str(number).unwrap_or_else(|_| Json::from(&**number))
            }
            Self::String(text) => Json::from(&**text),
            Self::Array(nodes) => nodes.iter().map(|node| node.value.to_json()).collect(),
            Self::Object(object) => Json::Object(object.to_json()),
            Self::Date => Json::from("a date"),
            Self::Alias => Json::from("an alias"),
        }
    }

    /// The kind of the value with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
            Self::Date => "a date",
            Self::Alias => "an alias",
        }
    }
}

/// The error for a level too deep.
fn too_deep(source: &SourceText<'_>, offset: usize) -> ConfigError {
    ConfigError::TooDeep {
        source_name: source.name().to_owned(),
        position: source.position(offset),
        limit: MAX_DEPTH,
    }
}

/// The error for a text that breaks the rules of its syntax.
fn syntax(source: &SourceText<'_>, offset: usize, message: String) -> ConfigError {
    ConfigError::Syntax {
        source_name: source.name().to_owned(),
        position: source.position(offset),
        message,
        excerpt: source.excerpt(offset),
    }
}
