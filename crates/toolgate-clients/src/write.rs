//! Writes files so that they can be restored.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use toolgate_config::Format;

use crate::{Edit, difference, edited};

/// Why a file was not written. It is as it was.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else has changed the file since it was read.
    #[error("{} has changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What was written is not what is there now. The back-up was put back.
    #[error("{} has another content than was written to it", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
    },
}

/// All that one run has changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRecord {
    /// The files, in the order in which they were written.
    pub files: Vec<Changed>,
    /// The names of the values that were stored.
    pub secrets: Vec<String>,
}

/// A file that was changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The file.
    pub path: PathBuf,
    /// Its back-up; none if the file was not there.
    pub backup: Option<PathBuf>,
    /// The hash of what was written.
    written: String,
    /// What was changed, by which the text can be made again from the back-up.
    edits: Vec<Edit>,
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Undone {
    /// It is byte for byte what it was.
    Restored(PathBuf),
    /// It was not there before, and is gone.
    Removed(PathBuf),
    /// It has changed since, and stays as it is. The change is shown without secrets.
    Changed {
        /// The file.
        path: PathBuf,
        /// Its back-up.
        backup: Option<PathBuf>,
        /// What has changed since.
        since: String,
    },
    /// It cannot be restored, for this reason.
    Failed(PathBuf, String),
}

/// Writes files, and remembers how to restore them.
#[derive(Debug)]
pub struct Writer {
    stamp: String,
    /// What was changed so far.
    pub record: ChangeRecord,
}

impl Writer {
    /// `stamp` is a part of the names of back-ups, such as `20260102-030405`.
    pub fn new(stamp: &str) -> Self {
        Self { stamp: stamp.to_owned(), record: ChangeRecord::default() }
    }

    /// Changes a file. `before` is the text that the edits were planned for; none if there was no file.
    pub fn write(
        &mut self,
        path: &Path,
        before: Option<&str>,
        after: &str,
        edits: &[Edit],
    ) -> Result<(), WriteError> {
        // A link stays a link: the file behind it is changed.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let system = |source: io::Error| WriteError::System { path: path.clone(), source };
        let now = match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(system(error)),
        };
        if now.as_deref() != before.map(str::as_bytes) {
            return Err(WriteError::Changed { path });
        }
        let permissions = fs::metadata(&path).ok().map(|found| found.permissions());
        let backup = before.map(|_| self.backup_of(&path));
        if let (Some(backup), Some(bytes)) = (&backup, &now) {
            create(backup, bytes, permissions.as_ref()).map_err(system)?;
        } else if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(system)?;
        }
        replace(&path, after.as_bytes(), permissions.as_ref()).map_err(system)?;
        if fs::read(&path).ok().as_deref() != Some(after.as_bytes()) {
            let _ = match &now {
                Some(bytes) => replace(&path, bytes, permissions.as_ref()),
                None => fs::remove_file(&path),
            };
            return Err(WriteError::NotKept { path });
        }
        let written = hash(after.as_bytes());
        self.record.files.push(Changed { path, backup, written, edits: edits.to_vec() });
        Ok(())
    }

    fn backup_of(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let named = |number: usize| match number {
            0 => path.with_file_name(format!("{name}.toolgate-{}", self.stamp)),
            number => path.with_file_name(format!("{name}.toolgate-{}-{number}", self.stamp)),
        };
        (0..10_000).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
    }
}

/// Restores the files of a record, the last one first.
pub fn undo(record: &ChangeRecord) -> Vec<Undone> {
    record.files.iter().rev().map(undo_file).collect()
}

fn undo_file(changed: &Changed) -> Undone {
    let Changed { path, backup, written, edits } = changed;
    let failed = |error: io::Error| Undone::Failed(path.clone(), error.to_string());
    let now = match fs::read(path) {
        Ok(now) => now,
        Err(error) => return failed(error),
    };
    let before = match backup.as_ref().map(fs::read).transpose() {
        Ok(before) => before,
        Err(error) => return failed(error),
    };
    if hash(&now) != *written {
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        let format = Format::of_file(path);
        let written = edited(&text, format, edits).unwrap_or(text);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let since = difference(&written, &String::from_utf8_lossy(&now), format, &name);
        return Undone::Changed { path: path.clone(), backup: backup.clone(), since };
    }
    let (Some(before), Some(backup)) = (before, backup) else {
        return match fs::remove_file(path) {
            Ok(()) => Undone::Removed(path.clone()),
            Err(error) => failed(error),
        };
    };
    let permissions = fs::metadata(path).ok().map(|found| found.permissions());
    if let Err(error) = replace(path, &before, permissions.as_ref()) {
        return failed(error);
    }
    let _ = fs::remove_file(backup);
    Undone::Restored(path.clone())
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Makes a new file. Without permissions only its owner can read it.
fn create(path: &Path, bytes: &[u8], permissions: Option<&Permissions>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    let written = file.write_all(bytes).and_then(|()| match permissions {
        Some(permissions) => file.set_permissions(permissions.clone()),
        None => Ok(()),
    });
    let written = written.and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Puts a new file in the place of another, whole or not at all.
fn replace(path: &Path, bytes: &[u8], permissions: Option<&Permissions>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.toolgate-{}", std::process::id()));
    create(&beside, bytes, permissions)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}
