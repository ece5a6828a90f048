//! Servers from files and folders, and the cache of remote registries.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::RegistryEntry;

/// How many files of a folder are read.
const MAX_FILES: usize = 2_000;
/// Larger files are not read.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// Larger cache files are not read.
pub(crate) const MAX_CACHE_BYTES: u64 = 128 * 1024 * 1024;

/// The list of a remote registry, as it is cached.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cached {
    /// When it was received, in seconds since 1970.
    at: u64,
    pub(crate) servers: Vec<Value>,
}

/// The servers of a file, or of the `.json` files in a folder and the `server.json`s in its folders.
/// Files that cannot be read are reported in `problems`.
pub(crate) fn read(path: &Path, problems: &mut Vec<String>) -> Vec<RegistryEntry> {
    let source = path.display().to_string();
    let mut entries = Vec::new();
    let files = match files_of(path) {
        Ok(files) => files,
        Err(error) => {
            problems.push(format!("{source} cannot be read: {error}"));
            return entries;
        }
    };
    for file in files {
        match read_bounded(&file, MAX_FILE_BYTES)
            .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))
        {
            Ok(value) => entries.extend(entries_of(&value, &source)),
            Err(error) => problems.push(format!("{} cannot be read: {error}", file.display())),
        }
    }
    entries
}

/// The servers of a document: a list, an object with `servers`, or one server.
pub(crate) fn entries_of(value: &Value, source: &str) -> Vec<RegistryEntry> {
    let listed = value.get("servers").unwrap_or(value);
    match listed {
        Value::Array(list) => {
            list.iter().filter_map(|one| RegistryEntry::read(one, source)).collect()
        }
        one => RegistryEntry::read(one, source).into_iter().collect(),
    }
}

/// The content of a file that is not too large.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}

fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for item in fs::read_dir(path)?.take(MAX_FILES) {
        let item = item?.path();
        if item.is_dir() {
            files.extend(Some(item.join("server.json")).filter(|file| file.is_file()));
        } else if item.extension().is_some_and(|extension| extension == "json") {
            files.push(item);
        }
    }
    // Sorted, so that the choice between two servers of one name is always the same.
    files.sort();
    Ok(files)
}

impl Cached {
    pub(crate) fn now(servers: Vec<Value>) -> Self {
        Self { at: now().as_secs(), servers }
    }

    pub(crate) fn age(&self) -> Duration {
        now().saturating_sub(Duration::from_secs(self.at))
    }

    pub(crate) fn load(path: &Path) -> Option<Self> {
        serde_json::from_slice(&read_bounded(path, MAX_CACHE_BYTES).ok()?).ok()
    }

    /// Replaces the file in one step.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(self)?)?;
        fs::rename(&temporary, path)
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
