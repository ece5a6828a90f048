//! The queries that led to calls, as lines of JSON.
//!
//! Several processes may add, read and erase at once. A writer holds a lock. It appends lines, or
//! replaces the whole file to remove something. The first line has an id, which shows a reader
//! whether the file was replaced.

mod lines;

use std::{
    fmt, fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::{StoreError, files, lock::Lock};

/// Past queries. Entries that cannot be read are skipped.
pub trait UsageLog: fmt::Debug + Send + Sync {
    /// Adds uses. Entries without words, or with names that are too long, are left out.
    fn append(&self, uses: &[PastUse]) -> Result<(), StoreError>;

    /// The entries, merged and in the order of time.
    fn read(&self) -> Vec<PastUse>;

    /// The entries that were added or replaced since `position`. Updates `position`.
    fn follow(&self, position: &mut UsagePosition) -> UsageChange;

    /// Removes the entries that `keep` rejects, and returns them.
    fn erase(&self, keep: &dyn Fn(&PastUse) -> bool) -> Result<Vec<PastUse>, StoreError>;
}

/// Past queries, in one file.
#[derive(Debug, Clone)]
pub struct UsageFile {
    path: PathBuf,
}

/// A query, and a tool that was called for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastUse {
    /// The server, by its name in the configuration.
    pub server: String,
    /// The tool, by the name that the server gives it.
    pub tool: String,
    /// The query, on one line and cut to [`UsageFile::MAX_QUERY_BYTES`].
    pub query: String,
    /// When it last happened, in seconds since 1970.
    pub at: u64,
    /// How many calls were of use.
    pub count: u64,
    /// How many calls failed, or were followed by a call of another tool for the same query.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub against: u64,
    /// The identity of a remote caller; empty for those at this machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caller: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The position of a reader in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsagePosition {
    /// Identifies what the offset is in.
    pub id: String,
    /// How far the reader has come.
    pub offset: u64,
}

/// The changes since a reader's position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageChange {
    /// Nothing.
    None,
    /// Entries that were added, in the order of time.
    Added(Vec<PastUse>),
    /// The file was replaced. These are all entries, in the order of time.
    Replaced(Vec<PastUse>),
}

/// At this size the file is rewritten with the entries within the limits.
const COMPACTED_BYTES: u64 = 8 * 1024 * 1024;
/// A larger file was not written by toolgate, and is not read.
const MAX_FILE_BYTES: u64 = 4 * COMPACTED_BYTES;

impl UsageFile {
    /// How many queries of one caller are stored for one tool.
    pub const MAX_FOR_TOOL: usize = 12;

    /// How many queries are stored in all.
    pub const MAX_TOTAL: usize = 4_096;

    /// The longest query.
    pub const MAX_QUERY_BYTES: usize = 512;

    /// How long the names of a server and a tool may be, together.
    pub const MAX_NAME_BYTES: usize = 255;

    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Appends text. Returns the size of the file.
    fn add(&self, text: &str) -> io::Result<u64> {
        let mut file =
            files::private_options().read(true).append(true).create(true).open(&self.path)?;
        let mut size = file.seek(SeekFrom::End(0))?;
        let mut added = String::new();
        if size == 0 {
            added.push_str(&lines::header());
        } else {
            // A killed writer may have left half a line.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                added.push('\n');
            }
        }
        added.push_str(text);
        file.write_all(added.as_bytes())?;
        size += added.len() as u64;
        Ok(size)
    }

    fn replace(&self, uses: &[PastUse]) -> Result<(), StoreError> {
        let mut text = lines::header();
        text.extend(lines::merged(uses.to_vec()).iter().filter_map(PastUse::to_line));
        files::replace(&self.path, text.as_bytes())
    }

    /// The whole file; empty if it cannot be read.
    fn load(&self) -> lines::UsageLines {
        fs::File::open(&self.path)
            .and_then(|mut file| lines::read(&mut file, 0, MAX_FILE_BYTES))
            .unwrap_or_default()
    }

    /// What follows a position, if the file is still the same one.
    fn more(&self, position: &UsagePosition) -> Option<lines::UsageLines> {
        if position.id.is_empty() {
            return None;
        }
        let mut file = fs::File::open(&self.path).ok()?;
        let head = lines::read(&mut file, 0, lines::HEADER_BYTES).ok()?;
        let is_same = head.id == position.id && file.metadata().ok()?.len() >= position.offset;
        is_same.then(|| lines::read(&mut file, position.offset, MAX_FILE_BYTES).ok()).flatten()
    }

    fn lock(&self) -> Result<Lock, StoreError> {
        Lock::take(&self.path.with_extension("lock"))
    }

    fn error(&self, error: io::Error) -> StoreError {
        StoreError::new(&self.path, error)
    }
}

impl UsageLog for UsageFile {
    fn append(&self, uses: &[PastUse]) -> Result<(), StoreError> {
        let added: String = uses.iter().filter_map(PastUse::to_line).collect();
        if added.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let size = self.add(&added).map_err(|error| self.error(error))?;
        if size > COMPACTED_BYTES {
            self.replace(&self.load().uses)?;
        }
        Ok(())
    }

    fn read(&self) -> Vec<PastUse> {
        lines::merged(self.load().uses)
    }

    fn follow(&self, position: &mut UsagePosition) -> UsageChange {
        let known = std::mem::take(position);
        if let Some(more) = self.more(&known) {
            *position = UsagePosition { offset: more.end, ..known };
            return if more.uses.is_empty() {
                UsageChange::None
            } else {
                UsageChange::Added(more.uses)
            };
        }
        let all = self.load();
        *position = UsagePosition { id: all.id, offset: all.end };
        if known == UsagePosition::default() && all.uses.is_empty() {
            return UsageChange::None;
        }
        UsageChange::Replaced(lines::merged(all.uses))
    }

    fn erase(&self, keep: &dyn Fn(&PastUse) -> bool) -> Result<Vec<PastUse>, StoreError> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        let (kept, gone): (Vec<_>, Vec<_>) = self.read().into_iter().partition(keep);
        if kept.is_empty() {
            // Removes damaged lines too, because nothing must be left.
            fs::remove_file(&self.path).map_err(|error| self.error(error))?;
        } else if !gone.is_empty() {
            self.replace(&kept)?;
        }
        Ok(gone)
    }
}

/// Merges uses of the same tool for the same query, and keeps the newest within the limits, ordered by time.
pub fn merged_uses(uses: Vec<PastUse>) -> Vec<PastUse> {
    lines::merged(uses)
}

impl PastUse {
    /// A use at this moment, by a caller at this machine.
    pub fn now(server: &str, tool: &str, query: &str) -> Self {
        Self {
            server: server.to_owned(),
            tool: tool.to_owned(),
            query: lines::one_line(query),
            at: crate::since_epoch().as_secs(),
            count: 1,
            against: 0,
            caller: String::new(),
        }
    }

    /// When it last happened, as `2026-11-15T22:06:11Z`.
    pub fn at_utc(&self) -> String {
        crate::logs::utc(self.at)
    }
}

#[cfg(test)]
mod tests;
