//! The cached definitions of servers, by server and by content.
//!
//! A small file for each server contains its era and the fingerprint of its content. The content is
//! a separate file that is named by the fingerprint. So a start without changes writes nothing. The
//! content has a checksum instead of being parsed, and it has what is known about each definition:
//!
//! ```text
//! bytes   what (numbers are little-endian)
//! 4       definitions
//! for each definition:
//!   32    its fingerprint
//!   4     its tokens
//!   12    the lengths of its name, its description and its JSON, 4 each
//! the names, descriptions and JSON texts, in the same order
//! ```

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_catalog::{Definition, Fingerprint, StoredDefinition};
use toolgate_mcp::Era;

use crate::{StoreError, files, sealed};

/// A larger file was not written by toolgate.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// How long it counts that a server has not answered.
const SILENCE: Duration = Duration::from_mins(10);

/// The cached definitions of all servers. The nodes of a fleet read what another node has listed, and keep it in their
/// files too.
#[derive(Debug, Clone)]
pub struct DefinitionCache {
    folder: PathBuf,
    shared: Option<Arc<dyn DefinitionStore>>,
}

/// Stores the definitions of servers for whoever starts next: which content a server has, and the contents by their
/// fingerprints. What is lost is listed again. The embedded implementation is [`DefinitionCache`].
pub trait DefinitionStore: fmt::Debug + Send + Sync {
    /// What is known of a server.
    fn entry(&self, key: &ServerKey) -> Option<DefinitionEntry>;

    /// A content, as it was stored.
    fn content(&self, fingerprint: &str) -> Option<Vec<u8>>;

    /// Stores what is known of a server, and its content. A content that no server has any more is removed.
    fn put(
        &self,
        key: &ServerKey,
        entry: &DefinitionEntry,
        content: &[u8],
    ) -> Result<(), StoreError>;
}

/// What is known of a server without its definitions.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionEntry {
    /// Its name.
    pub server: String,
    /// How to talk to it.
    pub memory: ServerMemory,
    /// The fingerprint of its definitions.
    pub fingerprint: String,
}

/// Identifies the server of a cache entry: its name, and what it runs or contacts. A server with
/// another command is another server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerKey(String);

/// The stored properties of a server, without its tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerMemory {
    /// The outcome of the probe.
    pub era: Era,
    /// The protocol version that was agreed on.
    pub protocol_version: String,
    /// How the server calls itself, as it was sent.
    pub server_info: Value,
    /// The server's words to the model.
    pub instructions: Option<String>,
    /// The capabilities that the server declared; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Map<String, Value>>,
}

/// The cache entry of a server.
#[derive(Debug, Clone)]
pub struct CachedServer {
    /// How to talk to it.
    pub memory: ServerMemory,
    /// Its tools when it was last listed.
    pub definitions: Vec<Definition>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerFile {
    version: u32,
    server: String,
    memory: ServerMemory,
    definitions: String,
}

const VERSION: u32 = 2;

impl ServerKey {
    /// The key for `server`. `target` identifies what it runs or contacts, without secrets.
    pub fn new(server: &str, target: &str) -> Self {
        let digest = blake3::hash(target.as_bytes()).to_hex();
        Self(format!("{}-{}", files::slug(server), &digest[..8]))
    }
}

impl ServerKey {
    /// As a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DefinitionCache {
    pub(crate) fn new(folder: PathBuf, shared: Option<Arc<dyn DefinitionStore>>) -> Self {
        Self { folder, shared }
    }

    /// How to talk to a server, without reading its definitions.
    pub fn memory(&self, key: &ServerKey) -> Option<ServerMemory> {
        let own = self.pointer(key).map(|pointer| pointer.memory);
        own.or_else(|| Some(self.shared.as_ref()?.entry(key)?.memory))
    }

    /// The entry of a server; `None` if it is missing, damaged or changed by others.
    pub fn load(&self, key: &ServerKey) -> Option<CachedServer> {
        self.load_own(key).or_else(|| self.load_shared(key))
    }

    fn load_own(&self, key: &ServerKey) -> Option<CachedServer> {
        let pointer = self.pointer(key)?;
        let Some(definitions) = self.definitions(&pointer.definitions) else {
            // A damaged file would pass for an unchanged one when the same content is saved.
            let _ = fs::remove_file(self.content_path(&pointer.definitions));
            return None;
        };
        Some(CachedServer { memory: pointer.memory, definitions })
    }

