//! Whether the process of a run is still alive.
//!
//! The system reuses process ids, after a restart of a container even in the same order. A file
//! lock is reliable: it is held exactly as long as its process lives.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File, TryLockError},
    hash::{BuildHasher, Hasher},
    io::{self, Seek, SeekFrom, Write},
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
    /// Holds the lock, and contains the runs of [`ProcessLocks::is_over`].
    file: File,
    over: Vec<String>,
}

/// The size of the file, reserved when it is created. So later writes need no disk space.
const RESERVED: usize = 4_096;
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
        let lock = OwnLock { name: name.clone(), file, over: Vec::new() };
        // Without it, a run whose end cannot be written would seem to continue.
        let _ = lock.write();
        *own = Some(lock);
        Ok(name)
    }

    /// The name of our own locked file, if there is one.
    pub(super) fn own_if_any(&self) -> Option<String> {
        self.own.lock().as_ref().map(|own| own.name.clone())
    }

    /// Notes that a run of this process has ended, if that cannot be written to the database.
    pub(super) fn is_over(&self, run: &str) {
        if let Some(own) = &mut *self.own.lock() {
            own.over.push(run.to_owned());
            let _ = own.write();
        }
    }

    /// Takes that back.
    pub(super) fn is_not_over(&self, run: &str) {
        if let Some(own) = &mut *self.own.lock()
            && own.over.iter().any(|over| over == run)
        {
            own.over.retain(|over| over != run);
            let _ = own.write();
        }
    }

    /// Whether the process that locked this file is alive, and has not noted that the run is over.
    pub(super) fn is_running(&self, name: &str, run: &str) -> bool {
        self.is_alive(name)
            && fs::read(self.folder.join(name)).map_or(true, |text| {
                !String::from_utf8_lossy(&text).lines().any(|over| over.trim_end() == run)
            })
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
                // The process has ended. A file that cannot be removed does no harm.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl OwnLock {
    fn write(&self) -> io::Result<()> {
        let mut text = self.over.join("\n").into_bytes();
        text.truncate(RESERVED - 1);
        text.push(b'\n');
        text.resize(RESERVED, b' ');
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&text)
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
    fn a_process_lock_ends_with_its_process() {
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
