//! The names of servers and tools.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// A server's name, as the configuration spells it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerName(Arc<str>);

/// A tool's identity: its server, and the name the server gave it. Never shown to a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolId {
    /// The server that has the tool.
    pub server: ServerName,
    /// The tool's own name, as the server sent it.
    pub tool: Arc<str>,
}

/// The one name of a tool: in search, in `call_tool`, in a script.
///
/// Only `A-Z a-z 0-9 _`, at most [`MAX_NAME_CHARACTERS`](crate::MAX_NAME_CHARACTERS), an
/// identifier in TypeScript and in Python.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ExposedName(Arc<str>);

impl ServerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ExposedName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Shares the text without copying it.
    pub fn to_arc(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// The name that a program has written; `None` if no tool can have it.
    pub fn written(name: &str) -> Option<Self> {
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let is_name = (1..=crate::MAX_NAME_CHARACTERS).contains(&name.len())
            && name.chars().all(is_part)
            && !name.starts_with(|first: char| first.is_ascii_digit());
        is_name.then(|| Self::new(name))
    }

    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

impl ToolId {
    /// Names the tool `tool` of `server`.
    pub fn new(server: impl Into<ServerName>, tool: impl Into<Arc<str>>) -> Self {
        Self { server: server.into(), tool: tool.into() }
    }
}

impl<T: Into<Arc<str>>> From<T> for ServerName {
    fn from(name: T) -> Self {
        Self(name.into())
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ExposedName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for ExposedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
