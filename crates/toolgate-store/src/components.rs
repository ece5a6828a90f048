//! The components that run scripts of further languages.

use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{StoreError, files};

/// The folder of the components: for each language a small JSON file, and a file of machine code.
#[derive(Debug, Clone)]
pub struct ComponentFolder {
    folder: PathBuf,
}

/// A component that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentRecord {
    /// The name of the language.
    pub language: String,
    /// How a script of the language calls a tool, in a sentence for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The name of the file that was added.
    pub source: String,
    /// The BLAKE3 hash of that file.
    pub source_hash: String,
    /// The BLAKE3 hash of the machine code, which also names its file.
    pub hash: String,
    /// The size of the machine code.
    pub bytes: u64,
}

/// The largest record.
const MAX_RECORD_BYTES: u64 = 16 * 1024;

impl ComponentFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// All components, by the names of their languages. What cannot be read is left out.
    pub fn list(&self) -> Vec<ComponentRecord> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut found: Vec<ComponentRecord> =
            names.filter_map(|name| self.get(name.strip_suffix(".json")?)).collect();
        found.sort_by(|a, b| a.language.cmp(&b.language));
        found
    }

    /// The component of a language.
    pub fn get(&self, language: &str) -> Option<ComponentRecord> {
        let text = files::read_bounded(&self.record_path(language)?, MAX_RECORD_BYTES).ok()?;
        let record: ComponentRecord = serde_json::from_slice(&text).ok()?;
        (record.language == language && is_hash(&record.hash)).then_some(record)
    }

    /// The file with the machine code of a component.
    pub fn file(&self, record: &ComponentRecord) -> PathBuf {
        self.folder.join(format!("{}.code", record.hash))
    }

    /// Writes the machine code of a component, which is not added yet.
    pub fn write_code(&self, record: &ComponentRecord, code: &[u8]) -> Result<(), StoreError> {
        self.checked_path(record)?;
        files::replace(&self.file(record), code)
    }

    /// Adds a component whose machine code is written, or replaces that of the same language.
    pub fn add(&self, record: &ComponentRecord) -> Result<(), StoreError> {
        let path = self.checked_path(record)?;
        let earlier = self.get(&record.language);
        let text = serde_json::to_vec(record)
            .map_err(|error| StoreError::new(&self.folder, error.into()))?;
        files::replace(&path, &text)?;
        if let Some(earlier) = earlier {
            self.remove_code(&earlier);
        }
        Ok(())
    }

    /// Removes the component of a language. Returns `false` if there is none.
    pub fn remove(&self, language: &str) -> Result<bool, StoreError> {
        let Some(record) = self.get(language) else { return Ok(false) };
        let Some(path) = self.record_path(language) else { return Ok(false) };
        fs::remove_file(&path).map_err(|error| StoreError::new(&path, error))?;
        self.remove_code(&record);
        Ok(true)
    }

    /// Removes machine code, unless a component has it.
    pub fn remove_code(&self, record: &ComponentRecord) {
        if self.list().iter().all(|other| other.hash != record.hash) {
            // What is left does no harm.
            let _ = fs::remove_file(self.file(record));
        }
    }

    fn checked_path(&self, record: &ComponentRecord) -> Result<PathBuf, StoreError> {
        let path = self.record_path(&record.language).filter(|_| is_hash(&record.hash));
        let invalid = io::Error::from(io::ErrorKind::InvalidInput);
        path.ok_or_else(|| StoreError::new(&self.folder, invalid))
    }

    /// `None` if no language can have this name.
    fn record_path(&self, language: &str) -> Option<PathBuf> {
        is_language_name(language).then(|| self.folder.join(format!("{language}.json")))
    }
}

/// Whether a language can have this name: up to 32 of `a-z`, `0-9`, `-`, `_`, the first a letter.
pub fn is_language_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    fn record(language: &str, code: &[u8]) -> ComponentRecord {
        ComponentRecord {
            language: language.to_owned(),
            hint: None,
            source: "a.wasm".to_owned(),
            source_hash: "0".repeat(64),
            hash: blake3::hash(code).to_hex().to_string(),
            bytes: code.len() as u64,
        }
    }

    #[test]
    fn a_component_is_added_replaced_and_removed_with_its_code() {
        let folder = tempfile::tempdir().unwrap();
        let components = Store::new(folder.path()).components();
        assert!(components.list().is_empty());
        let (first, second) = (record("lua", b"one"), record("lua", b"two"));
        let add = |record: &ComponentRecord, code: &[u8]| {
            components.write_code(record, code).unwrap();
            components.add(record).unwrap();
        };
        add(&first, b"one");
        add(&record("ruby", b"one"), b"one");
        add(&second, b"two");
        assert_eq!(components.get("lua"), Some(second.clone()));
        assert_eq!(components.list().len(), 2);
        assert!(components.file(&first).exists(), "the other language has the same code");
        assert!(components.remove("ruby").unwrap());
        assert!(!components.file(&first).exists());
        assert!(!components.remove("ruby").unwrap());
        assert_eq!(components.list(), [second]);
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().unwrap();
        let components = Store::new(folder.path()).components();
        for name in ["../a", "", "Lua", "1a", "a b", "a/b", &"a".repeat(33)] {
            assert!(!is_language_name(name), "{name}");
            assert!(components.write_code(&record(name, b"x"), b"x").is_err(), "{name}");
            assert!(components.add(&record(name, b"x")).is_err(), "{name}");
            assert_eq!(components.get(name), None);
        }
        assert!(is_language_name("python-wasm"));
    }
}
