//! Counts records that could not be written in the names of empty files.
//!
//! A new file name needs no space on most full disks. A file counts the records of one process. A
//! process that can write again reports the records of all such files, and removes the files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::files;

const BEFORE: &str = "unwritten-";

/// The file of this process. A writer holds the lock of the head file where it can.
#[derive(Debug, Default)]
pub(super) struct UnwrittenMark {
    id: String,
    count: u64,
}

impl UnwrittenMark {
    /// Writes that so many records of this process are missing. If that fails too, only this process
    /// knows of them.
    pub(super) fn set(&mut self, log: &Path, count: u64) {
        if self.id.is_empty() {
            self.id = format!("{}-{}", std::process::id(), crate::since_epoch().as_nanos());
        }
        let before = self.path(log).filter(|path| path.exists());
        let old = std::mem::replace(&mut self.count, count);
        let done = match (self.path(log), &before) {
            (Some(new), Some(before)) => fs::rename(before, new),
            (Some(new), None) => {
                files::private_options().append(true).create(true).open(new).map(drop)
            }
            (None, Some(before)) => fs::remove_file(before),
            (None, None) => Ok(()),
        };
        if done.is_err() {
            self.count = if before.is_some() { old } else { 0 };
        }
    }

    /// How many records of this process the file counts.
    pub(super) fn count(&self, log: &Path) -> u64 {
        if self.path(log).is_some_and(|path| path.exists()) { self.count } else { 0 }
    }

    /// Another process may have reported the records of the file. Returns how many of `missing` are
    /// left.
    pub(super) fn left_of(&mut self, log: &Path, missing: u64) -> u64 {
        if self.path(log).is_some_and(|path| !path.exists()) {
            missing.saturating_sub(std::mem::take(&mut self.count))
        } else {
            missing
        }
    }

    fn path(&self, log: &Path) -> Option<PathBuf> {
        (self.count > 0).then(|| log.with_file_name(format!("{BEFORE}{}-{}", self.id, self.count)))
    }
}

/// All such files, with their counts.
pub(super) fn all(log: &Path) -> Vec<(PathBuf, u64)> {
    let entries = log.parent().and_then(|folder| fs::read_dir(folder).ok());
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let count = name.strip_prefix(BEFORE)?.rsplit('-').next()?.parse().ok()?;
        Some((entry.path(), count))
    };
    entries.into_iter().flatten().flatten().filter_map(read).collect()
}

/// How many records they count.
pub(super) fn count(log: &Path) -> u64 {
    all(log).iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}