    /// The entry that another node has stored. The next start finds it in the files.
    fn load_shared(&self, key: &ServerKey) -> Option<CachedServer> {
        let shared = self.shared.as_ref()?;
        let entry = shared.entry(key)?;
        let content = shared.content(&entry.fingerprint)?;
        let definitions = read_content(&content)?;
        if Fingerprint::of_list(&definitions).to_string() != entry.fingerprint {
            return None;
        }
        // If it cannot be written, the next start reads it here again.
        let _ = self.put(key, &entry, &content);
        Some(CachedServer { memory: entry.memory, definitions })
    }

    /// The definitions of this fingerprint, if they are there and sound.
    fn definitions(&self, fingerprint: &str) -> Option<Vec<Definition>> {
        read_content(&self.content(fingerprint)?)
    }

    /// Stores the definitions of a server, if they changed. Returns whether they did.
    pub fn save<'a>(
        &self,
        key: &ServerKey,
        server: &str,
        memory: &ServerMemory,
        definitions: impl IntoIterator<Item = &'a Definition> + Clone,
    ) -> Result<bool, StoreError> {
        let fingerprint = Fingerprint::of_list(definitions.clone()).to_string();
        let before = self.pointer(key);
        let content_path = self.content_path(&fingerprint);
        if let Some(before) = &before
            && before.definitions == fingerprint
            && before.memory == *memory
            && content_path.exists()
        {
            return Ok(false);
        }
        let content = write_content(definitions.into_iter().map(Definition::stored));
        let (server, memory) = (server.to_owned(), memory.clone());
        let entry = DefinitionEntry { server, memory, fingerprint };
        self.put(key, &entry, &content)?;
        if let Some(shared) = &self.shared {
            // If this fails, the other nodes list it themselves.
            let _ = shared.put(key, &entry, &content);
        }
        Ok(true)
    }

    /// Notes that a server has not answered.
    pub fn note_silent(&self, key: &ServerKey) -> Result<(), StoreError> {
        files::replace(&self.silent_path(key), b"")
    }

    /// Notes that a server asks by requests.
    pub fn note_asks(&self, key: &ServerKey) -> Result<(), StoreError> {
        files::replace(&self.asks_path(key), b"")
    }

    /// Whether a server has asked by requests.
    pub fn asks(&self, key: &ServerKey) -> bool {
        self.asks_path(key).exists()
    }

    /// Whether a server did not answer a short time ago.
    pub fn was_silent(&self, key: &ServerKey) -> bool {
        let noted = fs::metadata(self.silent_path(key)).and_then(|file| file.modified());
        noted.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < SILENCE))
    }

    /// Removes a content file that no server uses. A failure does no harm.
    fn drop_unused(&self, fingerprint: &str) {
        let Ok(entries) = fs::read_dir(self.folder.join("servers")) else { return };
        let used = entries.flatten().any(|entry| {
            read_json::<ServerFile>(&entry.path())
                .is_some_and(|pointer| pointer.definitions == fingerprint)
        });
        if !used && is_fingerprint(fingerprint) {
            let _ = fs::remove_file(self.content_path(fingerprint));
            remove_first_version(&self.content_path(fingerprint));
        }
    }

    fn pointer(&self, key: &ServerKey) -> Option<ServerFile> {
        let pointer: ServerFile = read_json(&self.server_path(key))?;
        // Version 1 differs in its content files only, which are then missing.
        let is_known = (1..=VERSION).contains(&pointer.version);
        (is_known && is_fingerprint(&pointer.definitions)).then_some(pointer)
    }

    fn server_path(&self, key: &ServerKey) -> PathBuf {
        self.folder.join("servers").join(format!("{}.json", key.0))
    }

    fn silent_path(&self, key: &ServerKey) -> PathBuf {
        self.folder.join("silent").join(&key.0)
    }

    fn asks_path(&self, key: &ServerKey) -> PathBuf {
        self.folder.join("asks").join(&key.0)
    }

    fn content_path(&self, fingerprint: &str) -> PathBuf {
        self.folder.join("definitions").join(format!("{fingerprint}.bin"))
    }
}

impl DefinitionStore for DefinitionCache {
    fn entry(&self, key: &ServerKey) -> Option<DefinitionEntry> {
        let ServerFile { server, memory, definitions, .. } = self.pointer(key)?;
        Some(DefinitionEntry { server, memory, fingerprint: definitions })
    }

