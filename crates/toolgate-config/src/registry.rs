//! Where servers can be found that are not in the file.

use std::path::PathBuf;
use std::time::Duration;

/// Where servers can be found that are not in the file: the `registry` key. Nowhere, unless it is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// In this order; of two servers with one name, that of the first source counts.
    pub sources: Vec<RegistrySource>,
    /// How long an answer of a registry is used before it is asked again.
    pub cache: Duration,
}

/// One place where servers can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistrySource {
    /// A registry that speaks the API of the official one; a valid URL.
    Url(String),
    /// A file, or a folder of files, as it is written; a relative one is meant from the
    /// configuration's own folder.
    Path(PathBuf),
}

impl Default for Registry {
    fn default() -> Self {
        Self { sources: Vec::new(), cache: Duration::from_hours(24) }
    }
}
