//! The texts that are indexed.
//!
//! Everything is borrowed, because an index stores words and weights, not texts.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The exposed name of a tool: what a search returns and what a call takes.
///
/// A key is unique within an index. Ties in a ranking are broken by it, so that the order of
/// results never depends on the order in which servers connected.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolKey(Arc<str>);

impl ToolKey {
    /// A key from an exposed name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The exposed name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ToolKey {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl Borrow<str> for ToolKey {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ToolKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The indexed texts of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText<'a> {
    /// The tool's own name as its server spells it, for example `create_issue`.
    pub name: &'a str,
    /// The title for people, where the server sent one.
    pub title: Option<&'a str>,
    /// The description; empty where there is none.
    pub description: &'a str,
    /// The parameters, those of nested objects flattened into the same list.
    pub parameters: Vec<ParameterText<'a>>,
}

/// The indexed texts of a parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterText<'a> {
    /// The name of the property.
    pub name: &'a str,
    /// Its description; empty where there is none.
    pub description: &'a str,
    /// The strings that it may take, where its schema lists them.
    pub values: Vec<&'a str>,
}

/// The indexed texts of a server. They weigh less than those of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerText<'a> {
    /// The name under which people know the server.
    pub name: &'a str,
    /// The description or instructions; empty where there are none.
    pub description: &'a str,
}
