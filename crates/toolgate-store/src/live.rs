//! What running gateways say of themselves, for commands that look from outside.
//!
//! Each gateway has a file, and holds the lock of another one while it runs. A file whose lock is free
//! was left behind by a gateway that was killed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{StoreError, files};

/// The folder with the files of all running gateways.
#[derive(Debug, Clone)]
pub struct LiveFolder {
    path: PathBuf,
}

/// The file of one running gateway, which is removed when this is dropped.
#[derive(Debug)]
pub struct LiveFile {
    folder: PathBuf,
    process: u32,
    _lock: fs::File,
}

/// The largest file that is read.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How many gateways are read.
const MAX_GATEWAYS: usize = 1_000;

impl LiveFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Begins the file of this process.
    pub fn open(&self) -> Result<LiveFile, StoreError> {
        files::make_folder(&self.path)?;
        let process = std::process::id();
        let path = self.path.join(format!("{process}.lock"));
        let lock = files::private_options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(|error| StoreError::new(&path, error))?;
        lock.try_lock().map_err(|error| StoreError::new(&path, error.into()))?;
        Ok(LiveFile { folder: self.path.clone(), process, _lock: lock })
    }

    /// What the running gateways last wrote, with their process ids. Removes what others left behind.
    pub fn read(&self) -> Vec<(u32, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten().take(MAX_GATEWAYS * 3) {
            let path = entry.path();
            let Some(process) = number(&path, "json") else { continue };
            if is_running(&self.path.join(format!("{process}.lock"))) {
                if let Ok(text) = files::read_bounded(&path, MAX_BYTES) {
                    found.push((process, text));
                }
            } else {
                remove(&self.path, process);
            }
        }
        found.sort_unstable_by_key(|(process, _)| *process);
        found.truncate(MAX_GATEWAYS);
        found
    }

    /// Asks the gateway with this session to reset it. Returns the file that is gone once it is done.
    pub fn ask_for_reset(&self, session: &str) -> Result<PathBuf, StoreError> {
        let path = request(&self.path, session);
        files::replace(&path, b"")?;
        Ok(path)
    }
}

impl LiveFile {
    /// Replaces what the gateway says of itself.
    pub fn write(&self, text: &[u8]) -> Result<(), StoreError> {
        files::replace(&self.folder.join(format!("{}.json", self.process)), text)
    }

    /// Whether somebody has asked to reset a session.
    pub fn wants_reset(&self, session: &str) -> bool {
        request(&self.folder, session).exists()
    }

    /// Tells the one who asked that the reset is done, and that the file shows it.
    pub fn end_reset(&self, session: &str) {
        // Nobody may wait any more.
        let _ = fs::remove_file(request(&self.folder, session));
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        remove(&self.folder, self.process);
    }
}

/// Whether somebody holds the lock of a gateway.
fn is_running(path: &Path) -> bool {
    let Ok(file) = fs::OpenOptions::new().write(true).open(path) else { return false };
    matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))
}

/// The file that asks for the reset of a session.
fn request(folder: &Path, session: &str) -> PathBuf {
    folder.join(format!("{}.reset", files::slug(session)))
}

fn number(path: &Path, extension: &str) -> Option<u32> {
    let is_named = path.extension().is_some_and(|it| it == extension);
    path.file_stem().filter(|_| is_named)?.to_str()?.parse().ok()
}

fn remove(folder: &Path, process: u32) {
    for extension in ["json", "lock"] {
        // What cannot be removed does no harm.
        let _ = fs::remove_file(folder.join(format!("{process}.{extension}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gateways_that_run_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveFolder::new(folder.path().join("live"));
        assert!(live.read().is_empty());
        let file = live.open().unwrap();
        file.write(b"{}").unwrap();
        assert_eq!(live.read(), [(std::process::id(), b"{}".to_vec())]);
        // One that was killed.
        fs::write(live.path.join("1.json"), "{}").unwrap();
        fs::write(live.path.join("1.lock"), "").unwrap();
        fs::write(live.path.join("x.json"), "{}").unwrap();
        assert_eq!(live.read().len(), 1);
        assert!(!live.path.join("1.json").exists());

        let asked = live.ask_for_reset("s_1/../x").unwrap();
        assert_eq!(asked.parent().unwrap(), live.path);
        assert!(!file.wants_reset("s_2") && file.wants_reset("s_1/../x"));
        file.end_reset("s_1/../x");
        assert!(!file.wants_reset("s_1/../x") && !asked.exists());
        drop(file);
        assert!(live.read().is_empty());
    }
}
