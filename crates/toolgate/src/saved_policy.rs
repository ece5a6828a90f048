//! The policy that a person has saved for all nodes of a fleet, in their database.
//!
//! Until one is saved, the `policy` of the configuration counts.

use serde_json::{Value, json};
use toolgate_config::SavedPolicyText;
use toolgate_store::{Store, StoreError, VersionedText};

/// The policy that is saved in the database of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPolicy {
    /// Counts how often it was saved or removed.
    pub version: u64,
    /// What is saved, or why this version of toolgate cannot read it.
    pub content: Result<PolicyContent, String>,
    /// What messages call it.
    name: String,
}

/// What is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyContent {
    /// The value of `policy`, as JSON.
    pub text: String,
    /// Who saved it.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// The version of the text in the database. A toolgate that knows only older ones denies every call.
const FORMAT: u64 = 1;

impl SavedPolicy {
    /// The version of what the nodes have saved, and the policy if there is one. `None` without a fleet. Waits for the
    /// database.
    pub fn read(store: Option<&Store>) -> Result<Option<(u64, Option<Self>)>, StoreError> {
        let Some(shared) = store.and_then(Store::shared) else { return Ok(None) };
        let VersionedText { version, text } = shared.policy().read()?;
        Ok(Some((version, text.map(|text| Self::of(version, &text)))))
    }

    /// A policy that a person tries.
    pub fn tried(policy: &Value) -> Self {
        let content = PolicyContent { text: pretty(policy), by: String::new(), at: 0 };
        Self { version: 0, content: Ok(content), name: "the policy".to_owned() }
    }

    fn of(version: u64, text: &str) -> Self {
        let content = PolicyContent::read(text);
        Self { version, content, name: format!("policy {version} of the fleet") }
    }

    /// The same for the reader of configurations.
    pub fn text(&self) -> SavedPolicyText<'_> {
        let text = self.content.as_ref().map(|content| &*content.text).map_err(|why| &**why);
        SavedPolicyText { name: &self.name, text }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl PolicyContent {
    /// A policy that is saved now.
    pub fn new(policy: &Value, by: &str, at: u64) -> Self {
        Self { text: pretty(policy), by: by.to_owned(), at }
    }

    /// The text for the database.
    pub fn write(&self) -> String {
        let policy: Value = serde_json::from_str(&self.text).unwrap_or_default();
        json!({ "format": FORMAT, "policy": policy, "by": self.by, "at": self.at }).to_string()
    }

    fn read(text: &str) -> Result<Self, String> {
        let read: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let known = read["format"].as_u64();
        if known != Some(FORMAT) {
            return Err("a newer toolgate has saved it".to_owned());
        }
        let policy = read.get("policy").ok_or("it has no policy")?;
        let by = read["by"].as_str().unwrap_or_default().to_owned();
        Ok(Self { text: pretty(policy), by, at: read["at"].as_u64().unwrap_or_default() })
    }
}

fn pretty(policy: &Value) -> String {
    serde_json::to_string_pretty(policy).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_and_what_is_newer_is_not() {
        let policy = json!({ "default": "ask", "rules": [{ "tool": "a", "verdict": "deny" }] });
        let content = PolicyContent::new(&policy, "shell:ann", 7);
        let saved = SavedPolicy::of(3, &content.write());
        assert_eq!(saved.content, Ok(content));
        assert_eq!(saved.text().name, "policy 3 of the fleet");
        for text in
            ["", "{}", "\"off\"", r#"{ "format": 2, "policy": "off" }"#, r#"{ "format": 1 }"#]
        {
            let unknown = SavedPolicy::of(3, text);
            assert!(unknown.content.is_err() && unknown.text().text.is_err(), "{text}");
        }
    }
}