    fn content(&self, fingerprint: &str) -> Option<Vec<u8>> {
        let path = self.content_path(fingerprint);
        let file = sealed::read(&path, &purpose(fingerprint), MAX_FILE_BYTES)?;
        Some(file.content().to_vec())
    }

    fn put(
        &self,
        key: &ServerKey,
        entry: &DefinitionEntry,
        content: &[u8],
    ) -> Result<(), StoreError> {
        let fingerprint = &entry.fingerprint;
        let (before, path) = (self.pointer(key), self.content_path(fingerprint));
        if !is_fingerprint(fingerprint) {
            let error = io::Error::other("the content has no fingerprint");
            return Err(StoreError::new(&self.folder, error));
        }
        if self.definitions(fingerprint).is_none() {
            sealed::replace(&path, &purpose(fingerprint), content)?;
            remove_first_version(&path);
        }
        let pointer = ServerFile {
            version: VERSION,
            server: entry.server.clone(),
            memory: entry.memory.clone(),
            definitions: fingerprint.clone(),
        };
        write_json(&self.server_path(key), &pointer)?;
        if let Some(before) = before
            && before.definitions != *fingerprint
        {
            self.drop_unused(&before.definitions);
        }
        Ok(())
    }
}

/// Removes what version 1 wrote instead of a content file. A failure does no harm.
fn remove_first_version(content_path: &Path) {
    let _ = fs::remove_file(content_path.with_extension("json"));
}

fn purpose(fingerprint: &str) -> String {
    format!("definitions {VERSION} {fingerprint}")
}

const FIELDS: usize = 48;

fn write_content<'a>(definitions: impl Iterator<Item = StoredDefinition<'a>>) -> Vec<u8> {
    let definitions: Vec<_> = definitions.collect();
    // Limits keep all of these far below the largest number.
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
    let mut content = number(definitions.len()).to_vec();
    for StoredDefinition { name, description, json, fingerprint, tokens } in &definitions {
        content.extend(fingerprint.as_bytes());
        content.extend(tokens.to_le_bytes());
        content.extend([name.len(), description.len(), json.len()].map(number).as_flattened());
    }
    for StoredDefinition { name, description, json, .. } in &definitions {
        content.extend([name, description, json].into_iter().flat_map(|text| text.bytes()));
    }
    content
}

fn read_content(content: &[u8]) -> Option<Vec<Definition>> {
    let (count, rest) = content.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let (fields, texts) = rest.split_at_checked(count.checked_mul(FIELDS)?)?;
    let (fields, _) = fields.as_chunks::<FIELDS>();
    let mut texts = str::from_utf8(texts).ok()?;
    let mut definitions = Vec::with_capacity(count);
    for field in fields {
        let (fingerprint, numbers) = field.split_first_chunk::<32>()?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let [tokens, lengths @ ..] = numbers else { return None };
        let mut text = |place: usize| -> Option<&str> {
            let length = usize::try_from(u32::from_le_bytes(*lengths.get(place)?)).ok()?;
            let (text, rest) = texts.split_at_checked(length)?;
            texts = rest;
            Some(text)
        };
        definitions.push(Definition::restored(&StoredDefinition {
            name: text(0)?,
            description: text(1)?,
            json: text(2)?,
            fingerprint: Fingerprint::from_bytes(*fingerprint),
            tokens: u32::from_le_bytes(*tokens),
        }));
    }
    texts.is_empty().then_some(definitions)
}

/// The text becomes part of a path, so it must be a fingerprint.
fn is_fingerprint(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&files::read_bounded(path, MAX_FILE_BYTES).ok()?).ok()
}

