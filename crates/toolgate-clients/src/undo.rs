//! Restores what was written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use toolgate_config::Format;

use crate::{
    ChangeRecord, Changed, difference,
    edit::{is_without_entries, taken_back},
    edited,
    write::{content, hash, replace},
};

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Undone {
    /// It is byte for byte what it was.
    Restored(PathBuf),
    /// It was not there before, and is gone.
    Removed(PathBuf),
    /// It was not changed yet, or is restored already.
    Untouched(PathBuf),
    /// It was not there before, and stays, because this file that stays as it is uses it.
    Used {
        /// The file.
        path: PathBuf,
        /// The file that uses it.
        by: PathBuf,
    },
    /// It has changed since. Its entries are what they were, and all else stays as it is. The change is shown
    /// without secrets.
    TakenBack {
        /// The file.
        path: PathBuf,
        /// Its back-up.
        backup: Option<PathBuf>,
        /// What has changed since.
        since: String,
    },
    /// An entry of it has changed since, and it stays as it is. The change is shown without secrets.
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

impl Undone {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Restored(path)
            | Self::Removed(path)
            | Self::Untouched(path)
            | Self::Used { path, .. }
            | Self::TakenBack { path, .. }
            | Self::Changed { path, .. }
            | Self::Failed(path, _) => path,
        }
    }
}

/// Restores the files of a record, the last one first. A file that was not there before stays while one that
/// stays uses it: one of this record, or of those in `staying`, which gets those of this record too.
pub fn undo(record: &ChangeRecord, staying: &mut Vec<PathBuf>) -> Vec<Undone> {
    let mut undone = Vec::new();
    for changed in record.files.iter().rev() {
        let outcome = undo_file(changed, staying);
        if let Undone::Changed { path, .. }
        | Undone::TakenBack { path, .. }
        | Undone::Failed(path, _) = &outcome
        {
            staying.push(path.clone());
        }
        undone.push(outcome);
    }
    undone
}

/// Whether a file names another one, or starts toolgate in the folder of it.
fn uses(client: &Path, target: &Path) -> bool {
    let text = fs::read_to_string(client).unwrap_or_default();
    let name = target.display().to_string();
    let escaped = serde_json::Value::from(name.as_str()).to_string();
    let is_in_folder = target.parent().is_some_and(|folder| client.starts_with(folder));
    text.contains(&name)
        || text.contains(escaped.trim_matches('"'))
        || (is_in_folder && text.contains("toolgate"))
}

fn undo_file(changed: &Changed, staying: &[PathBuf]) -> Undone {
    let Changed { path, backup, written, before: hash_before, beside, edits } = changed;
    let failed = |error: io::Error| Undone::Failed(path.clone(), error.to_string());
    let now = match content(path) {
        Ok(now) => now,
        Err(error) => return failed(error),
    };
    if let Some(beside) = beside {
        let _ = fs::remove_file(beside);
    }
    let is_as_before = match (&now, hash_before) {
        (Some(now), Some(before)) => hash(now) == *before,
        (None, None) => backup.is_none(),
        _ => false,
    };
    if is_as_before {
        if let Some(backup) = backup {
            let _ = fs::remove_file(backup);
        }
        return Undone::Untouched(path.clone());
    }
    let before = match backup.as_ref().map(fs::read).transpose() {
        Ok(before) => before,
        Err(error) => return failed(error),
    };
    let used = staying.iter().find(|user| before.is_none() && uses(user, path));
    if let Some(by) = used {
        return Undone::Used { path: path.clone(), by: by.clone() };
    }
    // A file that somebody has removed comes back too.
    if let Some(now) = now.filter(|now| hash(now) != *written) {
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        let format = Format::of_file(path);
        let written = edited(&text, format, edits).unwrap_or_else(|_| text.clone());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let now_text = String::from_utf8_lossy(&now);
        let since = difference(&written, &now_text, format, &name);
        let (path, backup) = (path.clone(), backup.clone());
        let back = taken_back(&text, &now_text, format, edits);
        let is_nothing = |back: &String| before.is_none() && is_without_entries(back, format);
        let done = back.map(|back| {
            let is_nothing = is_nothing(&back);
            let done = if is_nothing {
                fs::remove_file(&path)
            } else {
                put(&path, beside.as_deref(), back.as_bytes())
            };
            done.map(|()| is_nothing)
        });
        return match done {
            Some(Ok(true)) => Undone::Removed(path),
            Some(Ok(false)) => Undone::TakenBack { path, backup, since },
            Some(Err(error)) => failed(error),
            None => Undone::Changed { path, backup, since },
        };
    }
    let (Some(before), Some(backup)) = (before, backup) else {
        return match fs::remove_file(path) {
            Ok(()) => Undone::Removed(path.clone()),
            Err(error) => failed(error),
        };
    };
    if let Err(error) = put(path, beside.as_deref(), &before) {
        return failed(error);
    }
    let _ = fs::remove_file(backup);
    Undone::Restored(path.clone())
}

/// Replaces the content of a file that stays with its mode.
fn put(path: &Path, beside: Option<&Path>, bytes: &[u8]) -> io::Result<()> {
    let permissions = fs::metadata(path).ok().map(|found| found.permissions());
    let new = format!(
        ".{}.toolgate-{}",
        path.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id()
    );
    let beside = beside.map_or_else(|| path.with_file_name(new), Path::to_owned);
    replace(path, &beside, bytes, permissions.as_ref())
}
