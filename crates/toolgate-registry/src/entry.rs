//! One server as a registry describes it: the official `server.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A server of a registry. Unknown fields of its description are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryEntry {
    /// Its name, such as `io.github.acme/crm`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its title for people.
    #[serde(default)]
    pub title: Option<String>,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// The source that it was read from.
    #[serde(skip)]
    pub source: String,
    #[serde(default)]
    pub(crate) packages: Vec<Package>,
    #[serde(default)]
    pub(crate) remotes: Vec<RemoteEndpoint>,
}

/// A program that can be run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Package {
    pub(crate) registry_type: String,
    pub(crate) registry_base_url: Option<String>,
    pub(crate) identifier: String,
    pub(crate) version: Option<String>,
    pub(crate) transport: Option<PackageTransport>,
    pub(crate) runtime_arguments: Vec<Argument>,
    #[serde(rename = "packageArguments")]
    pub(crate) own_arguments: Vec<Argument>,
    pub(crate) environment_variables: Vec<Input>,
}

/// The transport of a program.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PackageTransport {
    pub(crate) r#type: String,
}

/// A URL that can be contacted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RemoteEndpoint {
    pub(crate) r#type: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<Input>,
    pub(crate) variables: BTreeMap<String, Input>,
}

/// One argument of a program.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Argument {
    pub(crate) r#type: String,
    /// The option with its dashes, for a named argument.
    pub(crate) name: Option<String>,
    pub(crate) value_hint: Option<String>,
    #[serde(flatten)]
    pub(crate) input: Value,
}

/// A value that is fixed, has a default, or has to come from a person.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    /// May contain `{name}` of `variables`.
    pub(crate) value: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) variables: BTreeMap<String, Input>,
}

/// The longest name of a server.
const LONGEST_NAME: usize = 200;
/// Longer descriptions are cut.
const DESCRIPTION_CHARACTERS: usize = 2_000;

impl RegistryEntry {
    /// Reads one element of a registry's list, or a `server.json`. Returns `None` if it is no
    /// server, or a deleted one.
    pub(crate) fn read(value: &Value, source: &str) -> Option<Self> {
        const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
        let described = value.get("server").unwrap_or(value);
        let status = value.pointer("/_meta").and_then(|meta| meta.get(OFFICIAL)?.get("status"));
        let status = status.or_else(|| described.get("status")).and_then(Value::as_str);
        if status == Some("deleted") {
            return None;
        }
        let mut entry = Self::deserialize(described).ok()?;
        let sound =
            |character: char| character.is_ascii_alphanumeric() || "._-/".contains(character);
        let named = !entry.name.is_empty() && entry.name.len() <= LONGEST_NAME;
        if !named || !entry.name.chars().all(sound) || !is_version(&entry.version) {
            return None;
        }
        if let Some((end, _)) = entry.description.char_indices().nth(DESCRIPTION_CHARACTERS) {
            entry.description.truncate(end);
        }
        source.clone_into(&mut entry.source);
        Some(entry)
    }

    /// The prefix of its tools' names: the last part of its own name.
    pub fn prefix(&self) -> &str {
        self.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&self.name)
    }
}

/// Whether a text is an exact version, not a range or a command-line option.
pub(crate) fn is_version(text: &str) -> bool {
    let sound = |character: char| character.is_ascii_alphanumeric() || ".+-_".contains(character);
    text.len() <= 100 && text.chars().all(sound) && !text.starts_with('-')
}