fn write_json<T: Serialize>(path: &Path, content: &T) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(content)
        .map_err(|error| StoreError::new(path, io::Error::other(error)))?;
    files::replace(path, &bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Store;

    fn definition(name: &str) -> Definition {
        let value = json!({"name": name, "inputSchema": {"x": [1.0, 1]}, "execution": {"a": null}});
        Definition::from_value(&value).unwrap()
    }

    fn memory() -> ServerMemory {
        ServerMemory {
            era: Era::Legacy,
            protocol_version: "2025-11-25".into(),
            server_info: json!({"name": "x"}),
            instructions: None,
            capabilities: Some(Map::from_iter([("resources".to_owned(), json!({"odd": 1}))])),
        }
    }

    #[test]
    fn what_was_saved_comes_back_equal() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).definitions();
        let key = ServerKey::new("github", "npx server");
        assert!(cache.load(&key).is_none());
        let definitions = [definition("a"), definition("b")];
        assert!(cache.save(&key, "github", &memory(), &definitions).unwrap());
        assert!(!cache.save(&key, "github", &memory(), &definitions).unwrap(), "nothing changed");

        let loaded = cache.load(&key).unwrap();
        assert_eq!(loaded.memory, memory());
        let values: Vec<_> = loaded.definitions.iter().map(Definition::to_value).collect();
        assert_eq!(values, definitions.each_ref().map(Definition::to_value));
        assert!(cache.load(&ServerKey::new("github", "other command")).is_none());
    }

    #[test]
    fn a_server_that_asks_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).definitions();
        let (one, other) = (ServerKey::new("one", "npx server"), ServerKey::new("one", "another"));
        assert!(!cache.asks(&one));
        cache.note_asks(&one).unwrap();
        assert!(cache.asks(&one) && !cache.asks(&other), "another command is another server");
    }

    #[test]
    fn what_is_known_about_a_definition_is_not_found_out_again() {
        let definitions = [definition("a"), definition("b")];
        let content = write_content(definitions.iter().map(Definition::stored));
        let read = read_content(&content).unwrap();
        for (read, written) in read.iter().zip(&definitions) {
            assert_eq!(read.json(), written.json());
            assert_eq!(read.fingerprint(), Fingerprint::of(&written.to_value()));
            assert_eq!(read.tokens(), written.tokens());
        }
        assert!((0..content.len()).all(|end| read_content(&content[..end]).is_none()));
        assert!(read_content(&[&content[..], b"x"].concat()).is_none());
    }

    #[test]
    fn a_file_of_the_first_version_is_a_server_that_must_be_listed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).definitions();
        let key = ServerKey::new("s", "");
        cache.save(&key, "s", &memory(), &[definition("a")]).unwrap();
        let pointer = cache.pointer(&key).unwrap();
        let content = cache.content_path(&pointer.definitions);
        let old = content.with_extension("json");
        fs::rename(&content, &old).unwrap();
        write_json(&cache.server_path(&key), &ServerFile { version: 1, ..pointer }).unwrap();
        assert_eq!(cache.memory(&key), Some(memory()), "how to talk to it is known");
        assert!(cache.load(&key).is_none());
        assert!(cache.save(&key, "s", &memory(), &[definition("b")]).unwrap());
        assert!(cache.load(&key).is_some());
        assert!(!old.exists());
    }

    #[test]
    fn old_content_is_removed_unless_another_server_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).definitions();
        let (one, two) = (ServerKey::new("one", ""), ServerKey::new("two", ""));
        let content = || fs::read_dir(folder.path().join("cache/definitions")).unwrap().count();
        cache.save(&one, "one", &memory(), &[definition("a")]).unwrap();
        cache.save(&two, "two", &memory(), &[definition("a")]).unwrap();
        assert_eq!(content(), 1, "equal content is kept once");
        cache.save(&one, "one", &memory(), &[definition("b")]).unwrap();
        assert_eq!(content(), 2, "`two` still needs the old content");
        cache.save(&two, "two", &memory(), &[definition("b")]).unwrap();
        assert_eq!(content(), 1);
    }

    #[test]
    fn damage_is_absence() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).definitions();
        let key = ServerKey::new("s", "");
        cache.save(&key, "s", &memory(), &[definition("a")]).unwrap();
        let content = fs::read_dir(folder.path().join("cache/definitions")).unwrap();
        let path = content.flatten().next().unwrap().path();
        let whole = fs::read(&path).unwrap();
        let changed = whole.iter().map(|byte| if *byte == b'a' { b'z' } else { *byte }).collect();
        let mend = || cache.save(&key, "s", &memory(), &[definition("a")]).unwrap();
        for damaged in [changed, whole[..whole.len() - 1].to_vec(), b"{".to_vec(), Vec::new()] {
            fs::write(&path, &damaged).unwrap();
            assert!(cache.load(&key).is_none(), "changed behind our back");
            assert!(mend());
            assert!(cache.load(&key).is_some(), "what is saved again is whole again");

            fs::write(&path, damaged).unwrap();
            fs::write(cache.server_path(&key), "nonsense").unwrap();
            assert!(cache.load(&key).is_none());
            assert!(mend());
            assert!(cache.load(&key).is_some());
        }
    }
}
