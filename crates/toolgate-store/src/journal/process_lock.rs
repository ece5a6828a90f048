//! Whether the process of a run is still alive.
//!
//! Process ids are used again, after a restart of a container even in the same order. A file lock is reliable: it is
//! held exactly as long as its process lives, however that ends.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File, TryLockError},
    hash::{BuildHasher, Hasher},
    io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

use crate::files;

/// The locked files of all processes that use one journal.
#[derive(Debug)]
pub(super) struct ProcessLocks {
    folder: PathBuf,
    own: Mutex<Option<OwnLock>>,
}

#[derive(Debug)]
struct OwnLock {
    name: String,
    /// Holds the lock.
    _file: File,
}

/// A file may be there for a moment before it is locked.
const SETTLED: Duration = Duration::from_hours(1);

impl ProcessLocks {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, own: Mutex::default() }
    }

    /// The name of our own locked file, which the first call creates.
    pub(super) fn own(&self) -> io::Result<String> {
        let mut own = self.own.lock();
        if let Some(own) = &*own {
            return Ok(own.name.clone());
        }
        // If this fails, creating the file fails too and says why.
        let _ = files::make_folder(&self.folder);
        let unique = RandomState::new().build_hasher().finish();
        let name = format!("{}-{unique:016x}", std::process::id());
        let file =
            files::private_options().write(true).create_new(true).open(self.folder.join(&name))?;
        file.lock()?;
        *own = Some(OwnLock { name: name.clone(), _file: file });
        Ok(name)
    }

    /// Whether the process that locked this file is alive. If that is unknown, it counts as alive: not to resume a run is
    /// better than to run it twice.
    pub(super) fn is_alive(&self, name: &str) -> bool {
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if !is_name {
            return false;
        }
        match File::open(self.folder.join(name)) {
            Ok(file) => !matches!(file.try_lock(), Ok(())),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes the files of processes that ended.
    pub(super) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let changed = entry.metadata().and_then(|data| data.modified());
            let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_none_or(|age| age < SETTLED) {
                continue;
            }
            let locked = File::open(entry.path()).map(|file| file.try_lock());
            if !matches!(locked, Ok(Err(TryLockError::WouldBlock))) {
                // It is as good as gone; a file that cannot be removed is only in the way.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for ProcessLocks {
    fn drop(&mut self) {
        if let Some(own) = self.own.get_mut() {
            // Left behind, it would be swept up later.
            let _ = fs::remove_file(self.folder.join(&own.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lives");
        let (one, other) = (ProcessLocks::new(place.clone()), ProcessLocks::new(place));
        let name = one.own().unwrap();
        assert_eq!(one.own().unwrap(), name);
        assert!(one.is_alive(&name) && other.is_alive(&name));
        assert!(!other.is_alive("1-00"));
        assert!(!other.is_alive("") && !other.is_alive("../x"));
        other.sweep();
        assert!(other.is_alive(&name));
        drop(one);
        assert!(!other.is_alive(&name));
    }
}
