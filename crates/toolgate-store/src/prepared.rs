//! What the search index needs of servers' tools, by the content that it was made of.
//!
//! One file for each content and each version of the code that made it. A start reads the files of
//! its servers and writes nothing; a server that has changed has another content.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use toolgate_catalog::Fingerprint;

use crate::{StoreError, files, sealed, sealed::Sealed};

/// A larger file was not written by toolgate.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;
/// How many files are kept. Beyond that those that were written first are removed.
pub const MAX_PREPARED_FILES: usize = 2_000;
/// How many are removed at once, so that not every new file lists the folder in vain.
const PRUNED_AT_ONCE: usize = MAX_PREPARED_FILES / 10;

/// The prepared texts of all contents.
#[derive(Debug, Clone)]
pub struct PreparedCache {
    folder: PathBuf,
}

impl PreparedCache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The bytes that this version made of this content; `None` if they are missing or damaged.
    pub fn load(&self, content: Fingerprint, version: &str) -> Option<Sealed> {
        sealed::read(&self.path(content, version), &purpose(content, version), MAX_FILE_BYTES)
    }

    /// Stores what this version made of this content.
    pub fn save(
        &self,
        content: Fingerprint,
        version: &str,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        sealed::replace(&self.path(content, version), &purpose(content, version), bytes)?;
        prune(&self.folder, MAX_PREPARED_FILES, PRUNED_AT_ONCE);
        Ok(())
    }

    fn path(&self, content: Fingerprint, version: &str) -> PathBuf {
        self.folder.join(format!("{content}-{}.bin", files::slug(version)))
    }
}

fn purpose(content: Fingerprint, version: &str) -> String {
    format!("prepared {version} {content}")
}

/// Removes the oldest files if there are more than `most`. A failure does no harm, and neither does
/// another process that does the same: what is missing is made again.
fn prune(folder: &Path, most: usize, at_once: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if paths.len() <= most {
        return;
    }
    let written = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    let mut aged: Vec<(Option<SystemTime>, PathBuf)> =
        paths.into_iter().map(|path| (written(&path), path)).collect();
    aged.sort();
    let excess = aged.len() - most + at_once;
    for (_, path) in aged.into_iter().take(excess) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Store;

    #[test]
    fn bytes_belong_to_a_content_and_a_version() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Store::new(folder.path()).prepared();
        let (one, two) = (Fingerprint::of(&json!(1)), Fingerprint::of(&json!(2)));
        cache.save(one, "1", b"bytes").unwrap();
        let load = |content, version| Some(cache.load(content, version)?.content().to_vec());
        assert_eq!(load(one, "1").as_deref(), Some(&b"bytes"[..]));
        assert_eq!((load(one, "2"), load(two, "1")), (None, None));
        fs::rename(cache.path(one, "1"), cache.path(two, "1")).unwrap();
        assert_eq!(load(two, "1"), None, "it was made of something else");
    }

    #[test]
    fn the_oldest_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for age in 0..10_u64 {
            let file = fs::File::create(folder.path().join(format!("{age}"))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(100 - age)).unwrap();
        }
        let left = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        prune(folder.path(), 10, 2);
        assert_eq!(left().len(), 10);
        prune(folder.path(), 9, 2);
        assert_eq!(left(), ["0", "1", "2", "3", "4", "5", "6"]);
        prune(&folder.path().join("missing"), 9, 2);
    }
}
