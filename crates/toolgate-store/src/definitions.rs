//! The cached definitions of servers, by server and by content.
//!
//! A small file for each server contains its era and the fingerprint of its content. The content is
//! a separate file that is named by the fingerprint. So a start without changes writes nothing.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use toolgate_catalog::{Definition, Fingerprint};
use toolgate_mcp::Era;

use crate::{StoreError, files};

/// A larger file was not written by toolgate.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// How long it counts that a server has not answered.
const SILENCE: Duration = Duration::from_mins(10);

/// The cached definitions of all servers.
#[derive(Debug, Clone)]
pub struct DefinitionCache {
    folder: PathBuf,
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

#[derive(Deserialize)]
struct ContentFile {
    tools: Vec<Value>,
    tokens: Vec<u32>,
}

#[derive(Serialize)]
struct ContentFileOut<'a> {
    tools: Vec<&'a RawValue>,
    tokens: Vec<u32>,
}

const VERSION: u32 = 1;

impl ServerKey {
    /// The key for `server`. `target` identifies what it runs or contacts, without secrets.
    pub fn new(server: &str, target: &str) -> Self {
        let digest = blake3::hash(target.as_bytes()).to_hex();
        Self(format!("{}-{}", files::slug(server), &digest[..8]))
    }
}

impl DefinitionCache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// How to talk to a server, without reading its definitions.
    pub fn memory(&self, key: &ServerKey) -> Option<ServerMemory> {
        self.pointer(key).map(|pointer| pointer.memory)
    }

    /// The entry of a server; `None` if it is missing, damaged or changed by others.
    pub fn load(&self, key: &ServerKey) -> Option<CachedServer> {
        let pointer = self.pointer(key)?;
        let Some(definitions) = self.content(&pointer.definitions) else {
            // A damaged file would pass for an unchanged one when the same content is saved.
            let _ = fs::remove_file(self.content_path(&pointer.definitions));
            return None;
        };
        Some(CachedServer { memory: pointer.memory, definitions })
    }

    /// The definitions of this fingerprint, if they are there and sound.
    fn content(&self, fingerprint: &str) -> Option<Vec<Definition>> {
        let content: ContentFile = read_json(&self.content_path(fingerprint))?;
        let definitions =
            content.tools.iter().map(Definition::from_value).collect::<Result<Vec<_>, _>>().ok()?;
        if Fingerprint::of_list(&definitions).to_string() != fingerprint {
            return None;
        }
        if content.tokens.len() == definitions.len() {
            for (definition, tokens) in definitions.iter().zip(content.tokens) {
                definition.remember_tokens(tokens);
            }
        }
        Some(definitions)
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
        let path = self.server_path(key);
        let before = self.pointer(key);
        let content_path = self.content_path(&fingerprint);
        if let Some(before) = &before
            && before.definitions == fingerprint
            && before.memory == *memory
            && content_path.exists()
        {
            return Ok(false);
        }
        if self.content(&fingerprint).is_none() {
            let (tools, tokens) = definitions
                .into_iter()
                .map(|definition| (definition.json(), definition.tokens()))
                .unzip();
            write_json(&content_path, &ContentFileOut { tools, tokens })?;
        }
        let pointer = ServerFile {
            version: VERSION,
            server: server.to_owned(),
            memory: memory.clone(),
            definitions: fingerprint.clone(),
        };
        write_json(&path, &pointer)?;
        if let Some(before) = before
            && before.definitions != fingerprint
        {
            self.drop_unused(&before.definitions);
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
        }
    }

    fn pointer(&self, key: &ServerKey) -> Option<ServerFile> {
        let pointer: ServerFile = read_json(&self.server_path(key))?;
        (pointer.version == VERSION && is_fingerprint(&pointer.definitions)).then_some(pointer)
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
        self.folder.join("definitions").join(format!("{fingerprint}.json"))
    }
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
        let text = fs::read_to_string(&path).unwrap();
        let mend = || cache.save(&key, "s", &memory(), &[definition("a")]).unwrap();
        for damaged in [text.replace("\"a\"", "\"z\""), "{".to_owned(), String::new()] {
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
